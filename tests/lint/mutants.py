# SPDX-License-Identifier: Apache-2.0
"""Each row of tests/mutants/mutants.toml still fits: its text is once in its file, and its tests exist."""

import os
import re
import tomllib
from typing import NamedTuple

from source import ROOT, Finding

TABLE = "tests/mutants/mutants.toml"


class Mutant(NamedTuple):
    name: str
    text: str  # what is wrong with it
    file: str
    old: str
    new: str
    tests: list  # names of unit tests, and files of pytest below tests/, each of which must fail
    preset: str = "asan"


def read_table(root=ROOT):
    with open(os.path.join(root, TABLE), "rb") as file:
        return [Mutant(**row) for row in tomllib.load(file)["mutant"]]


def has_unit(test, root):
    """http-h1-send is core/http/h1/send_test.c or kit/http/h1/send_test.c, duda-x-y one of the folder duda."""
    path = test.replace("-", "/") + "_test.c"
    folders = ["core/", "kit/", ""] if not path.startswith("duda/") else [""]
    paths = [folder + path for folder in folders] + [re.sub(r"^duda/", "duda/core/", path)]
    return any(os.path.exists(os.path.join(root, "tests/unit", each)) for each in paths)


def has_test(test, root):
    return os.path.exists(os.path.join(root, "tests", test.split("::")[0])) if ".py" in test else has_unit(test, root)


def find_fault(mutant, root=ROOT):
    path = os.path.join(root, mutant.file)
    if not os.path.exists(path):
        return f"{mutant.name}: there is no file {mutant.file}"
    with open(path, encoding="utf-8") as file:
        count = file.read().count(mutant.old)
    missing = [test for test in mutant.tests if not has_test(test, root)]
    if count != 1:
        return f"{mutant.name}: its text is {count} times in {mutant.file}: adapt it to the source"
    if mutant.old == mutant.new or not mutant.tests:
        return f"{mutant.name}: it changes nothing, or names no test"
    return f"{mutant.name}: there is no test {missing[0]}" if missing else None


def check(sources, root=ROOT):
    for source in (each for each in sources if each.path == TABLE):
        lines = [number for number, line in enumerate(source.lines, 1) if line == "[[mutant]]"]
        mutants = [Mutant(**row) for row in tomllib.loads(source.text)["mutant"]]
        names = [mutant.name for mutant in mutants]
        for line, mutant in zip(lines, mutants):
            fault = find_fault(mutant, root)
            if names.count(mutant.name) > 1:
                fault = f"{mutant.name}: another one has this name"
            if fault:
                yield Finding(TABLE, line, fault)
