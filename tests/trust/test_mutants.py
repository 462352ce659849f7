"""TRUST 34: mistakes that the tests must notice. `make mutants` tries all of them; here, that each
can still be tried.

One of them is tried to the end, on a copy, and must be killed. The control is a mistake that
changes nothing: it must be reported as a survivor, or the run would call everything killed.
"""

import ast
import importlib.util
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _tool():
    specification = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["mutants"] = module
    specification.loader.exec_module(module)
    return module


tool = _tool()
MUTANTS = tool.mutants()
QUICK = next(one for one in MUTANTS if one.name == "a charge is rounded down")


def source(mutant) -> str:
    return (ROOT / "src" / "discreet" / mutant.file).read_text("utf-8")


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{one.kind}: {one.name}" for one in MUTANTS])
def test_a_mutant_applies_to_todays_source_and_is_still_python(mutant):
    changed = mutant.applied(source(mutant))
    assert changed != source(mutant)
    compile(changed, mutant.file, "exec")


@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{one.kind}: {one.name}" for one in MUTANTS])
def test_the_tests_that_must_notice_exist(mutant):
    assert mutant.tests
    for test in mutant.tests if mutant.tests != tool.VERIFY else ():
        file, _, name = test.partition("::")
        assert not name or name in functions_of(file)


def test_every_kind_of_mistake_has_a_mutant_and_every_name_is_its_own():
    assert {one.kind for one in MUTANTS} == set(tool.KINDS)
    assert len({one.name for one in MUTANTS}) == len(MUTANTS)


def test_the_page_lists_every_mutant_and_no_survivor():
    page = (ROOT / "docs" / "mutants.md").read_text("utf-8")
    noticed = {
        one.name: "discreet verify` · " if one.tests == tool.VERIFY else "tests/" for one in MUTANTS
    }
    lines = {
        one.name: f"| {one.kind} | {one.name} | `{one.file}` | `{noticed[one.name]}"
        for one in MUTANTS
    }
    assert [name for name, line in lines.items() if line not in page] == []
    assert "nobody**" not in page


def test_a_text_that_is_not_there_exactly_once_is_an_error():
    for wrong in ("no such text", "return"):
        with pytest.raises(LookupError, match="must have the old text once"):
            replace(QUICK, old=wrong).applied(source(QUICK))


def test_a_mutant_is_killed_on_a_copy_and_one_that_changes_nothing_survives(tmp_path):
    folder = tool.copied(ROOT, tmp_path / "copy")
    before = source(QUICK)
    killed = tool.tried(folder, QUICK)
    assert killed.killer.startswith("tests/unit/test_parameters.py::test_")
    survivor = tool.tried(folder, replace(QUICK, new=f"{QUICK.old}  # as it was"))
    assert survivor.killer is None
    assert "**nobody**" in tool.report([survivor])
    assert source(QUICK) == before == (folder / "src" / "discreet" / QUICK.file).read_text("utf-8")


def test_discreet_verify_notices_at_least_forty_mistakes_by_itself():
    assert len([one for one in MUTANTS if one.tests == tool.VERIFY]) >= 40


def test_a_mutant_that_cannot_be_imported_is_an_error_and_not_a_kill(tmp_path):
    folder = tool.copied(ROOT, tmp_path / "copy")
    with pytest.raises(RuntimeError, match="did not get as far as a test"):
        tool.tried(folder, replace(QUICK, new="return )"))
