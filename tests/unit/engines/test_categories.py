"""Counts of categories: the same in every container, with names in all that a reader sees."""

import datetime as dt
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import InvalidParameter
from discreet.ask.keys.column import Keys
from discreet.engines.categories import placed
from discreet.verify import certify

MUCH = 10**6
"""Hardly any noise: a draw is not 0 with a probability of e^(-500000)."""

TEXTS = ["a", "b", None, "c", "a"]
TEXT_COLUMNS = {
    "list": TEXTS,
    "objects": np.array(TEXTS, object),
    "masked": np.ma.array(["a", "b", "z", "c", "a"], mask=[0, 0, 1, 0, 0]),
    "pandas": pd.Series(TEXTS),
    "pandas str": pd.Series(TEXTS, dtype="str"),
    "pandas objects": pd.Series(TEXTS, dtype=object),
    "pandas category": pd.Series(TEXTS, dtype="category"),
    "pandas arrow": pd.Series(TEXTS, dtype="string[pyarrow]"),
    "polars": pl.Series(TEXTS),
    "polars categorical": pl.Series(TEXTS, dtype=pl.Categorical),
    "arrow": pa.array(TEXTS),
    "arrow chunks": pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
    "arrow dictionary": pa.array(TEXTS).dictionary_encode(),
}

