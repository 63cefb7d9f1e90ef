#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plants the defects of mutants.toml, one at a time, and says whether the tests that must notice each of them fail.

The sources are copied to build/mutants/, where they are changed and built; the checkout is only read. First all tests
that are needed run without a mutant, because a test that fails anyway shows nothing. Then each mutant is written, what
its tests need is built, and they run; a mutant is killed if each of them fails. One that does not compile, or a test
that cannot run, is an error. Exits with 1 if a mutant survives or there is an error.

    tests/mutants/run.py [--list] [--unit] [NAME...]     NAME: mutants whose names contain it; without one all
"""

import argparse
import collections
import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
CLONE = TOP / "build" / "mutants"
sys.path.insert(0, str(TOP / "tests" / "lint"))
from mutants import find_fault, read_table  # noqa: E402

SECONDS_MAX = 900  # of a test
PYTEST_FAILED, PYTEST_PASSED = 1, 0
DEFAULT_RUN = "not budget and not slow and not browser"  # of ./dev test: what a mutant must not survive
OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    "PYTHONDONTWRITEBYTECODE": "1",  # a mutant may have the size and the time of the source
    "CCACHE_DEPEND": "1",
}


class RunError(Exception):
    """What keeps a mutant from being tested."""


# ── the copy ──


def list_sources():
    done = subprocess.run(["git", "-C", TOP, "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=True)
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name and os.path.lexists(TOP / os.fsdecode(name))}


def list_copies():
    for folder, names, files in os.walk(CLONE):
        if pathlib.Path(folder) == CLONE and "build" in names:
            names.remove("build")
        yield from (os.path.relpath(os.path.join(folder, name), CLONE) for name in files)


def copy_sources():
    """Copies what differs, so that only that is built again."""
    sources = list_sources()
    for name in set(list_copies()) - sources:
        (CLONE / name).unlink()
    for name in sources:
        source, copy = TOP / name, CLONE / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            copy.unlink(missing_ok=True)
            copy.symlink_to(os.readlink(source))
        elif not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.write_bytes(source.read_bytes())
            copy.chmod(source.stat().st_mode)


# ── building ──


def run(command, folder=CLONE, **variables):
    """(exit status, output)"""
    env = {**os.environ, **OPTIONS, **variables}
    try:
        done = subprocess.run(command, cwd=folder, env=env, text=True, errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        return PYTEST_FAILED, f"has not ended after {SECONDS_MAX} s"
    return done.returncode, done.stdout


def build(preset, targets):
    status, output = run(["ninja", "-C", f"build/{preset}", *sorted(targets)]) if targets else (0, "")
    if status:
        raise RunError("does not compile:\n" + output[-3000:])


@functools.cache
def list_units(preset):
    """{name of a unit test: its program}, after configuring the preset."""
    status, output = run(["cmake", "--preset", preset, "--log-level=WARNING"],
                         CMAKE_C_COMPILER_LAUNCHER="ccache" if run(["sh", "-c", "command -v ccache"])[0] == 0 else "")
    if status:
        raise RunError(output)
    found = json.loads(run(["ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1"])[1])
    labels = {test["name"]: {row["name"]: row["value"] for row in test["properties"]}.get("LABELS", [""])[0]
              for test in found["tests"]}
    return {name: label for name, label in labels.items() if label.startswith("unit-")}


def is_python(test):
    return ".py" in test


def find_target(test, preset):
    if is_python(test):
        return "programs"
    if test not in list_units(preset):
        raise RunError(f"there is no unit test {test}")
    return list_units(preset)[test]


# ── tests ──


def run_pytest(tests, preset, *options):
    files = [f"tests/{test}" for test in tests]
    command = ["setarch", "-R", "/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", DEFAULT_RUN,
               *options, *files]
    status, output = run(command, MONKEY_PRESET=preset)
    if status not in (PYTEST_PASSED, PYTEST_FAILED):
        raise RunError(f"pytest ended with {status}:\n{output[-3000:]}")
    return status == PYTEST_PASSED, output


def run_unit(test, preset):
    command = ["setarch", "-R", "ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "-R", f"^{test}$"]
    status, output = run(command)
    return status == 0, output


def run_test(test, preset):
    """(whether it passes, its output)"""
    return run_pytest([test], preset, "-x") if is_python(test) else run_unit(test, preset)


def check_baseline(mutants, preset):
    """Builds the sources without a mutant. Returns what each failed test prints."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    build(preset, {find_target(test, preset) for test in tests})
    results = [run_unit(test, preset) for test in tests if not is_python(test)]
    for folder in sorted({test.partition("/")[0] for test in tests if is_python(test)}):
        of_folder = [test for test in tests if test.startswith(folder + "/")]
        results.append(run_pytest(of_folder, preset, "-n", str(os.cpu_count() * 2)))
    return [output for passed, output in results if not passed]


# ── mutants ──


def test_mutant(mutant):
    """Returns the tests that pass with it."""
    path = CLONE / mutant.file
    text = path.read_text()
    try:
        path.write_text(text.replace(mutant.old, mutant.new))
        if not mutant.file.endswith(".py"):
            build(mutant.preset, {find_target(test, mutant.preset) for test in mutant.tests})
        return [test for test in mutant.tests if run_test(test, mutant.preset)[0]]
    finally:
        path.write_text(text)


def report_mutant(mutant):
    """Returns what has become of it: killed, SURVIVED or ERROR."""
    began, text = time.monotonic(), ""
    try:
        passed = test_mutant(mutant)
        word = "SURVIVED" if passed else "killed"
        text = f", passed by {' '.join(passed)}" if passed else ""
    except RunError as error:
        word, text = "ERROR", f": {error}"
    print(f"{word:<8} {mutant.name}{text} ({time.monotonic() - began:.0f} s)", flush=True)
    return word


def test_preset(preset, mutants):
    """{word: how many mutants}"""
    began = time.monotonic()
    failed = check_baseline(mutants, preset)
    if failed:
        sys.exit("\n".join([*failed, "these tests fail without a mutant"]))
    print(f"{preset}: all tests pass without a mutant ({time.monotonic() - began:.0f} s)", flush=True)
    return collections.Counter(map(report_mutant, mutants))


def choose_mutants(args):
    mutants = [each for each in read_table(TOP) if not args.names or any(name in each.name for name in args.names)]
    if args.unit:
        mutants = [each for each in mutants if not any(map(is_python, each.tests))]
    if not mutants:
        sys.exit("no mutant has such a name")
    return sorted(mutants, key=lambda each: (each.preset, any(map(is_python, each.tests))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the mutants and their tests")
    parser.add_argument("--unit", action="store_true", help="only mutants that unit tests kill")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    mutants = choose_mutants(args)
    if args.list:
        for each in mutants:
            print(f"{each.name:<40} {each.file}: {each.text} ({', '.join(each.tests)})")
        return 0
    faults = [fault for each in mutants if (fault := find_fault(each, TOP))]
    if faults:
        sys.exit("\n".join(faults))
    copy_sources()
    words = collections.Counter()
    for preset, group in itertools.groupby(mutants, key=lambda each: each.preset):
        words += test_preset(preset, list(group))
    print(", ".join(f"{n} {word}" for word, n in words.items()))
    return 0 if set(words) == {"killed"} else 1


if __name__ == "__main__":
    sys.exit(main())
