import io
import json
from dataclasses import replace

import openpyxl
import pytest
from pyarrow import csv, parquet

from discreet.serve.limits import Limits
from discreet.serve.refusals import FAILURE
from serving import BY_COUNTY, QUICK, body, served


def test_a_study_is_described_to_those_who_may_ask(site):
    [content] = site.client().get("/studies").json()["studies"]
    assert (content["name"], content["unit"], content["neighbors"], content["total"]) == (
        "people",
        "row",
        "add-remove",
        "100",
    )
    assert (content["allotment"], content["max_rows"]) == ("60", None)
    county, age = content["columns"]
    assert (county["kind"], county["keys"]) == (
        "text",
        {"count": 3, "first": ["Dukes", "Essex", "Suffolk"]},
    )
    assert (age["kind"], age["bounds"], age["keys"]) == ("number", [0, 120], None)
    [other] = site.client("zoe").get("/studies").json()["studies"]
    assert (other["name"], other["allotment"]) == ("other", None)


def test_who_sends_a_token_that_does_not_work_is_told_so(site):
    """In the same words for every such token, and in others without a token."""
    token = site.tokens["ann"]
    sent = [
        None,
        *(f"Bearer {word}" for word in ("", "x", token[:-1], f"{token}0", token.replace("_", "-"))),
        token,
    ]
    answers = [
        site.client(None).get(
            "/studies", headers={} if header is None else {"authorization": header}
        )
        for header in sent
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert answers[0].json()["error"] == "A token is needed."
    assert {answer.json()["error"] for answer in answers[1:]} == {
        "The token is mistyped, unknown, expired or revoked, or was replaced."
    }
    assert site.client("ann").get("/studies").status_code == 200


def test_a_plan_is_what_the_study_says(site):
    content = site.client().post("/plan", json=body(request_id=None, size=100)).json()
    plan = site.study.sql(BY_COUNTY, epsilon="0.1", size=100)
    assert content["text"].split("\n")[1:] == repr(plan).split("\n")[1:]
    assert [line["within"] for line in content["lines"]] == [line.within for line in plan.lines]
    assert [line["title"] for line in content["lines"]] == ["people", "age"]
    assert (content["epsilon"], content["cost"], content["cells"], content["columns"]) == (
        "1/10",
        "1/10",
        3,
        ["county", "people", "age"],
    )


def test_what_is_left_is_what_is_left_of_the_share(site):
    content = site.client("bob").post("/plan", json=body(request_id=None)).json()
    assert content["remaining"] == "60"
    assert "(left after: 59.9)" in content["text"]
    assert site.client("cleo").post("/plan", json=body(request_id=None)).json()["remaining"] != "60"


def test_the_curve_is_the_error_at_other_epsilons(site):
    content = site.client().post("/plan", json=body(request_id=None, size=100)).json()
    curve = content["curve"]
    assert curve["size"] == 100
    epsilons = [point["epsilon"] for point in curve["points"]]
    assert epsilons == sorted(epsilons)
    assert (epsilons[0], epsilons[-1], len(epsilons)) == (0.06, 60.0, 13)  # of the share
    for point in (curve["points"][0], curve["points"][5], curve["points"][-1]):
        plan = site.study.sql(BY_COUNTY, epsilon=point["epsilon"], size=100)
        assert point["reach"] == pytest.approx([line.reach for line in plan.lines])


def test_the_curve_is_null_where_no_error_is_known(site):
    content = (
        site.client()
        .post("/plan", json=body(request_id=None, sql="SELECT median(age) FROM people"))
        .json()
    )
    assert all(point["reach"] in (None, [None]) for point in content["curve"]["points"])


def test_every_term_of_a_plan_arrives(site):
    client = site.client()
    many = body(
        request_id=None,
        epsilon=None,
        within=20,
        size=1000,
        confidence="0.9",
        simultaneous=True,
        weights={"people": 3},
    )
    content = client.post("/plan", json=many).json()
    plan = site.study.sql(
        BY_COUNTY, within=20, size=1000, confidence="0.9", simultaneous=True, weights={"people": 3}
    )
    assert content["epsilon"] == str(plan.epsilon)
    assert (content["confidence"], content["simultaneous"], content["size"]) == ("9/10", True, 1000)
    assert [line["scale"] for line in content["lines"]] == [str(line.scale) for line in plan.lines]


def test_a_number_in_json_is_the_same_as_its_text(site):
    client = site.client()
    plain, text = (
        client.post("/plan", json=body(request_id=None, epsilon=value)).json()
        for value in (0.1, "0.1")
    )
    assert plain == text


def test_a_question_in_python_is_the_same_as_in_sql(site):
    question = {"people": {"kind": "Count"}, "age": {"kind": "Mean", "of": "age"}}
    chain = body(sql=None, ask=question, by=["county"], where=["age > 1"], epsilon="0.2")
    same = (
        "SELECT county, count(*) AS people, avg(age) AS age FROM PEOPLE WHERE age > 1 GROUP BY"
        " county"
    )
    answers = [
        site.client().post("/release", json=value).json()
        for value in (chain, body(sql=same, epsilon="0.2"))
    ]
    assert answers[0]["sha256"] == answers[1]["sha256"]
    assert answers[0]["table"] == answers[1]["table"]
    assert answers[0]["remaining"] == answers[1]["remaining"]


def test_an_id_is_one_question_for_ever(site):
    client, question = site.client(), body(epsilon="0.03")
    first = client.post("/release", json=question)
    assert first.status_code == 200
    assert client.post("/release", json=question).content == first.content
    before = site.study.spent
    for change in ({"epsilon": "0.04"}, {"sql": BY_COUNTY + " LIMIT 1"}, {"confidence": "0.9"}):
        refused = client.post("/release", json={**question, **change})
        assert (refused.status_code, set(refused.json())) == (409, {"error", "advice"})
    assert site.study.spent == before


def test_an_id_belongs_to_its_owner(site):
    question = body(epsilon="0.05")
    mine = site.client("ann").post("/release", json=question).json()
    other = {**question, "epsilon": "0.06"}
    theirs = site.client("bob").post("/release", json=other).json()
    assert (mine["id"], theirs["id"]) == (
        f"ann:{question['request_id']}",
        f"bob:{question['request_id']}",
    )


def test_the_same_question_of_another_is_free(site):
    first = site.client("ann").post("/release", json=body(epsilon="0.07")).json()
    before = site.study.spent
    second = site.client("bob").post("/release", json=body(epsilon="0.07")).json()
    assert second["sha256"] == first["sha256"]
    assert site.study.spent == before


def test_an_answer_can_be_fetched_again_in_five_formats(site):
    client = site.client()
    release = client.post("/release", json=body(epsilon="0.08")).json()
    where = f"/releases/{release['id']}"
    assert client.get(where).json() == release
    assert client.get(f"/releases/{release['id'].partition(':')[2]}").json() == release
    table = parquet.read_table(io.BytesIO(client.get(f"{where}?format=parquet").content))
    assert table.to_pydict() == release["table"]
    by_accept = client.get(
        where, headers={"accept": "text/csv;q=0.9, application/json;q=0.2, */*;q=0.1"}
    )
    assert by_accept.headers["content-type"].startswith("text/csv")
    assert csv.read_csv(io.BytesIO(by_accept.content)).column_names == table.column_names
    picture = client.get(where, headers={"accept": "image/png"})
    assert picture.content.startswith(b"\x89PNG")
    book = openpyxl.load_workbook(io.BytesIO(client.get(f"{where}?format=xlsx").content))
    [first, *rows] = book.worksheets[0].iter_rows(values_only=True)
    assert (list(first), len(rows)) == (table.column_names, table.num_rows)


@pytest.mark.parametrize(
    ("path", "accept", "status"),
    [
        ("?format=xls", "*/*", 400),
        ("?form=csv", "*/*", 400),
        ("?format=csv&format=csv", "*/*", 400),
        ("", "application/pdf", 406),
        ("", "text/csv;q=0", 406),
        ("", "text/csv;q=x", 406),
        ("", "", 200),
    ],
)
def test_a_format_that_there_is_not_is_refused(site, path, accept, status):
    client = site.client()
    release = client.post("/release", json=body(epsilon="0.08")).json()
    assert (
        client.get(f"/releases/{release['id']}{path}", headers={"accept": accept}).status_code
        == status
    )


def test_another_s_release_is_not_there(site):
    release = site.client("ann").post("/release", json=body(epsilon="0.09")).json()
    nowhere = site.client("bob").get("/releases/ann:nothing")
    assert nowhere.status_code == 404
    for who in ("bob", "zoe"):
        refused = site.client(who).get(f"/releases/{release['id']}")
        assert (refused.status_code, refused.content) == (404, nowhere.content)
    assert (
        site.client("cleo").get(f"/releases/{release['id']}").json()["sha256"] == release["sha256"]
    )


def test_another_s_study_is_not_there(site):
    nothing = site.client().post("/release", json=body(study="nothing"))
    other = site.client().post("/release", json=body(study="other"))
    assert (nothing.status_code, nothing.content) == (other.status_code, other.content)
    assert nothing.status_code == 404
    assert site.client().get("/ledger?study=other").status_code == 404


def test_a_ledger_shows_an_analyst_their_own(site):
    for who in ("ann", "bob", "cleo"):
        site.client(who).post(
            "/release", json=body(epsilon={"ann": "0.11", "bob": "0.12", "cleo": "0.13"}[who])
        )
    ann, bob, cleo = (
        site.client(who).get("/ledger").json()["entries"] for who in ("ann", "bob", "cleo")
    )
    assert {entry["analyst"] for entry in ann} == {"ann"}
    assert {entry["analyst"] for entry in bob} == {"bob"}
    assert {entry["analyst"] for entry in cleo} == {None, "ann", "bob"}
    assert [entry["number"] for entry in cleo] == [
        entry.number for entry in site.study.ledger.entries("people")
    ]
    [spend] = [entry for entry in ann if entry["kind"] == "spend" and entry["epsilon"] == "11/100"]
    assert spend["question"] == BY_COUNTY  # as it was typed


def test_nothing_covers_the_version_of_the_data(site):
    """A hash that covers the content would let anybody test guesses of a row."""
    site.client("cleo").post("/release", json=body(epsilon="0.14"))
    entries = site.study.ledger.entries("people")
    shown = site.client("cleo").get("/ledger").text
    for entry in entries:
        for secret in (entry.hash, entry.question):
            assert secret is None or secret not in shown


def test_public_numbers_are_free_and_kept(tmp_path):
    with served(tmp_path, neighbors="change-one") as site:
        question = body(sql="SELECT count(*) AS n FROM people")
        release = site.client().post("/release", json=question).json()
        assert (release["epsilon"], release["table"]["n"], release["remaining"]) == (
            "0",
            [400],
            "3/5",
        )
        assert site.client().get(f"/releases/{release['id']}").json() == release
        assert site.client().post("/release", json=question).json() == release
        assert site.study.spent == 0


def test_too_little_left_is_refused_and_the_id_stays_free(site):
    question = body(epsilon="61")
    refused = site.client().post("/release", json=question)
    assert refused.status_code == 403
    assert "share of analyst 'ann'" in refused.json()["error"]
    assert site.client().post("/release", json={**question, "epsilon": "0.15"}).status_code == 200


def test_an_answer_of_too_many_numbers_is_refused(site, tmp_path):
    many = {f"n{number}": {"kind": "Count", "of": f"age > {number}"} for number in range(101)}
    refused = site.client().post("/plan", json=body(request_id=None, sql=None, ask=many))
    assert (refused.status_code, "at most 100 statistics" in refused.json()["error"]) == (422, True)
    shares = {
        "q": {
            "kind": "Quantile",
            "of": "age",
            "share": [f"{number}/102" for number in range(1, 102)],
        }
    }
    assert (
        site.client().post("/plan", json=body(request_id=None, sql=None, ask=shares)).status_code
        == 422
    )
    for most, status in ((5, 422), (6, 200)):
        (tmp_path / str(most)).mkdir()
        with served(tmp_path / str(most), limits=replace(QUICK, most_numbers=most)) as small:
            assert small.client().post("/plan", json=body(request_id=None)).status_code == status


def test_a_token_asks_only_so_often(tmp_path):
    limits = Limits(quantum=0, rate=0.001, burst=3)
    with served(tmp_path, limits=limits) as site:
        ann, bob = site.client("ann"), site.client("bob")
        assert [ann.get("/studies").status_code for _ in range(5)] == [200, 200, 200, 429, 429]
        assert ann.get("/studies").headers["retry-after"] == "1"
        assert bob.get("/studies").status_code == 200


def test_what_needs_no_token(site):
    client = site.client(None)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/openapi.json").json()["openapi"] == "3.1.0"
    for path in ("/studies", "/ledger", "/releases/x"):
        refused = client.get(path)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    for path in ("/plan", "/release"):
        assert client.post(path, json=body()).status_code == 401


def test_every_response_says_how_it_may_be_used(site):
    for path in ("/healthz", "/nothing", "/studies"):
        headers = site.client().get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]


def test_a_failure_says_nothing(site, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("row 7319 is too much")

    monkeypatch.setattr("discreet.serve.desk.study_json", broken)
    failed = site.client("cleo").request("GET", "/studies")
    assert (failed.status_code, json.loads(failed.content)) == (503, FAILURE.body)
    assert "RuntimeError" in caplog.text
    assert "7319" not in caplog.text


def test_nobody_gets_in_when_the_tokens_are_gone(tmp_path):
    with served(tmp_path) as site:
        assert site.client().get("/studies").status_code == 200
        (tmp_path / "discreet.access").unlink()
        failed = site.client().get("/studies")
        assert (failed.status_code, failed.json()) == (503, FAILURE.body)
        assert site.client().post("/release", json=body()).status_code == 503
        assert site.study.spent == 0
