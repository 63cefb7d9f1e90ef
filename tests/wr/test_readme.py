# SPDX-License-Identifier: Apache-2.0
"""The table of the README is what `wr` prints of the rounds in docs/figures, and the rules of `wr check` hold there."""

import pathlib

from processes import run_wr

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = ROOT / "docs" / "figures" / "readme.jsonl"


def cells_of(line):
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def test_table():
    printed = run_wr("compare", ROUNDS, "--markdown").stdout.splitlines()
    written = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    begin = next(n for n, line in enumerate(written) if "nginx" in line)
    table = [cells_of(line) for line in printed if line.startswith("|")]
    assert len(table) > 20
    assert [cells_of(line) for line in written[begin:begin + len(table)]] == table


def test_rules():
    done = run_wr("check", ROOT / "tools" / "wr" / "data" / "rules.toml", ROUNDS)
    assert done.returncode == 0 and done.stdout.count("holds") > 5, done.stdout + done.stderr
