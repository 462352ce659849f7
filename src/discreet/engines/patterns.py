"""Which texts are numbers and dates: one closed rule for CAST on every engine, and for cells in Python.

The patterns use [], {}, (), |, ?, * and nothing else, so that every engine's regular expressions read them alike. What
matches is read; what does not is missing, and never an error.
"""

from __future__ import annotations

NUMBER_PATTERN = " *[+-]?([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})? *"
"""Between 10⁻¹³⁹ and 10¹³⁹ in size: no engine overflows or underflows."""

DATE_PATTERN = " *[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?)? *"
