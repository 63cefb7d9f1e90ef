# SPDX-License-Identifier: Apache-2.0
"""A picture of the shell's live view: the screen of a terminal as a page, photographed by Chromium."""

import base64
import contextlib
import os
import pathlib
import random
import threading

import pytest

from harness import build
from harness.browser import open_browser
from harness.messages import request
from harness.server import section
from harness.terminal import Terminal

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cheetah.so").exists(), reason="the preset has no plugin cheetah"),
    pytest.mark.single_protocol,
]

REFERENCE = pathlib.Path(__file__).parent / "screenshots" / "shell-top.png"
RENEW = "MONKEY_RENEW_SCREENSHOTS"
HOSTS = {"www.example.org": 8, "downloads.example.org": 3, "api.example.org": 1}
FILES = {"index.html": b"i" * 5_000, "style.css": b"s" * 20_000, "videos/jungle.webm": b"v" * 30_000_000}


@pytest.fixture
def busy(serve, tmp_path):
    """A server with three hosts under load, downloads to slow clients and uploads."""
    root = tmp_path / "site"
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    config = {f"sites/{name}": section("HOST", {"ServerName": name, "DocumentRoot": root}) for name in HOSTS}
    config["plugins/cheetah/cheetah.conf"] = section("CHEETAH", {"Listen": tmp_path / "shell.sock"})
    config["plugins/status/status.conf"] = section("STATUS", {"Enabled": "On"})
    server = serve({"Workers": 2, "BodyTimeout": "60s", "SendTimeout": "60s", "MinBodyRate": 0}, config=config)
    with contextlib.ExitStack() as stack:

        def send(path, host, *fields, method="GET"):
            client = stack.enter_context(server.connect())
            client.send(request(path, *fields, method=method, host=host))

        for _ in range(5):
            send("/videos/jungle.webm", "downloads.example.org")
        for number in (1, 1, 2):
            send(f"/v1/pictures/{number}", "api.example.org", "Content-Length: 1000", method="PUT")
        send("/search/caf%c3%a9", "www.example.org", "Content-Length: 10", method="POST")
        stack.enter_context(load(server))
        yield server


@contextlib.contextmanager
def load(server):
    """Asks in two threads until the end."""
    ends, targets = threading.Event(), ["/index.html"] * 6 + ["/style.css"] * 4 + ["/nothing"]

    def ask():
        while not ends.is_set():
            with server.connect() as client:
                for _ in range(500):  # less than MaxKeepAliveRequest
                    (host,) = random.choices(list(HOSTS), HOSTS.values())
                    client.send(request(random.choice(targets), host=host))
                    client.response()
                    if ends.wait(random.random() * 0.004):
                        break

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    yield
    ends.set()
    for thread in threads:
        thread.join(30)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", THE PICTURE OF TOP IS NOT MADE") as browser:
        yield browser


def is_complete(screen):
    """Enough intervals for a drawing, all hosts and all paths."""
    text = screen.text()
    history = next((line for line in screen.lines() if line.startswith(" Requests")), "").partition("/s")[2]
    names = (*HOSTS, "jungle.webm", "/v1/pictures/2", "café")
    return len(history.strip()) >= 40 and all(name in text for name in names)


@pytest.mark.browser
@pytest.mark.slow
def test_picture(busy, browser, tmp_path):
    """Figures change, so that the picture is kept to be seen; what is compared: it shows the screen, in its colours."""
    env = {**os.environ, **build.environment(), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    argv = [build.binary(), "shell", "-s", tmp_path / "shell.sock", "top", "0.2"]
    with Terminal(argv, env, 100, 28) as top:
        top.wait_screen(is_complete, 60)
        screen = top.screen
        assert top.end("q") == 0
    page = browser.page(width=100 * 9 + 24, height=28 * 18 + 24)
    try:
        page.navigate("data:text/html;base64," + base64.b64encode(screen.html().encode()).decode())
        page.evaluate("document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(done)))")
        assert page.evaluate("document.querySelector('pre').textContent").split("\n") == [
            line.ljust(screen.columns) for line in screen.lines()
        ]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the picture has the whole screen"
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
        colours = page.evaluate("[...new Set([...document.querySelectorAll('i')].map(i => i.style.color))]")
        assert len(colours) >= 5, "text, labels, bars, errors and what is quiet differ"
        png = page.screenshot()
    finally:
        page.close()
    shown = build.TOP / "build" / "screenshots" / REFERENCE.name
    shown.parent.mkdir(parents=True, exist_ok=True)
    shown.write_bytes(png)
    if os.environ.get(RENEW):
        REFERENCE.write_bytes(png)
