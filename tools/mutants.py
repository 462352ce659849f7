"""Break discreet on purpose, in small ways, and see that the tests notice: `make mutants`.

Every entry of mutants.toml is one mistake: a text that stands exactly once in a file of
src/discreet, what to write in its place, and the tests that must fail then, or `discreet verify`,
which must fail by itself. Each is tried on a copy of source and tests in a temporary folder, on two
copies at once; the tree itself is never touched. First the tests run on a copy without any mistake,
and must pass. The table of what was killed by which test goes to docs/mutants.md.

A mutant that survives is a hole in the tests: write the missing test. A mutant whose text is not
found exactly once is an error: the source has moved on, and so must the entry.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_name("mutants.toml")
REPORT = ROOT / "docs" / "mutants.md"
_COPIED = ("src", "tests", "tools", "docs", "bench", "pyproject.toml", "README.md")
_PATIENCE = 600
"""Seconds for the tests of one mutant: one that hangs is not killed."""

VERIFY = ("discreet verify",)
"""In the place of tests: users must notice the mistake, with the command that they have."""

KINDS = (
    "Δ−1",
    "ε×1.05",
    "scale rounded down",
    "sign bias 51/49",
    "negative zero kept",
    "off by one",
    "clamp after sum",
    "bounds swapped",
    "refund on error",
    "commit after release",
    "deferred transaction",
    "float ledger",
    "NULL for empty",
    "key from data",
    "what is added",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One mistake."""

    kind: str
    name: str
    file: str
    """Below src/discreet."""
    old: str
    new: str
    tests: tuple[str, ...]
    """The files, or tests in them, that must notice; the quickest first."""

    def applied(self, source: str) -> str:
        """The source with the mistake in it; `LookupError` if the text is not there exactly once."""
        found = source.count(self.old)
        if found != 1:
            raise LookupError(
                f"{self.name}: {self.file} must have the old text once, has it {found} times"
            )
        return source.replace(self.old, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    killer: str | None
    """The first test that failed; None if it survives."""
    said: str
    """The end of what pytest printed."""


def mutants(table: Path = TABLE) -> list[Mutant]:
    """All entries of the table."""
    entries = tomllib.loads(table.read_text("utf-8"))["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def copied(root: Path, folder: Path) -> Path:
    """A copy of what the tests need, with its bytecode: what is changed later is newer, and
    compiled then.
    """
    for name in _COPIED:
        source, target = root / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", "node_modules"))
        elif source.exists():
            shutil.copy2(source, target)
    return folder


def tested(folder: Path, tests: tuple[str, ...]) -> tuple[str | None, str]:
    """The first test that fails in a copy, or None; and the end of what pytest printed."""
    if tests == VERIFY:
        return verified(folder)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(  # noqa: S603 - our own interpreter on our own tests
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"the tests took more than {_PATIENCE} seconds"
    said = "\n".join(ended.stdout.splitlines()[-15:] + ended.stderr.splitlines()[-5:])
    if ended.returncode == 0:
        return None, said
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?::\w+)", ended.stdout, re.MULTILINE)
    # a mistake that cannot even be imported is no mistake of ours
    if ended.returncode != 1 or failed is None:
        raise RuntimeError(f"pytest did not get as far as a test:\n{said}")
    return failed[1], said


def verified(folder: Path) -> tuple[str | None, str]:
    """The first line that `discreet verify` marks in a copy, by its title, or None; and the last
    lines.
    """
    command = [sys.executable, "-m", "discreet", "verify"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONUNBUFFERED": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        try:
            for line in running.stdout or ():
                lines.append(line.rstrip())
                if line.startswith("✗"):
                    return f"{VERIFY[0]}::{re.split(' {2,}', line[2:])[0].strip()}", lines[-1]
            running.wait()
        finally:
            running.kill()
    said = "\n".join(lines[-15:])
    if running.returncode:
        raise RuntimeError(f"discreet verify broke off:\n{said}")
    return None, said


def tried(folder: Path, mutant: Mutant) -> Outcome:
    """What the tests say of the mutant, in a copy that is as it was afterwards."""
    file = folder / "src" / "discreet" / mutant.file
    source = file.read_text("utf-8")
    file.write_text(mutant.applied(source), "utf-8")
    try:
        killer, said = tested(folder, mutant.tests)
    finally:
        file.write_text(source, "utf-8")
    return Outcome(mutant=mutant, killer=killer, said=said)


def all_tried(chosen: list[Mutant], *, copies: int = 2) -> list[Outcome]:
    """The outcomes, in the order of the mutants, after the tests have passed without a mistake."""
    named = list(
        dict.fromkeys(test for mutant in chosen for test in mutant.tests if mutant.tests != VERIFY)
    )
    alone = [VERIFY] if any(mutant.tests == VERIFY for mutant in chosen) else []
    with (
        tempfile.TemporaryDirectory(prefix="discreet-mutants-") as place,
        ThreadPoolExecutor(copies) as pool,
    ):
        folders: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(copies):
            folders.put(copied(ROOT, Path(place, str(number))))

        def plain(tests: tuple[str, ...]) -> None:
            with _taken(folders) as folder:
                killer, said = tested(folder, tests)
            if killer is not None:
                raise RuntimeError(f"the tests fail without any mistake:\n{said}")

        def mutated(mutant: Mutant) -> Outcome:
            began = time.monotonic()
            with _taken(folders) as folder:
                outcome = tried(folder, mutant)
            fate = "killed  " if outcome.killer else "SURVIVES"
            print(
                f"{fate} {time.monotonic() - began:5.1f} s  {mutant.kind}: {mutant.name}",
                flush=True,
            )
            return outcome

        shares = [tuple(named[start::copies]) for start in range(copies) if named[start::copies]]
        list(pool.map(plain, [*shares, *alone]))
        print(f"{len(named)} named tests pass without a mistake", flush=True)
        return list(pool.map(mutated, chosen))


@contextmanager
def _taken(folders: queue.SimpleQueue[Path]) -> Iterator[Path]:
    """A copy that nobody else uses meanwhile."""
    folder = folders.get()
    try:
        yield folder
    finally:
        folders.put(folder)


def report(outcomes: list[Outcome]) -> str:
    """The table for docs/mutants.md."""
    lines = [
        "# Mistakes that the tests notice",
        "",
        (
            "A test that cannot fail is a defect. `make mutants` makes each of these mistakes in a"
            " copy of the source, runs the tests named in"
        ),
        (
            "[tools/mutants.toml](../tools/mutants.toml), and writes down which one failed first."
            " All must be noticed."
        ),
        (
            "Where `discreet verify` stands in the place of a test, it is that command that must"
            " fail, by the line named."
        ),
        "",
        "| kind | mistake | where | noticed by |",
        "|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(row, outcomes)]) + "\n"


def row(outcome: Outcome) -> str:
    """One line of the table."""
    mutant = outcome.mutant
    test, _, name = (outcome.killer or "**nobody**").partition("::")
    if (test,) == VERIFY:
        return f"| {mutant.kind} | {mutant.name} | `{mutant.file}` | `{test}` · {name} |"
    noticed = f"`{test}` · {name.removeprefix('test_').replace('_', ' ')}" if name else test
    return f"| {mutant.kind} | {mutant.name} | `{mutant.file}` | {noticed} |"


def renewed(page: str, outcomes: list[Outcome]) -> str:
    """The page with new lines for these mutants; those that it has no lines for come last."""
    rows = {f"| {one.mutant.kind} | {one.mutant.name} |": row(one) for one in outcomes}
    old = page.splitlines()
    lines = [
        next((rows.pop(begin) for begin in list(rows) if line.startswith(begin)), line)
        for line in old
    ]
    return "\n".join([*lines, *rows.values()]) + "\n"


def main(wanted: list[str]) -> int:
    """Try all mutants, or those whose kind, name or file has a wanted word, and write down what
    became of them.
    """
    chosen = [
        one
        for one in mutants()
        if not wanted or any(word in f"{one.kind} {one.name} {one.file}" for word in wanted)
    ]
    for mutant in chosen:
        mutant.applied((ROOT / "src" / "discreet" / mutant.file).read_text("utf-8"))
    outcomes = all_tried(chosen)
    survivors = [one for one in outcomes if one.killer is None]
    for one in survivors:
        print(f"\n{one.mutant.kind}: {one.mutant.name} ({one.mutant.file}) survives\n{one.said}")
    print(f"{len(outcomes) - len(survivors)} of {len(outcomes)} mutants are killed")
    page = report(outcomes) if not wanted else renewed(REPORT.read_text("utf-8"), outcomes)
    REPORT.write_text(page, "utf-8")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
