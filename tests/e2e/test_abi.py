# SPDX-License-Identifier: Apache-2.0
"""The binary interface of libmonkey.so, as docs/internals/abi.md promises it."""

import os
import re
import shutil
import subprocess

import pytest

from harness import build, embed

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build has no library for programs"),
]

PRIVATE = {"mk_inspect_core"}  # called by libmonkey-inspect.a
WITHOUT = ("MK_TESTS", "MK_HTTP2", "MK_WEBSOCKET", "MK_WR", "MK_DUDAC")
CHANGED, BROKEN, FAILED = 4, 8, 3  # bits of abidiff's exit code; the last two of them are errors


def git(*words):
    return subprocess.run(["git", "-C", build.TOP, *words], capture_output=True, text=True)


def find_reference():
    """The last release, or the commit that MONKEY_ABI_REFERENCE names."""
    described = git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    return os.environ.get("MONKEY_ABI_REFERENCE") or (described.stdout.strip() if described.returncode == 0 else None)


def build_library(tree, folder):
    """libmonkey.so with debug information, and nothing next to it."""
    options = [f"-D{name}=OFF" for name in WITHOUT] + ["-DMK_MODULES=", "-DMK_PACKAGES=", "-DCMAKE_BUILD_TYPE=Debug"]
    subprocess.run(["cmake", "-S", tree, "-B", folder, "-G", "Ninja", *options], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", folder, "--target", "monkey-shared"], check=True, capture_output=True)
    return folder / "lib" / "libmonkey.so"


def read_numbers(tree):
    """What has to change with the interface: the number of plugins' interface, and the version in the file's name."""
    plugin = re.search(r"MK_PLUGIN_ABI = (\d+)", (tree / "include/monkey/plugin.h").read_text())[1]
    library = re.search(r"SOVERSION (\d+)", (tree / "CMakeLists.txt").read_text())[1]
    return plugin, library


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_since_the_last_release(tmp_path):
    reference = find_reference()
    if not reference:
        pytest.skip("there is no release yet: no tag v*, and no MONKEY_ABI_REFERENCE")
    assert shutil.which("abidiff"), "abigail-tools is not installed"
    old = tmp_path / "old"
    old.mkdir()
    archive = subprocess.run(["git", "-C", build.TOP, "archive", reference], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", old], input=archive, check=True)
    libraries = [build_library(tree, tmp_path / name) for name, tree in (("a", old), ("b", build.TOP))]
    headers = ["--headers-dir1", old / "include", "--headers-dir2", build.TOP / "include"]
    run = subprocess.run(["abidiff", "--no-added-syms", *headers, *libraries], capture_output=True, text=True)
    print(run.stdout)
    assert not run.returncode & FAILED, run.stderr
    before, now = read_numbers(old), read_numbers(build.TOP)
    assert now[1] != before[1] or not run.returncode & BROKEN, run.stdout
    assert now != before or not run.returncode & CHANGED, run.stdout


def test_symbols_have_a_version(tmp_path):
    """Each exported function has the version of the library, and is declared in a public header."""
    library = next(embed.install(tmp_path).rglob("libmonkey.so"))
    rows = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = {row.split()[-1] for row in rows.splitlines() if " A " not in row}
    headers = "".join(path.read_text() for path in (build.TOP / "include/monkey").rglob("*.h"))
    assert "mk_server_handle@@LIBMONKEY_2.0" in names
    for name in names:
        symbol, _, version = name.partition("@@")
        assert version == "LIBMONKEY_2.0", name
        assert re.search(rf"\b{symbol}\b", headers) or symbol.startswith("mk_plugin_") or symbol in PRIVATE, name
