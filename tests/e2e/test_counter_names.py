# SPDX-License-Identifier: Apache-2.0
"""Counters of what a configuration names, where each reload has new names: hosts, groups, backends, web services. The
last ones are counted as the first ones were, and what is gone takes no room."""

import pathlib
import shutil
import signal

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.groups import GROUPS, group
from harness.metrics import needs_status, scrape, status_section, total
from harness.protocol import Client
from harness.proxies import proxy_section
from harness.server import await_true, section, write_config
from harness.services import HEAD, build_service, needs_duda

pytestmark = [
    pytest.mark.single_protocol,
    needs_status,
    needs_duda,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugin proxy"),
]
RELOADS, ROUTES = 300, 30
SERVICE = (
    HEAD
    + """
DUDA_REGISTER("s", "Service");

static void respond(duda_request_t *dr)
{
    response->http_header(dr, "Content-Type: text/plain");
    response->printf(dr, "good");
    response->end(dr, NULL);
}

int duda_main(void)
{
    static char paths[%d][16];
    for (int i = 0; i < %d; i++) {
        snprintf(paths[i], sizeof(paths[i]), "/r%%d", i);
        router->get(paths[i], respond);
    }
    return 0;
}
"""
    % (ROUTES, ROUTES)
).replace("#include <stdlib.h>", "#include <stdio.h>\n#include <stdlib.h>")


class Site:
    """A configuration whose names have a number; None: there are no sections."""

    def __init__(self, serve, folder, root, backend):
        self.folder, self.root, self.backend, self.reloads = folder, root, backend, 0
        build_service(folder, "made", SERVICE)
        (folder / "none").mkdir()
        self.server = serve({"Workers": 2}, config=self.make(0))

    def make(self, n):
        """The texts of the files, by their names."""
        host = section("HOST", {"ServerName": "localhost", "DocumentRoot": self.root})
        texts = {"plugins/status/status.conf": status_section(), "sites/default": host, GROUPS: ""}
        if n is None:
            return texts
        shutil.copy(self.folder / "made.duda", self.folder / f"s{n}.duda")
        texts["plugins/duda/duda.conf"] = section("DUDA", {"ServicesRoot": self.folder})
        named = section("HOST", {"ServerName": f"h{n}.example", "DocumentRoot": self.folder / "none"})
        named += proxy_section(None, {"Match": "/proxied", "To": f"http://g{n}"})
        named += section("WEB_SERVICE", {"Name": f"s{n}", "Enabled": "On"})
        return {**texts, "sites/named": named, GROUPS: group([self.backend], name=f"g{n}")}

    def reload(self, n):
        conf = self.server.conf
        for path in (conf / "sites/named", conf / "plugins/duda/duda.conf"):
            path.unlink(missing_ok=True)
        for name, text in self.make(n).items():
            (conf / name).parent.mkdir(parents=True, exist_ok=True)
            (conf / name).write_text(text)
        self.reloads += 1
        self.server.send_signal(signal.SIGHUP)
        self.server.wait_log("the new configuration is in use", self.reloads)
        for path in self.folder.glob("s*.duda"):
            if path.name != f"s{n}.duda":
                path.unlink()

    def ask(self, n, times):
        with self.server.connect() as client:
            for _ in range(times):
                assert client.ask("/proxied", host=f"h{n}.example").body == b"good"
                assert client.ask(f"/s{n}/r1", host=f"h{n}.example").body == b"good"

    def counts(self, n):
        with self.server.connect() as client:
            samples = scrape(client)
        service = {"service": f"s{n}", "host": f"h{n}.example"}
        return (
            total(samples, "monkey_requests_total", host=f"h{n}.example"),
            total(samples, "monkey_proxy_backend_responses_total", backend=f"http://g{n}"),
            total(samples, "monkey_duda_requests_total", **service),
            total(samples, "monkey_duda_request_duration_seconds_count", **service),
        )


def list_named(client):
    """The values of the labels that a configuration has named, but for those of hosts."""
    return {value for _, labels in scrape(client) for key, value in labels if key in ("backend", "service", "upstream")}


def test_the_last_ones_take_their_counters_along(serve, site_root, tmp_path):
    """A reload without such sections, so that no generation has their plugins any more."""
    with Backend(answer(b"good", "Content-Type: text/plain")) as backend:
        site = Site(serve, tmp_path / "services", site_root, backend)
        for n in range(1, 3):
            site.reload(n)
            site.ask(n, 1)
            with site.server.connect() as client:
                await_true(lambda n=n: list_named(client) == {f"http://g{n}", f"s{n}", f"g{n}"}, 60, "the new names")
            site.reload(None)
            with site.server.connect() as client:
                await_true(lambda: not list_named(client), 60, "that no name is shown")
                assert f"s{n}" not in client.ask("/status").body.decode()
        site.server.baseline += 2  # of the control thread, which the first reload makes


def is_loaded(pid, module):
    return module in pathlib.Path(f"/proc/{pid}/maps").read_text()


def begin_large(chain):
    """Has a request begun whose response needs a client that reads."""
    client = Client(chain.server.addresses[0], rcvbuf=4096)
    client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.head().status == 200
    return client


def test_a_former_process_leaves_those_of_the_next_one(chain):
    """An upgrade with new names. A generation ends in the former process while another one still has exchanges, and
    then the other one ends."""
    one = chain(modules=[f"{name}.so" for name in ("headers", "proxy", "status", "upstream")])
    headers = section("HEADERS", {"Set": "X-Version 1"})

    def write(name, more=""):
        files = {"plugins/status/status.conf": status_section(), GROUPS: group(["127.0.0.1:1"], name=name)}
        proxied = proxy_section(None, {"Match": "/proxied", "To": f"http://{name}"})
        write_config(one.folder / "conf", one.root, one.settings, text=proxied + more, files=files)

    def reload():
        one.server.send_signal(signal.SIGHUP)
        one.server.wait_log("the new configuration is in use", reload.count)
        reload.count += 1

    def read_names():
        with Client(one.server.addresses[0]) as client:
            return list_named(client)

    reload.count = 1
    write("a", headers)
    reload()
    with begin_large(one) as first:
        write("b")
        reload()
        with begin_large(one):
            write("c")
            one.upgrade()
            old = one.pids[0]
            assert read_names() == {"http://c", "c"} and is_loaded(old, "headers.so")
            first.close()
            await_true(lambda: not is_loaded(old, "headers.so"), 60, "the end of the first generation")
            assert read_names() == {"http://c", "c"}
        one.await_old()
        assert read_names() == {"http://c", "c"}


@pytest.mark.slow
def test_each_reload_has_new_names(serve, site_root, tmp_path):
    """In each third reload there are no such sections, so that their plugins go and come again."""
    with Backend(answer(b"good", "Content-Type: text/plain")) as backend:
        site = Site(serve, tmp_path / "services", site_root, backend)
        early = 0
        for n in range(1, RELOADS + 1):
            site.reload(None if n % 3 == 0 else n)
            if n % 3:
                site.ask(n, 2)
                await_true(lambda n=n: site.counts(n) == (4, 2, 2, 2), 60, f"the counts of reload {n}")
            if n == RELOADS // 3:
                early = site.server.memory_kb()
        assert "counter" not in site.server.log
        assert build.SANITIZED or site.server.memory_kb() - early < 8_000  # ASan keeps what is freed
        site.reload(None)
        site.server.baseline += 2  # of the control thread, which the first reload makes
