# SPDX-License-Identifier: Apache-2.0
"""Servers as data: their files, what they are started with, and how they start, fail and end."""

import http.server
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import types

import pytest
from processes import BUILD
from harness.server import await_true, is_alive
from watch_resources import builds, data, environment, measure, servers, workloads
from watch_resources.checks import check_answers
from watch_resources.data import Problem
from watch_resources.generators import WrLoad
from watch_resources.proc import list_family

NAMES = data.list_names("servers")
MONKEY = BUILD / "monkey"
WORKLOADS = {name: workloads.load_workload(name) for name in data.list_names("workloads")}
# Those that differ in what the servers have to do.
DIFFERENT = "W1", "W1L", "W3z", "W4", "W5", "W7", "W8", "W8b", "W9", "W9b", "W9m", "W9s", "W9t"
DIFFERENT += "S1", "S1t", "S1s", "S2", "S2t", "S2b", "S3", "S4", "P1", "P2", "P3", "P4", "P5", "P6", "F1", "F1c"
FETCHED = "actix", "ioredis", "node-sqlite"  # what they need is fetched, where the network permits it
SERVER = """
name = "own"
text = "own"
programs = ["python3"]
command = ["@program@", "@folder@/server.py", "@port@"]
[config]
"server.py" = '''
import signal, socket, subprocess, sys, time
@code@
'''
[values]
code = "CODE"
"""
LISTEN = "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))"


@pytest.fixture(scope="module")
def root():
    """Readable for the users that servers change to, which pytest's folders are not."""
    with tempfile.TemporaryDirectory(prefix="wr-test-") as folder:
        os.chmod(folder, 0o755)
        environment.make_files(folder, 10_000)
        yield folder


@pytest.fixture
def work():
    with tempfile.TemporaryDirectory(prefix="wr-test-") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.fixture(autouse=True)
def own_program(monkeypatch):
    monkeypatch.setattr(servers, "SYSTEM_PATH", servers.SYSTEM_PATH + ":" + os.path.dirname(sys.executable))
    monkeypatch.setattr(servers, "PLACES", (MONKEY.parent,))  # also of backends: there may be no release


def make_own(tmp_path, root, code):
    path = tmp_path / "own.toml"
    path.write_text(SERVER.replace("CODE", code.replace('"', "'").replace("\n", "\\n")))
    return servers.Server(servers.parse_choice(str(path)), tmp_path / "own", root)


@pytest.mark.parametrize("name", NAMES)
def test_files_are_valid(name):
    kind = servers.load_kind(name)
    assert kind.name == name and kind.limit == name.startswith("limit-")


@pytest.mark.parametrize("name", data.list_names("workloads"))
def test_workloads_are_valid(name):
    assert WORKLOADS[name].name == name and name in workloads.choose_defaults([name])["workloads"]
    assert sum(name in each["workloads"] for each in workloads.read_defaults()) == 1


@pytest.fixture(scope="module")
def build_server(tmp_path_factory):
    """Builds what a server is made of, once for all workloads: {its key: Built}."""
    built, folder = {}, tmp_path_factory.mktemp("built")
    os.chmod(folder, 0o755)

    def build(choice):
        key = choice.build_key()
        if choice.is_built() and key not in built:
            built.update(builds.build_all([choice], folder / str(len(built))))
        if choice.kind.name in FETCHED and isinstance(built.get(key), Problem):
            pytest.skip(str(built[key]))
        return built

    yield build
    shutil.rmtree(folder)


def choose(name):
    return servers.parse_choice(f"{name}={MONKEY}" if name == "monkey" else name)


def list_answers():
    """The workloads of each server that is installed, and one row for each that is not. Those of others are slow but
    for each third, which is another one for the next server."""
    for number, name in enumerate([*(name for name in NAMES if name[:6] != "limit-"), "nginx+cache"]):
        choice = choose(name)
        marks = [pytest.mark.slow] * (name in FETCHED)  # building what is fetched takes more than all other tests
        if not choice.program:
            yield pytest.param(name, "", marks=[*marks, pytest.mark.skip(f"{name} is not installed")])
            continue
        for turn, workload in enumerate(DIFFERENT, number):
            if not choice.kind.lacks(WORKLOADS[workload]):
                is_left_out = name != "monkey" and turn % 3 > 0  # of the normal run
                yield pytest.param(name, workload, marks=marks or [pytest.mark.slow] * is_left_out)


