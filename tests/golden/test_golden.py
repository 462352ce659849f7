"""What others rely on, written down: canonical texts, ledger rows, records, tapes, HTTP bodies.

A canonical text that changes by accident would one day charge people again for what they asked
before. What changes on purpose is written anew with `DISCREET_GOLDEN=write`, and is then seen in
the difference. Noise is switched off; times, random names and hashes over them are left out. The
texts of `--help` are kept in the source itself (help.txt).
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from asking import one_text
from noiseless import no_noise
from serving import BY_COUNTY, served
from studies import select, study_of, without_noise

HERE = Path(__file__).parent

QUESTIONS = {
    "counts": "SELECT count(*), count(age), count(DISTINCT patient), count_if(smoker) FROM t",
    "moments": (
        "SELECT sum(age), avg(income), var_pop(age), var_samp(age), stddev_pop(age), stddev(age)"
        " FROM t"
    ),
    "conditions": (
        "SELECT count(*) FROM t WHERE age BETWEEN 18 AND 65 AND name LIKE 'A%' AND smoker IS NOT"
        " NULL"
    ),
    "choices": "SELECT median(age), quantile_cont(age, 0.25), min(income), max(income) FROM t",
    "groups": "SELECT county, sex, count(*), avg(age) FROM t GROUP BY county, sex",
    "bins": "SELECT band, count(*) FROM t GROUP BY band",
    "dates": (
        "SELECT date_trunc('month', day) AS month, count(*) FROM t WHERE day >= DATE '2021-01-01'"
        " GROUP BY month"
    ),
    "expressions": (
        "SELECT avg(CASE WHEN smoker THEN age ELSE 0 END), sum(least(age, 10) * 2) FROM t"
    ),
    "afterwards": (
        "SELECT county, count(*) AS n, avg(age) / 2 AS half FROM t GROUP BY county HAVING n > 5"
        " LIMIT 2"
    ),
}
ROWS = [
    {
        "who": str(row),
        "place": ["north", "south", None][row % 3],
        "level": 1 + row % 2,
        "age": row % 11,
        "pay": row / 7,
    }
    for row in range(40)
]
STUDY = {
    "counts": select("count(*), count(age)"),
    "moments": select("avg(age) AS age, sum(pay), stddev(pay)"),
    "groups": select("place, count(*), avg(age), variance(pay)", "GROUP BY place"),
    "choices": select("median(age), quantile_cont(pay, 0.9), max(pay)"),
}
_TIME = r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?"
VALUES = np.arange(50.0) / 5


@pytest.fixture(autouse=True)
def _the_same_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.release.plan.today", lambda: "2026-01-01")


def compare(name: str, found: Any) -> None:
    """The content of a golden file; it is written where that is asked for."""
    file, text = HERE / name, json.dumps(found, indent=1, ensure_ascii=False, default=str) + "\n"
    if os.environ.get("DISCREET_GOLDEN") == "write":
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def masked(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without what is new in each run."""
    private = {"time", "hash", "before", "nonce", "request_id", "question", "data_version"}
    return {
        name: "…" if name in private and value is not None else value
        for name, value in entry.items()
    }


def test_canonical_texts() -> None:
    compare("canonical.json", {name: one_text(text) for name, text in QUESTIONS.items()})


@pytest.mark.parametrize("neighbors", ["change-one", "add-remove"])
def test_records_and_ledger_rows(neighbors: str, tmp_path: Path) -> None:
    terms = {"neighbors": neighbors, "version": "golden", "epsilon": 2}
    records = {}
    with study_of(ROWS, tmp_path / "study.ledger", **terms) as study:
        for name, text in STUDY.items():
            plan = study.sql(text, epsilon="0.25")
            with without_noise():
                answer = plan.release()
            records[name] = {
                "canonical": plan.canonical,
                "plan": plan.table,
                "record": answer.full_record,
            }
        study.ledger.allot("ann", "0.5", study=study.name)
        entries = json.loads(study.ledger.export())["entry"]
    compare(f"records-{neighbors}.json", records)
    rows = [
        {**masked(entry), "answer": list(entry["answer"]) if entry.get("answer") else None}
        for entry in entries
    ]
    compare(f"ledger-{neighbors}.json", rows)


def test_tapes_of_array_calls(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"bounds": (0, 10), "epsilon": "0.1"}
    calls = {
        "count": lambda **account: discreet.count(VALUES, epsilon="0.1", **account),
        "sum": lambda **account: discreet.sum(VALUES, **terms, **account),
        "sum of named data": lambda **account: discreet.sum(
            VALUES, **terms, data_name="pay", **account
        ),
        "mean": lambda **account: discreet.mean(VALUES, **terms, **account),
        "mean add-remove": lambda **account: discreet.mean(
            VALUES, **terms, neighbors="add-remove", **account
        ),
        "std": lambda **account: discreet.std(VALUES, missing=0, **terms, **account),
        "median": lambda **account: discreet.median(VALUES, **terms, **account),
        "max": lambda **account: discreet.max(VALUES, **terms, **account),
        "histogram": lambda **account: discreet.histogram(
            VALUES, bins=[0, 5, 10], epsilon="0.1", **account
        ),
        "cdf": lambda **account: discreet.cdf(VALUES, cells=8, **terms, **account),
    }
    tapes = {}
    with discreet.Ledger.open(tmp_path / "arrays.ledger", new=True) as ledger:
        ledger.create("golden", 10)
        for name, call in calls.items():
            with no_noise():
                call(ledger=ledger, study="golden", request_id=name)
        for entry in json.loads(ledger.export())["entry"]:
            if entry["kind"] == "spend":
                tapes[entry["request_id"]] = {"query": entry["query"]}
            elif entry["kind"] == "answer":
                tapes[entry["request_id"]]["tape"] = json.loads(entry["answer"])
    compare("tapes.json", tapes)


def test_http_bodies(tmp_path: Path) -> None:
    bodies, release = {}, ""
    with served(tmp_path) as people, without_noise():
        client = people.client("ann")
        question = {"study": "people", "sql": BY_COUNTY, "epsilon": "0.1"}
        for method, path, body in [
            ("GET", "/studies", None),
            ("POST", "/plan", question),
            ("POST", "/plan", {**question, "sql": "SELECT age FROM people"}),
            ("POST", "/release", {**question, "request_id": "first"}),
            ("GET", "/releases/{id}", None),
            ("GET", "/ledger?study=people", None),
            ("GET", "/openapi.json", None),
        ]:
            response = client.request(
                method, path.format(id=release), **({} if body is None else {"json": body})
            )
            release = response.json().get("id", release)
            content = json.loads(re.sub(rf"{_TIME}|{release or '$^'}", "…", response.text))
            bodies[f"{method} {path} {len(bodies)}"] = {
                "status": response.status_code,
                "body": content,
            }
    compare("http.json", bodies)
