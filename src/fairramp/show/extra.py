"""Altair, which comes with an extra; who imports it from here is told how to install it."""

from fairramp.errors import FairrampError, installing

__all__ = ["alt", "missing_extra"]


def missing_extra(name: str) -> FairrampError:
    """What to do where a library of the report is not there."""
    return FairrampError(
        "{name} is not installed",
        remedy="install it with: {command}",
        name=name,
        command=installing("report"),
    )


try:
    import altair as alt
except ImportError as error:
    raise missing_extra(error.name or "altair") from None
