# SPDX-License-Identifier: Apache-2.0
"""The figures of the README are those that `wr` prints of the rounds in docs/figures; the rules of `wr check` hold."""

import collections
import json
import lzma
import pathlib
import re

import pytest

from processes import run_wr

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = ROOT / "docs" / "figures" / "readme.jsonl.xz"
SERVICES = ROOT / "docs" / "figures" / "services.jsonl.xz"
DATABASES = ROOT / "docs" / "figures" / "sqlite.jsonl.xz"
REDIS = ROOT / "docs" / "figures" / "redis.jsonl.xz"
CACHE = ROOT / "docs" / "figures" / "cache.jsonl.xz"


def cells_of(line):
    return [cell.strip() for cell in line.strip("|\n").split("|")]


@pytest.mark.parametrize("page, rounds, mark, rows", [
    ("README.md", ROUNDS, "nginx, open_file_cache", 25),
    ("docs/internals/cache.md", CACHE, "lighttpd", 8),
])  # fmt: skip
def test_table(page, rounds, mark, rows):
    printed = run_wr("compare", rounds, "--markdown").stdout.splitlines()
    written = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    begin = next(n for n, line in enumerate(written) if mark in line)
    table = [cells_of(line) for line in printed if line.startswith("|")]
    assert len(table) > rows
    assert [cells_of(line) for line in written[begin:begin + len(table)]] == table


@pytest.mark.parametrize("rounds", [ROUNDS, CACHE])
def test_a_row_is_of_one_session(rounds):
    """Costs of other hours are not comparable."""
    sessions = collections.defaultdict(set)
    for line in lzma.open(rounds, "rt", encoding="utf-8"):
        row = json.loads(line)
        if row["type"] == "round":
            sessions[row["workload"]].add(row["session"])
    assert sessions and {len(each) for each in sessions.values()} == {1}


def test_some_servers_and_workloads():
    lines = run_wr("compare", REDIS, "--markdown", "-s", "ioredis", "-w", "S4").stdout.splitlines()
    whole = run_wr("compare", REDIS, "--markdown").stdout.splitlines()
    assert [cells_of(line)[1:] for line in lines] == [cells_of(line)[2:] for line in whole]
    for arguments, message in [
        (["--markdown", "-s", "apache"], "has no server apache: it has ioredis monkey"),
        (["--markdown", "-w", "W3"], "has no workload W3: it has S4"),
        (["-w", "W1"], "-s and -w choose from the table of --markdown"),
    ]:
        done = run_wr("compare", REDIS, *arguments)
        assert done.returncode and message in done.stderr and not done.stdout


def test_figures_of_services():
    """The sentence about the hello of a service has the ratio to each server of the rounds."""
    lines = [line for line in run_wr("compare", SERVICES, "--markdown").stdout.splitlines() if line.startswith("|")]
    names, cells = cells_of(lines[0])[2:], cells_of(lines[2])[2:]
    printed = {name: re.search(r"\((\d.*); (\d.*)\)", cell).groups() for name, cell in zip(names, cells, strict=True)}
    limit = printed.pop("limit: one text from memory")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    sentence = re.search(r"Its CPU time per request is (.*?) \(`wr run S1", readme)[1]
    assert sentence.startswith(f"{limit[0]} ({limit[1]}) of what a server takes that only sends this answer, ")
    written, ratio = {}, None
    for found in re.finditer("|".join([r"(\d\.\d\d) of", *map(re.escape, printed)]), sentence):
        ratio = found[1] or ratio
        written.update({} if found[1] else {found[0]: ratio})
    assert written == {name: ratio for name, (ratio, _) in printed.items()} and len(written) == 7


def test_figures_of_databases():
    """The page of the package sqlite has the row that `wr` prints."""
    row = run_wr("compare", DATABASES, "--markdown").stdout.splitlines()[-1]
    page = (ROOT / "docs" / "reference" / "duda" / "sqlite.md").read_text(encoding="utf-8")
    assert cells_of(row) in [cells_of(line) for line in page.splitlines() if line.startswith("| CPU")]


def test_figures_of_redis():
    """The page of the package redis has the cost of both servers, and their ratio with its interval."""
    lines = [line for line in run_wr("compare", REDIS, "--markdown").stdout.splitlines() if line.startswith("|")]
    _, own, other = cells_of(lines[2])
    cost, ratio, interval = re.fullmatch(r"(\S+) \((\S+); (.*)\)", other).groups()
    page = " ".join((ROOT / "docs/reference/duda/redis.md").read_text(encoding="utf-8").split())
    assert f"takes {own} µs of the processor, and in Node.js with ioredis {cost}: {ratio} ({interval}) of it" in page


@pytest.mark.parametrize("rounds, rules", [(ROUNDS, 13), (SERVICES, 8), (DATABASES, 2), (REDIS, 1), (CACHE, 3)])
def test_rules(rounds, rules):
    done = run_wr("check", ROOT / "tools" / "wr" / "data" / "rules.toml", rounds)
    assert done.returncode == 0 and done.stdout.count("holds") >= rules, done.stdout + done.stderr
