"""Declared keys as a column: one Arrow array that is read once, hashed once, and passed to engines
and answers.

    text     string
    number   int64 if all are whole and fit, otherwise exact fractions as texts: 1/3, 5/2,
             10000000000000000000
    date     timestamp[us], without zone
    truth    bool

A list of keys has one form, so that two columns are equal if and only if their lists are. The
digest is the SHA-256 of the kind, the length, the width of the form and its bytes; for texts, their
lengths in bytes come before the bytes. Only people (`keys[0]`, `list(keys)`) and fractions, which
are few, need the keys as Python objects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time  # noqa: F401 - for an example
from fractions import Fraction
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa
from pyarrow import compute

from discreet.ask.expression import KINDS, Kind
from discreet.ask.keys.key import Key, as_kind, read_key
from discreet.errors import InvalidParameter
from discreet.parameters import quote

_LISTED = 20
"""The most keys that a canonical text lists; for more keys it has their digest."""

_NAMES = {kind: type_.__name__ for type_, kind in KINDS.items()}
_ARROW = {
    "text": pa.string(),
    "number": pa.int64(),
    "date": pa.timestamp("us"),
    "truth": pa.bool_(),
}

_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
"""Whole numbers below 10¹⁸ in their canonical spelling."""


@dataclass(frozen=True, eq=False, repr=False)
class Keys(Sequence[Key]):
    """Keys in declared order, created by `of`, `texts` and `numbers`."""

    column: pa.Array
    kind: Kind

    @classmethod
    def of(cls, values: Iterable[object]) -> Keys:
        """The keys in a list or an Arrow column, all of one kind.

        >>> Keys.of(["a", "b"]).kind, Keys.of([1, Fraction(1, 2)])[1], list(Keys.of([False, True]))
        ('text', Fraction(1, 2), [False, True])
        """
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, pa.Array):
            if values.type in (pa.string(), pa.large_string()) and not values.null_count:
                return cls.texts(valid_texts(values))
            values = values.to_pylist()
        listed = list(values)
        types = set(map(type, listed))
        if types <= {str}:
            return cls.texts(text_column(listed))
        if types == {int}:
            try:
                return cls.numbers(np.array(listed, np.int64))
            except OverflowError:
                pass
        keys = [value if isinstance(value, Fraction) else read_key(value) for value in listed]
        if len({type(key) for key in keys}) > 1:
            raise InvalidParameter(
                "keys must be of one kind: texts, numbers, dates or truth values"
            )
        kind = KINDS[type(keys[0])]
        if kind == "number":
            whole = all(map(_fits, keys))
            return cls(pa.array([int(key) if whole else str(key) for key in keys]), kind)  # type: ignore[arg-type]
        return cls(text_column(keys) if kind == "text" else pa.array(keys, _ARROW[kind]), kind)

    @classmethod
    def texts(cls, column: pa.Array) -> Keys:
        """Keys from an Arrow array of texts without missing values."""
        return cls(column, "text")

    @classmethod
    def numbers(cls, column: Any) -> Keys:
        """Keys from a numpy or Arrow array of 64-bit integers without missing values."""
        return cls(pa.array(column, pa.int64()), "number")

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, index: int) -> Key: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Key, ...]: ...
    def __getitem__(self, index: int | slice) -> Key | tuple[Key, ...]:
        if isinstance(index, slice):
            return tuple(map(self._key, self.column[index].to_pylist()))
        return self._key(self.column[range(len(self))[index]].as_py())

    def __iter__(self) -> Iterator[Key]:
        return map(self._key, self.column.to_pylist())

    def __contains__(self, key: object) -> bool:
        if KINDS.get(type(key)) != self.kind:
            return False
        value: Any = key
        if isinstance(key, Fraction):
            if self.whole and not _fits(key):
                return False
            value = int(key) if self.whole else str(key)
        return bool(compute.index(self.column, pa.scalar(value, self.column.type)).as_py() >= 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Keys):
            return NotImplemented
        return self is other or (self.kind == other.kind and self.column.equals(other.column))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Keys({len(self):,} of kind {self.kind})"

    @property
    def whole(self) -> bool:
        """Whether they are 64-bit integers."""
        return self.kind == "number" and bool(pa.types.is_int64(self.column.type))

    @cached_property
    def near(self) -> bool:
        """Whether all are integers below 2⁵³ in absolute value, which floats represent exactly."""
        if not self.whole:
            return False
        ends = compute.min_max(self.column)
        return bool(ends["min"].as_py() > -(2**53) and ends["max"].as_py() < 2**53)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the list, in hexadecimal."""
        column = self.column
        fractions = self.kind == "number" and not self.whole
        hashed = hashlib.sha256(
            f"{self.kind}{'s of fractions' if fractions else ''} {len(column)} ".encode()
        )
        if pa.types.is_string(column.type):
            hashed.update(np.diff(_offsets(column)).astype("<i4").data)
            hashed.update(_bytes(column))
        elif self.kind == "truth":
            hashed.update(np.from_dlpack(column.cast(pa.int8())).data)
        else:
            hashed.update(np.from_dlpack(column.view(pa.int64())).astype("<i8").data)
        return hashed.hexdigest()

    @cached_property
    def text(self) -> str:
        """A canonical text: a short list of keys in full, a long one as its length and digest."""
        if len(self) <= _LISTED:
            return f" KEYS {json.dumps([_NAMES[self.kind], *map(str, self)])}"
        return f" KEYS {len(self)} sha256 {self.digest}"

    @cached_property
    def shown(self) -> pa.Array:
        """The keys in a table: texts (dates too), whole numbers, doubles or truth values."""
        match self.kind:
            case "number" if not self.whole:
                return pa.array([float(key) for key in self], pa.float64())  # type: ignore[arg-type]
            case "date":
                return _date_texts(self.column)
        return self.column

    def labels(self, other: str | None = None) -> pa.Array:
        """The keys in a table, all as texts if the label of all other values comes last."""
        if other is None:
            return self.shown
        match self.kind:
            case "number" if not self.whole:
                texts = pa.array([str(int(key) if key == int(key) else float(key)) for key in self])  # type: ignore[arg-type]
            case "truth":
                texts = pa.array([str(key) for key in self])
            case _:
                texts = self.shown.cast(pa.string())
        return pa.concat_arrays([texts, text_column([other])])

    def has_label(self, label: str) -> bool:
        """Whether a key is shown like this label of all other values."""
        labels = self.labels(label)
        # a text itself would import pandas
        return bool(compute.index(labels, labels[-1]).as_py() < len(self))

    def declarable(self) -> Keys:
        """The keys, if a policy may declare them: they differ, and no text contains NUL."""
        # 140 MB of keys are not copied
        if self.kind == "text" and not np.frombuffer(_bytes(self.column), np.uint8).all():
            raise InvalidParameter("a key must not contain NUL characters")
        return self.distinct()

    def distinct(self) -> Keys:
        """The keys, if there is at least one and no two are equal."""
        if not len(self):
            raise InvalidParameter("keys must have at least one value, got none")
        if self.repeated is not None:
            raise InvalidParameter(f"keys must differ, got {quote(self[self.repeated])} twice")
        return self

    @cached_property
    def repeated(self) -> int | None:
        """The index of the first key that is equal to an earlier key; None if all differ."""
        column = self.column
        if _rising(column) or len(column.unique()) == len(column):
            return None
        earlier: set[Any] = set()
        return next(
            index
            for index, key in enumerate(column.to_pylist())
            if key in earlier or earlier.add(key)  # type: ignore[func-returns-value]
        )

    def places(self, among: Keys) -> list[int] | None:
        """The index of each key in a column of the same kind; None if one is missing there."""
        indices = self.indices(among)
        return None if indices.null_count else list(indices.to_pylist())

    def indices(self, among: Keys) -> pa.Array:
        """The index of each key in another column of the same kind; NULL if it is missing there."""
        return compute.index_in(self.column, value_set=among.column)

    @cached_property
    def _in_kinds(self) -> dict[Kind, Keys]:
        return {self.kind: self}

    def as_kind(self, kind: Kind) -> Keys:
        """The keys in the kind of their column, all different; texts may spell its values."""
        cached = self._in_kinds
        if kind not in cached:
            cached[kind] = self.read_as(kind).distinct()
        return cached[kind]

    def read_as(self, kind: Kind) -> Keys:
        """The keys in a kind, where several may be equal."""
        if kind == self.kind:
            return self
        if self.whole and kind == "text":
            return Keys(self.column.cast(pa.string()), "text")
        if self.kind == "text" and kind == "number":
            whole = compute.match_substring_regex(self.column, _WHOLE)
            if compute.all(whole).as_py():
                return Keys.numbers(self.column.cast(pa.int64()))
        return Keys.of(as_kind(key, kind) for key in self)

    def _key(self, value: Any) -> Key:
        key: Key = Fraction(value) if self.kind == "number" else value
        return key


