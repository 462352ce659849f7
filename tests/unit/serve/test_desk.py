"""Reports over HTTP: one plan, one price, all tables."""

import io
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import pytest
from pyarrow import csv, parquet

from discreet.ask.policy import Policy
from discreet.errors import BudgetExceeded, InvalidParameter, QueryRefused
from discreet.serve.refusals import FAILURE
from serving import COLUMNS, QUICK, body, folder_in_memory, people, served

BY_COUNTY = "SELECT county, count(*) AS people, avg(age) AS age FROM people GROUP BY county"
TOTAL = "SELECT count(*) AS n FROM people"
TABLES = {"by_county": BY_COUNTY, "total": TOTAL}


def question_body(**changed):
    """A report to be released, with an id of its own."""
    return body(**{"sql": None, "tables": TABLES, "epsilon": "0.2", **changed})


def test_a_plan_is_what_the_study_says(site):
    before = site.study.spent
    response = (
        site.client("cleo")
        .post("/report/plan", json=question_body(request_id=None, title="Visits"))
        .json()
    )
    plan = site.study.report(TABLES, epsilon="0.2", title="Visits")
    assert response["text"] == repr(plan)
    assert [(line["table"], line["within"], line["one_by_one"]) for line in response["lines"]] == [
        (line.table, line.within, line.one_by_one) for line in plan.lines
    ]
    assert (response["title"], response["epsilon"], response["confidence"]) == (
        "Visits",
        "1/5",
        "19/20",
    )
    assert sum(Fraction(one["epsilon"]) for one in response["measured"]) == Fraction(1, 5)
    assert site.study.spent == before


def test_one_release_is_one_spend_for_all_tables_which_agree(site):
    before = site.study.spent
    report = question_body(epsilon="0.21", title="Visits", request_id="visits")
    response = site.client().post("/report", json=report).json()
    assert site.study.spent - before == Fraction("0.21")
    assert (response["id"], response["title"], response["epsilon"]) == (
        "discreet.report.ann:visits",
        "Visits",
        "21/100",
    )
    by_county, total = (response["tables"][name]["table"] for name in TABLES)
    assert by_county["county"] == ["Dukes", "Essex", "Suffolk"]
    # rows of other counties are in the total alone
    assert sum(by_county["people"]) <= total["n"][0] + 60
    assert by_county["people_low"][0] < by_county["people"][0] < by_county["people_high"][0]
    assert site.client().post("/report", json=report).json() == response
    assert site.study.spent - before == Fraction("0.21")
    changed = {**report, "tables": {"total": TOTAL}}
    for path, other in (("/report", changed), ("/release", body(request_id="visits"))):
        assert site.client().post(path, json=other).status_code == 409


def test_another_analyst_has_the_same_report_free(site):
    first = site.client().post("/report", json=question_body(epsilon="0.22")).json()
    before, question = site.study.spent, question_body(epsilon="0.22")
    response = site.client("bob").post("/report", json=question).json()
    assert site.study.spent == before
    assert response["sha256"] == first["sha256"]
    assert response["id"] == f"discreet.report.bob:{question['request_id']}"
    assert site.client("bob").get(f"/reports/{question['request_id']}").json() == response


def test_a_table_of_another_analysts_report_is_free_noted_and_without_its_title(site):
    site.client().post("/report", json=question_body(epsilon="0.36", title="Layoffs"))
    before, question = site.study.spent, body(sql=BY_COUNTY, epsilon="0.36", request_id="table")
    plan = (
        site.client("bob")
        .post("/plan", json=body(sql=BY_COUNTY, epsilon="0.36", request_id=None))
        .text
    )
    assert "released before: free" in plan
    response = site.client("bob").post("/release", json=question)
    assert "Layoffs" not in plan + response.text
    assert "ann:" not in response.text
    entries = [
        entry for entry in site.study.ledger.entries("people") if entry.request_id == "bob:table"
    ]
    assert [(entry.kind, entry.analyst, entry.amount) for entry in entries] == [
        ("repeat", "bob", 0)
    ]
    assert site.client("bob").post("/release", json=question).json()["id"] == "bob:table"
    assert site.client("bob").get("/releases/table").json()["record"] == response.json()["record"]
    assert site.study.spent == before


