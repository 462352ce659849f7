"""The same where questions of one kind seldom lead: a length, a limit, a term or a source.

groups     1 to 7 in several studies at one scale, and some more: short draws are drawn apart
           from long ones
terms      confidences, weights, intervals together, bins, truths as keys, units of many rows
accounts   an analyst's share is spent from the total too, and what is above a total is refused
sources    a relation, whose rows are chosen: their number is private, and nothing may read it
shapes     Algorithm 1 on arrays of several dimensions and orders, into an array of the caller
lengths    columns and files of more than one block, with values that are missing or out of
           bounds
"""

from __future__ import annotations

import math
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import arrays
from discreet.ask.policy import Policy
from discreet.draw.noted import noting
from discreet.errors import BudgetExceeded, DiscreetError, InvalidParameter
from discreet.files.add_noise import add_noise
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.release.study import Study
from discreet.verify.added import Drawn, refuse
from discreet.verify.additions import COLUMNS, RELATIONS, Proof, ask, people, study_of, table_of

_ADDED: dict[str, Any] = {"neighbors": "add-remove"}

_TINY = Fraction(1, 10**7)
"""An ε at which sums are drawn at a scale beyond 2⁴⁰, where no number may come twice."""


def numbers_of_groups(proof: Proof) -> None:
    """Answers of few groups, each in several studies, and of random numbers of groups up to 63."""
    dice = proof.dice
    for codes in range(1, 8):
        rows = people(dice, 30, codes)
        for _ in range(3):
            with study_of(table_of(rows), codes=codes, neighbors="add-remove") as study:
                proof.plan(
                    study.sql("SELECT sum(debt) FROM data GROUP BY code", epsilon=_TINY), rows
                )
    for low in (8, 16, 17, 32):
        codes = dice.between(low, 2 * low - 1)
        rows = people(dice, 60, codes)
        with study_of(table_of(rows), codes=codes, neighbors=dice.of(RELATIONS)) as study:
            for text in ("sum(age)", "count(*), avg(pay)", "avg(debt), stddev(age)"):
                # a question of its own each time: a repeat would draw nothing
                for turn in range(3):
                    ask(proof, study, rows, f"{text}|WHERE age > {turn} GROUP BY code")


def terms(proof: Proof) -> None:
    """Questions with terms of their own, bins and truths as keys, and units of up to nine rows."""
    dice = proof.dice
    bins = "bin(age, 0, 18, 40, 65, 120)"
    for neighbors in RELATIONS:
        limits = dice.between(5, 9)
        units: Sequence[dict[str, Any]] = (
            {},
            {"unit": "who", "max_rows": limits, "max_groups": dice.between(2, 4)},
        )
        for unit in units:
            rows = [
                {**row, "who": dice.often(lambda: f"u{dice.below(9)}")} for row in people(dice, 150)
            ]
            rows += [{**dice.of(rows), "age": dice.of([0, 18, 40, 65, 120])} for _ in range(30)]
            with study_of(table_of(rows), neighbors=neighbors, **unit) as study:
                for text, more in (
                    (
                        "median(age), quantile(pay, 0.9)",
                        {"confidence": dice.of(["0.5", "0.8", "0.999"])},
                    ),
                    (
                        "count(*) AS n, avg(age) AS a, avg(pay) AS p",
                        {"weights": {"a": dice.between(2, 900), "p": "0.1"}},
                    ),
                    (
                        "sum(age), stddev(pay), count(pay)",
                        {"simultaneous": True, "confidence": "0.9"},
                    ),
                ):
                    by = dice.of(["", f"GROUP BY {bins}", "GROUP BY well", "GROUP BY place"])
                    proof.plan(
                        study.sql(
                            " ".join(["SELECT", text, "FROM data", by]).rstrip(),
                            epsilon=dice.epsilon(),
                            **more,
                        ),
                        rows,
                    )
                many = [f"bin(age, {', '.join(map(str, range(0, end, 2)))})" for end in (120, 600)]
                for by in (bins, "well", f"{bins}, place", *many):
                    ask(proof, study, rows, f"count(*), sum(age)|GROUP BY {by}")


