"""The only source of randomness: an AES-256-CTR keystream for each thread, keyed by the operating
system.

There is no seed, here or in any public signature. A stream is discarded in a forked child, gets a
new key after 2³² AES blocks (64 GiB), and never leaves its thread, so no two draws share bits. If
`os.urandom` fails, returns too few bytes or repeats itself, nothing is drawn and nothing can be
released.

A fork is detected in three ways: by Python's hook, by the process id, and on Linux by a page that
the kernel clears in the child (MADV_WIPEONFORK), which also detects a fork by C code into a pid
namespace where the ids are equal. Other systems do not detect such a fork.

No word is stored between two calls: each call takes its bits from the cipher in one step, so that a
signal handler that draws in the middle of a draw shares no bits with it.

Samplers need two methods (`Entropy`): `fill` gives the first 64 bits of many draws at once; `more`
gives 64 further bits of one draw that is still undecided. Tests pass a scripted object with the
same methods.

This does not protect a process whose memory is read or copied (a cloned virtual machine).
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from discreet.errors import EngineFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEY_BYTES, _NONCE_BYTES = 32, 16
_BYTES_PER_KEY = 16 * 2**32
_WIPE_ON_FORK = 18
"""MADV_WIPEONFORK in Linux's mman-common.h; Python's mmap has no name for it."""
_ZEROS = memoryview(bytes(8 * 2**17))
"""The plaintext: encrypting zeros gives the keystream itself, 128 Ki words at a time."""


class Entropy(Protocol):
    """Uniform bits."""

    def fill(self, words: NDArray[np.int64]) -> None:
        """Overwrite a contiguous array of int64 with uniform bits."""

    def more(self) -> int:
        """64 uniform bits as an integer in [0, 2⁶⁴)."""


class Keystream:
    """Uniform bits from AES-256-CTR, for one thread of one process."""

    __slots__ = ("_encrypt", "_encrypt_into", "_left", "_page", "_pid")

    def __init__(self) -> None:
        self._page = _page_for_forks()
        self._rekey()

    def fill(self, words: NDArray[np.int64]) -> None:
        out = words.view("u1").data
        for start in range(0, len(out), len(_ZEROS)):
            part = out[start : start + len(_ZEROS)]
            self._take(len(part))
            self._encrypt_into(_ZEROS[: len(part)], part)

    def more(self) -> int:
        self._take(8)
        return int.from_bytes(self._encrypt(_ZEROS[:8]), "little")

    def _take(self, count: int) -> None:
        """Count the next bytes, with a new key after a fork that Python did not detect or at the
        end of the key.
        """
        if not self._page[0] or self._pid != os.getpid() or self._left < count:
            self._rekey()
        self._left -= count

    def _rekey(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        seed = _system_seed(_KEY_BYTES + _NONCE_BYTES)
        encryptor = Cipher(
            algorithms.AES(seed[:_KEY_BYTES]), modes.CTR(seed[_KEY_BYTES:])
        ).encryptor()
        self._encrypt, self._encrypt_into = encryptor.update, encryptor.update_into
        self._left = _BYTES_PER_KEY
        self._pid = os.getpid()
        self._page[0] = 1


def _page_for_forks() -> mmap.mmap | bytearray:
    """Memory whose first byte is 0 at first and, if the kernel supports it, again in every forked
    child.
    """
    if sys.platform == "linux":
        with suppress(OSError, ValueError):  # kernels before 4.14 do not support it
            page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            page.madvise(_WIPE_ON_FORK)
            return page
    return bytearray(1)


def keystream() -> Keystream:
    if not hasattr(_streams, "mine"):
        _streams.mine = Keystream()
    mine: Keystream = _streams.mine
    return mine


def random_digits(words: int) -> str:
    """64 random bits for each word, in hexadecimal: a name that nobody can guess."""
    return "".join(f"{keystream().more():016x}" for _ in range(words))


def _system_seed(count: int) -> bytes:
    """`count` bytes from the system, after two checks: none is missing, and they are never the same
    twice.
    """
    global _last_seed  # noqa: PLW0603 - one for the process, inherited by its forks
    try:
        seed, second = os.urandom(count), os.urandom(count)
    except Exception as failure:
        raise EngineFailed(
            f"the system gives no randomness ({type(failure).__name__}); nothing was drawn"
        ) from None
    mark = sha256(seed).digest()
    if len(seed) != count or len(second) != count:
        raise EngineFailed("the system gives too few random bytes; nothing was drawn")
    with _comparing:  # two threads with one seed must not both compare it with an earlier one
        if seed == second or mark == _last_seed or len(set(seed)) == 1:
            raise EngineFailed("the system gives the same random bytes twice; nothing was drawn")
        _last_seed = mark
    return seed


def _forget() -> None:
    # a child continues neither the streams nor the threads of its parent
    global _streams, _comparing
    _streams, _comparing = threading.local(), threading.RLock()


_streams = threading.local()
_comparing = threading.RLock()  # a signal handler may draw, too
_last_seed = b""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
