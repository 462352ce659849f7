"""Algorithm 1 on answers of any length: record batches in, exact noise added, record batches out; memory is bounded.

    add_noise("counts.parquet", "noisy.parquet", columns=["people"], keys=["block"], sensitivity=2, epsilon="0.5")

Every number of the columns gets its own draw of DLap(Δ/ε), where Δ is the most that one unit can move all of them
together, in the L1 norm. Integers in, int64 out: exact, held at the ends of int64; a missing number counts as 0. Keys
are copied as they are, so they must be public, as must the number of rows and their order; all other columns are left
out. Nothing else of the source reaches the file: no dictionary, no metadata, no sizes of its row groups.

The file appears whole under its name or not at all. With `ledger` and `study` ε is spent first, and the ledger keeps
the file's SHA-256 in place of its numbers: a release is made once, also where it was broken off.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from discreet.draw.vector import beyond_int64
from discreet.engines.base import alone
from discreet.errors import InvalidParameter, QueryRefused
from discreet.files.batches import noisy_batch, noisy_schema
from discreet.files.once import Asking, refuse_begun, released
from discreet.files.writer import Draft, Kept, kept_files
from discreet.parameters import exact_epsilon, exact_sensitivity, quote
from discreet.release.account import Account, account_of, text_of

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

Item = TypeVar("Item")

BATCH = 2**20
"""Numbers that are read, noised and written at a time, 8 MiB: those of a row group of the result."""

_AHEAD = 2
"""Batches that one stage may be ahead of the next."""

_BUFFER = 2**20
"""Bytes of a column that are read at a time: a file may be one row group, larger than memory."""


def add_noise(
    source: Any,
    target: str | os.PathLike[str],
    *,
    columns: Sequence[str],
    sensitivity: Any,
    epsilon: Any,
    keys: Sequence[str] = (),
    **account: Unpack[Account],
) -> Any:
    """The path of the new Parquet file: the keys and the noisy columns of a Parquet file, or of a list of them.

    Of a DataFrame of Spark, the frame that is read back from the folder `target` where its executors have written it
    (`files.spark`). With `ledger` and `study` the call is charged before a row is read.
    """
    noise = _Noise(
        columns=_names("columns", columns),
        keys=_names("keys", keys),
        sensitivity=exact_sensitivity(sensitivity),
        epsilon=exact_epsilon(epsilon),
    )
    scale_of(noise.sensitivity, noise.epsilon)
    asking = noise.asked(account)
    if hasattr(source, "mapInArrow"):
        return _on_spark(source, str(target), noise, asking)
    files = _files(source)
    schema = noisy_schema(alone(lambda: _schema(files)), noise.columns, noise.keys)

    def write(draft: Draft) -> dict[str, Any]:
        noisy = (noisy_batch(one, schema, noise.columns, noise.scale) for one in ahead(read(files, schema.names)))
        rows = write_batches(draft, schema, ahead(even(noisy, max(1, BATCH // len(schema)))))
        return {**noise.told(), "rows": rows}

    kept = Kept(files=tuple(map(str, files))) + kept_files(() if asking is None else asking.ledger.files)
    return Path(released(target, write, asking, kept=kept)["file"])


def noisy_batches(
    batches: Iterable[pa.RecordBatch],
    *,
    columns: Sequence[str],
    sensitivity: Any,
    epsilon: Any,
    keys: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """The batches with noise on their integer columns and the keys before them, one at a time; nothing is charged."""
    scale = scale_of(exact_sensitivity(sensitivity), exact_epsilon(epsilon))
    return (_compact(noisy_batch(one, noisy_schema(one.schema, columns, keys), columns, scale)) for one in batches)


def scale_of(sensitivity: Fraction, epsilon: Fraction) -> Fraction:
    """Δ/ε, refused where draws would leave int64."""
    scale = sensitivity / epsilon
    if beyond_int64(scale):
        raise InvalidParameter("sensitivity over epsilon must be below 2⁵⁰ in a stream, whose numbers are int64")
    return scale


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, made by a thread of their own that is a few of them ahead."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        made = deque(pool.submit(next, source, end) for _ in range(_AHEAD))
        while (item := made.popleft().result()) is not end:
            made.append(pool.submit(next, source, end))
            yield item  # type: ignore[misc]


def even(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows, so many at a time: how the source was cut may tell what was removed from it."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        while sum(map(len, waiting)) >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows).combine_chunks()
            waiting = table.slice(rows).to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A copy of the rows alone: a slice would carry the rest of its memory to whoever stores it."""
    import numpy as np

    return batch.take(np.arange(len(batch)))


