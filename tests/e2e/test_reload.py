# SPDX-License-Identifier: Apache-2.0
"""HUP: the next configuration takes over while requests continue. Nothing is lost, mixed or left behind."""

import contextlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

from harness import build
from harness.client import Client as Http1Client
from harness.content import populate
from harness.load import Clients, Load
from harness.messages import request
from harness.protocol import Client
from harness.server import Server, await_true, free_port, section, write_config

pytestmark = pytest.mark.concurrent
HEADERS = build.PLUGINS / "headers.so"
KEEPER = 2  # descriptors of the process context, which exists after the first reload
DONE = r"the new configuration is in use"
REFUSED = r"the new configuration cannot be used"


class Site:
    """A server and its folder, of which each generation writes another version."""

    def __init__(self, folder, scheduler, **rest):
        self.scheduler = scheduler
        self.folder, self.reloads, self.refusals, self.most_workers = folder, 0, 0, 2
        self.port = free_port()
        for version in "ab":
            populate(folder / version, {"v": version.encode() * 1000, "big": version.encode() * 5_000_000})
        self.write("a")
        self.server = Server("-c", folder / "conf", **rest)

    def write(self, version, *, listen=(), workers=2, plugins=None, hosts="", server=None):
        files, self.most_workers = {}, max(self.most_workers, workers)
        if plugins:
            files["plugins.load"] = section("PLUGINS", {"Load": plugins})
        elif (self.folder / "conf" / "plugins.load").exists():
            (self.folder / "conf" / "plugins.load").unlink()
        write_config(
            self.folder / "conf",
            self.folder / version,
            {
                "Listen": [f"127.0.0.1:{self.port}", *listen],
                "Workers": workers,
                "Scheduler": self.scheduler,
                **(server or {}),
            },
            files=files,
        )
        with open(self.folder / "conf" / "sites" / "default", "a") as file:
            file.write(f"[HEADERS]\n    Set X-Version {version}\n{hosts}")

    def write_other(self, version):
        """A second host; None: it goes."""
        path = self.folder / "conf" / "sites" / "other"
        path.unlink(missing_ok=True)
        if version:
            keys = {"ServerName": "other.example", "DocumentRoot": self.folder / version}
            path.write_text(section("HOST", keys) + section("HEADERS", {"Set": f"X-Version {version}"}))

    def reload(self):
        self.server.send_signal(signal.SIGHUP)
        self.reloads += 1
        self.server.wait_log(f"{DONE}|{REFUSED}", self.reloads + self.refusals)
        assert not self.refused(), self.server.log

    def refused(self):
        return len(re.findall(REFUSED, self.server.log)) > self.refusals

    def fail_reload(self):
        self.server.send_signal(signal.SIGHUP)
        self.refusals += 1
        self.server.wait_log(REFUSED, self.refusals)

    def connect(self, port=None, **rest):
        client = Client(("127.0.0.1", port or self.port), **rest)
        self.server.clients.append(client)  # to be closed also where a test skips itself
        return client

    def ask(self, target="/v", *fields, port=None, **rest):
        with self.connect(port) as client:
            return client.ask(target, *fields, **rest)

    def await_generations(self):
        """All but the one in use are gone."""
        self.server.wait_log("the configuration before the last reload is not in use any more", self.reloads)


@pytest.fixture(params=["reuseport", "fair"])
def site(tmp_path, request):
    sites = []

    def start(**rest):
        sites.append(Site(tmp_path, request.param, **rest))
        return sites[-1]

    yield start
    for one in sites:
        if one.server.finished:
            continue
        try:
            # sockets of workers that left are kept by the others
            one.server.baseline += KEEPER + one.most_workers - 2
            one.write("a")
            one.server.send_signal(signal.SIGHUP)  # what the test has added goes
            one.server.settle()
            one.server.stop()
        finally:
            one.server.kill()


def check(answer, version=None):
    """Body and fields are of one generation."""
    seen = answer["X-Version"]
    assert answer.status == 200 and answer.body == seen.encode() * len(answer.body)
    assert version in (None, seen), f"{seen} instead of {version}"
    return seen


@pytest.mark.single_protocol
def test_the_next_request_sees_it(site):
    one = site()
    with one.connect() as client:
        check(client.ask("/v"), "a")
        one.write("b")
        one.reload()
        check(client.ask("/v"), "b")  # the connection stays
        check(one.ask(), "b")
        one.write("a")
        one.reload()
        check(client.ask("/v"), "a")
    one.await_generations()


