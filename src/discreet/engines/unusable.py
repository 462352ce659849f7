"""What to do about a column that exists and whose type cannot be used: an expression of it, and
where to write it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

Family: TypeAlias = Literal[
    "json", "list", "struct", "map", "time", "interval", "bytes", "money", "other"
]

_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"json|variant", "json"),
    (r"list|array|\[|multirange", "list"),
    (r"struct|record|union", "struct"),
    (r"map|hstore", "map"),
    (r"interval|duration|timedelta", "interval"),
    (r"time\b|time\d", "time"),
    (r"bytea|blob|binary|bit\b|bytes", "bytes"),
    (r"money", "money"),
)
"""Kinds of types by their names, in order."""

Expressions: TypeAlias = Mapping[Family, str]

POSTGRESQL: Expressions = MappingProxyType(
    {
        "json": "{} ->> 'field'",
        "list": "{}[1]",
        "map": "{} -> 'key'",
        "time": "extract(hour FROM {})",
        "interval": "extract(epoch FROM {})",
        "bytes": "encode({}, 'hex')",
        "money": "{}::numeric",
        "other": "{}::text",
    }
)
DUCKDB: Expressions = MappingProxyType(
    {
        "json": "{} ->> 'field'",
        "list": "{}[1]",
        "struct": "{}.part",
        "map": "{}['key']",
        "time": "hour({})",
        "interval": "epoch({})",
        "bytes": "hex({})",
        "other": "CAST({} AS VARCHAR)",
    }
)
SQLITE: Expressions = MappingProxyType(
    {"bytes": "CAST(hex({}) AS TEXT)", "other": "CAST({} AS TEXT)"}
)
SPARK: Expressions = MappingProxyType(
    {
        "json": "variant_get({}, '$.field', 'string')",
        "list": "{}[0]",
        "struct": "{}.part",
        "map": "{}['key']",
        "time": "hour({})",
        "bytes": "hex({})",
        "other": "CAST({} AS STRING)",
    }
)
FRAME: Expressions = MappingProxyType({"other": "a column of its parts, or of its text,"})


def unusable(name: str, kind: str, expressions: Expressions, where: str) -> str:
    """Why a column of this type cannot be used, and what to do.

    >>> unusable("tags", "text[]", POSTGRESQL, "a view that is the source")
    'its type is text[]; put tags[1], or what else you need of it, into a view that is the source'
    """
    families = [family for shape, family in _FAMILIES if re.search(shape, kind.lower())]
    form = next(
        (expressions[family] for family in families[:1] if family in expressions),
        expressions["other"],
    )
    shown = name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
    more = ", or what else you need of it," if "{}" in form else ""
    return f"its type is {kind}; put {form.format(shown)}{more} into {where}"
