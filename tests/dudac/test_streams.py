# SPDX-License-Identifier: Apache-2.0
"""Odd terminals, locales and environments, and streams that are closed."""

import os
import pathlib
import shlex
import subprocess

import pytest
from harness.full_file import FULL_BYTES, make_full

from running import DUDAC, PYTHON, ask, environment, make_folder, make_source

CHECKS = '[[check]]\nget = "/"\n'
COMMAND = f"{PYTHON} -B {DUDAC}"
LIMITED = f"prlimit --fsize={FULL_BYTES} -- {COMMAND}"  # Python is told of an error, not killed


def run_shell(script, cwd, env=None):
    """Returns exit status, standard output and standard error."""
    done = subprocess.run(["sh", "-c", script], cwd=cwd, env=environment(env), capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout, done.stderr


def make_checked(top, name="apple", files=None):
    return make_folder(top, name, files={"apple.c": make_source(), "checks.toml": CHECKS, **(files or {})})


# ── closed streams ──


ALL_CLOSED = "<&- >&- 2>&-"
CLOSED = [pytest.param(words, closed, marks=[pytest.mark.slow] * (words != "--help" and len(closed) < 5))
          for words in ("build", "test", "--help") for closed in ("<&-", ">&-", "2>&-", ALL_CLOSED, "2>>../full")]


@pytest.mark.parametrize("words, closed", CLOSED)
def test_closed_streams(tmp_path, words, closed):
    test = "import sys\n\n\ndef test_it():\n    print('text', file=sys.stderr)\n"
    make_checked(tmp_path, files={"test_apple.py": test})
    make_full(tmp_path / "full")
    command = LIMITED if "full" in closed else COMMAND
    status, out, err = run_shell(f"exec {command} {words} {closed}", tmp_path / "apple")
    assert (status, err) == (0, b"") and bool(out) == (">&-" not in closed.replace("2>&-", "")), out


@pytest.mark.parametrize("words", ["build", "test", "routes", "run -p 0"])
def test_a_reader_that_has_gone(tmp_path, words):
    """It ends, without a word and with what it has started."""
    folder = make_checked(tmp_path)
    script = f"({COMMAND} {words}; echo $? >{tmp_path}/status) | true"
    _, _, err = run_shell(script, folder)
    status = (tmp_path / "status").read_text()
    assert b"Traceback" not in err and b"Exception" not in err and status == "1\n", err
    assert not list((folder / "build").glob("run-*"))


def test_a_full_disk_for_its_output(tmp_path):
    make_full(tmp_path / "full")
    status, _, err = run_shell(f"{LIMITED} build >>../full", make_folder(tmp_path))
    assert status == 1 and b"File too large" in err and b"Traceback" not in err


def test_a_log_without_a_reader(tmp_path, start):
    """The server continues: its log is read, although it can be shown no more."""
    source = "#include <stdio.h>\n" + make_source().replace(
        "response->printf", 'for (int i = 0; i < 2000; i++)\n        fprintf(stderr, "%0100d\\n", i);\n'
        '    response->printf')
    folder = make_folder(tmp_path, files={"apple.c": source})
    reader, writer = os.pipe()
    os.close(reader)
    command = shlex.join([PYTHON, "-B", "-u", str(DUDAC), "run", "-v", "-p", "0", str(folder)])
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f"import os\nos.dup2({writer}, 2)\nos.execvp('sh', ['sh', '-c', {'exec ' + command!r}])\n")
    os.set_inheritable(writer, True)
    try:
        program = start(program=wrapper, pass_fds=(writer,))
        url = program.wait_url()
        assert [ask(url) for _ in range(3)] == [(200, "one\n")] * 3
        assert program.stop() == 130
    finally:
        os.close(writer)


# ── locales and environments ──


