# SPDX-License-Identifier: Apache-2.0
"""`wr check`: rules such as "monkey needs at most 0.75 x of nginx's CPU time in W1", judged by intervals."""

import enum
from typing import NamedTuple

from . import data, stats
from .analysis import compare_pairs
from .data import DATA, Key

PROJECT_RULES = DATA / "rules.toml"
# key of a rule: (metric, whether more is better)
LIMITS = {
    "cost_max": ("cost", False),
    "memory_max": ("memory", False),
    "p99_max": ("p99", False),
    "rps_min": ("rps", True),
}
SCHEMA = {
    "rule": Key(
        list,
        required=True,
        of={
            "workload": Key(str, required=True, example='"W1"'),
            "server": Key(str, required=True, example='"monkey"'),
            "against": Key(str, required=True, example='"nginx"'),
            **{name: Key(float, low=0, example="0.75") for name in LIMITS},
        },
    )
}


class Outcome(enum.Enum):
    HOLDS = "holds"
    MISSED = "MISSED"
    UNCERTAIN = "not certain"
    UNMEASURED = "not measured"


class Finding(NamedTuple):
    rule: str
    outcome: Outcome
    interval: stats.Interval | None

    def __str__(self):
        found = f": {self.interval}" if self.interval else ""
        return f"{self.outcome.value:<12} {self.rule}{found}"


def read_rules(path):
    """[(workload, server, against, key of LIMITS, limit)]"""
    document, values = data.read(path, SCHEMA)
    found = []
    for number, rule in enumerate(values["rule"]):
        limits = [(key, rule[key]) for key in LIMITS if rule[key] is not None]
        if not limits:
            raise document.problem(("rule", number), f"it has no limit: one of {', '.join(LIMITS)}")
        if rule["server"] == rule["against"]:
            raise document.problem(("rule", number, "against"), "a server is not compared with itself")
        found += [(rule["workload"], rule["server"], rule["against"], key, limit) for key, limit in limits]
    return found


def decide(interval, limit, more_is_better):
    low, high = interval.low, interval.high
    if more_is_better:
        low, high, limit = -high, -low, -limit
    if high <= limit:
        return Outcome.HOLDS
    return Outcome.MISSED if low > limit else Outcome.UNCERTAIN


def check_rule(results, rule):
    workload, server, against, key, limit = rule
    metric, more_is_better = LIMITS[key]
    word = "at least" if more_is_better else "at most"
    labels = [results.label_in(workload, name) for name in (server, against)]
    text = f"{workload} {metric} of {server}: {word} {limit:g} x of {results.title_of(labels[1])}"
    comparison = compare_pairs(results, workload, *labels, metric)
    if not comparison:
        return Finding(text, Outcome.UNMEASURED, None)
    return Finding(text, decide(comparison.interval, limit, more_is_better), comparison.interval)


def check(results, rules):
    return [check_rule(results, rule) for rule in rules]


def passes(findings, strict=False):
    """A missed rule fails; with `strict` also one that is not certain or not measured. All unmeasured fail too."""
    outcomes = [finding.outcome for finding in findings]
    if Outcome.MISSED in outcomes or all(outcome is Outcome.UNMEASURED for outcome in outcomes):
        return False
    return not strict or set(outcomes) == {Outcome.HOLDS}