def key_labels(keys: Keys) -> tuple[Any, ...]:
    """The keys as Python objects: texts, ints or floats, truth values, and dates, or datetimes if
    any has a time.

    >>> key_labels(Keys.of([1, Fraction(1, 2)])), key_labels(Keys.of([date(2020, 1, 31)]))
    ((1, 0.5), (datetime.date(2020, 1, 31),))
    """
    match keys.kind:
        case "number":
            return tuple(int(key) if key == int(key) else float(key) for key in keys)  # type: ignore[arg-type]
        case "date" if all(key.time() == time() for key in keys):  # type: ignore[union-attr]
            return tuple(key.date() for key in keys)  # type: ignore[union-attr]
    return tuple(keys)


def _fits(number: Any) -> bool:
    """Whether a number is an integer of 64 bits."""
    return bool(number.denominator == 1 and -(2**63) <= number < 2**63)


def text_column(values: Sequence[object]) -> pa.Array:
    builder = pa.lib.StringBuilder()  # pa.array would import pandas
    try:
        builder.append_values(values)
    except UnicodeEncodeError:
        raise InvalidParameter(
            "a key must consist of Unicode characters, got a lone surrogate"
        ) from None
    except pa.ArrowCapacityError:
        raise InvalidParameter("keys must be at most 2 GiB of text together") from None
    return builder.finish()


