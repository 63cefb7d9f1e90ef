# SPDX-License-Identifier: Apache-2.0
"""Completions of dist/completions, by bash itself."""

import shutil
import subprocess

import pytest

from harness import build
from harness.server import run

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build has other options"),
    pytest.mark.skipif(not shutil.which("bash"), reason="NOT TESTED: no bash here"),
]

FILES = build.TOP / "dist" / "completions"


def complete(folder, *words):
    """What bash offers for the last of the words behind `monkey`."""
    script = f'source {FILES}/monkey.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _monkey; '
    script += 'printf "%s\\n" "${COMPREPLY[@]}"'
    command = ["bash", "-euc", script, "bash", build.binary(), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=build.environment())
    return done.stdout.split()


def test_options(tmp_path):
    text = run("--help").stdout
    offered = complete(tmp_path, "--")
    assert offered and all(f" {option} " in text for option in offered)
    assert {line.split("--")[1].split()[0] for line in text.splitlines() if line.startswith("  ") and "--" in line} == {
        option.removeprefix("--") for option in offered}
    assert complete(tmp_path, "-c", ".", "--sho") == ["--show-config"]


def test_folders_files_and_commands(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "file").write_text("")
    assert complete(tmp_path, "")[:3] == ["proxy", "shell", "convert"]
    assert sorted(complete(tmp_path, "")) == ["convert", "file", "proxy", "shell", "site"]
    assert complete(tmp_path, "-c", "s") == ["site"]
    assert complete(tmp_path, "-c", "f") == ["file"]
    assert complete(tmp_path, "-t", "s") == ["site"]
    assert complete(tmp_path, "-p", "s") == []


def test_sections(tmp_path):
    assert complete(tmp_path, "--reference", "PRO") == ["PROXY"]
    assert "HOST" in complete(tmp_path, "--reference", "")


def test_the_files_are_right():
    for path in FILES.glob("*.bash"):
        subprocess.run(["bash", "-n", path], check=True)
