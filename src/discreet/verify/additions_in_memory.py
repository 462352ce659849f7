"""The same outside studies: columns in memory, Algorithm 1, randomized response, and files."""

from __future__ import annotations

import math
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import arrays
from discreet.ask.expression import Column
from discreet.ask.query import Extreme
from discreet.draw.coin import Logistic
from discreet.draw.noted import noting
from discreet.engines.base import Cells, Present, Request, Rows, Squares, Total
from discreet.files.add_noise import add_noise
from discreet.ledger.ledger import Ledger
from discreet.parameters import Neighbors
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.release.statistics.response import randomized_response
from discreet.verify import reference
from discreet.verify.added import (
    Drawn,
    Expected,
    extreme_released,
    grid_within,
    log2,
    noisy,
    on_grid,
    quantile_released,
    refuse,
    sums_released,
    totals_of,
    with_noise,
)
from discreet.verify.additions import (
    RELATIONS,
    Dice,
    Proof,
    discoveries,
    profiles,
    questions,
    reports,
    sizes,
    sources,
    targets,
    totals,
)
from discreet.verify.additions_of_kinds import (
    accounts,
    chosen_sources,
    lengths,
    numbers_of_groups,
    shapes,
    terms,
)
from discreet.verify.loss import Part
from discreet.verify.parts import certified_twin

Values = list[Any]

_LEVEL = Fraction(19, 20)
_VALUE = Column("value", "number")


# -- columns ---------------------------------------------------------------------------------------


def _masked(values: Values) -> Any:
    return np.ma.MaskedArray(
        [value or 0 for value in values], [value is None for value in values], np.int64
    )


def _series(package: str, kind: str) -> Callable[[Values], Any]:
    """A function that makes a column of a package."""
    module = import_module(package)
    if package == "pandas":
        return lambda values: module.Series(values, dtype=kind)
    return lambda values: module.Series(values, dtype=getattr(module, kind))


def _array(values: Values, width: Any) -> Any:
    return np.array(values, width)


def _strided(values: Values) -> Any:
    return np.repeat(np.array(values, np.int64), 2)[::2]


def _chunks(values: Values) -> Any:
    return pa.chunked_array([pa.array(part, pa.float64()) for part in (values[:3], values[3:])])


def containers() -> Iterator[tuple[str, Callable[[Values], Any], dict[str, Any]]]:
    """Kinds of columns: how integers, some missing, make one, and how a certificate says it."""
    for width in ("int8", "int16", "int32", "int64", "uint8", "uint64"):
        yield f"numpy {width}", partial(_array, width=width), {"whole": True}
    yield "numpy bool", partial(_array, width="bool"), {"whole": True}
    for width in ("float32", "float64"):
        yield f"numpy {width}", partial(_array, width=width), {}
    yield "numpy, every second value", _strided, {"whole": True}
    yield "masked", _masked, {"whole": True, "nullable": True}
    yield "list", list, {}
    yield "tuple", tuple, {}
    yield "objects", partial(_array, width=object), {}
    yield "Arrow", lambda values: pa.array(values, pa.int32()), {"whole": True, "nullable": True}
    yield "Arrow chunks", _chunks, {}
    for package, kind, whole in (
        ("pandas", "Int64", True),
        ("pandas", "float64", False),
        ("polars", "Int16", True),
    ):
        with suppress(ImportError):
            terms = {"whole": True, "nullable": True} if whole else {}
            yield f"{package} {kind}", _series(package, kind), terms


def values_for(dice: Dice, name: str, size: int, terms: dict[str, Any]) -> Values:
    """Values that a container holds: with missing ones if it can, and odd floats."""
    if name == "numpy bool":
        return [bool(dice.below(2)) for _ in range(size)]
    low = 0 if "uint" in name else -40
    values: Values = [dice.between(low, 127) for _ in range(size)]
    if "int" in name and name != "polars Int16" and not terms.get("nullable"):
        return values
    if terms.get("whole") and not terms.get("nullable"):
        return values
    values = [value if dice.below(8) else None for value in values]
    if not terms.get("whole") and not name.startswith("Arrow"):
        odd = [math.nan, math.inf, -math.inf, -0.0, 1e300]
        values = [
            (
                dice.of(odd)
                if dice.below(9) == 0
                else None
                if value is None
                else value + dice.below(8) / 8
            )
            for value in values
        ]
    if name == "numpy float32":
        return [
            None if value is None else float(np.float32(min(max(value, -1e30), 1e30)))
            for value in values
        ]
    return values