def test_what_has_begun_ends_as_it_began(site):
    """A slow download holds its generation, and only that."""
    one = site()
    client = one.connect(rcvbuf=4096)
    client.send(request("/big"))
    head = client.until(b"\r\n\r\n", 4096)
    one.write("b")
    one.reload()
    check(one.ask(), "b")
    shutil.rmtree(one.folder / "a")
    assert b"X-Version: a" in head
    assert client.exactly(5_000_000) == b"a" * 5_000_000
    client.send(request("/v"))
    check(client.response(), "b")
    client.close()
    one.await_generations()


@build.needs_modules
def test_a_stop_waits_for_a_start(site):
    """A generation that becomes unused while another one is loaded is stopped after that, by the control thread."""
    one = site()

    def write(name, pause):
        plugins = ["liana", "headers", build.MODULES / "overlap.so", "static"]
        one.write("a", plugins=plugins)
        with open(one.folder / "conf" / "monkey.conf", "a") as file:
            file.write(section("OVERLAP", {"Name": name, "Pause": pause}))
        one.reloads += 1
        one.server.send_signal(signal.SIGHUP)

    write("first", 0)
    one.server.wait_log("the new configuration is in use", one.reloads)
    with one.connect(rcvbuf=4096) as slow:
        slow.send(request("/big"))
        slow.until(b"\r\n\r\n", 4096)
        write("second", 0)
        one.server.wait_log("the new configuration is in use", one.reloads)
        write("third", 3)
        one.server.wait_log("overlap: third host_start")
    check(one.ask(), "a")  # meanwhile
    assert "third has slept" not in one.server.log
    one.server.wait_log("the new configuration is in use", one.reloads)
    one.await_generations()
    one.server.stop()
    hooks = re.findall(r"overlap: (\S+ \S+_(?:start|stop) in .*)", one.server.log)
    assert [hook for hook in hooks if "beside" in hook] == []
    threads = {name: thread for name, thread in (hook.split(" in ") for hook in hooks)}
    control = {"first host_stop", "first generation_stop", "second host_stop", "second generation_stop"}
    assert {name for name, thread in threads.items() if thread == "monkey: control"} == control
    assert len(threads) == 12 and len({*threads.values()}) == 2
    assert one.server.log.index("third has slept") < one.server.log.index("first host_stop")


@pytest.mark.parametrize(
    "file, text",
    [
        ("monkey.conf", "[SERVER]\n    Wrokers 1\n"),
        ("monkey.conf", "[SERVER]\n    Listen 192.0.2.1:1\n"),
        ("monkey.conf", "[SERVER]\n    Listen 127.0.0.1:{taken}\n"),
        ("sites/default", "[HOST]\n    DocumentRoot /nowhere\n"),
        ("sites/default", None),
        ("sites/second", "[HOST]\n    ServerName localhost\n    DocumentRoot /\n"),
        ("plugins.load", "[PLUGINS]\n    Load ghost\n"),
    ],
)
def test_a_wrong_configuration_changes_nothing(site, file, text):
    one = site()
    path = one.folder / "conf" / file
    with one.connect() as client, socket.create_server(("127.0.0.1", 0)) as taken:
        check(client.ask("/v"), "a")
        one.write("b")
        if text is None:
            path.unlink()
        else:
            path.write_text(text.format(taken=taken.getsockname()[1]))
        one.fail_reload()
        check(client.ask("/v"), "a")
        check(one.ask(), "a")
        assert "error: " in one.server.log
        assert "Invalid argument" not in one.server.log
        path.unlink(missing_ok=True)
        one.write("b")
        one.reload()
        check(client.ask("/v"), "b")


def test_each_problem_is_logged_at_its_level(site):
    one = site()
    (one.folder / "conf/sites/default~").write_text("a copy\n")
    (one.folder / "conf/monkey.conf").write_text("[SERVER]\n    Wrokers 1\n")
    one.fail_reload()
    found = re.findall(r"(\w+) +[^ ]*/(monkey\.conf|sites/default~):", one.server.log)
    assert sorted(found) == [("error", "monkey.conf"), ("warn", "sites/default~")]
    assert re.search(r"error +\s+Wrokers 1\n.*error +\s+\^", one.server.log)


