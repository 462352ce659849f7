import psycopg
import pytest

from discreet.unconnected import reason_of

FATAL = 'connection failed: connection to server at "h", port 5432 failed: FATAL:  '
NAMES = [
    "timeout",
    "SSL",
    "database",
    "starting up",
    "too many connections",
    "pg_hba.conf",
    'x" does not exist',
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_reads_like_a_reason_is_only_a_name(name):
    error = psycopg.OperationalError(f'{FATAL}database "{name}" does not exist')
    assert reason_of(error).code == "SQLSTATE 3D000"
    error = psycopg.OperationalError(f'{FATAL}password authentication failed for user "{name}"')
    assert reason_of(error).code == "SQLSTATE 28P01"


def test_a_server_in_another_language_refuses_and_its_words_are_not_passed_on():
    error = psycopg.OperationalError(
        f"{FATAL}Passwort-Authentifizierung für Benutzer »canary« fehlgeschlagen"
    )
    assert reason_of(error) == ("it refuses the connection: its log says why", "SQLSTATE 08004")


def test_what_nobody_knows_is_a_missing_connection():
    words, code = reason_of(psycopg.OperationalError("canary"))
    assert code == "SQLSTATE 08001"
    assert "canary" not in words