def accounts(proof: Proof) -> None:
    """An analyst's share is spent from the total, too.

    What is above either is refused, and nothing is drawn.
    """
    rows = people(proof.dice, 40)
    policy = Policy(
        source=table_of(rows), epsilon=2, version="0", columns=COLUMNS, neighbors="add-remove"
    )
    with (
        tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
        Study(policy, ledger=Path(folder, "study.ledger")) as study,
    ):
        study.sql("SELECT count(*) FROM data", epsilon="0.5").release()
        study.ledger.allot("ann", 1, study=study.name)
        study.sql("SELECT sum(age) FROM data", epsilon="0.75").release(analyst="ann")
        refuse(study.spent == Fraction(5, 4), "what an analyst spends is not spent of the study")
        for epsilon, analyst in (
            (Fraction(1, 2), "ann"),
            (1, None),
            (Fraction(3, 4) + Fraction(1, 10**9), None),
        ):
            _too_dear(study, epsilon, analyst)
        study.sql("SELECT max(age) FROM data", epsilon="0.75").release()
        refuse(study.remaining == 0, "a study does not add up to its total")
        _too_dear(study, Fraction(1, 10**9), None)
    proof.numbers += 3


def _too_dear(study: Study, epsilon: Any, analyst: str | None) -> None:
    plan = study.sql("SELECT avg(debt) FROM data", epsilon=epsilon)
    before = study.spent
    refused = False
    with noting() as notes:
        try:
            plan.release(analyst=analyst)
        except BudgetExceeded:
            refused = True
        except DiscreetError:  # tables that refuse what the ledger did not
            refused = False
    refuse(refused and not notes and study.spent == before, "more is spent than is left")


def chosen_sources(proof: Proof) -> None:
    """A filtered relation: the number of its rows is private, and has noise in every answer."""
    import duckdb

    dice = proof.dice
    rows = people(dice, 120)
    kept = [row for row in rows if row["age"] is not None and row["age"] >= 30]
    units: Sequence[dict[str, Any]] = ({}, {"unit": "who", "max_rows": 2})
    with duckdb.connect() as connection:
        connection.register("given", table_of(rows))
        connection.execute("CREATE TABLE people AS FROM given")
        for unit in units:
            relation = connection.sql("SELECT * FROM people WHERE age >= 30")
            with study_of(relation, neighbors="change-one", **unit) as study:
                asked = ["count(*)", "avg(pay)", "sum(pay), count(*)", "stddev(pay)"]
                for text in [*asked, *(["count(DISTINCT who)"] if unit else [])]:
                    plan = study.sql(
                        " ".join(["SELECT", text, "FROM data"]), epsilon=dice.epsilon()
                    )
                    refuse(plan.cost == plan.epsilon, f"{text} of a chosen source is free")
                    proof.plan(plan, kept)
                _needs_a_size(study)
                table = {"all": "SELECT count(*), avg(pay) FROM data"}
                report = study.report(table, epsilon=1).release()
                refuse(
                    report.record["rows"] is None,
                    "a report of a chosen source has a public number of rows",
                )
    with study_of(table_of(rows), neighbors="add-remove") as study:
        _needs_a_size(study)


def _needs_a_size(study: Study) -> None:
    """Refuse a plan for an error that follows from a private number of rows."""
    try:
        study.sql("SELECT avg(pay) FROM data", within="0.5")
    except InvalidParameter:
        return
    raise InvalidParameter("a plan for a given error reads a private number of rows")


def shapes(proof: Proof) -> None:
    """Algorithm 1 on arrays of 0, 2 and 3 dimensions, in other orders, and into a given array."""
    dice = proof.dice
    for make in (
        lambda: np.arange(40 * 50).reshape(40, 50),
        lambda: np.asfortranarray(np.arange(40 * 50).reshape(40, 50)),
        lambda: np.arange(4_000).reshape(20, 10, 20)[:, ::-1, ::2],
        lambda: np.array(7),
    ):
        for kind in ("int64", "int32", "float64"):
            for into in (None, "new", "itself"):
                answer = make().astype(kind)
                if into == "itself" and kind == "int32":
                    continue
                _of_shape(
                    proof,
                    answer,
                    into,
                    Fraction(1 + dice.below(9)),
                    Fraction(1 + dice.below(99), 10**5),
                )


