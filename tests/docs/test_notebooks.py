"""The notebooks in examples/ run from the first cell to the last, and what a cell ends with can be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

SOLUTIONS = {
    "norm": "abs(1) + abs(0) + abs(-3)",
    "average_sensitivity": "Fraction(R, n)",
    "histogram_sensitivity": "2",
    "scale": "2 / Fraction('0.1')",
    "one_county": "20",
    "all_counties": "20 * (log(3143) + 1)",
    "people": "sqrt(2) / (0.01 * 0.1)",
    "factor": "exp(0.5)",
}


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


def test_exercises_are_open_until_they_are_filled_in(capsys: pytest.CaptureFixture[str]) -> None:
    cells = code_of(FOLDER / "laplace-mechanism.ipynb")
    exercises = [text for text in cells if " = ...\n" in text]
    first = cells[0]
    run([first, *exercises])
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(SOLUTIONS)
    assert all(line.endswith("still to fill in") for line in said)
    for name, solution in SOLUTIONS.items():
        exercises = [text.replace(f"{name} = ...\n", f"{name} = {solution}\n") for text in exercises]
    run([first, *exercises])
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(SOLUTIONS)
    assert all(line.endswith(": right") for line in said)
    run([first, *[text.replace("factor = exp(0.5)", "factor = 3") for text in exercises]])
    assert "the theorem: not yet; you have 3" in capsys.readouterr().out


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_kept_without_its_outputs(notebook: Path) -> None:
    whole = json.loads(notebook.read_text("utf-8"))
    assert whole["nbformat"] == 4
    assert all(not cell.get("outputs") for cell in whole["cells"])
    ids = [cell["id"] for cell in whole["cells"]]
    assert len(set(ids)) == len(ids)


def test_there_are_three_notebooks() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["first-release", "laplace-mechanism", "whole-report"]