DAYS = [dt.date(2020, 1, 1), None, dt.date(2020, 1, 2), dt.date(2020, 1, 1)]
WRITTEN = ["2020-01-01", "NaT", "2020-01-02", "2020-01-01"]
DATE_COLUMNS = {
    "list": DAYS,
    "texts": ["2020-01-01", None, "2020-01-02", " 2020-01-01"],
    "objects": pd.Series(DAYS, dtype=object),
    "pandas": pd.Series(pd.to_datetime(DAYS)),
    "pandas in a zone": pd.Series(pd.to_datetime(DAYS)).dt.tz_localize("UTC"),
    "polars": pl.Series(DAYS),
    "polars times": pl.Series(DAYS).cast(pl.Datetime("ms")),
    "arrow": pa.array(DAYS),
    "arrow date64": pa.array(DAYS, pa.date64()),
    **{
        f"numpy {unit}": np.array(WRITTEN, f"M8[{unit}]")
        for unit in ("D", "h", "s", "ms", "us", "ns")
    },
}
DAY_KEYS = {
    "texts": ["2020-01-01", "2020-01-03"],
    "dates": [dt.date(2020, 1, 1), dt.date(2020, 1, 3)],
    "times": [dt.datetime.fromisoformat(day) for day in ("2020-01-01", "2020-01-03")],
    "pandas": [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-03")],
    "pandas column": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-03"])),
    "polars column": pl.Series([dt.date(2020, 1, 1), dt.date(2020, 1, 3)]),
    "numpy": np.array(["2020-01-01", "2020-01-03"], "M8[ns]"),
    "numpy scalars": list(np.array(["2020-01-01", "2020-01-03"], "M8[D]")),
}

NUMBER_COLUMNS = {
    "list": [1, 2.0, None, "2", "x"],
    "int8": np.array([1, 2, 7, 2, 8], np.int8),
    "uint64": np.array([1, 2, 2**64 - 1, 2, 8], np.uint64),
    "floats": np.array([1, 2, np.nan, 2, np.inf]),
    "pandas nullable": pd.Series([1, 2, None, 2, 8], dtype="Int64"),
    "polars": pl.Series([1, 2, None, 2, 8]),
    "arrow": pa.array([1, 2, None, 2, 8]),
}

TRUTHS = [True, False, None, True]
TRUTH_COLUMNS = {
    "list": TRUTHS,
    "pandas nullable": pd.Series(TRUTHS, dtype="boolean"),
    "polars": pl.Series(TRUTHS),
    "arrow": pa.array(TRUTHS),
    "texts": ["true", "FALSE", "perhaps", "True"],
}


def counts(x, **terms):
    return dict(discreet.histogram(x, epsilon=MUCH, **terms).items())


@pytest.mark.parametrize("kind", TEXT_COLUMNS)
def test_texts_are_the_same_in_every_container(kind):
    column = TEXT_COLUMNS[kind]
    assert counts(column, keys=["a", "b", "q"]) == {"a": 2, "b": 1, "q": 0}
    assert counts(column, keys=["a", "b"], other="rest") == {"a": 2, "b": 1, "rest": 2}
    assert counts(column, keys=["a", "b"], missing="b") == {"a": 2, "b": 2}
    assert discreet.value_counts(column, keys=["b", "a"], epsilon=MUCH).items() == [
        ("a", 2),
        ("b", 1),
    ]
    assert discreet.count(column, epsilon=MUCH).value == 4


@pytest.mark.parametrize("kind", DATE_COLUMNS)
def test_dates_are_the_same_in_every_container(kind):
    for written, keys in DAY_KEYS.items():
        if kind == written == "texts":  # which are compared as they are written
            continue
        found = counts(DATE_COLUMNS[kind], keys=keys)
        assert {str(key): number for key, number in found.items()} == {
            "2020-01-01": 2,
            "2020-01-03": 0,
        }
    assert discreet.count(DATE_COLUMNS[kind], epsilon=MUCH).value == 3


@pytest.mark.parametrize("kind", NUMBER_COLUMNS)
def test_numbers_are_the_same_in_every_container(kind):
    assert counts(NUMBER_COLUMNS[kind], keys=[2, Fraction(1, 2), 1]) == {2: 2, 0.5: 0, 1: 1}
    assert counts(NUMBER_COLUMNS[kind], keys="1..2", other="rest") == {1: 1, 2: 2, "rest": 2}
    assert counts(NUMBER_COLUMNS[kind], keys=range(2, 3)) == {2: 2}


@pytest.mark.parametrize("kind", TRUTH_COLUMNS)
def test_truths_are_the_same_in_every_container(kind):
    assert counts(TRUTH_COLUMNS[kind], keys=[True, False]) == {True: 2, False: 1}
    if kind != "texts":
        found = discreet.proportion(TRUTH_COLUMNS[kind], epsilon=MUCH).value
        if (
            kind == "list"
        ):  # it has no type, so it has the grid of a mean, and noise of scale 2/nε at most
            assert found == pytest.approx(2 / 3, abs=40 / (3 * MUCH))  # e^(−20) at most
        else:
            assert found == pytest.approx(2 / 3)
        assert discreet.count(TRUTH_COLUMNS[kind], epsilon=MUCH).value == 2


def test_a_condition_has_a_proportion():
    ages = [20, 70, 80]
    for ages_in in (
        np.array(ages),
        pd.Series(ages),
        pd.Series([*ages, None], dtype="Int64"),
        pl.Series([*ages, None]),
    ):
        assert discreet.proportion(ages_in >= 65, epsilon=MUCH).value == pytest.approx(2 / 3)


def test_a_column_in_memory_and_a_study_count_alike():
    """Of the same frame, with the same keys, in the same kinds."""
    frame = pd.DataFrame(
        {
            "text": ["a", "b", None, "c", "a", " a", "A", ""],
            "number": [1.0, 2.0, float("nan"), 2.5, float("inf"), -0.0, 1e300, 0.1],
            "whole": [1, 2, 2**53, -5, 0, 0, 1, 7],
            "objects": [1, "2", None, "2020-01-01", True, 2.0, "x", dt.date(2020, 1, 1)],
            "day": pd.to_datetime(
                ["2020-01-01", None, "2020-01-01 12:00", "2020-01-02"] * 2, format="mixed"
            ),
            "truth": [True, False] * 4,
        }
    )
    asked = [
        ("text", ["a", "b", "q"]),
        ("number", [0, 1, 2.5, Fraction(1, 10)]),
        ("whole", ["0", "2", "9007199254740992"]),
        ("objects", [1, 2]),
        ("objects", ["2", "true", "x"]),
        ("objects", [dt.date(2020, 1, 1)]),
        ("objects", [True, False]),
        ("day", ["2020-01-01", "2020-01-01 12:00:00"]),
        ("truth", [True]),
    ]
    for name, keys in asked:
        for other in (None, "rest"):
            with discreet.Study.from_frame(
                frame, epsilon=MUCH, keys={name: keys}, other={name: other} if other else None
            ) as study:
                there = (
                    study.by(name).ask(n=discreet.Count()).plan(epsilon=MUCH // 2).release()["n"]
                )
            assert list(counts(frame[name], keys=keys, other=other).values()) == there, (
                name,
                keys,
                other,
            )


def test_two_categories_of_everybody_are_one_count():
    """With `other` nobody is left out, also not by a missing value: n is public, and Δ is 1."""
    for column in (["a", None, "b"], np.array(["a", "x", "b"])):
        both = discreet.histogram(column, keys=["a"], other="rest", epsilon=1)
        assert (both.sensitivity, both.total, int(both.value.sum())) == (1, 3, 3)
    truths = discreet.histogram(np.array([True, False]), keys=[False, True], epsilon=1)
    assert (truths.sensitivity, truths.note) == (1, "")
    assert discreet.histogram([True, None], keys=[False, True], epsilon=1).sensitivity == 2
    assert discreet.histogram(["a", "b"], keys=["a", "b"], epsilon=1).total is None


@pytest.mark.parametrize("neighbors", ["change-one", "add-remove"])
@pytest.mark.parametrize(
    "terms", [{"keys": "1..12"}, {"keys": "1..1", "other": "rest"}, {"keys": "1..2"}]
)
def test_the_noise_of_categories_is_proved(terms, neighbors):
    proof = certify("histogram", epsilon="0.5", neighbors=neighbors, **terms)
    assert proof.holds
    assert certify("value_counts", epsilon="0.5", neighbors=neighbors, **terms).holds


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({}, "either bins, for numbers, or keys"),
        ({"bins": 2, "keys": ["a"]}, "either bins, for numbers, or keys"),
        ({"keys": ["a"], "bounds": (0, 1)}, "leave bounds out"),
        ({"bins": [0, 1], "other": "rest"}, "other belongs to keys"),
        ({"keys": []}, "at least one value"),
        ({"keys": ["a", "a"]}, "must differ"),
        ({"keys": ["a"], "other": "a"}, "other must not be one of the keys"),
        ({"keys": ["a"], "missing": "b"}, "missing must be one of the keys"),
        ({"keys": "discover"}, "only a study can discover"),
        ({"keys": 5}, "keys must be a list"),
    ],
)
def test_what_makes_no_categories_is_refused(terms, words):
    with pytest.raises(InvalidParameter, match=words):
        discreet.histogram(TEXTS, epsilon=1, **terms)