@build.needs_modules
def test_an_error_log_that_cannot_be_written(site):
    """Another one than before: it is a wrong configuration like any other."""
    one = site()
    one.write("b", server={"ErrorLog": one.folder / "nowhere" / "log"}, listen=[f"127.0.0.1:{free_port()}"])
    one.fail_reload()
    assert re.search(r"monkey\.conf:\d+:\d+: .*cannot write the error log", one.server.log)
    check(one.ask(), "a")
    one.write("b")
    one.reload()
    check(one.ask(), "b")


def test_a_wrong_configuration_with_more_workers_loses_no_client(site):
    """Sockets that were opened for them get no connections before it is certain that they stay."""
    one = site()
    one.write("a", workers=8, plugins=["liana", "headers", build.MODULES / "ledger.so", "static"])
    with open(one.folder / "conf" / "monkey.conf", "a") as file:
        file.write(section("LEDGER", {"Fail": "worker_start"}))

    def renew():
        check(one.ask("/v", "Connection: close"), "a")

    with Clients([renew] * 4) as clients:
        for _ in range(100):
            one.fail_reload()
    assert not clients.errors, clients.errors


def test_listeners_come_and_go(site):
    one, second, third = site(), free_port(), free_port()
    one.write("a", listen=[f"127.0.0.1:{second}", f"unix:{one.folder}/socket"])
    one.reload()
    with one.connect(second) as client, Client(str(one.folder / "socket")) as local:
        check(client.ask("/v"), "a")
        check(local.ask("/v"), "a")
        one.write("b", listen=[f"127.0.0.1:{third}"])
        one.reload()
        check(client.ask("/v"), "b")  # it came by a listener that is gone
        check(local.ask("/v"), "b")
        check(one.ask(port=third), "b")
        check(one.ask(), "b")
        with pytest.raises(ConnectionRefusedError):
            one.ask(port=second)
        assert not (one.folder / "socket").exists()
    one.write("b", listen=[f"127.0.0.1:{second}"])
    one.reload()
    check(one.ask(port=second), "b")


def test_a_listener_becomes_narrower_and_wider(site):
    """The same port, once for all addresses and once for one of them."""
    one = site()
    wide = free_port()
    for listen in (f"{wide}", f"127.0.0.1:{wide}", f"*:{wide}"):
        one.write("a", listen=[listen])
        one.reload()
        check(one.ask(port=wide), "a")


@pytest.mark.single_protocol
def test_what_waits_at_a_listener_that_goes(site):
    """Connections of its queue are served, and so are those that come to the next one."""
    one = site()
    port = free_port()
    local = one.folder / "socket"
    one.write("a", listen=[f"127.0.0.1:{port}", f"unix:{local}"])
    one.reload()
    for listen in ([f"0.0.0.0:{port}"], [f"127.0.0.1:{port}", f"unix:{local}"], [f"*:{port}"], [f"127.0.0.1:{port}"]):
        one.write("a", listen=listen)
        with contextlib.ExitStack() as stack:
            one.server.send_signal(signal.SIGSTOP)
            try:
                clients = [stack.enter_context(Http1Client(("127.0.0.1", port))) for _ in range(100)]
                if local.exists():
                    clients.append(stack.enter_context(Http1Client(str(local))))
                for client in clients:
                    client.send(request("/v"))
                one.server.send_signal(signal.SIGHUP)
            finally:
                one.server.send_signal(signal.SIGCONT)
            assert {client.response().status for client in clients} == {200}
        one.reloads += 1
        one.server.wait_log(DONE, one.reloads)


def test_workers_come_and_go(site):
    one = site()
    for workers in (4, 1, 3, 2, 1):
        one.write("b", workers=workers)
        one.reload()
        await_true(lambda: one.server.count_workers() == workers, 30, f"{workers} workers")
        for _ in range(20):
            check(one.ask(), "b")
    one.await_generations()


@pytest.mark.single_protocol
def test_the_scheduler_changes(site):
    one = site()
    busy = one.connect(rcvbuf=4096)
    busy.send(request("/big"))
    busy.until(b"\r\n\r\n", 4096)
    with one.connect() as client:
        for n, scheduler in enumerate(["fair", "reuseport", "fair", "fair", "reuseport"]):
            one.scheduler = scheduler
            one.write("ab"[n % 2], workers=1 + n % 3)
            one.reload()
            for _ in range(10):
                check(one.ask(), "ab"[n % 2])
    assert busy.exactly(5_000_000) == b"a" * 5_000_000
    busy.close()
    one.await_generations()


