# SPDX-License-Identifier: Apache-2.0
"""A contest: many servers, workloads and rules in one file (data/contests/*.toml), measured by `wr run --contest`."""

import os

from . import data, servers, workloads
from .compare import Plan
from .data import NAME, Key, Problem
from .generators import GENERATORS

ROUNDS_MAX = 1000
# What a contest takes besides its rounds, in seconds: estimates, for the sentence that says how long it will take
ROUND_SECONDS, START_SECONDS, COUNTS_SECONDS = 0.3, 1.0, 12.0
SCHEMA = {
    "name": Key(str, required=True, example='"files"', pattern=NAME),
    "text": Key(str, required=True, example='"static files over HTTP/1.1"'),
    "servers": Key(list, required=True, of=str, example='["monkey", "nginx"]'),
    "workloads": Key(list, required=True, of=str, example='["W1", "W4"]'),
    "rounds": Key(int, default=5, low=1, high=ROUNDS_MAX, example="5"),
    "seconds": Key(float, default=1.0, low=0.1, high=workloads.SECONDS_MAX, example="1"),
    "counts": Key(bool, default=True),
    "witness": Key(
        list,
        default=list,
        of={
            "workload": Key(str, required=True, example='"W1"'),
            "generator": Key(str, required=True, choices=("wrk", "h2load"), example='"wrk"'),
        },
    ),
    "absent": Key(
        list,
        default=list,
        of={
            "name": Key(str, required=True, example='"G-WAN"'),
            "reason": Key(str, required=True, example='"its site is gone"'),
        },
    ),
}


def check_names(document, key, names, load):
    for n, name in enumerate(names):
        if name in names[:n]:
            raise document.problem((key, n), f"{name} is there twice")
        try:
            load(name)
        except Problem as problem:
            raise document.problem((key, n), str(problem)) from None


def find_files(names, folder):
    """Files are named from the folder of the contest's file."""
    return [os.path.join(folder, name) if name.endswith(".toml") else name for name in names]


def read_contest(name):
    """The values of data/contests/<name>.toml, or of a path that ends in .toml."""
    path = data.find_file("contests", name)
    document, values = data.read(path, SCHEMA)
    for key in ("servers", "workloads"):
        values[key] = find_files(values[key], path.resolve().parent)
        if not values[key]:
            raise document.problem([key], "the list is empty")
    check_names(document, "servers", values["servers"], servers.parse_choice)
    check_names(document, "workloads", values["workloads"], workloads.load_workload)
    for n, witness in enumerate(values["witness"]):
        if witness["workload"] not in values["workloads"]:
            known = data.suggest(witness["workload"], values["workloads"])
            raise document.problem(("witness", n, "workload"), f"{witness['workload']} is not measured; {known}")
    return values


def make_plan(name, **rest):
    values = read_contest(name)
    return Plan(
        contest=values["name"], text=values["text"], workloads=values["workloads"], servers=values["servers"],
        rounds=values["rounds"], seconds=float(values["seconds"]), counts=values["counts"],
        witnesses={each["workload"]: each["generator"] for each in values["witness"]},
        absent={each["name"]: each["reason"] for each in values["absent"]}, **rest,
    )  # fmt: skip


def estimate_seconds(plan, known):
    """How long the rounds that are left will take when no pair is disturbed, with starts and counts."""
    found, choices = plan.choose()
    total = COUNTS_SECONDS * sum(choice.label not in known.counts for choice in choices) if plan.counts else 0
    for workload in found:
        able = [choice for choice in choices if not choice.kind.lacks(workload)]
        rounds = plan.count_rounds(workload, able, known)
        each = plan.find_seconds(workload) + ROUND_SECONDS + workload.is_fresh * START_SECONDS
        total += rounds * each + bool(rounds) * len(able) * (plan.find_warm_up(workload) + START_SECONDS)
    return total


def format_minutes(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def describe(plan, known):
    """The sentence that a contest begins with."""
    found, choices = plan.choose()
    return (
        f"contest {plan.contest} ({plan.text}): {len(choices)} servers, {len(found)} workloads, {plan.rounds} pairs of"
        f" {plan.seconds:g} s: about {format_minutes(estimate_seconds(plan, known))}"
    )


def check_generators(plan):
    """Raises a Problem for a second witness that is not installed."""
    for name in dict.fromkeys(plan.witnesses.values()):
        if not GENERATORS[name]().is_available():
            raise Problem(f"the contest measures with {name} too, which is not installed")


def list_missing(plan):
    """Yields the exclusions of servers that are not installed or cannot be had."""
    for name, reason in plan.absent.items():
        yield {"server": name, "kind": "absent", "reason": reason}
    for text in plan.servers:
        choice = servers.parse_choice(text)
        if not choice.program:
            yield {"server": choice.label, "kind": "missing", "reason": explain_missing(choice.kind)}


def explain_missing(kind):
    """What to do about a server that is not installed."""
    if not kind.package:
        return "build it first"
    conflict = f", which cannot be installed together with {kind.conflicts}" if kind.conflicts else ""
    return f"install the Debian package {kind.package}{conflict}"