_STATISTICS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("count", {}),
    *(
        (name, {"bounds": (0, 100)})
        for name in ("sum", "mean", "variance", "std", "mean_and_std", "min", "max", "median")
    ),
    ("sum", {"bounds": ("-20.5", "1000.25")}),
    ("sum", {"bounds": (-50, 100), "missing": 7}),
    ("mean", {"bounds": (-20, 120), "missing": 5}),
    ("variance", {"bounds": (0, 100), "missing": 50, "sample": True}),
    ("std", {"bounds": (-20, 100), "missing": 0}),
    ("proportion", {"missing": 1}),
    ("proportion", {}),
    ("proportion", {"missing": "0.25"}),
    ("quantile", {"bounds": (0, 100), "q": "0.9"}),
    ("quantile", {"bounds": ("0.5", "99.25"), "q": "0.2", "missing": 50, "confidence": None}),
    ("quantiles", {"bounds": (0, 100), "qs": ["0.25", "0.75"]}),
    ("summary", {"bounds": (0, 100)}),
)


def columns(proof: Proof, rounds: int) -> None:
    """Statistics of columns in memory, without a ledger, with one, and again from it."""
    dice, kinds = proof.dice, list(containers())
    with (
        tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
        _ledger(folder) as ledger,
    ):
        for turn in range(rounds):
            for kind, make, terms in kinds:  # every container, counted and added up
                values = values_for(dice, kind, 30 + dice.below(90), terms)
                for name, parameters in (_STATISTICS[0], _STATISTICS[1]):
                    asked = {
                        **parameters,
                        "neighbors": dice.of(RELATIONS),
                        "epsilon": dice.epsilon() * 4,
                    }
                    column(proof, name, kind, values, make, terms, asked, None)
            for place, (name, parameters) in enumerate(_STATISTICS):
                for neighbors in RELATIONS:
                    kind, make, terms = (
                        kinds[dice.below(len(kinds))]
                        if rounds == 1
                        else kinds[(place + turn) % len(kinds)]
                    )
                    values = values_for(dice, kind, 30 + dice.below(90), terms)
                    asked = {**parameters, "neighbors": neighbors, "epsilon": dice.epsilon() * 4}
                    column(
                        proof,
                        name,
                        kind,
                        values,
                        make,
                        terms,
                        asked,
                        ledger if dice.below(2) else None,
                    )


def _ledger(folder: str) -> Ledger:
    ledger = Ledger.open(Path(folder, "verify.ledger"), new=True)
    ledger.create("verify", 10**6)
    return ledger


def released_once(
    proof: Proof,
    call: Callable[..., Any],
    what: str,
    ledger: Ledger | None,
    *given: Any,
    **asked: Any,
) -> tuple[Any, Drawn]:
    """A release and its draws; with a ledger, also its charge, and the same again from it, free."""
    account: dict[str, Any] = {}
    if ledger is not None:
        account = {
            "ledger": ledger,
            "study": "verify",
            "request_id": f"{proof.dice.between(0, 2**90)}",
        }
    before = Fraction(0) if ledger is None else ledger.spent("verify")
    with noting() as notes:
        released = call(*given, **asked, **account)
    if ledger is not None:
        refuse(
            ledger.spent("verify") - before == asked["epsilon"],
            f"{what} is charged another epsilon than it uses",
        )
        with noting() as again:
            repeated = call(*given, **asked, **account)
        refuse(
            _numbers(repeated) == _numbers(released) and not again,
            f"{what}, asked again, is not the same",
        )
    proof.law.add(notes, what)
    return released, Drawn(notes)


def _numbers(released: Any) -> list[Any]:
    """The released numbers of a call."""
    parts = list(released.parts.values()) if hasattr(released, "parts") else [released]
    plain = [getattr(part, "value", getattr(part, "counts", part)) for part in parts]
    return [number for one in plain for number in np.ravel(np.asarray(one, object)).tolist()]


