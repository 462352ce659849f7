"""TRUST 32, and 9, 11 and 30 over HTTP: what is no good question is refused and spends nothing, and
the server lives.

Each line has a control: a lenient reader, a talkative server, a shape that follows the data; its
harness catches it.
"""

import contextlib
import json
import logging
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any
from unittest import mock

import httpx
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from discreet import Ledger
from discreet.errors import EngineFailed, InvalidParameter, LedgerDamaged
from discreet.release import standing
from discreet.serve.refusals import FAILURE, Refusal
from discreet.serve.schema import document
from serving import BY_COUNTY, Served, body, folder_in_memory, people, running, served
from studies import without_noise

JSON = "application/json"
WHERE = "SELECT count(*) FROM people WHERE "
ID = re.compile(rb', "request_id": [^,}]*')
CANARY = "Kanarienvogel"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """Here one study fails again and again, and is asked at once."""
    monkeypatch.setattr(standing, "_FIRST", 0)


@pytest.fixture(scope="module")
def site():
    with folder_in_memory() as folder, served(folder, epsilon=1000) as made:
        yield made


@pytest.fixture(scope="module")
def url(site):
    with running(site) as address:
        yield address


def raw(text: str) -> bytes:
    """A good question with something in it that JSON writes and Python would not."""
    return json.dumps(body(epsilon="EPSILON")).replace('"EPSILON"', text).encode()


def reported(**changed: Any) -> dict[str, Any]:
    """A report to be released."""
    tables = {"by_county": BY_COUNTY, "all": "SELECT count(*) AS n, sum(age) AS s FROM people"}
    return body(**{"sql": None, "tables": tables, **changed})


def asked(**changed: Any) -> bytes:
    return json.dumps(body(**changed)).encode()


BODIES: dict[str, tuple[int, bytes]] = {
    "duplicate key": (400, b'{"study": "people", ' + asked()[1:]),
    "duplicate epsilon": (400, asked()[:-1] + b', "epsilon": "0.1"}'),
    "NaN": (400, raw("NaN")),
    "Infinity": (400, raw("Infinity")),
    "-Infinity": (400, raw("-Infinity")),
    "1e400": (400, raw("1e400")),
    "5e-324": (400, raw("5e-324")),
    "a 5,000-digit number": (400, raw("1" + "0" * 5000)),
    "a 5,000-digit text": (400, raw('"' + "1" * 5000 + '"')),
    "zero": (400, raw("0")),
    "minus zero": (400, raw("-0.0")),
    "minus one": (400, raw("-1")),
    "true": (400, raw("true")),
    "null": (400, raw("null")),
    "a list": (400, raw("[0.1]")),
    "0.1x": (400, raw('"0.1x"')),
    "text nan": (400, raw('"nan"')),
    "text inf": (400, raw('"inf"')),
    "a million and one": (400, raw("1000001")),
    "0/0": (400, raw('"0/0"')),
    "deep nesting": (400, asked(weights="W").replace(b'"W"', b'{"a":' * 5000 + b"1" + b"}" * 5000)),
    "brackets only": (400, b"[" * 60_000),
    "10 MB": (413, b'{"sql": "' + b"x" * 10**7 + b'"}'),
    "one byte too long": (413, b" " * (64 * 1024 + 1)),
    "nothing": (400, b""),
    "a list as body": (400, b"[" + asked() + b"]"),
    "not UTF-8": (400, asked().replace(b"people", b"\xff\xfe", 1)),
    "half of a pair": (400, asked(sql="S").replace(b'"S"', b'"\\ud800"')),
    "NUL": (422, asked(sql="SELECT count(*) FROM people\0")),
    "an unknown field": (400, asked(noise="off")),
    "a debugging field": (400, asked(debug=True)),
    "no id": (400, asked(request_id=None)),
    "an empty id": (400, asked(request_id="")),
    "another's id": (400, asked(request_id="bob:1")),
    "an id of a discovery": (400, asked(request_id="discreet/discover")),
    "a long id": (400, asked(request_id="x" * 51)),
    "an id that is a number": (400, asked(request_id=7)),
    "no study": (400, asked(study=None)),
    "a study by its path": (404, asked(study="../other")),
    "another's study": (404, asked(study="other")),
    "epsilon and within": (400, asked(within=3)),
    "neither": (400, asked(epsilon=None)),
    "sql and ask": (400, asked(ask={"n": {"kind": "Count"}})),
    "sql and where": (400, asked(where=["age > 1"])),
    "a question of no kind": (400, asked(sql=None, ask={"n": {"kind": "Exact"}})),
    "an unknown question's field": (
        400,
        asked(sql=None, ask={"n": {"kind": "Count", "epsilon": 0}}),
    ),
    "confidence 1": (400, asked(confidence=1)),
    "size 0": (400, asked(size=0)),
    "weights of strangers": (400, asked(weights={"nobody": 1})),
    "a weight of 0": (400, asked(weights={"people": 0})),
    "rows": (422, asked(sql="SELECT * FROM people")),
    "two statements": (422, asked(sql="SELECT count(*) FROM people; DROP TABLE people")),
    "PRAGMA": (422, asked(sql="PRAGMA database_list")),
    "a file": (422, asked(sql="SELECT count(*) FROM read_csv('/etc/passwd')")),
    "an undeclared column": (422, asked(sql="SELECT avg(income) FROM people")),
    "60 KB of brackets in SQL": (422, asked(sql=WHERE + "(" * 30000 + "1" + ")" * 30000)),
    "60 KB of NOT": (422, asked(sql=WHERE + "NOT " * 15000 + "age > 1")),
    "60 KB of minus": (422, asked(sql=WHERE + "age > " + "- " * 25000 + "1")),
}


