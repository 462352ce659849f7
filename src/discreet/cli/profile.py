"""`discreet profile`: private bounds for study.toml, which the custodian accepts with --write.

Only the line of a column is changed: comments, order and spelling stay. The new text is parsed and
compared with what it should declare before it replaces the file; otherwise the file is left
unchanged.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.ask.policy import LARGEST_FILE, Policy, toml
from discreet.cli import outputs, terminal
from discreet.cli.progress import open_study, released, spending_nothing, watched
from discreet.errors import InvalidParameter
from discreet.files.writer import free
from discreet.files.writer import write as write_file
from discreet.ledger.place import without_secrets
from discreet.outside import Unreadable, read_toml
from discreet.release.profiles.plan import profile_plan
from discreet.release.profiles.profile import Profile

Bounds = tuple[Fraction, Fraction]
# bounds that suit every column of numbers, to try whether the file can be changed
_ONE = (Fraction(0), Fraction(1))


def run(
    study: str,
    terms: Mapping[str, Any],
    *,
    write: bool,
    analyst: str | None,
    ledger: str | None,
    anchor: str | None,
    as_json: bool,
) -> None:
    file = Path(study)
    with spending_nothing():
        opened = open_study(study, ledger, anchor)
        plan = watched(lambda: profile_plan(opened, **terms), "planning")
        if write:  # refuse before ε is spent
            with_bounds(_text(file), {column.name: _ONE for column in plan.columns})
            free(file, force=True)
    profile: Profile = released(opened, plan.release, request_id=None, analyst=analyst)
    written = write_bounds(file, profile.proposals) if write else []
    if as_json:
        terminal.say_json({**profile.to_dict(), "entry": profile.entry, "written": written})
        return
    headings, *rows = profile.table
    terminal.say(outputs.receipt(profile, opened, known=False))
    terminal.show_table(headings, rows)
    if profile.unit is not None and profile.unit.max_rows not in (None, opened.policy.max_rows):
        terminal.say(
            "max_rows is part of the promise that the ledger records, so the proposal is for a new"
            " study.",
            style="dim",
        )
    if write:
        names = ", ".join(written)
        terminal.say(
            f"Wrote the bounds of {names} to {file.name}."
            if written
            else f"{file.name} was not changed."
        )
    elif profile.proposals:
        names = ",".join([*profile.columns, *([] if profile.unit is None else [profile.unit.name])])
        options = {"columns": names, "epsilon": terms["epsilon"], "write": True, "analyst": analyst}
        location = {"ledger": without_secrets(ledger), "anchor": anchor}
        terminal.say(f"{file.name} was not changed. To accept the bounds, free, run:", style="dim")
        terminal.say_command(["profile", study], {**options, **location})


def write_bounds(file: Path, proposals: Mapping[str, Bounds]) -> list[str]:
    """Write all bounds into a policy, or none; the names of the changed columns."""
    text = _text(file)
    changed = with_bounds(text, proposals)
    try:
        Policy(**_read(changed), folder=file.parent)
    except InvalidParameter as error:
        raise InvalidParameter(
            f"{error}. {file.name} was not changed; without --write the profile is shown again,"
            " free"
        ) from None
    if changed != text:
        mode = stat.S_IMODE(os.stat(file).st_mode)
        write_file(file, changed, force=True)
        os.chmod(file, mode)
    return list(proposals)


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise InvalidParameter(f"{file.name} must be at most 10 MB")
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"{file.name} must be a readable file of UTF-8 text") from None


def with_bounds(text: str, proposals: Mapping[str, Bounds]) -> str:
    """The text of a policy with new bounds and nothing else changed."""
    for name, bounds in proposals.items():
        wanted = _read(text)
        wanted.setdefault("columns", {}).setdefault(name, {})["bounds"] = _plain(bounds)
        candidates = (
            candidate
            for candidate in _changed(text, name, toml(bounds))
            if _read(candidate) == wanted
        )
        changed = next(candidates, None)
        if changed is None:
            raise InvalidParameter(
                f"the line of {name} cannot be changed automatically; add bounds = {toml(bounds)}"
                " to it by hand"
            )
        text = changed
    return text


def _read(text: str) -> dict[str, Any]:
    try:
        return read_toml(text.removeprefix("\ufeff"))
    except Unreadable:
        return {}


def _plain(bounds: Bounds) -> Any:
    return read_toml(f"x = {toml(bounds)}")["x"]


def _changed(text: str, name: str, bounds: str) -> Iterator[str]:
    """Texts with the bounds in place of old ones, in a column's braces, or below its heading."""
    key = "|".join(re.escape(spelled) for spelled in (name, toml(name), f"'{name}'"))
    old = re.compile(r"\bbounds\s*=\s*\[[^\]]*\]")
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if re.match(rf"\s*(?:columns\s*\.\s*)?(?:{key})\s*=", line):
            edits = [
                (match.start(), match.end(), f"bounds = {bounds}") for match in old.finditer(line)
            ]
            for brace in (match.start() for match in re.finditer("}", line)):
                inside = line[:brace].rstrip()
                comma = "" if inside.endswith(("{", ",")) else ","
                edits.append((len(inside), brace, f"{comma} bounds = {bounds} "))
            for start, end, new in edits:
                yield "".join(
                    [*lines[:number], line[:start] + new + line[end:], *lines[number + 1 :]]
                )
        elif re.match(rf"\s*\[\s*columns\s*\.\s*(?:{key})\s*\]", line):
            ending = line[len(line.rstrip("\r\n")) :] or "\n"
            first = line if line.endswith("\n") else line + ending
            yield "".join(
                [*lines[:number], first, f"bounds = {bounds}{ending}", *lines[number + 1 :]]
            )
            for below, other in enumerate(lines[number + 1 :], number + 1):
                if old.search(other):
                    yield "".join(
                        [
                            *lines[:below],
                            old.sub(f"bounds = {bounds}", other, count=1),
                            *lines[below + 1 :],
                        ]
                    )
