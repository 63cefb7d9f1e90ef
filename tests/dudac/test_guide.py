# SPDX-License-Identifier: Apache-2.0
"""What docs/guide/dudac.md shows: the commands of the quick start, and the files."""

import re
import shlex

from dudac.checks import read_checks
from dudac.folder import read_folder

from harness import build
from running import ask, make_folder, run_dudac

PAGE = (build.TOP / "docs/guide/dudac.md").read_text()
MANUAL = (build.TOP / "dist/dudac.1").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.S | re.M)


def blocks(language, part):
    return [text for kind, text in BLOCKS if kind == language and part in text]


def test_the_quick_start(tmp_path, start):
    [text] = blocks("sh", "dudac new")
    for line in text.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "dudac"
        if arguments[0] == "run":
            url = start(*arguments, "-p", 0, cwd=tmp_path).wait_url()
            assert ask(url)[0] == 200
        else:
            done = run_dudac(*arguments, cwd=tmp_path)
            assert done.returncode == 0, done.stderr


def test_the_settings(tmp_path):
    [text] = blocks("toml", "ldflags")
    folder = make_folder(tmp_path, "x", {"a.c": "", "lib/b.c": "", "service.toml": text})
    assert read_folder(folder)[0].name == "hello"


def test_the_checks(tmp_path):
    [text] = blocks("toml", "[[check]]")
    (tmp_path / "checks.toml").write_text(text)
    assert [check.method for check in read_checks(tmp_path / "checks.toml")] == ["GET", "POST"]


def test_the_manual_names_all_commands():
    names = re.findall(r"^  (\w+)  ", run_dudac("--help").stdout.partition("Commands:")[2], re.M)
    assert len(names) == 5 and all(re.search(rf'^\.B.*"?{name}\b', MANUAL, re.M) for name in names)
    assert all(f"dudac {name}" in PAGE for name in names)
