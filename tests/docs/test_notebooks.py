"""The notebooks in examples/ run from the first cell to the last, and what a cell ends with can be
shown.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from discreet.course.exercises import parts_of
from discreet.course.parts import Number

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

SOLUTIONS = {
    "norm": ("abs(1) + abs(0) + abs(-3)", "-2"),
    "average_sensitivity": ("lambda n, R: R / n", "lambda n, R: R"),
    "histogram_sensitivity": ("2", "1"),
    "scale": ("2 / Fraction('0.1')", "10"),
    "one_county": ("20", "21.9"),
    "all_counties": ("181.06", "172.61"),
    "people": ("1415", "1000"),
    "people_alone": ("1 / (0.01 * 0.1) ** 2", "1415"),
    "factor": ("1.6487", "3"),
}
"""A right and a wrong answer for each name that a reader fills in."""

EXERCISES = ["norm", "1.2", "histogram", "scale", "1.5", "1.6", "factor"]


def code_of(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run(cells: list[str]) -> list[Any]:
    """What the cells end with, run in one namespace; a notebook would show it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for at, text in enumerate(cells):
        tree = ast.parse(text)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {at}", "exec"), names)  # noqa: S102 - our own notebook
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {at}", "eval"), names)  # noqa: S307
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    return shown


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(code_of(notebook))
    assert len(shown) > 2
    assert not any("00:00:00" in text for text in shown if text.startswith("<div"))


def said(cells: list[str], filling: int | None) -> list[str]:
    """The words of every check, with nothing, the right (0) or the wrong (1) answers filled in."""
    exercises = [text for text in cells if " = ...\n" in text]
    assert sum(text.count(" = ...\n") for text in exercises) == len(SOLUTIONS)
    if filling is not None:
        for name, answers in SOLUTIONS.items():
            exercises = [
                text.replace(f"{name} = ...\n", f"{name} = {answers[filling]}\n")
                for text in exercises
            ]
    return [line for text in run([cells[0], *exercises]) for line in text.splitlines()]


def test_exercises_are_open_until_they_are_filled_in() -> None:
    cells = code_of(FOLDER / "laplace-mechanism.ipynb")
    for filling, ending in ((None, ": still to fill in"), (0, ": right")):
        lines = said(cells, filling)
        assert len(lines) == len(SOLUTIONS)
        assert all(line.endswith(ending) for line in lines)
        assert list(dict.fromkeys(line.split(":")[0].split(",")[0] for line in lines)) == EXERCISES
    lines = said(cells, 1)
    assert len(lines) == len(SOLUTIONS)
    assert all(": not yet; " in line for line in lines)


def numbers_in(text: str) -> list[float]:
    """The numbers of a text; not those of roots, parts and references."""
    found = re.findall(r"(?<![\w.√\"])\d[\d_,]*(?:\.\d+)?(?![\w\"])", text)
    return [float(number.replace("_", "").rstrip(",").replace(",", "")) for number in found]


def given_away(cells: list[str]) -> list[str]:
    """The answers that stand in cells, as a number or as a formula."""
    numbers = [number for text in cells for number in numbers_in(text)]
    filled = {"1.6": {"alpha": "0.01", "epsilon": "0.1"}}
    parts = [part for exercise in EXERCISES for part in parts_of(exercise, filled.get(exercise))]
    names = [
        part.name
        for part in parts
        if isinstance(part, Number) and not all(map(part.judge, numbers))
    ]
    formulas = ("R / n", "R/n", "ln d", "log(3143)", "√2/", "sqrt(2) /", "exp(0.5)")
    return names + [formula for formula in formulas if any(formula in text for text in cells)]


def test_no_cell_gives_an_answer_away() -> None:
    notebook = FOLDER / "laplace-mechanism.ipynb"
    texts = ["".join(cell["source"]) for cell in json.loads(notebook.read_text("utf-8"))["cells"]]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        # draws may hit any number
        run([text for text in code_of(notebook) if "sample(" not in text])
    assert given_away([*texts, shown.getvalue()]) == []
    control = [*texts, "discreet.Laplace(20)", "it takes 1,414 people", "λ(ln d + 1)"]
    assert given_away(control) == ["scale", "suffolk", "laplace", "ln d"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_kept_without_its_outputs(notebook: Path) -> None:
    whole = json.loads(notebook.read_text("utf-8"))
    assert whole["nbformat"] == 4
    assert all(not cell.get("outputs") for cell in whole["cells"])
    ids = [cell["id"] for cell in whole["cells"]]
    assert len(set(ids)) == len(ids)


def test_there_are_three_notebooks() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == [
        "first-release",
        "laplace-mechanism",
        "whole-report",
    ]
