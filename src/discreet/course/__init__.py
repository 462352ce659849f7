"""The checks of the course's exercises.

    check("1.2", lambda n, R: R)      1.2: not yet; that is how far one person moves the sum

An answer is a number, a function or a text such as "R"; a number may be rounded to three
significant digits. A check draws nothing: the same answer always gets the same words.
"""

from discreet.course.exercises import check
from discreet.course.parts import Finding, Verdict

__all__ = ["Finding", "Verdict", "check"]


def __dir__() -> list[str]:
    return __all__
