"""What was written once stays readable: each folder here was written by `tools/keep.py`, and is
never written again.

Every ledger opens, its chain verifies, and each answer in it is the bytes that were recorded. A
question that is asked again is free, and returns the numbers that were released then. Signatures
and certificates verify, and files open.
"""

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyarrow import parquet

import discreet
from discreet.errors import DiscreetError
from discreet.files.add_noise import add_noise
from discreet.parameters import UNIT, charge
from discreet.records import is_packed, readable, unpack
from discreet.serve.access import Access
from discreet.verify import check, verify_release

HERE = Path(__file__).parent
KEPT = sorted(path.parent.name for path in HERE.glob("*/asked.json"))
STUDIES = ("people", "visits", "grown")
LEDGERS = (*STUDIES, "arrays")
IN_PLACE = Path("/proc/self/cwd")
"""The recorded path of an answer in a file: the working directory, wherever the folder is copied
to.
"""

needs_proc = pytest.mark.skipif(
    not IN_PLACE.exists(), reason="the files were released to /proc/self/cwd"
)


class Kept:
    """A copy of a folder, which becomes the working directory."""

    def __init__(self, name: str, target: Path) -> None:
        self.folder = Path(shutil.copytree(HERE / name, target))
        for file in (
            *self.folder.glob("*.ledger"),
            *self.folder.glob("*.anchor"),
            self.folder / "discreet.access",
        ):
            file.chmod(0o600)
        self.asked = json.loads((self.folder / "asked.json").read_text("utf-8"))

    def of(self, study: str) -> dict[str, Any]:
        return self.asked["studies"][study]

    def ledger(self, study: str) -> discreet.Ledger:
        anchor = "visits-elsewhere.anchor" if study == "visits" else f"{study}.ledger.anchor"
        return discreet.Ledger.open(self.folder / f"{study}.ledger", anchor=self.folder / anchor)


@pytest.fixture(params=KEPT)
def kept(request, tmp_path, monkeypatch) -> Kept:
    copy = Kept(request.param, tmp_path / "kept")
    monkeypatch.chdir(copy.folder)
    return copy


def plain(value: Any) -> Any:
    return json.loads(
        json.dumps(
            value, default=lambda item: item.tolist() if hasattr(item, "tolist") else str(item)
        )
    )


def compare_ledger(ledger: discreet.Ledger, known: dict[str, Any]) -> None:
    """The chain, the balance and the bytes of every answer, each of which can be read."""
    name = known["study"]
    assert ledger.verify() == len(ledger.entries(name))
    assert ledger.spent(name) == Fraction(known["spent"])
    for request, digest in known["answers"].items():
        content = ledger.answer(study=name, request_id=request)
        assert content is not None
        assert sha256(content).hexdigest() == digest
        assert readable(content)
    assert {entry["request_id"] for entry in json.loads(ledger.export())["entry"]} >= set(
        known["answers"]
    )


def ask_again(study: discreet.Study, known: dict[str, Any]) -> None:
    """Every question once more: free, and the same numbers."""
    before = study.spent
    for item in known["questions"]:
        terms = {name: value for name, value in item.items() if name not in ("entry", "answer")}
        answer = study.sql(**terms).release()
        assert plain(answer.to_dict()) == item["answer"]
        assert answer.content == study.ledger.answer(study=study.name, request_id=item["entry"])
    assert study.spent == before


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_opens_and_has_every_answer(kept, name):
    with kept.ledger(name) as ledger:
        compare_ledger(ledger, kept.of(name))


@pytest.mark.parametrize("name", ["people", "visits"])
def test_a_question_that_was_paid_for_is_free_and_gives_the_same_numbers(kept, name):
    known = kept.of(name)
    with discreet.open(known["policy"]) as study:
        ask_again(study, known)


def test_an_answer_is_rebuilt_from_its_record(kept):
    for name in STUDIES:
        with kept.ledger(name) as ledger:
            for item in kept.of(name)["questions"]:
                content = ledger.answer(study=kept.of(name)["study"], request_id=item["entry"])
                assert is_packed(content)
                record = unpack(content).whole()
                columns = {str(sorted(values, key=str)) for values in item["answer"].values()}
                found = (
                    ends[end]
                    for ends in record["numbers"].values()
                    for end in ("value", "low", "high")
                )
                if " HAVING " not in item["text"]:  # else some rows are not shown
                    assert columns >= {str(sorted(plain(values), key=str)) for values in found}