@pytest.mark.single_protocol
def test_a_worker_that_leaves_cuts_no_client_off(site):
    """Idle connections have their next request answered, and hear that it is the last one."""
    one = site()
    limits = {"KeepAliveTimeout": "60", "ShutdownTimeout": "60"}
    one.write("a", workers=4, server=limits)
    one.reload()
    clients = [one.connect() for _ in range(64)]  # of 24, all were at workers that leave in one of 1,000 runs
    for client in clients:
        check(client.ask("/v"), "a")
    one.write("b", workers=1, server=limits)
    one.reload()
    last = []

    def ask_all():  # the first request may come before its worker has heard that it leaves
        for client in [each for each in clients if each not in last]:
            answer = client.ask("/v")
            assert check(answer) in ("a", "b")
            if answer["Connection"] == "close":
                client.assert_closed()
                last.append(client)
        return one.server.count_workers() == 1

    await_true(ask_all, 30, "one worker")
    assert 0 < len(last) < len(clients)
    for client in clients:
        client.close()


def test_a_stop_does_not_wait_for_workers_that_leave(site):
    one, limits = site(), {"KeepAliveTimeout": "10m", "ShutdownTimeout": "10m"}
    one.write("a", workers=4, server=limits)
    one.reload()
    clients = [one.connect() for _ in range(24)]
    for client in clients:
        check(client.ask("/v"), "a")
    one.write("b", workers=1, server=limits)
    one.reload()
    one.server.send_signal(signal.SIGTERM)
    assert one.server.wait(60) == 0


@pytest.mark.single_protocol
def test_a_worker_that_leaves_finishes_its_requests(site):
    one = site()
    limits = {"ShutdownTimeout": "10m", "SendTimeout": "10m"}  # of the last client, which waits for the others
    one.write("a", workers=4, server=limits)
    one.reload()
    clients = []
    for _ in range(16):
        clients.append(one.connect(rcvbuf=4096))
        clients[-1].send(request("/big"))
        clients[-1].until(b"\r\n\r\n", 4096)
    one.write("b", workers=1, server=limits)
    one.reload()
    for client in clients:
        assert client.exactly(5_000_000) == b"a" * 5_000_000
        client.close()
    await_true(lambda: one.server.count_workers() == 1, 30, "one worker")


@build.needs_modules
def test_plugins_come_change_and_go(site):
    one = site()
    assert one.ask("/hello").status == 404
    plugins = ["liana", "headers", "./hello.so", "static"]
    shutil.copy(build.MODULES / "hello.so", one.folder / "conf" / "hello.so")
    one.write("a", plugins=plugins, hosts="[HELLO]\n    Greeting moin\n")
    one.reload()
    assert one.ask("/hello").body == b"moin"
    one.write("a", plugins=plugins, hosts="[HELLO]\n    Greeting salut\n")
    one.reload()
    assert one.ask("/hello").body == b"salut"
    one.write("a")
    one.reload()
    assert one.ask("/hello").status == 404
    one.await_generations()


def compile_module(folder, name, text):
    """A module that was built anew, and takes its place as installers do it: by a rename."""
    source, built = folder / f"{name}.c", folder / f"{name}.so.new"
    source.write_text(text)
    include = build.TOP / "include"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{include}", source, "-o", built], check=True)
    built.rename(folder / f"{name}.so")


SAYING = """#include <monkey/plugin.h>
static int say(struct mk_request *req)
{
    if (!mk_str_eq(mk_request_path(req), MK_STR("/saying")))
        return MK_DECLINED;
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_write_ref(req, MK_STR("%s"));
    mk_response_end(req);
    return 0;
}
MK_PLUGIN(saying) = {MK_PLUGIN_HEAD("saying", "1", "says"), .on_content = say};
"""


def test_a_plugin_that_was_built_anew(site):
    """The linker knows files by their names: a new one is loaded all the same, beside the old one that is in use."""
    one = site()
    plugins = ["liana", "headers", "./saying.so", "static"]
    compile_module(one.folder / "conf", "saying", SAYING % "old")
    one.write("a", plugins=plugins)
    one.reload()
    with one.connect(rcvbuf=4096) as slow:
        slow.send(request("/big"))
        slow.until(b"\r\n\r\n", 4096)  # holds the old generation
        assert one.ask("/saying").body == b"old"
        compile_module(one.folder / "conf", "saying", SAYING % "new")
        assert one.ask("/saying").body == b"old"
        one.reload()
        assert one.ask("/saying").body == b"new"
    one.write("a")
    one.reload()
    one.await_generations()