def _of_shape(
    proof: Proof, answer: Any, into: str | None, delta: Fraction, epsilon: Fraction
) -> None:
    what = "laplace_mechanism of an array with a shape"
    whole = answer.dtype.kind == "i"
    before = answer.copy()
    out = (
        None
        if into is None
        else answer
        if into == "itself"
        else np.zeros(answer.shape, answer.dtype)
    )
    out = out if out is None or whole is False else out.astype(np.int64, copy=False)
    with noting() as notes:
        found = laplace_mechanism(answer, sensitivity=delta, epsilon=epsilon, changes=1, out=out)
    drawn = Drawn(notes)
    step, scale = _grid(whole, delta, epsilon)
    noise = np.array(drawn.noise(before.size, scale, what), np.int64).reshape(before.shape)
    steps = before if whole else np.rint(before / float(step)).astype(np.int64)
    released = (steps + noise) * (1 if whole else float(step))
    same = bool((np.asarray(found) == released).all()) and (out is None or found is out)
    refuse(same, f"{what} is not the exact number plus the noise that was drawn for it")
    drawn.end(what)
    proof.law.add(notes, what)
    proof.numbers += before.size


def _grid(whole: bool, delta: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    from discreet.verify.additions_in_memory import grid_of_floats

    return (Fraction(1), delta / epsilon) if whole else grid_of_floats(delta, epsilon, 1)


def lengths(proof: Proof, rows: int) -> None:
    """Columns in memory and files of more than one block."""
    _long_columns(proof, rows)
    _long_files(proof)


def _long_columns(proof: Proof, rows: int) -> None:
    """Whole numbers out of bounds, and floats with missing values, beyond the first block."""
    epsilon, more = proof.dice.epsilon(), _ADDED
    seeds = np.array([proof.dice.below(10**6) for _ in range(99)])
    values = np.resize(seeds, rows) % 997 - 300
    clamped, edges = np.clip(values, 0, 500), [0, 100, 250, 500]
    floats = np.where(values % 7 == 0, math.nan, np.where(values % 11 == 0, math.inf, values))
    present = floats[~np.isnan(floats)]
    places = [min(max(bisect_right(edges, one) - 1, 0), 2) for one in present.tolist()]
    calls: list[tuple[str, Callable[[], Any], list[int]]] = [
        (
            "sum",
            lambda: arrays.sum(values, bounds=(0, 500), epsilon=epsilon, **more),
            [int(clamped.sum())],
        ),
        ("count", lambda: arrays.count(floats, epsilon=epsilon, **more), [present.size]),
        (
            "histogram",
            lambda: arrays.histogram(floats, bins=edges, epsilon=epsilon, **more),
            np.bincount(places, minlength=3).tolist(),
        ),
    ]
    for what, call, exact in calls:
        with noting() as notes:
            released = call()
        drawn = Drawn(notes)
        scale = Fraction(500 if what == "sum" else 1) / epsilon
        noise = drawn.noise(len(exact), scale, what)
        found = np.ravel(np.asarray(released.value, object)).tolist()
        right = [one + draw for one, draw in zip(exact, noise, strict=True)]
        refuse(
            found == right, f"the {what} of {rows:,} values is not the exact number plus its noise"
        )
        drawn.end(what)
        proof.law.add(notes, what)
        proof.numbers += len(exact)


def _long_files(proof: Proof) -> None:
    """A file whose second part is written after the first."""
    from pyarrow import parquet

    from discreet.files.columns import BATCH

    rows, epsilon, what = BATCH // 2 + 999, Fraction(1, 10**4), "add_noise to a long file"
    with tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder:
        whole, real = np.arange(rows), np.arange(rows) / 8.0
        parquet.write_table(pa.table({"whole": whole, "real": real}), Path(folder, "a.parquet"))
        with noting() as notes:
            asked: dict[str, Any] = {
                "sensitivity": 1,
                "epsilon": epsilon,
                "columns": ["whole"],
                "keep": ["real"],
            }
            add_noise(Path(folder, "a.parquet"), Path(folder, "b.parquet"), **asked)
        drawn = Drawn(notes)
        noise = np.array(drawn.noise(rows, 1 / epsilon, what), np.int64)
        found = parquet.read_table(Path(folder, "b.parquet"))["whole"].to_numpy()
        refuse(
            bool((found == whole + noise).all()),
            f"{what} is not the exact numbers plus their noise",
        )
        drawn.end(what)
        proof.law.add(notes, what)
        proof.numbers += rows