def column(
    proof: Proof,
    name: str,
    kind: str,
    values: Values,
    make: Callable[[Values], Any],
    terms: dict[str, Any],
    asked: dict[str, Any],
    ledger: Ledger | None,
) -> None:
    """Release a statistic of a column, and hold it against its values."""
    what = f"{name} of {kind}"
    _, parts = certified_twin(name, n=len(values), **terms, **asked)
    refuse(
        sum((part.loss for part in parts), Fraction()) <= asked["epsilon"],
        f"{what} has too little noise",
    )
    released, drawn = released_once(
        proof, getattr(arrays, name), what, ledger, make(values), **asked
    )
    flat = _numbers(released)
    expected = column_released(name, values, parts, drawn, asked, bool(terms.get("whole")))
    drawn.end(what)
    at = 0
    for one in expected:
        size = len(one.values)
        one.require(flat[at : at + size], what)
        at += size
    refuse(at == len(flat), f"{what} has other numbers than it must")
    proof.numbers += at


def _exact(number: int | str | Fraction) -> Fraction:
    """A parameter of the proof's own questions, exactly."""
    return Fraction(number)


def column_released(
    name: str,
    values: Values,
    parts: Sequence[Part],
    drawn: Drawn,
    asked: dict[str, Any],
    whole: bool,
) -> list[Expected]:
    """The numbers of a statistic of a column, from its values and the draws."""
    missing = None if asked.get("missing") is None else _exact(asked["missing"])
    rows = [{"value": value} for value in values]
    if name == "count":
        counted = [
            value
            for value in values
            if value is not False and reference.evaluate(_VALUE, {"value": value}) is not None
        ]
        return [Expected(with_noise([[len(counted)]], parts[0], drawn)[0])]
    bounds = Fraction(0), Fraction(1)
    if "bounds" in asked:
        bounds = _exact(asked["bounds"][0]), _exact(asked["bounds"][1])
    if name in ("median", "quantile", "quantiles", "min", "max"):
        return _ranks(name, rows, bounds, parts, drawn, asked, whole, missing)
    if name == "summary":
        return _summary(rows, bounds, parts, drawn, asked, whole)
    squares = name in ("variance", "std", "mean_and_std")
    grid = grid_within(*bounds, 22 if squares else 30, whole)
    value = on_grid(_VALUE, grid, missing)
    measures = (Present(value), Total(value), Squares(value))[: 3 if squares else 2]
    exact = reference.fetch(Request(measures), rows)
    totals = [[one] for one in totals_of(parts[0].law, grid, *(column[0] for column in exact))]
    sample = "+" if asked.get("sample") else ""
    names = (
        ["mean", "std"]
        if name == "mean_and_std"
        else ["mean" if name == "proportion" else name + sample]
    )
    statistics = {one: one for one in names}
    found = sums_released(statistics, grid, parts[0], exact, with_noise(totals, parts[0], drawn))
    return [found[one] for one in names]


def _summary(
    rows: Sequence[dict[str, Any]],
    bounds: tuple[Fraction, Fraction],
    parts: Sequence[Part],
    drawn: Drawn,
    asked: dict[str, Any],
    whole: bool,
) -> list[Expected]:
    """The count, mean and std from one set of sums, and three quartiles at a sixth of ε each."""
    grid = grid_within(*bounds, 22, whole)
    value = on_grid(_VALUE, grid, None)
    exact = reference.fetch(Request((Present(value), Total(value), Squares(value))), rows)
    totals = [[one] for one in totals_of(parts[0].law, grid, *(column[0] for column in exact))]
    names = (
        {name: name for name in ("mean", "std")}
        if parts[0].law == "joint"
        else {n: n for n in ("count", "mean", "std")}
    )
    sums = sums_released(names, grid, parts[0], exact, with_noise(totals, parts[0], drawn))
    counted = sums.get("count", Expected([exact[0][0]]))
    found = [Expected(counted.values, counted.within), sums["mean"], sums["std"]]
    sixth = {**asked, "epsilon": _exact(asked["epsilon"]) / 6}
    for place in range(3):
        found += _ranks(
            "median", rows, bounds, parts[1 + 3 * place : 4 + 3 * place], drawn, sixth, whole, None
        )
    return found