def test_a_repeat_of_a_table_that_was_not_kept_in_time_is_answered_when_it_is_asked_again(site):
    site.client().post("/report", json=question_body(epsilon="0.37"))
    question = body(sql=BY_COUNTY, epsilon="0.37", request_id="late")
    with mock.patch("discreet.serve.store.Requests.keep", side_effect=OSError):
        assert site.client("bob").post("/release", json=question).status_code == 503
    assert site.client("bob").get("/releases/late").status_code == 404
    assert site.client("bob").post("/release", json=question).status_code == 200
    assert site.client("bob").get("/releases/late").status_code == 200


def test_a_report_is_shown_again_and_its_tables_in_all_formats(site):
    question = question_body(
        epsilon="0.23", confidence="0.9", simultaneous=True, size=50, integers=True
    )
    response, client = site.client().post("/report", json=question).json(), site.client()
    for name in (question["request_id"], response["id"]):
        assert client.get(f"/reports/{name}").json() == response
    place = f"/reports/{question['request_id']}/by_county"
    assert client.get(place).json() == response["tables"]["by_county"]
    table = response["tables"]["by_county"]["table"]
    assert all(isinstance(count, int) for count in table["people"])
    assert (
        csv.read_csv(io.BytesIO(client.get(f"{place}?format=csv").content))["people"].to_pylist()
        == table["people"]
    )
    columns = parquet.read_table(
        io.BytesIO(client.get(place, headers={"accept": "application/vnd.apache.parquet"}).content)
    )
    assert columns["age_low"].to_pylist() == table["age_low"]


def test_a_report_is_its_owners_and_the_custodians(site):
    response = (
        site.client().post("/report", json=question_body(epsilon="0.24", request_id="mine")).json()
    )
    assert (
        site.client("cleo").get(f"/reports/{response['id']}").json()["tables"].keys()
        == TABLES.keys()
    )
    refusals = [
        ("bob", response["id"]),
        ("bob", "mine"),
        ("zoe", response["id"]),
        ("ann", "other"),
        ("ann", "discreet.report."),
    ]
    assert {site.client(who).get(f"/reports/{name}").status_code for who, name in refusals} == {404}
    assert site.client().get("/reports/mine/nothing").status_code == 404
    assert site.client().get("/releases/mine").status_code == 404
    question = body(epsilon="0.24")
    assert site.client().post("/release", json=question).status_code == 200
    assert site.client().get(f"/reports/{question['request_id']}").status_code == 404
    assert site.client(None).post("/report", json=question_body()).status_code == 401
    assert site.client("zoe").post("/report", json=question_body()).status_code == 404


def test_a_table_that_is_asked_alone_is_free_under_an_id_of_ones_own(site):
    site.client().post("/report", json=question_body(epsilon="0.25"))
    before, question = site.study.spent, body(sql=TOTAL, epsilon="0.01")
    response = site.client("bob").post("/release", json=question).json()
    assert response["id"] == f"bob:{question['request_id']}"
    assert "ann" not in str(response)
    assert site.client("bob").get(f"/releases/{question['request_id']}").json() == response
    assert site.study.spent == before


def test_what_is_too_much_is_refused_before_it_is_paid_for(site):
    fifty = {f"t{number}": TOTAL for number in range(51)}
    refused = {
        "at most 50 statistics, but this one has 51": {"tables": fifty},
        "share of analyst 'ann'": {"epsilon": "61"},
        "epsilon must be at least 0.0001": {"epsilon": "0.00001"},
        "would release rows": {"tables": {"rows": "SELECT * FROM people"}},
        "tables must be an object": {"tables": {}},
        "a report takes either epsilon, what it may cost, or within": {"within": 3},
        "must name tables of the report": {"weights": {"nothing": 2}},
        "The field 'sql' is not known here": {"sql": TOTAL},
        "The field 'rows' is not known here": {"rows": "rows.parquet"},
        "request_id must be 1 to 40": {"request_id": "x" * 41},
    }
    before = site.study.ledger.entries("people")
    for words, changed in refused.items():
        response = site.client().post("/report", json=question_body(**changed))
        assert response.status_code in (400, 403, 422), words
        assert words in response.json()["error"]
    assert site.study.ledger.entries("people") == before


