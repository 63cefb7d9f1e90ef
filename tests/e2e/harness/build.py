# SPDX-License-Identifier: Apache-2.0
"""Which binary is under test, and how it was built."""

import atexit
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
PUBLIC_HEADERS = sorted(str(path.relative_to(TOP / "include/monkey")) for path in (TOP / "include/monkey").rglob("*.h"))
PRESET = os.environ.get("MONKEY_PRESET", "asan")
SANITIZED = PRESET in ("asan", "tsan")
OPTIMISED = PRESET in ("release", "small")
PROTOCOL = os.environ.get("MONKEY_PROTOCOL", "http/1.1")  # or h2c: see protocol.py
CACHE = os.environ.get("MONKEY_CACHE")  # a value of Files: all servers cache files, except where a test says how
LIB = TOP / "build" / PRESET / "lib"
MODULES, PLUGINS = LIB / "modules", LIB / "monkey"  # those that tests have, and those that a server comes with
SPOKEN = {"h2": r"^http/2: ", "tls": r"^ +tls +\d"}  # rows of monkey -b
needs_cache = pytest.mark.skipif(not (PLUGINS / "cache.so").exists(), reason=f"the preset {PRESET} has no plugin cache")
needs_modules = pytest.mark.skipif(not MODULES.exists(), reason=f"the preset {PRESET} builds no modules for tests")


def binary(preset=PRESET):
    """The path of a preset's server; MONKEY_BIN overrides it for the preset under test."""
    override = os.environ.get("MONKEY_BIN")
    if override and preset == PRESET:
        return pathlib.Path(override).resolve()
    return TOP / "build" / preset / "bin" / "monkey"


def install(folder, *modules):
    """The path of a copy with these modules next to it ("tls.so"), none of which is a link to what was built."""
    built = binary()
    files = {built: folder / "bin" / "monkey"}
    for module in modules:
        files[built.parents[1] / "lib" / "monkey" / module] = folder / "lib" / "monkey" / module
    for path, copy in files.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return files[built]


@functools.cache
def for_others():
    """The path of a server that other users can execute. Where they may not search a folder above the build (such as
    /root), this is a copy below the system's folder for temporary files."""
    built = binary()
    if all(folder.stat().st_mode & 1 for folder in built.parents):
        return built
    folder = pathlib.Path(tempfile.mkdtemp(prefix="monkey-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    files = [*PLUGINS.rglob("*.so"), *PLUGINS.rglob("*.theme")]
    return install(folder, *(str(path.relative_to(PLUGINS)) for path in files))


@functools.cache
def can_mount():
    """Whether processes can have mounts of their own: root can, except in a plain chroot and in many containers."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp"]
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return False
    return subprocess.run(command, capture_output=True).returncode == 0


def probe():
    """The server with the plugin `probe`; test builds have it."""
    return TOP / "build" / PRESET / "bin" / "monkey-probe"


needs_probe = pytest.mark.skipif(not probe().exists(), reason=f"the preset {PRESET} has no monkey-probe")


@functools.cache
def speaks(protocol):
    """Was the server under test built with it?"""
    if not binary().exists():
        return False
    text = subprocess.run([binary(), "-b"], capture_output=True, text=True, timeout=120, env=environment()).stdout
    return bool(re.search(SPOKEN[protocol], text, re.M))


def environment():
    """The environment of a server: sanitizers must end the process with a status that nothing else has."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MONKEY_", "PYTEST_"))}
    # frames that were left stay apart for 64 KB of later ones, not for 1 MB: 400 pages less for each process
    env["RUNTIME_DIRECTORY"] = ""  # no socket of shells, also where /run/monkey exists
    env["ASAN_OPTIONS"] = "exitcode=97:detect_stack_use_after_return=1:max_uar_stack_size_log=16"
    env["UBSAN_OPTIONS"] = "exitcode=97:print_stacktrace=1"
    env["TSAN_OPTIONS"] = "exitcode=97:second_deadlock_stack=1"
    return env
