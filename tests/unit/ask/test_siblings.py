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


@pytest.mark.parametrize("source", ["people.parquet", "./people.parquet", "*.parquet", "link.parquet", "."])
def test_studies_of_one_file_know_of_each_other(folder, source):
    os.link(folder / "people.parquet", folder / "link.parquet")
    (folder / "second.toml").write_text(STUDY.format(source))
    (folder / "broken.toml").write_text("source = [")
    (folder / "other.toml").write_text(STUDY.format("elsewhere.parquet"))
    with discreet.open(folder / "first.toml") as first, discreet.open(folder / "second.toml") as second:
        assert (first.siblings, second.siblings) == (("second.toml",), ("first.toml",))
        assert "same data as second.toml: releases add up" in repr(first)


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
    commands = [flags, ["plan", *question], [*flags, "--another-budget"], ["plan", *question], ["release", *question]]
    refused, nothing, made, plan, release = one_after_another(commands, folder)
    assert (refused.code, nothing.code, made.code) == (2, 2, 0)
    assert told in refused.err
    assert "--another-budget" in refused.err
    assert told in plan.out.replace("\n", " ")
    assert told in release.out.replace("\n", " ")