def write_batches(sink: Any, schema: pa.Schema, batches: Iterable[Any], *, arrow_types: bool = True) -> int:
    """The number of rows of the batches or tables that were written as Parquet; small integers take 1 to 2 bytes.

    Without `arrow_types` a reader finds the types of Parquet: plain texts in place of Arrow's dictionaries.
    """
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import parquet

    whole = [field.name for field in schema if not field.nullable and pa.types.is_integer(field.type)]
    rows = 0
    # differences in as few bits as they need: as small as zstd makes them, and three times as fast
    with parquet.ParquetWriter(
        sink,
        schema,
        compression="none",
        use_dictionary=[field.name for field in schema if field.nullable],
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        store_schema=arrow_types,
    ) as writer:
        for batch in batches:
            writer.write(batch, row_group_size=BATCH)
            rows += len(batch)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noise:
    """What is to be done, with all that can be refused refused."""

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    sensitivity: Fraction
    epsilon: Fraction

    @property
    def scale(self) -> Fraction:
        return self.sensitivity / self.epsilon

    def asked(self, account: Account) -> Asking | None:
        """The question to the ledger, if the call is charged."""
        where = account_of(account, "add_noise")
        if where is None:
            return None
        parameters = {"columns": self.columns, "keys": self.keys, "sensitivity": self.sensitivity}
        more: Any = {name: value for name, value in account.items() if name not in ("ledger", "study", "data_name")}
        query = text_of(account, "add_noise", parameters)
        return Asking(ledger=where[0], study=where[1], query=query, epsilon=self.epsilon, **more)

    def told(self) -> dict[str, Any]:
        """What a reader of the file needs to judge its numbers."""
        return {
            "discreet": 1,
            "software": f"discreet {version('discreet')}",
            "epsilon": str(self.epsilon),
            "delta": "0",
            "sensitivity": str(self.sensitivity),
            "scale": str(self.scale),
            "columns": self.columns,
            "keys": self.keys,
        }


def _on_spark(frame: Any, target: str, noise: _Noise, asking: Asking | None) -> Any:
    """The frame read back from where the executors have written it, once."""
    from discreet.files.spark import checked, noised, reopened

    checked(frame, target, noise.columns, noise.keys, known=asking is not None and asking.answered(target))
    grant = None if asking is None else asking.spend()
    parts = (frame, target, noise.columns, noise.keys, noise.scale)
    if grant is None or asking is None:
        noised(*parts)
        return reopened(frame, target)
    kept = grant.answer
    if kept is None:
        refuse_begun(grant)
        mine = json.dumps({**noise.told(), "file": target}).encode()
        recorded: list[bytes] = []

        def record() -> bool:
            recorded.append(asking.ledger.record(grant, mine))
            return recorded[0] == mine

        noised(*parts, record=record)
        [kept] = recorded
    place = json.loads(kept)["file"]
    again = reopened(frame, place)
    if again is None:
        raise QueryRefused(f"this was released to {place}; the folder is gone, and a release is made once")
    return again


def _names(what: str, given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(f'{what} must be a list of names, such as ["people"], got {quote(given)}')
    return tuple(given)


def _files(source: Any) -> list[Path]:
    listed = [source] if isinstance(source, str | os.PathLike) else source
    if (
        not isinstance(listed, list | tuple)
        or not listed
        or not all(isinstance(one, str | os.PathLike) for one in listed)
    ):
        raise InvalidParameter("source must be a Parquet file, a list of them or a DataFrame of Spark")
    files = [Path(one) for one in listed]
    for file in files:
        if not os.path.isfile(file):  # `Path.is_file` raises where a name is too long
            raise InvalidParameter(f"source must be files that exist, and {file.name} does not; nothing was spent")
    return files


def _schema(files: list[Path]) -> pa.Schema:
    """The names and types that all files share."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import parquet

    try:
        schemas = [parquet.read_schema(file).remove_metadata() for file in files]
    except (pa.ArrowException, OSError):
        raise InvalidParameter("source must be Parquet, and a file is not; nothing was spent") from None
    if any(schema != schemas[0] for schema in schemas):
        raise InvalidParameter("the files must have the same columns of the same types; nothing was spent")
    return schemas[0]


def read(files: list[Path], names: list[str]) -> Iterator[pa.RecordBatch]:
    """The batches of the files, a few of them in memory at a time."""
    from pyarrow import parquet

    for file in files:
        with parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER) as opened:
            yield from opened.iter_batches(batch_size=max(1, BATCH // len(names)), columns=names)
