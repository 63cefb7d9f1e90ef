# SPDX-License-Identifier: Apache-2.0
"""What a file of results says: its rounds and pairs, and how much one server needs of what another one needs."""

import math
from typing import NamedTuple

from . import stats
from .results import DISTURBED, choose_counted


def is_disturbed(row):
    return DISTURBED in row.get("marks", [])


def read_cost(row):
    return row["cost_us"]["total"]


def read_memory(row):
    return row["memory_kb"]["dirty_max"]


def read_p99(row):
    return row["latency_us"]["p99"]


def read_rps(row):
    return row["rps"]


def has_clients(row, clients):
    """Whether a round is one of this number of clients; None: of any."""
    return clients in (None, row.get("clients"))


METRICS = {"cost": read_cost, "memory": read_memory, "p99": read_p99, "rps": read_rps}


def value_of(row, metric):
    """Of a round; None where it was not measured or has no logarithm."""
    try:
        value = METRICS[metric](row)
    except (KeyError, TypeError):
        return None
    return value if value and math.isfinite(value) and value > 0 else None


class Results:
    """The lines of a file, by type."""

    def __init__(self, lines, path=""):
        self.path = path
        self.sessions, self.servers, self.workloads, self.counts = [], {}, {}, {}
        self.rounds, self.pairs, self.exclusions, self.features = {}, [], [], {}
        for line in lines:
            self.add(line)

    def add(self, line):
        kind = line.get("type")
        if kind == "session":
            self.sessions.append(line)
        elif kind == "server":
            self.servers[line["name"]] = line
        elif kind == "workload":
            self.workloads[line["name"]] = line
        elif kind == "round":
            self.rounds[line["n"]] = line
        elif kind == "pair":
            self.pairs.append(line)
        elif kind == "exclusion":
            self.exclusions.append(line)
        elif kind == "qualification":
            self.features[line["server"], line["workload"]] = line["features"]
        elif kind == "counts":
            self.counts[line["server"]] = line

    def seed(self):
        """Of the order of the rounds."""
        plans = [session.get("settings", {}).get("plan") for session in self.sessions]
        return plans[0].get("seed") if plans and isinstance(plans[0], dict) else None

    def next_round(self):
        return max(self.rounds, default=0) + 1

    def label_in(self, workload, name):
        """The server `name` as this workload has it: with the variants that it is started with."""
        labels = self.labels_of(workload)
        if name in labels:
            return name
        return next((label for label in labels if self.column_of(workload, label) == name), name)

    def column_of(self, workload, label):
        """A server's name without the variants that the workload needs."""
        variants = self.workloads.get(workload, {}).get("variants", [])
        return "+".join(word for word in label.split("+") if word not in variants)

    def labels_of(self, workload):
        """Servers that were measured, in the order of the command line."""
        found = {row["server"] for row in self.rounds.values() if row["workload"] == workload}
        return [label for label in self.servers if label in found] + sorted(found - set(self.servers))

    def steps_of(self, workload):
        """The numbers of clients that it was measured with, or [None] where there is one."""
        found = {row.get("clients") for row in self.rounds.values() if row["workload"] == workload}
        return sorted(found) if len(found) > 1 else [None]

    def rounds_of(self, workload, label, clients=None):
        found = [row for row in self.rounds.values() if (row["workload"], row["server"]) == (workload, label)]
        return choose_counted([row for row in found if has_clients(row, clients)], is_disturbed)

    def pairs_of(self, workload, first, second, clients=None):
        """[(round of first, round of second)], also of pairs that were written the other way round. Pairs with a
        disturbed round do not count where there are others."""
        found = self.all_pairs_of(workload, first, second, clients)
        return choose_counted(found, lambda rows: any(map(is_disturbed, rows)))

    def all_pairs_of(self, workload, first, second, clients=None):
        found = []
        for pair in self.pairs:
            if pair["workload"] != workload or {pair["first"], pair["second"]} != {first, second}:
                continue
            rows = [self.rounds.get(n) for n in pair["rounds"]]
            if all(rows) and has_clients(rows[0], clients):
                found.append(tuple(rows if pair["first"] == first else rows[::-1]))
        return found

    def count_pairs(self, workload, first, second):
        """Of two choices of a command line."""
        labels = [choice.for_workload(workload).label for choice in (first, second)]
        return len(self.all_pairs_of(workload.name, *labels, workload.clients))

    def title_of(self, label):
        """Of a server; a limit server says which limit it is."""
        server = self.servers.get(label, {})
        return server.get("text", label) if server.get("limit") else label


class Comparison(NamedTuple):
    workload: str
    first: str
    second: str
    metric: str
    interval: stats.Interval


def compare_pairs(results, workload, first, second, metric="cost", clients=None):
    """A Comparison of the pairs of two servers, or None without pairs."""
    pairs = [[value_of(row, metric) for row in pair] for pair in results.pairs_of(workload, first, second, clients)]
    pairs = [pair for pair in pairs if None not in pair]
    if not pairs:
        return None
    return Comparison(workload, first, second, metric, stats.paired_ratio(pairs))


def compare_unpaired(one, other, workload, labels, metric="cost"):
    """A Comparison of one server of each file."""
    values = [
        [value for row in results.rounds_of(workload, label) if (value := value_of(row, metric))]
        for results, label in zip((one, other), labels)
    ]
    if not all(values):
        return None
    return Comparison(workload, *labels, metric, stats.unpaired_ratio(*values))


def compare_relative(one, other, workload, label, reference, metric="cost", clients=None):
    """A Comparison of a server's ratio to a reference that both files have: slow changes of the machine cancel out."""
    ratios = []
    for results in (one, other):
        found = results.pairs_of(workload, label, reference, clients)
        pairs = [[value_of(row, metric) for row in pair] for pair in found]
        ratios.append([pair[0] / pair[1] for pair in pairs if None not in pair])
    if not all(ratios):
        return None
    return Comparison(workload, label, label, metric, stats.unpaired_ratio(*ratios))


def find_differences(one, other):
    """What two files do not have in common, as sentences: their values are of different times at least."""
    machines = [results.sessions[0].get("machine", {}) if results.sessions else {} for results in (one, other)]
    keys = sorted(key for key in {*machines[0], *machines[1]} if machines[0].get(key) != machines[1].get(key))
    starts = [results.sessions[0].get("started", "?") if results.sessions else "?" for results in (one, other)]
    seeds = [results.seed() for results in (one, other)]
    yield f"{one.path} was measured at {starts[0]}, {other.path} at {starts[1]}: the rounds are not paired"
    if keys:
        yield "the machines differ in " + ", ".join(f"{k} ({machines[0].get(k)}, {machines[1].get(k)})" for k in keys)
    if seeds[0] != seeds[1]:
        yield f"the orders of the rounds differ (seeds {seeds[0]} and {seeds[1]})"