def _ranks(
    name: str,
    rows: Sequence[dict[str, Any]],
    bounds: tuple[Fraction, Fraction],
    parts: Sequence[Part],
    drawn: Drawn,
    asked: dict[str, Any],
    whole: bool,
    missing: Fraction | None,
) -> list[Expected]:
    epsilon, level = _exact(asked["epsilon"]), asked.get("confidence", _LEVEL)
    shares = len(asked["qs"]) if name == "quantiles" else 1
    bits = 5
    if name not in ("min", "max"):
        wanted = (
            int(8 * len(rows) * epsilon / shares).bit_length()
            if asked["neighbors"] == "change-one"
            else 0
        )
        bits = min(max(16, wanted), 18)
    grid = grid_within(*bounds, bits, whole)
    counts = reference.fetch(Request((Cells(on_grid(_VALUE, grid, missing)),)), rows)[0]
    if name in ("min", "max"):
        return [
            extreme_released(
                parts[0],
                Extreme(name, _VALUE, *bounds, whole, missing),  # type: ignore[arg-type]
                grid,
                counts,
                drawn,
            )
        ]
    step, kinds = iter(parts), 1 if level is None else 3
    several = [
        quantile_released(list(islice(step, kinds)), grid, counts, drawn, level)
        for _ in range(shares)
    ]
    if shares == 1:
        return several
    return [Expected(sorted(one.values[0] for one in several))]


# -- histograms, trees, octaves --------------------------------------------------------------------


def histograms(proof: Proof, rounds: int) -> None:
    """Histograms of bins and of keys, cumulative counts and octaves."""
    with (
        tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
        _ledger(folder) as ledger,
    ):
        for neighbors, _ in product(RELATIONS, range(rounds)):
            _of_cells(proof, neighbors, ledger)


def _of_cells(proof: Proof, neighbors: Neighbors, ledger: Ledger) -> None:
    dice = proof.dice
    for size in (2, 3, 65, 3_143):
        values = [dice.between(-50, 4_000) for _ in range(400)]
        edges = [2 * edge for edge in range(size + 1)]
        places: list[int | None] = [
            min(max(bisect_right(edges, value) - 1, 0), size - 1) for value in values
        ]
        for account in (None, ledger):
            _histogram(
                proof, np.array(values, np.int64), {"bins": edges}, places, size, neighbors, account
            )
    texts = [dice.often(lambda: dice.of(["Ash", "Elm", "Oak", "Yew"])) for _ in range(200)]
    keys = ["Ash", "Elm", "Oak"]
    for other in (None, "else"):
        rest = None if other is None else 3
        places = [keys.index(text) if text in keys else rest for text in texts]
        _histogram(
            proof,
            texts,
            {"keys": keys, "other": other},
            places,
            3 + (other is not None),
            neighbors,
            None,
        )
    for account in (None, ledger):
        _octaves(proof, neighbors, account)
        for cells in (8, 200) if account else (2_000,):
            _tree(proof, neighbors, cells, account)


def _histogram(
    proof: Proof,
    data: Any,
    asked: dict[str, Any],
    places: Sequence[int | None],
    size: int,
    neighbors: Neighbors,
    ledger: Ledger | None,
) -> None:
    epsilon, what = proof.dice.epsilon(), f"a histogram of {size:,} bins"
    asked = {**asked, "epsilon": epsilon, "neighbors": neighbors}
    released, drawn = released_once(proof, arrays.histogram, what, ledger, data, **asked)
    counts = [0] * size
    for place in places:
        if place is not None:
            counts[place] += 1
    replaced = neighbors == "change-one"
    halves = replaced and None not in places and size == 2
    scale = Fraction(1 if halves or not replaced else 2) / epsilon
    if halves:
        first = counts[0] + drawn.noise(1, scale, what)[0]
        expected = [first, sum(counts) - first]
    else:
        expected = [
            count + draw for count, draw in zip(counts, drawn.noise(size, scale, what), strict=True)
        ]
    Expected(expected).require(released.value, what)
    drawn.end(what)
    proof.numbers += size


def _octaves(proof: Proof, neighbors: Neighbors, ledger: Ledger | None) -> None:
    dice, epsilon = proof.dice, Fraction(2)
    values = [
        dice.often(lambda: dice.between(-(2**20), 2**20) / 2 ** dice.below(40), math.nan)
        for _ in range(200)
    ]
    asked: dict[str, Any] = {"epsilon": epsilon, "neighbors": neighbors}
    found, drawn = released_once(proof, arrays.bounds, "bounds", ledger, np.array(values), **asked)
    group = reference.octaves(_VALUE, False)
    exact = reference.fetch(Request((Rows(),), (group,)), [{"value": value} for value in values])[0]
    noise = drawn.noise(
        len(exact), Fraction(2 if neighbors == "change-one" else 1) / epsilon, "bounds"
    )
    Expected([count + draw for count, draw in zip(exact, noise, strict=True)]).require(
        found.counts, "bounds"
    )
    drawn.end("bounds")
    proof.numbers += len(exact)


