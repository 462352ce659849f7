"""Exact draws beside numpy's unsafe ones, OpenDP's, and the AES keystream that bounds them."""

import os
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import numpy as np

import discreet
from bench.measure import fastest, table
from discreet.draw.entropy import Keystream
from discreet.draw.vector import fill

SCALES = (Fraction(1, 2), Fraction(1), Fraction(10), Fraction(1000), Fraction(2**20))
SIZES = (1, 1_000, 10**7)
WITHOUT_AVX512 = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}
"""What numpy 2.4 calls its code for AVX-512; features that the machine does not have are left out.
"""


def main() -> None:
    if sys.argv[1:] == ["ratios"]:
        print(*(f"{ratio:.2f}" for ratio in map(over_numpy, SCALES)))
        return
    print(draws())
    print(vector_units())
    print(calls())
    print(start())


def opendp_draw(scale: Fraction, size: int):
    """OpenDP's discrete Laplace on a vector of integers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=float(scale)), [0] * size


def draws() -> str:
    headings = [
        "scale",
        "size",
        "one thread, into an array",
        "over numpy",
        "`sample`, new array, all cores, over numpy",
        "two threads over one",
        "over OpenDP",
        "of the keystream's limit",
    ]
    return table("Exact draws", headings, [row(scale, size) for scale in SCALES for size in SIZES])


def over_numpy(scale: Fraction) -> float:
    """How many times as fast as numpy 10⁷ draws are, on one thread."""
    rng, out = np.random.default_rng(), np.empty(10**7, np.int64)
    works = {
        "numpy": lambda: rng.laplace(0, float(scale), out.size),
        "one": lambda: fill(out, scale, threads=1),
    }
    times = fastest(works, rounds=5)
    return times["numpy"] / times["one"]


def vector_units() -> str:
    """10⁷ draws on one thread over numpy, in processes of which numpy may use AVX-512 and may not."""
    from numpy._core._multiarray_umath import __cpu_features__ as features

    here = [
        name for name in WITHOUT_AVX512["NPY_DISABLE_CPU_FEATURES"].split() if features.get(name)
    ]
    kinds = (
        {"with AVX-512": {}, "without": {"NPY_DISABLE_CPU_FEATURES": " ".join(here)}}
        if here
        else {"without": {}}
    )
    rows = []
    for kind, environment in kinds.items():
        command = [sys.executable, "-m", "bench.noise", "ratios"]
        told = subprocess.run(
            command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
        )
        rows.append([kind, *(f"{ratio} ×" for ratio in told.stdout.split())])
    return table(
        "10⁷ draws on one thread, over numpy", ["numpy's vector units", *map(str, SCALES)], rows
    )


def row(scale: Fraction, size: int) -> list[str]:
    rng, stream = np.random.default_rng(), Keystream()
    out = np.empty(size, np.int64)
    repeat = max(1, 3000 // size)
    # OpenDP is so much slower that ten million draws would take minutes: it draws fewer, counted
    # per draw
    share = min(size, 20_000)
    measurement, zeros = opendp_draw(scale, share)
    works = {
        "numpy": lambda: rng.laplace(0, float(scale), size),
        "one": lambda: fill(out, scale, threads=1),
        "two": lambda: fill(out, scale, threads=2 if size > 10**6 else 1),
        "sample": lambda: discreet.DiscreteLaplace(scale).sample(size),
        "aes": lambda: stream.fill(out),
    }
    times = {
        name: lambda work=work: [work() for _ in range(repeat)] for name, work in works.items()
    }
    found = fastest(times, rounds=9 if size > 10**6 else 15)
    each = {name: seconds / repeat / size for name, seconds in found.items()}
    peer = fastest({"opendp": lambda: measurement(zeros)}, rounds=2)["opendp"] / share
    return [
        str(scale),
        f"{size:,}",
        f"{1e-6 / each['one']:.3g} M/s",
        f"**{each['numpy'] / each['one']:.2f} ×**",
        f"{each['numpy'] / each['sample']:.2f} ×",
        f"{each['one'] / each['two']:.2f} ×" if size > 10**6 else "",
        f"{peer / each['one']:,.0f} ×",
        f"{each['aes'] / each['one']:.0%}",
    ]


def calls() -> str:
    """A release of one number, the memory beyond the output, and the whole mechanism on an array."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    peer = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=10.0)
    rng = np.random.default_rng()
    answer, reals = np.zeros(10**7, np.int64), np.zeros(10**7)
    repeat = 2000

    def ours() -> None:
        for _ in range(repeat):
            discreet.laplace_mechanism(1234, sensitivity=1, epsilon="0.1")

    def ours_float() -> None:
        for _ in range(repeat):
            discreet.laplace_mechanism(12.34, sensitivity=1, epsilon="0.1")

    def theirs() -> None:
        for _ in range(repeat):
            peer(1234)

    one = fastest({"int": ours, "float": ours_float, "opendp": theirs}, rounds=7)
    many = fastest(
        {
            "int": lambda: discreet.laplace_mechanism(
                answer, sensitivity=1, epsilon="0.1", out=answer
            ),
            "float": lambda: discreet.laplace_mechanism(
                reals, sensitivity=1, epsilon="0.1", changes=1, out=reals
            ),
            "numpy": lambda: np.add(reals, rng.laplace(0, 10, reals.size), out=reals),
        },
        rounds=5,
    )
    tracemalloc.start()
    fill(answer, Fraction(10), threads=1)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    rows = [
        [
            "one integer",
            f"{one['int'] / repeat * 1e6:.1f} µs",
            f"{one['opendp'] / one['int']:.0f} × faster than OpenDP",
        ],
        [
            "one float",
            f"{one['float'] / repeat * 1e6:.1f} µs",
            f"{one['opendp'] / one['float']:.0f} × faster than OpenDP",
        ],
        [
            "10⁷ integers in place, all cores",
            "",
            f"{many['numpy'] / many['int']:.1f} × numpy's `x + laplace`",
        ],
        [
            "10⁷ floats in place, all cores",
            "",
            f"{many['numpy'] / many['float']:.1f} × numpy's `x + laplace`",
        ],
        ["memory beyond the output, one thread", f"{peak:.1f} MiB", "goal: 16 MiB at most"],
    ]
    return table("`laplace_mechanism`", ["call", "cost", "beside"], rows)


def start() -> str:
    def run(code: str):
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    found = fastest(
        {"pass": run("pass"), "numpy": run("import numpy"), "discreet": run("import discreet")},
        rounds=9,
    )
    ratio = (found["discreet"] - found["pass"]) / (found["numpy"] - found["pass"])
    return table(
        "Import", ["import", "beside"], [["`import discreet`", f"{ratio:.2f} × `import numpy`"]]
    )


if __name__ == "__main__":
    main()