def test_keys_of_another_kind_than_the_column_are_refused():
    with pytest.raises(InvalidParameter, match="of the column's kind, truth"):
        discreet.histogram(np.array([True]), keys=[0, 1], epsilon=1)
    with pytest.raises(InvalidParameter, match="a column of bytes"):
        discreet.histogram(np.array([b"a"]), keys=["a"], epsilon=1)
    with pytest.raises(InvalidParameter, match="a column of timedelta64"):
        discreet.histogram(pd.Series([pd.Timedelta(1)]), keys=["a"], epsilon=1)


class Strange:
    """Raises at everything."""

    def __eq__(self, other):
        raise RuntimeError("secret")

    def __str__(self):
        raise RuntimeError("secret")

    __hash__ = None


def test_nothing_in_the_data_raises():
    strange = [
        Strange(),
        "\ud800",
        float("nan"),
        10**400,
        "1e400",
        b"a",
        {},
        dt.datetime.fromisoformat("9999-12-31"),
        "a",
    ]
    for keys, number in ((["a"], 1), ([1], 0), ([dt.date(2020, 1, 1)], 0), ([True], 0)):
        assert discreet.histogram(strange, keys=keys, epsilon=MUCH).value.tolist() == [number]
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], "i4")), pa.py_buffer(b"\xffa")]
    )
    assert counts(bad, keys=["a"]) == {"a": 1}
    far = np.array([2**62, -(2**62), np.iinfo(np.int64).min])
    for unit in ("Y", "M", "W", "D", "h", "m", "15m", "s", "ms", "us", "ns", "ps", "fs", "as"):
        assert discreet.histogram(
            far.view(f"M8[{unit}]"), keys=["2020-01-01"], epsilon=MUCH
        ).value.tolist() == [0]
        assert discreet.count(far.view(f"M8[{unit}]"), epsilon=MUCH).value == 2
    for kind in (pa.date64(), pa.timestamp("s"), pa.timestamp("ns", "UTC")):
        assert counts(pa.array(far).view(kind), keys=["2020-01-01"]) == {"2020-01-01": 0}
    assert counts([], keys=["a"], other="rest") == {"a": 0, "rest": 0}
    assert counts(np.array([], float), keys=[1]) == {1: 0}


