"""TRUST 44: no object of a study shows a row, however it is printed, listed, copied, stored or
refused.
"""

import copy
import dataclasses
import inspect
import pickle
import pprint
import re
import traceback
from dataclasses import replace
from fractions import Fraction

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import Count, DiscreetError, Mean, Policy, Study
from discreet.engines.choose import engine_of
from discreet.release.profiles.plan import profile_plan

WORD, NUMBER = "canary", 731906258431
"""A text and a number that only a row has."""

ROWS = {"name": [WORD, "b", "c"], "place": ["north", "south", WORD], "age": [NUMBER, 20, 30]}
COLUMNS = {
    "place": {"keys": ["north", "south"]},
    "age": {"bounds": [0, 10**12]},
    "name": {"keys": "discover"},
}
SOURCES = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "categories": lambda: pd.DataFrame(ROWS).astype({"name": "category", "place": "category"}),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars categories": (
        lambda: pl.DataFrame(ROWS).with_columns(pl.col("name").cast(pl.Categorical))
    ),
    "Arrow": lambda: pa.table(ROWS),
    "batch": lambda: pa.record_batch(ROWS),
    "dictionary": lambda: pa.table({**ROWS, "name": pa.array(ROWS["name"]).dictionary_encode()}),
    "DuckDB": lambda: duckdb.from_arrow(pa.table(ROWS)).materialize(),
}


def shows(text: str) -> bool:
    return WORD in text or str(NUMBER) in re.sub(r"[,_ ]", "", text)


def objects(source, folder) -> dict[str, object]:
    """Everything that a user of a study gets to hold."""
    policy = Policy(source=source, epsilon=10**6, delta="1e-9", columns=COLUMNS)
    study = Study(policy, ledger=folder / "study.ledger")
    asked = study.where("age >= 0").by("place").ask(people=Count(), age=Mean("age"))
    plan = asked.plan(epsilon="1e-3", simultaneous=True)
    answer = plan.release()
    counts = study.sql("SELECT place, count(*) FROM data GROUP BY place", epsilon="1e-3")
    fetched = plan.fetched()
    return {
        "policy": policy,
        "source": policy.source,
        "declared": policy.columns["age"],
        "columns": policy.columns,
        "study": study,
        "study.policy": study.policy,
        "asked": asked,
        "plan": plan,
        "query": plan.query,
        "shares": plan.shares,
        "answer": answer,
        "totals": counts.release().totals(),
        "file": replace(counts, confidence=Fraction(1, 2)).release(to=folder / "answer.parquet"),
        "ledger": study.ledger,
        "entries": list(study.ledger.entries(study.name)),
        "grant": study.ledger.spend("r", "q", "1e-3", study=study.name),
        "engine": study.engine,
        "schema": study.schema,
        "exact": fetched,
        "mapped": fetched.map(lambda found: (found, WORD)),
        "discovered": study.discover("name", epsilon="1e-3"),
        "profile": study.profile(["age"], epsilon=100),
        "profile's plan": profile_plan(study, ["age"], 100),
    }


def looks(value: object):
    """What a print, a notebook, a debugger's list of attributes and a library of tables make of it."""
    yield from (repr(value), str(value), f"{value}", ascii(value), pprint.pformat(value))
    yield from (repr([value]), repr({"value": value}))
    if hasattr(value, "_repr_html_"):
        yield value._repr_html_()
    if hasattr(value, "__dict__"):
        yield repr(vars(value))
    yield repr(
        [
            member
            for name, member in inspect.getmembers(value)
            if name not in ("__doc__", "__globals__")
        ]
    )
    if dataclasses.is_dataclass(value):
        for list_of in (dataclasses.asdict, dataclasses.astuple):
            try:
                yield repr(list_of(value))
            except TypeError as refusal:
                yield str(refusal)


def stored(value: object):
    """Copies and pickles, or the words of their refusal."""
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        try:
            yield act(value)
        except (TypeError, AttributeError, pickle.PicklingError) as refusal:
            yield said(refusal)


def said(error: BaseException) -> str:
    """Everything that an error holds but the frames it passed."""
    texts, chain = [], error
    while chain is not None:
        texts += [str(chain), repr(chain.args), repr(vars(chain)), *getattr(chain, "__notes__", [])]
        chain = chain.__cause__ or chain.__context__
    return "\n".join([*texts, *traceback.format_exception(error)])


