"""`discreet serve`: run the server, make tokens, revoke them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup


class _Serving(TyperGroup):
    """`discreet serve study.toml` is short for `discreet serve run study.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, with `run` before those that name no command."""
        if not args:
            from discreet.errors import InvalidParameter

            raise InvalidParameter("Missing study: discreet serve study.toml")
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="serve",
    cls=_Serving,
    help="Answer questions over HTTP: discreet serve study.toml. Analysts ask; they never touch a row.",
    add_completion=False,
    rich_markup_mode=None,
)

_Access = Annotated[
    Path | None, typer.Option(help="The file of tokens; discreet.access beside the study if not given.", dir_okay=False)
]


def _require_extra() -> None:
    from discreet.errors import InvalidParameter

    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise InvalidParameter("discreet serve needs more packages: pip install 'discreet[serve]'")


@app.command()
def run(
    studies: Annotated[
        list[Path],
        typer.Argument(metavar="STUDY...", help="The policies: study.toml.", exists=True, dir_okay=False),
    ],
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port.", min=1, max=65535)] = 8000,
    tls_cert: Annotated[Path | None, typer.Option(help="The certificate.", exists=True, dir_okay=False)] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key.", exists=True, dir_okay=False)] = None,
    insecure_public: Annotated[
        bool,
        typer.Option("--insecure-public", help="Listen at a public address without TLS, behind a proxy that has it."),
    ] = False,
    allowed_host: Annotated[
        list[str], typer.Option(help="A further name under which clients reach it; may be given several times.")
    ] = [],  # noqa: B006 - typer copies it
    quantum: Annotated[float, typer.Option(help="Answers leave on multiples of so many seconds.")] = 0.25,
    rate: Annotated[float, typer.Option(help="Requests a second for each token.")] = 20.0,
    at_once: Annotated[int, typer.Option(help="Requests of one token that are worked on at a time.")] = 2,
    releases_per_day: Annotated[int, typer.Option(help="Releases a day for each token, free ones included.")] = 1_000,
    most_numbers: Annotated[int, typer.Option(help="Numbers in an answer, each with its interval.")] = 100_000,
    least_epsilon: Annotated[str, typer.Option(help="The least ε of a question.")] = "0.0001",
    patience: Annotated[
        float, typer.Option(help="Seconds in which a request must come whole, and a reader take something.")
    ] = 10.0,
    access: _Access = None,
) -> None:
    """Serve studies: discreet serve study.toml."""
    _require_extra()
    from discreet.parameters import exact_epsilon
    from discreet.serve.access import Access
    from discreet.serve.app import application
    from discreet.serve.limits import Limits
    from discreet.serve.refusals import configure_log
    from discreet.serve.requests import Requests
    from discreet.serve.server import PER_ADDRESS, Endpoint, files_of, open_studies, server

    endpoint = Endpoint(
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
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
        per_address=None if endpoint.is_behind_proxy else PER_ADDRESS,
    )
    configure_log()
    access_file, requests_file = files_of(studies, access)
    tokens = Access(access_file, new=True)
    if not tokens.names():
        typer.echo(f"Nobody has a token yet: discreet serve token NAME --study {studies[0]} --allot 0.1", err=True)
    served, requests = open_studies(studies), Requests(requests_file)
    front = application(served, tokens, requests, limits=limits, hosts=endpoint.hosts)
    scheme = "https" if tls_cert else "http"
    typer.echo(f"{', '.join(served)} at {scheme}://{host}:{port} (Ctrl-C ends it)", err=True)
    try:
        server(front, endpoint=endpoint, limits=limits).run()
    finally:
        requests.close()
        for study in served.values():
            study.close()


@app.command()
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.")],
    study: Annotated[Path, typer.Option(help="The policy of the study that it opens.", exists=True, dir_okay=False)],
    allot: Annotated[str | None, typer.Option(help="The ε that an analyst may spend in all.")] = None,
    role: Annotated[str, typer.Option(help="analyst, or custodian: who spends of the study itself.")] = "analyst",
    access: _Access = None,
) -> None:
    """Make a token, shown once; a name that has one keeps it, and gets this study, or another allotment, besides."""
    _require_extra()
    from discreet.errors import InvalidParameter
    from discreet.release.study import open as open_study
    from discreet.serve.access import Access, require_name
    from discreet.serve.desk import study_key
    from discreet.serve.server import files_of

    if role not in ("analyst", "custodian"):
        raise InvalidParameter(f"role must be analyst or custodian, got {role!r}")
    if (allot is None) != (role == "custodian"):
        raise InvalidParameter("an analyst needs --allot, the ε that they may spend; a custodian has none")
    require_name(name)
    with open_study(study) as opened:
        if allot is not None:
            opened.ledger.allot(name, allot, study=opened.name)
        tokens = Access(files_of([study], access)[0], new=True)
        secret = tokens.permit(name, role=role, study=study_key(opened))  # type: ignore[arg-type]
    share = "the study's ε" if allot is None else f"ε {allot}"
    typer.echo(f"{name} may ask about {opened.name} and spend {share}.", err=True)
    if secret is None:
        typer.echo(f"{name} has a token already; it opens this study, too.", err=True)
        return
    typer.echo("This token is shown once; only its hash is kept:", err=True)
    typer.echo(secret)


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token ends.")],
    access: Annotated[Path, typer.Option(help="The file of tokens.", dir_okay=False)] = Path("discreet.access"),
) -> None:
    """End a token at once; what was spent stays spent."""
    from discreet.errors import InvalidParameter
    from discreet.serve.access import Access

    if not access.exists():
        raise InvalidParameter(
            f"there is no file of tokens {str(access)!r} here; name it, as in --access folder/discreet.access"
        )
    Access(access).revoke(name)
    typer.echo(f"The token of {name} opens nothing any more.", err=True)