def test_places_are_those_of_a_slow_search():
    column = np.random.default_rng(7).integers(-5, 6, 2_000)
    keys = [3, -4, 0, 9, 5]
    places = placed(column, Keys.of(keys), other=True).values
    assert places.tolist() == [
        keys.index(value) if value in keys else 5 for value in column.tolist()
    ]


def test_names_are_in_all_that_a_reader_sees():
    towns = discreet.histogram(
        ["Ash", "Elm<", "Ash"], keys=["Ash", "Elm<"], other="elsewhere", epsilon=MUCH
    )
    assert repr(towns).startswith("Ash 2, Elm< 1, elsewhere 0 ± 0 (95 % each)   ε 1,000,000")
    assert towns["Ash"] == 2
    assert towns[1:].tolist() == [1, 0]
    with pytest.raises(KeyError, match="no key 'Oak'"):
        towns["Oak"]
    page = towns._repr_html_()
    assert all(name in page for name in ("Ash", "Elm&lt;", "elsewhere", "<th"))
    rows = next(iter(towns.figure().to_dict()["datasets"].values()))
    assert {"Ash", "Elm<", "elsewhere"} <= {cell for row in rows for cell in row.values()}


def test_a_question_about_categories_is_charged_once(tmp_path):
    with discreet.Ledger.open(tmp_path / "x.ledger", new=True) as ledger:
        ledger.create("survey", 10)
        account = {"ledger": ledger, "study": "survey", "data_name": "town", "data_version": "1"}
        first = discreet.histogram(TEXTS, keys=["a", "b"], epsilon=1, **account)
        again = discreet.value_counts(TEXTS, keys=("a", "b"), epsilon=1, sort=False, **account)
        assert first.value.tolist() == again.value.tolist()
        assert ledger.spent("survey") == 1
        discreet.histogram(TEXTS, keys=["a", "b"], other="rest", epsilon=1, **account)
        assert ledger.spent("survey") == 2


def test_a_mean_of_dates_says_what_to_do():
    days = pd.Series(pd.to_datetime(DAYS))
    for bounds in (
        (dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
        np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    ):
        with pytest.raises(
            InvalidParameter, match="lower must be a number here, got a date; count the days"
        ):
            discreet.mean(days, bounds=bounds, epsilon=1)
    with pytest.raises(
        InvalidParameter,
        match=r"datetime64\[.*\]; count the days since a public date, or use keys=",
    ):
        discreet.mean(days, bounds=(0, 1), epsilon=1)
    since = (days - pd.Timestamp("2020-01-01")).dt.days
    assert discreet.mean(since, bounds=(0, 366), epsilon=MUCH).value == pytest.approx(
        1 / 3, abs=0.01
    )


@pytest.mark.parametrize("column", [pa.array, lambda items: pa.chunked_array([items]), pl.Series])
def test_a_missing_value_changes_no_other_place(column):
    """Arrow and polars give doubles where a value is missing, and whole numbers beyond 2⁵³ would be
    rounded then.
    """
    large = 2**53
    keys = Keys.of([large + 1])
    there, gap = (placed(column([large, large, last]), keys).values for last in (0, None))
    assert there[:2].tolist() == gap[:2].tolist()
    for last in (0, None):
        with pytest.raises(InvalidParameter, match="as floats"):
            placed(column([large, last]), Keys.of([large, large + 1]))


def test_days_beyond_32_bits_are_no_other_days():
    days = np.array([18262, 2**32 + 18262, 18262 - 2**32]).view("M8[D]")
    assert counts(days, keys=["2020-01-01"]) == {"2020-01-01": 1}


def test_masked_dates_are_dates():
    days = np.ma.array(np.array(["2020-01-01", "2020-01-02"], "M8[ns]"), mask=[False, True])
    assert counts(days, keys=["2020-01-01", "2020-01-02"]) == {"2020-01-01": 1, "2020-01-02": 0}


def test_a_missing_text_of_numpy_is_not_counted():
    texts = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    assert discreet.count(texts, epsilon=MUCH).value == 1