def _tree(proof: Proof, neighbors: Neighbors, cells: int, ledger: Ledger | None) -> None:
    """Cumulative counts from a tree: all nodes have noise; the rest is their least squares fit."""
    dice, epsilon = proof.dice, proof.dice.epsilon()
    values = [dice.between(-30, 300) for _ in range(300)]
    asked: dict[str, Any] = {
        "bounds": (0, 255.5),
        "epsilon": epsilon,
        "neighbors": neighbors,
        "cells": cells,
    }
    found, drawn = released_once(
        proof, arrays.cdf, "a tree", ledger, np.array(values, np.int16), **asked
    )
    grid = grid_within(Fraction(0), Fraction(511, 2), cells.bit_length() - 1, True)
    rows = [{"value": value} for value in values]
    [counts] = reference.fetch(Request((Cells(on_grid(_VALUE, grid, None)),)), rows)[0]
    size, public = len(counts), neighbors == "change-one"
    flat = 64 if public else 16
    height = 1 if size <= flat else 2 if size <= 1024 else 3 if size <= 8192 else 4
    branching = next(root for root in range(1, size + 1) if root**height >= size)
    scale = Fraction((2 if public else 1) * height) / epsilon
    levels = []
    for level in range(height):
        block = branching ** (height - 1 - level)
        levels.append([range(start, min(start + block, size)) for start in range(0, size, block)])
    noise = iter(drawn.noise(sum(map(len, levels)), scale, "a tree"))
    nodes = [
        (cell, int(counts[cell.start : cell.stop].sum()) + next(noise))
        for level in levels
        for cell in level
    ]
    drawn.end("a tree")
    matrix = np.zeros((len(nodes), size))
    for index, (cell, _) in enumerate(nodes):
        matrix[index, cell.start : cell.stop] = 1
    fitted = _fitted(
        matrix, np.array([float(node) for _, node in nodes]), len(values) if public else None
    )
    rising = np.cumsum(fitted)
    if public:
        rising[-1] = len(values)
    below = np.clip(_isotonic(rising), 0, max(rising[-1], 0))
    Expected(below, 1e-6 * (1 + np.abs(rising).max())).require(
        found.value, f"cumulative counts at {size:,} points"
    )
    proof.numbers += size


def _fitted(matrix: Any, nodes: Any, total: int | None) -> Any:
    """The cells whose sums are nearest to the nodes, and add up to the total if it is public."""
    normal = matrix.T @ matrix
    found = np.linalg.solve(normal, matrix.T @ nodes)
    if total is None:
        return found
    ones = np.linalg.solve(normal, np.ones(len(found)))
    return found + ones * (total - found.sum()) / ones.sum()


