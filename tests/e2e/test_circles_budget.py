# SPDX-License-Identifier: Apache-2.0
"""Which sources need each other: circles of objects by the symbols that they define and use. A source of a large circle
cannot be read, tested or moved without the others.
"""

import collections
import subprocess
import sys

import pytest

from harness import build

sys.path.append(str(build.TOP / "tests" / "lint"))
from layers import LAYERS  # noqa: E402

pytestmark = [pytest.mark.budget, pytest.mark.single_protocol]
MOST = 8  # sources of a circle
OBJECTS = build.TOP / "build" / build.PRESET / "CMakeFiles"
# What is linked into one file: a target of CMake, or several. The table of built-in plugins names all of them.
TOGETHER = {"monkey-core": "monkey"}
TABLES = {"builtin.c.o"}


def read_symbols(objects):
    """What each object defines, and what it uses and does not define."""
    defined, used = collections.defaultdict(set), collections.defaultdict(set)
    listing = subprocess.run(["nm", "--print-file-name", *objects], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        name, _, rest = line.partition(":")
        kind, symbol = rest.split()[-2:]
        (used if kind == "U" else defined)[name].add(symbol)
    return defined, used


def find_circles(objects):
    defined, used = read_symbols(objects)
    owner = {symbol: name for name, symbols in defined.items() for symbol in symbols}
    needs = {name: {owner[symbol] for symbol in used[name] if symbol in owner} for name in map(str, objects)}
    reached = {name: reach(needs, name) for name in needs}
    return {frozenset(other for other in reached[name] if name in reached[other]) for name in needs} - {frozenset()}


def reach(needs, first):
    found, left = set(), [first]
    while left:
        new = needs[left.pop()] - found
        found |= new
        left += new
    return found


def list_targets():
    targets = collections.defaultdict(list)
    for folder in OBJECTS.glob("*.dir"):
        target = folder.name.removesuffix(".dir")
        objects = [path for path in folder.rglob("*.c.o") if path.name not in TABLES]
        if objects and not target.startswith(("unit-", "fuzz-", "bench-")):
            targets[TOGETHER.get(target, target)] += objects
    return targets


def test_circles_of_sources_are_small():
    targets = list_targets()
    assert len(targets["monkey"]) > 100 and len(targets["monkey-duda"]) > 50
    large = {
        target: sorted(name.rpartition(".dir/")[2].removesuffix(".o") for name in circle)
        for target, objects in targets.items()
        for circle in find_circles(objects)
        if len(circle) > MOST
    }
    assert not large, large


def folder_of(name):
    return name.rpartition("lib/core/")[2].partition("/")[0]


def test_layers_call_nothing_above_them():
    """A header may declare what a layer above it defines; then no include shows the call."""
    objects = [path for path in list_targets()["monkey"] if "/lib/core/" in str(path)]
    assert len(objects) > 100
    defined, used = read_symbols(objects)
    owner = {symbol: folder_of(name) for name, symbols in defined.items() for symbol in symbols}
    upward = {
        (name.rpartition("lib/core/")[2], symbol)
        for name, symbols in used.items()
        for symbol in symbols
        if symbol in owner and owner[symbol] not in LAYERS[folder_of(name)]
    }
    assert not upward, upward
