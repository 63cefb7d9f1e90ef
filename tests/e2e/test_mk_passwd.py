# SPDX-License-Identifier: Apache-2.0
"""mk_passwd: what it writes, what it refuses, a terminal, and two at once."""

import os
import pathlib
import pty
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading

import pytest

from harness import build
from harness.server import await_true

PROGRAM = build.TOP / "build" / build.PRESET / "bin" / "mk_passwd"

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not PROGRAM.exists(), reason="the preset has no mk_passwd"),
]


def passwd(*args, password=None, **rest):
    data = None if password is None else password + "\n"
    stdin = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=60, **stdin, **rest)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "users"


CHEAP = ("-t", "bcrypt", "-C", "4")


def names(path):
    return [line.partition(":")[0] for line in path.read_text().splitlines()]


def test_create_add_change_delete(path):
    assert passwd("-c", path, "ada", password="first password").returncode == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("ada:$y$j9T$")
    assert passwd(*CHEAP, path, "bob", password="second one").returncode == 0
    assert passwd("-v", path, "ada", password="first password").returncode == 0
    assert passwd("--verify", path, "ada", password="First password").returncode == 3
    before = path.read_text()
    assert passwd(*CHEAP, path, "ada", password="another password").returncode == 0
    assert names(path) == ["ada", "bob"] and path.read_text() != before
    assert passwd("-v", path, "ada", password="another password").returncode == 0
    assert passwd("-D", path, "ada").returncode == 0
    assert names(path) == ["bob"]
    done = passwd("-D", path, "ada")
    assert done.returncode == 3 and "there is no user ada" in done.stderr
    assert passwd("-v", path, "ada", password="x").returncode == 3
    assert os.listdir(path.parent) == ["users"]


@pytest.mark.parametrize(
    "kind, start",
    [("yescrypt", "$y$"), ("bcrypt", "$2b$"), ("sha512", "$6$"), ("sha256", "$5$"), ("apr1", "$apr1$")],
)
def test_types(path, kind, start):
    assert passwd("-c", "-t", kind, path, "ada", password="pässwörd").returncode == 0
    assert path.read_text().startswith("ada:" + start)
    assert passwd("-v", path, "ada", password="pässwörd").returncode == 0


def test_costs(path):
    assert passwd("-c", "-t", "sha512", "-C", "1234", path, "ada", password="password").returncode == 0
    assert "$6$rounds=1234$" in path.read_text()
    for args in (("-C", "0"), ("-C", "8"), ("-C", "x"), ("-t", "bcrypt", "-C", "14"), ("-t", "apr1", "-C", "1")):
        done = passwd(*args, path, "ada", password="password")
        assert done.returncode == 2 and "cost" in done.stderr, args


@pytest.mark.parametrize(
    "args, message",
    [
        ((), "the file and the name of the user are needed"),
        (("F",), "the file and the name of the user are needed"),
        (("F", "ada", "secret"), "a password on the command line can be seen by all users"),
        (("-c", "F", "ada", "secret"), "a password on the command line can be seen by all users"),
        (("F", "a:b"), "cannot have a colon"),
        (("F", "a\nb"), "control character"),
        (("F", ""), "the name of the user is missing"),
        (("F", "#ada"), "begins a comment"),
        (("F", "a" * 256), "more than 255 bytes"),
        (("-t", "des", "F", "ada"), "the type is yescrypt"),
        (("-c", "-D", "F", "ada"), "only one of"),
        (("--wrong", "F", "ada"), "unrecognized option"),
    ],
)
def test_wrong_usage(path, args, message):
    done = passwd(*[path if arg == "F" else arg for arg in args], password="x")
    assert done.returncode == 2 and message in done.stderr
    assert not path.exists()


def test_what_cannot_be_done(path):
    done = passwd(path, "ada", password="password")
    assert done.returncode == 1 and "there is no such file: create it with -c" in done.stderr
    path.write_text("ada:x\n")
    done = passwd("-c", path, "ada", password="password")
    assert done.returncode == 1 and "exists already: leave out -c" in done.stderr
    for password, message in (("", "empty"), ("a\tb", "control character"), ("x" * 512, "at most 511 bytes")):
        done = passwd(path, "ada", password=password)
        assert done.returncode == 1 and message in done.stderr
    done = passwd("-t", "bcrypt", path, "ada", password="x" * 73)
    assert done.returncode == 1 and "72 bytes" in done.stderr
    done = passwd(path, "ada")
    assert done.returncode == 1 and "there is no password in the standard input" in done.stderr
    done = passwd("-v", path, "ada", password="x")
    assert done.returncode == 1 and "plain text" in done.stderr
    done = passwd(*CHEAP, path.parent, "ada", password="password")
    assert done.returncode == 1 and "not a regular file" in done.stderr
    assert path.read_text() == "ada:x\n"


def test_a_link_that_leads_nowhere(path, tmp_path):
    path.symlink_to("missing")
    for args in (("-c", *CHEAP), CHEAP, ("-D",), ("-v",)):
        done = passwd(*args, path, "ada", password="long password")
        assert done.returncode == 1, args
        assert f"{path}: this is a link to a file that does not exist: remove the link, or name the file" in done.stderr
    assert os.listdir(tmp_path) == ["users"]


