# SPDX-License-Identifier: Apache-2.0
"""What a script can read of the processes of the server, whose user it has, and what rights it gets."""

import os
import pathlib
import pwd
import re
import shutil
import signal

import pytest

from harness import build
from harness.content import HELLO, populate
from harness.scripts import PYTHON, cgi_section, starters, write_scripts
from harness.server import Server, write_config

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can become another user"),
    pytest.mark.skipif(not shutil.which("setpriv"), reason="NOT TESTED: there is no setpriv here"),
    pytest.mark.single_protocol,
]
USER = "nobody"
# as a service manager starts it: without root, with a capability that its programs would inherit
AS_USER = ["setpriv", f"--reuid={USER}", "--regid=nogroup", "--clear-groups",
           "--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"]  # fmt: skip
AS_ROOT = []
# the leak checker would attach to the process
NO_LEAKS = {"ASAN_OPTIONS": "exitcode=97:detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
FILES = ["mem", "environ", "maps", "fd", "cwd", "auxv"]
# Tries the files of each process above it, and prints what it is itself.
PROBE = f"""#!{PYTHON}
import os
def read(path):
    return os.listdir(path) if path.endswith("fd") else os.readlink(path) if path.endswith("cwd") else open(path, "rb")
print("Content-Type: text/plain\\n")
pid = os.getppid()
while pid > 1:
    fields = open(f"/proc/{{pid}}/stat").read()
    if "(monkey" not in fields:
        break
    for name in {FILES}:
        try:
            read(f"/proc/{{pid}}/{{name}}")
            print("read", pid, name)
        except OSError:
            print("refused", pid, name)
    pid = int(fields.rpartition(")")[2].split()[1])
print(open("/proc/self/status").read())
print("session", os.getsid(0) == os.getpid())
print("descriptors", sorted(map(int, os.listdir("/proc/self/fd")))[:-1])
"""


@pytest.fixture
def start(tmp_path):
    servers = []
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o755)

    def run_server(settings=None, *args, wrapper=AS_USER):
        root = populate(tmp_path / "root", {"hello.txt": HELLO})
        scripts = write_scripts(tmp_path / "scripts", {"probe": PROBE})
        conf = write_config(tmp_path / "conf", root, settings, text=cgi_section(scripts))
        servers.append(Server("-c", conf, *args, wrapper=wrapper, env=NO_LEAKS, program=build.for_others()))
        return servers[-1]

    yield run_server
    for server in servers:
        if not server.finished:
            server.stop()


def probe(server):
    response = server.connect().ask("/cgi/probe")
    assert response.status == 200
    return response.body.decode()


def tried(text, word):
    return re.findall(rf"^{word} (\d+) (\w+)$", text, re.M)


@pytest.mark.parametrize("args, processes", [((), 2), (("--supervise",), 3)], ids=["server", "supervisor"])
@pytest.mark.parametrize("user", [None, USER], ids=["user", "root-and-user"])
def test_memory_is_closed(start, args, processes, user):
    """Of the starter, the server and the supervisor; whether the server was started by root, or not."""
    server = start({"User": user, "CoreDumps": None}, *args, wrapper=AS_ROOT if user else AS_USER)
    text = probe(server)
    assert not tried(text, "read")
    assert len(tried(text, "refused")) == processes * len(FILES)


@pytest.mark.parametrize("user", [None, USER], ids=["user", "root-and-user"])
def test_core_dumps_open_it(start, user):
    """Of the server alone, and as far as the kernel lets a program that has fewer capabilities."""
    server = start({"User": user, "CoreDumps": "On"}, wrapper=AS_ROOT if user else AS_USER)
    text = probe(server)
    assert {pid for pid, _ in tried(text, "read")} == {str(server.pid)}
    assert len(tried(text, "read")) == len(FILES) or not user
    assert set(map(str, starters(server))) <= {pid for pid, _ in tried(text, "refused")}


def is_open(pid):
    """Files of a process that may be dumped belong to its user, others to root."""
    return os.stat(f"/proc/{pid}/mem").st_uid == pwd.getpwnam(USER).pw_uid


def test_reload_decides_anew(start):
    server = start({"CoreDumps": None})
    file = pathlib.Path(server.conf) / "monkey.conf"
    text = file.read_text()
    for count, (keys, wanted) in enumerate((("    CoreDumps On\n", True), ("", False)), 1):
        file.write_text(text + keys)
        server.send_signal(signal.SIGHUP)
        server.wait_log("the new configuration is in use", count)
        assert is_open(server.pid) == wanted


def test_next_server_is_closed(start):
    """One that a supervisor starts after a crash, and one after an upgrade."""
    server = start({}, "--supervise")
    for number, count in ((signal.SIGKILL, 2), (signal.SIGUSR2, 3)):
        serving = int(server.wait_log(r"supervisor: process (\d+) serves", count - 1)[-1][1])
        os.kill(serving if number == signal.SIGKILL else server.pid, number)
        serving = int(server.wait_log(r"supervisor: process (\d+) serves", count)[-1][1])
        assert not is_open(serving) and not is_open(server.pid)


@pytest.mark.parametrize("wrapper", [AS_USER, AS_ROOT], ids=["user", "root"])
def test_rights_of_a_script(start, wrapper):
    """No capability, whatever the server has; its own session; three descriptors."""
    text = probe(start(wrapper=wrapper))
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(re.search(rf"^{name}:\t(\w+)$", text, re.M)[1], 16) == 0, name
    assert "\nNoNewPrivs:\t1\n" in text
    assert "\nsession True\ndescriptors [0, 1, 2]\n" in text


def test_server_keeps_its_capability(start):
    """What its programs do not get."""
    server = start()
    probe(server)
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    assert int(re.search(r"^CapEff:\t(\w+)$", status, re.M)[1], 16) != 0
