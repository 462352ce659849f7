"""The SQL names of functions, aggregates, parts of dates and types."""

from __future__ import annotations

from typing import get_args

from discreet.ask.expression import DatePart, NumberFunction, TextFunction, Unit
from discreet.ask.sql.syntax import Type
from discreet.ask.statistics import STATISTICS, Statistic

FUNCTIONS: dict[str, NumberFunction | TextFunction] = {
    "ABS": "abs",
    "FLOOR": "floor",
    "ROUND": "round",
    "TRIM": "trim",
    **dict.fromkeys(("CEIL", "CEILING"), "ceil"),
    **dict.fromkeys(("LOWER", "LCASE"), "lower"),
    **dict.fromkeys(("UPPER", "UCASE"), "upper"),
    **dict.fromkeys(("LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"), "length"),
}
"""Functions of one argument."""

PARTS: dict[str, DatePart] = {**{part: part for part in get_args(DatePart)}, "isodow": "weekday"}
del PARTS["weekday"]  # DuckDB counts from Sunday as 0, we count from Monday as 1, which is ISODOW
del PARTS["days"]  # DATE_DIFF counts them
PART_FUNCTIONS: dict[str, DatePart] = {
    **{name.upper(): part for name, part in PARTS.items()},
    **dict.fromkeys(("DAYOFMONTH", "DAY_OF_MONTH"), "day"),
    **dict.fromkeys(("WEEKOFYEAR", "WEEK_OF_YEAR"), "week"),
    "DAYOFWEEK_ISO": "weekday",
}
UNITS: dict[str, Unit] = {unit: unit for unit in get_args(Unit)}

LABELS: dict[str, tuple[Unit, int]] = {
    **dict.fromkeys(("%Y-%m-%d", "%F", "YYYY-MM-DD", "yyyy-MM-dd"), ("day", 10)),
    **dict.fromkeys(("%Y-%m", "YYYY-MM", "yyyy-MM"), ("month", 7)),
    **dict.fromkeys(("%Y", "YYYY", "yyyy"), ("year", 4)),
}
"""Formats of date labels: the period, and how long a prefix of its first ISO date the label is."""
LABEL_FUNCTIONS = frozenset(("STRFTIME", "TO_CHAR", "DATE_FORMAT"))

STATISTIC_NAMES: dict[str, tuple[Statistic, bool]] = {
    name: (row, sample)
    for row in STATISTICS.values()
    for sample, names in ((False, row.sql), (True, row.sample))
    for name in names
}
"""Statistics, each with whether it is the sample form, over n − 1."""

QUANTILES = frozenset(STATISTICS["quantile"].sql)
PERCENTILES = frozenset(name for name in QUANTILES if name.endswith(("_CONT", "_DISC")))

_OTHERS = """MODE FIRST LAST ANY_VALUE LIST ARRAY_AGG STRING_AGG GROUP_CONCAT LISTAGG \
ARG_MIN ARG_MAX MIN_BY MAX_BY
    APPROX_COUNT_DISTINCT APPROX_DISTINCT CORR COVAR_POP COVAR_SAMP \
REGR_SLOPE REGR_INTERCEPT SKEWNESS KURTOSIS ENTROPY
    MAD PRODUCT BIT_AND BIT_OR BIT_XOR BOOL_AND BOOL_OR LOGICAL_AND LOGICAL_OR"""
OTHER_AGGREGATES = frozenset(_OTHERS.split())
"""Aggregates of other systems, which are refused by name."""
AGGREGATES = STATISTIC_NAMES.keys() | OTHER_AGGREGATES

TYPES: dict[str, Type] = {
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "FLOAT", "FLOAT4", "FLOAT8", "REAL"), "number"),
    **dict.fromkeys(
        (
            "INTEGER",
            "INT",
            "BIGINT",
            "HUGEINT",
            "SMALLINT",
            "TINYINT",
            "SIGNED",
            "LONG",
            "SHORT",
            "BYTE",
        ),
        "integer",
    ),
    **dict.fromkeys(
        ("INT1", "INT2", "INT4", "INT8", "INT16", "INT32", "INT64", "INT128"), "integer"
    ),
    **dict.fromkeys(("VARCHAR", "TEXT", "STRING", "CHAR", "CHARACTER", "BPCHAR"), "text"),
    **dict.fromkeys(("TIMESTAMP", "DATETIME", "TIMESTAMP_NTZ", "TIMESTAMP_US"), "date"),
    **dict.fromkeys(("BOOLEAN", "BOOL", "LOGICAL"), "truth"),
    "DATE": "day",
}
"""Types of CAST; decimals would round and are not supported."""

OFFERED = (
    "ABS, FLOOR, CEIL, ROUND, LEAST, GREATEST, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, COALESCE,"
    " YEAR, QUARTER, MONTH, WEEK, DAY, ISODOW, HOUR, MINUTE, SECOND, DATE_TRUNC, DATE_PART,"
    " EXTRACT, DATE_DIFF, STRFTIME, CAST"
)
"""The functions listed in a refusal."""
USAGES = {
    **dict.fromkeys(("SUBSTRING", "SUBSTR"), "SUBSTRING(name, 1, 3)"),
    **dict.fromkeys(("DATE_TRUNC", "DATETRUNC"), "DATE_TRUNC('month', day)"),
    **dict.fromkeys(("DATE_PART", "DATEPART"), "DATE_PART('year', day)"),
    **dict.fromkeys(("DATE_DIFF", "DATEDIFF"), "DATE_DIFF('day', admitted, discharged)"),
    **dict.fromkeys(sorted(LABEL_FUNCTIONS), "STRFTIME(day, '%Y-%m'), or '%Y' or '%Y-%m-%d'"),
    **dict.fromkeys(("IF", "IIF"), "IF(age < 18, 1, 0)"),
    "BIN": "GROUP BY bin(age, 0, 18, 65)",
}
"""How to write functions with special arguments."""
