import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet
from discreet import (
    BudgetExceeded,
    Count,
    InvalidParameter,
    Ledger,
    Mean,
    Policy,
    QueryRefused,
    Study,
)
from discreet.ask.expression import Column
from discreet.calibrate.ball import nearest
from discreet.engines.base import Exact
from discreet.engines.duckdb import DuckDB
from discreet.engines.sql.dialect import LONGEST_TEXT
from discreet.release import discovery
from discreet.release.discovery import Keeping, keeping, rule_of
from discreet.release.mechanism import kept_keys
from discreet.release.tape import Tape, taping

# The rule.


def rate(rule: Keeping, units: int) -> float:
    chance = rule.chance(units)
    return float(chance) if isinstance(chance, Fraction) else nearest(chance)


@pytest.mark.parametrize("epsilon", ["1/100", "1/10", "1/2", "1", "7/3", "20"])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "1/100", "1/3", "0.4999"])
def test_the_closed_form_is_the_recursion(epsilon, delta):
    rule = keeping(Fraction(epsilon), Fraction(delta))
    with mpmath.workdps(60):
        growth = mpmath.exp(mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        failing = mpmath.mpf(Fraction(delta).numerator) / Fraction(delta).denominator
        expected = mpmath.mpf(0)
        for units in range(rule.last + 4):
            assert rate(rule, units) == pytest.approx(float(expected), rel=1e-14)
            assert (expected >= 1) == (units > rule.last)
            expected = min(
                growth * expected + failing, 1 - (1 - expected - failing) / growth, mpmath.mpf(1)
            )


@pytest.mark.parametrize(
    ("epsilon", "delta", "half", "nearly", "certain"),
    [
        ("1", "1e-5", 12, 16, 23),
        ("1", "1e-8", 19, 23, 37),
        ("0.5", "1e-6", 26, 34, 51),
        ("0.1", "1e-6", 109, 148, 218),
    ],
)
def test_so_many_units_are_needed(epsilon, delta, half, nearly, certain):
    rule = keeping(Fraction(epsilon), Fraction(delta))

    def first(chance: float) -> int:
        return next(units for units in range(1000) if rate(rule, units) >= chance)

    assert (first(0.5), first(0.99), rule.last + 1) == (half, nearly, certain)
    assert rule.chance(certain) == 1


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1e6", "1e-300"), ("1e-9", "1e-300"), ("1e-9", "0.49"), ("1e6", "0.49")]
)
def test_the_rule_holds_at_the_ends_of_the_parameters(epsilon, delta):
    rule = keeping(Fraction(epsilon), Fraction(delta))
    assert 1 <= rule.bend <= rule.last
    some = sorted({1, 2, rule.bend, rule.bend + 1, rule.last, rule.last + 1})
    rates = [rate(rule, units) for units in some]
    assert rates == sorted(rates)
    assert rates[0] >= 0
    assert rates[-1] == 1
    assert len(kept_keys(Exact({index: index for index in some}), rule.chance)) <= len(some)


def test_keys_are_sorted_and_do_not_keep_the_order_of_the_data():
    rule = keeping(Fraction(1), Fraction(1, 10**6))
    assert kept_keys(Exact({"b": 900, "é": 100, "a": 100, "Z": 900}), rule.chance) == [
        "Z",
        "a",
        "b",
        "é",
    ]
    assert kept_keys(Exact({10: 90, 9: 80, -3: 90}), rule.chance) == [-3, 9, 10]
    assert kept_keys(Exact({}), rule.chance) == []


def test_what_was_tossed_is_on_the_tape():
    rule, tape = keeping(Fraction(1), Fraction(1, 10**6)), Tape()
    units = Exact[dict[str | int, int]]({f"k{index}": index % 25 + 1 for index in range(500)})
    with taping(tape):
        first = kept_keys(units, rule.chance)
    with taping(Tape(tape.written())):
        assert kept_keys(Exact({}), rule.chance) == first
    assert 0 < len(first) < 500


# The engine.


def test_units_are_counted_and_null_is_no_key():
    table = pa.table({"who": [1, 1, 1, 2, 2, None], "key": ["a", "a", "b", "a", None, "c"]})
    for limit in (2, 3):
        assert DuckDB(table).discover(Column("key", "text"), "who", limit).reveal() == {
            "a": 2,
            "b": 1,
        }
    assert DuckDB(table).discover(Column("key", "text"), None, 1).reveal() == {
        "a": 3,
        "b": 1,
        "c": 1,
    }
    assert DuckDB(table.slice(0, 0)).discover(Column("key", "text"), "who", 2).reveal() == {}


