"""The commands. Heavy modules are imported when a command runs, so that `--help` is instant.

Options are declared once, as types (`cli.options`). A command reads its parameters, calls the
function that does the work and shows its result. It does not catch errors: `discreet.__main__`
turns them into one sentence and an exit code.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options as option
from discreet.cli import proof
from discreet.cli.init.command import init
from discreet.cli.ledger import app as ledger_app
from discreet.cli.report import app as report_app
from discreet.errors import InvalidParameter, QueryRefused, printable

if TYPE_CHECKING:
    from discreet.release.plan import Plan
    from discreet.release.study import Study

EXIT_CODES = (
    "Exit codes: 0 success, 1 unexpected error, 2 refused, 3 not enough ε left, 4 ledger damaged or"
    " missing, 5 engine, disk or network failed, 130 interrupted."
)

app = typer.Typer(
    name="discreet",
    help="Publish statistics about people without revealing any one of them.",
    epilog=EXIT_CODES,
    **option.TYPER,
)
app.add_typer(report_app, name="report")
app.add_typer(ledger_app, name="ledger")
app.add_typer(proof.keys, name="keys")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"discreet {installed('discreet')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(
    folder: Annotated[
        str, typer.Argument(help="Folder to create; an earlier demo there is replaced.")
    ] = "demo",
) -> None:
    """Run a demonstration on 200,000 invented people.

    It plans, releases, draws, attacks and shows the ledger.
    """
    from discreet.cli.demo import run

    run(folder)


app.command()(init)


@app.command()
def check(study: option.StudyFile, as_json: option.AsJson = False) -> None:
    """Check how study.toml fits the data. The output is for the custodian alone: it is not private.

    It counts unreadable cells, unknown keys and values out of bounds, and proposes lines for
    study.toml.
    """
    from discreet.cli.check.command import run

    run(study, as_json=as_json)


@app.command()
def discover(
    study: option.StudyFile,
    columns: Annotated[
        list[str],
        typer.Argument(metavar="COLUMN...", help="All columns the study will ever discover."),
    ],
    epsilon: Annotated[str, typer.Option(help="ε to spend on the keys, such as 0.1 or 1/3.")] = ...,  # type: ignore[assignment]
    delta: Annotated[str | None, typer.Option(help="δ, if study.toml declares none.")] = None,
    counts: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="Also release row counts, for this ε.")
    ] = None,
    only_plan: Annotated[
        bool, typer.Option("--plan", help="Show the cost and the probabilities only; free.")
    ] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the keys to .csv.")
    ] = None,
    force: option.Force = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation before ε is spent.")
    ] = False,
    ledger: option.LedgerPlace = None,
    anchor: option.Anchor = None,
    as_json: option.AsJson = False,
) -> None:
    """Find the keys of columns that have no public list.

    It spends ε and δ, once per study; repeating it is free.
    """
    from discreet.cli.discover import run

    run(
        study,
        columns,
        epsilon=epsilon,
        delta=delta,
        counts=counts,
        output=output,
        force=force,
        only_plan=only_plan,
        asks=sys.stdin.isatty() and not (yes or as_json),
        as_json=as_json,
        ledger=ledger,
        anchor=anchor,
    )


@app.command()
def profile(
    study: option.StudyFile,
    epsilon: Annotated[
        str, typer.Option(help="ε to spend, such as 0.1; all columns share it.")
    ] = ...,  # type: ignore[assignment]
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="Numbers or the unit; default: all without bounds, and the unit."
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the proposed bounds into study.toml.")
    ] = False,
    analyst: option.Analyst = None,
    ledger: option.LedgerPlace = None,
    anchor: option.Anchor = None,
    as_json: option.AsJson = False,
) -> None:
    """Propose bounds for columns of numbers.

    It spends ε, and also counts missing, zero and negative values.
    """
    from discreet.cli.profile import run

    terms = {"columns": None if columns is None else columns.split(","), "epsilon": epsilon}
    run(study, terms, write=write, analyst=analyst, ledger=ledger, anchor=anchor, as_json=as_json)


@app.command()
def plan(
    study: option.StudyFile,
    sql: option.Question,
    epsilon: option.Epsilon = None,
    within: option.Within = None,
    confidence: option.Confidence = "0.95",
    simultaneous: option.Simultaneous = False,
    size: option.Size = None,
    weight: option.Weight = None,
    ledger: option.LedgerPlace = None,
    anchor: option.Anchor = None,
    as_json: option.AsJson = False,
) -> None:
    """Show the cost of a question and the error of its answer. Nothing is spent."""
    from discreet.cli import terminal
    from discreet.cli.progress import open_study, spending_nothing
    from discreet.ledger.place import without_secrets

    terms = {
        "epsilon": epsilon,
        "within": within,
        "size": size,
        "weight": weight,
        "simultaneous": simultaneous,
    }
    with spending_nothing():
        planned = _plan(open_study(study, ledger, anchor), sql, {**terms, "confidence": confidence})
        if as_json:
            terminal.say_json(terminal.plan_as_json(planned))
            return
        if within:
            named = (text.rpartition("=") for text in within)
            errors = ", ".join(
                f"± {error} for {name}" if name else f"± {error}" for name, _, error in named
            )
            terminal.say(
                f"ε {float(planned.cost):.4g} gives {errors} at"
                f" {float(planned.confidence) * 100:g} %."
            )
        terminal.show_plan(planned)
        places = {"ledger": without_secrets(ledger), "anchor": anchor}
        others = {"confidence": confidence} if confidence != "0.95" else {}
        terminal.show_next(
            planned, planned.cost, ["release", study, sql], {**terms, **places, **others}
        )


@app.command()
def release(
    study: option.StudyFile,
    sql: option.Question,
    epsilon: option.Epsilon = None,
    within: option.Within = None,
    confidence: option.Confidence = "0.95",
    simultaneous: option.Simultaneous = False,
    size: option.Size = None,
    weight: option.Weight = None,
    output: option.Outputs = None,
    title: option.Title = None,
    caption: option.Caption = None,
    decimals: option.Decimals = None,
    bom: option.Bom = False,
    force: option.Force = False,
    request_id: option.RequestId = None,
    analyst: option.Analyst = None,
    sign: option.Sign = None,
    time_limit: option.TimeLimit = None,
    ledger: option.LedgerPlace = None,
    anchor: option.Anchor = None,
    as_json: option.AsJson = False,
) -> None:
    """Spend ε and release a table with confidence intervals.

    The same question again gives the same answer, free.
    """
    from discreet.cli import outputs, terminal
    from discreet.cli.progress import open_study, released, spending_nothing, watched

    terms = {
        "epsilon": epsilon,
        "within": within,
        "size": size,
        "weight": weight,
        "simultaneous": simultaneous,
    }
    with spending_nothing():
        outputs.refuse_unusable(output or (), bom=bom)
        opened = open_study(study, ledger, anchor, time_limit)
        outputs.refuse_taken(output or (), force=force, kept=opened.kept)
        planned = _plan(opened, sql, {**terms, "confidence": confidence})
        outputs.refuse_long(output or (), planned.cells)
        digits = outputs.decimals_of(decimals, [name for name, _ in planned.query.outputs])
        is_repeat = request_id is not None and opened.budget.entry(request_id) is not None
        is_repeat = is_repeat or not planned.cost  # it is public, or a table of a report
        records = [Path(file).with_suffix(".release.json") for file in output or ()]
        proof.refuse_unsigned(planned, records, sign, force, output or ())
    answer = released(opened, planned.release, request_id=request_id, analyst=analyst)
    look = {"title": title, "caption": caption, "decimals": digits}
    saved = watched(
        lambda: outputs.save(answer, output or (), bom=bom, force=force, **look), "saving"
    )
    saved += proof.signed(answer, saved, sign, force)
    if as_json:
        terminal.say_json(
            {**terminal.answer_as_json(answer), "saved": [str(file) for file in saved]}
        )
        return
    receipt = outputs.receipt(answer, opened, known=is_repeat, saved=saved)
    terminal.show_answer(answer, receipt, digits)


@app.command()
def noise(
    source: Annotated[
        str, typer.Argument(metavar="[IN]", help="Text, .csv, .npy, .parquet or - (stdin).")
    ] = "-",
    target: Annotated[
        str, typer.Argument(metavar="[OUT]", help="File to write, in the format of its suffix.")
    ] = "-",
    sensitivity: Annotated[
        str, typer.Option(help="Most that one unit can change the numbers, summed.")
    ] = ...,  # type: ignore[assignment]
    epsilon: Annotated[str, typer.Option(help="ε of the noise, such as 0.1 or 1/3.")] = ...,  # type: ignore[assignment]
    column: Annotated[
        list[str] | None, typer.Option(help="A column of numbers to add noise to; repeatable.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A public column to copy unchanged; repeatable.")
    ] = None,
    changes: Annotated[
        int | None, typer.Option(help="How many numbers one unit can change; for floats.")
    ] = None,
    force: option.Force = False,
) -> None:
    """Add exact Laplace noise to your own numbers (Algorithm 1).

    Input may have any length. Integers stay integers. Columns that are not named are left out. No
    ledger is used: each call on the same data spends ε again, and you must keep count. Floats in a
    text file need --changes.
    """
    from discreet.cli.progress import progress_bar
    from discreet.files.add_noise import add_noise

    with progress_bar("adding noise") as advance:
        add_noise(
            source,
            target,
            sensitivity=sensitivity,
            epsilon=epsilon,
            columns=column or (),
            keep=keep or (),
            changes=changes,
            force=force,
            advance=advance,
        )


@app.command()
def figure(
    name: Annotated[
        str | None, typer.Argument(help="Name of the figure; without it, the names are listed.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".svg .png .pdf .html .json; with --all, a folder.",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="All figures of the course, light and dark: SVG, PNG, PDF."),
    ] = False,
    epsilon: Annotated[
        str | None, typer.Option(help="For slide, loss, error, largest, response, together.")
    ] = None,
    sensitivity: Annotated[str | None, typer.Option(help="For slide and loss.")] = None,
    scale: Annotated[
        list[str] | None, typer.Option(help="Noise scale, for densities (repeatable) and loss.")
    ] = None,
    law: Annotated[
        str | None, typer.Option(help="For densities, slide and loss: continuous or discrete.")
    ] = None,
    n: Annotated[int | None, typer.Option(help="Number of people, for error.")] = None,
    bounds: Annotated[str | None, typer.Option(metavar="LOWER:UPPER", help="For error.")] = None,
    confidence: Annotated[str | None, typer.Option(help="For error and largest.")] = None,
    largest: Annotated[
        str | None, typer.Option(help="End of the axis, for response and attacker.")
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="A ledger or study.toml, for budget.")] = None,
    anchor: option.Anchor = None,
    study: Annotated[str | None, typer.Option(help="A study of that ledger, for budget.")] = None,
    width: Annotated[int | None, typer.Option(help="Width in pixels, from 200 to 5,000.")] = None,
    force: option.Force = False,
) -> None:
    """Draw a figure about noise, privacy or accuracy. The default file is NAME.svg."""
    from discreet.cli import outputs, terminal

    if bounds is not None and bounds.count(":") != 1:
        raise InvalidParameter(
            f"--bounds must be LOWER:UPPER, such as 0:120, got {printable(bounds)!r}"
        )
    ends = None if bounds is None else tuple(bounds.split(":"))
    of_law = {"epsilon": epsilon, "sensitivity": sensitivity, "scales": scale, "law": law}
    of_error = {"n": n, "bounds": ends, "confidence": confidence, "largest": largest}
    options = {**of_law, **of_error, "study": study, "width": width, "ledger": ledger}
    if name is None and every:
        terminal.say(*outputs.draw_all(output, options, force=force))
    elif name is None:
        if any(value is not None for value in (output, *options.values())):
            raise InvalidParameter(
                "figure needs a name before its options; without options it lists the names"
            )
        terminal.say(*outputs.figure_names())
    elif every:
        raise InvalidParameter(
            f"figure takes a name or --all, got both: {printable(name)} and --all"
        )
    else:
        terminal.say(str(outputs.draw(name, output, options, anchor, force=force)))


@app.command()
def explore(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
    ] = "explore.html",
    force: option.Force = False,
) -> None:
    """Write an interactive page about the Laplace mechanism.

    It has sliders for its parameters and needs no network.
    """
    from discreet.cli import terminal
    from discreet.show import explore as page

    if Path(output).suffix != ".html":
        raise InvalidParameter(f"-o must end in .html, got {printable(Path(output).name)}")
    terminal.say(str(page.save(output, force=force)))


@app.command()
def sheet(
    number: Annotated[
        int, typer.Argument(metavar="NUMBER", help="The public number of the sheet, such as 1.")
    ],
    exercise: Annotated[
        list[str] | None,
        typer.Option(help="An exercise, such as 1.5 or H; default: all of them. Repeatable."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write into.")
    ] = ".",
    force: option.Force = False,
) -> None:
    """Write an exercise sheet of the course in Markdown, without solutions, and its key to a second
    file.

    The number of the sheet decides the numbers in its exercises: sheets less than 20 apart differ
    in every exercise. Anyone who has discreet can make the key to any sheet.
    """
    from discreet.cli import terminal
    from discreet.course.sheet import save

    terminal.say(*map(str, save(number, output, exercises=exercise or (), force=force)))


@app.command()
def verify(
    file: Annotated[str | None, typer.Argument(help="A certificate to compute again.")] = None,
    as_json: option.AsJson = False,
) -> None:
    """Compute releases of random data a second time, and compare proved and measured privacy losses
    with their ε.

    With a file, compute that certificate again. Exit code 1 if a release is not the exact numbers
    plus its noise, if a loss exceeds its ε, or if the measurement does not catch a mechanism that
    is broken on purpose.
    """
    from discreet.verify import check, report

    if file is None:
        passed = report.run(typer.echo, as_json=as_json)
    else:
        certificate = check(file)
        passed = certificate.holds
        line = f"{'✓' if passed else '✗'} {report.certificate_line(Path(file).name, certificate)}"
        typer.echo(json.dumps(certificate.to_dict()) if as_json else printable(line))
    if not passed:
        raise typer.Exit(1)


app.command()(proof.card)
app.command("verify-release")(proof.verify_release)


@app.command()
def attack(
    epsilon: Annotated[
        str, typer.Option(help="ε of everything that an attacker sees, from 0.01 to 3.")
    ] = "1",
    as_json: option.AsJson = False,
) -> None:
    """Compare known attacks on naive code and on discreet.

    Success rates are compared with the highest rate that any attack can have at this ε, under each
    neighbour relation. Exit code 1 if an attack on discreet exceeds it.
    """
    from discreet.verify.attacks import run

    if not run(typer.echo, epsilon=epsilon, as_json=as_json):
        raise typer.Exit(1)


def _plan(study: Study, sql: str, terms: dict[str, Any]) -> Plan:
    from discreet.cli.outputs import weights_of, within_of
    from discreet.cli.progress import watched

    terms["weights"], terms["within"] = (
        weights_of(terms.pop("weight") or ()),
        within_of(terms["within"]),
    )
    try:
        return watched(lambda: study.sql(sql, **terms), "planning")
    except (InvalidParameter, QueryRefused) as error:
        command = rf"discreet discover {study.name}.toml \1 --epsilon 0.1"
        words = re.sub(r'study\.discover\("(.*)", epsilon=…\)', command, str(error))
        raise type(error)(words.replace("size=", "--size")) from None


if find_spec("discreet.serve") is not None:  # an optional part
    app.add_typer(import_module("discreet.serve.command").app, name="serve")
