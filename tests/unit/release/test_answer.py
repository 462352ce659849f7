"""Answers: made of the recorded bytes, with everything that costs nothing done to them here."""

import json
import math
from fractions import Fraction

import pyarrow.csv
import pyarrow.parquet
import pytest

from discreet import InvalidParameter
from discreet.ask.expression import Column
from discreet.ask.query import Combined, Count, Group, Moment, Named, Number, Query
from discreet.ask.query import Test as Compare
from discreet.records import from_whole
from discreet.release.answer import Answer
from studies import Paper, select, study_of

PLACE = Group("g1", Column("place", "text"), ("north", "south", "west"))
MEAN = Moment("mean", Column("age", "number"), Fraction(0), Fraction(10), True, None)
RECORD = {
    "discreet": 1,
    "study": "study",
    "neighbors": "change-one",
    "epsilon": "1/5",
    "confidence": "19/20",
    "keys": {"g1": ["north", "south", "west"]},
    "numbers": {
        "a1": {"value": [41207, -3, 500], "low": [41087, -123, 380], "high": [41327, 117, 620]},
        "a2": {"value": [4.731, 5.0, 2.5], "low": [4.71, 0.0, 2.0], "high": [4.751, 10.0, 3.5]},
    },
}
PEOPLE, AGE = Named("a1"), Named("a2")


def answer(outputs=None, record=RECORD, **after) -> Answer:
    shown = outputs or (("place", Named("g1")), ("people", PEOPLE), ("age", AGE))
    query = Query(
        aggregates=(("a1", Count()), ("a2", MEAN)),
        outputs=tuple(shown),
        **{"groups": (PLACE,), **after},
    )
    return Answer(
        content=from_whole(record).pack(), query=query, remaining=Fraction(4, 5), entry="one"
    )


def test_an_answer_is_shown_with_the_error_of_every_number():
    assert repr(answer()).splitlines() == [
        "place  people        age",
        "north  41,207 ± 120  4.731 ± 0.021",
        "south  -3 ± 120      5 ± 5",
        "west   500 ± 120     2.5 (2.0 to 3.5)",
        "± at 95 % · ε 0.2 spent, 0.8 left · change-one",
    ]


def test_a_long_answer_shows_its_beginning_and_its_end():
    keys = [f"k{at:02d}" for at in range(45)]
    numbers = {"a1": {end: list(range(45)) for end in ("value", "low", "high")}}
    lines = repr(
        answer(
            [("place", Named("g1")), ("n", PEOPLE)],
            {**RECORD, "keys": {"g1": keys}, "numbers": numbers},
        )
    ).splitlines()
    assert lines[1].startswith("k00")
    assert lines[11].split() == ["…", "…"]
    assert lines[21].startswith("k44")
    assert lines[22] == "45 rows"


def test_columns_intervals_and_lengths_are_there():
    found = answer()
    assert found.columns == ["place", "people", "age"]
    assert len(found) == 3
    assert found["people"] == [41207, -3, 500]
    assert found.interval("people")[1] == (-123, 117)
    assert found.epsilon == Fraction(1, 5)
    with pytest.raises(InvalidParameter, match="no column 'nobody'; it has place, people, age"):
        found["nobody"]


@pytest.mark.parametrize(
    ("having", "kept"),
    [
        (Compare(">", (PEOPLE, Number(Fraction(100)))), ["north", "west"]),
        (Compare("<=", (AGE, Number(Fraction(5, 2)))), ["west"]),
        (
            Compare(
                "and",
                (
                    Compare(">", (PEOPLE, Number(Fraction(0)))),
                    Compare("<", (AGE, Number(Fraction(3)))),
                ),
            ),
            ["west"],
        ),
        (
            Compare(
                "or",
                (
                    Compare("<", (PEOPLE, Number(Fraction(0)))),
                    Compare("=", (AGE, Number(Fraction(5, 2)))),
                ),
            ),
            ["south", "west"],
        ),
        (Compare("<>", (PEOPLE, Number(Fraction(-3)))), ["north", "west"]),
        (
            Compare(">", (Combined("/", AGE, Combined("-", PEOPLE, PEOPLE)), Number(Fraction(0)))),
            [],
        ),
    ],
)
def test_having_looks_at_released_numbers(having, kept):
    assert answer(having=having)["place"] == kept


