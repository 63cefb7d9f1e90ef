# SPDX-License-Identifier: Apache-2.0
"""`wr scale`: its table of rows, the configurations that it writes, and what it prints of a real server."""

import re
import subprocess

import click
import pytest
from watch_resources import scale
from watch_resources.data import Problem

from processes import BUILD, PYTHON, WR

MONKEY = BUILD / "monkey"
SHORT = ["-s", f"monkey={MONKEY}", "-r", "1", "-d", "0.1", "--share-cpu"]
NAMES = [row["name"] for row in scale.read_rows()]
needs_server = pytest.mark.skipif(not (BUILD.parent / "lib" / "monkey" / "fastcgi.so").exists(),
                                  reason="this preset has no plugins")


def wr(*words):
    return subprocess.run([PYTHON, str(WR), *map(str, words)], capture_output=True, text=True, timeout=300)


def test_each_number_has_its_text():
    row = {"once": {"a": "once\n", "new": "n\n"}, "each": {"a": "@n@ of @last@ @address@\n", "b@n@": "@n@"}}
    assert scale.make_texts(row, 3, {"a": "first\n", "other": "x"}) == {
        "a": "first\nonce\n0 of 2 10.0.0.0\n1 of 2 10.0.0.1\n2 of 2 10.0.0.2\n",
        "new": "n\n", "other": "x", "b0": "0", "b1": "1", "b2": "2",
    }  # fmt: skip
    assert scale.fill("@address@", 65793, 1) == "10.1.1.1"


@pytest.mark.parametrize("text", ["", "a", "0,1", "2,1", "1,1", "1,", "2000000"])
def test_counts_that_are_none(text):
    with pytest.raises(click.BadParameter):
        scale.parse_counts(None, None, text)
    assert scale.parse_counts(None, None, "1,20") == [1, 20]


def test_a_table_has_the_highest_count():
    row = {"text": "rules"}
    points = [scale.Point(1, 5.0, 300, 4.0, 9.0), scale.Point(11, 5.25, 310, 5.4, 1234.0)]
    assert list(scale.format_rows([(row, points)], [1, 11]))[2] == "| rules | 5.0 | 5.2 | 1,024 | 5 | 1,234 |"
    assert list(scale.format_rows([(row, points[:1])], [1]))[2] == "| rules | 5.0 |  | 4 | 9 |"


@pytest.mark.parametrize("row, sentence", [
    ('name = "a"\ntext = "a"\n', "scale.toml:1: row.1.each: the key is missing"),
    ('name = "a"\ntext = "a"\neach = {"a" = 1}\n', "scale.toml:4: row.1.each.a: 1 is not a string"),
    ('names = "a"\n', "row.1.names: unknown key; do you mean name?"),
])  # fmt: skip
def test_mistakes_of_a_table(tmp_path, row, sentence):
    path = tmp_path / "scale.toml"
    path.write_text(f"[[row]]\n{row}")
    with pytest.raises(Problem) as raised:
        scale.read_rows(path)
    assert sentence in str(raised.value)


@needs_server
@pytest.mark.parametrize("name", NAMES)
def test_a_row_of_a_server(name):
    """The server takes the configuration, and answers."""
    done = wr("scale", name, "-n", "1,20", *SHORT)
    assert (done.returncode, done.stderr.count("cannot be measured")) == (0, 0), done.stderr
    head, _, row = done.stdout.splitlines()
    assert head == "| CPU us of a request | 1 | 20 | bytes each | `-t`, ms | start, ms |"
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0] == next(row["text"] for row in scale.read_rows() if row["name"] == name)
    assert all(re.fullmatch(r"-?[\d,.]+", cell) for cell in cells[1:]) and float(cells[1]) > 0


@pytest.mark.parametrize("words, status, sentence", [
    (["none"], 2, "there is no row none"),
    (["redirect"], 2, "do you mean redirects?"),
    (["-n", "5,1"], 2, "each higher than the one before"),
    (["-s", "nginx"], 2, "writes configurations of monkey"),
    (["-s", "monkey=/bin/false", "rules", "--share-cpu"], 1, "rules cannot be measured: monkey does not start"),
])  # fmt: skip
def test_mistakes(words, status, sentence):
    done = wr("scale", *words)
    assert (done.returncode, sentence in done.stderr) == (status, True), done.stderr
