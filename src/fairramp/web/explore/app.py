"""The pages and the answers of the explorer."""

import json
import secrets
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from fairramp._version import __version__
from fairramp.core.scales import SCALES
from fairramp.data.database import first_sentence
from fairramp.errors import FairrampError, InputError
from fairramp.show.report.page import chart_bundle, page_file, templates
from fairramp.web.explore.asked import CRITERIA, TARGETS, Choice, named, settings_of, told
from fairramp.web.explore.columns import columns_of, suggested
from fairramp.web.explore.explorer import Explorer, Reader
from fairramp.web.explore.guard import Guard
from fairramp.web.explore.save import Folder

_HERE = Path(__file__).parent
_SCALES = {
    "probability": "probability, from 0 to 1",
    "percent": "percent, from 0 to 100",
    "signed": "signed, from -1 to 1",
    "logit": "log odds (logits), any number",
    "real": "any number; only the order means something",
}
assert set(_SCALES) == set(SCALES)


def explorer_app(data: str, out: str, read: Reader, port: int) -> tuple[Any, str]:
    """The application, and its address; `read` reads columns from the file."""
    token = secrets.token_urlsafe(24)
    pages = _Pages(Explorer(data, read), Folder(out))
    routes = [
        Route("/", pages.page),
        Route("/style.css", _file("text/css", lambda: page_file("page.css") + _text("explore.css"))),
        Route("/vega.js", _file("text/javascript", chart_bundle)),
        Route("/explore.js", _file("text/javascript", _script)),
        Route("/move", pages.move, methods=["POST"]),
        Route("/save", pages.save, methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes), token, port), f"http://127.0.0.1:{port}/{token}/"


class _Pages:
    """The page, a move, and a save."""

    def __init__(self, explorer: Explorer, folder: Folder) -> None:
        self._explorer, self._folder = explorer, folder

    async def page(self, request: Request) -> Response:
        """The page, with the columns of the file."""

        def made() -> str:
            columns = columns_of(self._explorer.data)
            return (
                templates(_HERE)
                .get_template("explore.html")
                .render(
                    source=self._explorer.source,
                    out=self._folder.name,
                    columns=columns,
                    suggested=suggested(columns),
                    scales=_SCALES,
                    criteria=CRITERIA,
                    targets=TARGETS,
                    version=__version__,
                    problem="",
                )
            )

        return await _answered(made, HTMLResponse, _problem_page)

    async def move(self, request: Request) -> Response:
        """The rule at a move."""

        def found(asked: Any) -> dict[str, Any]:
            choice = Choice.of(asked.get("columns"))
            settings = settings_of(asked.get("settings"), choice)
            decision, drawn = _words(asked, "decision"), _words(asked, "drawn") or ""
            return self._explorer.move(choice, settings, drawn, decision)

        return await _posted(request, found)

    async def save(self, request: Request) -> Response:
        """Write the rule, its report and the commands."""

        def saved(asked: Any) -> dict[str, Any]:
            choice = Choice.of(asked.get("columns"))
            settings = settings_of(asked.get("settings"), choice)
            rule = self._explorer.rule(choice, settings)
            words = (_words(asked, name) for name in ("decision", "owner"))
            return asdict(self._folder.save(self._explorer.data, rule, settings, choice, *words))

        return await _posted(request, saved)


def _words(asked: Any, name: str) -> str | None:
    """A text that the page sent; None if it is empty."""
    value = asked.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > 1_000 or not value.isprintable()):
        raise InputError("{name} must be one line of at most 1,000 characters", name=name)
    return value or None


async def _posted(request: Request, answer: Callable[[Any], dict[str, Any]]) -> Response:
    """Answer a JSON object with another one."""
    try:
        asked = json.loads(await request.body())
    except ClientDisconnect:
        return Response(status_code=400)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        return JSONResponse({"error": "The request is not a JSON object."}, 400)
    return await _answered(lambda: answer(asked), JSONResponse, lambda text: JSONResponse({"error": text}, 422))


async def _answered(
    make: Callable[[], Any], respond: Callable[[Any], Response], refuse: Callable[[str], Response]
) -> Response:
    """Compute an answer in another thread; whatever goes wrong becomes a sentence."""
    try:
        return respond(await run_in_threadpool(make))
    except FairrampError as error:
        return refuse(told(error))
    except OSError as error:
        return refuse(f"Cannot use {error.filename or 'the file'}: {error.strerror or error}.")
    except MemoryError:
        return refuse("Out of memory: the rows do not fit; use fewer rows.")
    except Exception as error:
        if type(error).__module__.split(".")[0] in ("duckdb", "_duckdb"):
            return refuse(named(f"The data cannot be read: {first_sentence(error)}"))
        sys.stderr.write(traceback.format_exc())
        return refuse(f"Unexpected {type(error).__name__}; the terminal shows where. Please report it.")


def _problem_page(text: str) -> Response:
    return HTMLResponse(templates(_HERE).get_template("problem.html").render(problem=text), 422)


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _script() -> str:
    return page_file("answer.js") + page_file("charts.js") + _text("explore.js")


def _file(kind: str, content: Callable[[], str]) -> Callable[[Request], Any]:
    """A page for a fixed text."""

    async def answer(request: Request) -> Response:
        return PlainTextResponse(await run_in_threadpool(content), media_type=kind)

    return answer
