# SPDX-License-Identifier: Apache-2.0
"""Fixtures. `site` is one server for the tests that only read; `serve` starts another one to a test's own liking."""

import gc
import itertools
import os
import pathlib
import re
import tempfile

import pytest

from harness import build, frames, inherited_signals, services
from harness.certificates import Authority
from harness.chain import Chain
from harness.client import Response
from harness.clock import Clock, build_library
from harness.content import MANY, make_many, make_once, populate
from harness.protocol import TranslatedClient
from harness.server import Server, write_config
from harness.ways import WAYS
from harness.websocket import run_wsprobe

pytest_plugins = ["harness.groups", "harness.names", "harness.orphans", "harness.products", "harness.schedule"]
inherited_signals.restore()
gc.disable()  # until the tests are collected: a million objects that stay
NUMBERS = itertools.count()  # of folders
SLOW_TIMEOUT = 1200  # seconds; the longest takes two minutes on a machine that does nothing else


def pytest_report_header():
    cache = f", with a cache of files ({build.CACHE})" if build.CACHE else ""
    return f"server under test: {build.binary()} ({build.PRESET}), asked over {build.PROTOCOL}{cache}"


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_itemcollected(item):
    """What carries `load` is slow, too."""
    if item.get_closest_marker("load"):
        item.add_marker("slow")


def pytest_collection_modifyitems(config, items):
    """Budgets mean nothing for a build with assertions and sanitizers; tests of one protocol nothing for another."""
    if build.PROTOCOL != "http/1.1":
        of_one = [item for item in items if item.get_closest_marker("single_protocol")]
        items[:] = [item for item in items if not item.get_closest_marker("single_protocol")]
        config.hook.pytest_deselected(items=of_one)
    skip = pytest.mark.skip(reason=f"budgets are for an optimised build, not {build.PRESET}")
    for item in items:
        if item.get_closest_marker("budget") and not build.OPTIMISED:
            item.add_marker(skip)
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Over another protocol, a test that has asked nothing in it has shown nothing, and counts as skipped."""
    report = (yield).get_result()
    if build.PROTOCOL == "http/1.1":
        return
    if call.when == "setup":
        item.asked_before = TranslatedClient.asked
    elif call.when == "call" and report.passed and TranslatedClient.asked == item.asked_before:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"Skipped: asks nothing over {build.PROTOCOL}")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """How much of the suite another protocol has seen."""
    if build.PROTOCOL != "http/1.1":
        passed, skipped = (len(terminalreporter.stats.get(what, ())) for what in ("passed", "skipped"))
        terminalreporter.write_line(f"over {build.PROTOCOL}: {passed} tests; of HTTP/1 or of no protocol: {skipped}")


@pytest.fixture
def tmp_path(request, tmp_path_factory):
    """A folder for a test. pytest's fixture of this name lists those of all tests before to find a free number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{next(NUMBERS)}-{name}", numbered=False)


@pytest.fixture(scope="session", autouse=True)
def binary():
    path = build.binary()
    if not path.exists():
        pytest.exit(f"{path} does not exist: build it first (./dev build {build.PRESET})", returncode=3)
    return path