@pytest.mark.parametrize("name, workload", list_answers())
def test_server_answers(work, root, build_server, name, workload):
    workload, choice = WORKLOADS[workload], choose(name)
    choice = choice.for_workload(workload)
    server = servers.Server(choice, work / name, root, built=build_server(choice))
    server.start()
    try:
        check_answers(workload, server)
        assert any(letter.isdigit() for letter in server.version())
    finally:
        server.stop()
    assert not is_alive(server.pid)


def test_names_of_the_command_line(tmp_path):
    program = tmp_path / "monkey"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    choice = servers.parse_choice(f"base+log={program}")
    assert (choice.label, choice.kind.name, choice.variants, choice.program) == (
        "base+log", "monkey", ("log",), str(program))  # fmt: skip
    assert servers.parse_choice(f"nginx={program}").kind.name == "nginx"
    assert choice.with_variants(["tls", "log"]).label == "base+log+tls"


@pytest.mark.parametrize(
    "text, message",
    [
        ("ngnix", "there is no server ngnix: do you mean nginx"),
        ("nginx+tsl", r"nginx has no variant \+tsl; do you mean tls"),
        ("monkey=/no/such", "/no/such is no program"),
        ("base=/bin/true", "there is no server true"),
    ],
)
def test_mistakes_of_the_command_line(text, message):
    with pytest.raises(Problem, match=message):
        servers.parse_choice(text)


