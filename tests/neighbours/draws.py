"""What a release draws, written down where it is drawn, without knowing any design.

Every random number of a release comes from `draw_one`, `fill` or `choose`, and every draw that
reads a secret goes by way of `drawn`. Inside `recorded` these are replaced. A draw is made twice,
with the noise 0, 0, 0, … and with the noise p, 2p, 3p, … of a large p: what comes out must be

    step·k   and   step·(k + p), step·(k + 2p), …

number by number, and this tells the integers k, the steps and the order of the scales of whatever
is released. A choice is known by the exponents that it is made from. An exact answer that is opened
without noise is public, or a leak.

    first = recorded(ask)                    the draws, and the answer that they give
    second = recorded(ask, like=first)       the draws of another table, and the answer that the
                                             first draws give there

The second answer must be the first, byte for byte: then an answer is a function of what was drawn
and of nothing else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from cells import spread_out
from discreet.draw import choice, coin, vector
from discreet.engines.base import Exact
from discreet.release import tape
from discreet.release.statistics import tree

_STRIDE = 1_000_003


class Astray(AssertionError):
    """A draw or a secret that the record cannot account for."""


class Leak(AssertionError):
    """Something that must not depend on the data, and does."""


@dataclass(frozen=True)
class Noise:
    """Integers with discrete Laplace noise; all but the integers must be the same for all data."""

    terms: str
    """What the tape is told about the draw."""
    scales: tuple[Fraction, ...]
    """Of each integer, in steps."""
    steps: tuple[int, ...]
    integers: tuple[int, ...]
    given: Any
    """What the caller got."""

    @property
    def public(self) -> Any:
        return self.terms, self.scales, self.steps


@dataclass(frozen=True)
class Choice:
    """In each row a choice by permute-and-flip: cell v survives with probability
    e^(−unit·(exponent(v) − smallest)).
    """

    terms: str
    unit: Fraction
    exponents: np.ndarray
    given: list[int]

    @property
    def public(self) -> Any:
        return self.terms, self.unit, self.exponents.shape


@dataclass(frozen=True)
class Opened:
    """An exact answer that was opened without noise."""

    terms: str
    given: Any

    @property
    def public(self) -> Any:
        return self.terms, plain(self.given)


Event = Noise | Choice | Opened


@dataclass
class Record:
    """What one call drew, and what it gave or raised."""

    events: list[Event] = field(default_factory=list)
    answer: Any = None
    error: Exception | None = None


@dataclass
class _Probe:
    """One run of a draw: the noise it is given, and what it asks for."""

    noise: Callable[[int], int]
    pick: Callable[[np.ndarray], np.ndarray]
    scales: list[Fraction] = field(default_factory=list)
    choices: list[tuple[Fraction, np.ndarray]] = field(default_factory=list)

    def next(self, scale: Fraction, count: int) -> list[int]:
        start = len(self.scales)
        self.scales += [scale] * count
        return [self.noise(index) for index in range(start, start + count)]


class _Recorder:
    """What stands in for the draws."""

    def __init__(self, record: Record, like: Record | None, seed: int | None) -> None:
        self.record, self.like = record, like
        self.probe: _Probe | None = None
        self.random = None if seed is None else np.random.default_rng(seed)

    def draw_one(self, scale: Fraction, *_: Any, **__: Any) -> int:
        return self._probing().next(Fraction(scale), 1)[0]

    def fill(self, out: np.ndarray, scale: Fraction, **_: Any) -> None:
        out[:] = self._probing().next(Fraction(scale), out.size)

    def sample(self, scale: Fraction, size: Any = None) -> Any:
        if size is None:
            return self.draw_one(scale)
        return np.array(self._probing().next(Fraction(scale), int(np.prod(size))), object).reshape(
            size
        )

    def choose(self, runs: choice.Runs, unit: Fraction, **_: Any) -> np.ndarray:
        probe, exponents = self._probing(), spread_out(runs)
        probe.choices.append((Fraction(unit), exponents))
        return probe.pick(exponents)

    def unknown(self, *_: Any, **__: Any) -> Any:
        raise Astray("a coin was tossed, and no loss is known for it")

    def drawn(self, draw: Callable[[], Any], *terms: object) -> Any:
        """A draw: recorded, and given what the record that it must be like was given."""
        if self.probe is not None:
            return draw()
        zero, probe = self._run(draw, lambda _: 0)
        if probe.choices:
            units = {unit for unit, _ in probe.choices}
            if len(units) != 1 or probe.scales:
                raise Astray("a draw makes choices in more than one unit, or adds noise to one")
            exponents = np.concatenate([exponents for _, exponents in probe.choices])
            return self._note(Choice(repr(terms), units.pop(), exponents, zero))
        if not probe.scales:
            return self._note(Opened(repr(terms), zero))
        rising, _ = self._run(draw, lambda index: (index + 1) * _STRIDE)
        integers, steps = _integers(flat(zero), flat(rising), len(probe.scales))
        given = zero if self.random is None else self._run(draw, self._noise(probe.scales))[0]
        return self._note(Noise(repr(terms), tuple(probe.scales), steps, integers, given))

    def reveal(self, value: Any) -> Any:
        return value if self.probe is not None else self._note(Opened("", value))

    def _run(self, draw: Callable[[], Any], noise: Callable[[int], int]) -> tuple[Any, _Probe]:
        probe = self.probe = _Probe(noise, self._pick)
        try:
            return draw(), probe
        finally:
            self.probe = None

    def _probing(self) -> _Probe:
        if self.probe is None:
            raise Astray("a draw was made outside of the tape")
        return self.probe

    def _noise(self, scales: Sequence[Fraction]) -> Callable[[int], int]:
        sizes = [self.random.laplace() for _ in scales]
        return lambda index: int(Fraction(sizes[index]) * scales[index])

    def _pick(self, exponents: np.ndarray) -> np.ndarray:
        if self.random is None:
            return np.argmin(exponents, axis=1)
        return self.random.integers(exponents.shape[1], size=len(exponents))

    def _note(self, event: Event) -> Any:
        index = len(self.record.events)
        self.record.events.append(event)
        if self.like is None:
            return event.given
        if index >= len(self.like.events):
            raise Leak("one table draws more often than the other")
        other = self.like.events[index]
        if type(event) is not type(other) or event.public != other.public:
            raise Leak(
                f"{type(event).__name__} {_short(event)} and {type(other).__name__} {_short(other)}"
                " differ"
            )
        return other.given


def recorded(
    call: Callable[[], Any], *, like: Record | None = None, seed: int | None = None
) -> Record:
    """What a call draws; with `seed` its answer has noise, else it has none.

    `like` gives it another's draws.
    """
    record = Record()
    with _replaced(_Recorder(record, like, seed)):
        try:
            record.answer = call()
        except (Astray, Leak):
            raise
        except Exception as error:  # what a table makes fail is what we look for
            record.error = error
    if (
        like is not None
        and record.error is None
        and like.error is None
        and len(like.events) > len(record.events)
    ):
        raise Leak("one table draws more often than the other")
    return record


@contextmanager
def _replaced(recorder: _Recorder) -> Iterator[None]:
    real = Exact.reveal

    def band(*parameters: Any) -> float:
        """A band is simulated from public parameters alone: any function of them will do."""
        return 1 + len(repr(parameters)) / 1000

    fakes = {
        vector.draw_one: recorder.draw_one,
        vector.fill: recorder.fill,
        vector.sample: recorder.sample,
        choice.choose: recorder.choose,
        coin.flips: recorder.unknown,
        tape.drawn: recorder.drawn,
        tree._band: band,
    }
    with ExitStack() as stack:
        stack.enter_context(
            mock.patch.object(Exact, "reveal", lambda exact, *of: recorder.reveal(real(exact, *of)))
        )
        for module, name, function in _uses(tuple(fakes)):
            stack.enter_context(mock.patch.object(module, name, fakes[function]))
        yield


_found: dict[int, list[tuple[ModuleType, str, Any]]] = {}


def _uses(functions: tuple[Any, ...]) -> list[tuple[ModuleType, str, Any]]:
    """Where functions are used, by whatever module has imported them, and in the module of the
    sampler.
    """
    if len(sys.modules) not in _found:
        modules = [
            m
            for name, m in sorted(sys.modules.items())
            if re.match(r"discreet\.(draw\.vector|(?!draw|verify))", name)
        ]
        known = {id(function): function for function in functions}
        _found[len(sys.modules)] = [
            (module, name, known[id(value)])
            for module in modules
            for name, value in vars(module).items()
            if id(value) in known
        ]
    return _found[len(sys.modules)]


def _integers(
    zero: list[int], rising: list[int], draws: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The integers k and the steps of what was released with the noise 0, 0, … and p, 2p, …."""
    if len(zero) != draws or len(rising) != draws:
        raise Astray(f"{len(zero)} numbers are released after {draws} draws")
    steps = []
    for index, (first, second) in enumerate(zip(zero, rising, strict=True), 1):
        step, rest = divmod(second - first, index * _STRIDE)
        if rest or step <= 0 or first % step:
            raise Astray("a number is released that is no multiple of a step plus its own noise")
        steps.append(step)
    return tuple(first // step for first, step in zip(zero, steps, strict=True)), tuple(steps)


def flat(value: Any) -> list[int]:
    """The integers in lists of lists, arrays, or alone."""
    if isinstance(value, bool | float):
        raise Astray("what is drawn is no integer")
    if isinstance(value, int | np.integer):
        return [int(value)]
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "iuO":
            raise Astray("what is drawn is no integer")
        return [int(each) for each in value.ravel().tolist()]
    return [number for part in value for number in flat(part)]


def plain(value: Any) -> Any:
    """An opened answer as something that knows equality."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def _short(event: Event) -> str:
    text = repr(event.public)
    return text if len(text) < 120 else text[:117] + "…"
