# SPDX-License-Identifier: Apache-2.0
"""How sure a ratio of two servers is: the trimmed mean of the logarithms of its pairs, with an interval of 95 %.

The centre is the mean without the highest and the lowest fifth, since a single disturbed round must not decide. From
seven pairs on its interval is a studentized (bootstrap-t) one, equal-tailed, whose coverage stays near 95 % also where
values are skewed or have outliers; a percentile bootstrap of the median covers 87 % with seven pairs. With fewer pairs
resamples have too few different values, so it is Tukey's and McLaughlin's: Student's t for trimmed means."""

import math
import random
from typing import NamedTuple

LEVEL = 0.95
TRIM = 0.2  # of the values, on each side
RESAMPLES = 4000
PAIRS_OF_BOOTSTRAP = 7
SEED = 1
# Student's t, quantile 0.975, by degrees of freedom; what lies between takes the row below it, which is wider
STUDENT = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201,
    12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 17: 2.110, 20: 2.086, 25: 2.060, 30: 2.042, 40: 2.021, 60: 2.000,
    120: 1.980, 1000: 1.962,
}  # fmt: skip


class Interval(NamedTuple):
    """Of a ratio. `low` is 0 and `high` infinite where one value says nothing about the spread."""

    ratio: float
    low: float
    high: float
    count: int

    @property
    def holds_one(self):
        return self.low <= 1 <= self.high

    @property
    def of_a_second_run(self):
        """Where the ratio of a second run of as many values is expected: that varies as much as the first one."""
        low, high = (self.ratio * (bound / self.ratio) ** math.sqrt(2) for bound in (self.low, self.high))
        return self._replace(low=low, high=high)

    def __str__(self):
        if math.isinf(self.high):
            return f"{format_ratio(self.ratio)} x (too few pairs for an interval)"
        return f"{format_ratio(self.ratio)} x ({format_ratio(self.low)} to {format_ratio(self.high)})"


def format_ratio(value):
    return f"{value:.2f}" if value < 9.995 else f"{value:.0f}"


def student(degrees):
    return STUDENT[max(key for key in STUDENT if key <= max(degrees, 1))]


def trimmed(values):
    """(trimmed mean, its standard error): the error is of the winsorized values, as Tukey and McLaughlin have it."""
    values, count = sorted(values), len(values)
    cut = int(TRIM * count)
    kept = values[cut : count - cut]
    mean = math.fsum(kept) / len(kept)
    wins = [kept[0]] * cut + kept + [kept[-1]] * cut
    centre = math.fsum(wins) / count
    squares = math.fsum((value - centre) ** 2 for value in wins)
    return mean, math.sqrt(squares / (len(kept) * (len(kept) - 1))) if len(kept) > 1 else math.inf


def find_centre(values):
    """What represents positive values in tables and charts: the trimmed mean of their logarithms, as for ratios."""
    return math.exp(trimmed([math.log(value) for value in values])[0])


def divide(difference, error):
    if error:
        return difference / error
    return math.copysign(math.inf, difference) if difference else 0.0


def bootstrap_t(statistic, resample, resamples):
    """(low, high) around statistic() of the values; `resample` returns the statistic of one resample."""
    centre, error = statistic
    ts = sorted(divide(mean - centre, spread) for mean, spread in (resample() for _ in range(resamples)))
    rest = (1 - LEVEL) / 2
    high, low = ts[int(rest * resamples)], ts[min(int((1 - rest) * resamples), resamples - 1)]
    return centre - low * error, centre - high * error


def student_bounds(centre, error, degrees):
    reach = student(degrees) * error
    return centre - reach, centre + reach


def log_interval(logs, resamples=RESAMPLES, seed=SEED):
    """(centre, low, high) of the trimmed mean of `logs`."""
    count = len(logs)
    centre, error = trimmed(logs)
    if count < 2:
        return centre, -math.inf, math.inf
    bounds = student_bounds(centre, error, count - 2 * int(TRIM * count) - 1)
    if count >= PAIRS_OF_BOOTSTRAP:
        rng = random.Random(seed)
        found = bootstrap_t((centre, error), lambda: trimmed(rng.choices(logs, k=count)), resamples)
        bounds = found if all(map(math.isfinite, found)) else bounds
    return centre, *bounds


def make_interval(logs, count):
    return Interval(*(math.exp(value) if value < 700 else math.inf for value in logs), count)


def paired_ratio(pairs, resamples=RESAMPLES, seed=SEED):
    """Interval of first / second, of pairs (first, second) that were measured one right after the other."""
    logs = [math.log(first / second) for first, second in pairs]
    return make_interval(log_interval(logs, resamples, seed), len(logs))


def unpaired_ratio(firsts, seconds, resamples=RESAMPLES, seed=SEED):
    """Interval of first / second, of values that were measured at different times."""
    sides = [[math.log(value) for value in values] for values in (firsts, seconds)]

    def combine(one, other):
        return one[0] - other[0], math.hypot(one[1], other[1])

    stats = [trimmed(side) for side in sides]
    centre, error = combine(*stats)
    fewest = min(map(len, sides))
    if fewest < 2:
        return make_interval((centre, -math.inf, math.inf), fewest)
    bounds = student_bounds(centre, error, fewest - 2 * int(TRIM * fewest) - 1)
    if fewest >= PAIRS_OF_BOOTSTRAP:
        rng = random.Random(seed)
        found = bootstrap_t(
            (centre, error), lambda: combine(*(trimmed(rng.choices(side, k=len(side))) for side in sides)), resamples
        )
        bounds = found if all(map(math.isfinite, found)) else bounds
    return make_interval((centre, *bounds), fewest)


def describe(first, second, interval):
    """A sentence on which of two servers needs less."""
    if math.isinf(interval.high):
        return f"{first} needs {format_ratio(interval.ratio)} x of {second}, from too few pairs for an interval"
    if interval.holds_one:
        return f"no difference seen between {first} and {second}: {interval}"
    bounds = f"{format_ratio(interval.low)} to {format_ratio(interval.high)}"
    return f"{first} needs {format_ratio(interval.ratio)} x of {second} ({bounds})"