def test_order_and_limit_act_on_released_numbers_and_missing_ones_come_last():
    assert answer(order=((PEOPLE, True),))["place"] == ["north", "west", "south"]
    assert answer(order=((AGE, False),), limit=2)["place"] == ["west", "north"]
    assert answer(order=((Named("g1"), True),))["place"] == ["west", "south", "north"]
    # 1/0 in the south
    undefined = Combined("/", Number(Fraction(1)), Combined("+", PEOPLE, Number(Fraction(3))))
    for descending in (True, False):
        assert answer(order=((undefined, descending),))["place"][-1] == "south"
    assert answer(limit=0).rows == []


def test_bins_are_ordered_by_where_they_lie_and_not_by_their_names():
    names = ["[0, 5)", "[5, 10)", "[10, 20]"]
    bins = Group(
        "g1", Column("age", "number"), tuple(names), edges=tuple(map(Fraction, (0, 5, 10, 20)))
    )
    record = {**RECORD, "keys": {"g1": names}}
    assert (
        answer(record=record, groups=(bins,), order=((Named("g1"), True),))["place"] == names[::-1]
    )
    assert answer(record=record, groups=(bins,), order=((Named("g1"), False),))["place"] == names


def test_number_keys_beside_a_label_for_the_rest_can_be_ordered_and_saved(tmp_path):
    keys = [2, 1, "rest"]
    group = Group("g1", Column("age", "number"), (Fraction(2), Fraction(1)), other="rest")
    found = {}
    for descending in (False, True):
        made = answer(
            record={**RECORD, "keys": {"g1": keys}},
            groups=(group,),
            order=((Named("g1"), descending),),
        )
        found[descending] = made["place"]
        assert made.to_arrow().column("place").to_pylist() == [str(key) for key in made["place"]]
        assert made.to_polars()["place"].to_list() == [str(key) for key in made["place"]]
        for suffix in (".csv", ".parquet", ".json"):
            made.save(tmp_path / f"{descending}{suffix}")
    assert found == {False: [1, 2, "rest"], True: [2, 1, "rest"]}


def test_equal_numbers_keep_the_declared_order():
    numbers = {name: {end: [7, 7, 7] for end in ("value", "low", "high")} for name in ("a1", "a2")}
    for descending in (True, False):
        found = answer(record={**RECORD, "numbers": numbers}, order=((PEOPLE, descending),))
        assert found["place"] == ["north", "south", "west"]


@pytest.mark.parametrize(
    ("sign", "value", "low", "high"),
    [
        ("+", 502.5, 382.0, 623.5),
        ("-", 497.5, 376.5, 618.0),
        ("*", 1250.0, 760.0, 2170.0),
        ("/", 200.0, 380 / 3.5, 310.0),
    ],
)
def test_arithmetic_takes_the_extremes_over_both_intervals(sign, value, low, high):
    row = answer([("x", Combined(sign, PEOPLE, AGE))]).rows[2]
    assert row["x"] == pytest.approx((value, low, high))


def test_a_quotient_whose_divisor_can_be_nought_has_no_ends():
    found = answer([("place", Named("g1")), ("x", Combined("/", AGE, PEOPLE))])
    assert found.rows[1]["x"] == (5.0 / -3, -math.inf, math.inf)
    assert "inf" in repr(found)


def test_constants_have_no_error():
    assert answer([("x", Combined("*", PEOPLE, Number(Fraction(1, 2))))]).rows[0]["x"] == (
        20603.5,
        20543.5,
        20663.5,
    )


