"""Writes docs/cli.md, the reference of all commands, and src/discreet/help.txt, what --help says,
from the commands.

Run it as: python tools/cli_reference.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from discreet.cli.app import app

INTRODUCTION = """# The command line

Generated from the commands by `python tools/cli_reference.py`. The main commands:

```sh
discreet init visits.parquet                 # asks whom to protect; writes study.toml; reads no value
discreet check study.toml                    # checks study.toml against the data; not private
discreet plan study.toml "SELECT county, count(*) FROM visits GROUP BY county" --epsilon 0.2      # free
discreet release study.toml "SELECT county, count(*) FROM visits GROUP BY county" --epsilon 0.2 -o counties.csv
discreet discover study.toml zip --epsilon 0.5  # keys that have no public list
discreet report plan report.toml             # several tables, measured together; `report release` publishes them
discreet ledger show study.toml              # what was spent on which question
seq 1 1000000 | discreet noise --sensitivity 1 --epsilon 0.1 > noisy.txt      # your own numbers
```

`--json` prints JSON instead of a table. Progress is shown on standard error, and only on a terminal. An error is one
sentence on standard error, `discreet: …`, which never quotes data and says what was spent.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | an unexpected error, or the output was closed; for `verify` and `attack`, a check failed |
| 2 | refused: a wrong parameter, question, file or option; nothing was done |
| 3 | not enough ε is left; nothing was spent |
| 4 | the ledger is damaged, rolled back or missing |
| 5 | the engine, the disk or the network failed; what was spent stays spent, and asking the same again is free |
| 130 | interrupted; the message says whether anything was spent |
"""


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its whole name."""
    for key, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {key}")
    if not hasattr(command, "commands"):
        yield name, command


def section(name: str, command: Any) -> str:
    """What a command does and takes, in Markdown."""
    arguments = [part for part in command.params if part.param_type_name == "argument"]
    options = [
        part
        for part in command.params
        if part.param_type_name == "option" and "--help" not in part.opts
    ]
    usage = " ".join([name, *map(_shown_argument, arguments), *(["[OPTIONS]"] if options else [])])
    lines = [f"## {name}", "", f"    {usage}", "", " ".join((command.help or "").split()), ""]
    if arguments or options:
        lines += ["| | |", "|---|---|"]
        lines += [f"| `{_shown_argument(part)}` | {_cell(part)} |" for part in arguments]
        lines += [f"| `{_shown_option(part)}` | {_cell(part)} |" for part in options]
        lines.append("")
    return "\n".join(lines)


def _shown_argument(part: Any) -> str:
    name = (part.metavar or part.name.upper()).strip("[]{}")
    name += "…" if part.nargs == -1 else ""
    return name if part.required else f"[{name}]"


def _shown_option(part: Any) -> str:
    flag = ", ".join(sorted(part.opts, key=len))
    return flag if part.is_flag else f"{flag} {part.metavar or part.name.upper()}"


def _cell(part: Any) -> str:
    text = (part.help or "").replace("|", "\\|")
    notes = []
    if part.required and part.param_type_name == "option":
        notes.append("needed")
    if (
        part.default not in (None, False, (), [])
        and not part.required
        and not callable(part.default)
    ):
        notes.append(f"default {part.default}")
    return text + (f" *({', '.join(notes)})*" if notes else "")


def reference() -> str:
    """The whole page."""
    parts = [section(name, command) for name, command in commands(get_command(app), "discreet")]
    return "\n".join([INTRODUCTION, *parts]).rstrip() + "\n"


def helps(command: Any, name: str) -> Iterator[str]:
    """What --help says of a command and of those below it: its name after a form feed, then the
    text.
    """
    from click import Context

    yield f"\f{name}\n{command.get_help(Context(command, info_name=name, terminal_width=80))}\n"
    for key, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, f"{name} {key}")


def help_texts() -> str:
    """All of them, so that --help need not load the commands."""
    return "".join(helps(get_command(app), "discreet"))


if __name__ == "__main__":
    HERE = Path(__file__).resolve().parents[1] / "docs"
    (HERE / "cli.md").write_text(reference(), encoding="utf-8")
    (HERE.parent / "src" / "discreet" / "help.txt").write_text(help_texts(), encoding="utf-8")
