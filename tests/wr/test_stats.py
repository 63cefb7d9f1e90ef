# SPDX-License-Identifier: Apache-2.0
"""Intervals: their coverage by simulation against distributions whose centre is known, and the words for them."""

import functools
import math
import random

import pytest
from watch_resources import report_data, stats
from watch_resources.compare import is_first_ahead

TRIALS = 300
RESAMPLES = 200  # of each trial; more change the coverage by less than the noise of the trials
LOWEST, HIGHEST = 0.91, 0.98  # nominal 0.95; TRIALS have a standard error of 0.013


def draw_outliers(rng):
    return rng.gauss(0, 0.5 if rng.random() < 0.1 else 0.05)


def draw_disturbed(rng):
    """One round in ten with a neighbour that makes the first server dearer."""
    return rng.gauss(0, 0.05) + (0.4 if rng.random() < 0.1 else 0)


DISTRIBUTIONS = {
    "normal": lambda rng: rng.gauss(0, 0.05),
    "log-normal": lambda rng: rng.lognormvariate(0, 0.7) * 0.05,
    "outliers": draw_outliers,
    "disturbed": draw_disturbed,
}


@functools.cache
def draw_many(name):
    rng = random.Random(7)
    return sorted(DISTRIBUTIONS[name](rng) for _ in range(100_000))


def centre_of(name, count):
    """The trimmed mean of the distribution itself, with the share that `count` values lose."""
    values = draw_many(name)
    cut = int(len(values) * int(stats.TRIM * count) / count)
    return math.fsum(values[cut : len(values) - cut]) / (len(values) - 2 * cut)


LONG = [(30, name) for name in DISTRIBUTIONS if name != "log-normal"]


# The shares that are trimmed differ with the counts; the skewed distribution needs the bootstrap most.
COUNTS = [pytest.param(name, count, marks=[pytest.mark.slow] * (count in (7, 20) or (count, name) in LONG))
          for name in DISTRIBUTIONS for count in (5, 7, 10, 20, 30)]


@pytest.mark.parametrize("name, count", COUNTS)
def test_coverage(name, count):
    rng, centre, hits = random.Random(f"{name} {count}"), centre_of(name, count), 0
    trials = TRIALS * (1 if count >= stats.PAIRS_OF_BOOTSTRAP else 10)  # without resamples they cost nothing
    for trial in range(trials):
        logs = [DISTRIBUTIONS[name](rng) for _ in range(count)]
        _, low, high = stats.log_interval(logs, RESAMPLES, trial)
        hits += low <= centre <= high
    assert LOWEST <= hits / trials <= HIGHEST


@pytest.mark.parametrize("count", [3, 5])
def test_coverage_of_a_second_run(count):
    rng, trials, inside, expected = random.Random(count), 10 * TRIALS, 0, 0
    draw = DISTRIBUTIONS["normal"]
    for _ in range(trials):
        first, second = (stats.paired_ratio([(math.exp(draw(rng)), 1) for _ in range(count)]) for _ in range(2))
        wider = first.of_a_second_run
        inside += first.low <= second.ratio <= first.high
        expected += wider.low <= second.ratio <= wider.high
    assert inside / trials < 0.92 and LOWEST + 0.02 <= expected / trials <= HIGHEST


@pytest.mark.parametrize("counts", [(5, 5), (8, 8), (10, 25)])
def test_coverage_of_unpaired_values(counts):
    rng, hits = random.Random(str(counts)), 0
    for trial in range(TRIALS):
        firsts = [math.exp(rng.gauss(0, 0.1)) for _ in range(counts[0])]
        seconds = [math.exp(rng.gauss(math.log(2), 0.05)) for _ in range(counts[1])]
        found = stats.unpaired_ratio(firsts, seconds, RESAMPLES, trial)
        hits += found.low <= 0.5 <= found.high
    assert LOWEST <= hits / TRIALS <= HIGHEST + 0.01  # the fewer degrees of freedom of the two: rather too wide


