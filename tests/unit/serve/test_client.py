from fractions import Fraction

import pytest

import discreet
from discreet.errors import BudgetExceeded, EngineFailed, InvalidParameter, QueryRefused
from discreet.serve.bodies import Studies
from discreet.serve.client import Server
from serving import BY_COUNTY


def test_a_remote_plan_is_the_local_one(site, remote):
    terms = {
        "epsilon": "0.1",
        "size": 50,
        "confidence": 0.9,
        "simultaneous": True,
        "weights": {"people": 2},
    }
    local, remote_plan = site.study.sql(BY_COUNTY, **terms), remote.sql(BY_COUNTY, **terms)
    assert repr(remote_plan).split("\n")[1:] == repr(local).split("\n")[1:]
    for name in (
        "epsilon",
        "cost",
        "confidence",
        "simultaneous",
        "cells",
        "size",
        "lines",
        "notes",
        "warnings",
    ):
        assert getattr(remote_plan, name) == getattr(local, name), name
    assert remote_plan.titles().items() <= local.titles().items()


def test_a_remote_answer_is_the_local_one(site, remote, tmp_path):
    remote_plan = remote.sql(BY_COUNTY, epsilon="0.2").release(request_id="one")
    local = site.study.sql(BY_COUNTY, epsilon="0.2").release()
    assert remote_plan == local  # the same question is one question, and this one was paid for
    assert remote_plan.content == local.content
    assert remote_plan.to_dict() == local.to_dict()
    assert remote_plan.to_polars().equals(local.to_polars())
    assert remote_plan.to_pandas().equals(local.to_pandas())
    assert remote_plan.save(tmp_path / "a.csv").exists()
    assert remote.sql(BY_COUNTY, epsilon="0.2").release(request_id="one") == remote_plan
    assert remote.answer(remote_plan.entry) == remote_plan
    assert remote.answer("one") == remote_plan


def test_the_chain_works(site, remote):
    questions = {"people": discreet.Count(), "age": discreet.Quantile("age", [0.25, "3/4"])}
    remote_plan = (
        remote.where("age >= 20")
        .where("age < 90")
        .by("county")
        .ask(**questions)
        .plan(epsilon=Fraction(1, 3))
    )
    local = (
        site.study.where("age >= 20")
        .where("age < 90")
        .by("county")
        .ask(**questions)
        .plan(epsilon="1/3")
    )
    assert remote_plan.lines == local.lines
    assert remote_plan.release() == local.release()
    assert remote.ask(n=discreet.Count("age")).plan(within=5).epsilon > 0
    assert remote.by("county").ask(n=discreet.Count()).plan(epsilon=1).cells == 3


def test_errors_are_those_of_a_local_study(site, remote):
    for sql, terms, kind in (
        ("SELECT * FROM people", {"epsilon": 1}, QueryRefused),
        ("SELECT count(*) FROM people WHERE", {"epsilon": 1}, QueryRefused),
        (BY_COUNTY, {"epsilon": 0}, InvalidParameter),
        (BY_COUNTY, {"epsilon": float("nan")}, InvalidParameter),
        (BY_COUNTY, {}, InvalidParameter),
    ):
        said = []
        for study in (site.study, remote):
            with pytest.raises(kind) as caught:
                study.sql(sql, **terms)
            said.append(str(caught.value))
        assert (
            said[0].replace("nan", "'nan'") == said[1].replace("nan", "'nan'") or "nan" in said[0]
        )
    with pytest.raises(BudgetExceeded, match="share of analyst 'ann'"):
        remote.sql(BY_COUNTY, epsilon=99).release()


def test_what_is_left_is_told(site, remote):
    assert remote.remaining == site.study.ledger.remaining("people", analyst="ann")
    share = site.study.ledger.total("people", analyst="ann")
    assert f"ε {float(remote.remaining):.4g} of your {float(share):.4g} left" in repr(remote)
    assert remote.entries()[0]["kind"] == "allot"


def test_a_study_is_found_by_its_name(site, url):
    with discreet.connect(url, site.tokens["zoe"], study="other") as remote:
        assert remote.name == "other"
    for wrong in ("people", "nothing"):
        with pytest.raises(InvalidParameter, match="study must be one of other"):
            discreet.connect(url, site.tokens["zoe"], study=wrong)


def test_a_wrong_token_is_refused(url):
    with pytest.raises(
        InvalidParameter,
        match="the token is unknown, expired or revoked; ask the custodian for a new token",
    ):
        discreet.connect(url, "discreet_no")


def test_a_server_that_is_not_there_is_told(site):
    with pytest.raises(EngineFailed, match=r"the server at http://127\.0\.0\.1:9 did not answer"):
        discreet.connect("http://ann:secret@127.0.0.1:9/path", site.tokens["ann"])


@pytest.mark.parametrize(
    "url", ["http://example.org", "http://10.0.0.1:8000", "ftp://127.0.0.1", "127.0.0.1:8000"]
)
def test_a_token_is_not_sent_in_the_clear(url):
    with pytest.raises(InvalidParameter, match="https"):
        discreet.connect(url, "token")


def test_a_token_may_be_sent_over_tls_or_to_this_machine():
    for url in (
        "https://example.org",
        "http://localhost:1",
        "http://127.0.0.1:1",
        "http://[::1]:1",
    ):
        Server(url, "token").close()


def test_an_answer_that_the_network_lost_is_charged_once(site, url):
    """The server hears, answers and spends; the client hears nothing, and asks again under the same
    id.
    """
    import httpx

    with discreet.connect(url, site.tokens["bob"]) as remote:
        plan = remote.sql(BY_COUNTY, epsilon="0.77")
        client, lost = remote._server._client, []

        class Deaf(httpx.HTTPTransport):
            def handle_request(self, request):
                response = super().handle_request(request)
                if request.url.path == "/release" and not lost:
                    lost.append(response.read())
                    raise httpx.ReadError("the network is down")
                return response

        client._transport.close()
        client._transport = Deaf()
        before = site.study.spent
        answer = plan.release()
        assert len(lost) == 1
        assert site.study.spent - before == Fraction("0.77")
        assert answer == remote.answer(answer.entry)


@pytest.mark.parametrize(
    ("status", "reply", "words"),
    [
        (
            200,
            {"studies": [{"name": "people"}]},
            "is not a discreet server, or has another version",
        ),
        (200, [], "is not a discreet server, or has another version"),
        (502, {"message": "bad gateway"}, "is not a discreet server, or has another version"),
        (502, "<html>", "answered with status 502 and no JSON"),
        (502, "[" * 100_000, "answered with status 502 and no JSON"),
        (503, {"error": "Down.", "advice": "Wait."}, "Down. Wait."),
    ],
)
def test_a_reply_that_is_not_described_is_an_error(status, reply, words):
    import httpx

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, **{"text" if isinstance(reply, str) else "json": reply})

    server = Server("https://example.org", "token")
    server._client.close()
    server._client = httpx.Client(
        base_url="https://example.org", transport=httpx.MockTransport(answer)
    )
    with pytest.raises(EngineFailed, match=words):
        server.get("/studies", Studies)
    server.close()
