"""Addresses of this machine, to which a token may be sent unencrypted, and the name in a Host
header.
"""

from __future__ import annotations

import ipaddress

LOCAL = ("127.0.0.1", "::1", "localhost")  # names of this machine


def is_local(host: str) -> bool:
    """Whether an address is that of this machine.

    >>> (
    ...     is_local("127.0.0.1"),
    ...     is_local("::1"),
    ...     is_local("localhost"),
    ...     is_local("0.0.0.0"),
    ...     is_local("example.org"),
    ... )
    (True, True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """The name in a Host header, without its port.

    >>> (
    ...     host_name("Data.example.org:8000"),
    ...     host_name("[::1]:8000"),
    ...     host_name("::1"),
    ...     host_name("a:b:80"),
    ... )
    ('data.example.org', '::1', '::1', 'a:b:80')
    """
    name, _, port = header.rpartition(":")
    is_port = port.isdecimal() and (":" not in name or name.endswith("]"))
    return (name if is_port else header).strip("[]").rstrip(".").lower()
