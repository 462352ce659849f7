"""Studies of frames in a notebook: declared in one call, asked as pandas asks, and honest about
what they forget.
"""

import datetime as dt
import sys
import tomllib
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import Count, InvalidParameter, Mean, Policy, QueryRefused, Std, Study

FRAME = pd.DataFrame(
    {
        "person": np.repeat(np.arange(100), 2),
        "county": ["Ash", "Elm", "Ash", None] * 50,
        "age": [20.0, 30.0, 40.0, 50.0] * 50,
        "day": pd.to_datetime(["2020-01-15", "2020-02-15"] * 100),
    }
)
ARROW = pa.Table.from_pandas(FRAME)
FRAMES = {
    "pandas": FRAME,
    "polars": pl.DataFrame(FRAME),
    "lazy": pl.DataFrame(FRAME).lazy(),
    "Arrow": ARROW,
}
TERMS = {"epsilon": 10**6, "bounds": {"age": (0, 120)}, "keys": {"county": ["Ash", "Elm"]}}


@pytest.fixture(scope="module")
def study():
    with Study.from_frame(FRAME, **TERMS) as opened:
        yield opened


@pytest.fixture(scope="module")
def answer(study):
    return (
        study.groupby("county")
        .agg(people="count", age=("age", "mean"))
        .plan(epsilon=1000)
        .release()
    )


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_a_study_in_one_call(kind):
    with Study.from_frame(FRAMES[kind], **TERMS) as study:
        answer = study.by("county").ask(people=Count()).plan(epsilon=1000).release()
        assert answer.to_dict()["people"] == [100, 50]
        assert study.where("day < '2020-02-01'").ask(n=Count()).plan(epsilon=1000).release()[
            "n"
        ] == [100]
        assert "pandas" not in repr(study)


def test_a_page_of_a_notebook_has_days_and_one_study(study):
    with Study.from_frame(FRAME, epsilon=10, bounds={"day": ("2020-01-01", "2021-01-01")}) as dated:
        assert "2020-01-01 to 2021-01-01" in dated._repr_html_()
        answer = dated.by("DATE_TRUNC('month', day)").ask(n=Count()).plan(epsilon=1).release()
        assert "2020-02-01" in answer._repr_html_()
        assert "00:00:00" not in dated._repr_html_() + answer._repr_html_() + repr(answer)
    assert "study · ε" in study._repr_html_()
    assert "study study" not in study._repr_html_()
    with Study.from_frame(FRAME, **TERMS, name="visits") as named:
        assert "study visits · ε" in named._repr_html_()


def test_a_throwaway_says_that_it_forgets_and_does():
    study = Study.from_frame(FRAME, **TERMS)
    folder = study.ledger.files[0].parent
    assert "ledger in memory: it forgets what was spent" in repr(study)
    assert "forgets" in study._repr_html_()
    study.ask(age=Mean("age")).plan(epsilon=1).release()
    assert study.spent == 1
    study.close()
    assert not folder.exists()
    again = Study.from_frame(FRAME, **TERMS)
    folder = again.ledger.files[0].parent
    assert again.spent == 0
    del again
    assert not folder.exists()


def test_a_ledger_that_is_named_remembers(tmp_path):
    for spent in (0, 1):
        with Study.from_frame(FRAME, **TERMS, ledger=tmp_path / "x.ledger") as study:
            assert study.spent == spent
            assert "forgets" not in repr(study) + study._repr_html_()
            study.ask(age=Mean("age")).plan(epsilon=1).release()
    policy = Policy(source=FRAME, epsilon=1, columns={"age": {"bounds": (0, 120)}})
    with Study(policy, ledger="memory") as study:
        assert study.forgets


def test_pandas_words_are_the_same_questions(study):
    asked = study.groupby("county").agg(
        n="count", age=("age", "mean"), some=("age", "count"), sd=("age", "std")
    )
    ours = study.by("county").ask(
        n=Count(), age=Mean("age"), some=Count("age"), sd=Std("age", sample=True)
    )
    assert asked.plan(epsilon=1).canonical == ours.plan(epsilon=1).canonical
    assert study.agg(age=Mean("age")).questions == study.agg(age=("age", "mean")).questions
    listed = study.groupby(["county"]).agg(n="size").plan(epsilon=1)
    assert listed.canonical == study.by("county").ask(n=Count()).plan(epsilon=1).canonical
    assert study.agg(v=("age", "var")).questions == study.agg(v=("age", "variance")).questions
    for wrong in ("mean", ("age", "mode"), ("age",), 5, ("age", "histogram"), ("age", "quantile")):
        with pytest.raises(
            (QueryRefused, ValueError), match=r"such as \(\"age\", \"mean\"\)|not enough"
        ):
            study.agg(x=wrong)


def test_rows_are_named_tuples(answer):
    rows = list(answer)
    assert [row.county for row in rows] == ["Ash", "Elm"]
    assert rows[0] == ("Ash", *(answer[name][0] for name in ("people", "age")))
    assert answer[0] == rows[0]
    assert answer[-1] == answer[np.int64(1)] == rows[1]
    assert answer[1:] == rows[1:]
    assert answer[:0] == []
    assert len(answer) == 2
    assert rows[1] in answer
    assert ("Ash", 1, 2) not in answer
    assert "age" in answer
    assert "nobody" not in answer
    with pytest.raises(IndexError):
        answer[2]
    with pytest.raises(InvalidParameter, match="no column 'nobody'"):
        answer["nobody"]


def test_rows_are_made_when_somebody_looks(study):
    fresh = study.by("county").ask(n=Count()).plan(epsilon=2).release()
    with mock.patch("discreet.release.answer.Answer._rows", side_effect=AssertionError):
        fresh.to_arrow()
        fresh.to_pandas()
        fresh.to_dict()
        assert fresh["n"] == fresh.to_dict()["n"]