def test_a_policy_says_what_it_said(kept):
    for name in STUDIES:
        policy = discreet.Policy.load(f"{name}.toml")
        written = kept.folder / "again.toml"
        written.write_text(policy.to_toml(), "utf-8")
        again = discreet.Policy.load(written)
        assert (again.promise, dict(again.columns)) == (policy.promise, dict(policy.columns))
        with kept.ledger(name) as ledger:
            held = ledger.promise(kept.of(name)["study"])
            # sizes were not promised yet
            assert held == {term: policy.promise[term] for term in held}


def test_a_discovery_is_recalled_and_free(kept):
    known = kept.of("visits")
    with discreet.open(known["policy"]) as study:
        before, discovery = study.spent, known["discovery"]
        assert plain(dict(study.discovered.keys)) == discovery["keys"]
        again = study.discover(*discovery["columns"], epsilon=discovery["epsilon"])
        assert (plain(dict(again.keys)), study.spent) == (discovery["keys"], before)


def test_a_profile_is_free_and_the_same(kept):
    known = kept.of("people")
    with discreet.open(known["policy"]) as study:
        before, profile = study.spent, known["profile"]
        again = study.profile(profile["columns"], epsilon=profile["epsilon"])
        counts = {name: list(column.counts) for name, column in again.columns.items()}
        assert (counts, study.spent) == (profile["counts"], before)


def test_a_report_and_each_of_its_tables_are_free_and_the_same(kept):
    known = kept.of("people")["report"]
    planned = discreet.report(known["file"])
    with planned.study as study:
        before, report = study.spent, planned.release()
        assert {name: plain(table.to_dict()) for name, table in report.tables.items()} == known[
            "tables"
        ]
        for item in known["alone"]:
            table = study.sql(item["text"], epsilon=item["epsilon"]).release()
            assert plain(table.to_dict()) == item["answer"]
        assert study.spent == before


def test_a_call_about_an_array_is_free_and_gives_the_same_numbers(kept):
    known = kept.of("arrays")
    account = {name: known[name] for name in ("study", "data_version", "data_name")}
    with kept.ledger("arrays") as ledger:
        for call in known["calls"]:
            rest = ("call", "more", "entry", "answer")
            parameters = {name: value for name, value in call.items() if name not in rest}
            function = getattr(discreet, call["call"])
            released = function(
                known["values"], *call.get("more", []), ledger=ledger, **account, **parameters
            )
            value = released.counts if hasattr(released, "counts") else released.value
            assert plain(value) == call["answer"]
        assert ledger.spent(known["study"]) == Fraction(known["spent"])


@needs_proc
def test_an_answer_in_a_file_is_the_one_that_its_ledger_knows(kept):
    known = kept.of("people")["file"]
    with discreet.open("people.toml") as study:
        before = study.spent
        file = study.sql(known["text"], epsilon=known["epsilon"]).release(
            to=IN_PLACE / known["name"]
        )
        assert (len(file), study.spent) == (known["rows"], before)
    assert parquet.read_table(known["name"]).num_rows == known["rows"]


@needs_proc
def test_noise_on_a_file_is_the_one_that_its_ledger_knows(kept):
    known, noise = kept.of("arrays"), dict(kept.of("arrays")["noise"])
    source, target, _ = (noise.pop(name) for name in ("source", "name", "entry"))
    account = {name: known[name] for name in ("study", "data_version", "data_name")}
    with kept.ledger("arrays") as ledger:
        assert (
            add_noise(source, IN_PLACE / target, ledger=ledger, **account, **noise)
            == IN_PLACE / target
        )
        assert ledger.spent(known["study"]) == Fraction(known["spent"])


def test_what_was_signed_verifies(kept):
    for signed in ("counties-of-people.csv", "cells.signature.json", "report"):
        found = verify_release(kept.folder / signed, key="custodian.pub")
        assert (found.study, found.record["epsilon"]) == ("people", found.proof["epsilon"])


@pytest.mark.parametrize("name", ["question", "report", "profile", "mean"])
def test_a_certificate_is_what_its_inputs_prove(kept, name):
    assert check(kept.folder / f"{name}.certificate.json").holds