def test_a_transport_that_goes(site):
    """Connections that came by it stay, and so does its code."""
    one = site()
    meter = (build.TOP / "docs" / "examples" / "plugins" / "meter.c").read_text()
    compile_module(one.folder / "conf", "meter", meter)
    one.write("a", plugins=["liana", "./meter.so", "headers", "static"], server={"TransportLayer": "meter"})
    one.reload()
    with one.connect() as client:
        check(client.ask("/v"), "a")
        one.write("b")
        one.reload()
        one.await_generations()
        check(client.ask("/v"), "b")


@pytest.mark.single_protocol
def test_larger_heads_are_allowed_at_once(site):
    one = site()
    with one.connect() as client:
        long = "X-Long: " + "x" * 30_000
        one.write("a", server={"MaxHeadSize": "40K", "MaxHeaders": 500})
        one.reload()
        check(client.ask("/v", long, *(f"X-{i}: y" for i in range(300))))
        one.write("a", server={"MaxHeadSize": "1K", "MaxRequestLine": "512"})
        one.reload()
        assert client.ask("/v", long).status == 431


def test_what_stays_until_the_next_start(site):
    """It is used in the meantime, and said."""
    one = site()
    one.write("b", server={"PidFile": one.folder / "pid", "Supervisor": "On", "ErrorLog": "stderr"})
    one.reload()
    check(one.ask(), "b")
    changed = re.findall(r"warn  (\w+) has changed: the change takes effect at the next start", one.server.log)
    assert changed == ["Supervisor", "PidFile"] and not (one.folder / "pid").exists()
    one.write("a")
    one.reload()
    assert one.server.log.count("has changed: the change takes") == 2


def test_the_log_moves(site):
    one = site()
    log = one.folder / "new.log"
    one.write("a", server={"ErrorLog": log})
    one.server.send_signal(signal.SIGHUP)
    await_true(lambda: log.exists() and DONE in log.read_text(), 30, "the new log")
    log.rename(one.folder / "old.log")
    one.server.send_signal(signal.SIGUSR1)
    await_true(log.exists, 30, "the log again")
    one.server.send_signal(signal.SIGHUP)
    await_true(lambda: DONE in log.read_text(), 30, "lines in it")


# ── under load ──


class Generations(Load):
    """Each answer is whole and of one generation, and every request is answered."""

    small, large = "/v", "/big"

    def __init__(self, site):
        self.site, self.versions = site, set()
        super().__init__(("127.0.0.1", site.port))

    def kinds(self):
        return [self.keep, self.keep, self.renew, self.other, self.upload, self.slow]

    def forgives(self, error):
        return False

    def connect(self, **rest):
        return self.site.connect(**rest)

    def seen(self, path, answer):
        self.versions.add(check(answer))
        self.answers += 1

    def renew(self):
        self.seen(self.small, self.site.ask())

    def other(self):
        """Of a host that comes and goes; while it is away the default one answers."""
        with self.connect() as client:
            client.send(request(self.small, "Connection: close", host="other.example"))
            self.seen(self.small, client.response())


def install(module, path):
    """As one that was built anew: another file of the name."""
    shutil.copy(module, path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


def test_forty_reloads_under_load(site):
    one = site()
    second = free_port()
    changes = [
        {"workers": 1},
        {"workers": 3, "listen": [f"127.0.0.1:{second}"]},
        {"workers": 2, "hosts": "[REDIRECT]\n    Match /old\n    To /v\n"},
        {"workers": 2, "plugins": ["liana", "headers", "static"]},
        {"workers": 2, "server": {"Scheduler": "fair" if one.scheduler == "reuseport" else "reuseport"}},
    ]
    if HEADERS.exists():
        changes[3]["plugins"][1] = one.folder / "headers.so"
    with Generations(one) as load:
        for n in range(40):
            one.write("ab"[n % 2], **changes[n % len(changes)])
            one.write_other("ab"[n % 2] if n % 3 else None)
            if HEADERS.exists():
                install(HEADERS, one.folder / "headers.so")
            one.reload()
            assert not load.errors, load.errors
    assert not load.errors, load.errors
    assert load.versions == {"a", "b"} and load.answers > 100
    one.await_generations()
