"""The card of a study and of a release: figures of the code that runs, and nothing private."""

import json
from fractions import Fraction

import pytest
import yaml

import discreet
from discreet import Policy, Study
from discreet.errors import InvalidParameter
from discreet.release.plan import software
from discreet.show.card import CHOICE, LAPLACE, PUBLIC, of
from discreet.verify import certify
from serving import COLUMNS, people
from shell import CANARY, study_in

SECTIONS = {"dp_flavor", "privacy_loss", "model", "accounting", "implementation"}
"""Of a deployment in OpenDP's registry, as far as software can know them."""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    study_in(folder)
    with discreet.open(folder / "study.toml") as opened:
        opened.sql("SELECT county, count(*) FROM visits GROUP BY county", epsilon="1/8").release()
        yield opened


@pytest.fixture(scope="module")
def card(study):
    return study.card()


def test_a_card_says_what_the_policy_and_the_ledger_say(study, card):
    content = card.content
    assert set(content) == {"discreet card", "software", "study", *SECTIONS}
    assert content["software"] == software()
    loss = content["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": "1", "delta": "0"}
    assert (loss["privacy_unit"], loss["neighbors"]) == ("patient", "change-one")
    assert "at most 2 are used" in loss["privacy_unit_description"]
    accounting = content["accounting"]
    assert Fraction(accounting["total"]) == study.ledger.total("study")
    assert Fraction(accounting["spent"]) == study.spent == Fraction(1, 8)
    assert Fraction(accounting["left"]) == study.remaining
    assert accounting["at_entry"] == len(study.ledger.entries())
    assert content["dp_flavor"]["columns"] == {
        "county": {"keys": 3},
        "age": {"bounds": ["0", "120"]},
    }
    assert "the number of units" in content["dp_flavor"]["unprotected_quantities"]


def test_each_statistic_has_the_loss_that_is_proved_for_it(study, card):
    rows = {row["statistic"]: row for row in card.content["implementation"]["mechanisms"]}
    assert {row["name"] for row in rows.values()} == {LAPLACE, CHOICE}
    assert rows["median"]["name"] == CHOICE
    mean = certify(study.sql("SELECT avg(age) FROM visits", epsilon=1))
    assert Fraction(rows["mean"]["proved_loss"]) == mean.loss
    assert all(
        Fraction(row["proved_loss"]) <= Fraction(row["epsilon"]) == 1 for row in rows.values()
    )
    assert study.spent == Fraction(1, 8)


def test_json_yaml_and_page_are_the_same_card(card, tmp_path):
    assert json.loads(card.to_json()) == card.content
    assert yaml.safe_load(card.to_yaml()) == card.content
    page = card.to_html()
    for text in (
        "Pure DP",
        "permute-and-flip",
        "0.125 of 1, 0.875 left",
        "change-one",
        "proved loss: at most ε",
    ):
        assert text in page
    rows = {name: text for _, rows in card.sections for name, text in rows}
    assert rows["age"] == "between 0 and 120"
    assert rows["county"] == "3 keys"
    assert rows["median"] == "permute-and-flip, ε 1; proved loss: at most ε"
    for name in ("card.json", "card.yaml", "card.html"):
        assert card.save(tmp_path / name).stat().st_size > 1000
    with pytest.raises(InvalidParameter, match=r"end in \.json, \.yaml, \.html"):
        card.save(tmp_path / "card.pdf")


def test_odd_names_of_columns_survive_yaml(tmp_path):
    names = {
        name: {"bounds": [0, 1]}
        for name in (*"-1", "null", "true", "no", "a: b", 'q"', "é\n", "\x7f\x85\u2028")
    }
    data = {name: [0.5] * 10 for name in names}
    import pyarrow as pa

    policy = Policy(
        source=pa.table(data), columns=names, epsilon=1, version="1", neighbors="add-remove"
    )
    with Study(policy, ledger=tmp_path / "odd.ledger", name="odd") as study:
        card = study.card()
    assert yaml.safe_load(card.to_yaml()) == card.content
    assert "the number of units" not in card.content["dp_flavor"]["unprotected_quantities"]


def private(study) -> list[str]:
    """What must not be in anything that is published."""
    entries = study.ledger.entries()
    hashes = [getattr(entry, name) for entry in entries for name in ("hash", "nonce", "question")]
    version = study.ledger.keyed(study.engine.version())
    numbers = ["3000", "3,000", "1500", "1,500"]  # of rows and of units, in `shell.visits`
    return [
        CANARY,
        "visits.parquet",
        str(study.policy.folder),
        version,
        *numbers,
        *filter(None, hashes),
    ]


def test_a_card_has_nothing_private(study, card):
    answer = study.sql(
        "SELECT county, count(*) FROM visits GROUP BY county", epsilon="1/8"
    ).release()
    texts = [card.to_json(), card.to_yaml(), card.to_html(), answer.card().to_json()]
    secrets = private(study)
    for text in texts:
        assert not [secret for secret in secrets if secret in text]
    # the control
    assert [secret for secret in secrets if secret in f"{CANARY} {study.policy.source}"]


def test_the_card_of_a_release_is_that_of_its_own_entry(study):
    plan = study.sql("SELECT avg(age), max(age) FROM visits", epsilon="1/8")
    answer = plan.release()
    card = answer.card()
    study.sql("SELECT sum(age) FROM visits", epsilon="1/8").release()
    assert answer.card() == card  # what was spent afterwards is not of this release
    assert card.content["privacy_loss"]["privacy_parameters"]["epsilon"] == "0.125"
    mechanisms = card.content["implementation"]["mechanisms"]
    assert {row["name"] for row in mechanisms} == {LAPLACE, CHOICE}
    assert sum(Fraction(row["epsilon"]) for row in mechanisms) == plan.cost
    entry = study.ledger.entry(answer.entry, study="study")
    assert card.content["accounting"]["at_entry"] == entry.number
    assert Fraction(card.content["accounting"]["spent"]) * 10**9 == entry.spent


def test_a_public_number_and_a_report_have_cards_too(tmp_path):
    policy = Policy(source=people(), table="people", columns=COLUMNS, epsilon=1, version="v1")
    with Study(policy, ledger=tmp_path / "people.ledger", name="people") as study:
        free = study.sql("SELECT count(*) FROM people", epsilon="0.1").release()
        assert free.card().to_html()
        [mechanism] = free.card().content["implementation"]["mechanisms"]
        assert mechanism["name"] == PUBLIC
        report = study.report(
            {"a": "SELECT county, count(*) FROM people GROUP BY county"}, epsilon="0.1"
        ).release()
        assert report["a"].card().content == report.card().content
        assert report.card().content["accounting"]["spent"] == "0.1"
        assert "discrete Laplace noise" in report.card().to_html()
    with pytest.raises(InvalidParameter, match="needs a study of your own"):
        of(3)
