"""The reference is what the code says: made by a script, and complete."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import discreet
from discreet import verify

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference.md"


def test_the_reference_is_what_its_script_prints() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "reference.py"))["page"]()
    assert PAGE.read_text("utf-8") == made, (
        "make it again: python tools/reference.py -o docs/reference.md"
    )


@pytest.mark.parametrize("name", [name for name in dir(discreet) if name != "__version__"])
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert f"## `{name}`\n" in PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    "module", [discreet.accuracy, discreet.sensitivity, verify], ids=lambda module: module.__name__
)
def test_every_name_of_a_public_module_is_in_the_reference(module: object) -> None:
    short = module.__name__.rpartition(".")[2]
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
    ]
    names = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
    missing = [name for name in names if f"### `{short}.{name}`\n" not in PAGE.read_text("utf-8")]
    assert names
    assert not missing
