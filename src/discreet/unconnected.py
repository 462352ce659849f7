"""Why a PostgreSQL server gives no connection, for sources and for ledgers.

No SQLSTATE says it: libpq gives words alone, which name the host, the user and the database, so
they are not passed on. Only the GRANT that a role needs names it and the database, so that it can
be pasted. What a server answers is looked for first, since an address may have several hosts. A
server that does not speak English is told apart by its network alone.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from typing import NamedTuple

from discreet.errors import errno_code


class Reason(NamedTuple):
    """Why there is no connection and what to do, about a server called "it"; and the SQLSTATE or
    errno.
    """

    words: str
    code: str


def reason_of(error: BaseException) -> Reason:
    """Why psycopg gave no connection."""
    lines = [_OWN.sub("", line.strip()) for line in str(error).splitlines()]
    for shapes in (_ANSWERS, _CLIENT):
        for shape, words, code in shapes:
            if any(re.match(shape, line) for line in lines):
                return Reason(_named(words, error), code)
    if any(line.startswith("FATAL") for line in lines):
        return Reason("it refuses the connection: its log says why", "SQLSTATE 08004")
    return Reason(
        "there is no connection to it: see whether it runs, and which firewalls are between",
        "SQLSTATE 08001",
    )


def _named(words: str, error: BaseException) -> str:
    """The words with the database and the role that were tried; the server has let the role log in,
    so it is no secret.

    psycopg keeps both, without the password, of a connection that failed.
    """
    tried = getattr(error, "pgconn", None)
    base, role = (getattr(tried, name, None) or b"" for name in ("db", "user"))
    return (
        words.replace("… TO …", f"{_identifier(base)} TO {_identifier(role)}")
        if base and role
        else words
    )


def _identifier(name: bytes) -> str:
    quoted = name.decode("utf-8", "replace").replace('"', '""')
    return f'"{quoted}"'


_OWN = re.compile(
    r"^(- host: .*?, hostaddr: .*?: )?(connection (failed|is bad): )?(connection to server .*?"
    r" failed: )?"
)
"""What psycopg and libpq write before the reason."""

_FULL = "it has no connection left: close some, or raise its limits"

_ANSWERS: Sequence[tuple[str, str, str]] = tuple(
    (rf"(FATAL|ERROR): +({shape})", words, f"SQLSTATE {state}")
    for shape, words, state in (
        (
            "password authentication failed",
            "it refuses the user or the password of the address",
            "28P01",
        ),
        (
            r"(role|user) .* does not exist$",
            "it has no such role: correct the user in the address",
            "28000",
        ),
        (
            "role .* is not permitted to log in",
            "the role of the address may not log in: ALTER ROLE … LOGIN",
            "28000",
        ),
        (
            "no pg_hba.conf entry .*(no encryption|SSL off)$",
            (
                "its pg_hba.conf does not let this user connect from here without encryption: set"
                " sslmode=require in the address, or add a line there"
            ),
            "28000",
        ),
        (
            "no pg_hba.conf entry|pg_hba.conf rejects",
            "its pg_hba.conf does not let this user connect from here: add a line there",
            "28000",
        ),
        (
            r"\S+ authentication failed",
            (
                "its pg_hba.conf wants another proof of who connects: correct the user, or the line"
                " there"
            ),
            "28000",
        ),
        (
            "permission denied for database",
            "the role may not connect: GRANT CONNECT ON DATABASE … TO …",
            "42501",
        ),
        (
            "database .* does not exist$",
            "it has no such database: correct the database in the address",
            "3D000",
        ),
        (
            "database .* is not currently accepting connections",
            (
                "the database takes no connections: name another, or ALTER DATABASE …"
                " ALLOW_CONNECTIONS true"
            ),
            "55000",
        ),
        ("(sorry, )?too many |remaining connection slots", _FULL, "53300"),
        ("the database system is shutting down", "it is shutting down: start it again", "57P03"),
        (
            "the database system is (starting up|in recovery|not)",
            "it is starting up, or recovers from a crash: try again in a moment",
            "57P03",
        ),
    )
)
"""What a server answers that speaks English. In order."""

_CLIENT: Sequence[tuple[str, str, str]] = (
    (
        ".*no password supplied",
        "it asks for a password: give one in the address, PGPASSWORD or ~/.pgpass",
        "SQLSTATE 28P01",
    ),
    (
        (
            "server does not support SSL|root certificate|SSL error|server certificate|certificate"
            " present"
        ),
        (
            "it offers no encrypted connection that the address accepts: correct the port, sslmode"
            " or the certificates"
        ),
        "SQLSTATE 08001",
    ),
    (
        "invalid |missing |forbidden |extra key|unrecognized|weak sslmode|encoding with",
        (
            "the address cannot be read: write postgresql://user@host:port/database, and only"
            " options of libpq"
        ),
        "SQLSTATE 08001",
    ),
    (
        "received invalid response|expected authentication request|server closed the connection",
        (
            "what listens at its host and port is no PostgreSQL server, or ends every connection:"
            " correct the port, or see its log"
        ),
        "SQLSTATE 08001",
    ),
    (
        "Connection refused",
        "no server listens at its host and port: start it, or correct the port",
        errno_code(errno.ECONNREFUSED),
    ),
    (
        "No such file or directory",
        "no server listens at its socket: start it, or correct the host",
        errno_code(errno.ENOENT),
    ),
    (
        "Permission denied",
        "this user may not use its socket: change the permissions of its folder",
        errno_code(errno.EACCES),
    ),
    (
        "failed to resolve host|could not translate host name",
        (
            "its host is unknown: correct the host in the address, or see whether the name server"
            " answers"
        ),
        "EAI_NONAME",
    ),
    (
        (
            "connection timeout|timeout expired|Connection timed out|No route to host|Network is"
            " unreachable"
        ),
        "its host did not answer in time: see whether it runs, and which firewalls are between",
        errno_code(errno.ETIMEDOUT),
    ),
)
"""What libpq and psycopg find out themselves. In order."""
