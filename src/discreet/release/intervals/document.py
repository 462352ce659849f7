"""A release as a dictionary for readers, and as JSON from which it can be read back."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from discreet.errors import InvalidParameter
from discreet.files.writer import NOTHING, write
from discreet.release.intervals.storage import Stored
from discreet.release.intervals.stored import fraction, read, written
from discreet.release.release import Cumulative, Histogram, Release, Releases, Vector

Kind = TypeVar("Kind", bound=Stored)

_KINDS = {kind.__name__: kind for kind in (Release, Vector, Histogram, Cumulative, Releases)}
_EXACT = ("epsilon", "sensitivity", "scale", "step")


def as_dict(release: Any) -> dict[str, Any]:
    """The numbers with their 95 % intervals, in Python's own types; exact numbers as texts, infinite ends as None."""
    if isinstance(release, Releases):
        return {"epsilon": str(release.epsilon), **{name: as_dict(part) for name, part in release.items()}}
    parts = {field.name: getattr(release, field.name) for field in fields(release) if field.name != "_spread"}
    low, high = release.interval()
    parts = {"statistic": parts.pop("statistic"), "value": parts.pop("value"), "low": low, "high": high, **parts}
    present = {name: value for name, value in parts.items() if not (isinstance(value, tuple | str) and not value)}
    return {name: _plain(value) for name, value in present.items()}


def as_json(release: Any) -> str:
    """The whole release in one line of JSON."""
    return json.dumps(_document(release), ensure_ascii=False, allow_nan=False)


def of_json(text: str | bytes, kind: type[Kind]) -> Kind:
    """The release in a text; `InvalidParameter` if there is none."""
    try:
        release = _release_of(json.loads(text))
    except InvalidParameter:
        raise
    except Exception:  # a text may hold anything
        raise _refused() from None
    if not isinstance(release, kind):
        raise InvalidParameter(f"this is {type(release).__name__}, not {kind.__name__}: read it with that class")
    return release


def save(release: Any, path: Any, *, force: bool) -> Path:
    """Write the JSON to a new file, and return its path."""
    target = Path(path)
    if target.suffix != ".json":
        raise InvalidParameter(f"path must end in .json, got {target.name!r}")
    return write(target, as_json(release).encode(), force=force, kept=NOTHING)


def _document(release: Any) -> dict[str, Any]:
    if isinstance(release, Releases):
        parts = {name: _document(part) for name, part in release.items()}
        return {"discreet": "Releases", "epsilon": str(release.epsilon), "parts": parts}
    document = {"discreet": type(release).__name__, **as_dict(release)}
    if "keys" in document:
        document["keys"] = written(document["keys"])
    if isinstance(release.value, float) and not math.isfinite(release.value):
        document["value"] = written(release.value)
    return {**document, "interval": written(release._spread)}


def _release_of(document: Any) -> Release | Releases:
    match document:
        case {"discreet": "Releases", "epsilon": str(epsilon), "parts": dict(parts)}:
            releases = {name: _release_of(part) for name, part in parts.items()}
            if not all(isinstance(part, Release) for part in releases.values()):
                raise _refused()
            return Releases(releases, fraction(epsilon))  # type: ignore[arg-type]
        case {"discreet": str(name), "low": _, "high": _, "interval": interval, **more} if name in _KINDS:
            kind: Any = _KINDS[name]
            fields: dict[str, Any] = {str(field): value for field, value in more.items()}
            fields |= {exact: fraction(fields[exact]) for exact in _EXACT}
            fields["value"] = np.array(fields["value"]) if issubclass(kind, Vector) else read(fields["value"])
            if "points" in fields:
                fields["points"] = np.array(fields["points"])
            for several in {"edges", "keys"} & set(fields):
                fields[several] = tuple(read(fields[several]))
            release: Release = kind(**fields, _spread=read(interval))
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
