"""The one discovery of a study over HTTP: allowed or not, paid for once, of a share, free for
everybody afterwards.
"""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import discreet
from discreet.errors import QueryRefused
from discreet.serve import bodies
from discreet.serve.schema import fits
from serving import QUICK, folder_in_memory, running, served

JOBS = ["nurse"] * 300 + ["baker"] * 200 + ["astronaut"]
TERMS = {
    "table": pa.table({"job": JOBS, "age": [float(at % 90) for at in range(len(JOBS))]}),
    "columns": {"job": {"keys": "discover"}, "age": {"bounds": [0, 120]}},
    "delta": "1e-9",
    "epsilon": 3,
}
ASKED = {"study": "people", "columns": ["job"], "epsilon": "1"}
BY_JOB = {
    "study": "people",
    "sql": "SELECT job, count(*) AS n FROM people GROUP BY job",
    "epsilon": "0.1",
}


@pytest.fixture
def site():
    with (
        folder_in_memory() as folder,
        served(folder, limits=replace(QUICK, discovery=True), **TERMS) as study,
    ):
        yield study


def test_nobody_discovers_unless_the_custodian_allows_it():
    with folder_in_memory() as folder, served(folder, **TERMS) as site:
        for who in ("ann", "cleo"):
            [study] = site.client(who).get("/studies").json()["studies"]
            assert study["discovers"] is False
            for path in ("/discover/plan", "/discover"):
                refusal = site.client(who).post(path, json=ASKED)
                assert refusal.status_code == 422
                assert refusal.json()["error"] == "This server does not allow discoveries."
        assert site.study.spent == 0


def test_a_plan_says_the_price_and_what_delta_means_and_spends_nothing(site):
    plan = site.client().post("/discover/plan", json=ASKED).json()
    assert fits(bodies.DiscoveryPlan, plan)
    assert (plan["cost"], plan["delta"], plan["asked_before"]) == ("1", "1/1000000000", False)
    assert (
        plan["meaning"]
        == "For each row, the promise e^ε may fail with probability at most δ = 1e-09, as where a"
        " key is shown that only this row has. Of n such keys, up to about n·δ are shown."
    )
    assert plan["half_from"] < plan["always_from"] < 200  # so both jobs of many are always told
    assert site.study.spent == 0


def test_a_discovery_is_paid_of_a_share_and_free_for_everybody_afterwards(site):
    ann, bob = site.client("ann"), site.client("bob")
    assert ann.post("/plan", json=BY_JOB).status_code == 422
    assert ann.get("/studies").json()["studies"][0]["discovers"] is True
    found = ann.post("/discover", json=ASKED).json()
    assert fits(bodies.Discovery, found)
    assert found["keys"] == {"job": ["baker", "nurse"]}
    assert (found["epsilon"], found["delta"], found["remaining"]) == ("1", "1/1000000000", "4/5")
    assert site.study.ledger.spent("people", analyst="ann") == 1
    for client in (ann, bob, site.client("cleo")):
        plan = client.post("/discover/plan", json=ASKED).json()
        assert (plan["cost"], plan["asked_before"]) == ("0", True)
        assert client.post("/discover", json=ASKED).json()["keys"] == found["keys"]
        [study] = client.get("/studies").json()["studies"]
        assert study["discovers"] is False
        assert study["columns"][0]["keys"] == {"count": 2, "first": ["baker", "nurse"]}
        assert client.post("/plan", json=BY_JOB).json()["cells"] == 2
    assert site.study.spent == 1
    other = bob.post("/discover", json={**ASKED, "epsilon": "0.5"})
    assert other.status_code == 422
    assert "a study makes one discovery" in other.json()["error"]
    assert site.study.spent == 1


def test_a_share_that_is_too_small_discovers_nothing(site):
    refusal = site.client().post("/discover", json={**ASKED, "epsilon": "2"})
    assert refusal.status_code == 403
    assert site.study.spent == 0
    assert site.client().get("/studies").json()["studies"][0]["discovers"] is True


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"columns": []}, 400, "columns must be a list of columns."),
        ({"columns": "job"}, 400, "columns must be a list of columns."),
        ({"columns": ["age"]}, 422, "the policy must leave its keys to a discovery"),
        ({"columns": ["nothing"]}, 422, "nothing"),
        ({"epsilon": "0"}, 400, "epsilon must"),
        ({"epsilon": "0.00001"}, 400, "epsilon must be at least 0.0001 over HTTP"),
        ({"delta": "0.1"}, 400, "The field 'delta' is not known here."),
        ({"study": "other"}, 404, "There is no such study."),
    ],
)
def test_what_cannot_be_discovered_is_refused_and_spends_nothing(site, changed, status, words):
    refusal = site.client().post("/discover", json={**ASKED, **changed})
    assert refusal.status_code == status
    assert words in refusal.json()["error"]
    assert site.study.spent == 0


def test_what_fails_after_the_spend_says_nothing_and_is_done_for_free_later(site, monkeypatch):
    def broken(*_: object) -> None:
        raise ValueError("astronaut")

    with monkeypatch.context() as patch:
        patch.setattr(type(site.study.engine), "discover", broken)
        failure = site.client("ann").post("/discover", json=ASKED)
    assert failure.status_code == 503
    assert "astronaut" not in failure.text
    assert site.study.spent == 1
    assert site.client("bob").post("/discover/plan", json=ASKED).json()["cost"] == "0"
    assert site.client("bob").post("/discover", json=ASKED).json()["keys"] == {
        "job": ["baker", "nurse"]
    }
    assert site.study.ledger.spent("people", analyst="bob") == 0


def test_a_discovery_of_another_process_is_known_at_once(site):
    with discreet.Study(
        site.study.policy, ledger=site.folder / "people.ledger", name="people"
    ) as other:
        other.discover("job", epsilon=1)
    assert site.client().post("/plan", json=BY_JOB).json()["cells"] == 2


def test_python_discovers_as_in_a_study_of_ones_own(site):
    with running(site) as url, discreet.connect(url, site.tokens["ann"]) as people:
        with pytest.raises(QueryRefused, match="discover its keys first"):
            people.by("job").ask(n=discreet.Count()).plan(epsilon="0.1")
        found = people.discover("job", epsilon=1)
        assert repr(found) == "Discovered(2 keys of job · (ε, δ) = (1, 1e-09))"
        assert found["job"] == ("baker", "nurse")
        assert people.remaining == Fraction(4, 5)
        assert people.by("job").ask(n=discreet.Count()).plan(epsilon="0.1").release()["job"] == [
            "baker",
            "nurse",
        ]
