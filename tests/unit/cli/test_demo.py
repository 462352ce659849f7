"""The demonstration: everything that it says it makes is there, and nothing but what it made is
ever removed.
"""

import io
import json

import pytest
from rich.console import Console

from discreet import InvalidParameter
from discreet import open as open_study
from discreet.cli import demo_data
from discreet.cli.demo import run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, said = tmp_path_factory.mktemp("demo") / "demo", io.StringIO()
    run(folder, Console(file=said, highlight=False))
    return folder, said.getvalue()


def test_it_publishes_a_table_a_figure_a_report_and_their_records(made):
    folder, _ = made
    assert (folder / "diagnoses.png").read_bytes().startswith(b"\x89PNG")
    assert "Visits by diagnosis" in (folder / "report.html").read_text(encoding="utf-8")
    assert len((folder / "visits-by-county.csv").read_text().splitlines()) == 1 + demo_data.COUNTIES
    assert json.loads((folder / "visits-by-diagnosis.release.json").read_text())["epsilon"] == "1/2"


def test_it_shows_the_plan_the_attacker_and_a_ledger_that_adds_up(made):
    folder, said = made
    for part in (
        "Plan first",
        "visits  8    8      ± 40",
        "Then release",
        "An attacker",
        "100%",
        "The ledger",
    ):
        assert part in said
    assert "ε 1.75 of 3 is spent, 1.25 is left" in said
    with open_study(folder / "study.toml") as study:
        assert float(study.spent) == 1.75


def test_the_invented_people_are_as_many_as_it_says_and_the_same_in_every_run():
    visits = demo_data.visits()
    assert len(visits.column("person").unique()) == demo_data.PEOPLE
    assert (
        visits.group_by("person").aggregate([("age", "count")]).column("age_count").to_numpy().max()
        <= 4
    )
    assert len(set(demo_data.county_names())) == demo_data.COUNTIES
    assert visits.equals(demo_data.visits())


def test_it_takes_no_folder_of_others(tmp_path):
    (tmp_path / "visits.parquet").write_text("a custodian's own")
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(InvalidParameter, match="must be an empty folder"):
        run(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