# Several of them at once; the marked ones tell which one it is.
COMBINED = [
    {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "HOME": None, "TERM": "dumb"},
    {"LC_ALL": "xx_YY.nonsense", "PYTHONIOENCODING": "ascii", "TERM": None, "COLUMNS": "1"},
    {"LC_ALL": "C", "TERM": "nonsense", "NO_COLOR": "", "TMPDIR": "/nonexistent"},
]
SINGLE = [
    {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, {"LC_ALL": "xx_YY.nonsense"},
    {"PYTHONIOENCODING": "ascii"}, {"HOME": None}, {"TERM": None}, {"TERM": "dumb"}, {"TERM": "nonsense"},
    {"NO_COLOR": ""}, {"TMPDIR": "/nonexistent"}, {"COLUMNS": "1"},
]


@pytest.mark.parametrize("env", [*COMBINED, *(pytest.param(env, marks=pytest.mark.slow) for env in SINGLE)],
                         ids=lambda env: " ".join(f"{key}={value}" for key, value in env.items()))
def test_environments(tmp_path, env):
    """With a folder whose name is neither ASCII nor UTF-8."""
    top = tmp_path / os.fsdecode("é".encode() + b"\xff")
    folder = make_checked(top)
    for words in ("build -v", "test", "routes", f"new {top}/pear", "build gone"):
        status, out, err = run_shell(os.fsencode(f"{COMMAND} {words}"), folder, env)
        assert status == (words == "build gone") and b"Traceback" not in err, (words, err)
        assert b"\x1b" not in out + err


def test_nothing_but_a_path(tmp_path):
    make_checked(tmp_path)
    done = subprocess.run([PYTHON, "-B", DUDAC, "test"], cwd=tmp_path / "apple", env={"PATH": os.environ["PATH"]},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "1 of 1 checks passed" in done.stdout, done.stderr


@pytest.mark.parametrize("env, colored", [({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False),
                                          ({"TERM": "dumb"}, False), ({"TERM": "xterm"}, True)])
def test_a_terminal(tmp_path, env, colored):
    """`script` gives it one."""
    folder = make_folder(tmp_path, files={"apple.c": "int x = y;\n"})
    done = subprocess.run(["script", "-qec", f"{COMMAND} build {folder}", "/dev/null"], capture_output=True, text=True,
                          env=environment({"TERM": "xterm", **env}), stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert done.returncode == 1 and ("\x1b" in done.stdout) == colored, done.stdout


# ── file systems ──

needs_mounts = pytest.mark.skipif(
    subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0,
    reason="NOT TESTED: only root can mount here")


def run_mounted(mount, script, cwd):
    """In its own namespace, where `mount` was run before."""
    return run_shell(f"exec unshare -m sh -c {shlex.quote(f'{mount} && {script}')}", cwd)


@needs_mounts
def test_a_read_only_file_system(tmp_path):
    """Of a folder of the original layout, as on a medium; another build folder helps each command."""
    old = {"Makefile.in": "NAME = pear\nOBJECTS = main.o\n", "main.c": make_source(), "checks.toml": CHECKS}
    make_folder(tmp_path, "disk", old)
    mount = f"mount --bind {tmp_path}/disk {tmp_path}/disk && mount -o remount,bind,ro {tmp_path}/disk"
    for words in ("build", "test", "run -p 0", "run --watch -p 0", "routes", "-p 0 -w"):
        status, _, err = run_mounted(mount, f"{COMMAND} {words} disk", tmp_path)
        build = f"{tmp_path}/disk/build" + ("/address-undefined" if words == "test" else "")
        sentence = f"dudac: {build}: Read-only file system; --build-dir names another folder\n"
        assert (status, err.decode()) == (1, sentence), words
    for words in ("build", "test", "routes"):
        status, _, err = run_mounted(mount, f"{COMMAND} {words} disk -B made", tmp_path)
        assert status == 0, err
    status, _, err = run_mounted(mount, f"{COMMAND} new disk/apple", tmp_path)
    assert status == 1 and b"disk/apple: Read-only file system" in err and b"Traceback" not in err


def list_files(folder):
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*"))


@needs_mounts
@pytest.mark.parametrize("kilobytes", [4, 24, 64, *(pytest.param(size, marks=pytest.mark.slow)
                                                    for size in (16, 48, 128))])
def test_a_full_disk(tmp_path, kilobytes):
    """A sentence, and nothing but what was compiled is left; with more room it works."""
    make_checked(tmp_path)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size={kilobytes}k none disk"
    script = (f"{COMMAND} new disk/pear -t rest >/dev/null 2>new; echo $? >status; ls disk >left; rm -rf disk/pear; "
              f"{COMMAND} test apple -B disk/made >/dev/null 2>test; echo $? >>status; find disk/made >made")
    run_mounted(mount, script, tmp_path)
    new, test = (tmp_path / "status").read_text().split()
    assert (tmp_path / "left").read_text() == ("" if new == "1" else "pear\n")
    for status, name in ((new, "new"), (test, "test")):
        text = (tmp_path / name).read_text()
        assert "Traceback" not in text and status in "01", text
        assert status == "0" or text.splitlines()[-1].startswith("dudac: ") or "No space left" in text, text
    made = (tmp_path / "made").read_text().splitlines()
    assert not [path for path in made if "/run-" in path or path.endswith((".new", ".copy"))]