def test_placeholders_are_checked(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(SERVER.replace("@code@", "@cod@"))
    with pytest.raises(Problem, match=r"own.toml:7: config.server.py: @cod@ is no placeholder; do you mean code\?"):
        servers.load_kind(str(path))
    path.write_text(SERVER + '[variants.tls.values]\ncoed = ""\n')
    with pytest.raises(Problem, match=r"own.toml:14: variants.tls.values.coed: \[values\] has no such name"):
        servers.load_kind(str(path))


def test_a_server_that_is_not_installed():
    choice = servers.Choice("nginx", servers.load_kind("nginx"), (), "")
    with pytest.raises(Problem, match="nginx is not installed: install the Debian package nginx-light"):
        servers.Server(choice, "folder", "root")


def test_a_server_that_ends_at_once(tmp_path, root):
    server = make_own(tmp_path, root, 'print("bad luck", flush=True); sys.exit(3)')
    with pytest.raises(Problem, match=r"(?s)own does not start: it ended with status 3; .*server.py.*\n  bad luck"):
        server.start()


def test_a_server_that_does_not_listen(tmp_path, root, monkeypatch):
    monkeypatch.setattr(servers, "START_SECONDS", 0.5)
    server = make_own(tmp_path, root, "time.sleep(60)")
    with pytest.raises(Problem, match="own does not start: no answer on port"):
        server.start()
    assert not is_alive(server.pid)


def test_a_server_that_dies(tmp_path, root):
    server = make_own(tmp_path, root, f'print("ready", flush=True); {LISTEN}; time.sleep(60)')
    server.start()
    server.check_health()
    os.kill(server.pid, signal.SIGSEGV)
    server.process.wait(60)
    with pytest.raises(Problem, match=r"(?s)own died: signal SIGSEGV; .*\n  ready"):
        server.check_health()
    server.stop()


def test_workers_end_with_a_server_that_does_not_care(tmp_path, root, monkeypatch):
    """It ignores SIGTERM, and so does a process that it has started."""
    monkeypatch.setattr(servers, "STOP_SECONDS", 0.3)
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    child = "p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); "
    server = make_own(tmp_path, root, ignore + child + LISTEN + "; time.sleep(60)")
    server.start()
    worker = int(server.last_output()[0])
    assert is_alive(worker)
    server.stop()
    end = time.monotonic() + 60
    while is_alive(worker) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(worker) and not is_alive(server.pid)


def test_a_server_ends_with_its_parent(tmp_path, root):
    pid_file, path = tmp_path / "pid", tmp_path / "own.toml"
    path.write_text(SERVER.replace("CODE", LISTEN + "; time.sleep(60)"))
    child = os.fork()
    if child == 0:
        server = servers.Server(servers.parse_choice(str(path)), tmp_path / "own", root)
        server.start()
        pid_file.write_text(str(server.pid))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    end = time.monotonic() + 60
    while is_alive(int(pid_file.read_text())) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(int(pid_file.read_text()))


def test_a_wrong_answer_is_reported(tmp_path, root):
    server = make_own(tmp_path, root, "")
    server.texts["server.py"] = (
        "import socket, sys\n" + LISTEN + "\nwhile True:\n  c = s.accept()[0]; c.recv(9999)\n"
        "  c.send(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nhi'); c.close()\n"
    )
    server.start()
    try:
        message = r"own answers W1 /13.txt with HTTP/1.1, status 200, 2 bytes.* instead of .*13 bytes"
        with pytest.raises(Problem, match=message):
            check_answers(WORKLOADS["W1"], server)
    finally:
        server.stop()


def test_a_connection_that_is_not_kept_is_reported(tmp_path, root):
    server = make_own(tmp_path, root, "")
    server.texts["server.py"] = (
        "import socket, sys\n" + LISTEN + "\nwhile True:\n  c = s.accept()[0]; c.recv(9999)\n"
        "  c.send(b'HTTP/1.1 200 OK\\r\\nContent-Length: 13\\r\\nConnection: close\\r\\n\\r\\nHello, World\\n');"
        " c.close()\n"
    )
    server.start()
    try:
        check_answers(WORKLOADS["W2"], server)
        with pytest.raises(Problem, match="own closes the connection after an answer to W1, which is to be kept"):
            check_answers(WORKLOADS["W1"], server)
    finally:
        server.stop()


def test_one_cpu_is_reported(monkeypatch):
    assert environment.choose_cpus([3], share=True) == (3, 3)
    with pytest.raises(Problem, match="this machine gives wr one CPU"):
        environment.choose_cpus([3])
    monkeypatch.setattr(environment, "read_siblings", lambda cpu: {0: {0, 1}, 2: {2, 3}}.get(cpu, {cpu}))
    assert environment.choose_cpus([0, 1, 2, 3]) == (0, 2)
    assert environment.choose_cpus([0, 1]) == (0, 1)


BUILT = """
name = "own"
text = "own"
programs = ["sh"]
needs = [NEEDS]
command = ["@built@/made", "@port@"]
build = ["@program@", "-c", "COMMAND"]
compiler = ["sh", "-c", "echo sh 7.5"]
[values]
text = "made"
[variants.log.values]
text = "logs"
[variants.tls]
build = ["sh", "-c", "exit 4"]
"""


def make_built(tmp_path, command, variants="", needs=""):
    path = tmp_path / "own.toml"
    path.write_text(BUILT.replace("COMMAND", command).replace("NEEDS", needs))
    return servers.parse_choice(f"{path}{variants}")


def test_a_server_is_built_once(tmp_path):
    log = tmp_path / "log"
    choices = [make_built(tmp_path, f"echo @text@ >> {log}; echo '#!/bin/sh' > @built@/made") for _ in range(2)]
    said = []
    built = builds.build_all(choices, str(tmp_path / "built"), said.append)
    assert log.read_text() == "made\n"
    assert len(said) == 1 and said[0].startswith("building own: ") and f"echo made >> {log}" in said[0]
    server = servers.Server(choices[0], tmp_path / "server", tmp_path, built=built)
    assert pathlib.Path(server.command[0]).read_text() == "#!/bin/sh\n"
    line = server.line()
    assert line["compiler"] == "sh 7.5" and line["build"][:2] == [choices[0].program, "-c"]
    server = servers.Server(choices[0], tmp_path / "alone", tmp_path)
    assert log.read_text() == "made\nmade\n" and server.command[0] == str(tmp_path / "alone" / "built" / "made")


def test_a_build_that_fails(tmp_path):
    choice = make_built(tmp_path, "echo expected a semicolon; exit 3")
    built = builds.build_all([choice], str(tmp_path / "built"))
    message = r"(?s)own cannot be built: .*sh -c .* ended with status 3; its last output:\n  expected a semicolon"
    with pytest.raises(Problem, match=message):
        servers.Server(choice, tmp_path / "server", tmp_path, built=built)


def test_a_build_without_its_compiler(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(BUILT.replace("NEEDS", "").replace('"@program@", "-c"', '"no-such-compiler"'))
    with pytest.raises(Problem, match="own cannot be built: no-such-compiler COMMAND: No such file or directory"):
        servers.Server(servers.parse_choice(str(path)), tmp_path / "server", tmp_path)


def test_a_build_that_takes_too_long(tmp_path, monkeypatch):
    """What it has started ends, too."""
    monkeypatch.setattr(builds, "BUILD_SECONDS", 3)
    choice = make_built(tmp_path, f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    with pytest.raises(Problem, match="own cannot be built: .* it did not end within 3 s"):
        servers.Server(choice, tmp_path / "server", tmp_path)
    await_true(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_a_variant_has_a_build_of_its_own(tmp_path):
    choice = make_built(tmp_path, "true").with_variants(["tls"])
    with pytest.raises(Problem, match="own[+]tls cannot be built: sh -c exit 4"):
        servers.Server(choice, tmp_path / "server", tmp_path)
    assert choice.build_key() != make_built(tmp_path, "true").build_key()


def test_variants_that_change_a_build_are_distinct(tmp_path):
    """They have the same words, but values differ."""
    choice = make_built(tmp_path, "echo @text@ > @built@/made")
    choices = [choice, choice.with_variants(["log"])]
    built = builds.build_all(choices, str(tmp_path / "built"))
    made = [servers.Server(each, tmp_path / each.label, tmp_path, built=built).command[0] for each in choices]
    assert [pathlib.Path(path).read_text() for path in made] == ["made\n", "logs\n"]


def test_a_server_whose_library_is_missing(tmp_path):
    assert make_built(tmp_path, "true", needs=f'"{tmp_path}"').program
    choice = make_built(tmp_path, "true", needs=f'"{tmp_path}/hello.h"')
    with pytest.raises(Problem, match="own is not installed"):
        servers.Server(choice, tmp_path / "server", tmp_path)


def test_names_of_a_build_are_checked(tmp_path):
    with pytest.raises(Problem, match="own.toml:7: build: @builts@ is no placeholder; do you mean built?"):
        make_built(tmp_path, "@builts@")


# ── a backend for each server ──

WITH_BACKEND = SERVER.replace("CODE", LISTEN + "\\ntime.sleep(100)") + """
[variants.proxy.config]
"backend.port" = "@backend@"
"""


def open_conn(port):
    return socket.create_connection(("127.0.0.1", port), 20)


def test_backend_runs_beside_a_server(tmp_path, root):
    path = tmp_path / "own.toml"
    path.write_text(WITH_BACKEND)
    server = servers.Server(servers.parse_choice(str(path)).for_workload(WORKLOADS["P1"]), tmp_path / "own", root)
    assert server.name == "own+proxy"
    server.start()
    try:
        with open_conn(int(pathlib.Path(server.folder, "backend.port").read_text())) as client:
            client.sendall(b"GET /13.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            assert client.recv(1000).endswith(b"\r\n\r\nHello, World\n")
        (pid,) = server.helpers
        assert is_alive(pid)
    finally:
        server.stop()
    assert not is_alive(pid)


def test_four_backends(tmp_path, root):
    path = tmp_path / "own.toml"
    ports = " ".join(f"@{name}@" for name in ("backend", "backend2", "backend3", "backend4"))
    path.write_text(WITH_BACKEND.replace("@backend@", ports) + "[variants.group]\n")
    server = servers.Server(servers.parse_choice(str(path)).for_workload(WORKLOADS["P5"]), tmp_path / "own", root)
    server.start()
    try:
        found = pathlib.Path(server.folder, "backend.port").read_text().split()
        assert len(set(found)) == len(server.helpers) == 4
        for port in found:
            open_conn(int(port)).close()
    finally:
        server.stop()


@pytest.mark.parametrize("name", ["group", "more_backends"])
def test_groups_have_four_backends(tmp_path, name):
    path = tmp_path / "own.toml"
    more = '"limit-memory", "limit-memory", "limit-memory"' if name == "more_backends" else '"limit-memory"'
    variants = '"proxy", "group"' if name == "group" else '"proxy"'
    path.write_text(f'''name = "own"\ntext = "own"\npath = "13.txt"\nclients = 1\nbackend = "limit-memory"
variants = [{variants}]\nmore_backends = [{more}]\n''')
    with pytest.raises(Problem, match="have three more backends"):
        workloads.load_workload(str(path))


@pytest.mark.parametrize("name", ["variants", "backend"])
def test_backend_belongs_to_a_variant(tmp_path, name):
    path = tmp_path / "own.toml"
    text = 'name = "own"\ntext = "own"\npath = "13.txt"\nclients = 1\n'
    path.write_text(text + ('variants = ["proxy"]\n' if name == "variants" else 'backend = "limit-memory"\n'))
    with pytest.raises(Problem, match="have a backend, and all of these"):
        workloads.load_workload(str(path))


def test_limit_server_takes_uploads(work, root):
    """In pieces, with the beginning or all of a body in the read of the head, one after the other."""
    server = servers.Server(servers.parse_choice("limit-upload"), work / "limit", root)
    server.start()
    try:
        with open_conn(server.port) as client:
            for size, together in ((0, 0), (1, 1), (10, 4), (1 << 20, 0), (1 << 20, 5000), (3, 3)):
                name = "Content-Length" if size < 5 else "content-length"  # HAProxy writes it so
                head = f"POST /13.txt HTTP/1.1\r\nHost: a\r\n{name}: {size}\r\n\r\n".encode()
                client.sendall(head + b"x" * together)
                client.sendall(b"x" * (size - together))
                got = b""
                while not got.endswith(b"\r\n\r\nHello, World\n"):
                    got += client.recv(1000) or pytest.fail(f"the connection was closed: {got}")
                assert got.count(b"HTTP/1.1 200 OK") == 1
    finally:
        server.stop()


# ── a Redis server for each server ──

WITH_REDIS = SERVER.replace("CODE", LISTEN + "\\ntime.sleep(100)") + """
[variants.redis.config]
"redis.port" = "@redis@"
"""


@pytest.fixture
def with_redis(tmp_path, root):
    path = tmp_path / "own.toml"
    path.write_text(WITH_REDIS)
    return servers.Server(servers.parse_choice(str(path)).with_variants(["redis"]), tmp_path / "own", root)


@pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is not installed")
def test_redis_runs_beside_a_server(with_redis):
    with_redis.start()
    try:
        port = int(pathlib.Path(with_redis.folder, "redis.port").read_text())
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(b"GET value\r\n")
            assert client.recv(100) == b"$13\r\nHello, world\n\r\n"
        (pid,) = with_redis.helpers
        assert is_alive(pid)
    finally:
        with_redis.stop()
    assert not is_alive(pid)


def test_redis_is_not_installed(with_redis, monkeypatch, root, tmp_path):
    monkeypatch.setattr(servers, "find_program", lambda names: "")
    with pytest.raises(Problem, match="install the Debian package redis-server"):
        servers.Server(with_redis.choice, tmp_path / "other", root)


# ── scripts ──


def test_a_family_has_all_processes(tmp_path, root):
    """The workers of php-fpm take no time of others."""
    path = tmp_path / "own.toml"
    code = "child = subprocess.Popen(['sleep', '100'])\\n" + LISTEN + "\\ntime.sleep(100)"
    path.write_text(SERVER.replace("CODE", code))
    server = servers.Server(servers.parse_choice(str(path)), tmp_path / "own", root)
    server.start()
    try:
        family = list_family(server.pid)
        assert len(family) == 2 and family[0] == server.pid and all(map(is_alive, family))
    finally:
        server.stop()


def test_beside_belongs_to_a_variant(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\ntext = "own"\npath = "13.txt"\nclients = 1\nbeside = 200\n')
    with pytest.raises(Problem, match='started for it: variants = \\["cgi"\\]'):
        workloads.load_workload(str(path))


class Counting(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.paths.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def counting():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        server.paths = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_programs_start_beside_a_round(counting, monkeypatch):
    fake = str(pathlib.Path(__file__).parent / "fake_load.py")
    monkeypatch.setattr(measure, "WrLoad", lambda: WrLoad(fake))
    target = types.SimpleNamespace(port=counting.server_port)
    with measure.load_beside(WORKLOADS["F3"], target, 1) as (pid,):
        await_true(lambda: len(counting.paths) > 3, what="the fourth request")
        assert is_alive(pid)
    assert not is_alive(pid) and set(counting.paths) == {"/cgi-bin/hello"}
    with measure.load_beside(WORKLOADS["F3q"], target, 1) as pids:
        assert not pids