def valid_texts(column: pa.Array) -> pa.Array:
    """A column of texts from elsewhere, if it is valid UTF-8."""
    try:
        texts = column.cast(pa.string())
        texts.validate(full=True)
    except pa.ArrowException:
        raise InvalidParameter("keys must be UTF-8, and at most 2 GiB together") from None
    return texts


def _offsets(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The start of each text among the bytes, and the end of the last text."""
    if not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(column.buffers()[1], np.int32)[
        column.offset : column.offset + len(column) + 1
    ]


def _bytes(column: pa.Array) -> Any:
    offsets, buffer = _offsets(column), column.buffers()[2] if len(column) else None
    return b"" if buffer is None else buffer.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _rising(column: pa.Array) -> bool:
    """Whether the values increase strictly, so that they differ."""
    return len(column) < 2 or bool(compute.all(compute.less(column[:-1], column[1:])).as_py())


def _date_texts(column: pa.Array) -> pa.Array:
    """Times as Python writes them: 2020-01-31 12:00:00, with microseconds if there are any.

    If all times are midnight, only the dates: 2020-01-31.
    """
    micros = np.from_dlpack(column.view(pa.int64()))
    if not (micros % 86_400_000_000).any():
        return column.cast(pa.date32()).cast(pa.string())
    if (micros % 1_000_000).any():
        return pa.array([str(moment) for moment in column.to_pylist()], pa.string())
    return column.cast(pa.timestamp("s")).cast(pa.string())
