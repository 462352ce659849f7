"""TRUST 39: the ledger keeps what a study promised, and another promise on the same budget is
refused.
"""

import pyarrow as pa
import pytest

import discreet
from discreet import InvalidParameter, Ledger, Policy, Study

DATA = pa.table(
    {"who": ["a", "b", "b"], "home": ["x", "x", "y"], "town": ["a", "b", "b"], "age": [1, 2, 3]}
)
GOOD = {"unit": "who", "max_rows": 4, "max_groups": 2, "neighbors": "change-one"}
HELD = {**GOOD, "size": None}


def policy(**changes) -> Policy:
    columns = {"age": {"bounds": [0, 10]}}
    return Policy(source=DATA, epsilon=1, columns=columns, version="1", **{**GOOD, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_rows": 20}, "max_rows = 4"),
        ({"max_rows": 2}, "max_rows = 4"),
        ({"max_groups": 3}, "max_groups = 2"),
        ({"max_groups": None}, "max_groups = 2"),
        ({"size": "public"}, "no size"),
        ({"neighbors": "add-remove"}, "neighbors = 'change-one'"),
        ({"unit": "home"}, "unit = 'who'"),
        (
            {"unit": "row", "max_rows": None, "max_groups": None},
            "max_groups = 2, max_rows = 4, unit = 'who'",
        ),
    ],
)
def test_another_promise_is_refused_with_what_differs_and_what_to_do(tmp_path, changes, words):
    with Study(policy(), ledger=tmp_path / "l") as study:
        study.sql("SELECT avg(age) FROM data", epsilon="0.9").release()
    with pytest.raises(
        InvalidParameter,
        match=f"promise what the ledger was created with: {words}; set it back, or",
    ):
        Study(policy(**changes), ledger=tmp_path / "l")
    with Study(policy(), ledger=tmp_path / "l") as study:
        assert study.ledger.verify() == 3


def test_bounds_keys_and_missing_may_change(tmp_path):
    """They are part of each question."""
    Study(policy(), ledger=tmp_path / "l").close()
    columns = {"age": {"bounds": [0, 99], "missing": 5}, "town": {"keys": ["a", "b"]}}
    Study(Policy(source=DATA, epsilon=1, columns=columns, **GOOD), ledger=tmp_path / "l").close()


def test_the_promise_is_in_the_chain(place):
    """Who edits it in the database is found out by `verify`, and by any opening that still walks
    over it.
    """
    with place.open(new=True) as ledger:
        ledger.create("s", 1, promise=policy().promise)
        assert ledger.promise("s") == HELD
    place.execute("UPDATE discreet_entry SET terms = replace(terms, '4', '40')")
    with pytest.raises(discreet.LedgerDamaged, match="entry 1 of study 's' was changed"):
        place.open()


def test_a_study_for_arrays_has_no_promise_and_takes_no_policy(tmp_path):
    with Ledger.open(tmp_path / "l", new=True) as ledger:
        ledger.create("study", 1)
        assert ledger.promise("study") is None
        discreet.sum([1, 2], bounds=(0, 3), epsilon="0.5", ledger=ledger, study="study")
        with pytest.raises(InvalidParameter, match=r"promise=policy\.promise"):
            Study(policy(), ledger=ledger)