def test_nothing_about_the_data_raises():
    keys = ["", " ", "\0", "a\0b", "🦊", "'; --", "\n", "x" * LONGEST_TEXT]
    texts = pa.table({"key": [*keys, "x" * 10**5, None]})  # a longer text is missing
    assert DuckDB(texts).discover(Column("key", "text"), None, 1).reveal() == dict.fromkeys(keys, 1)
    numbers = pa.table(
        {"key": pa.array([0, -1, 2**53 - 1, 2**53, -(2**63), 2**63 - 1, None], pa.int64())}
    )
    assert DuckDB(numbers).discover(Column("key", "number"), None, 1).reveal() == {
        0: 1,
        -1: 1,
        2**53 - 1: 1,
    }
    large = pa.table({"key": pa.array([0, 2**64 - 1], pa.uint64())})
    assert DuckDB(large).discover(Column("key", "number"), None, 1).reveal() == {0: 1}
    decimals = DuckDB("SELECT unnest([1, 2, 99999999999999999999]::DECIMAL(30, 0)[]) AS key")
    assert decimals.discover(Column("key", "number"), None, 1).reveal() == {1: 1, 2: 1}


# A study.

TOML = """
source = "visits.parquet"
unit = "patient"
max_rows = 2
neighbors = "add-remove"
epsilon = "3"
delta = "1e-9"
version = "2024-06"

[columns]
county = { keys = "discover", other = "elsewhere" }
clinic = { keys = "discover" }
age = { bounds = [0, 120] }
sex = { keys = ["f", "m"] }
"""


def visits(per_county: int = 200) -> pa.Table:
    """Everybody in one of two counties and clinics, and one patient who is alone in theirs."""
    people = 2 * per_county
    return pa.table(
        {
            "patient": [*range(people), 10**6],
            "county": [*("North", "South") * per_county, "Nowhere"],
            "clinic": [*(7, 5) * per_county, 13],
            "age": [40] * (people + 1),
            "sex": ["f"] * (people + 1),
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    parquet.write_table(visits(), tmp_path / "visits.parquet")
    (tmp_path / "study.toml").write_text(TOML, "utf-8")
    return tmp_path / "study.toml"


def study_of(tmp_path: Path, **terms: Any) -> Study:
    told = {
        "columns": {"county": {"keys": "discover"}, "age": {"bounds": (0, 120)}},
        "delta": "1e-6",
        **terms,
    }
    return Study(
        Policy(source=visits(), epsilon=3, version="1", **told), ledger=tmp_path / "ledger"
    )


def test_keys_are_discovered_then_grouped_by(place):
    with discreet.open(place) as study:
        with pytest.raises(
            QueryRefused, match=r'discover its keys first: study.discover\("county", epsilon=…\)'
        ):
            study.by("county").ask(people=Count()).plan(epsilon="0.1")
        with pytest.raises(QueryRefused, match="discover its keys first"):
            study.sql("SELECT county, count(*) FROM visits GROUP BY county", epsilon="0.1")
        assert study.discovered is None
        assert study.spent == 0

        found = study.discover("county", epsilon=2)
        assert found["county"] == ("North", "South")
        assert (found.epsilon, found.delta, study.spent) == (2, Fraction(1, 10**9), 2)
        assert repr(found) == "Discovered(2 keys of county · (ε, δ) = (2, 1e-09))"
        with pytest.raises(InvalidParameter, match="the discovery was of county, got 'clinic'"):
            found["clinic"]

        answer = (
            study.by("county").ask(people=Count(), age=Mean("age")).plan(epsilon="0.9").release()
        )
        assert answer["county"] == ["North", "South", "elsewhere"]
        assert answer.record["discovered"] == {
            "columns": ["county"],
            "epsilon": "2",
            "delta": "1/1000000000",
        }
        assert repr(answer).endswith("· keys of county discovered at (ε, δ) = (2, 1e-09)")
        assert study.policy.to_toml() == Policy.load(place).to_toml()
        with pytest.raises(QueryRefused, match="discover its keys first"):
            study.by("clinic").ask(people=Count()).plan(epsilon="0.1")

        plain = study.by("sex").ask(people=Count()).plan(epsilon="0.05").release()
        assert "discovered" not in plain.record
        assert "δ" not in repr(plain)


def test_another_opening_knows_the_keys_and_asking_again_is_free(place):
    with discreet.open(place) as study:
        first = study.discover("county", "clinic", epsilon=2)
        plan = study.by("county").ask(people=Count()).plan(epsilon="0.1")
        answer = plan.release()
    with discreet.open(place) as study:
        assert study.discovered == first
        assert (
            study.by("county").ask(people=Count()).plan(epsilon="0.1").release().content
            == answer.content
        )
        assert study.by("clinic").ask(people=Count()).plan(epsilon="0.1").release()["clinic"] == [
            5,
            7,
        ]
        before = study.spent
        assert study.discover("CLINIC", "county", "county", epsilon="2.0") == first
        assert study.spent == before


def test_a_second_discovery_is_refused_and_nothing_is_spent(place):
    with discreet.open(place) as study:
        study.discover("county", epsilon=1)
        for columns, epsilon in [(("clinic",), 1), (("county",), "1/2"), (("county", "clinic"), 1)]:
            with pytest.raises(
                QueryRefused, match=r"the delta of this study is spent.*Nothing was spent"
            ):
                study.discover(*columns, epsilon=epsilon)
        assert study.spent == 1
        assert study.discover("county", epsilon=1)["county"] == ("North", "South")


def test_new_data_does_not_bring_delta_back(place):
    with discreet.open(place) as study:
        study.discover("county", epsilon=1)
    place.write_text(TOML.replace("2024-06", "2024-07"), "utf-8")
    with discreet.open(place) as study:
        with pytest.raises(QueryRefused, match="the delta of this study is spent"):
            study.discover("county", epsilon=1)
        assert study.by("county").ask(people=Count()).plan(epsilon="0.1").release()["county"][
            :2
        ] == ["North", "South"]
    place.write_text(TOML.replace("1e-9", "2e-9"), "utf-8")
    with (
        discreet.open(place) as study,
        pytest.raises(QueryRefused, match="the delta of this study is spent"),
    ):
        study.discover("county", epsilon=1)


def test_of_many_at_once_one_discovery_is_made(place):
    discreet.open(place).close()

    def ask(columns: tuple[str, ...]) -> Any:
        with discreet.open(place) as study:
            try:
                return study.discover(*columns, epsilon="0.5")
            except QueryRefused as error:
                return str(error)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, [("county",), ("clinic",)] * 4))
    made = [one for one in found if not isinstance(one, str)]
    assert 1 <= len(made) <= 4
    assert all(one == made[0] for one in made)
    with discreet.open(place) as study:
        assert study.spent == Fraction(1, 2)