def test_pairs_cancel_the_drift():
    """A machine that becomes slower: the ratio of the pairs stays narrow, that of unpaired values does not."""
    rng = random.Random(3)
    drift = [1 + n / 5 for n in range(11)]
    pairs = [(7 * d * math.exp(rng.gauss(0, 0.01)), 10 * d * math.exp(rng.gauss(0, 0.01))) for d in drift]
    paired = stats.paired_ratio(pairs)
    unpaired = stats.unpaired_ratio(*zip(*pairs))
    assert paired.low <= 0.7 <= paired.high and not paired.holds_one
    assert paired.high - paired.low < 0.03
    assert unpaired.high - unpaired.low > 0.3 and unpaired.holds_one


def drift_slowly(rng, speed):
    return 0.9 * speed + rng.gauss(0, 0.05)


def drift_steadily(_rng, speed):
    return speed + 0.02


def drift_in_steps(rng, speed):
    return speed + rng.choice((0, 0, 0, 0.2, -0.2))


@pytest.mark.parametrize("count", [5, 10])
@pytest.mark.parametrize("drift", [drift_slowly, drift_steadily, drift_in_steps])
def test_coverage_on_a_machine_that_drifts(drift, count):
    """Also between the two rounds of a pair, and with a second round that is 3 % dearer."""
    rng, hits, trials = random.Random(f"{drift.__name__} {count}"), 0, 200
    for trial in range(trials):
        logs, speed = [], 0.0
        for n in range(count):
            costs = []
            for place in range(2):
                speed = drift(rng, speed)
                costs.append(speed + rng.gauss(0, 0.02) + 0.03 * place)
            is_ahead = is_first_ahead(str(trial), n)
            logs.append(costs[0] - costs[1] if is_ahead else costs[1] - costs[0])
        _, low, high = stats.log_interval(logs, 200, trial)
        hits += low <= 0 <= high
    assert hits / trials >= LOWEST


def test_same_input_has_the_same_interval():
    pairs = [(n + 1.5, n + 2) for n in range(9)]
    assert stats.paired_ratio(pairs) == stats.paired_ratio(pairs)


def test_one_outlier_does_not_decide():
    pairs = [(0.8 + n / 1000, 1) for n in range(10)]
    found = stats.paired_ratio(pairs[:-1] + [(9, 1)])
    assert found.ratio == pytest.approx(0.805, abs=0.002) and found.high < 0.9


def test_equal_pairs_have_an_interval_of_no_width():
    assert stats.paired_ratio([(3, 4)] * 8)[:3] == pytest.approx((0.75, 0.75, 0.75))


def test_order_of_few_and_one_pairs():
    wide = stats.paired_ratio([(1, 2), (1.1, 2)])
    assert wide.low < 0.5 < wide.ratio < wide.high
    one = stats.paired_ratio([(1, 2)])
    assert (one.ratio, one.low, one.high) == (0.5, 0, math.inf)
    assert str(one) == "0.50 x (too few pairs for an interval)"


def test_words():
    assert stats.describe("A", "B", stats.Interval(0.72, 0.70, 0.74, 9)) == "A needs 0.72 x of B (0.70 to 0.74)"
    assert (
        stats.describe("A", "B", stats.Interval(0.98, 0.95, 1.02, 9))
        == "no difference seen between A and B: 0.98 x (0.95 to 1.02)"
    )
    assert stats.describe("A", "B", stats.Interval(12.3, 11.9, 13, 9)) == "A needs 12 x of B (12 to 13)"


def test_one_kind_of_mean():
    """What the terminal prints of a server is what a page shows."""
    values = [5.0, 6.0, 7.0, 50.0, 4.0]
    assert stats.find_centre(values) == pytest.approx(report_data.estimate(values).value)
    assert stats.find_centre([7.0]) == pytest.approx(report_data.estimate([7.0]).value)
