"""An answer with any number of cells, written to a Parquet file part by part:
`plan.release(to="cells.parquet")`.

    spend → fetch → for each part of the cells: draw, estimate, write → hash → record → rename the
    file

The file has one row for each combination of declared keys; a column holds keys, or a released
number with `…_low` and `…_high` beside it. Every cell has its own draw, as in `plan.release()`. The
ledger stores the record and the file's SHA-256, not the numbers; the same question returns the
existing file or is refused (`files.recorded_file`).

Not supported: quantiles and extremes, and HAVING, ORDER BY, LIMIT and arithmetic with released
numbers, which the reader of the file can do at no cost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from discreet import views
from discreet.ask.query import Named
from discreet.draw.noted import in_order
from discreet.engines.base import Exact
from discreet.errors import InvalidParameter, QueryRefused, one_line
from discreet.files.batches import ahead, even
from discreet.files.columns import write_parquet
from discreet.files.recorded_file import released
from discreet.files.writer import Draft, free, is_plain_file
from discreet.files.writer import write as write_file
from discreet.formats import left_shown, shown
from discreet.outside import read_fraction
from discreet.release.account import asking_of
from discreet.release.design import PART
from discreet.release.discovery import discovery_facts
from discreet.release.size import refuse_large_file
from discreet.release.statistics.counts import CountDesign
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.threads import in_turn

if TYPE_CHECKING:
    from discreet.release.plan import Plan

# parts in one row group of the file: larger groups need more memory, and take no less time
_PARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AnswerFile:
    """A table of released numbers in a Parquet file."""

    record: dict[str, Any]
    """Everything a reader needs to judge the numbers; `file`, `sha256` and `rows` describe the
    file.
    """
    remaining: Fraction
    """The study's remaining ε when this was released or asked again."""
    entry: str
    """The request under which the ledger records it."""
    plan: Plan
    """The plan that was released."""

    @property
    def path(self) -> Path:
        """The path of the Parquet file."""
        return Path(self.record["file"])

    @property
    def epsilon(self) -> Fraction:
        """The ε that was spent on it."""
        return read_fraction(self.record["epsilon"])

    def __len__(self) -> int:
        return int(self.record["rows"])

    def card(self) -> Any:
        """The privacy claim of this release, for publication."""
        return views.card(self)

    def sign(self, *, key: str | os.PathLike[str], force: bool = False) -> list[Any]:
        """Sign the file and its record as `<name>.signature.json` beside them, with a key of
        `discreet keys new`.
        """
        return views.signed(
            self, [self.path, self.path.with_suffix(".release.json")], key=key, force=force
        )

    def to_arrow(self) -> pa.Table:
        """The whole table in memory, as an Arrow table."""
        return parquet.read_table(self.path)

    def __repr__(self) -> str:
        confidence = float(read_fraction(self.record["confidence"])) * 100
        left = f"ε {shown(self.epsilon)} spent, {left_shown(self.remaining)} left"
        return (
            f"{len(self):,} rows in {one_line(self.path.name)} · intervals at {confidence:g} % ·"
            f" {left}"
        )


def release_to(
    plan: Plan, target: str | os.PathLike[str], entry: str, analyst: str | None
) -> AnswerFile:
    """The file with the answer of a plan, written now or before."""
    if Path(target).suffix != ".parquet":
        raise InvalidParameter(
            f"to must be a new file that ends in .parquet, got {Path(target).name!r}"
        )
    if obstacle := unstreamed(plan):
        raise QueryRefused(obstacle)
    refuse_large_file(plan)
    study = plan.study
    asking = asking_of(
        study,
        request_id=entry,
        query=plan.canonical,
        epsilon=plan.epsilon,
        analyst=analyst,
        asked=plan.query.sql,
    )
    study.budget.refuse_in_vain(plan.epsilon, analyst)
    record_path = Path(target).with_suffix(".release.json")
    if study.budget.known() is None:  # a target that is refused creates no ledger
        for path in (target, record_path):
            free(path, kept=study.kept)
    asking.refuse()
    rest = {**plan.public_facts(), **discovery_facts(study.discovered, plan.query.groups)}
    if not asking.answered(os.path.abspath(target)):
        free(record_path, kept=study.kept)

    def write(draft: Draft) -> dict[str, Any]:
        tables = ahead(even(batches_of(plan, plan.fetched()), PART * _PARTS))
        first = next(tables)
        write_parquet(draft, first.schema, chain([first], tables), public=True)
        return {**rest, "rows": plan.cells}

    record = released(target, write, asking, kept=study.kept)
    remaining = study.ledger.remaining(study.name, analyst=analyst)
    answer = AnswerFile(record=record, remaining=remaining, entry=entry, plan=plan)
    # a repeat may be elsewhere
    if os.path.abspath(target) == record["file"] and not is_plain_file(record_path):
        document = {**record, "entry": entry, "card": answer.card().content}
        write_file(record_path, json.dumps(document, ensure_ascii=False, indent=1), kept=study.kept)
    return answer