def test_a_report_of_many_numbers_is_refused():
    limits = replace(QUICK, most_numbers=6)
    with folder_in_memory() as folder, served(folder, limits=limits) as site:
        response = site.client().post("/report", json=question_body())
        assert "at most 6 numbers, but this one has 7" in response.json()["error"]
        by_county = {"tables": {"by_county": "SELECT county, count(*) FROM people GROUP BY county"}}
        assert site.client().post("/report", json=question_body(**by_county)).status_code == 200
        with mock.patch("discreet.serve.desk._MEASURED", 0):
            assert (
                "measured cells"
                in site.client().post("/report", json=question_body(**by_county)).json()["error"]
            )
        assert site.study.spent == Fraction("0.2")
    with (
        folder_in_memory() as folder,
        served(folder, limits=replace(QUICK, most_numbers=3)) as site,
    ):
        response = site.client().post("/report", json=question_body(**by_county, integers=True))
        assert "cells of all columns together, but this one has 4" in response.json()["error"]
        assert site.client().post("/report", json=question_body(**by_county)).status_code == 200


def test_the_longest_name_and_id_fit_into_the_ledger():
    with folder_in_memory() as folder, served(folder) as site:
        from discreet.serve.desk import study_key

        name = "n" * 40
        site.study.ledger.allot(name, "0.5", study="people")
        site.tokens["long"] = str(
            site.access.permit(name, role="analyst", study=study_key(site.study))
        )
        assert (
            site.client("long").post("/report", json=question_body(request_id="i" * 40)).status_code
            == 200
        )


def test_a_report_that_failed_after_the_spend_is_told_nothing_of_and_charged_once(site):
    before, question = site.study.spent, question_body(epsilon="0.26")
    with mock.patch("discreet.serve.desk.report_body", side_effect=RuntimeError("a row")):
        response = site.client().post("/report", json=question)
    assert (response.status_code, response.json()) == (503, FAILURE.body)
    assert site.client().post("/report", json=question).status_code == 200
    assert site.study.spent - before == Fraction("0.26")


def test_a_report_of_another_policy_is_not_shown_wrongly(tmp_path):
    question = question_body()
    with served(tmp_path) as site:
        assert site.client().post("/report", json=question).status_code == 200
        keys = {"keys": ["Dukes", "Essex", "Norfolk", "Suffolk"]}
        terms = {"epsilon": 1, "version": "v1", "neighbors": "add-remove", "table": "people"}
        site.study.policy = Policy(source=people(), columns={**COLUMNS, "county": keys}, **terms)
        response = site.client().get(f"/reports/{question['request_id']}")
        assert response.status_code == 404
        assert response.json()["error"] == "The policy has changed since this report was released."


def test_a_remote_report_is_the_local_one(site, remote):
    terms = {
        "epsilon": Fraction(27, 100),
        "size": 50,
        "confidence": 0.9,
        "weights": {"total": 2},
        "title": "Visits",
    }
    local, remote_plan = site.study.report(TABLES, **terms), remote.report(TABLES, **terms)
    assert repr(remote_plan).split("\n")[1:] == repr(local).split("\n")[1:]
    for name in ("title", "epsilon", "confidence", "simultaneous", "integers", "lines"):
        assert getattr(remote_plan, name) == getattr(local, name), name
    released = remote_plan.release(request_id="remote")
    same = local.release()
    assert released.content == same.content
    assert (list(released), len(released), "total" in released) == (["by_county", "total"], 2, True)
    assert released["by_county"].to_polars().equals(same["by_county"].to_polars())
    assert released["total"].content == same["total"].content
    assert (released.record, released.epsilon) == (same.record, same.epsilon)
    assert released.remaining == site.study.ledger.remaining("people", analyst="ann")
    assert repr(released).startswith("Report(Visits: by_county (3), total (1) · ε 0.27 spent, ")
    assert (
        remote_plan.release(request_id="remote").entry
        == released.entry
        == "discreet.report.ann:remote"
    )
    assert remote.released_report("remote").content == released.content
    with pytest.raises(
        InvalidParameter, match="the report has no table 'nothing'; it has by_county, total"
    ):
        released["nothing"]


def test_errors_of_a_remote_report_are_those_of_a_local_study(site, remote):
    for tables, terms, kind in (
        ({"rows": "SELECT * FROM people"}, {"epsilon": 1}, QueryRefused),
        ({"middle": "SELECT median(age) FROM people"}, {"epsilon": 1}, QueryRefused),
        (TABLES, {"epsilon": 0}, InvalidParameter),
        (TABLES, {}, InvalidParameter),
        ([TOTAL], {"epsilon": 1}, InvalidParameter),
    ):
        said = []
        for study in (site.study, remote):
            with pytest.raises(kind) as caught:
                study.report(tables, **terms)
            said.append(str(caught.value))
        assert said[0] == said[1]
    with pytest.raises(BudgetExceeded, match="share of analyst 'ann'"):
        remote.report(TABLES, epsilon=99).release()
