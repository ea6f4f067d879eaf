"""`fairramp explore`: a local page on which to look for a rule."""

from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.render import STDIN, Screen
from fairramp.errors import refuse_if


def explore(
    data: Annotated[
        str, Parameter(help="Rows in CSV, TSV, JSON Lines, Parquet or Excel: a file, a folder or a glob.")
    ],
    /,
    *,
    out: Annotated[
        str, Parameter(help="Folder for what you save; created when you save for the first time.")
    ] = "explore-out",
    port: Annotated[int, Parameter(help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    no_browser: Annotated[
        bool, Parameter(help="Only print the address.", negative="", show_default=False)
    ] = False,
) -> None:
    """Look for a rule on a local page: move its settings and see the effect at once.

    The page runs on this machine only. It reads DATA and, when you save, writes to --out: rule.json, report.html
    and the commands that make both. Nothing is ever overwritten. Stop with Ctrl+C.

    For example:

    fairramp explore scores.csv
    """
    import sys
    import threading
    import webbrowser

    from fairramp.cli import library, naming
    from fairramp.data.inputs import input_files
    from fairramp.web.listen import listening  # isort: skip  # first: it says how to install what is missing
    from fairramp.web.explore.app import explorer_app
    from fairramp.web.explore.asked import Choice
    from fairramp.web.explore.run import run

    refuse_if(data == STDIN, "explore reads DATA again when you save; pass a file instead of -")
    input_files(data)
    screen = Screen()

    def read(choice: Choice) -> dict[str, Any]:
        return library.read(
            Screen(quiet=True),
            data,
            naming.fit_columns(choice.score, [choice.group], None, None),
            ordered=True,
            scale=choice.scale,
            decimal=None,
            delimiter=None,
            label=choice.label,
            positive=choice.positive,
        )[1]

    with listening("127.0.0.1", port) as sock:
        app, address = explorer_app(data, out, read, sock.getsockname()[1])

        def started() -> None:
            screen.say(f"Exploring {data}. Open this address, which works only on this machine:")
            screen.text("", f"  {address}", "")
            screen.say("Stop with Ctrl+C.")
            sys.stdout.flush()
            if not no_browser:
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        run(app, sock, started)
    screen.say("Stopped.")
