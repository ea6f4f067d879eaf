"""`fairramp serve`: answer over HTTP."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.options import Quiet, RuleFile
from fairramp.cli.render import Screen


def serve(
    rule: RuleFile,
    /,
    *,
    host: Annotated[
        str, Parameter(help="Address to listen on. Any but this machine's own, 127.0.0.1, needs --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen on; 0 chooses a free one.")] = 8000,
    workers: Annotated[int, Parameter(help="Number of processes that answer.")] = 1,
    key_file: Annotated[
        str | None,
        Parameter(
            help="File with the secret key; by default, the environment variable FAIRRAMP_KEY. Without a key, "
            "answers have probabilities and no decisions."
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        Parameter(help="File with a token of at least 32 characters that every request must then present."),
    ] = None,
    max_body: Annotated[int, Parameter(help="Largest body of a request, in bytes.")] = 2_000_000,
    max_people: Annotated[int, Parameter(help="Most people in one request.")] = 10_000,
    timeout: Annotated[float, Parameter(help="Seconds that a client has to send a request.")] = 10.0,
    concurrency: Annotated[int, Parameter(help="Requests to decide that a worker handles at once.")] = 100,
    quiet: Quiet = False,
) -> None:
    """Serve a rule over HTTP: one person, or many, per request. Stop with Ctrl+C or SIGTERM.

    For example:

    fairramp serve rule.json --key-file key.txt
    """
    from tempfile import TemporaryDirectory

    from fairramp.cli import naming, secret
    from fairramp.core.checks import check_number, checked_whole
    from fairramp.errors import FairrampError
    from fairramp.web.listen import address_of, is_local, listening

    screen = Screen(quiet=quiet)
    known = naming.load_any_rule(rule)
    limits = {
        name: checked_whole(name, value)
        for name, value in {
            "workers": workers,
            "max_body": max_body,
            "max_people": max_people,
            "concurrency": concurrency,
        }.items()
    }
    check_number("timeout", timeout, 0.1, 3600)
    key, readable = secret.read_key(key_file)
    screen.warn(readable or "", when=readable)
    token = None
    if token_file is not None:
        token, readable = secret.read_token(token_file)
        screen.warn(readable or "", when=readable)
    from fairramp.web.serve import run
    from fairramp.web.serve.people import People
    from fairramp.web.serve.service import Settings

    if token is None and not is_local(host):
        raise FairrampError(
            "--host {host} is not this machine's own address: pass --token-file FILE, so that only "
            "clients with the token get answers",
            remedy="create a token with: fairramp keygen FILE",
            host=host,
        )
    People(known, key)  # a rule that cannot be served is refused before anything starts
    with (
        listening(host, port) as bound,
        TemporaryDirectory(
            prefix="fairramp-",
            ignore_cleanup_errors=True,  # Windows keeps files that are still mapped into memory
        ) as folder,
    ):
        address = address_of(bound)
        processes = "" if workers == 1 else f" with {workers} workers"
        screen.say(
            f"Serving {rule} (rule {known.fingerprint[:12]}) on {address}{processes}. Its description is at "
            f"{address}/docs. Stop with Ctrl+C."
        )
        if key is None:
            screen.say(
                "Without a key, answers have probabilities and no decisions; pass --key-file FILE, or set "
                "FAIRRAMP_KEY."
            )
        screen.flush()
        run.run(
            Settings(
                rule=known,
                key=key,
                token=token,
                folder=folder,
                host=host,
                max_body=limits["max_body"],
                max_people=limits["max_people"],
                timeout=timeout,
                concurrency=limits["concurrency"],
                quiet=quiet,
            ),
            bound,
            workers,
        )
    screen.say("Stopped.")
