"""Where a ledger is: what is given, then the environment, then the policy, then beside it."""

from pathlib import Path

import pytest

import discreet
from discreet import EngineFailed, InvalidParameter, LedgerDamaged, Policy
from discreet.ledger.anchor import Anchor, AnchorFile
from discreet.ledger.place import Place, place_of
from shell import POLICY, study_in

SECRET = "geheim"  # noqa: S105
SERVER = f"postgresql://me:{SECRET}@nowhere.invalid/x"


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("DISCREET_LEDGER", "DISCREET_ANCHOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("given", [(None, None), ("g", None), ("g", "ga"), (None, "ga")], ids=str)
@pytest.mark.parametrize(
    "environment", [(None, None), ("e", None), ("e", "ea"), (None, "ea")], ids=str
)
@pytest.mark.parametrize(
    "declared", [(None, None), ("d", None), ("d", "da"), (None, "da")], ids=str
)
def test_the_first_that_names_a_ledger_decides_and_weaker_anchors_do_not_count(
    given, environment, declared, monkeypatch, tmp_path
):
    for name, value in zip(("DISCREET_LEDGER", "DISCREET_ANCHOR"), environment, strict=True):
        if value is not None:
            monkeypatch.setenv(name, value)
    policy = tmp_path / "study.toml"
    beside = [None if name is None else str(tmp_path / name) for name in declared]
    names = {**dict(zip(("ledger", "anchor"), declared, strict=True)), "study": "people-2024"}
    found = place_of(policy, names, ledger=given[0], anchor=given[1])
    levels = [given, environment, beside, (str(tmp_path / "study.ledger"), None)]
    deciding = [level[0] is not None for level in levels].index(True)
    anchors = [level[1] for level in levels[: deciding + 1] if level[1] is not None]
    assert found.where == levels[deciding][0]
    assert found.anchor == (anchors[0] if anchors else None)


def test_a_server_has_its_anchor_beside_the_study(monkeypatch, tmp_path):
    policy = tmp_path / "study.toml"
    policy.write_text(f'study = "x"\nledger = "{SERVER}"\n', "utf-8")
    assert place_of(policy).anchor == str(tmp_path / "discreet.anchor")
    assert place_of(policy, anchor="elsewhere").anchor == "elsewhere"
    monkeypatch.setenv("DISCREET_ANCHOR", "machine")
    assert place_of(policy).anchor == "machine"


def test_no_password_is_shown(tmp_path):
    folder = study_in(tmp_path, f'study = "x"\nledger = "{SERVER}"\n{POLICY}')
    policy = Policy.load(folder / "study.toml")
    assert policy.ledger == SERVER
    assert SECRET in policy.to_toml()
    assert SECRET not in repr(policy) + repr(place_of(folder / "study.toml"))
    with pytest.raises(LedgerDamaged, match="discreet ledger create") as missing:
        discreet.open(folder / "study.toml")
    (folder / "discreet.anchor").write_text("?", "utf-8")
    with pytest.raises(LedgerDamaged, match="anchor is damaged") as damaged:
        discreet.open(folder / "study.toml")
    (folder / "discreet.anchor").unlink()
    AnchorFile(folder / "discreet.anchor").create(Anchor(ledger="x", schema=""))
    with pytest.raises(EngineFailed, match="its host is unknown") as unheard:
        discreet.open(folder / "study.toml")
    with pytest.raises(InvalidParameter, match="a text") as odd:
        Policy(source="x.csv", epsilon=1, columns={"age": {}}, ledger=f"{SERVER}\0")
    refusals = [missing, damaged, unheard, odd]
    for mistyped in (
        f"host=h password={SECRET}",
        SERVER.replace("postgresql", "mysql"),
        SERVER.replace("//", "/"),
        f"postgresql://h/x?host=a&host=b:{SECRET}&port=1",
        f"postgresql://me:{SECRET}@h:port/x",
    ):
        with pytest.raises(InvalidParameter, match="postgresql://") as refusal:
            discreet.open(folder / "study.toml", ledger=mistyped)
        refusals.append(refusal)
    for mistyped in (SERVER.replace("//", "/"), SERVER.replace("//", ""), SERVER.upper()):
        assert SECRET.lower() not in repr(Place(where=mistyped, anchor=None)).lower()
    for refusal in refusals:
        assert SECRET not in str(refusal.value)
        assert refusal.value.__cause__ is None


def test_a_named_file_is_made_but_no_second_budget_by_the_way(tmp_path, monkeypatch):
    folder = study_in(
        tmp_path, f'study = "x"\nledger = "kept/study.ledger"\nanchor = "study.anchor"\n{POLICY}'
    )
    (folder / "kept").mkdir()
    discreet.open(folder / "study.toml").ledger.close()
    assert {file.name for file in folder.iterdir()} >= {"study.anchor"}
    assert (folder / "kept" / "study.ledger").exists()
    assert not (folder / "study.ledger").exists()

    (folder / "study.toml").write_text(f'study = "x"\n{POLICY}', "utf-8")
    discreet.open(folder / "study.toml").ledger.close()
    monkeypatch.setenv("DISCREET_LEDGER", str(folder / "fresh.ledger"))
    with pytest.raises(InvalidParameter, match="new budget"):
        discreet.open(folder / "study.toml")
    assert not (folder / "fresh.ledger").exists()


def test_a_ledger_that_others_use_needs_a_name_for_the_study(monkeypatch, tmp_path):
    """`discreet init` calls every policy study.toml: two of them would be one study."""
    policy = study_in(tmp_path) / "study.toml"
    for options in ({"ledger": SERVER}, {"ledger": SERVER, "anchor": "a"}):
        with pytest.raises(
            InvalidParameter, match=r"study is missing in study\.toml: write study = "
        ):
            discreet.open(policy, **options)
    policy.write_text(f'ledger = "shared.ledger"\n{POLICY}', "utf-8")
    with pytest.raises(InvalidParameter, match="study is missing"):
        discreet.open(policy)
    policy.write_text(POLICY, "utf-8")
    monkeypatch.setenv("DISCREET_LEDGER", str(tmp_path / "shared.ledger"))
    with pytest.raises(InvalidParameter, match="study is missing"):
        discreet.open(policy)
    policy.write_text(f'study = "census"\n{POLICY}', "utf-8")
    with discreet.open(policy) as study:
        assert (study.name, study.ledger.studies()) == ("census", ["census"])
    other = tmp_path / "other.toml"
    other.write_text(f'study = "other"\n{POLICY}', "utf-8")
    with pytest.raises(LedgerDamaged, match="'other' is not in this ledger"):
        discreet.open(other)


@pytest.mark.parametrize("left", ["study.ledger", "study.ledger.anchor", "far.anchor"])
def test_a_file_is_new_only_where_nothing_of_it_is_left(tmp_path, left):
    place = Place(where=str(tmp_path / "study.ledger"), anchor=str(tmp_path / "far.anchor"))
    assert place.is_new
    Path(tmp_path, left).touch()
    assert not place.is_new
