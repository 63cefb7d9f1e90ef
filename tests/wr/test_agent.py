# SPDX-License-Identifier: Apache-2.0
"""The generator on another machine: a real ssh server (dropbear) on a free port of loopback, with a host key and a home
of its own, and scripts in the place of wr-load."""

import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from watch_resources import WrError
from harness.server import await_true, free_port, is_alive
from processes import BUILD, run_wr
from watch_resources.agent import Agent, RemoteGenerator, describe, explain, refuse_loopback

PROGRAMS = ("ssh", "ssh-keygen", "dropbear", "dropbearkey", "unshare")
SECONDS = 60
# what a generator does: progress on standard error, JSON at the end, also after SIGTERM
FAKE = """#!/bin/sh
if [ "$1" = --version ]; then echo 1.0; exit 0; fi
end() { echo "{\\"answers\\": $count}"; exit 0; }
trap end TERM
count=0
echo $$ >PIDS
while [ $count -lt ${2:-3} ]; do
    count=$((count + 1))
    echo "{\\"progress\\": $count}" >&2
    sleep 0.05
done
end
"""


def can_mount():
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True, check=False).returncode == 0


def why_not():
    missing = [name for name in PROGRAMS if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]
    if missing:
        return f"NOT TESTED: {', '.join(missing)} missing"
    return "" if can_mount() else "NOT TESTED: the ssh server needs its own home, which only root can mount"


needs_server = pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")


