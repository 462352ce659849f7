"""What all releases share as values: they are compared, hashed and written by their content.

`to_dict` is for readers: numbers in Python's own types, exact numbers as texts, infinite ends as
None. The JSON has the same content and the inputs of the intervals, so that it can be read back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from discreet import views
from discreet.errors import InvalidParameter
from discreet.outside import read_fraction, read_json
from discreet.release.intervals.stored import read, written

_EXACT = ("epsilon", "sensitivity", "scale", "step")


class Stored:
    """A release, or several by name."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The numbers, the ends of their 95 % intervals (`low`, `high`), and what they cost."""
        release: Any = self
        if isinstance(self, Mapping):
            return {
                "epsilon": str(release.epsilon),
                **{name: part.to_dict() for name, part in self.items()},
            }
        parts = {
            field.name: getattr(self, field.name)
            for field in fields(release)
            if field.name != "_spread"
        }
        low, high = release.interval()
        parts = {
            "statistic": parts.pop("statistic"),
            "value": parts.pop("value"),
            "low": low,
            "high": high,
            **parts,
        }
        present = {
            name: value
            for name, value in parts.items()
            if not (isinstance(value, tuple | str) and not value)
        }
        return {name: _plain(value) for name, value in present.items()}

    def to_json(self) -> str:
        """The whole release as JSON: the content of `to_dict`, and the inputs of the intervals at
        any confidence.
        """
        return json.dumps(_document(self), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The release in the JSON that `to_json` wrote."""
        try:
            release = _release_of(read_json(text))
        except InvalidParameter:
            raise
        except Exception:  # a text may hold anything
            raise _refused() from None
        if not isinstance(release, cls):
            raise InvalidParameter(
                f"this is {type(release).__name__}, not {cls.__name__}: read it with that class"
            )
        return release

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the JSON to a new .json file, which `from_json` reads; `force` overwrites an
        existing file.
        """
        from discreet.files.writer import NOTHING, write

        target = Path(path)
        if target.suffix != ".json":
            raise InvalidParameter(f"path must end in .json, got {target.name!r}")
        return write(target, self.to_json().encode(), force=force, kept=NOTHING)

    def figure(self, **options: Any) -> Any:
        """A chart of the numbers with their intervals; for several statistics, `column=` chooses
        one.
        """
        return views.figure(self, **options)

    def _repr_html_(self) -> str:
        return views.html(self)

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Stored) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_json())


def _document(release: Any) -> dict[str, Any]:
    if isinstance(release, Mapping):
        parts = {name: _document(part) for name, part in release.items()}
        return {"discreet": "Releases", "epsilon": str(release.epsilon), "parts": parts}  # type: ignore[attr-defined]
    document = {"discreet": type(release).__name__, **release.to_dict()}
    if "keys" in document:
        document["keys"] = written(document["keys"])
    if isinstance(release.value, float) and not math.isfinite(release.value):
        document["value"] = written(release.value)
    return {**document, "interval": written(release._spread)}


def _release_of(document: Any) -> Stored:
    from discreet.release.release import Cumulative, Histogram, Release, Releases, Vector

    kinds: dict[str, Any] = {
        kind.__name__: kind for kind in (Release, Vector, Histogram, Cumulative)
    }
    match document:
        case {"discreet": "Releases", "epsilon": str(epsilon), "parts": dict(parts)}:
            releases: Any = {name: _release_of(part) for name, part in parts.items()}
            if not all(isinstance(part, Release) for part in releases.values()):
                raise _refused()
            return Releases(releases, read_fraction(epsilon))
        case {
            "discreet": str(name),
            "low": _,
            "high": _,
            "interval": interval,
            **more,
        } if name in kinds:
            parameters: dict[str, Any] = {str(field): value for field, value in more.items()}
            parameters |= {exact: read_fraction(parameters[exact]) for exact in _EXACT}
            value = parameters["value"]
            parameters["value"] = (
                np.array(value) if issubclass(kinds[name], Vector) else read(value)
            )
            if "points" in parameters:
                parameters["points"] = np.array(parameters["points"])
            for several in {"edges", "keys"} & set(parameters):
                parameters[several] = tuple(read(parameters[several]))
            release: Release = kinds[name](**parameters, _spread=read(interval))
            release.interval()
            return release
    raise _refused()


def _refused() -> InvalidParameter:
    return InvalidParameter("the text must be a release as to_json writes it")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Fraction):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
