"""The record of an answer as bytes: a table of released numbers as a ledger stores it.

    one Arrow IPC stream          a single row: a list of keys for each group column, and for each
                                  number a list of values and two of ends (`a1`, `a1_low`,
                                  `a1_high`), one item for each cell
    the metadata of its schema    the head as JSON: all that a reader needs to judge the numbers

Integers have 64 bits and other numbers are doubles; a column with any other item, such as a larger
integer, is stored as JSON texts, so that nothing is rounded. The same content gives the same bytes
with the same version of Arrow.

The intervals of 2¹⁶ cells and more are stored in half the bytes where they can be restored exactly:
as `a1_reach`, one for each 2¹⁶ cells, if all of these have the ends a1 ∓ reach; or, for integers,
as the distances `a1_below` and `a1_above`, if all of them have 16 bits.

A cell is a combination of keys, where the keys of the last column change fastest; if the head says
`nested`, every column has a key for each cell. This module does not know what the numbers mean.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.outside import read_json

if TYPE_CHECKING:
    import pyarrow as pa

Array: TypeAlias = NDArray[Any]
"""Integers of 64 bits, doubles, or Python objects if a column has other items."""

Three: TypeAlias = tuple[Array, Array, Array]
"""Released numbers, and the lower and upper ends of their intervals."""

_HEAD, _ITEMS = b"discreet", {b"items": b"json"}

_BLOCK = 2**16
"""Cells whose intervals may have one reach: those that are estimated together."""

_LARGE = 2**16
"""Bytes from which a record is compressed, on all cores; below, compression saves too little."""


@dataclass(frozen=True, slots=True)
class Record:
    """The head, the keys of each group column, and by name the numbers with their intervals."""

    head: dict[str, Any]
    keys: Mapping[str, pa.Array | Array]
    """Texts and truth values are Arrow arrays."""
    numbers: Mapping[str, Three]

    def pack(self) -> bytes:
        """The bytes that a ledger stores."""
        import pyarrow as pa

        fields, lists = [], []
        numbers = {
            f"{name}{suffix}": column
            for name, three in self.numbers.items()
            for suffix, column in _stored(*three).items()
        }
        for name, column in {**self.keys, **numbers}.items():
            values, metadata = _packed(column)
            ends = number_column(np.array([0, len(values)], np.int32))
            lists.append(pa.ListArray.from_arrays(ends, values))
            fields.append(pa.field(name, lists[-1].type, metadata=metadata))
        head = json.dumps({**self.head, "names": [list(self.keys), list(self.numbers)]}, **_PLAIN)
        batch = pa.RecordBatch.from_arrays(lists, schema=pa.schema(fields, {_HEAD: head.encode()}))
        sink = BytesIO()  # its bytes are not copied again, as those of Arrow's own stream would be
        large = batch.nbytes >= _LARGE
        # zstd needs half the bytes of lz4, and two to six times as long
        options = pa.ipc.IpcWriteOptions(compression="lz4" if large else None, use_threads=large)
        with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
            stream.write_batch(batch)
        return sink.getvalue()

    @property
    def cells(self) -> int:
        """The number of cells."""
        sizes = [len(column) for column in self.keys.values()]
        return sizes[0] if self.head.get("nested") else math.prod(sizes)

    @property
    def size(self) -> int:
        """An upper bound of the packed bytes, if all numbers fit into 64 bits; keys of mixed types
        take a few more.
        """
        columns = [
            *self.keys.values(),
            *(column for three in self.numbers.values() for column in three),
        ]
        return len(json.dumps(self.head)) + sum(column.nbytes for column in columns)

    def whole(self) -> dict[str, Any]:
        """The head with all keys and numbers as JSON lists."""
        numbers = {
            name: dict(zip(("value", "low", "high"), map(items_of, three), strict=True))
            for name, three in self.numbers.items()
        }
        return {
            **self.head,
            "keys": {name: items_of(column) for name, column in self.keys.items()},
            "numbers": numbers,
        }


_PLAIN: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}


def unpack(content: bytes) -> Record:
    """The record in these bytes."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(use_threads=len(content) >= _LARGE)
    with pa.ipc.open_stream(pa.py_buffer(content), options=options) as stream:
        batch = stream.read_next_batch()
    head = read_json(batch.schema.metadata[_HEAD])
    columns = {
        field.name: _unpacked(field, batch.column(field.name).values) for field in batch.schema
    }
    keys, numbers = head.pop("names")
    return Record(
        head=head,
        keys={name: columns[name] for name in keys},
        numbers={name: _restored(name, columns) for name in numbers},
    )


