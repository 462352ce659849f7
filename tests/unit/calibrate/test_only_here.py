"""How far one unit moves what is released stands in `sensitivity.terms` alone, and each of its
lines has a law.

What holds it there:

- Nobody else reads how many rows a unit has, in how many groups, and whether it is replaced:
  designs ask `UnitLimits` for Δ.
- `UnitLimits` are made where a question becomes a plan, and where an array becomes a question.
  Certificates and audits judge
  what is released from outside, and make their own.
- Where `UnitLimits` say three times as much, all noise is three times as large, of every statistic
  and on every way.
- An import contract (pyproject.toml) keeps engines, samplers, ledger, files and server away from Δ.
"""

import ast
import re
from functools import cache, cached_property
from pathlib import Path
from unittest import mock

import pytest

from discreet.calibrate.sensitivity import terms
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.release.statistics import families
from discreet.verify import report

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "discreet"
HOME = SOURCE / "calibrate" / "sensitivity" / "terms.py"
JUDGES = SOURCE / "verify"

JOINT = "laws/test_joint_designs_are_private.py::test_a_design_costs_at_most_epsilon_on_every_small_grid"
TIGHT = "laws/test_studies_are_private.py::test_some_pair_of_tables_makes_a_design_lose_all_of_its_share"
FAMILIES = "unit/release/statistics/test_families.py"
LAWS = {
    **dict.fromkeys(("lone", "joint", "centred", "squares", "pair", "Bernstein"), JOINT),
    **dict.fromkeys(("sum", "mean", "variance", "row_changes", "touched"), TIGHT),
    "ranks": (
        "laws/test_permute_and_flip_is_private.py::test_quantiles_are_private_at_every_admitted_pair_of_rates"
    ),
    "family": f"{FAMILIES}::test_a_row_costs_exactly_epsilon",
    **dict.fromkeys(
        ("columns", "column", "shared_rows"),
        f"{FAMILIES}::test_a_row_in_another_s_place_costs_at_most_epsilon",
    ),
    "profile": "laws/test_profiles_are_private.py::test_some_pair_of_tables_loses_all_of_epsilon",
    "tree": "laws/test_tree_is_private.py::test_designed_trees_lose_exactly_epsilon",
}
"""For each line of the table of designs, and for each Δ that `UnitLimits` give, the law that tries
to exceed it.
"""

FACTS = {"rows", "max_groups", "replaced", "factor"}
DELTAS = ["sum", "mean", "variance", "family", "shared_rows", "ranks", "tree", "profile"]


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """All of the source that names terms."""
    paths = [
        path for path in sorted(SOURCE.rglob("*.py")) if path != HOME and JUDGES not in path.parents
    ]
    texts = {path.relative_to(SOURCE): path.read_text("utf-8") for path in paths}
    return [
        (path, node)
        for path, text in texts.items()
        if "terms" in text.lower()
        for node in ast.walk(ast.parse(text))
    ]


def is_terms(node: ast.expr) -> bool:
    """Whether an expression is called terms, or is an attribute or a call of that name."""
    return ast.unparse(node).rstrip("()").rpartition(".")[2].lower().endswith("terms")


def test_nobody_else_reads_what_a_unit_may_do() -> None:
    read = [
        f"{path}: {ast.unparse(node)}"
        for path, node in nodes()
        if isinstance(node, ast.Attribute) and node.attr in FACTS and is_terms(node.value)
    ]
    assert read == []


def test_terms_are_made_where_a_question_becomes_a_plan() -> None:
    modules = {
        str(path)
        for path, node in nodes()
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "UnitLimits"
    }
    assert modules == {"release/split.py", "release/question.py"}


def test_a_delta_is_divided_by_epsilon_and_nothing_else_is_done_to_it() -> None:
    """Neither doubled nor halved nor added to; `cells` are groups, and no Δ."""
    changed = [
        f"{path}: {ast.unparse(node)}"
        for path, node in nodes()
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div)
        for side in (node.left, node.right)
        for part in [side.func if isinstance(side, ast.Call) else side]
        if isinstance(part, ast.Attribute) and part.attr != "cells" and is_terms(part.value)
    ]
    assert changed == []


@pytest.mark.slow
def test_noise_is_as_large_as_the_table_says() -> None:
    """With three times the Δ every scale is three times as large, and every rate a third, but for
    the rounding.
    """
    some = [
        row
        for row in report._certificates()
        if "GROUP" not in row[0] and "laplace_mechanism" not in row[0]
    ]
    before = {row[:2]: row[2]() for row in some}
    wrong = mock.patch.multiple(
        UnitLimits, **{name: tripled(name) for name in [*DELTAS, "row_changes", "touched"]}
    )
    anew = mock.patch.object(families.JointDesign, "_known_scales", property(lambda _: {}))
    with wrong, anew:
        after = {row[:2]: row[2]() for row in some}
    compared = 0
    for key, certificate in before.items():
        for row, two in zip(certificate.parts, after[key].parts, strict=True):
            scales = [
                [scale * step for scale, step in zip(part.scales, part.steps, strict=True)]
                for part in (row, two)
            ]
            rates = [[part.facts.get(name, 0) for name in ("over", "under")] for part in (two, row)]
            for small, large in [*zip(*scales, strict=True), *zip(*rates, strict=True)]:
                assert float(large) == pytest.approx(3 * float(small), rel=1e-4), key
                compared += bool(small)
    assert compared >= 100


def tripled(name: str) -> object:
    real = getattr(UnitLimits, name)
    if isinstance(real, cached_property):
        return property(lambda self: 3 * real.func(self))

    def wrong(*given: object) -> object:
        result = real(*given)
        return [3 * scale for scale in result] if isinstance(result, list) else 3 * result

    return wrong


def test_each_line_of_the_table_has_its_law() -> None:
    text = str(terms.__doc__).partition("the scales at ε = 1 are")[2].partition("Where a moves")[0]
    assert {
        *re.findall(r"^    (\w+) ", text, re.MULTILINE),
        *DELTAS,
        "column",
        "row_changes",
        "touched",
    } == LAWS.keys()
    for law in LAWS.values():
        file, _, name = law.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text("utf-8"), law