def _isotonic(values: Any) -> Any:
    """The nearest rising numbers, by the max–min formula."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        total, size = value, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            before = blocks.pop()
            total, size = total + before[0], size + before[1]
        blocks.append((total, size))
    return np.concatenate([np.full(size, total / size) for total, size in blocks])


# -- Algorithm 1 -----------------------------------------------------------------------------------


def grid_of_floats(
    sensitivity: Fraction, epsilon: Fraction, changes: int
) -> tuple[Fraction, Fraction]:
    """The step of floats, and the scale of their noise in steps."""
    noise, moved = log2(sensitivity / epsilon), log2(sensitivity / changes)
    step = Fraction(2) ** max(min(noise, moved) - 20, min(noise - 30, moved - 7))
    return step, (sensitivity + changes * step) / step / epsilon


def _float_of(value: Any, step: Fraction, noise: int) -> float:
    number = (
        Fraction(0) if math.isnan(value) else Fraction(min(max(float(value), -_LARGEST), _LARGEST))
    )
    exact = (round(number / step) + noise) * step
    return float(min(max(exact, Fraction(-_LARGEST)), Fraction(_LARGEST)))


_LARGEST = float(np.finfo(np.float64).max)


def algorithm(proof: Proof, most: int) -> None:
    """Algorithm 1 on numbers, lists, arrays of all widths: with no ledger, with one, from it."""
    dice = proof.dice
    with (
        tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
        _ledger(folder) as ledger,
    ):
        for size in (1, 2, 33, 64, 65, 3_143, most):
            for width in (
                "int8",
                "uint16",
                "int32",
                "int64",
                "uint64",
                "float32",
                "float64",
                "list",
                "floats",
                "big",
            ):
                if size == most and width not in ("int64", "float64"):
                    continue
                answer, values = _answer(dice, width, size)
                _algorithm(
                    proof,
                    answer,
                    values,
                    width,
                    ledger if size <= 3_143 and dice.below(2) else None,
                )
        for width in ("int64", "float32"):  # longer than what has its noise at a time
            _long(proof, np.arange(_PART + 70).astype(width))
        for number in (0, 7, 10**6 + 1, 2**53 + 1, -(2**63), 2**80, 1.5, -1e-3, 1e300, math.nan):
            _algorithm(proof, number, [number], "one number", None)
            _algorithm(proof, [number], [number], "a list of one", ledger)


_PART = 2**19


def _long(proof: Proof, answer: Any) -> None:
    """A long answer of multiples of its step: none is rounded."""
    what, delta = f"laplace_mechanism of {answer.size:,} numbers", Fraction(answer.size, 2**10)
    with noting() as notes:
        released = laplace_mechanism(answer, sensitivity=delta, epsilon=Fraction(1, 2), changes=1)
    whole, drawn = answer.dtype.kind == "i", Drawn(notes)
    step, scale = (Fraction(1), 2 * delta) if whole else grid_of_floats(delta, Fraction(1, 2), 1)
    noise = np.array(drawn.noise(answer.size, scale, what), np.int64)
    exact = (
        answer + noise if whole else (answer.astype(np.float64) / float(step) + noise) * float(step)
    )
    refuse(
        bool((released == exact).all()),
        f"{what} is not the exact number plus the noise that was drawn for it",
    )
    drawn.end(what)
    proof.law.add(notes, what)
    proof.numbers += answer.size


def _answer(dice: Dice, width: str, size: int) -> tuple[Any, Values]:
    near = [2 ** dice.of([4, 20, 53, 60, 62]) for _ in range(size)]
    if width in ("list", "big"):
        values = [
            dice.between(-power * (2**30 if width == "big" else 1), power) for power in near[:4_000]
        ]
        return values, values
    if width == "floats":
        reals: Values = [dice.between(-power, power) / 2 ** dice.below(60) for power in near]
        return reals, reals
    if width.startswith("float"):
        array = np.array(
            [dice.between(-power, power) / 2 ** dice.below(60) for power in near], width
        )
    else:
        room = np.iinfo(width)
        ends = [room.min, room.min + 1, room.max]
        drawn = [
            dice.of([*ends, power]) if dice.below(8) == 0 else dice.between(-2 * power, 2 * power)
            for power in near
        ]
        array = np.array([min(max(one, room.min), room.max) for one in drawn], width)
    if size > 60 and dice.below(2):
        array = np.ascontiguousarray(np.repeat(array, 2))[::2]
    return array, array.tolist()


def _algorithm(
    proof: Proof, answer: Any, values: Values, width: str, ledger: Ledger | None
) -> None:
    dice, what = proof.dice, f"laplace_mechanism of {width}"
    delta = Fraction(1 + dice.below(40))
    epsilon = Fraction(1 + dice.below(999), 10 ** (3 + dice.below(5)))
    whole = all(isinstance(value, int) for value in values)
    changes = dice.of([None, 1, 3])
    terms: dict[str, Any] = {"sensitivity": delta, "epsilon": epsilon, "changes": changes}
    released, drawn = released_once(proof, laplace_mechanism, what, ledger, answer, **terms)
    single = not isinstance(answer, list | np.ndarray)
    number = [released] if single else released
    if whole:
        noise = drawn.noise(len(values), delta / epsilon, what)
        exact = [value + draw for value, draw in zip(values, noise, strict=True)]
        if isinstance(number, np.ndarray) and number.dtype == np.int64:
            exact = [min(max(one, -(2**63)), 2**63 - 1) for one in exact]
        Expected(exact).require(number, what)
    else:
        step, scale = grid_of_floats(delta, epsilon, changes or max(1, len(values)))
        noise = drawn.noise(len(values), scale, what)
        Expected(
            [
                _float_of(*pair)
                for pair in ((v, step, d) for v, d in zip(values, noise, strict=True))
            ]
        ).require(number, what)
    drawn.end(what)
    proof.numbers += len(values)


def textbook(proof: Proof, rounds: int) -> None:
    """The textbook's mechanisms of a column."""
    dice = proof.dice
    for _ in range(rounds):
        values = [dice.between(-20, 130) for _ in range(60 + dice.below(2))]
        held = sorted(min(max(value, 0), 100) for value in values)
        n, epsilon, data = len(held), dice.epsilon(), np.array(values, np.int64)
        spread = Fraction(n * sum(one * one for one in held) - sum(held) ** 2, n * n)
        middle = Fraction(held[(n - 1) // 2] + held[n // 2], 2)
        exact = {
            "variance": (spread, Fraction(100**2 * (n - 1), n * n)),
            "median": (middle, Fraction(100, 1 if n % 2 else 2)),
            "min": (Fraction(held[0]), Fraction(100)),
            "max": (Fraction(held[-1]), Fraction(100)),
        }
        for name, (value, delta) in exact.items():
            with noting() as notes:
                released = getattr(arrays, name)(
                    data, bounds=(0, 100), epsilon=epsilon, method="laplace"
                )
            step, scale = grid_of_floats(delta, epsilon, 1)
            drawn = Drawn(notes)
            [noise] = drawn.noise(1, scale, f"the textbook's {name}")
            Expected([float((math.floor(value / step) + noise) * step)]).require(
                [released.value], f"the textbook's {name}"
            )
            drawn.end(f"the textbook's {name}")
            proof.numbers += 1
        with noting() as notes:
            mean = arrays.mean(
                data, bounds=(0, 100), epsilon=epsilon, neighbors="add-remove", method="laplace"
            )
        drawn = Drawn(notes)
        counted = drawn.noise(1, 2 / epsilon, "the textbook's mean")[0]
        total = drawn.noise(1, 200 / epsilon, "the textbook's mean")[0]
        Expected([(sum(held) + total) / (n + counted)], 1e-9 * abs(mean.value) + 1e-9).require(
            [mean.value], "the textbook's mean"
        )
        drawn.end("the textbook's mean")


def responses(proof: Proof) -> None:
    """Randomized response: a bit stays if its coin falls heads."""
    dice = proof.dice
    for size in (1, 65, 3_143):
        bits, epsilon = [dice.below(2) for _ in range(size)], Fraction(1 + dice.below(30), 8)
        with noting() as notes:
            found = randomized_response(bits, epsilon=epsilon)
        drawn = Drawn(notes)
        note = drawn.coins(size, "randomized response")
        drawn.end("randomized response")
        right = (
            isinstance(note.parameter, Logistic)
            and note.parameter.exponent == epsilon
            and note.words is not None
        )
        refuse(right, "randomized response must toss coins with odds of e^ε")
        chance, uniform = (
            1 / (1 + math.exp(-epsilon)),
            note.words[:size].astype(np.float64) * 2.0**-64,  # type: ignore[index]
        )
        clear = np.abs(uniform - chance) > 1e-9
        refuse(
            bool(((uniform < chance) == note.drawn)[clear].all()),
            "a coin is not that of its random words",
        )
        Expected(
            [bool(bit) == bool(head) for bit, head in zip(bits, note.drawn.tolist(), strict=True)]
        ).require(found.bits, "randomized response")
        proof.numbers += size


# -- files -----------------------------------------------------------------------------------------


def files(proof: Proof, rows: int) -> None:
    """Noise on columns of files of every format, of integers and of floats."""
    from pyarrow import csv, parquet

    dice = proof.dice
    with (
        tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
        _ledger(folder) as ledger,
    ):
        whole = [
            dice.of([None, dice.between(-(2**62), 2**62), dice.between(-99, 99)])
            for _ in range(rows)
        ]
        other = [dice.between(0, 2**20) for _ in range(rows)]
        reals = [
            dice.of([None, math.inf, dice.between(-(2**50), 2**50) / 2**20]) for _ in range(rows)
        ]
        keys = [f"k{index}" for index in range(rows)]
        table = pa.table(
            {
                "whole": pa.array(whole, pa.int64()),
                "other": pa.array(other, pa.uint32()),
                "real": pa.array(reals, pa.float64()),
                "key": keys,
            }
        )
        parquet.write_table(table, Path(folder, "all.parquet"))
        csv.write_csv(table.select(["whole", "other", "key"]), Path(folder, "whole.csv"))
        np.save(Path(folder, "other.npy"), np.array(other, np.int32))
        Path(folder, "other.txt").write_text("".join(f"{one}\n" for one in other), "ascii")
        for name, chosen in (
            ("all.parquet", ["whole", "other"]),
            ("whole.csv", ["other", "whole"]),
            ("all.parquet", ["real", "other"]),
        ):
            asked: dict[str, Any] = {"columns": chosen, "keep": ["key"]}
            _file(
                proof,
                folder,
                name,
                ".parquet",
                [table[one].to_pylist() for one in chosen],
                asked,
                ledger if name == "all.parquet" else None,
            )
        for name in ("other.npy", "other.txt"):
            _file(proof, folder, name, Path(name).suffix, [other], {}, None)


def _file(
    proof: Proof,
    folder: str,
    name: str,
    suffix: str,
    exact: list[Values],
    asked: dict[str, Any],
    ledger: Ledger | None,
) -> None:
    dice, what = proof.dice, f"add_noise to {name}"
    delta = Fraction(1 + dice.below(9))
    epsilon = Fraction(1 + dice.below(999), 10 ** (3 + dice.below(4)))
    target = Path(folder, f"{dice.between(0, 2**90)}{suffix}")
    account: dict[str, Any] = {} if ledger is None else {"ledger": ledger, "study": "verify"}
    before = Fraction(0) if ledger is None else ledger.spent("verify")
    with noting() as notes:
        add_noise(
            Path(folder, name), target, sensitivity=delta, epsilon=epsilon, **asked, **account
        )
    refuse(
        ledger is None or ledger.spent("verify") - before == epsilon,
        f"{what} is charged another epsilon than it uses",
    )
    found, drawn = _columns_of(target, asked.get("columns", ())), Drawn(notes)
    floats = [any(isinstance(value, float) for value in column) for column in exact]
    step, scale = (Fraction(1), delta / epsilon)
    if any(floats):
        step, scale = grid_of_floats(delta, epsilon, len(exact) * len(exact[0]))
    for column, real, got in zip(exact, floats, found, strict=True):
        own = scale if real else scale * step
        noise = drawn.noise(len(column), own, what)
        pairs = list(zip(column, noise, strict=True))
        if real:
            expected: Values = [_float_of(value or 0, step, draw) for value, draw in pairs]
        else:
            expected = [
                min(max(noisy(value or 0, Fraction(1), draw), -(2**63)), 2**63 - 1)
                for value, draw in pairs
            ]
        Expected(expected).require(got, what)
        proof.numbers += len(column)
    drawn.end(what)
    proof.law.add(notes, what)


def _columns_of(target: Path, names: Sequence[str]) -> list[Values]:
    from pyarrow import parquet

    if target.suffix == ".parquet":
        table = parquet.read_table(target)
        return [table[name].to_pylist() for name in names]
    if target.suffix == ".npy":
        return [np.load(target).tolist()]
    return [[int(line) for line in target.read_text("ascii").split()]]


# -- all of it -------------------------------------------------------------------------------------


def topics(
    *, rounds: int, most: int, rows: int, groups: Sequence[int]
) -> list[tuple[str, Callable[[Proof], None]]]:
    """All that is proved, by title: so many rounds, answers of up to so many cells, and so on."""
    return [
        ("questions by relation, unit, condition and groups", partial(questions, rounds=rounds)),
        ("columns in memory, of every container", partial(columns, rounds=rounds)),
        ("histograms, cumulative counts, octaves", partial(histograms, rounds=rounds)),
        ("Algorithm 1 on numbers, lists and arrays", partial(algorithm, most=most)),
        ("the textbook's mechanisms", partial(textbook, rounds=rounds)),
        ("randomized response", responses),
        ("noise on columns of files", partial(files, rows=rows)),
        ("reports", partial(reports, rounds=rounds)),
        ("profiles", partial(profiles, rounds=rounds)),
        ("discoveries", partial(discoveries, rounds=rounds)),
        ("frames, Parquet and text files as sources", sources),
        ("totals near 10⁶, 2⁵³, 2⁶⁰, 2⁶³ and above", partial(totals, groups=groups)),
        ("answers of few groups, the same in several studies", numbers_of_groups),
        ("terms of a question, bins, units of many rows", terms),
        ("shares of analysts, and what is above a total", accounts),
        ("sources whose rows are chosen", chosen_sources),
        ("Algorithm 1 on arrays of several dimensions", shapes),
        ("columns and files of several blocks", partial(lengths, rows=most)),
        (f"answers in files, of up to {most:,} groups", partial(targets, most=most)),
        (f"answers of 64, 65, 3,143 and {most:,} groups", partial(sizes, most=most, rows=rows)),
    ]


SHORT = topics(rounds=1, most=70_000, rows=300, groups=(0, 3, 65))
"""What `discreet verify` proves."""
