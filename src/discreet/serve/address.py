"""Which addresses reach this machine only, so that a token may travel to them in the clear."""

from __future__ import annotations

import ipaddress


def is_local(host: str) -> bool:
    """Whether an address reaches this machine only.

    >>> is_local("127.0.0.1"), is_local("::1"), is_local("localhost"), is_local("0.0.0.0"), is_local("example.org")
    (True, True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
