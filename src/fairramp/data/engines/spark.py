"""Spark tables. Spark parses dots and backticks in column names and ignores case."""

from typing import Any

from fairramp.core.checks import library
from fairramp.data.engines.base import Engine
from fairramp.errors import InputError, installing


class Spark(Engine):
    """A PySpark session."""

    name = "pyspark"
    title = "Spark"
    folds_case = True
    may_repeat_names = True

    def check(self, native: Any) -> None:
        """Raise for streaming tables and for two columns of the same name."""
        arrow()  # without it, tables can neither be fetched nor joined
        if native.isStreaming:
            raise InputError(
                "A streaming table cannot be read more than once", remedy="pass its batches, using foreachBatch"
            )
        super().check(native)

    def plain_names(self, frame: Any) -> tuple[Any, dict[str, str]]:
        """Numbered names."""
        import narwhals as nw

        names = frame.collect_schema().names()
        plain = [f"c{i}" for i in range(len(names))]
        return nw.from_native(frame.to_native().toDF(*plain)), dict(zip(names, plain, strict=True))

    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A table in the session, broadcast to all executors; plans show only its column names."""
        from pyspark.sql import functions

        return functions.broadcast(native.sparkSession.createDataFrame(arrow().table(columns)))


def arrow() -> Any:
    """PyArrow, which PySpark does not bring along."""
    return library("pyarrow", install=installing("spark"))