@pytest.mark.parametrize("path", ["/plan", "/release"])
@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_refused_spends_nothing_and_the_server_lives(site, url, name, path):
    status, content = BODIES[name]
    before = site.study.ledger.entries("people")
    headers = {
        **site.headers("ann"),
        "content-type": JSON,
    }
    if path == "/plan":  # the same without its id, which a plan has not
        content = ID.sub(b"", content)
    told = httpx.post(url + path, content=content, headers=headers)
    assert told.status_code == (status if path == "/release" or " id" not in name else 200), (
        told.text
    )
    if told.status_code == 200:
        return
    assert set(told.json()) == {"error", "advice"}
    assert len(told.content) < 1000
    assert site.study.ledger.entries("people") == before
    assert httpx.get(url + "/healthz").status_code == 200


REPORTED = [
    name for name in BODIES if not {"sql", "ask", "question"} & set(name.replace("'", " ").split())
]
"""Bodies that are as bad for a report."""


def test_a_bad_body_of_a_report_is_refused_spends_nothing_and_the_server_lives(site, url):
    before = site.study.ledger.entries("people")
    headers = {
        **site.headers("ann"),
        "content-type": JSON,
    }
    with httpx.Client(base_url=url, headers=headers) as client:
        for name in REPORTED:
            status, content = BODIES[name]
            content = re.sub(rb'"sql": ("(?:[^"\\]|\\.)*")', rb'"tables": {"t": \1}', content)
            told = client.post("/report", content=content)
            assert told.status_code == status, (name, told.text)
            assert set(told.json()) == {"error", "advice"}
            assert len(told.content) < 1000
    assert site.study.ledger.entries("people") == before
    assert len(REPORTED) > 40


def test_a_lenient_reader_would_take_some_of_them():
    """The control: what Python's own reader and `float` make of the same bodies."""

    def lenient(content: bytes) -> bool:
        try:
            told = json.loads(content)
            return not float(told["epsilon"]) <= 0
        except Exception:
            return False

    taken = {name for name, (_, content) in BODIES.items() if lenient(content)}
    assert {
        "duplicate key",
        "duplicate epsilon",
        "NaN",
        "Infinity",
        "1e400",
        "true",
        "text nan",
    } <= taken


