"""A new file name is a new budget: it is said so, and `init` asks first."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.ask.siblings import siblings
from shell import one_after_another

STUDY = 'source = "{}"\nepsilon = "1"\n[columns]\nage = {{ bounds = [0, 9] }}\n'


@pytest.fixture
def folder(tmp_path):
    pq.write_table(pa.table({"age": [1.0, 2.0]}), tmp_path / "people.parquet")
    (tmp_path / "first.toml").write_text(STUDY.format("people.parquet"))
    return tmp_path


@pytest.mark.parametrize(
    "source", ["people.parquet", "./people.parquet", "*.parquet", "link.parquet", "."]
)
def test_studies_of_one_file_know_of_each_other(folder, source):
    os.link(folder / "people.parquet", folder / "link.parquet")
    (folder / "second.toml").write_text(STUDY.format(source))
    (folder / "broken.toml").write_text("source = [")
    (folder / "other.toml").write_text(STUDY.format("elsewhere.parquet"))
    with (
        discreet.open(folder / "first.toml") as first,
        discreet.open(folder / "second.toml") as second,
    ):
        assert (first.siblings, second.siblings) == (("second.toml",), ("first.toml",))
        assert "same data as second.toml: releases add up" in repr(first)


def test_a_list_of_files_has_the_data_of_each(folder):
    pq.write_table(pa.table({"age": [3.0]}), folder / "more.parquet")
    listed = STUDY.replace('"{}"', '["more.parquet", "people.parquet"]')
    (folder / "second.toml").write_text(listed.format())
    with (
        discreet.open(folder / "first.toml") as first,
        discreet.open(folder / "second.toml") as second,
    ):
        assert (first.siblings, second.siblings) == (("second.toml",), ("first.toml",))
        assert second.sql("SELECT count(*) AS n FROM data", epsilon="0.5").release()["n"] == [3]


def test_tables_of_one_database_are_different_data(tmp_path):
    (tmp_path / "clinic.db").touch()
    for name, source in {"a": "clinic.db#x", "b": "clinic.db#y", "c": "clinic.db#x"}.items():
        (tmp_path / f"{name}.toml").write_text(STUDY.format(source))
    assert siblings(tmp_path / "a.toml", str(tmp_path / "clinic.db#x")) == ("c.toml",)
    (tmp_path / "d.toml").write_text(STUDY.format("postgresql://host/db#people"))
    assert siblings(tmp_path / "a.toml", "postgresql://host/db#people") == ("d.toml",)


def test_init_makes_no_second_budget_without_a_word(folder):
    flags = ["init", "people.parquet", "--bounds", "age=0:9", "--epsilon", "1", "-o", "second.toml"]
    told = "second.toml and first.toml are 2 budgets for the same data: what they release adds up"
    question = ["second.toml", "SELECT count(*) FROM people", "--epsilon", "1"]
    commands = [
        flags,
        ["plan", *question],
        [*flags, "--another-budget"],
        ["plan", *question],
        ["release", *question],
    ]
    refused, nothing, made, plan, release = one_after_another(commands, folder)
    assert (refused.code, nothing.code, made.code) == (2, 2, 0)
    assert told in refused.err
    assert "--another-budget" in refused.err
    assert told in plan.out.replace("\n", " ")
    assert told in release.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("first", "second", "are_two"),
    [
        ('study = "people"', 'study = "people"', True),  # a name means something within one ledger
        (
            'study = "people"\nledger = "one.ledger"',
            'study = "people"\nledger = "./one.ledger"',
            False,
        ),
        (
            'study = "people"\nledger = "one.ledger"',
            'study = "people"\nledger = "two.ledger"',
            True,
        ),
    ],
)
def test_one_study_in_one_ledger_is_one_budget_and_anything_else_is_two(
    folder, first, second, are_two
):
    for name, keys in (("first", first), ("second", second)):
        (folder / f"{name}.toml").write_text(f"{keys}\n{STUDY.format('people.parquet')}")
    with discreet.open(folder / "first.toml") as one, discreet.open(folder / "second.toml") as two:
        assert (one.siblings, two.siblings) == (
            (("second.toml",), ("first.toml",)) if are_two else ((), ())
        )
        assert ("releases add up" in repr(one)) is are_two
        one.sql("SELECT sum(age) FROM people", epsilon="0.75").release()
        assert two.spent == (0 if are_two else one.spent)


def test_a_ledger_in_the_environment_is_that_of_both(folder, monkeypatch):
    monkeypatch.setenv("DISCREET_LEDGER", str(folder / "shared.ledger"))
    for name, study in (("first", "people"), ("second", "people"), ("third", "others")):
        (folder / f"{name}.toml").write_text(f'study = "{study}"\n{STUDY.format("people.parquet")}')
    assert siblings(folder / "first.toml", str(folder / "people.parquet")) == ("third.toml",)
