"""Algorithm 1 on numbers in files of any length and on Spark frames: exact noise in bounded memory.

    add_noise("counts.parquet", "noisy.parquet", columns=["people"], keep=["block"], sensitivity=2,
    epsilon="0.5")

The numbers of all chosen columns are one long vector, each number gets its own draw, and
`sensitivity` is the most that one unit can move all of them together, in the L1 norm. Integers get
integer noise and are clamped to int64. Floats are rounded to a public step, which adds one step to
Δ for every number that one unit can move: `changes` numbers, or all, if the file says how many
there are. In a table with both, integers get the larger Δ as well, since one unit may move both. A
missing number counts as 0. Kept columns are copied, so they must be public, and so must the number
of rows and their order. Nothing else of the source reaches the target: no dictionaries, no
metadata, no sizes of row groups.

The file appears complete under its name or not at all. With `ledger` and `study` ε is spent first,
and the ledger stores the file's SHA-256 instead of its numbers: a release is made once, even if it
was interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from discreet.calibrate.grid import grid_of
from discreet.draw.vector import beyond_int64
from discreet.errors import InvalidParameter, without_context
from discreet.files.batches import is_whole, noisy_batches, noisy_schema
from discreet.files.recorded_file import released
from discreet.files.writer import Draft, Kept, kept_files
from discreet.parameters import exact_count, exact_epsilon, exact_sensitivity, quote
from discreet.records import software
from discreet.release.account import Account, Asking, asking_on

if TYPE_CHECKING:
    from discreet.files.columns import ColumnSource


@without_context
def add_noise(
    source: Any,
    target: str | os.PathLike[str],
    *,
    sensitivity: Any,
    epsilon: Any,
    columns: Sequence[str] = (),
    keep: Sequence[str] = (),
    changes: int | None = None,
    force: bool = False,
    advance: Callable[[int, int | None], None] = lambda _done, _all: None,
    **account: Unpack[Account],
) -> Any:
    """Write the noisy columns, followed by the kept columns, to a new file, and return its path.

    `source` is a text with one number a line, .csv, .tsv, .npy or .parquet, a list of Parquet
    files, or "-" for standard input. `target` is a new file in the format of its suffix, which
    replaces an existing file only with `force`, or "-" for standard output, which returns nothing.
    `columns` may be left out if there is only one; `keep` names public columns that are copied.
    `changes` is how many of the numbers one unit can move, which matters for floats; without it a
    text must hold integers. `advance` is called with the number of finished rows and with the
    number of all rows, if it is known. With `ledger` and `study` the call is charged before a row
    is read.

    The integers of a Spark DataFrame get their noise on its executors, `target` is a folder, and
    the result is the frame that is read from it, kept columns first (`files.spark`).
    """
    delta, cost = exact_sensitivity(sensitivity), exact_epsilon(epsilon)
    changes = None if changes is None else exact_count("changes", changes)
    columns, keep = _names("columns", columns), _names("keep", keep)
    if hasattr(source, "mapInArrow"):
        from discreet.files.spark import release_frame

        noise = Noise(columns=columns, keep=keep, sensitivity=delta, epsilon=cost)
        return release_frame(source, os.fspath(target), noise, noise.question(account))
    from discreet.files.columns import form_of, open_columns, standard_output, write_columns

    read = open_columns(source, columns, keep, floats=changes is not None)
    schema = noisy_schema(read.schema, read.columns, keep)
    noise = Noise(
        columns=read.columns,
        keep=keep,
        sensitivity=delta,
        epsilon=cost,
        changes=_changes(read, changes),
    )
    asking, to_output = noise.question(account), os.fspath(target) == "-"
    if asking is not None and (read.rows is None or to_output):
        raise InvalidParameter(
            "a charged call reads .npy or .parquet, whose types are known, and writes a file"
        )
    form = form_of(read.form if to_output else Path(target).suffix, len(schema))

    def write(file: Any) -> int:
        batches = read.batches() if asking is None else read.unguarded()
        return write_columns(file, form, schema, noise.on(read.stage(batches)), read, advance)

    def write_draft(draft: Draft) -> dict[str, Any]:
        return {**noise.record(), "rows": write(draft.file if asking is None else draft)}

    def write_output() -> None:
        with standard_output(form) as file:
            write(file)

    if to_output:
        return write_output()
    protected = Kept(files=tuple(map(str, read.files))) + kept_files(
        () if asking is None else asking.ledger.files
    )
    return Path(released(target, write_draft, asking, kept=protected, force=force)["file"])


def _changes(read: ColumnSource, changes: int | None) -> int | None:
    """How many numbers one unit can move, if there are floats, whose rounding adds to Δ; None for
    integers.
    """
    if all(is_whole(name, read.schema.field(name).type) for name in read.columns):
        return None
    if changes is None and read.rows is None:
        raise InvalidParameter(
            "changes must be given for floats on a stream: how many of them one unit can move"
        )
    return changes or max(1, (read.rows or 0) * len(read.columns))


def _names(parameter: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidParameter(
            f'{parameter} must be a list of names, such as ["people"], got {quote(names)}'
        )
    return tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The checked parameters of a call, and its noise."""

    columns: tuple[str, ...]
    keep: tuple[str, ...]
    sensitivity: Fraction
    epsilon: Fraction
    changes: int | None = None  # how many numbers one unit can move, if there are floats

    def __post_init__(self) -> None:
        if beyond_int64(self.scale):
            raise InvalidParameter(
                "sensitivity / epsilon must be below 2^50 for integers in a file"
            )

    @property
    def scale(self) -> Fraction:
        """The noise scale of integers; beside floats it covers their rounding as well."""
        if self.changes is None:
            return self.sensitivity / self.epsilon
        return (
            grid_of(False, self.sensitivity, self.epsilon, self.changes).sensitivity / self.epsilon
        )

    def on(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches with noise."""
        from discreet.release.laplace_mechanism import laplace_mechanism

        terms: Any = {
            "sensitivity": self.sensitivity,
            "epsilon": self.epsilon,
            "changes": self.changes,
        }
        floats = partial(laplace_mechanism, **terms)
        return noisy_batches(
            batches, columns=self.columns, keep=self.keep, scale=self.scale, noisy_floats=floats
        )

    def question(self, account: Account) -> Asking | None:
        """The question to the ledger, if the call is charged."""
        parameters: dict[str, Any] = {
            "columns": self.columns,
            "keys": self.keep,
            "sensitivity": self.sensitivity,
        }
        if self.changes is not None:
            parameters["changes"] = self.changes
        return asking_on(account, "add_noise", parameters, self.epsilon)

    def record(self) -> dict[str, Any]:
        """Everything a reader of the file needs to judge its numbers."""
        return {
            "discreet": 1,
            "software": software(),
            "epsilon": str(self.epsilon),
            "delta": "0",
            "sensitivity": str(self.sensitivity),
            "scale": str(self.scale),
            "columns": self.columns,
            "keys": self.keep,
            **({} if self.changes is None else {"changes": self.changes}),
        }