def test_a_stream_without_a_length_is_cut(site, url):
    sent = []

    def parts():
        for _ in range(1000):
            sent.append(1)
            yield b"x" * 10_000

    headers = {**site.headers("ann"), "content-type": JSON}
    with contextlib.suppress(httpx.WriteError):
        assert httpx.post(url + "/release", content=parts(), headers=headers).status_code == 411
    assert len(sent) < 1000
    assert httpx.get(url + "/healthz").status_code == 200


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
)
def test_another_content_type_is_refused(site, url, kind):
    headers = {**site.headers("ann"), **({} if kind is None else {"content-type": kind})}
    assert (
        httpx.post(url + "/plan", content=asked(request_id=None), headers=headers).status_code
        == 415
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/plan"),
        ("GET", "/release"),
        ("DELETE", "/ledger"),
        ("PUT", "/releases/x"),
        ("PATCH", "/studies"),
        ("TRACE", "/healthz"),
        ("OPTIONS", "/plan"),
        ("POST", "/openapi.json"),
        ("BREW", "/studies"),
    ],
)
def test_another_method_is_refused(site, url, method, path):
    told = httpx.request(method, url + path, headers=site.headers("ann"))
    assert (told.status_code, set(told.json())) == (405, {"error", "advice"})
    assert told.headers["allow"]


def test_a_token_must_be_there_whole_and_alive(site, url):
    site.access.permit("gone", role="analyst", study="people")
    token = str(site.tokens["ann"])
    revoked = "discreet_0000000000000000_" + "0" * 64
    values = ["", "Bearer", f"Basic {token}", token, f"Bearer {token[:-1]}", f"Bearer {revoked}"]
    values += [f"Bearer {token}, Bearer {token}", f"Bearer {token} x", "Bearer ' OR 1=1 --"]
    before, seen = site.study.spent, set()
    for value in values:
        told = httpx.post(url + "/release", json=body(), headers={"authorization": value})
        seen.add((told.status_code, told.content, str(told.headers)))
    assert len(seen) == 1
    assert {status for status, _, _ in seen} == {401}
    assert site.study.spent == before


@pytest.mark.parametrize(
    "path", ["/releases/..%2f..%2fetc%2fpasswd", "/page/..%2f..%2fapp.py", "/page/%2e%2e/app.py"]
)
def test_no_path_leads_out(site, url, path):
    told = httpx.get(url + path, headers=site.headers("cleo"))
    assert told.status_code == 404
    assert "import" not in told.text


def test_a_question_that_a_restore_made_void_is_refused_with_the_reason():
    """TRUST 32, 38: nothing is spent for it, and it is no failure of the server."""
    with folder_in_memory() as folder, served(folder) as site:
        first, second = body(), body()
        with mock.patch.object(site.study.engine, "fetch", side_effect=EngineFailed("")):
            assert site.client("ann").post("/release", json=first).status_code == 503
        (folder / "people.ledger.anchor").unlink()
        with pytest.raises(InvalidParameter) as refusal:
            Ledger.restore(folder / "people.ledger", accept="")
        Ledger.restore(
            folder / "people.ledger", accept=str(refusal.value).partition("ledger, '")[2][:16]
        ).close()
        spent = site.study.spent
        for who, asked in (("ann", first), ("bob", second)):
            told = site.client(who).post("/release", json=asked)
            assert told.status_code == 422
            assert "paid for before the ledger was restored" in told.json()["error"]
            assert "nothing was spent" in told.json()["advice"]
        assert site.study.spent == spent
        assert (
            site.client("bob").post("/release", json={**second, "epsilon": "0.2"}).status_code
            == 200
        )


# Whatever fails after the spend looks the same.

FAILURES = {
    "a foreign error": RuntimeError(f"row {CANARY}"),
    "a refusal": Refusal(400, CANARY, CANARY),
    "a parameter": InvalidParameter(CANARY),
    "the engine": EngineFailed(CANARY),
    "the ledger": LedgerDamaged("entry 3 was changed"),
    "memory": MemoryError(CANARY),
    "an overflow": OverflowError(CANARY),
    "a stop": StopIteration(CANARY),
    "a key": KeyError(CANARY),
    "a timeout": TimeoutError(CANARY),
}
PLACES = ["fetch", "record", "answer_body"]


