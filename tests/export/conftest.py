import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _postgres_ends_with_the_tests():
    """Leave no server behind."""
    yield
    if "databases" in sys.modules:
        sys.modules["databases"].stop_postgres()