def test_a_temporary_file_that_was_left(path):
    """Of a process with the same number, which was killed."""
    path.write_text("ada:x\n")
    script = 'echo old > ".users.$$"; exec "$@"'
    command = ["sh", "-c", script, "sh", PROGRAM, *CHEAP, path, "bob"]
    done = subprocess.run(command, input="password\n", capture_output=True, text=True, timeout=60, cwd=path.parent)
    left = next(name for name in os.listdir(path.parent) if name != "users")
    assert done.returncode == 1 and re.fullmatch(r"\.users\.\d+", left)
    assert f"the temporary file {left} of a mk_passwd that was killed is in the folder: remove it" in done.stderr
    assert path.read_text() == "ada:x\n" and (path.parent / left).read_text() == "old\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can become another user")
def test_a_folder_that_cannot_be_written():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # the folders of pytest are only for root
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "users"
        path.write_text("ada:x\n")
        os.chown(path, 65534, 65534)
        program = shutil.copy(PROGRAM, folder)
        done = subprocess.run(
            [program, *CHEAP, path, "bob"], input="password\n", capture_output=True, text=True, timeout=60,
            user=65534, group=65534, extra_groups=[],
        )  # fmt: skip
        assert (done.returncode, path.read_text()) == (1, "ada:x\n")
        assert f"{path}: this user cannot write to the folder of the file; nothing was changed" in done.stderr


def test_a_file_that_others_can_read(path):
    """The mode is kept, and a warning names it."""
    path.write_text("bob:x\n")
    for mode in (0o644, 0o640, 0o604, 0o600):
        path.chmod(mode)
        for args in ((*CHEAP, path, "ada"), ("-D", path, "ada")):
            done = passwd(*args, password="long password")
            warned = f"mk_passwd: warning: {path}: all users of the machine can read the hashes" in done.stderr
            assert (done.returncode, warned) == (0, mode in (0o644, 0o604)), (oct(mode), done.stderr)
            assert stat.S_IMODE(path.stat().st_mode) == mode


def test_help():
    done = passwd("--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: mk_passwd") and not done.stderr


def test_other_lines_stay(path):
    path.write_text("# users\n\nold:plain\nada:x:Ada L.\nzoe:y")
    assert passwd(*CHEAP, path, "ada", password="password").returncode == 0
    assert re.fullmatch(r"# users\n\nold:plain\nada:\$2b\$04\$.{53}:Ada L\.\nzoe:y\n", path.read_text())


def test_mode_owner_and_links(path, tmp_path):
    path.write_text("ada:x\n")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    link = tmp_path / "link"
    link.symlink_to("users")
    inode = path.stat().st_ino
    assert passwd(*CHEAP, link, "ada", password="password").returncode == 0
    now = path.stat()
    assert link.is_symlink() and now.st_ino != inode and stat.S_IMODE(now.st_mode) == 0o640
    if os.geteuid() == 0:
        assert (now.st_uid, now.st_gid) == (1234, 4321)


def test_a_weak_password_is_warned_of(path):
    done = passwd("-c", *CHEAP, path, "ada", password="short")
    assert done.returncode == 0 and "less than 8 bytes" in done.stderr


def test_many_at_once(path):
    """No change is lost."""
    path.touch()
    users = [f"user{n}" for n in range(12)]
    done = []
    threads = [
        threading.Thread(target=lambda name=name: done.append(passwd(*CHEAP, path, name, password="password")))
        for name in users
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.returncode for one in done] == [0] * 12
    assert sorted(names(path)) == sorted(users)
    assert os.listdir(path.parent) == ["users"]


def type_at(answers, *args):
    """Runs it at a terminal; `answers` are typed at each question. Returns its exit code and what was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a run in the background ignores it
        os.execv(PROGRAM, [str(PROGRAM), *map(str, args)])
    shown = b""
    for n, answer in enumerate(answers):
        while shown.count(b": ") < n + 1:
            shown += os.read(terminal, 1000)
        os.write(terminal, answer)
    try:
        while data := os.read(terminal, 1000):
            shown += data
    except OSError:  # the end of a terminal
        pass
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    return status, shown.decode()


def test_a_terminal(path):
    status, shown = type_at([b"from a tty\n", b"from a tty\n"], "-c", *CHEAP, path, "ada")
    assert os.waitstatus_to_exitcode(status) == 0
    assert "Password: " in shown and "Again: " in shown and "from a tty" not in shown
    assert passwd("-v", path, "ada", password="from a tty").returncode == 0
    before = path.read_text()
    status, shown = type_at([b"from a tty\n", b"from another\n"], *CHEAP, path, "ada")
    assert os.waitstatus_to_exitcode(status) == 1 and "not the same" in shown
    assert path.read_text() == before
    status, shown = type_at([b"from a tty\n"], "-v", path, "ada")
    assert os.waitstatus_to_exitcode(status) == 0 and "the password is right" in shown


def test_an_interrupt_at_a_terminal(path):
    """The echo is on again, and the program has ended by the signal."""
    status, shown = type_at([b"from\x03"], "-c", *CHEAP, path, "ada")
    assert os.WIFSIGNALED(status) and not path.exists()
