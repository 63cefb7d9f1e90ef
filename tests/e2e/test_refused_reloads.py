# SPDX-License-Identifier: Apache-2.0
"""A configuration that a reload refuses leaves nothing behind, whatever it has opened and started until then."""

import collections
import pathlib
import re
import signal
import socket

import pytest

from harness import build
from harness.certificates import Authority
from harness.client import Client
from harness.content import HELLO, populate
from harness.server import Server, await_true, free_port, section, write_config

pytestmark = [pytest.mark.single_protocol, pytest.mark.slow, build.needs_modules]
REFUSED = "the new configuration cannot be used"
PLUGINS = ["tls", "logger", "upstream", "proxy", "cgi", "fastcgi", "cache", "compress", "status", "liana", "static"]
ROUNDS = 5  # of all kinds
WARM = 2  # rounds in which threads, tables and arenas may be made that stay


class Site:
    def __init__(self, folder):
        self.folder, self.root, self.port, self.refusals = folder, folder / "root", free_port(), 0
        populate(self.root, {"hello.txt": HELLO})
        self.pair = Authority(folder / "authority").make("localhost", "localhost")
        self.write()
        self.server = Server("-c", folder / "conf")

    def write(self, listen=(), fail=None, host="", server=(), plugins=()):
        conf = self.folder / "conf"
        load = [*PLUGINS, *plugins, build.MODULES / "ledger.so"]
        settings = {"Listen": [f"127.0.0.1:{self.port}", *listen], "Workers": 2, **dict(server)}
        write_config(conf, self.root, settings, files={"plugins.load": section("PLUGINS", {"Load": load})})
        with open(conf / "monkey.conf", "a") as file:
            file.write(section("LEDGER", {"Name": "x", **({"Fail": fail} if fail else {})}))
            file.write(section("UPSTREAM", {"Name": "group", "Server": ["127.0.0.1:1", "127.0.0.1:2"]}))
        with open(conf / "sites/default", "a") as file:
            file.write(host)

    def write_much(self, fail=None, **more):
        """Files, processes, sockets, groups and certificates, before the last plugin refuses."""
        host = (
            section("TLS", self.pair.keys())
            + section("LOGGER", {"AccessLog": self.folder / "new.log"})
            + section("PROXY", {"Match": "/proxy", "To": "http://group"})
            + section("CACHE", {"Match": "/proxy"})
            + section("CGI", {"Match": "*.cgi"})
            + section("COMPRESS", {"Types": "text/plain"})
        )
        self.write([f"127.0.0.1:{free_port()} tls", f"unix:{self.folder}/new.sock"], fail, host, **more)

    def refuse(self):
        self.refusals += 1
        self.server.send_signal(signal.SIGHUP)
        self.server.wait_log(REFUSED, self.refusals)

    def observe(self):
        """What is open, and what runs."""
        tasks = pathlib.Path(f"/proc/{self.server.pid}/task")
        children = [
            pathlib.Path(f"/proc/{child}/comm").read_text()
            for task in tasks.iterdir()
            for child in (task / "children").read_text().split()
        ]
        files = [str(path) for path in self.folder.rglob("*") if not path.is_relative_to(self.folder / "conf")]
        opened = [re.sub(r"\[\d+\]", "", name) for name in self.server.files_but_logs()]
        return collections.Counter([*opened, *self.server.thread_names().values(), *children, *files])


def refuse_at_once(site, taken):
    site.write(server={"Wrokers": 1})
    site.refuse()


def refuse_port(site, taken):
    site.write_much(server={"Listen": [f"127.0.0.1:{free_port()}", f"127.0.0.1:{taken}"]})
    site.refuse()


def refuse_key(site, taken):
    site.write(host=section("TLS", site.pair.keys(CertificateKey="/nowhere")))
    site.refuse()


def refuse_log(site, taken):
    site.write_much(server={"ErrorLog": site.folder / "nowhere/log"})
    site.refuse()


def refuse_plugin(site, taken):
    site.write_much(plugins=["ghost"])
    site.refuse()


def refuse_hook(hook):
    def refuse(site, taken):
        site.write_much(fail=hook)
        site.refuse()

    return refuse


KINDS = [refuse_at_once, refuse_port, refuse_key, refuse_log, refuse_plugin] + [
    refuse_hook(hook) for hook in ("generation_start", "host_start", "worker_start", "worker 1")
]


def test_nothing_is_left_behind(tmp_path):
    site = Site(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for n in range(ROUNDS):
            if n == WARM:
                before = site.observe()
            for refuse in KINDS:
                refuse(site, taken.getsockname()[1])
            with Client(("127.0.0.1", site.port)) as client:
                assert client.ask().status == 200
    more, less = [], []

    def is_clean():
        now = site.observe()
        more[:], less[:] = (now - before).elements(), (before - now).elements()
        return not more

    try:
        await_true(is_clean, 60)
    except AssertionError:
        assert not more, less
    site.write_much()
    site.server.send_signal(signal.SIGHUP)
    site.server.wait_log("the new configuration is in use")  # so it was refused for the hook alone
    site.server.stop()


def test_no_module_stays(tmp_path):
    """All are opened to tell whose an unknown key is; they are closed with the configuration."""
    site = Site(tmp_path)

    def read_modules():
        maps = pathlib.Path(f"/proc/{site.server.pid}/maps").read_text()
        return set(re.findall(r"/(\w+)\.so$", maps, re.M))

    before = read_modules()
    for _ in range(3):
        refuse_at_once(site, None)
    assert len(read_modules()) > len(before)
    site.write()
    site.server.send_signal(signal.SIGHUP)
    site.server.wait_log("the new configuration is in use")
    await_true(lambda: not {"auth", "cors", "dirlisting", "redirect"} & read_modules(), 30, "the end of the modules")
    site.server.stop()