@pytest.fixture(scope="session")
def site_root(tmp_path_factory):
    return populate(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """The folder of a run, for what its processes make once."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def make_many_root(run_folder):
    """Makes a root with so many files in its folder `many`, only to be read."""

    def make(count):
        return make_once(run_folder / f"root-of-{count}", lambda root: fill(root, count))

    def fill(root, count):
        make_many(populate(root, {"hello.txt": b"Hello, world\n"}) / "many", count)

    return make


@pytest.fixture(scope="session")
def many_root(make_many_root):
    return make_many_root(MANY)


@pytest.fixture(scope="session", autouse=True)
def kept_services():
    services.drop_unused()


class Shared:
    """The common server of a session; a test that kills it fails alone, the next one gets a new server."""

    def __init__(self, folder):
        self.folder, self.server = folder, None

    def get(self):
        if self.server is None or not self.server.alive:
            self.server = Server("-c", self.folder)
            with self.server.connect() as client:
                client.assert_open()
            self.server.settle()
        return self.server


@pytest.fixture(scope="session")
def shared(tmp_path_factory, site_root):
    server = Shared(write_config(tmp_path_factory.mktemp("conf"), site_root))
    yield server
    if server.server is not None and server.server.alive:
        server.server.stop()


@pytest.fixture
def site(shared):
    server = shared.get()
    yield server
    server.settle()


@pytest.fixture
def connect(site):
    """Opens connections to the common server."""
    return site.connect


@pytest.fixture
def h2(site):
    """Opens connections to the common server."""
    return site.connect_h2


@pytest.fixture
def conn(site):
    """A connection of bare frames to the common server."""
    with frames.FrameConnection(site.addresses[0]) as conn:
        yield conn


@pytest.fixture
def open_folder():
    """A folder that other users may enter; they may not enter the one above tmp_path."""
    with tempfile.TemporaryDirectory(prefix="monkey-open-") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.fixture
def host_conf(tmp_path):
    """Makes a configuration folder: `text` behind the default host's own section, `files` below its root."""

    def make(text, files):
        folder = write_config(tmp_path / "host" / "conf", populate(tmp_path / "host" / "root", files))
        with open(folder / "sites" / "default", "a") as file:
            file.write(text)
        return folder

    return make


@pytest.fixture
def serve(tmp_path, site_root):
    """Starts servers: serve({"Timeout": "300ms"}, files={"a.txt": b"..."}); all are checked and stopped at the end.
    `text` stands behind the section of the default host."""
    servers = []

    def start(settings=None, *, files=None, root=None, host=None, text="", mime=None, config=None, args=(), **rest):
        folder = tmp_path / f"server{len(servers)}"
        if files is not None:
            root = populate(folder / "root", files)
            root.mkdir(parents=True, exist_ok=True)
        write_config(folder / "conf", root or site_root, settings, host=host, text=text, mime=mime, files=config)
        server = Server("-c", folder / "conf", *args, **rest)
        server.root, server.conf = root or site_root, folder / "conf"
        servers.append(server)
        return server

    yield start
    try:
        for server in servers:
            if not server.finished:
                if not server.stopping:  # or its test was skipped in the middle
                    server.settle()
                server.stop()
    finally:
        for server in servers:
            server.kill()


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("clock"))


@pytest.fixture
def clock(tmp_path, clock_library, monkeypatch):
    """All servers that the test starts have its clock: `clock.advance(seconds)` instead of a sleep."""
    made = Clock(tmp_path / "clock", clock_library)
    monkeypatch.setattr(Server, "driven_clock", made)
    return made


@pytest.fixture
def chain(tmp_path):
    """Starts a server whose place others take; all of them are stopped at the end."""
    made = []

    def start(*args, **rest):
        made.append(Chain(tmp_path, *args, **rest))
        return made[-1]

    yield start
    for one in made:
        try:
            one.stop()
        finally:
            one.kill()


@pytest.fixture
def probe(serve, request):
    """serve() for the server with the plugin `probe`; PROBE of a module are settings of all of its servers."""
    if not build.probe().exists():
        pytest.skip(f"the preset {build.PRESET} has no monkey-probe")
    common = getattr(request.module, "PROBE", {})

    def start(settings=None, **rest):
        return serve({**common, **(settings or {})}, program=build.probe(), **rest)

    return start


@pytest.fixture(scope="module", params=WAYS)
def ws_server(request, tmp_path_factory, site_root):
    """A server with the plugin `wsprobe`, for each way to ask it."""
    with run_wsprobe(request.param, tmp_path_factory.mktemp("websocket"), site_root) as server:
        yield server
        server.settle()


@pytest.fixture(scope="module")
def tour():
    """The sample site with the shipped configuration, except for the port."""
    server = Server("-c", build.TOP / "dist" / "conf", "-l", "127.0.0.1:0")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    """An authority that the tests trust."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def certificate(ca):
    """A certificate of its, with the key."""
    return ca.make("localhost", "localhost")


@pytest.fixture
def serve_services(serve, site_root, tmp_path, monkeypatch):
    """Starts servers with services: serve_services({"hello": SOURCE}, {"Workers": 2}, keys={"hello": {"Root": "On"}}).

    server.services is the folder of their files, in which build_service() makes new ones. `keys` are those of their
    sections, `host`, `text` and `files` as for service_config(); other arguments are those of serve().
    """

    monkeypatch.setattr(Response, "type_is_owed", False)  # services choose it themselves

    def start(sources, settings=None, *, keys=None, host=None, text="", files=None, root=None, **rest):
        folder = tmp_path / "services"
        for name, source in sources.items():
            services.build_service(folder, name, source)
        rows = {name: (keys or {}).get(name, {}) for name in sources}
        root = root or site_root
        config = services.service_config(folder, rows, root, host=host, text=text, files=files)
        server = serve(settings, root=root, config=config, **rest)
        server.services = folder
        return server

    return start