def test_a_token_opens_what_it_opened(kept):
    known = kept.asked["access"]
    person = Access("discreet.access").person(known["token"])
    assert person is not None
    assert (person.name, person.role, sorted(person.studies)) == (
        known["name"],
        known["role"],
        known["studies"],
    )


def test_a_version_by_content_may_be_charged_again_but_loses_no_answer(kept):
    """How content is hashed may change.

    Then a repeat is a new question; the old answer is still there and the same.
    """
    known = kept.of("grown")
    with discreet.open(known["policy"]) as study:
        for item in known["questions"]:
            before, terms = study.spent, {"text": item["text"], "epsilon": item["epsilon"]}
            old = study.ledger.answer(study=study.name, request_id=item["entry"])
            answer = study.sql(**terms).release()
            charged = study.spent - before
            assert charged in (0, charge(answer.epsilon) * UNIT)
            assert (answer.content == old) == (charged == 0)
            assert study.sql(**terms).release() == answer
            assert study.spent == before + charged
            assert study.ledger.answer(study=study.name, request_id=item["entry"]) == old
        entries = [entry for entry in study.ledger.entries(study.name) if entry.answer]
        assert {entry.request_id for entry in entries} >= set(known["answers"])
        study.ledger.verify()


def loaded(kept: Kept, server: str) -> str:
    """The address of the ledger of a team, put into this server as its dump has it."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS discreet_kept CASCADE")
        connection.execute((kept.folder / "team.sql").read_text("utf-8"))
    return f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3Ddiscreet_kept"


def test_a_ledger_on_postgresql_opens_and_repeats_its_answers_for_free(kept, postgres):
    known, where = kept.of("team"), loaded(kept, postgres)
    # another server: its custodian must accept that
    with pytest.raises(DiscreetError, match="server"):
        discreet.Ledger.open(where, anchor=known["anchor"])
    found = discreet.Ledger.restoration(where, anchor=known["anchor"])
    assert [(loss.charge, loss.forgotten, loss.void) for loss in found.losses] == [(0, 0, ())]
    with discreet.Ledger.restore(where, anchor=known["anchor"], accept=found.mark) as ledger:
        compare_ledger(ledger, known)
        ask_again(discreet.open(known["policy"], ledger=ledger), known)


READERS: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = [
    *((f"{name}.ledger", test_a_ledger_opens_and_has_every_answer, (name,)) for name in LEDGERS),
    ("counties-of-people.csv", test_what_was_signed_verifies, ()),
    ("counties-of-people.signature.json", test_what_was_signed_verifies, ()),
    ("report/rows.parquet", test_what_was_signed_verifies, ()),
    ("custodian.pub", test_what_was_signed_verifies, ()),
    *(
        (f"{name}.certificate.json", test_a_certificate_is_what_its_inputs_prove, (name,))
        for name in ("mean", "report")
    ),
    ("cells.parquet", test_an_answer_in_a_file_is_the_one_that_its_ledger_knows, ()),
    ("noisy.parquet", test_noise_on_a_file_is_the_one_that_its_ledger_knows, ()),
]


@pytest.mark.parametrize(("file", "reader", "arguments"), READERS)
def test_a_changed_byte_is_seen(kept, file, reader, arguments):
    if not IN_PLACE.exists() and file in ("cells.parquet", "noisy.parquet"):
        pytest.skip("the files were released to /proc/self/cwd")
    path = kept.folder / file
    content = bytearray(path.read_bytes())
    # of a ledger the last page, which is in use; of a text its last digit
    digits = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    place = digits[-1] if path.suffix in (".csv", ".json", ".pub") else len(content) - 10
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises((DiscreetError, AssertionError)):
        reader(kept, *arguments)


def test_a_changed_dump_is_seen(kept, postgres):
    known, dump = kept.of("team"), (kept.folder / "team.sql").read_text("utf-8")
    at = dump.index("'answer'")
    at = dump.index("'\\x", at) + 20
    digit = "0" if dump[at] != "0" else "1"
    (kept.folder / "team.sql").write_text(dump[:at] + digit + dump[at + 1 :], "utf-8")
    where = loaded(kept, postgres)
    with pytest.raises(DiscreetError):
        discreet.Ledger.restoration(where, anchor=known["anchor"])
