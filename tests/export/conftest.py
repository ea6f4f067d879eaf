import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _data_bases_end_with_the_tests():
    """Leave no connection and no server behind."""
    yield
    if "databases" in sys.modules:
        sys.modules["databases"].close()


@pytest.fixture
def db(request):
    """A database with nothing in it."""
    from databases import database

    found = database(request.param)
    yield found
    found.clear()
