import sys

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=100)
settings.register_profile("many", deadline=None, max_examples=5000)  # --hypothesis-profile=many
settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def _spark_ends_with_the_tests():
    """Leave no Java process behind."""
    yield
    if "engines" in sys.modules:
        sys.modules["engines"].stop_spark()


@pytest.fixture
def binned(monkeypatch):
    """Send even a handful of rows through bins and refinement, in blocks of 16 rows."""
    monkeypatch.setattr("fairramp.rows.SORTED_ROWS", 0)
    monkeypatch.setattr("fairramp.rows.SORTED_PER_GROUP", 0)
    monkeypatch.setattr("fairramp.rows.FINER_BINS", 64)
    monkeypatch.setattr("fairramp.blocks.BLOCK", 16)