def unstreamed(plan: Plan) -> str | None:
    """Why an answer cannot be written part by part; None if it can."""
    query = plan.query
    if not query.groups:
        return "an answer of one row needs no file: release it without to="
    plain = all(isinstance(output, Named) for _, output in query.outputs)
    if query.having or query.order or query.limit is not None or not plain:
        return (
            "HAVING, ORDER BY, LIMIT and arithmetic act on released numbers: leave them out with"
            " to=, and apply them to the file, at no cost"
        )
    if not all(
        isinstance(share.design, CountDesign | MomentDesign | JointDesign) for share in plan.shares
    ):
        return (
            "with to= an answer has counts, sums, means, variances and std; ask for other"
            " statistics without it"
        )
    return None


def batches_of(plan: Plan, fetched: Exact[Any]) -> Iterator[pa.RecordBatch]:
    """The rows of the answer, part by part, each with draws of its own; parts are computed on all
    cores.
    """
    keys = _keys(plan)

    def batch(start: int) -> pa.RecordBatch:
        stop = min(plan.cells, start + PART)
        numbers = plan.numbers(fetched, slice(start, stop))
        fields, arrays = [], []
        for name, output in plan.query.outputs:
            inner = output.name  # type: ignore[union-attr]
            if inner in keys:
                arrays.append(_key_array(*keys[inner], start, stop))
                fields.append(pa.field(name, arrays[-1].type))
                continue
            for suffix, column in zip(("", "_low", "_high"), numbers[inner], strict=True):
                arrays.append(_array(column))
                fields.append(pa.field(name + suffix, arrays[-1].type, nullable=False))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    batches: Iterator[pa.RecordBatch] = in_order(in_turn)(batch, range(0, plan.cells, PART))
    return batches


def _key_array(labels: pa.Array, stride: int, start: int, stop: int) -> pa.Array:
    """The labels of some rows; few labels are a dictionary, which is copied and written with every
    part.
    """
    # divisions of 32 bits take less than half the time of those of 64
    indices = (
        np.arange(start, stop, dtype=np.uint32 if max(stop, stride) < 2**32 else np.int64)
        // stride
        % len(labels)
    )
    if len(labels) <= PART:
        return pa.DictionaryArray.from_arrays(indices.astype(np.int32), labels)
    first, last = indices[[0, -1]].tolist()
    return (
        labels[first : last + 1]
        if stride == 1 and first <= last
        else labels.take(pa.array(indices))
    )


def _array(column: Any) -> pa.Array:
    """Numbers of 64 bits; larger integers are clamped, which is post-processing."""
    numbers = np.asarray(column)
    if numbers.dtype == object:
        whole = isinstance(numbers[0], int)
        numbers = (
            np.clip(numbers, -(2**63), 2**63 - 1).astype(np.int64)
            if whole
            else numbers.astype(np.float64)
        )
    return pa.array(numbers)


def _keys(plan: Plan) -> dict[str, tuple[pa.Array, int]]:
    """For each group column its labels, and the number of rows before the next label."""
    from discreet.release.answer import arrow
    from discreet.release.plan import key_column

    keys, stride = {}, 1
    for group in reversed(plan.query.groups):
        labels = arrow(key_column(group))
        keys[group.name] = (labels, stride)
        stride *= len(labels)
    return keys