@pytest.mark.parametrize("kind", SOURCES)
def test_no_object_shows_a_row(kind, tmp_path):
    for name, value in objects(SOURCES[kind](), tmp_path).items():
        for text in looks(value):
            assert not shows(text), (name, text)
        for copied in stored(value):
            assert not (shows(copied) if isinstance(copied, str) else shows(repr(copied))), name


@pytest.mark.parametrize("kind", ["pandas", "polars", "Arrow", "DuckDB"])
def test_a_source_in_memory_shows_its_type_and_its_columns(kind):
    policy = Policy(source=SOURCES[kind](), epsilon=1, columns=COLUMNS)
    assert re.search(r"source=\w+\.\w+ of 3 columns, ", repr(policy))
    for act in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"cannot be copied|mappingproxy"):
            act(policy)


def test_the_search_finds_what_a_frame_shows():
    """The control: each kind of source shows its rows by itself."""
    for make in SOURCES.values():
        assert any(map(shows, looks(make())))


def test_an_address_shows_no_password():
    source = "postgresql://me:hunter2@host/db#people"
    policy = Policy(source=source, epsilon=1, columns=COLUMNS)
    assert policy.source == source
    assert "hunter2" not in repr(policy)
    assert "postgresql://…" in repr(policy)


REFUSALS = {
    "a column that nobody declared": lambda study: study.sql(
        "SELECT avg(nobody) FROM data", epsilon=1
    ),
    "no SQL": lambda study: study.sql("SELEC", epsilon=1),
    "no ε": lambda study: study.sql("SELECT count(*) FROM data", epsilon=0),
    "too much ε": (
        lambda study: study.sql("SELECT count(*) FROM data WHERE age > 1", epsilon=999).release()
    ),
    "a kind": lambda study: study.sql("SELECT count(*) FROM data WHERE name + 1 > 2", epsilon=1),
    "keys that are not discovered": lambda study: study.by("name").ask(n=Count()).plan(epsilon=1),
    "a condition": lambda study: study.where("age = 'x'").ask(n=Count()).plan(epsilon=1),
    "a file": lambda study: (
        study.by("place").ask(n=Count()).plan(epsilon=1).release(to="/nowhere/at/all.parquet")
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_no_refusal_shows_a_row(kind, tmp_path):
    policy = Policy(source=SOURCES[kind](), epsilon=10, columns=COLUMNS)
    study = Study(policy, ledger=tmp_path / "study.ledger")
    for name, act in REFUSALS.items():
        with pytest.raises(DiscreetError) as caught:
            act(study)
        assert not shows(said(caught.value)), name


@pytest.mark.parametrize(
    "source",
    [
        [WORD, NUMBER],
        [{"name": WORD}],
        {"name": [WORD]},
        pd.Series([WORD]),
        pl.Series([WORD]),
        pl.DataFrame(ROWS).lazy(),
        pa.array([WORD]),
        pa.chunked_array([[WORD]]),
        (WORD, NUMBER),
        object(),
    ],
    ids=lambda source: type(source).__name__,
)
def test_a_source_that_is_no_table_is_refused_without_its_rows(source):
    texts = []
    try:
        policy = Policy(source=source, epsilon=1, columns=COLUMNS)
        texts += [repr(policy), repr(engine_of(policy.source))]
    except DiscreetError as refusal:
        texts.append(said(refusal))
    assert not any(map(shows, texts))


def test_an_engine_that_fails_quotes_no_row(tmp_path):
    """A cell that DuckDB cannot read, where it would quote it."""
    with duckdb.connect() as connection:
        connection.register("cells", pa.table(ROWS))
        connection.execute("CREATE TABLE rows AS FROM cells")
        source = connection.sql("SELECT name, CAST(name AS INTEGER) AS age FROM rows")
        with pytest.raises(duckdb.Error, match=WORD):  # the control
            source.fetchall()
        policy = Policy(source=source, epsilon=1, columns={"age": {"bounds": [0, 9]}}, version="1")
        study = Study(policy, ledger=tmp_path / "study.ledger")
        with pytest.raises(discreet.EngineFailed) as caught:
            study.sql("SELECT sum(age) FROM data", epsilon="0.1").release()
        assert not shows(said(caught.value))
        assert caught.value.__context__ is None
