"""Values find their pictures by name: a release loads nothing that draws, and says what is missing."""

import subprocess
import sys

import pytest

import discreet
from discreet import InvalidParameter
from released import answer_of, group, numbers
from studies import Paper, select, study_of


def test_a_release_loads_nothing_that_draws():
    code = (
        "import sys, discreet; discreet.mean([1.0, 2.0], bounds=(0, 9), epsilon=1); import"
        " discreet.release.study; print([m for m in sys.modules if m.startswith(('altair',"
        " 'vl_convert', 'discreet.show'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_without_the_extra_figures_say_so_and_tables_are_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    study = study_of([{"age": 3}], Paper())
    plan = study.sql(select("count(*)", "WHERE age > 2"), epsilon=1)
    answer = answer_of([group(1, "k", ["a"])], {"n": ("count(*)", numbers([1], 1))})
    mean = discreet.mean([1.0, 2.0], bounds=(0, 9), epsilon=1)
    for value in (plan, answer, mean, study.ledger):
        with pytest.raises(
            InvalidParameter,
            match=r"figures need more packages; run: pip install 'discreet\[plot\]'",
        ):
            value.figure()
    for value in (plan, answer, mean, study):
        assert value._repr_html_().startswith("<div")
