"""What one unit may do in a column in memory, and the scales of designs at ε."""

from fractions import Fraction

from discreet.calibrate.sensitivity.terms import UnitLimits


def terms_of(neighbors: str, *, dropped: bool = False) -> UnitLimits:
    """One row a unit, one group; with `dropped` values may be missing."""
    replaced = neighbors == "change-one"
    return UnitLimits(
        rows=1, max_groups=1, replaced=replaced, public=replaced and not dropped, cells=1
    )


def lone_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    return [scale / epsilon for scale in terms_of("change-one").mean(width)]


def joint_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    return [scale / epsilon for scale in terms_of("change-one").variance(width)]


def centred_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    return [scale / epsilon for scale in terms_of("change-one", dropped=True).mean(width)]


def centred_square_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    return [scale / epsilon for scale in terms_of("change-one", dropped=True).variance(width)]


def pair_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    return [scale / epsilon for scale in terms_of("add-remove").mean(width)]


def bernstein_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    return [scale / epsilon for scale in terms_of("add-remove").variance(width)]