def test_tables_have_the_interval_of_every_number_beside_it():
    found = answer()
    names = ["place", "people", "people_low", "people_high", "age", "age_low", "age_high"]
    assert found.to_arrow().column_names == names
    assert list(found.to_pandas().columns) == names
    assert found.to_polars().columns == names
    assert found.to_pandas()["people_high"].tolist() == [41327, 117, 620]
    assert found.to_polars()["age"].to_list() == [4.731, 5.0, 2.5]
    assert found.to_arrow().schema.field("people").type == pyarrow.int64()


def test_integers_beyond_64_bits_become_floats_in_tables():
    numbers = {**RECORD["numbers"], "a1": {end: [2**70, 1, 2] for end in ("value", "low", "high")}}
    found = answer(record={**RECORD, "numbers": numbers})
    assert found["people"][0] == 2**70
    assert found.to_arrow()["people"].to_pylist() == [2.0**70, 1.0, 2.0]
    assert found.to_polars()["people"].to_list() == [2.0**70, 1.0, 2.0]


def test_what_is_saved_has_its_record_beside_it(tmp_path):
    found = answer()
    for suffix, read in ((".csv", pyarrow.csv.read_csv), (".parquet", pyarrow.parquet.read_table)):
        place = found.save(tmp_path / f"ages{suffix}")
        assert read(place).to_pydict() == found.to_dict()
        assert json.loads((tmp_path / "ages.release.json").read_text(encoding="utf-8")) == {
            **{name: value for name, value in RECORD.items() if name not in ("keys", "numbers")},
            "sql": None,
            "columns": {"place": "g1", "people": "a1", "age": "a2"},
            "entry": found.entry,
        }
    place = found.save(str(tmp_path / "more.json"))
    assert json.loads(place.read_text(encoding="utf-8")) == found.to_dict()
    assert (tmp_path / "more.release.json").exists()
    with pytest.raises(
        InvalidParameter, match=r"must end in \.csv, \.json, \.parquet, \.xlsx, \.html, \.md, \.txt"
    ):
        found.save(tmp_path / "ages.xls")


def test_an_end_that_is_not_there_is_null_in_json(tmp_path):
    found = answer([("x", Combined("/", AGE, PEOPLE))])
    text = found.save(tmp_path / "x.json").read_text(encoding="utf-8")
    assert json.loads(text)["x_low"] == [pytest.approx(4.71 / 41327), None, pytest.approx(2 / 620)]
    assert "Infinity" not in text


def test_answers_are_equal_when_bytes_and_what_is_shown_are():
    assert answer() == answer()
    assert answer() != answer(limit=1)
    assert answer() != answer(record={**RECORD, "epsilon": "1/4"})
    assert answer() != "an answer"
    with pytest.raises(TypeError):
        hash(answer())


def test_everything_after_the_noise_goes_through_a_study():
    here = study_of(
        [{"place": "north", "age": 4}] * 30 + [{"place": "west", "age": 6}] * 10, Paper()
    )
    question = "place, count(*) AS n, sum(age) / count(*) AS mean, sum(age) - 5 * count(*) AS over"
    clauses = "GROUP BY place HAVING count(*) > 5 ORDER BY mean DESC LIMIT 5"
    found = here.sql(select(question, clauses), epsilon=10**5).release()
    columns = found.to_dict()
    assert columns.pop("place") == ["west", "north"]
    # intervals allow for the rounding of floats
    assert columns == {name: pytest.approx(numbers, abs=1e-9) for name, numbers in EXPECTED.items()}


EXPECTED = {
    "n": [10, 30],
    "n_low": [10, 30],
    "n_high": [10, 30],
    "mean": [6.0, 4.0],
    "mean_low": [6.0, 4.0],
    "mean_high": [6.0, 4.0],
    "over": [10.0, -30.0],
    "over_low": [10.0, -30.0],
    "over_high": [10.0, -30.0],
}
