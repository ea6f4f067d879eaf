"""Uniform access to the tables of every engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import narwhals as nw

from fairramp.core.checks import meant
from fairramp.core.indexes import index_of
from fairramp.core.scales import Scale
from fairramp.data.columns import Columns
from fairramp.data.engines import engine_of, fetch, is_lazy
from fairramp.data.sample import Sample
from fairramp.errors import InputError


def open_table(frame: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A table wrapped by narwhals, and a function that converts one back to the user's type."""
    try:
        table = nw.from_native(frame, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InputError("Two columns of the table have the same name", remedy="rename one of them") from None
    if not isinstance(table, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            "must be a pandas, polars, Arrow, Spark or Dask table, a polars LazyFrame or a DuckDB relation, "
            "got {kind}",
            argument="frame",
            remedy="for arrays, use fit_rule",
            kind=type(frame).__name__,
        )
    if isinstance(table, nw.LazyFrame):
        engine_of(table).check(table.to_native())
    return table, (lambda done: done) if isinstance(frame, nw.DataFrame | nw.LazyFrame) else nw.to_native


def check_columns(table: Any, names: Sequence[str], stored: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raise if a table lacks one of the named columns; `stored` are those of a rule, with their arguments."""
    present = table.collect_schema().names()
    for name in names:
        if name not in present:
            if name in getattr(index_of(table.to_native()), "names", ()):
                raise InputError(
                    "{name!r} is the index of the table, not a column",
                    remedy="pass df.reset_index() instead of df",
                    name=name,
                )
            near = meant(name, present)
            other = " If it has another name here, pass {" + stored[name] + "}" if name in stored else ""
            raise InputError(
                "The table has no column {name!r}",
                remedy=("did you mean {near!r}?" if near else "its columns are {known}.") + other,
                name=name,
                near=near,
                known=", ".join(map(repr, present[:10])) + (", …" if len(present) > 10 else ""),
            )


def reader(table: Any, columns: Sequence[str]) -> Callable[[str], Any]:
    """A function that returns a column by name, in memory."""
    wanted = list(dict.fromkeys(columns))
    if is_lazy(table):
        short = {f"c{i}": name for i, name in enumerate(wanted)}
        found = fetch(table.select(*(nw.col(name).alias(alias) for alias, name in short.items())))
        return {name: found[alias] for alias, name in short.items()}.__getitem__
    return lambda name: table[name].to_native()


def sample_of_table(
    table: Any, columns: Columns, scale: Scale, *, weight: str | None = None, label: str | None = None
) -> Sample:
    """Columns of a table as a sample; a lazy table is fetched first."""
    names = [*columns.all, *(name for name in (weight, label) if name is not None)]
    read: dict[str | None, Any] = dict(zip(names, map(reader(table, names), names), strict=True))

    def several(names: tuple[str, ...] | None) -> dict[str, Any] | None:
        return None if names is None else {name: read[name] for name in names}

    return replace(
        Sample.of_arrays(
            read.get(columns.score),
            several(columns.groups),
            read.get(label),
            scale=scale,
            strata=several(columns.strata),
            sample_weight=read.get(weight),
        ),
        columns=columns,
    )
