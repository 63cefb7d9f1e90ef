# SPDX-License-Identifier: Apache-2.0
"""The table of the README, from what was measured."""

import statistics

TITLES = {"nginx+cache": "nginx, open_file_cache"}
VARIANTS = ("tls", "h2", "gz", "log")  # of the same server, a column
COUNTS = {
    "binary": "binary, stripped, KB",
    "dirty": "private dirty memory, idle, one worker, KB",
    "crowd": "the same, with 1,000 clients on a file of 200 KB",
    "bytes": "memory per idle keep-alive connection, bytes",
    "calls": "system calls per keep-alive request of a small file",
}


def column_of(server):
    return "+".join(word for word in server.split("+") if word not in VARIANTS)


def cell(result):
    """The median of the rounds; in brackets the first server's share of it, the median of the pairs."""
    value = statistics.median(result.values)
    text = f"{value:.1f}" if value < 20 else f"{value:.0f}"
    return text + (f" ({statistics.median(result.shares):.2f})" if result.shares else "")


def make_rows(columns, counts, results):
    for key, text in COUNTS.items():
        if counts:
            values = [counts.get(name, {}).get(key, "") for name in columns]
            yield [text, *(f"{value:,}" if isinstance(value, int) else value for value in values)]
    for workload, measured in results:
        cells = {}
        for name, result in measured.items():
            cells.setdefault(column_of(name), cell(result))
        yield [f"CPU µs: {workload.text}", *(cells.get(name, "") for name in columns)]


def print_table(columns, counts, results):
    rows = [["", *(TITLES.get(name, name) for name in columns)], ["---", *["--:"] * len(columns)]]
    print()
    for row in [*rows, *make_rows(columns, counts, results)]:
        print("| " + " | ".join(map(str, row)) + " |")