class SshServer:
    """dropbear for root, whose home is a folder of the test."""

    def __init__(self, folder):
        self.folder, self.home = folder, folder / "home"
        (self.home / ".ssh").mkdir(parents=True, mode=0o700)
        self.home.chmod(0o700)
        self.make_keys()
        self.port = free_port()
        self.config = folder / "config"
        self.write_config()
        home = os.path.expanduser("~root")
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", f'mount --bind "$1" {home} && shift && cd / && exec "$@"', "sh", self.home,
             shutil.which("dropbear", path=f"{os.environ['PATH']}:/usr/sbin"), "-F", "-E", "-s", "-r",
             folder / "host_key", "-P", folder / "pid", "-p", f"127.0.0.1:{self.port}"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        await_true(self.listens, SECONDS, "dropbear listens")

    def make_keys(self):
        quiet = {"check": True, "capture_output": True, "text": True}
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "key"], **quiet)
        shutil.copy(self.folder / "key.pub", self.home / ".ssh" / "authorized_keys")
        (self.home / ".ssh" / "authorized_keys").chmod(0o600)
        subprocess.run(["dropbearkey", "-t", "ed25519", "-f", self.folder / "host_key"], **quiet)
        output = subprocess.run(["dropbearkey", "-y", "-f", self.folder / "host_key"], **quiet).stdout
        self.host_key = next(line for line in output.splitlines() if line.startswith("ssh-ed25519"))

    def write_config(self, **changes):
        (self.folder / "known_hosts").write_text(f"agent {self.host_key}\n")
        settings = {"HostName": "127.0.0.1", "Port": self.port, "User": "root", "IdentityFile": self.folder / "key",
                    "IdentitiesOnly": "yes", "IdentityAgent": "none", "HostKeyAlias": "agent",
                    "StrictHostKeyChecking": "yes", "UserKnownHostsFile": self.folder / "known_hosts",
                    "GlobalKnownHostsFile": "/dev/null", **changes}
        self.config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))

    def listens(self):
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def sessions(self):
        """The processes that serve a connection each."""
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def kill_sessions(self):
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self):
        self.kill_sessions()
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture
def server(tmp_path):
    server = SshServer(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def load(tmp_path):
    """A wr-load; `pids` is the file in which it writes its own."""
    path = tmp_path / "wr-load"
    path.write_text(FAKE.replace("PIDS", str(tmp_path / "pids")))
    path.chmod(0o755)
    return path


@pytest.fixture
def connect(server, load):
    agents = []

    def make(target="agent", wr_load=None):
        agents.append(Agent(target, str(wr_load or load), ("ssh", "-F", str(server.config))))
        agents[-1].connect()
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()


def pid_of(tmp_path):
    path = tmp_path / "pids"
    await_true(lambda: path.exists() and path.read_text().strip(), SECONDS, "the generator runs")
    return int(path.read_text())


# ── runs ──


@needs_server
def test_run(connect, load, server):
    agent, lines = connect(), []
    output = agent.run([str(load), "-n", "4"], lines.append)
    assert json.loads(output.stdout) == {"answers": 4} and output.status == 0
    assert [json.loads(line)["progress"] for line in lines] == [1, 2, 3, 4]
    copies = list((server.home / ".cache" / "wr").iterdir())
    assert len(copies) == 1 and copies[0].read_bytes() == load.read_bytes()
    before = copies[0].stat()
    assert agent.run([str(load)]).status == 0
    await_true(lambda: len(server.sessions()) == 1, SECONDS, "all rounds use one connection")
    connect().run([str(load)])
    assert copies[0].stat().st_mtime_ns == before.st_mtime_ns, "it is copied once"


class FakeGenerator:
    name = "wr-load"

    def command(self, load, folder):
        return [load.program, "-n", "2"]


class FakeLoad:
    url = "http://192.0.2.7/"


@needs_server
def test_generator_of_a_round(connect, load):
    """Rounds start its command as that of a generator here, without standard input."""
    generator, what = RemoteGenerator(FakeGenerator(), connect()), FakeLoad()
    what.program = str(load)
    done = subprocess.run(generator.command(what, ""), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=True)
    assert generator.name == "wr-load" and json.loads(done.stdout) == {"answers": 2} and done.stderr.count("\n") == 2
    what.url = "http://127.0.0.1/"
    with pytest.raises(WrError, match="would be the agent itself"):
        generator.command(what, "")


@needs_server
def test_rounds(tmp_path):
    """The generator runs on the agent, and the file of results says so."""
    done = subprocess.run(["unshare", "-n", sys.executable, pathlib.Path(__file__).with_name("agent_rounds.py"),
                           tmp_path, BUILD / "wr-load"], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    agent = next(line for line in lines if line["type"] == "session")["agent"]
    (result,) = [line for line in lines if line["type"] == "round"]
    assert agent["target"] == "agent" and agent["round_trip_us"]["min"] > 0
    assert result["answers"] == 50 and result["generator"]["command"][0] == "sh"


def test_rounds_of_loopback():
    """The agent would load itself."""
    done = run_wr("-p", os.getpid(), "-u", "http://127.0.0.1:1/", "-c", "1", "--agent", "agent.invalid",
                  path=BUILD)
    assert done.returncode == 1 and "would be the agent itself" in done.stderr


@needs_server
def test_progress_comes_while_it_runs(connect, load):
    times = []
    connect().run([str(load), "-n", "10"], lambda _: times.append(time.monotonic()))
    assert len(times) == 10 and times[-1] - times[0] > 0.3


@needs_server
def test_words_stay_as_they_are(connect, tmp_path):
    """Whatever a header holds: two shells stand between."""
    path = tmp_path / "wr-load"
    path.write_text('#!/bin/sh\nfor word; do printf "<%s>" "$word"; done\nexit 7\n')
    path.chmod(0o755)
    words = ["-H", "A: b  c", "$HOME `id` \"'\\ * ! ; & | ~", "", "a\nb", "ü"]
    output = connect(wr_load=path).run([str(path), *words])
    assert output.stdout == "".join(f"<{word}>" for word in words) and output.status == 7


@needs_server
def test_files_are_copied(connect, tmp_path):
    path = tmp_path / "wr-load"
    path.write_text('#!/bin/sh\n[ "$1" = --paths ] && cat "$2" && cat "${3#--body=}"\n')
    path.chmod(0o755)
    (tmp_path / "paths").write_text("/a 200\n")
    (tmp_path / "body").write_bytes(b"x" * 200_000)
    output = connect(wr_load=path).run([str(path), "--paths", str(tmp_path / "paths"), f"--body={tmp_path / 'body'}"])
    assert output.stdout == "/a 200\n" + "x" * 200_000
    with pytest.raises(WrError, match="no such file cannot be read|cannot be read"):
        connect().run([str(path), "--paths", "no such file"])


@needs_server
def test_other_generators(connect):
    agent = connect()
    assert agent.run(["/elsewhere/uname", "-s"]).stdout == platform.system() + "\n"
    with pytest.raises(WrError, match="there is no wrk-of-no-package on agent"):
        agent.run(["wrk-of-no-package"])


@needs_server
def test_description(connect):
    about = describe(connect())
    assert about["architecture"] == platform.machine() and about["kernel"] == platform.release()
    assert 0 < about["round_trip_us"]["min"] <= about["round_trip_us"]["median"] < 1e6
    json.dumps(about)


@needs_server
def test_noise_of_the_shell(connect, server):
    (server.home / ".bashrc").write_text("echo welcome\necho wr-agent\n")
    assert connect().machine.architecture == platform.machine()


# ── ends ──


@needs_server
def test_ends_with_its_ssh(connect, load, tmp_path):
    """As a round that is given up ends its generator."""
    agent = connect()
    process = subprocess.Popen(agent.wrap([str(load), "-n", "100000"]), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    pid = pid_of(tmp_path)
    process.terminate()
    process.wait()
    await_true(lambda: not is_alive(pid), SECONDS, "the generator ends")
    assert agent.run([str(load)]).status == 0, "the agent can still be used"


@needs_server
def test_ends_with_wr(server, load, tmp_path):
    """wr is killed: nothing of it can run any more."""
    code = f"""import sys; sys.path[:0] = {sys.path!r}
from watch_resources.agent import Agent
agent = Agent("agent", {str(load)!r}, ("ssh", "-F", {str(server.config)!r}))
agent.connect()
agent.run([{str(load)!r}, "-n", "100000"])"""
    wr = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    pid = pid_of(tmp_path)
    wr.kill()
    wr.wait()
    await_true(lambda: not is_alive(pid), SECONDS, "the generator ends")
    await_true(lambda: not server.sessions(), SECONDS, "the connection ends")


@needs_server
def test_connection_breaks(connect, server, load, tmp_path):
    agent = connect()
    agent.install()

    with pytest.raises(WrError, match="the connection to agent broke"):
        agent.run([str(load), "-n", "100000"], lambda _: server.kill_sessions())
    pid = pid_of(tmp_path)
    await_true(lambda: not is_alive(pid), SECONDS, "the generator ends")
    await_true(lambda: agent.master.poll() is not None, SECONDS, "ssh ends")
    with pytest.raises(WrError, match="the connection to agent has ended"):
        agent.run([str(load)])


@needs_server
def test_a_generator_that_ignores_sigterm(connect, tmp_path):
    path = tmp_path / "wr-load"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\ntrap "" TERM\necho $$ >{tmp_path}/pids\n'
                    "while :; do sleep 0.1; done\n")
    path.chmod(0o755)
    agent = connect(wr_load=path)
    process = subprocess.Popen(agent.wrap([str(path)]), stdin=subprocess.DEVNULL, start_new_session=True)
    pid = pid_of(tmp_path)
    process.terminate()
    process.wait()
    await_true(lambda: not is_alive(pid), SECONDS, "the generator is killed")


@needs_server
def test_closed_agent_leaves_nothing(connect):
    agent = connect()
    folder, master = agent.folder, agent.master
    agent.close()
    agent.close()
    assert not os.path.exists(folder) and master.poll() is not None


# ── what can be wrong ──


@needs_server
@pytest.mark.parametrize("changes, said", [
    ({"HostName": "no-such-host.invalid"}, "agent is not known"),
    ({"Port": 1}, "agent has no ssh server"),
    ({"IdentityFile": "/dev/null"}, "does not let you in without a password"),
    ({"HostKeyAlias": "other"}, "not in known_hosts"),
], ids=["host", "port", "key", "host key"])
def test_no_connection(connect, server, changes, said):
    server.write_config(**changes)
    with pytest.raises(WrError, match=said):
        connect()
    await_true(lambda: not server.sessions(), SECONDS, "the connection ends")


@needs_server
def test_another_architecture(connect, server, load, monkeypatch, tmp_path):
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    agent = connect()
    with pytest.raises(WrError, match=f"agent is Linux on {os.uname().machine}, .* here is for Linux on pdp11"):
        agent.run([str(load)])


@needs_server
def test_wr_load_that_does_not_run(connect, tmp_path):
    path = tmp_path / "wr-load"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    with pytest.raises(WrError, match="wr-load does not run on agent"):
        connect(wr_load=path).run([str(path)])


@needs_server
def test_no_wr_load(server):
    with Agent("agent", None, ("ssh", "-F", str(server.config))) as agent:
        with pytest.raises(WrError, match="there is no wr-load here or on agent"):
            agent.run(["wr-load"])


@needs_server
def test_home_that_cannot_be_written(connect, server, load):
    (server.home / ".cache").write_text("a file")
    with pytest.raises(WrError, match="cannot be copied to agent"):
        connect().run([str(load)])


def test_no_ssh():
    with pytest.raises(WrError, match="openssh-client"):
        Agent("host", ssh=("no-ssh-here",)).connect()


@pytest.mark.parametrize("target", ["", "-oProxyCommand=id", "a b"])
def test_no_target(target):
    with pytest.raises(WrError, match="is no USER@HOST"):
        Agent(target)


@pytest.mark.parametrize("stderr, said", [
    ("ssh: connect to host h port 22: No route to host\n", "h cannot be reached"),
    ("kex_exchange: read: odd\n", "ssh to h failed: kex_exchange: read: odd"), ("", "it said nothing")])
def test_explanations(stderr, said):
    assert said in explain("h", stderr)


@pytest.mark.parametrize("url", ["http://localhost:1/", "http://127.0.0.1/", "http://127.1.2.3:80/", "https://[::1]/",
                                 "http://0.0.0.0/", "http://a.localhost/"])
def test_loopback_is_the_agent_itself(url):
    with pytest.raises(WrError, match="would be the agent itself"):
        refuse_loopback(url)


def test_other_urls():
    refuse_loopback("http://192.0.2.7:2001/")
    refuse_loopback("http://server.example/")
