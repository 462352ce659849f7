"""A signed release: any changed byte of record, file or signature is named, and another key is
refused.
"""

import copy
import json
import os
import pickle
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import Policy, Study
from discreet.errors import InvalidParameter
from discreet.files.signature import Signer, new_keys
from discreet.verify import verify_release
from serving import COLUMNS, people

BY_COUNTY = "SELECT county, count(*) AS people FROM people GROUP BY county"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study, keys, and a signed answer in a folder of its own."""
    folder = tmp_path_factory.mktemp("signed")
    new_keys(folder / "custodian")
    new_keys(folder / "other")
    policy = Policy(source=people(), table="people", columns=COLUMNS, epsilon=1, version="v1")
    (folder / "out").mkdir()
    with Study(policy, ledger=folder / "people.ledger", name="people") as study:
        answer = study.sql(BY_COUNTY, epsilon="0.1").release()
        saved = answer.save(folder / "out" / "ages.csv")
        [place] = answer.sign(saved, key=folder / "custodian.key")
        assert place.name == "ages.signature.json"
        yield folder, study, answer


@pytest.fixture
def out(made, tmp_path) -> Path:
    """A copy of what was released."""
    return Path(shutil.copytree(made[0] / "out", tmp_path / "out"))


def test_keys_are_for_their_owner_alone_and_never_replaced(made, tmp_path):
    folder = made[0]
    assert (folder / "custodian.key").stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" not in (folder / "custodian.pub").read_bytes()
    with pytest.raises(InvalidParameter, match="must not exist"):
        new_keys(folder / "custodian")
    assert "private" not in repr(Signer.load(folder / "custodian.key")).lower()
    loose = Path(shutil.copy(folder / "custodian.key", tmp_path / "loose.key"))
    loose.chmod(0o640)
    with pytest.raises(InvalidParameter, match=r"chmod 600 loose\.key"):
        Signer.load(loose)
    for wrong in ("custodian.pub", "people.ledger"):
        shutil.copy(folder / wrong, tmp_path / wrong)
        (tmp_path / wrong).chmod(0o600)
        with pytest.raises(InvalidParameter, match="must be an Ed25519 private key"):
            Signer.load(tmp_path / wrong)


def test_no_key_and_no_signature_is_read_from_a_pipe(made, tmp_path):
    # nobody writes to it: whoever reads it waits
    os.mkfifo(tmp_path / "ages.signature.json", 0o600)
    for read in (Signer.load, lambda pipe: verify_release(pipe, key=made[0] / "custodian.pub")):
        with pytest.raises(InvalidParameter, match=r"'ages\.signature\.json' is a pipe"):
            read(tmp_path / "ages.signature.json")


def test_a_signature_needs_no_data_and_tells_what_was_signed(made, out):
    folder, study, answer = made
    for named in (out, out / "ages.csv", out / "ages.release.json", out / "ages.signature.json"):
        signed = verify_release(named, key=folder / "custodian.pub")
    assert set(signed.files) == {"ages.csv", "ages.release.json"}
    assert (signed.study, signed.entry) == ("people", answer.entry)
    assert signed.ledger["entries"] == 3  # create, spend, answer
    assert (
        signed.proof["epsilon"]
        == signed.record["card"]["privacy_loss"]["privacy_parameters"]["epsilon"]
        == "0.1"
    )
    assert Fraction(signed.proof["proved_loss"]) <= Fraction("0.1")
    [*_, head] = study.ledger.entries("people")
    told = (out / "ages.signature.json").read_text()
    assert head.hash not in told  # only a hash of it, which covers 128 random bits
    assert not [entry.hash for entry in study.ledger.entries() if entry.hash in told]


def test_any_changed_byte_of_a_signature_is_noticed(made, out):
    place, key = out / "ages.signature.json", made[0] / "custodian.pub"
    whole = place.read_bytes()
    for at in range(len(whole)):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(
            InvalidParameter, match=r"ages\.(signature\.json|csv|release\.json)|key in"
        ) as refused:
            verify_release(place, key=key)
        assert "ages" in str(refused.value)
    for other in (
        whole + b" ",
        whole[:-1],
        b"",
        b"{}",
        b"[1]",
        b"null",
        whole.replace(b'": ', b'":', 1),
    ):
        place.write_bytes(other)
        with pytest.raises(InvalidParameter, match=r"ages\.signature\.json was changed"):
            verify_release(place, key=key)
    content = json.loads(whole)
    digits = content["signature"]
    for other in (
        {"discreet signature": True},
        {"discreet signature": 1.0},
        {"signature": digits.upper()},
        {"signature": f"{digits[:2]} {digits[2:]}"},
        {"signed": {**content["signed"], "files": [1]}},
    ):  # the same to whoever reads JSON and hexadecimal digits, and other bytes
        text = json.dumps({**content, **other}, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
        place.write_text(text, "utf-8")
        with pytest.raises(InvalidParameter, match=r"ages\.signature\.json was changed"):
            verify_release(place, key=key)
    place.write_bytes(whole)
    verify_release(place, key=key)


@pytest.mark.parametrize("name", ["ages.csv", "ages.release.json"])
def test_any_changed_byte_of_a_file_is_named(made, out, name):
    file, key = out / name, made[0] / "custodian.pub"
    whole = file.read_bytes()
    for at in range(0, len(whole), 1 if len(whole) < 500 else 17):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InvalidParameter, match=f"^{re.escape(name)} was changed"):
            verify_release(out, key=key)
    file.write_bytes(whole + b"\n")
    with pytest.raises(InvalidParameter, match=f"^{re.escape(name)} was changed"):
        verify_release(out, key=key)
    file.unlink()
    with pytest.raises(InvalidParameter, match=f"^{re.escape(name)} is missing"):
        verify_release(out, key=key)


def test_a_wrong_key_is_refused(made, out):
    folder, _, answer = made
    with pytest.raises(InvalidParameter, match=r"not signed with other\.pub"):
        verify_release(out, key=folder / "other.pub")
    stolen = json.loads((out / "ages.signature.json").read_text())
    # what it says of itself does not count
    stolen["key"] = Signer.load(folder / "other.key").public
    (out / "ages.signature.json").write_text(json.dumps(stolen, sort_keys=True, indent=1) + "\n")
    with pytest.raises(InvalidParameter, match=r"not signed with other\.pub"):
        verify_release(out, key=folder / "other.pub")
    with pytest.raises(InvalidParameter, match=r"the key in ages\.signature\.json was changed"):
        verify_release(out, key=folder / "custodian.pub")
    # the control: their own signature is theirs
    answer.sign(out / "ages.csv", key=folder / "other.key", force=True)
    verify_release(out, key=folder / "other.pub")


def test_a_signature_leads_out_of_its_folder_nowhere(made, out):
    folder = made[0]
    signer, place = Signer.load(folder / "custodian.key"), out / "ages.signature.json"
    content = json.loads(place.read_text())
    content["signed"]["files"] = {"../custodian.pub": {"bytes": 1, "sha256": ""}}
    content["signature"] = signer.sign(content["signed"])
    place.write_text(json.dumps(content, sort_keys=True, indent=1) + "\n")
    with pytest.raises(InvalidParameter, match="was changed: it is not as discreet writes it"):
        verify_release(place, key=folder / "custodian.pub")


def test_what_cannot_be_signed_is_refused(made, tmp_path):
    folder, _, answer = made
    file, key = answer.save(tmp_path / "a.csv"), folder / "custodian.key"
    with pytest.raises(InvalidParameter, match="cannot be read"):
        answer.sign(file, key=folder / "nothing.key")
    with pytest.raises(InvalidParameter, match="must include their record"):
        answer.sign(key=key)
    (tmp_path / "a.signature.json").write_text("mine")
    with pytest.raises(InvalidParameter, match=r"a\.signature\.json does"):
        answer.sign(file, key=key)
    assert (tmp_path / "a.signature.json").read_text() == "mine"
    with pytest.raises(InvalidParameter, match="who keeps its ledger"):
        replace(answer, plan=None).sign(file, key=key)


def test_files_of_one_name_have_one_signature_and_others_their_own(made, tmp_path):
    folder, _, answer = made
    files = [answer.save(tmp_path / name) for name in ("a.csv", "a.parquet", "b.json")]
    places = answer.sign(*files, key=folder / "custodian.key")
    assert [place.name for place in places] == ["a.signature.json", "b.signature.json"]
    signed = verify_release(tmp_path / "a.parquet", key=folder / "custodian.pub")
    assert set(signed.files) == {"a.csv", "a.parquet", "a.release.json"}
    assert set(verify_release(places[1], key=folder / "custodian.pub").files) == {
        "b.json",
        "b.release.json",
    }


def test_names_with_points_are_signed_each_with_its_own_file(made, tmp_path):
    folder, _, answer = made
    saved = [
        answer.save(tmp_path / name) for name in ("ages.2024.csv", "ages.2025.csv", "ages.csv")
    ]
    places = answer.sign(*saved, key=folder / "custodian.key")
    assert [place.name for place in places] == [f"{file.stem}.signature.json" for file in saved]
    for file in saved:
        signed = verify_release(file, key=folder / "custodian.pub")
        assert set(signed.files) == {file.name, f"{file.stem}.release.json"}
    with pytest.raises(InvalidParameter, match="has the name of a signature"):
        answer.sign(answer.save(tmp_path / "x.signature.json"), key=folder / "custodian.key")


def test_a_large_answer_in_a_file_is_signed_where_it_lies(made, tmp_path):
    folder, study, _ = made
    cells = study.sql(BY_COUNTY, epsilon="0.01").release(to=tmp_path / "cells.parquet")
    assert [place.name for place in cells.sign(key=folder / "custodian.key")] == [
        "cells.signature.json"
    ]
    signed = verify_release(cells.path, key=folder / "custodian.pub")
    assert set(signed.files) == {"cells.parquet", "cells.release.json"}
    assert signed.record["card"]["privacy_loss"]["privacy_parameters"]["epsilon"] == "0.01"


def test_a_copy_of_an_answer_is_the_answer_without_its_study(made):
    answer = made[2]
    for copied in (
        pickle.loads(pickle.dumps(answer)),  # noqa: S301 - our own
        copy.deepcopy(answer),
    ):
        assert copied == answer
        assert copied.plan is None


def test_a_report_is_signed_with_all_its_files(made, tmp_path):
    folder, study, _ = made
    report = study.report(
        {"counties": BY_COUNTY, "all": "SELECT avg(age) FROM people"}, epsilon="0.1"
    ).release()
    files = [
        tmp_path / name for name in ("counties.csv", "all.csv", "index.html", "report.release.json")
    ]
    for file in files:
        file.write_text("{}")
    assert [place.name for place in report.sign(*files, key=folder / "custodian.key")] == [
        "report.signature.json"
    ]
    signed = verify_release(tmp_path, key=folder / "custodian.pub")
    assert set(signed.files) == {file.name for file in files}
    assert signed.proof["epsilon"] == "0.1"
