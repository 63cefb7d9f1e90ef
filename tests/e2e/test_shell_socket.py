# SPDX-License-Identifier: Apache-2.0
"""The socket of shells: where it may be, as a check and a start see it; a reload that adds, moves or removes the
section, and upgrades in between."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

from harness import build
from harness.content import populate
from harness.server import Server, await_true, run, section, write_config
from test_shell import Shell, end, process_of

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "cheetah.so").exists(), reason="the preset has no plugin cheetah"),
]
CONF = "plugins/cheetah/cheetah.conf"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def conf_of(path):
    return {CONF: section("CHEETAH", {"Listen": path})}


# ── the place ──


def make_long(folder, count):
    """A path of so many bytes."""
    name = str(folder) + "/"
    return name + "s" * (count - len(name))


def make_dead(folder):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{folder}/s")
    return f"{folder}/s"


PLACES = {  # the path, and what the check says; None: nothing
    "a folder": (lambda folder: f"{folder}/s", None),
    "107 bytes": (lambda folder: make_long(folder, 107), None),
    "108 bytes": (lambda folder: make_long(folder, 108), "the path of a Unix socket has at most 107 bytes here"),
    "a dead socket": (make_dead, None),
    "no folder": (lambda folder: f"{folder}/none/s", "cannot listen at {path}: No such file or directory"),
    "a file as a folder": (lambda folder: f"{folder}/file/s", "cannot listen at {path}: Not a directory"),
    "a file": (lambda folder: f"{folder}/file", "{path} exists, and is not a socket"),
    "the folder itself": (lambda folder: folder, "{path} exists, and is not a socket"),
    "a link to nowhere": (lambda folder: f"{folder}/link", "{path} exists, and is not a socket"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_check_and_a_start_see_the_place_alike(tmp_path, site_root, open_folder, place):
    """With the line; and the check changes nothing."""
    make, error = PLACES[place]
    populate(open_folder, {"file": b"precious"})
    (open_folder / "link").symlink_to("nowhere")
    path = make(open_folder)
    folder = write_config(tmp_path / "conf", site_root, files=conf_of(path))
    before = sorted(os.listdir(open_folder))
    checked = run("-t", "-c", folder)
    assert sorted(os.listdir(open_folder)) == before
    assert (checked.returncode == 0) == (error is None), checked.stderr
    if error:
        started = run("-c", folder)
        sentence = error.format(path=path)
        for done in (checked, started):
            assert f"{CONF}:2:" in done.stderr and sentence in done.stderr, done.stderr
        assert started.returncode


@needs_root
def test_a_check_by_a_user_that_may_not_write_there(open_folder):
    """The user that starts the server makes the socket."""
    place = open_folder / "place"
    place.mkdir(mode=0o755)
    path = place / "s"
    folder = write_config(open_folder / "conf", open_folder, files=conf_of(path))
    done = run("-t", "-c", folder, user=65534, group=65534, extra_groups=[])
    assert f"cannot listen at {path}: Permission denied" in done.stderr and done.returncode, done.stderr
    assert run("-t", "-c", folder).returncode == 0
    with socket.socket(socket.AF_UNIX) as other:  # that of a server which root has started
        other.bind(str(path))
        assert run("-t", "-c", folder, user=65534, group=65534, extra_groups=[]).returncode == 0
    path.unlink()
    place.chmod(0o777)
    assert run("-t", "-c", folder, user=65534, group=65534, extra_groups=[]).returncode == 0


# ── reloads and upgrades ──


def write(server, path):
    """Changes the section and reloads; None: there is none."""
    conf = server.conf / CONF
    conf.parent.mkdir(parents=True, exist_ok=True)
    if path:
        conf.write_text(section("CHEETAH", {"Listen": path}))
    else:
        conf.unlink()
    count = server.log.count("the new configuration is in use")
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use", count + 1)


def is_removed(path):
    with pytest.raises((FileNotFoundError, ConnectionRefusedError)):
        Shell(path)
    return not path.exists()


def test_a_section_that_comes_moves_and_goes(serve, tmp_path):
    """As often as it likes; and shells that are connected are ended with a sentence when it goes."""
    server = serve({"Workers": 2})
    one, two = tmp_path / "one", tmp_path / "two"
    write(server, one)
    server.baseline = server.descriptors()
    for _ in range(5):
        assert process_of(one) == server.pid
        with Shell(one) as shell:
            write(server, two)
            assert shell.ask("uptime"), "it stays connected"
        await_true(lambda: is_removed(one))
        with Shell(two) as shell:
            write(server, None)
            with contextlib.suppress(ConnectionError):
                shell.send("uptime")
                assert "does not permit shells any more" in shell.answer()[1]["error"]
        await_true(lambda: is_removed(two))
        write(server, one)
    assert process_of(one) == server.pid
    write(server, None)


@pytest.mark.parametrize("kinds", ["add", "add move", "add remove add", "move", "move remove"])
def test_upgrades_after_reloads(serve, tmp_path, kinds):
    """The next process has the sockets of the configuration in use, and removes them at its end."""
    one, two = tmp_path / "one", tmp_path / "two"
    first = {} if kinds.startswith("add") else {"config": conf_of(one)}
    server = serve({"Workers": 2}, **first)
    at = first and one
    for kind in kinds.split():
        at = {"add": one, "move": two, "remove": None}[kind]
        write(server, at)
    server.send_signal(signal.SIGUSR2)
    now = int(server.wait_log(r"upgrade: process (\d+) serves")[-1][1])
    try:
        await_true(lambda: not server.alive, 60, "the end of the former process")
        if at:
            assert process_of(at) == now
        for path in {one, two} - {at}:
            assert is_removed(path)
    finally:
        end(now)
    server.wait()
    assert is_removed(one) and is_removed(two)


@needs_root
def test_a_path_of_root_after_the_rights_were_given_up(open_folder):
    """It stays over reloads and upgrades; a reload cannot move it to a folder of root."""
    place = open_folder / "place"
    place.mkdir(mode=0o755)
    path = place / "s"
    folder = write_config(open_folder / "conf", open_folder, {"User": "nobody"}, files=conf_of(path))
    server = Server("-c", folder, program=build.for_others())
    server.conf = folder
    write(server, path)
    assert process_of(path) == server.pid
    (folder / CONF).write_text(section("CHEETAH", {"Listen": place / "other"}))
    server.send_signal(signal.SIGHUP)
    server.wait_log(f"cannot listen at {place}/other: Permission denied")
    assert process_of(path) == server.pid
    write(server, path)
    server.send_signal(signal.SIGUSR2)
    now = int(server.wait_log(r"upgrade: process (\d+) serves")[-1][1])
    try:
        await_true(lambda: not server.alive, 60, "the end of the former process")
        assert process_of(path) == now
    finally:
        end(now)
    server.wait()


# ── without a section ──


@pytest.fixture
def run_folder(open_folder):
    folder = open_folder / "run"
    folder.mkdir(mode=0o755)
    return folder


def answers(server):
    with server.connect() as client:
        return client.ask("/hello.txt").status == 200


def start_in(run_folder, serve, **rest):
    return serve({"Workers": 1}, env={"RUNTIME_DIRECTORY": f"{run_folder}:/none"}, **rest)


def test_a_server_with_a_folder_for_sockets_has_one(serve, run_folder):
    server = start_in(run_folder, serve)
    path = run_folder / "shell.sock"
    assert process_of(path) == server.pid and path.stat().st_mode & 0o777 == 0o600
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    assert process_of(path) == server.pid
    server.stop()
    assert not path.exists()


@pytest.mark.parametrize("folder", ["", "relative"])
def test_no_folder_for_sockets(serve, folder):
    server = serve({"Workers": 1}, env={"RUNTIME_DIRECTORY": folder})
    assert "shells connect at" not in server.log
    assert "cheetah" not in pathlib.Path(f"/proc/{server.pid}/maps").read_text()


def test_a_section_of_its_own(serve, run_folder, tmp_path):
    """Its Listen is used; it may come with a reload, and go."""
    server = start_in(run_folder, serve)
    write(server, tmp_path / "s")
    server.baseline = server.descriptors()
    assert process_of(tmp_path / "s") == server.pid
    await_true(lambda: is_removed(run_folder / "shell.sock"))
    write(server, None)
    assert process_of(run_folder / "shell.sock") == server.pid


def test_two_servers_with_one_folder(serve, run_folder):
    """The second one serves without a socket, and takes the place of the first with a reload."""
    first, second = start_in(run_folder, serve), start_in(run_folder, serve)
    path = run_folder / "shell.sock"
    second.wait_log(rf"no socket for shells: another server \(process {first.pid}\) uses the socket {path}")
    assert process_of(path) == first.pid and answers(second)
    checked = run("-t", "-c", second.conf, env={**build.environment(), "RUNTIME_DIRECTORY": str(run_folder)})
    assert checked.returncode == 0, checked.stderr
    first.stop()
    second.send_signal(signal.SIGHUP)
    second.wait_log("the new configuration is in use")
    assert process_of(path) == second.pid
    second.baseline = second.descriptors()


def test_a_dead_socket_in_the_folder(serve, run_folder):
    make_dead(run_folder)
    (run_folder / "s").rename(run_folder / "shell.sock")
    server = start_in(run_folder, serve)
    assert process_of(run_folder / "shell.sock") == server.pid


@pytest.mark.parametrize("make", [lambda path: path.write_text("a file"), lambda path: path.parent.rmdir()])
def test_a_folder_that_cannot_have_the_socket(serve, run_folder, make):
    make(run_folder / "shell.sock")
    server = start_in(run_folder, serve)
    server.wait_log("there is no socket for shells: .*shell.sock")
    assert answers(server)


@needs_root
def test_a_folder_of_root_after_the_rights_were_given_up(open_folder, run_folder):
    """Reloads and an upgrade keep the socket."""
    path = run_folder / "shell.sock"
    conf = write_config(open_folder / "conf", open_folder, {"User": "nobody"})
    server = Server("-c", conf, program=build.for_others(), env={"RUNTIME_DIRECTORY": run_folder})
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    assert process_of(path) == server.pid
    server.send_signal(signal.SIGUSR2)
    now = int(server.wait_log(r"upgrade: process (\d+) serves")[-1][1])
    try:
        await_true(lambda: not server.alive, 60, "the end of the former process")
        assert process_of(path) == now
    finally:
        end(now)
    server.wait()


# The program finds /run/monkey, and the shell of root the socket in it, though it belongs to another user.
IN_RUN = """
mount -t tmpfs none /run && unset RUNTIME_DIRECTORY && eval "$3"
"$0" -c "$1" 2>/run/log & server=$!
until [ -S $2 ] || ! kill -0 $server; do sleep 0.05; done
"$0" shell uptime; code=$?
kill $server; wait $server; cat /run/log
exit $code
"""


def run_in_namespace(program, conf, path, before):
    """Runs the server with a /run of its own, and the shell once the socket at `path` is there."""
    command = ["unshare", "-m", "sh", "-c", IN_RUN, program, conf, path, before]
    return subprocess.run(command, env=build.environment(), capture_output=True, text=True, timeout=60)


@needs_root
@pytest.mark.parametrize("before, path", [
    ("mkdir /run/monkey", "/run/monkey/shell.sock"),
    ("true", "/run/monkey-shell.sock"),
    ("true > /run/monkey", "/run/monkey-shell.sock"),
    ("mkdir /run/own; export RUNTIME_DIRECTORY=/run/own", "/run/own/shell.sock"),
])
def test_the_folder_of_a_system(site_root, tmp_path, before, path):
    files = conf_of(path) if path == "/run/monkey-shell.sock" else None
    conf = write_config(tmp_path / "conf", site_root, {"Workers": 1}, files=files)
    done = run_in_namespace(build.binary(), conf, path, before)
    assert done.returncode == 0 and done.stdout.startswith("uptime  "), done


@needs_root
def test_the_shell_passes_dead_sockets(site_root, tmp_path):
    """A folder that an older installation has left does not hide the server."""
    conf = write_config(tmp_path / "conf", site_root, {"Workers": 1}, files=conf_of("/run/monkey-shell.sock"))
    dead = "import socket; socket.socket(socket.AF_UNIX).bind('/run/monkey/shell.sock')"
    before = f'mkdir /run/monkey && {sys.executable} -c "{dead}"'
    done = run_in_namespace(build.binary(), conf, "/run/monkey-shell.sock", before)
    assert done.returncode == 0 and done.stdout.startswith("uptime  "), done


@needs_root
@pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="the preset has no plugin fastcgi")
def test_programs_that_are_spawned_have_another_folder(site_root, tmp_path):
    """/run/monkey is root's; the sockets of programs are made after its rights were given up."""
    spawned = section("FASTCGI", {"Match": "*.php", "Spawn": "/bin/cat", "Children": 1})
    files = {"sites/default": f"[HOST]\n    Root {site_root}\n{spawned}"}
    conf = write_config(tmp_path / "conf", site_root, {"Workers": 1, "User": "nobody"}, files=files)
    done = run_in_namespace(build.for_others(), conf, "/run/monkey/shell.sock", "mkdir /run/monkey")
    assert done.returncode == 0 and "cannot listen" not in done.stdout, done
