"""Commands for signed releases: make keys, check a signature, and show the card of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import TYPER, Anchor, AsJson, Force, LedgerPlace, Output, StudyFile
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.release.answer import Answer
    from discreet.release.plan import Plan
    from discreet.release.reports.plan import ReportPlan
    from discreet.release.reports.report import Report

keys = typer.Typer(help="Create keys to sign releases.", **TYPER)


@keys.callback()
def _group() -> None:
    """Keep `new` a subcommand: typer would merge a single one into its group."""


@keys.command("new")
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Writes NAME.key and NAME.pub.")
    ] = "custodian",
) -> None:
    """Create a key pair: NAME.key, private, and NAME.pub, to be published."""
    from discreet.cli.terminal import say
    from discreet.files.signature import new_keys

    private, public = new_keys(name)
    say(
        f"Wrote {private.name}, which signs releases: discreet release … --sign {private.name}."
        " Keep it secret."
    )
    say(
        f"Wrote {public.name}, which checks them: discreet verify-release FILE --key {public.name}."
        " Publish it."
    )


def verify_release(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A signature, a signed file, or the folder of a report."
        ),
    ],
    key: Annotated[str, typer.Option(help="The custodian's public key, such as custodian.pub.")],
    as_json: AsJson = False,
) -> None:
    """Check who signed files and that no byte has changed since.

    It needs no data, and names every changed file.
    """
    from dataclasses import asdict

    from discreet.cli.terminal import say, say_json
    from discreet.files.signature import ENDING
    from discreet.files.signature import verify_release as verified
    from discreet.parameters import quote

    signed = verified(file, key=key)
    inside = [path.name for path in Path(file).iterdir()] if Path(file).is_dir() else []
    others = sorted(name for name in {*inside} - {*signed.files} if not name.endswith(ENDING))
    if as_json:
        say_json({**asdict(signed), "unsigned": others})
        return
    for name in signed.files:
        say(f"✓ {name} is unchanged since signing")
    for name in others:
        say(f"✗ {quote(name)} is not signed")
    cost = f", ε {signed.record['epsilon']}" if "epsilon" in signed.record else ""
    say(
        f"Released from study {signed.study}{cost}, with {signed.ledger['entries']:,} entries in"
        " its ledger."
    )


def card(
    study: StudyFile,
    output: Output = None,
    as_yaml: Annotated[
        bool, typer.Option("--yaml", help="Print YAML, as registries use it.")
    ] = False,
    force: Force = False,
    ledger: LedgerPlace = None,
    anchor: Anchor = None,
    as_json: AsJson = False,
) -> None:
    """Show the privacy claims of a study, for publication. Free: unit, ε, what is public,
    mechanisms, what was spent.

    It has no row count, no hash of the data and no path. -o writes .json, .yaml or .html.
    """
    from discreet.cli.progress import open_study, spending_nothing, watched
    from discreet.cli.terminal import say, show_table
    from discreet.errors import printable

    if as_json and as_yaml:
        raise InvalidParameter("a card is printed as --json or as --yaml, not both")
    with spending_nothing():
        opened = open_study(study, ledger, anchor)
        privacy_card = watched(opened.card, "proving")
        if output is not None:
            say(f"Wrote {privacy_card.save(output, force=force).name}.")
        elif as_json or as_yaml:
            typer.echo(
                printable(privacy_card.to_json() if as_json else privacy_card.to_yaml()), nl=False
            )
        else:
            for heading, rows in privacy_card.sections:
                show_table([heading, ""], rows)


def refuse_unsigned(
    plan: Plan | ReportPlan,
    records: Sequence[Path],
    key: str | None,
    force: bool,
    files: Sequence[str] = (),
) -> None:
    """Refuse, if a key is given, what could not be signed afterwards."""
    if key is None:
        return
    from discreet.show import signing

    if not records:
        raise InvalidParameter("--sign needs files to sign: name them with -o")
    signing.refuse_unsigned(
        plan, records, map(Path, files), key=key, force=force, kept=plan.study.kept
    )


def signed(
    release: Answer | Report, files: Sequence[Path], key: str | None, force: bool
) -> list[Path]:
    """The signatures of the files of a release; none without a key."""
    if key is None:
        return []
    from discreet.show import signing

    return signing.sign(release, files, key=key, force=force)
