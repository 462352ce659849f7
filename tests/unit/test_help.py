"""What `help` says of a public function of arrays: one sentence, parameters, what comes back, an
example, a page.
"""

import inspect
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import discreet
from discreet import arrays

NAMES = [name for name in arrays.__all__ if name != "moment"]
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "statistics.md").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_help_says_what_is_needed(name: str) -> None:
    function = getattr(arrays, name)
    text = inspect.getdoc(function) or ""
    assert re.match(r"[A-Z][^.]+\.\n\n", text)
    described = text.partition("Parameters\n----------\n")[2].partition("Returns\n-------\n")[0]
    listed = [
        one.lstrip("*")
        for line in re.findall(r"^(\S[^:\n]*)", described, re.MULTILINE)
        for one in line.strip().split(", ")
    ]
    assert sorted(listed) == sorted(inspect.signature(function).parameters)
    returned = get_type_hints(function)["return"].__name__
    assert f"Returns\n-------\n{returned}\n" in text
    assert ">>> " in text
    [section] = re.findall(r'See docs/statistics.md, "(.+)"\.$', text)
    assert f"## {section}\n" in PAGE


@pytest.mark.parametrize("name", NAMES)
def test_no_parameter_is_of_any_type(name: str) -> None:
    hints = get_type_hints(getattr(arrays, name))
    assert [parameter for parameter, hint in hints.items() if hint is Any] == []


@pytest.mark.parametrize("name", ["laplace_mechanism", "randomized_response"])
def test_help_of_other_functions_says_what_is_needed(name: str) -> None:
    function = getattr(discreet, name)
    text = inspect.getdoc(function) or ""
    described = text.partition("Parameters\n----------\n")[2].partition("Returns\n-------\n")[0]
    listed = [line.lstrip("*") for line in re.findall(r"^(\S[^ \n]*)", described, re.MULTILINE)]
    assert listed == list(inspect.signature(function).parameters)
    [page] = re.findall(r"See docs/(\w+)\.md\.", text)
    assert (Path(__file__).resolve().parents[2] / "docs" / f"{page}.md").exists()


@pytest.mark.parametrize(
    "name", [name for name in dir(discreet.sensitivity) if name in discreet.sensitivity.__all__]
)
def test_no_sensitivity_takes_just_anything(name: str) -> None:
    hints = get_type_hints(getattr(discreet.sensitivity, name))
    assert [parameter for parameter, hint in hints.items() if hint in (Any, object)] == []
