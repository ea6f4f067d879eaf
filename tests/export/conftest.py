import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _close_databases():
    """Leave no connection and no server running."""
    yield
    if "databases" in sys.modules:
        sys.modules["databases"].close()


@pytest.fixture
def db(request):
    """An empty database."""
    from databases import database

    found = database(request.param)
    yield found
    found.clear()
