"""The inputs of a release's intervals as JSON and back: calls of functions by name, from a closed
list.

    {"call": "single", "with": [{"call": "ends", "of": {"kind": "PublicSizeMoments", "n": 1000, …},
    "with": ["mean"]}]}

Fractions are texts such as "1/10" with the key "fraction", so they stay exact; a plain text always
stays a text.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from importlib import import_module
from types import MethodType
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.outside import read_fraction

_SPREADS = "release.intervals.spreads"
_FUNCTIONS = {
    **dict.fromkeys(
        ("constant", "single", "vector", "counted", "summed", "by_algorithm"), _SPREADS
    ),
    **dict.fromkeys(("mapped", "combined", "divided", "in_order", "widened"), _SPREADS),
    **dict.fromkeys(("count_ends", "band_ends", "quantile_ends"), "release.statistics.counts"),
    "shaped_ends": "release.statistics.moments",
    "bracket_ends": "release.statistics.ranks",
}
_KINDS = {
    "NoisySum": "release.mechanism",
    "NoisyColumn": "release.mechanism",
    "NoisySumOnly": "release.statistics.spread",
    "PublicSizeMoments": "release.statistics.moments",
    "PrivateSizeMoments": "release.statistics.grouped",
    "Partition": "release.statistics.partition",
    "Tree": "release.statistics.tree",
    "ValueGrid": "calibrate.grid",
}
"""The modules of the functions and classes that a release may store; nothing else is written or
read.
"""

_EARLIER = {"Lone": "NoisySumOnly", "Known": "PublicSizeMoments", "Private": "PrivateSizeMoments"}
"""What classes were called when earlier releases were stored."""


def written(value: Any) -> Any:  # noqa: PLR0911 - one for each type
    """A value in JSON's types."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if np.isfinite(value) else {"float": str(value)}
        case Fraction():
            return {"fraction": str(value)}
        case date():
            return {"time" if isinstance(value, datetime) else "day": value.isoformat()}
        case list():
            return [written(item) for item in value]
        case tuple():
            return {"tuple": [written(item) for item in value]}
        case np.ndarray():
            return {"array": written(value.tolist())}
        case np.generic():
            return written(value.item())
        case partial():
            call = _call(value.func)
            return {**call, "with": [*call.get("with", []), *map(written, value.args)]}
        case MethodType():
            return _call(value)
    if is_dataclass(value) and type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__} | {
            field.name: written(getattr(value, field.name)) for field in fields(value)
        }
    raise InvalidParameter(f"a release cannot store a {type(value).__name__}")


def _call(function: Any) -> dict[str, Any]:
    if isinstance(function, MethodType) and function.__name__ == "ends":
        return {"call": "ends", "of": written(function.__self__)}
    if function.__name__ not in _FUNCTIONS:
        raise InvalidParameter(f"a release cannot store the function {function.__name__}")
    return {"call": function.__name__}


def read(value: Any) -> Any:  # noqa: PLR0911 - one for each type
    """The value that `written` wrote; anything else raises `InvalidParameter` or an error that its
    caller handles.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [read(item) for item in value]
        case {"float": str(text)}:
            return float(text)
        case {"fraction": str(text)}:
            return read_fraction(text)
        case {"day": str(text)}:
            return date.fromisoformat(text)
        case {"time": str(text)}:
            return datetime.fromisoformat(text)
        case {"tuple": list(items)}:
            return tuple(read(item) for item in items)
        case {"array": list(items)}:
            return np.array(read(items))
        case {"call": "ends", "of": of, **more}:
            return partial(read(of).ends, *read(more.get("with", [])))
        case {"call": str(name), "with": list(arguments)}:
            return partial(_imported(name, _FUNCTIONS), *read(arguments))
        case {"kind": str(name), **fields}:
            return _imported(_EARLIER.get(name, name), _KINDS)(
                **{field: read(item) for field, item in fields.items()}
            )  # type: ignore[arg-type]
    raise InvalidParameter("this is not a release that discreet has written")


def _imported(name: str, homes: dict[str, str]) -> Any:
    if name not in homes:
        raise InvalidParameter(f"a release cannot store {name[:60]!r}")
    return getattr(import_module(f"discreet.{homes[name]}"), name)