def failing(site: Served, place: str, error: Exception) -> Any:
    if place == "fetch":
        return mock.patch.object(site.study.engine, "fetch", side_effect=error)
    if place == "record":
        return mock.patch.object(site.study.ledger, "record", side_effect=error)
    return mock.patch(f"discreet.serve.desk.{place}", side_effect=error)


def appearance(response: httpx.Response) -> tuple[Any, ...]:
    return response.status_code, response.headers.raw, response.content


def test_every_failure_after_the_spend_looks_the_same(site, url, caplog):
    seen, numbers = set(), iter(range(10**6))
    with httpx.Client(base_url=url, headers=site.headers("ann")) as client:
        for place in PLACES:
            for error in FAILURES.values():
                before = site.study.spent
                question = body(epsilon=str(Fraction(1 + next(numbers), 10**4)))
                with failing(site, place, error):
                    seen.add(str(appearance(client.post("/release", json=question))))
                assert site.study.spent > before
                spent = site.study.spent
                # asked again: answered, not charged
                assert client.post("/release", json=question).status_code == 200
                assert site.study.spent == spent
    assert len(seen) == 1
    assert json.dumps(FAILURE.body, separators=(",", ":")) in seen.pop()
    assert "RuntimeError" in caplog.text


def test_every_failure_of_a_report_after_the_spend_looks_the_same(site, url):
    seen = set()
    with httpx.Client(base_url=url, headers=site.headers("ann")) as client:
        for at, (place, error) in enumerate(
            product(["fetch", "record", "report_body"], list(FAILURES.values())[:2])
        ):
            before, question = site.study.spent, reported(epsilon=str(Fraction(1 + at, 10**4)))
            with failing(site, place, error):
                seen.add(str(appearance(client.post("/report", json=question))))
            assert site.study.spent > before
            spent = site.study.spent
            # asked again: answered, not charged
            assert client.post("/report", json=question).status_code == 200
            assert site.study.spent == spent
    assert len(seen) == 1
    assert json.dumps(FAILURE.body, separators=(",", ":")) in seen.pop()


def test_a_talkative_server_would_be_seen(site, url):
    def talkative(error: Exception, _: str) -> None:
        raise Refusal(500, str(error), "")

    seen = set()
    with mock.patch("discreet.serve.desk.tell_operator", talkative):
        for error in FAILURES.values():
            with failing(site, "fetch", error):
                told = httpx.post(
                    url + "/release", json=body(epsilon="0.2"), headers=site.headers("ann")
                )
            seen.add(str(appearance(told)))
    assert len(seen) > 1


# The canary.

ASKED = [
    BY_COUNTY,
    "SELECT count(*) AS n FROM people",
    (
        "SELECT min(age) AS low, max(age) AS high, median(age) AS middle, stddev(age) AS std FROM"
        " people"
    ),
    "SELECT count(*) AS n FROM people WHERE county LIKE 'Kana%'",
    (
        "SELECT county, sum(age) AS s FROM people WHERE age > 100 GROUP BY county HAVING sum(age) >"
        " 10 ORDER BY s LIMIT 2"
    ),
    "SELECT * FROM people",
    "SELECT county FROM people",
    "SELECT avg(nothing) FROM people",
]


def everything_said(site: Served) -> Iterator[str]:
    """All that a server says to three people who ask a lot: status, headers and bodies."""
    for who in ("ann", "bob", "cleo", None):
        client = site.client(who)
        answers = [
            client.get(path)
            for path in ("/studies", "/ledger", "/openapi.json", "/healthz", "/", "/nothing")
        ]
        for sql in ASKED:
            answers.append(client.post("/plan", json=body(sql=sql, request_id=None)))
            answers.append(client.post("/release", json=body(sql=sql)))
            if answers[-1].status_code == 200:
                entry = answers[-1].json()["id"]
                answers += [
                    client.get(f"/releases/{entry}?format={form}")
                    for form in ("json", "csv", "parquet")
                ]
        report = reported(epsilon="0.05")
        answers.append(client.post("/report", json=report))
        answers.append(client.post("/report/plan", json=reported(request_id=None)))
        place = f"/reports/{report['request_id']}"
        answers += [
            client.get(place + more)
            for more in ("", "/by_county", "/by_county?format=csv", "/nothing")
        ]
        answers.append(client.get("/ledger"))
        yield from (
            f"{answer.status_code} {answer.headers} {answer.content!r} {answer.text}"
            for answer in answers
        )


