import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from discreet.errors import DiscreetError, InvalidParameter
from discreet.serve import access as module
from discreet.serve.access import Access, Person, end_of


@pytest.fixture
def access(tmp_path):
    return Access(tmp_path / "discreet.access", new=True)


def test_a_token_opens_what_it_was_made_for(access):
    token = access.permit("ann", role="analyst", study="people")
    assert access.person(token) == Person(name="ann", role="analyst", studies=frozenset({"people"}))
    assert access.permit("ann", role="analyst", study="visits") is None
    assert access.person(token).studies == {"people", "visits"}


def test_every_token_is_another(access):
    tokens = {access.permit(f"a{index}", role="analyst", study="people") for index in range(50)}
    assert len(tokens) == 50
    assert all(len(token) == len("discreet_") + 16 + 1 + 64 for token in tokens)


@pytest.mark.parametrize(
    "wrong", ["", "x", "discreet_", "discreet_0123456789abcdef_" + "0" * 64, "ann"]
)
def test_an_unknown_token_opens_nothing(access, wrong):
    access.permit("ann", role="analyst", study="people")
    assert access.person(wrong) is None


def test_one_letter_decides(access):
    token = access.permit("ann", role="analyst", study="people")
    for index in range(len(token)):
        other = "0" if token[index] != "0" else "1"
        assert access.person(token[:index] + other + token[index + 1 :]) is None
    assert access.person(token.upper()) is None
    assert access.person(token + "\n") is None


def test_a_revoked_token_is_dead_and_its_successor_another(access):
    token = access.permit("ann", role="analyst", study="people")
    access.permit("ann", role="analyst", study="visits")
    access.revoke("ann")
    assert access.person(token) is None
    assert access.names() == []
    successor = access.permit("ann", role="analyst", study="people")
    assert successor not in (None, token)
    assert access.person(token) is None
    assert access.person(successor).studies == {"people"}


def test_only_a_token_in_use_can_be_revoked(access):
    for name in ("ann", "ann"):
        with pytest.raises(InvalidParameter, match="nothing was revoked"):
            access.revoke(name)


def test_a_role_stays(access):
    access.permit("ann", role="analyst", study="people")
    with pytest.raises(InvalidParameter, match="already has the role"):
        access.permit("ann", role="custodian", study="people")


@pytest.mark.parametrize(
    "name", ["", "a b", "a:b", "a/b", "ä", "a" * 41, "discreet.x", "-a", "a\n"]
)
def test_a_name_is_plain(access, name):
    with pytest.raises(InvalidParameter, match="name must be"):
        access.permit(name, role="analyst", study="people")


def test_no_token_is_kept(access, tmp_path):
    token = access.permit("ann", role="analyst", study="people")
    secret = token.rpartition("_")[2]
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert secret.encode() not in content
        assert bytes.fromhex(secret) not in content
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_missing_or_damaged_file_lets_nobody_in(access, tmp_path):
    token = access.permit("ann", role="analyst", study="people")
    file = tmp_path / "discreet.access"
    for content in (b"", b"x" * 4096, None):
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        with pytest.raises(DiscreetError):
            access.person(token)
    with pytest.raises(InvalidParameter):
        Access(file)


def test_the_tables_take_no_nonsense(access, tmp_path):
    access.permit("ann", role="analyst", study="people")
    with sqlite3.connect(tmp_path / "discreet.access") as file:
        for statement in (
            "UPDATE person SET role = 'root'",
            "UPDATE person SET token_hash = x'00'",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                file.execute(statement)
    file.close()


def test_many_at_once_each_get_one(tmp_path):
    def permit(index):
        return Access(tmp_path / "discreet.access", new=True).permit(
            f"a{index}", role="analyst", study="people"
        )

    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(permit, range(24)))
    access = Access(tmp_path / "discreet.access")
    assert [access.person(token).name for token in tokens] == [f"a{index}" for index in range(24)]


def test_a_rotated_token_opens_the_same_and_the_old_one_nothing(access):
    old = access.permit("ann", role="analyst", study="people")
    access.permit("ann", role="analyst", study="visits")
    new = access.rotate("ann")
    assert access.person(old) is None
    assert access.person(new).studies == {"people", "visits"}
    access.revoke("ann")
    for name in ("ann", "eve"):
        with pytest.raises(InvalidParameter, match="not revoked"):
            access.rotate(name)
    assert access.person(new) is None


def test_a_token_ends_with_its_time(access, monkeypatch):
    def at(moment):
        monkeypatch.setattr(module, "_now", lambda: moment)

    at("2026-11-18T00:00:00Z")
    token = access.permit("ann", role="analyst", study="people", expires="2026-11-20T00:00:00Z")
    at("2026-11-19T23:59:59Z")
    assert access.person(token).name == "ann"
    at("2026-11-20T00:00:00Z")
    assert access.person(token) is None
    assert access.names() == []
    assert [(line.state, line.expires) for line in access.lines()] == [
        ("expired", "2026-11-20T00:00:00Z")
    ]
    with pytest.raises(
        InvalidParameter, match="has expired, and a new one would expire at once: give --expires"
    ):
        access.rotate("ann")
    renewed = access.rotate("ann", expires="2026-12-01T00:00:00Z")
    assert access.person(token) is None
    renewed = access.rotate("ann")
    assert [line.expires for line in access.lines()] == ["2026-12-01T00:00:00Z"]
    assert access.person(renewed).studies == {"people"}
    at("2026-12-02T00:00:00Z")
    again = access.permit(
        "ann", role="analyst", study="visits"
    )  # the new token inherits no study from an expired or revoked one
    assert access.person(renewed) is None
    assert access.person(again).studies == {"visits"}
    assert (
        access.permit("ann", role="analyst", study="visits", expires="2026-12-03T00:00:00Z") is None
    )
    at("2026-12-03T00:00:00Z")
    assert access.person(again) is None


def test_the_end_of_a_token_is_a_day_or_a_span():
    assert end_of("9998-12-31") == "9999-01-01T00:00:00Z"
    assert end_of("12h") < end_of("1d") < end_of("99999d") < end_of("9998-12-31")
    for wrong in (
        "",
        "0d",
        "-1d",
        "1w",
        "2020-01-01",
        "9999-12-31",
        "tomorrow",
        "1.5d",
        "2027-1-1",
        "١d",
    ):
        with pytest.raises(InvalidParameter, match="expires must"):
            end_of(wrong)


def test_a_token_may_lose_one_study(access):
    token = access.permit("ann", role="analyst", study="people")
    access.permit("ann", role="analyst", study="visits")
    access.revoke("ann", study="people")
    assert access.person(token).studies == {"visits"}
    with pytest.raises(InvalidParameter, match="nothing was revoked"):
        access.revoke("ann", study="people")


def test_the_list_shows_everybody_and_no_secret(access):
    token = access.permit("ann", role="analyst", study="people")
    access.permit("cleo", role="custodian", study="people", expires=end_of("1d"))
    access.permit("bob", role="analyst", study="people")
    access.revoke("bob")
    assert [(line.name, line.role, line.state) for line in access.lines()] == [
        ("ann", "analyst", "in use"),
        ("bob", "analyst", "revoked"),
        ("cleo", "custodian", "in use"),
    ]
    assert not any(part in repr(access.lines()) for part in token.split("_")[1:])
