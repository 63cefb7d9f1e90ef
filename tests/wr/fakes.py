# SPDX-License-Identifier: Apache-2.0
"""Lines of results as a measurer would write them, and a small measurer: wrk and schedstat."""

import os
import re
import subprocess

FAKE_SECONDS = 0.01


def make_row(cost, answers=1000, marks=(), p99=100.0, dirty=500, rps=1000.0):
    """The fields of a round's line that the analysis reads."""
    return {
        "seconds": FAKE_SECONDS, "answers": answers, "errors": {}, "statuses": {"200": answers}, "rps": rps,
        "latency_us": {"p99": p99}, "cpu_us": {"total": cost * answers}, "cost_us": {"total": cost},
        "memory_kb": {"dirty_max": dirty}, "marks": list(marks),
    }  # fmt: skip


def make_lines(workload, costs, first="monkey", second="nginx", variants=(), **rest):
    """Of pairs [(cost of first, cost of second)]."""
    lines = [
        {"type": "session", "id": "s", "started": "2026-01-02", "machine": {"kernel": "6.1"},
         "settings": {"plan": {"seed": 1}}},
        {"type": "server", "name": first, "version": "1"},
        {"type": "server", "name": second, "version": "2"},
        {"type": "workload", "name": workload, "text": "text of " + workload, "variants": list(variants)},
    ]  # fmt: skip
    for n, pair in enumerate(costs):
        for k, (server, cost) in enumerate(zip((first, second), pair)):
            row = make_row(cost, **rest)
            lines.append({"type": "round", "n": 2 * n + k + 1, "workload": workload, "server": server, **row})
        lines.append(
            {"type": "pair", "workload": workload, "first": first, "second": second, "rounds": [2 * n + 1, 2 * n + 2]}
        )
    return lines


def read_cpu_ns(pid):
    """Of a process and its children."""
    total, pids = 0, [pid]
    while pids:
        pid = pids.pop()
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                pids += map(int, file.read().split())
    return total


def measure_by_wrk(workload, server, seconds, _others_max):
    before = read_cpu_ns(server.pid)
    command = ["wrk", "-t1", f"-c{workload.clients}", f"-d{max(1, round(seconds))}s", workload.url(server.port)]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    answers = int(re.search(r"(\d+) requests in", text)[1])
    return make_row((read_cpu_ns(server.pid) - before) / 1000 / max(1, answers), answers)