def test_the_canary_is_in_no_response_header_or_log(tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with served(tmp_path, table=people([(CANARY, 7319.0625)])) as site:
        said = list(everything_said(site))
        with failing(site, "fetch", RuntimeError(f"{CANARY} 7319.0625")):
            told = site.client().post(
                "/release", json=body(sql="SELECT sum(age) FROM people", epsilon="0.011")
            )
        said.append(f"{told.status_code} {told.headers} {told.text}")
        assert told.status_code == 503
    printed = capfd.readouterr()
    logged = caplog.text + printed.out + printed.err
    assert len(said) > 60
    assert not any(CANARY.lower() in text.lower() for text in [*said, logged])
    assert "7319" not in re.sub(r"[,_ ]", "", logged)
    assert "RuntimeError" in logged


def test_the_search_for_the_canary_finds_a_key_that_is_told(tmp_path):
    """The control: a custodian who declares the key tells it."""
    columns = {"county": {"keys": ["Dukes", CANARY]}, "age": {"bounds": [0, 120]}}
    with (
        mock.patch("serving.COLUMNS", columns),
        served(tmp_path, table=people([(CANARY, 7319.0625)])) as site,
    ):
        assert any(CANARY in text for text in everything_said(site))


# Neighbours.


def shape(value: Any) -> Any:
    """Names, order, lengths and types, without the numbers."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items() if name not in ("time", "sha256")}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return (
        type(value).__name__
        if isinstance(value, int | float) and not isinstance(value, bool)
        else value
    )


def seen(site: Served, sqls: list[str]) -> list[Any]:
    """Status, headers and shapes of all that an analyst can see of some questions."""
    found: list[Any] = []
    client = site.client()
    with without_noise():
        for at, sql in enumerate(sqls):
            question = body(sql=sql, request_id=f"q{at}", epsilon="0.05")
            plan = {name: value for name, value in question.items() if name != "request_id"}
            for told in (client.post("/plan", json=plan), client.post("/release", json=question)):
                headers = [
                    pair for pair in told.headers.raw if pair[0].lower() != b"content-length"
                ]
                found.append((told.status_code, headers, shape(told.json())))
        report = reported(
            tables={"by_county": SHAPED[0], "all": "SELECT count(*) FROM people"}, request_id="r"
        )
        for path in ("/report/plan", "/report"):
            told = client.post(
                path,
                json={
                    name: report[name]
                    for name in report
                    if path == "/report" or name != "request_id"
                },
            )
            found.append((told.status_code, shape(told.json())))
        for path in ("/studies", "/ledger", "/releases/q0", "/reports/r"):
            told = client.get(path)
            found.append((told.status_code, shape(told.json())))
    return found


SHAPED = [
    "SELECT county, count(*) AS people, avg(age) AS age FROM people GROUP BY county",
    (
        "SELECT min(age) AS low, max(age) AS high, median(age) AS middle, stddev(age) AS std FROM"
        " people"
    ),
    "SELECT sum(age) AS s, count(age) AS n FROM people WHERE age > 1000",
    "SELECT * FROM people",
]
"""Without an order by released numbers, which follows them."""

NEIGHBOURS = {
    "one more": [("Essex", 50.0)],
    "one beyond the bounds": [("Essex", 1e308)],
    "one who is nowhere": [("Nowhere", float("nan"))],
    "one without anything": [(None, None)],
}


@cache
def seen_of(*extra: tuple[str | None, float | None]) -> list[Any]:
    """The same of a server of its own, over people and some more."""
    with folder_in_memory() as folder, served(folder, table=people([*extra])) as site:
        return seen(site, SHAPED)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours_give_the_same_headers_and_shapes(name):
    assert seen_of() == seen_of(*NEIGHBOURS[name])
    assert len(seen_of()) == 2 * len(SHAPED) + 2 + 4


def test_a_count_of_neighbours_has_the_same_length_to_the_byte(tmp_path):
    lengths = []
    for at, extra in enumerate(([], [("Essex", 50.0)])):
        (tmp_path / str(at)).mkdir()
        with served(tmp_path / str(at), table=people(extra)) as site, without_noise():
            told = site.client().post(
                "/release", json=body(sql="SELECT count(*) AS n FROM people", request_id="q")
            )
            lengths.append(told.headers.raw)
    assert lengths[0] == lengths[1]


def test_a_server_that_tells_the_keys_of_the_data_would_be_seen(tmp_path):
    from discreet.release.answer import Answer

    def only_inhabited(answer: Answer) -> dict[str, Any]:
        table = real(answer)
        there = [at for at, many in enumerate(table.get("people", [1])) if many > 0]
        return {name: [column[at] for at in there] for name, column in table.items()}

    real, both = Answer.to_dict, []
    empty = people().filter([county != "Dukes" for county in people()["county"].to_pylist()])
    with mock.patch.object(Answer, "to_dict", only_inhabited):
        for at, extra in enumerate(([], [("Dukes", 50.0)])):
            (tmp_path / str(at)).mkdir()
            table = empty if not extra else pa.concat_tables([empty, people().slice(3, 1)])
            with served(tmp_path / str(at), table=table) as site:
                both.append(seen(site, [BY_COUNTY]))
    assert both[0] != both[1]


# The description, and what the server does.

OPERATIONS = [(path, method) for path, methods in document()["paths"].items() for method in methods]
KINDS = ["positive", "negative"]
"""Requests that fit the description, and that do not."""


@pytest.fixture(scope="module")
def description() -> Any:
    import schemathesis  # takes a second

    return schemathesis.openapi.from_dict(document())


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_server_does_what_its_description_says(description, site, url, path, method):
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

    # a description cannot say which SQL a study allows; and the token is in every request here: it
    # is tested above
    without, operation = [positive_data_acceptance, ignored_auth], description[path][method.upper()]
    kinds = KINDS if "requestBody" in document()["paths"][path][method] else KINDS[:1]

    @settings(
        max_examples=20, deadline=None, derandomize=True, database=None, phases=[Phase.generate]
    )
    @given(case=st.one_of(*(operation.as_strategy(GenerationMode(kind)) for kind in kinds)))
    def does(case: Any) -> None:
        before = site.study.spent
        case.call_and_validate(base_url=url, headers=site.headers("ann"), excluded_checks=without)
        assert site.study.spent >= before

    does()


def test_good_questions_fit_the_description(description, site, url):
    """The generated ones are mostly refused, so that good ones are checked by hand."""
    headers = site.headers("ann")
    for sql in ASKED[:5]:
        for path, question in (
            ("/plan", body(sql=sql, request_id=None)),
            ("/release", body(sql=sql)),
        ):
            told = httpx.post(url + path, json=question, headers=headers)
            assert told.status_code == 200
            description[path]["POST"].validate_response(told)
    report = reported(request_id="fits")
    plan = {name: value for name, value in report.items() if name != "request_id"}
    for path, question in (("/report/plan", plan), ("/report", report)):
        told = httpx.post(url + path, json=question, headers=headers)
        assert told.status_code == 200
        description[path]["POST"].validate_response(told)
    for path, place in (
        ("/reports/{id}", "/reports/fits"),
        ("/reports/{id}/{table}", "/reports/fits/all"),
    ):
        told = httpx.get(url + place, headers=headers)
        assert told.status_code == 200
        description[path]["GET"].validate_response(told)
    for path in ("/studies", "/ledger", "/healthz", "/openapi.json"):
        description[path]["GET"].validate_response(httpx.get(url + path, headers=headers))


def test_a_description_that_says_something_else_is_caught(site, url):
    import schemathesis

    wrong = json.loads(json.dumps(document()))
    wrong["components"]["schemas"]["Study"]["properties"]["total"] = {"type": "integer"}
    told = httpx.get(url + "/studies", headers=site.headers("ann"))
    with pytest.raises(Exception, match="integer"):
        schemathesis.openapi.from_dict(wrong)["/studies"]["GET"].validate_response(told)
