"""`discreet serve`: run the server; make tokens, list, replace and revoke them."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from fractions import Fraction

    from discreet.release.study import Study
    from discreet.serve.access import Access


class _Serving(TyperGroup):
    """`discreet serve study.toml` is short for `discreet serve run study.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args:
            raise InvalidParameter("a study is missing: discreet serve study.toml")
        named = args[0] in self.commands or args[0] == "--help"
        return super().parse_args(ctx, args if named else ["run", *args])


app = typer.Typer(
    name="serve",
    cls=_Serving,
    help="Answer questions over HTTP: discreet serve study.toml. Analysts never see a row.",
    add_completion=False,
    rich_markup_mode=None,
)

_FILE: dict[str, Any] = {"exists": True, "dir_okay": False}
_Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token's owner.")]
_Access = Annotated[
    Path | None,
    typer.Option(help="File of tokens; default: discreet.access beside the study.", dir_okay=False),
]
_Ledger = Annotated[
    str | None,
    typer.Option(
        "--ledger", help="Another ledger: a file or postgresql://…; default: DISCREET_LEDGER."
    ),
]
_Anchor = Annotated[
    str | None,
    typer.Option(help="Anchor of the ledger, a file on this machine; default: DISCREET_ANCHOR."),
]
_Tokens = Annotated[Path, typer.Option("--access", help="File of tokens.", dir_okay=False)]
_Expires = Annotated[
    str | None, typer.Option(help="When the token expires: in 90d or 12h, or after 2027-01-31.")
]
# Seconds after which a thread gives way to another: Python's own 5 ms are longer than a plan takes,
# and a plan passes from thread to thread several times while a report is planned beside it.
_SLICE = 0.0005
_ONCE = "This token is shown once; only its hash is stored:"


def _require_extra() -> None:
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise InvalidParameter(
            "discreet serve needs more packages; run: pip install 'discreet[serve]'"
        )


@app.command()
def run(
    studies: Annotated[
        list[Path],
        typer.Argument(metavar="STUDY...", help="The policies, such as study.toml.", **_FILE),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    certfile: Annotated[
        Path | None, typer.Option(help="TLS certificate with its chain (PEM).", **_FILE)
    ] = None,
    keyfile: Annotated[Path | None, typer.Option(help="Private key for TLS.", **_FILE)] = None,
    insecure_public: Annotated[
        bool,
        typer.Option(
            "--insecure-public",
            help="Listen on a public address without TLS, behind a proxy that has TLS.",
        ),
    ] = False,
    allowed_host: Annotated[
        list[str], typer.Option(help="Another host name that clients use; repeatable.")
    ] = [],  # noqa: B006 - typer copies it
    quantum: Annotated[
        float, typer.Option(help="Answers are sent at multiples of this many seconds.")
    ] = 0.25,
    rate: Annotated[float, typer.Option(help="Most requests per second, for each token.")] = 20.0,
    at_once: Annotated[
        int, typer.Option(help="Most requests processed at the same time, for each token.")
    ] = 2,
    releases_per_day: Annotated[
        int, typer.Option(help="Most releases per day, for each token; free ones count.")
    ] = 1_000,
    most_numbers: Annotated[int, typer.Option(help="Most numbers in an answer.")] = 100_000,
    least_epsilon: Annotated[str, typer.Option(help="Smallest ε of a question.")] = "0.0001",
    patience: Annotated[
        float,
        typer.Option(
            help="Seconds for a request to arrive completely, and for a client to read something."
        ),
    ] = 10.0,
    pace: Annotated[
        int, typer.Option(help="Bytes per second that a client must read on average.")
    ] = 16 * 1024,
    reading: Annotated[
        float, typer.Option(help="Seconds for a client to read a whole answer.")
    ] = 300.0,
    connections: Annotated[
        int,
        typer.Option(help="Most open connections; another one closes the connection idle longest."),
    ] = 500,
    per_address: Annotated[
        int | None,
        typer.Option(
            help="Most open connections from one network address; no limit behind a proxy.", min=1
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            help="Most plans, and most releases of each study, processed at the same time."
        ),
    ] = 8,
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS", help="Most seconds of a question at the source; default: 600."
        ),
    ] = None,
    grace: Annotated[
        float, typer.Option(help="Seconds for running requests to finish when the server stops.")
    ] = 30.0,
    metrics_key: Annotated[
        Path | None, typer.Option(help="File with a secret that opens only /metrics.", **_FILE)
    ] = None,
    log_format: Annotated[str, typer.Option(help="text or json (one object per line).")] = "text",
    discovery: Annotated[
        bool,
        typer.Option(
            "--discovery",
            help="Let analysts run the one discovery of a study, which spends its delta.",
        ),
    ] = False,
    access: _Access = None,
    ledger: _Ledger = None,
    anchor: _Anchor = None,
) -> None:
    """Run the server; `discreet serve study.toml` is short for it."""
    _require_extra()
    from discreet.parameters import exact_epsilon
    from discreet.serve.access import Access
    from discreet.serve.app import application
    from discreet.serve.limits import Limits
    from discreet.serve.operation.log import configure_log, tell
    from discreet.serve.operation.metrics import metrics_key as read_key
    from discreet.serve.server import (
        PER_ADDRESS,
        Endpoint,
        bound,
        files_of,
        open_studies,
        refuse_certificate,
        server,
        waiting,
    )
    from discreet.serve.store import Requests

    endpoint = Endpoint(
        host=host,
        port=port,
        certfile=certfile,
        keyfile=keyfile,
        insecure_public=insecure_public,
        allowed_hosts=tuple(allowed_host),
    )
    limits = Limits(
        quantum=quantum,
        rate=rate,
        burst=max(1, round(2 * rate)),
        at_once=at_once,
        releases_per_day=releases_per_day,
        most_numbers=most_numbers,
        least_epsilon=exact_epsilon(least_epsilon),
        patience=patience,
        pace=pace,
        reading=reading,
        connections=connections,
        per_address=per_address or (None if endpoint.is_behind_proxy else PER_ADDRESS),
        threads=threads,
        grace=grace,
        discovery=discovery,
    )
    if log_format not in ("text", "json"):
        raise InvalidParameter(f"log-format must be text or json, got {log_format!r}")
    refuse_certificate(endpoint)
    monitoring = read_key(metrics_key)
    with closing(bound(endpoint)) as listener, ExitStack() as opened:
        configure_log(form=log_format)  # type: ignore[arg-type]
        say = partial(tell, "start") if log_format == "json" else partial(typer.echo, err=True)
        access_file, requests_file = files_of(studies, access)
        with waiting(say, f"the tokens in {access_file}"):
            tokens = Access(access_file, new=True)
            names = tokens.names()
        if not names:
            say(
                "Nobody has a token yet. Create one: discreet serve token NAME --study"
                f" {studies[0]} --allot 0.1"
            )
        served = open_studies(studies, ledger, anchor, time_limit, say=say)
        for study in served.values():
            opened.enter_context(closing(study))
        with waiting(say, f"the requests in {requests_file}"):
            requests = opened.enter_context(closing(Requests(requests_file)))
        with waiting(say, "the ledgers"):  # which are created now, where there was none
            front = application(
                served,
                tokens,
                requests,
                limits=limits,
                hosts=endpoint.hosts,
                metrics_key=monitoring,
            )
        scheme = "https" if certfile else "http"
        say(f"Serving {', '.join(served)} at {scheme}://{host}:{port} (Ctrl-C to stop)")
        sys.setswitchinterval(_SLICE)
        # uvicorn raises it again when all requests are answered
        signal.signal(signal.SIGTERM, _terminate)
        server(front, endpoint=endpoint, limits=limits).run([listener])


def _terminate(*_: object) -> None:
    raise typer.Exit


@app.command()
def token(
    name: _Name,
    study: Annotated[Path, typer.Option(help="Policy of the study that the token opens.", **_FILE)],
    allot: Annotated[
        str | None, typer.Option(help="Total ε that the analyst may spend; needed once.")
    ] = None,
    role: Annotated[
        str, typer.Option(help="analyst, or custodian, who spends from the study's own ε.")
    ] = "analyst",
    expires: _Expires = None,
    access: _Access = None,
    ledger: _Ledger = None,
    anchor: _Anchor = None,
) -> None:
    """Create a token and show it once.

    A name that has a token keeps it, and gains this study or a new allotment.
    """
    _require_extra()
    from discreet.formats import left_shown
    from discreet.release.study import open as open_study
    from discreet.serve.access import Access, end_of, require_name
    from discreet.serve.desk import study_key
    from discreet.serve.server import files_of

    if role not in ("analyst", "custodian"):
        raise InvalidParameter(f"role must be analyst or custodian, got {role!r}")
    if allot is not None and role == "custodian":
        raise InvalidParameter("a custodian spends the study's own ε: leave --allot out")
    require_name(name)
    end = None if expires is None else end_of(expires)
    with open_study(study, ledger=ledger, anchor=anchor) as opened:
        file = files_of([study], access)[0]
        if file.exists():
            Access(file).refuse_other_role(name, role)  # type: ignore[arg-type]
        if allot is not None:
            opened.ledger.allot(name, allot, study=opened.name)
        share = (
            "the study's ε" if role == "custodian" else f"ε {left_shown(_allotment(opened, name))}"
        )
        secret = Access(file, new=True).permit(
            name,
            role=role,  # type: ignore[arg-type]
            study=study_key(opened),
            expires=end,
        )
    until = "" if end is None else f", until {end}"
    typer.echo(f"{name} may ask about {opened.name} and spend {share}{until}.", err=True)
    if secret is None:
        typer.echo(f"{name} already has a token, which stays the same.", err=True)
        return
    typer.echo(_ONCE, err=True)
    typer.echo(secret)


@app.command("tokens")
def list_tokens(
    access: _Tokens = Path("discreet.access"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List who has a token, for which studies, since when and until when.

    The ledger shows what they spent.
    """
    lines = _file_of(access).lines()
    if as_json:
        typer.echo(json.dumps([asdict(line) for line in lines], indent=1))
        return
    known = {study for line in lines for study in line.studies}
    for line in lines:
        until = "" if line.expires is None else f" until {line.expires}"
        opens = ", ".join(_short(study, known) for study in line.studies) or "no study"
        typer.echo(
            f"{line.name}: {line.role}, {line.state}, since {line.made}{until}; access to {opens}"
        )


@app.command()
def rotate(
    name: _Name,
    expires: _Expires = None,
    access: _Tokens = Path("discreet.access"),
) -> None:
    """Replace a token by a new one for the same studies, shown once.

    The old token stops working at once.
    """
    from discreet.serve.access import end_of

    secret = _file_of(access).rotate(name, expires=None if expires is None else end_of(expires))
    typer.echo(f"The old token of {name} no longer works. {_ONCE}", err=True)
    typer.echo(secret)


@app.command()
def revoke(
    name: _Name,
    study: Annotated[
        Path | None, typer.Option(help="Revoke access to this study only.", **_FILE)
    ] = None,
    access: _Tokens = Path("discreet.access"),
    ledger: _Ledger = None,
    anchor: _Anchor = None,
) -> None:
    """Revoke a token at once, or its access to one study. What was spent stays spent."""
    tokens = _file_of(access)
    if study is None:
        tokens.revoke(name)
        typer.echo(f"The token of {name} no longer works.", err=True)
        return
    from discreet.release.study import open as open_study
    from discreet.serve.desk import study_key

    with open_study(study, ledger=ledger, anchor=anchor) as opened:
        tokens.revoke(name, study=study_key(opened))
    typer.echo(f"The token of {name} no longer gives access to {opened.name}.", err=True)


def _allotment(study: Study, analyst: str) -> Fraction:
    """What an analyst may spend of a study; refused if they may spend nothing."""
    allotted = study.ledger.total(study.name, analyst=analyst)
    if not allotted:
        raise InvalidParameter(
            f"{analyst!r} may not spend anything of {study.name} yet: give --allot, the ε that they"
            " may spend in total"
        )
    return allotted


def _file_of(access: Path) -> Access:
    from discreet.serve.access import Access

    if not access.exists():
        raise InvalidParameter(
            f"there is no token file {str(access)!r}; name it, as in --access"
            " folder/discreet.access"
        )
    return Access(access)


def _short(study: str, known: set[str]) -> str:
    """The name of a study; with some digits of its ledger, where others have the same name."""
    ledger, _, name = study.partition("/")
    twins = [other for other in known if other.partition("/")[2] == name]
    return name if len(twins) == 1 else f"{name} (ledger {ledger[:6]}…)"
