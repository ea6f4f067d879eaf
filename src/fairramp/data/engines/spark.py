"""Tables of Spark, which finds structure in dots and backticks of names and ignores their case."""

from typing import Any

from fairramp.data.engines.base import Engine
from fairramp.errors import InputError


class Spark(Engine):
    """A session of PySpark."""

    name = "pyspark"
    folds_case = True
    may_repeat_names = True

    def check(self, native: Any) -> None:
        """Refuse endless tables and two columns of one name."""
        if native.isStreaming:
            raise InputError(
                "A streaming table cannot be read more than once", remedy="pass its batches, in foreachBatch"
            )
        super().check(native)

    def plain_names(self, frame: Any) -> tuple[Any, dict[str, str]]:
        """Numbered names."""
        import narwhals as nw

        names = frame.collect_schema().names()
        plain = [f"c{i}" for i in range(len(names))]
        return nw.from_native(frame.to_native().toDF(*plain)), dict(zip(names, plain, strict=True))

    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A table in the session, copied to all executors; plans show only its columns' names."""
        import pyarrow
        from pyspark.sql import functions

        return functions.broadcast(native.sparkSession.createDataFrame(pyarrow.table(columns)))
