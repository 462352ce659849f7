"""The command line. Heavy imports wait until a command needs them, so that `--help` is instant."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="discreet",
    help="Publish statistics about people without revealing any one of them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Keep `discreet demo` a subcommand while it is the only one."""


@app.command()
def demo() -> None:
    """Count the people of 3,143 invented counties, privately, and show what it costs."""
    from discreet.show.demo import run

    run()


def main() -> None:
    """Run the command line; errors are one sentence."""
    from discreet.errors import DiscreetError

    try:
        app()
    except DiscreetError as error:
        typer.echo(f"discreet: {error}", err=True)
        raise SystemExit(2) from None
