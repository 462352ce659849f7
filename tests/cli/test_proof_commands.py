"""`discreet keys new`, `release --sign`, `verify-release`, `card`."""

import json
from unittest import mock

import pytest
import yaml

from shell import QUESTION, contents, discreet, study_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = study_in(tmp_path_factory.mktemp("proof"))
    assert discreet("keys", "new", cwd=place).code == 0
    return place


def test_a_release_is_signed_and_checked_without_its_data(folder, tmp_path):
    flags = [
        "--epsilon",
        "0.1",
        "-o",
        "a.csv",
        "-o",
        "a.json",
        "-o",
        "b.parquet",
        "--sign",
        "custodian.key",
    ]
    ended = discreet("release", "study.toml", QUESTION, *flags, cwd=folder)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-1].endswith("a.signature.json, b.signature.json")
    for name in ("a.csv", "a.json", "a.release.json", "a.signature.json", "custodian.pub"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    checked = discreet("verify-release", "a.csv", "--key", "custodian.pub", cwd=tmp_path)
    assert checked.code == 0, checked.err
    assert checked.out.splitlines()[:2] == [
        "✓ a.csv is unchanged since signing",
        "✓ a.json is unchanged since signing",
    ]
    told = json.loads(
        discreet("verify-release", "a.csv", "--key", "custodian.pub", "--json", cwd=tmp_path).out
    )
    assert told["study"] == "study"
    assert told["record"]["card"]["study"] == "study"
    (tmp_path / "a.csv").write_bytes((tmp_path / "a.csv").read_bytes().replace(b"Essex", b"Wessex"))
    discreet("verify-release", ".", "--key", "custodian.pub", cwd=tmp_path).refused(
        2, "a.csv was changed"
    )


def test_a_report_is_signed_as_a_folder(folder):
    tables = (
        '[tables.counties]\nsql = "SELECT county, count(*) AS visits FROM visits GROUP BY county"\n'
    )
    (folder / "report.toml").write_text(
        f'study = "study.toml"\ntitle = "Visits"\nepsilon = "0.1"\n{tables}', "utf-8"
    )
    ended = discreet(
        "report", "release", "report.toml", "-o", "out", "--sign", "custodian.key", cwd=folder
    )
    assert ended.code == 0, ended.err
    assert ended.out.endswith("visits.release.json, visits.signature.json\n")
    checked = discreet("verify-release", "out", "--key", "custodian.pub", "--json", cwd=folder)
    told = json.loads(checked.out)
    assert set(told["files"]) == {
        "index.html",
        "counties.csv",
        "counties.parquet",
        "visits.release.json",
    }
    assert (told["proof"]["epsilon"], told["record"]["card"]["accounting"]["spent"]) == (
        "0.1",
        "0.2",
    )
    (folder / "out" / "towns\n✓ all.csv").write_text("county,visits\n", "utf-8")
    checked = discreet(
        "verify-release", "out", "--key", "custodian.pub", cwd=folder
    ).out.splitlines()
    assert [line for line in checked if line.startswith("✗")] == [
        "✗ 'towns\\n✓ all.csv' is not signed"
    ]
    told = discreet("verify-release", "out", "--key", "custodian.pub", "--json", cwd=folder).out
    assert json.loads(told)["unsigned"] == ["towns\n✓ all.csv"]
    (folder / "out" / "index.html").write_text("<p>other numbers", "utf-8")
    discreet("verify-release", "out", "--key", "custodian.pub", cwd=folder).refused(
        2, "index.html was changed"
    )


def test_what_cannot_be_signed_spends_nothing(folder):
    before = contents(folder)
    ask = ["release", "study.toml", QUESTION, "--epsilon", "0.3"]
    discreet(*ask, "--sign", "custodian.key", cwd=folder).refused(
        2, "--sign needs files", "Nothing was spent"
    )
    discreet(*ask, "-o", "c.csv", "--sign", "no.key", cwd=folder).refused(
        2, "'no.key'", "Nothing was spent"
    )
    discreet(*ask, "-o", "c.csv", "--sign", "custodian.pub", cwd=folder).refused(
        2, "chmod 600", "Nothing was spent"
    )
    for odd in (["c.signature.json"], ["c.csv", "c.signature.json"]):
        files = [part for name in odd for part in ("-o", name)]
        ended = discreet(*ask, *files, "--sign", "custodian.key", cwd=folder)
        ended.refused(2, "c.signature.json has the name of a signature", "Nothing was spent")
    # it would be read as the record of what is signed
    for odd in (["c.release.json"], ["c.csv", "d.release.json"]):
        files = [part for name in odd for part in ("-o", name)]
        ended = discreet(*ask, *files, "--sign", "custodian.key", cwd=folder)
        ended.refused(2, f"{odd[-1]} has the name of a record", "Nothing was spent")
    with mock.patch("discreet.verify.certificate.Certificate.holds", False):
        ended = discreet(*ask, "-o", "c.csv", "--sign", "custodian.key", cwd=folder)
    ended.refused(2, "not proved to be enough", "Nothing was spent")
    assert contents(folder) == before


def test_a_card_is_printed_and_written(folder):
    shown = discreet("card", "study.toml", cwd=folder)
    assert shown.code == 0, shown.err
    assert "discrete Laplace noise" in shown.out
    as_json = json.loads(discreet("card", "study.toml", "--json", cwd=folder).out)
    assert yaml.safe_load(discreet("card", "study.toml", "--yaml", cwd=folder).out) == as_json
    assert discreet("card", "study.toml", "-o", "card.html", cwd=folder).out == "Wrote card.html.\n"
    assert "Privacy card of study" in (folder / "card.html").read_text("utf-8")
    discreet("card", "study.toml", "--json", "--yaml", cwd=folder).refused(2, "not both")
