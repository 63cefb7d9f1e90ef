# SPDX-License-Identifier: Apache-2.0
"""Ranks of servers by the intervals of a ratio that all of them have to one of them."""

import math
from typing import NamedTuple


class Span(NamedTuple):
    """A ratio with its interval; without one, `low` is 0 and `high` infinite."""

    ratio: float
    low: float
    high: float

    def invert(self) -> "Span":
        return Span(1 / self.ratio, 1 / self.high if self.high else math.inf, 1 / self.low if self.low else math.inf)


ONE = Span(1.0, 1.0, 1.0)


def rank(spans: dict[str, Span], more_is_better: bool = False) -> dict[str, int]:
    """A server's rank is one more than the number of those that are better with their whole interval. So servers whose
    intervals overlap are equal, and a rank may be given to several."""
    if more_is_better:
        spans = {name: span.invert() for name, span in spans.items()}
    return {name: 1 + sum(other.high < span.low for other in spans.values()) for name, span in spans.items()}
