#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints which share of the lines of C the unit tests run, for each folder.

Builds the preset `coverage`, runs the unit tests, and asks gcov. A line counts as run if one of the programs into which
it is compiled has run it. Lines of programs that no unit test is linked with count, too; lines without code do not.

    tests/coverage/count.py [--e2e] [--files] [TREE]     --e2e: the end-to-end tests of the default run, too
                                                         --files: each file; TREE: another checkout
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TOP = pathlib.Path(__file__).resolve().parents[2]
CODE = ("lib/", "plugins/", "duda/", "bin/", "include/", "tools/")
DEEP = ("lib/core/", "lib/kit/", "duda/core/", "duda/packages/")  # folders of which each folder is a row
DEFAULT_RUN = "not budget and not slow and not browser"  # of ./dev test
FAILED = re.compile(r"\*\*\*|^FAILED|^ERROR")  # in what ctest and pytest print
OBJECTS = 16  # of one call of gcov


def run(tree, *command, **options):
    subprocess.run([str(word) for word in command], cwd=tree, check=True, **options)


def build(tree):
    run(tree, "cmake", "--preset", "coverage", "--log-level=WARNING", stdout=subprocess.DEVNULL)
    run(tree, "ninja", "-C", "build/coverage", "--quiet", "unit-tests", "programs")


def run_tests(tree, with_e2e):
    """A test that fails has run its lines, too, but says that the figures are not those of the tests."""
    for path in (tree / "build/coverage").rglob("*.gcda"):
        path.unlink()
    jobs = str(os.cpu_count() * 2)
    commands = [["ctest", "--test-dir", "build/coverage", "-j", jobs, "-L", "^unit-"]]
    if with_e2e:
        commands.append(["/usr/bin/python3", "-m", "pytest", "-q", "-n", jobs, "tests/e2e", "-m", DEFAULT_RUN])
    for command in commands:
        done = subprocess.run(command, cwd=tree, env={**os.environ, "MONKEY_PRESET": "coverage"}, text=True,
                              capture_output=True, check=False)
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if FAILED.search(line)]
            print("\n".join(lines), f"{command[0]} ended with {done.returncode}", sep="\n", file=sys.stderr)


def is_of_code(path):
    """Whether an object is of the code, and not of tests: CMake names its folder after the target's."""
    return path.parts[0] != "tests" and "CMakeFiles" in path.parts


def find_objects(built):
    return sorted(path for path in built.rglob("*.gcno") if is_of_code(path.relative_to(built)))


def read_counts(tree, objects):
    """{file: {line: whether it has run}}"""
    built, counts = tree / "build/coverage", collections.defaultdict(dict)
    done = subprocess.run(["gcov", "--json-format", "--stdout", *objects], cwd=built, capture_output=True, text=True,
                          check=True)
    for text in done.stdout.splitlines():
        report = json.loads(text)
        for file in report["files"]:
            path = os.path.relpath(os.path.join(report["current_working_directory"], file["file"]), tree)
            if path.startswith(CODE):
                lines = counts[path]
                for line in file["lines"]:
                    lines[line["line_number"]] = lines.get(line["line_number"], False) or line["count"] > 0
    return counts


def count_lines(tree):
    objects, counts = find_objects(tree / "build/coverage"), collections.defaultdict(dict)
    parts = [objects[at : at + OBJECTS] for at in range(0, len(objects), OBJECTS)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for found in threads.map(lambda part: read_counts(tree, part), parts):
            for path, lines in found.items():
                for number, has_run in lines.items():
                    counts[path][number] = counts[path].get(number, False) or has_run
    return counts


def find_row(path):
    """lib/core/http of lib/core/http/h2/turn.c, plugins/static of plugins/static/open.c, bin of bin/monkey/main.c."""
    parts = path.split("/")
    depth = 3 if path.startswith(DEEP) else 1 if path.startswith(("bin/", "include/", "tools/")) else 2
    return "/".join(parts[: min(depth, len(parts) - 1)])


def print_table(counts, name_row):
    rows = collections.defaultdict(lambda: [0, 0])
    for path, lines in counts.items():
        for name in (name_row(path), "all"):
            rows[name][0] += sum(lines.values())
            rows[name][1] += len(lines)
    print("| | lines | run | % |\n|---|--:|--:|--:|")
    for name, (has_run, lines) in sorted(rows.items(), key=lambda row: (row[0] == "all", row[0])):
        print(f"| {name} | {lines:,} | {has_run:,} | {100 * has_run / lines:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--e2e", action="store_true")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("tree", nargs="?", type=pathlib.Path, default=TOP)
    args = parser.parse_args()
    tree = args.tree.resolve()
    build(tree)
    run_tests(tree, args.e2e)
    print_table(count_lines(tree), (lambda path: path) if args.files else find_row)


if __name__ == "__main__":
    main()