def _stored(value: Array, low: Array, high: Array) -> dict[str, Array]:
    """The columns of a number and its intervals, by the ends of their names."""
    if len(value) >= _BLOCK and value.dtype == low.dtype == high.dtype != object:
        blocks = [slice(start, start + _BLOCK) for start in range(0, len(value), _BLOCK)]
        reaches: list[Any] = []
        for block in blocks:
            reaches.append(_reach(value[block], low[block], high[block]))
            if reaches[-1] is None:
                break
        if reaches[-1] is not None:
            return {"": value, "_reach": np.array(reaches, value.dtype)}
        if value.dtype == np.int64:
            below, above = value - low, high - value
            if min(below.min(), above.min()) >= 0 and max(below.max(), above.max()) < 2**16:
                return {
                    "": value,
                    "_below": below.astype(np.uint16),
                    "_above": above.astype(np.uint16),
                }
    return {"": value, "_low": low, "_high": high}


def _reach(value: Array, low: Array, high: Array) -> Any:
    """The r with low = value − r and high = value + r in all cells, in 64-bit numbers; or None."""
    # where low is rounded by less than half a unit in the last place of r
    nearest = np.argmin(np.abs(value))
    with np.errstate(all="ignore"):
        reach = value[nearest] - low[nearest]
        ends = ((value - reach, low), (value + reach, high))
    # bits, because −0.0 is equal to 0.0
    return (
        reach
        if all((own.view(np.int64) == end.view(np.int64)).all() for own, end in ends)
        else None
    )


def _restored(name: str, columns: Mapping[str, Any]) -> Three:
    """A number and the ends of its intervals, from what `_stored` returned."""
    value = columns[name]
    if f"{name}_reach" in columns:
        reach = np.repeat(columns[f"{name}_reach"], _BLOCK)[: len(value)]
        return value, value - reach, value + reach
    if f"{name}_below" in columns:
        return value, value - columns[f"{name}_below"], value + columns[f"{name}_above"]
    return value, columns[f"{name}_low"], columns[f"{name}_high"]


def is_packed(content: bytes) -> bool:
    """Whether these bytes are a packed record: no text begins like this."""
    return content[:4] == b"\xff\xff\xff\xff"


def from_whole(whole: Mapping[str, Any]) -> Record:
    """The record that `Record.whole` turned into this mapping."""
    head = {name: value for name, value in whole.items() if name not in ("keys", "numbers")}
    keys = {name: keys_of(items) for name, items in whole["keys"].items()}
    numbers: dict[str, Any] = {
        name: tuple(array_of(ends[end]) for end in ("value", "low", "high"))
        for name, ends in whole["numbers"].items()
    }
    return Record(head, keys, numbers)


def readable(content: bytes) -> Any:
    """Stored bytes for a reader: text, a packed record with its SHA-256, or base 64."""
    if is_packed(content):
        return {"record": unpack(content).whole(), "sha256": sha256(content).hexdigest()}
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def array_of(items: Any) -> Array:
    """A column of integers of 64 bits, of doubles, or of Python objects."""
    array = items if isinstance(items, np.ndarray) else None
    if array is not None and array.dtype in (np.int64, np.float64):
        return array
    plain: list[Any] = list(items) if array is None else array.tolist()
    kinds = {type(item) for item in plain}
    if kinds == {int} and min(plain) >= -(2**63) and max(plain) < 2**63:
        return np.array(plain, np.int64)
    if all(issubclass(kind, float) for kind in kinds):
        return np.array(plain, np.float64)
    mixed = np.empty(len(plain), object)
    mixed[:] = plain
    return mixed


def keys_of(items: Sequence[Any]) -> pa.Array | Array:
    """A column of keys: texts or truth values as an Arrow array, or numbers."""
    import pyarrow as pa

    kinds = {type(item) for item in items}
    return pa.array(items) if kinds in ({str}, {bool}) else array_of(items)


def items_of(column: pa.Array | Array) -> list[Any]:
    """The items of a column as Python objects."""
    items: list[Any] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return items


def _packed(column: pa.Array | Array) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    import pyarrow as pa

    if not isinstance(column, np.ndarray):
        return column, None
    if column.dtype == object:
        return (
            pa.array(
                [json.dumps(item, ensure_ascii=False) for item in column.tolist()], pa.string()
            ),
            _ITEMS,
        )
    return number_column(column), None


def number_column(numbers: Array) -> pa.Array:
    """Integers or doubles as an Arrow array; `pa.array` would import pandas, which is slow."""
    import pyarrow as pa

    whole = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(whole.dtype), whole.size, [None, pa.py_buffer(whole)]
    )


def _unpacked(field: pa.Field, values: pa.Array) -> pa.Array | Array:
    import pyarrow as pa

    if field.metadata == _ITEMS:
        return array_of(read_json(f"[{','.join(values.to_pylist())}]", finite=False))
    return (
        values
        if pa.types.is_string(values.type) or pa.types.is_boolean(values.type)
        else np.from_dlpack(values)
    )


@cache
def software() -> str:
    """The name and version of this software."""
    return f"discreet {version('discreet')}"


def today() -> str:
    """The day of a release, in UTC."""
    return datetime.now(UTC).date().isoformat()