def test_a_discovery_that_another_one_overtakes_is_refused_in_a_sentence(place, monkeypatch):
    with discreet.open(place) as study, discreet.open(place) as other:
        planned = discovery.discovery_plan

        def overtaken(*asked: Any) -> Any:
            plan = planned(*asked)
            monkeypatch.undo()
            other.discover("clinic", epsilon="0.5")
            return plan

        monkeypatch.setattr(discovery, "discovery_plan", overtaken)
        with pytest.raises(QueryRefused, match="the delta of this study is spent"):
            study.discover("county", epsilon="0.5")
        assert study.spent == Fraction(1, 2)


def test_after_a_crash_the_same_discovery_goes_on_where_it_stopped(place, monkeypatch):
    with discreet.open(place) as study:
        with monkeypatch.context() as broken:
            broken.setattr(discovery, "kept_keys", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                study.discover("county", epsilon=1)
        assert study.spent == 1
        with pytest.raises(QueryRefused, match="the delta of this study is spent"):
            study.discover("clinic", epsilon=1)
        assert study.discover("county", epsilon=1)["county"] == ("North", "South")
        assert study.spent == 1


@pytest.mark.parametrize(
    ("terms", "columns", "epsilon", "error", "message"),
    [
        ({"delta": None}, ["county"], 1, QueryRefused, 'needs a delta; declare delta = "1e-6"'),
        ({"delta": "1/2"}, ["county"], 1, QueryRefused, "delta must be below 1/2"),
        ({}, ["age"], 1, QueryRefused, r'declare age = \{ keys = "discover" \}'),
        ({}, ["county", "age"], 1, QueryRefused, r'declare age = \{ keys = "discover" \}'),
        ({}, ["clinic"], 1, QueryRefused, "the policy declares no column 'clinic'"),
        ({"unit": "patient", "max_rows": 1}, ["patient"], 1, QueryRefused, "may only be counted"),
        ({}, [], 1, InvalidParameter, "discover takes the names of columns"),
        ({}, [["county"]], 1, InvalidParameter, "discover takes the names of columns"),
        ({}, ["county"], 0, InvalidParameter, "epsilon"),
        ({}, ["county"], "lots", InvalidParameter, "epsilon"),
        ({}, ["county"], 4, BudgetExceeded, "3"),
        (
            {"columns": {"age": {"keys": "discover"}, "x": {}}},
            ["age"],
            1,
            InvalidParameter,
            "columns.x",
        ),
    ],
)
def test_what_cannot_be_discovered_is_refused_before_any_spend(
    tmp_path, terms, columns, epsilon, error, message
):
    with study_of(tmp_path, **terms) as study:
        with pytest.raises(error, match=message):
            study.discover(*columns, epsilon=epsilon)
        assert study.spent == 0
        assert study.ledger.answer(study=study.name, request_id=discovery.REQUEST) is None


def test_only_texts_and_whole_numbers_can_be_discovered(tmp_path):
    table = pa.table({"x": [1.5], "well": [True]})
    for name in table.column_names:
        policy = Policy(source=table, epsilon=1, delta="1e-6", columns={name: {"keys": "discover"}})
        with (
            Study(policy, ledger=tmp_path / name) as study,
            pytest.raises(
                InvalidParameter, match=f"columns.{name}.keys: only texts and whole numbers"
            ),
        ):
            study.discover(name, epsilon=1)


def test_a_column_left_to_a_discovery_is_declared_so():
    columns = {"county": {"keys": "discover", "other": "elsewhere"}}
    policy = Policy(source="x.csv", epsilon=1, delta="1e-6", columns=columns)
    assert policy.columns["county"].discover
    assert policy.columns["county"].keys is None
    assert 'keys = "discover"' in policy.to_toml()
    assert list(policy.with_keys({"county": ["a", "elsewhere"]}).columns["county"].keys) == ["a"]
    numbered = Policy(
        source="x.csv", epsilon=1, columns={"code": {"keys": "discover", "other": "1"}}
    )
    assert list(numbered.with_keys({"code": [Fraction(1), Fraction(2)]}).columns["code"].keys) == [
        2
    ]
    for wrong in ({"bins": [0, 1]}, {"missing": "unknown"}):
        with pytest.raises(InvalidParameter, match=r"columns\.county\."):
            Policy(source="x.csv", epsilon=1, columns={"county": {"keys": "discover", **wrong}})


def test_a_discovery_that_finds_nothing_says_so(tmp_path):
    with study_of(tmp_path, delta="1e-12") as study:
        found = study.discover("county", epsilon="0.001")
        assert found["county"] == ()
        with pytest.raises(QueryRefused, match="its discovery found no key with enough units"):
            study.by("county").ask(people=Count()).plan(epsilon="0.1")


def test_a_csv_file_can_be_discovered(tmp_path):
    lines = [
        "person,town",
        *(f"{person},{town}" for person in range(300) for town in ("Ulm", "Kiel")),
    ]
    (tmp_path / "people.csv").write_text("\n".join([*lines, "300,Nowhere", "301,"]), "utf-8")
    policy = Policy(
        source=str(tmp_path / "people.csv"),
        epsilon=2,
        delta="1e-9",
        unit="person",
        max_rows=4,
        max_groups=2,
        columns={"town": {"keys": "discover"}},
    )
    assert rule_of(policy, 1, Fraction(2), Fraction(1, 10**9)).epsilon == Fraction(1, 2)
    with Study(policy, ledger=tmp_path / "ledger") as study:
        assert study.discover("town", epsilon=2)["town"] == ("Kiel", "Ulm")


def test_a_request_of_that_name_is_no_discovery(tmp_path):
    """Who takes the discovery's request id in the ledger itself takes the discovery, and makes no
    keys.
    """
    with study_of(tmp_path) as study:
        study.ledger.spend(discovery.REQUEST, "something else", "0.1", study=study.name)
        assert discovery.recorded(study.ledger, study.name, study.policy) is None
        with pytest.raises(QueryRefused, match="the delta of this study is spent"):
            study.discover("county", epsilon=1)


def test_a_ledger_keeps_the_keys_and_no_number_of_units(place):
    with discreet.open(place) as study:
        study.discover("county", epsilon=1)
    with Ledger.open(place.with_suffix(".ledger"), study="study") as ledger:
        kept = json.loads(ledger.answer(study="study", request_id=discovery.REQUEST) or b"")
    assert kept == {
        "discovered": {"county": ["North", "South"]},
        "epsilon": "1",
        "delta": "1/1000000000",
    }
