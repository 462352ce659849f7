"""Entropy that a test writes beforehand: the first word of each draw, and what `more` answers."""

from collections.abc import Iterable, Iterator

import numpy as np

from discreet.draw.coin import Chance, decide


class Scripted:
    """Gives out `words` by `fill` and `extra` by `more`; `asked` counts the calls of `more`."""

    def __init__(self, words: Iterable[int] = (), extra: Iterable[int] = ()) -> None:
        self._words: Iterator[int] = iter(words)
        self._extra: Iterator[int] = iter(extra)
        self.asked = 0

    def fill(self, words: np.ndarray) -> None:
        words[:] = [_as_int64(next(self._words)) for _ in range(words.size)]

    def more(self) -> int:
        self.asked += 1
        return next(self._extra)


class Replayed:
    """The same from numpy arrays, for millions of words; `more` reads from its own array."""

    def __init__(self, words: np.ndarray, extra: np.ndarray) -> None:
        self._words, self._extra, self._at, self.asked = words, extra, 0, 0

    def fill(self, words: np.ndarray) -> None:
        words[:] = self._words[self._at : self._at + words.size]
        self._at += words.size

    def more(self) -> int:
        self.asked += 1
        return int(self._extra[self.asked - 1])


def _as_int64(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


def flip(chance: Chance, entropy: Scripted | Replayed) -> bool:
    """One exact toss, by the definition: the slow twin of `coin.flips`."""
    word = np.empty(1, np.int64)
    entropy.fill(word)
    return decide(chance, int(word.view(np.uint64)[0]), entropy.more)


class Odd:
    """An object that no parameter can be, with a name that is the same in every process."""

    def __repr__(self) -> str:
        return "odd"
