import json
import shutil
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import discreet
from discreet import Ledger
from discreet.errors import DiscreetError, InvalidParameter
from discreet.serve.access import Access
from discreet.serve.command import app
from serving import BY_COUNTY, process, written
from waiting import PATIENCE


def said(*arguments):
    """What a command prints and how it ends; an error of ours is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    return result


def test_a_study_is_served_as_the_custodian_types_it(tmp_path):
    """token, serve, connect, ask, revoke: with real processes."""
    policy = written(tmp_path)
    output = said("token", "ann", "--study", policy, "--allot", "0.5")
    token = output.stdout.strip().splitlines()[-1]
    assert "shown once" in output.output
    assert {file.name for file in tmp_path.iterdir() if "access" in file.name} == {
        "discreet.access"
    }
    with process(policy, "--quantum", "0") as server:
        with discreet.connect(server.url, token) as remote:
            answer = remote.sql(BY_COUNTY, epsilon="0.1").release()
            assert len(answer) == 3
            assert float(remote.remaining) == 0.4
            said("revoke", "ann", "--access", tmp_path / "discreet.access")
            with pytest.raises(
                InvalidParameter, match="unknown, expired or revoked; ask the custodian"
            ):
                remote.described  # noqa: B018
        again = (
            said("token", "ann", "--study", policy, "--allot", "0.5")
            .stdout.strip()
            .splitlines()[-1]
        )
        assert again != token
        with discreet.connect(server.url, again) as remote:
            assert float(remote.remaining) == 0.4  # what was spent stays spent, whatever the token
        server.popen.send_signal(signal.SIGINT)
        server.popen.wait(PATIENCE)
        log = server.log.read_text("utf-8")
        assert "ann POST '/release' 200" in log
        assert "Traceback" not in log
        assert token not in log


def test_a_second_study_needs_no_second_token(tmp_path):
    policy = written(tmp_path)
    other = shutil.copy(policy, tmp_path / "other.toml")
    said("token", "ann", "--study", policy, "--allot", "0.5")
    more = said("token", "ann", "--study", other, "--allot", "0.25")
    assert "already has a token, which stays the same" in more.output
    assert "discreet_" not in more.stdout


def test_the_end_of_a_token_is_changed_without_its_allotment(tmp_path):
    policy, access = written(tmp_path), tmp_path / "discreet.access"
    said("token", "ann", "--study", policy, "--allot", "0.5")
    longer = said("token", "ann", "--study", policy, "--expires", "2999-01-01")
    assert "spend ε 0.5, until 2999-01-02" in longer.output
    assert "already has a token" in longer.output
    assert [line.expires for line in Access(access).lines()] == ["2999-01-02T00:00:00Z"]
    said("rotate", "ann", "--access", access)
    assert [line.expires for line in Access(access).lines()] == ["2999-01-02T00:00:00Z"]
    said("revoke", "ann", "--access", access)
    anew = said("token", "ann", "--study", policy).stdout.strip()
    assert Access(access).person(anew).name == "ann"
    with pytest.raises(
        InvalidParameter, match=r"'bob' may not spend anything of people yet: give --allot"
    ):
        said("token", "bob", "--study", policy, "--expires", "90d")
    assert [line.name for line in Access(access).lines()] == ["ann"]


def test_tokens_are_listed_replaced_and_changed_by_study(tmp_path):
    (tmp_path / "2024").mkdir()
    policy = written(tmp_path)
    twin = written(tmp_path / "2024")
    access = tmp_path / "discreet.access"
    said("token", "ann", "--study", policy, "--allot", "0.5", "--expires", "90d")
    assert [
        line.partition(";")[2] for line in said("tokens", "--access", access).output.splitlines()
    ] == [" access to people"]
    said("token", "ann", "--study", twin, "--allot", "0.25", "--access", access)
    (line,) = json.loads(said("tokens", "--access", access, "--json").output)
    assert (line["name"], line["state"], len(line["studies"])) == ("ann", "in use", 2)
    assert said("tokens", "--access", access).output.count("people (ledger ") == 2
    said("revoke", "ann", "--study", policy, "--access", access)
    (line,) = json.loads(said("tokens", "--access", access, "--json").output)
    with discreet.open(twin) as study:
        assert line["studies"] == [f"{study.ledger.id}/people"]
        study.ledger.spend("r", "q", "0.2", study="people", analyst="ann")
    new = said("rotate", "ann", "--access", access, "--expires", "2999-12-31").stdout.strip()
    assert Access(access).person(new).name == "ann"
    with pytest.raises(InvalidParameter, match=r"what 'ann' has spent \(0\.2\)"):
        said("token", "ann", "--study", twin, "--allot", "0.1", "--access", access)
    said("token", "ann", "--study", twin, "--allot", "0.2", "--access", access)
    assert Access(access).person(new).name == "ann"
    elsewhere = ("--ledger", tmp_path / "elsewhere.ledger", "--anchor", tmp_path / "far.anchor")
    said("token", "bob", "--study", twin, "--allot", "0.1", "--access", access, *elsewhere)
    with Ledger.open(elsewhere[1], anchor=elsewhere[3]) as ledger:
        assert [line.studies for line in Access(access).lines() if line.name == "bob"] == [
            (f"{ledger.id}/people",)
        ]
        assert float(ledger.total("people", analyst="bob")) == 0.1
    for command in ("tokens", "rotate ann"):
        with pytest.raises(InvalidParameter, match="no token file"):
            said(*command.split(), "--access", tmp_path / "gone")


@pytest.mark.parametrize(
    "arguments",
    [
        ["token", "ann", "--allot", "0.5", "--expires", "yesterday"],
        ["token", "ann"],
        ["token", "ann", "--allot", "0.5", "--role", "custodian"],
        ["token", "ann", "--allot", "0.5", "--role", "root"],
        ["token", "ann", "--allot", "2"],
        ["token", "ann", "--allot", "nan"],
        ["token", "a b", "--allot", "0.5"],
    ],
    ids=" ".join,
)
def test_a_token_that_makes_no_sense_is_refused(tmp_path, arguments):
    policy = written(tmp_path)
    with pytest.raises(DiscreetError):
        said(*arguments, "--study", policy)
    assert not (tmp_path / "discreet.access").exists()


def test_a_custodian_has_no_allotment(tmp_path):
    output = said("token", "cleo", "--study", written(tmp_path), "--role", "custodian")
    assert "the study's ε" in output.output


def test_a_refused_token_leaves_the_shares_as_they_were(tmp_path):
    policy = written(tmp_path)
    said("token", "cleo", "--study", policy, "--role", "custodian")
    said("token", "ann", "--study", policy, "--allot", "0.1")
    with pytest.raises(InvalidParameter, match="already has the role"):
        said("token", "cleo", "--study", policy, "--allot", "0.3")
    (tmp_path / "discreet.access").write_text("no tokens", "utf-8")
    with pytest.raises(InvalidParameter, match="a file that discreet serve created"):
        said("token", "ann", "--study", policy, "--allot", "0.9")
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        assert [(entry.kind, entry.analyst) for entry in ledger.entries()] == [
            ("create", None),
            ("allot", "ann"),
        ]
        assert float(ledger.total("people", analyst="ann")) == 0.1


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(InvalidParameter, match=r"^a study is missing: discreet serve study\.toml$"):
        said()
    with pytest.raises(
        InvalidParameter, match=r"no token file '.*gone\.access'; name it, as in --access"
    ):
        said("revoke", "ann", "--access", tmp_path / "gone.access")


def test_help_is_there_and_quick(tmp_path):
    assert "revoke" in said("--help").output
    assert "--insecure-public" in said("run", "--help").output
    assert "--insecure-public" in said(str(tmp_path / "x.toml"), "--help").output
    code = (
        "import sys, discreet.serve.command; print([m for m in ('numpy', 'starlette', 'uvicorn') if"
        " m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org"])  # noqa: S104
def test_a_public_address_is_refused_before_a_ledger_is_made(host, tmp_path):
    with pytest.raises(InvalidParameter, match="--insecure-public"):
        said(written(tmp_path), "--host", host)
    assert not (tmp_path / "people.ledger").exists()


def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr("discreet.serve.command.find_spec", lambda _: None)
    for arguments in ([], ["token", "ann", "--allot", "0.5", "--study"]):
        with pytest.raises(InvalidParameter, match=r"discreet\[serve\]"):
            said(*arguments, written(tmp_path))
