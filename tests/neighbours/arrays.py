"""The same search over statistics of one column in memory: lists, numpy, pandas, polars and Arrow."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

import discreet
from neighbours.draws import Astray, Leak, recorded
from neighbours.search import Tally, Violation, judged
from neighbours.tables import _BOUNDS
from studies import Paper

_REALS = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, -1e308, 0.1, 2.5]
_ITEMS = [
    None, math.nan, True, False, "1", "2.5", "x", "", 10**400, -(10**400), Fraction(1, 3), decimal.Decimal("0.25"),
    decimal.Decimal("NaN"), 1j, object(), [1], np.float32(0.5), np.int8(-3), b"1",
]  # fmt: skip


_STATISTICS = [
    "count", "sum", "mean", "proportion", "variance", "std", "median", "quantile", "quantiles", "cdf", "min", "max",
    "histogram", "mean_and_std", "summary",
]  # fmt: skip


@dataclass(frozen=True)
class Container:
    """How a column is held: what its values can be, and how it is made of them."""

    name: str
    odd: tuple[Any, ...]
    ends: tuple[float, float]
    whole: bool
    make: Callable[[list[Any]], Any]


def _masked(items: list[Any]) -> Any:
    return np.ma.array(
        [0.0 if item is None else item for item in items],
        np.float64,
        mask=[item is None for item in items],
    )


def _arrow_truths(items: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array([None if item is None else bool(item) for item in items], pa.bool_())


def _containers() -> list[Container]:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    far = (-1e300, 1e300)
    found = [
        Container("list", tuple(_ITEMS), far, False, list),
        Container("tuple", tuple(_ITEMS), far, False, tuple),
        Container("numpy.object", tuple(_ITEMS), far, False, lambda items: np.fromiter(items, object, len(items))),
        Container("pandas.Int64", (None,), (-(2**62), 2**62), True, lambda items: pd.Series(items, dtype="Int64")),
        Container("pandas.float", (None, *_REALS), far, False, lambda items: pd.Series(items, dtype="float64")),
        Container("pandas.boolean", (None,), (0, 1), True, lambda items: pd.Series(items, dtype="boolean")),
        Container("polars.Int32", (None,), (-(2**31), 2**31 - 1), True, lambda i: pl.Series(i, dtype=pl.Int32)),
        Container("polars.Float64", (None, *_REALS), far, False, lambda i: pl.Series(i, dtype=pl.Float64)),
        Container("arrow.int64", (None,), (-(2**62), 2**62), True, lambda items: pa.array(items, pa.int64())),
        Container("arrow.double", (None, *_REALS), far, False, lambda items: pa.array(items, pa.float64())),
        Container("arrow.bool", (None,), (0, 1), True, _arrow_truths),
        Container("masked", (None, *_REALS), far, False, _masked),
    ]  # fmt: skip
    for kind in ("int8", "uint8", "int32", "int64", "uint64"):
        info = np.iinfo(kind)
        ends = (int(info.min), int(info.max))
        found.append(
            Container(kind, ends, ends, True, lambda items, kind=kind: np.array(items, kind))
        )
    for kind in ("float16", "float32", "float64", "longdouble"):
        largest = float(min(np.finfo(kind).max, np.finfo("float64").max))
        odd = tuple(value for value in _REALS if not abs(value) > largest or math.isinf(value))
        found.append(
            Container(
                kind,
                odd,
                (-largest, largest),
                False,
                lambda items, kind=kind: np.array(items, kind),
            )
        )
    found.append(Container("bool", (), (0, 1), True, lambda items: np.array(items, bool)))
    return found


@dataclass(frozen=True)
class Call:
    """One statistic of two columns that differ in one value."""

    statistic: str
    keywords: dict[str, Any]
    container: Container
    first: tuple[Any, ...]
    second: tuple[Any, ...]

    def __str__(self) -> str:
        both = f"{list(self.first)} and {list(self.second)}"
        return f"discreet.{self.statistic}(…, {self.keywords}) of {self.container.name}: {both}"

    def ask(self, items: tuple[Any, ...], ledger: Paper) -> tuple[Any, ...]:
        """All that a call shows."""
        function = getattr(discreet, self.statistic)
        keywords = dict(self.keywords)
        positional = [keywords.pop(name) for name in ("q", "qs") if name in keywords]
        account = {"ledger": ledger, "study": "study"} if keywords.pop("charged", False) else {}
        found = function(self.container.make(list(items)), *positional, **keywords, **account)
        parts = (
            list(found.values()) if hasattr(found, "values") and callable(found.values) else [found]
        )
        shown = [_shown(part) for part in parts]
        return repr(found), str(shown)


def _shown(part: Any) -> list[Any]:
    fields = {name: str(value) for name, value in vars_of(part).items() if name != "_spread"}
    values = np.asarray(part.value, object).tolist()
    return [fields, values, str(part.interval("0.9")), str(part.interval("0.5"))]


def vars_of(part: Any) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__dataclass_fields__}


def call_of(random: Random, containers: list[Container]) -> Call:  # noqa: PLR0912 - one for each statistic
    """A random call."""
    container = random.choice(containers)
    bounds = random.choice([*_BOUNDS, (0, 1), (0, 10), (-7, 3)])
    lower, upper = Fraction(bounds[0]), Fraction(bounds[1])
    neighbors = random.choice(["change-one", "add-remove"])
    statistic = random.choice(_STATISTICS)
    keywords: dict[str, Any] = {
        "epsilon": random.choice(["0.1", "1", "1", "1/3", "3"]),
        "neighbors": neighbors,
    }
    if random.random() < 0.2:
        keywords["charged"] = True
    if statistic not in ("count", "proportion"):
        keywords["bounds"] = bounds
        if random.random() < 0.4:
            keywords["missing"] = str(random.choice([lower, upper, (lower + upper) / 2]))
    match statistic:
        case "quantile":
            keywords["q"] = random.choice(["0.1", "0.5", "0.99"])
        case "quantiles":
            keywords["qs"] = random.choice(
                [["0.5"], ["0.25", "0.5"], ["0.1", "0.2", "0.3", "0.4", "0.5"]]
            )
        case "histogram":
            keywords["bins"] = random.choice([1, 2, 5, 40])
            if random.random() < 0.3:
                keywords["bins"] = [float(lower), float((lower + upper) / 2), float(upper) + 1.0]
                del keywords["bounds"]
            if random.random() < 0.5:
                keywords = {
                    name: keywords[name]
                    for name in keywords
                    if name not in ("bins", "bounds", "missing")
                }
                keywords |= _categories(random, float(lower), float(upper))
        case "cdf":
            keywords["cells"] = random.choice([2, 16, 100])
        case "variance" | "std":
            keywords["sample"] = random.random() < 0.5
    if (
        statistic in ("mean", "variance", "std", "median", "quantile", "min", "max")
        and random.random() < 0.2
    ):
        keywords["method"] = "laplace"
    near = [
        lower,
        upper,
        lower,
        upper,
        (lower + upper) / 2,
        lower + (upper - lower) / 4,
        lower - 1,
        upper + 1,
        Fraction(0),
    ]
    low, high = container.ends
    values = [_held(value, low, high, container.whole) for value in near] + list(container.odd)
    if container.name.endswith(("bool", "boolean")):
        values = [True, False, *container.odd]
    style = random.choice(["any", "any", "any", "same", "odd"])
    pool = {"any": values, "same": values[:1], "odd": list(container.odd) or values}[style]
    size = random.choice([0, 1, 1, 2, 3, 5, 20, 100])
    items = [random.choice(pool) for _ in range(size)]
    at = random.randint(0, size)
    mine, other = random.choice(values), random.choice(values)
    first = (*items[:at], mine, *items[at:])
    second = (*items[:at], other, *items[at:]) if neighbors == "change-one" else tuple(items)
    if neighbors == "add-remove" and random.random() < 0.5:
        first, second = second, first
    return Call(statistic, keywords, container, first, second)


def _categories(random: Random, lower: float, upper: float) -> dict[str, Any]:
    """Keys in place of bins; those of another kind than the column are refused."""
    keys: list[Any] = random.choice(
        [[lower, upper], [0, 1, 2.5], [lower], [True, False], [True], ["x", "1"], ["true"]]
    )
    terms: dict[str, Any] = {"keys": keys}
    if random.random() < 0.5:
        terms["other"] = "rest"
    if random.random() < 0.3:
        terms["missing"] = keys[0]
    return terms


def _held(value: Fraction, low: float, high: float, whole: bool) -> Any:
    held = min(max(value, Fraction(low)), Fraction(high))
    return math.floor(held) if whole else float(held)


def compared(call: Call, seed: int | None) -> tuple[str, Fraction, Fraction]:
    """Why a call was refused, or what it lost and cost."""
    ledgers = Paper(), Paper()
    try:
        first = recorded(lambda: call.ask(call.first, ledgers[0]), seed=seed)
        second = recorded(lambda: call.ask(call.second, ledgers[1]), like=first)
    except (Astray, Leak) as error:
        raise Violation(f"{type(error).__name__}: {error}") from error
    charge = Fraction(call.keywords["epsilon"])
    for ledger, record in zip(ledgers, (first, second), strict=True):
        if call.keywords.get("charged") and record.error is None and ledger.spent() != charge:
            raise Violation(f"the ledger is charged {ledger.spent()}")
    return judged(
        first,
        second,
        *([charge] * 2 if first.error is None else [ledger.spent() for ledger in ledgers]),
    )


def searched(seed: int, numbers: Any, until: Callable[[], bool] = lambda: False) -> Tally:
    """A search over numbered calls."""
    tally, containers = Tally(), _containers()
    for number in numbers:
        if until():
            break
        call = call_of(Random(f"arrays/{seed}/{number}"), containers)
        try:
            refused, lost, charge = compared(call, number if number % 3 == 0 else None)
        except Violation as error:
            tally.questions += 1
            tally.violations.append(
                f"arrays/{seed}/{number}: {error}\n  {call}\n  again: make neighbours"
                f" CASE=arrays/{seed}/{number}"
            )
            continue
        if refused:
            tally.refused[refused] += 1
            continue
        tally.questions += 1
        key = (
            call.statistic + (" (laplace)" if "method" in call.keywords else ""),
            call.keywords["neighbors"],
        )
        tally.tightest[key] = max(tally.tightest[key], lost / charge)
    return tally