def test_odd_names_of_columns_have_a_place_in_a_row(study):
    [row] = study.sql("SELECT avg(age), count(*) AS n FROM data", epsilon=1000).release()
    assert row._fields == ("_0", "n")


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_what_is_not_installed_is_named(answer, package):
    with (
        mock.patch.dict(sys.modules, {package: None}),
        pytest.raises(
            InvalidParameter, match=f"to_{package} needs {package}: pip install {package}"
        ),
    ):
        getattr(answer, f"to_{package}")()


DATES = [
    (dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
    [dt.datetime.fromisoformat("2020-01-01"), dt.datetime.fromisoformat("2021-01-01")],
    (pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")),
    tuple(np.array(["2020-01-01", "2021-01-01"], "M8[D]")),
    np.array(["2020-01-01", "2021-01-01"], "M8[ns]"),
    ("2020-01-01", "2021-01-01"),
    (dt.date(2020, 1, 1), "2021-01-01 00:00:00"),
]


@pytest.mark.parametrize("bounds", DATES, ids=lambda bounds: str(bounds)[:40])
def test_dates_are_bounds_in_every_form(bounds):
    policy = Policy(source="x.csv", epsilon=1, columns={"day": {"bounds": bounds}})
    assert [end.isoformat() for end in policy.columns["day"].bounds] == [
        "2020-01-01T00:00:00",
        "2021-01-01T00:00:00",
    ]
    assert {type(end) for end in policy.columns["day"].bounds} == {dt.datetime}
    with Study.from_frame(FRAME, epsilon=10**6, bounds={"day": bounds}) as study:
        answer = study.by("month(day)").ask(n=Count()).plan(epsilon=1000).release()
        assert answer["n"][:3] == [100, 100, 0]


def test_keys_of_dates_are_keys_in_every_form():
    for day in (
        "2020-01-15",
        dt.date(2020, 1, 15),
        pd.Timestamp("2020-01-15"),
        np.datetime64("2020-01-15"),
    ):
        with Study.from_frame(FRAME, epsilon=10**6, keys={"day": [day]}) as study:
            assert study.by("day").ask(n=Count()).plan(epsilon=1000).release()["n"] == [100]


PAIR = r"pair \{0}lower, upper\{1} such as \{0}0, 120\{1}, got 1 value$"
SLIPS = [
    ('[columns]\ncity = ["a", "b"]', r'columns=\{"city": \{"keys": \[…\]\}\}', r'city = \{ keys = \["…"\] \}'),
    ("[columns]\nage = [0, 120]", r'columns=\{"age": \{"bounds": \(0, 120\)\}\}', r"age = \{ bounds = \[0, 120\] \}"),
    ("[columns]\nage = { bounds = [0] }", PAIR.format("(", ")"), PAIR.format("[", "]")),
    ("[columns]", r'write columns=\{"age"', r"write \[columns\] and under it"),
    ('epsilon = "a lot"', "a positive number such as '0.1', '1/3' or 2", "a positive number such as '0.1', '1/3' or 2"),
    ('epsilon = "0,5"', r"got '0,5'; write '0\.5'", r"got '0,5'; write '0\.5'"),
    ('epsilon = "10%"', "write '10/100'", "write '10/100'"),
    ('unit = "patient"', "write max_rows=1 or more", "write max_rows = 1 or more"),
    ('[columns]\nday = { bounds = [5, "2020-01-01"] }', "two dates or two numbers", "two dates or two numbers"),
    ('[columns]\nday = { bounds = ["2021-01-01", "2020-01-01"] }', "2021-01-01 and 2020-01-01", "2021-01-01 and 2"),
]  # fmt: skip


@pytest.mark.parametrize(("slip", "in_python", "in_a_file"), SLIPS)
def test_slips_are_told_in_the_words_of_where_they_happen(tmp_path, slip, in_python, in_a_file):
    usual = {"source": "x.csv", "epsilon": "1", "columns": {"age": {"bounds": [0, 120]}}}
    with pytest.raises(InvalidParameter, match=in_python):
        Policy(**usual | tomllib.loads(slip))
    lines = ['source = "x.csv"', *(['epsilon = "1"'] if "epsilon" not in slip else []), slip]
    columns = [] if "[columns]" in slip else ["[columns]", "age = { bounds = [0, 120] }"]
    file = tmp_path / "study.toml"
    file.write_text("\n".join([*lines, *columns]), "utf-8")
    with pytest.raises(InvalidParameter, match=in_a_file):
        Policy.load(file)


def test_slips_about_a_frame_are_told_by_their_column():
    for terms, words in (
        ({"bounds": {"agee": (0, 1)}}, "the frame has no column 'agee'; did you mean age?"),
        ({"bounds": (0, 1)}, r'must be by column, as in bounds=\{"age": \(0, 120\)\}, got a tuple'),
        ({"bounds": {"person": (0, 1)}, "unit": "person", "max_rows": 2}, "'person' is the unit"),
        ({"unit": "nobody", "max_rows": 1}, "no column 'nobody'"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            Study.from_frame(FRAME, epsilon=1, **terms)
    with pytest.raises(InvalidParameter, match="a pandas or polars frame"):
        Study.from_frame([1, 2], epsilon=1)


def test_a_star_import_leaves_builtins_alone():
    import builtins

    names = {}
    exec("from discreet import *", names)  # noqa: S102
    shadowed = {name for name in names if hasattr(builtins, name) and not name.startswith("__")}
    assert shadowed == set()
    assert {"Study", "mean", "Mean", "histogram", "value_counts"} <= set(names)
    assert discreet.sum is not sum
    assert discreet.open is not open
    assert {"sum", "min", "max", "open"} <= set(dir(discreet))
