# SPDX-License-Identifier: Apache-2.0
"""The chat of docs/examples/services, whose code is that of the articles, and that of `dudac new`, in browsers."""

import json

import pytest

from harness import build
from harness.browser import open_browser
from harness.certificates import Authority
from harness.server import section
from harness.services import INCLUDE, build_service, needs_duda, web_service
from test_duda_old import level

pytestmark = [
    needs_duda,
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "packages/websocket.dpkg").exists(), reason="no package websocket"),
]

EXAMPLE = next((build.TOP / "docs/examples/services").glob("*-wschat"))
TEMPLATE = build.TOP / "tools/dudac/dudac/templates/chat"

PUBLISHED = """\
#include "webservice.h"
#include "packages/websocket/websocket.h"

DUDA_REGISTER("Duda I/O Examples", "WebSocket Chat");

void cb_on_message(duda_request_t *dr, ws_request_t *wr)
{
    websocket->broadcast(wr, wr->payload, wr->payload_len, WS_OPCODE_TEXT);
}

void cb_handshake(duda_request_t *dr)
{
    websocket->handshake(dr);
}

int duda_main()
{
    duda_load_package(websocket, "websocket");
    websocket->set_callback(WS_ON_MESSAGE, cb_on_message);
    map->static_add("/handshake/", "cb_handshake");
    websocket->broadcaster();

    return 0;
}
"""

# Scheme and [HTTP2] Enabled; the status of the handshake.
WAYS = {"http": ("http", "On", 101), "https": ("https", "Off", 101), "h2": ("https", "On", 200)}


def test_the_code():
    source = (EXAMPLE / "wschat.c").read_text()
    assert source == PUBLISHED and level.detect_level([source]) == 0


@pytest.fixture
def start(serve_services, tmp_path):
    def begin(way):
        scheme, http2, _ = WAYS[way]
        services = tmp_path / "services"
        build_service(services, "wschat", PUBLISHED, warnings=level.compile_flags(0, INCLUDE))
        text = web_service("wschat", DocumentRoot=EXAMPLE / "html")
        settings = {"Workers": 2}
        if scheme == "https":
            if not build.speaks("tls"):
                pytest.skip(f"the preset {build.PRESET} has no TLS")
            pair = Authority(tmp_path / "ca").make("localhost", "localhost", "IP:127.0.0.1")
            text += section("TLS", pair.keys())
            settings["Listen"] = "127.0.0.1:0 tls"
        files = {
            "plugins/duda/duda.conf": section("DUDA", {"ServicesRoot": services}) +
            section("HTTP2", {"Enabled": http2})
        }
        return serve_services({}, settings, text=text, files=files)

    return begin


MESSAGES = """
    [...document.querySelectorAll("#messages li")].map(item => (item.className && "own: ") + item.textContent)
"""
# Resolves when the condition holds, which is checked whenever the page changes.
AWAIT = """new Promise(resolve => {
    const check = () => (%s) && resolve(true);
    new MutationObserver(check).observe(document.body, {childList: true, subtree: true, characterData: true});
    check();
})"""


def send(page, text):
    page.evaluate(f"document.querySelector('#text').value = {json.dumps(text)}")
    page.evaluate("document.querySelector('#send').click()")


def await_messages(page, expected):
    page.evaluate(AWAIT % f"document.querySelectorAll('#messages li').length >= {len(expected)}")
    assert page.evaluate(MESSAGES) == expected


@pytest.mark.browser
@pytest.mark.parametrize("way", ["http", pytest.param("https", marks=pytest.mark.slow), "h2"])
def test_three_pages(start, tmp_path_factory, way):
    """A message reaches the other two, and not the sender."""
    server = start(way)
    with open_browser(tmp_path_factory.mktemp("browser"), ", NO CHAT IN A BROWSER") as browser:
        talk(server, browser, way)


@pytest.mark.browser
def test_rooms(serve_services, tmp_path_factory):
    """A message of the template's chat stays in its room; without a name it is the lobby."""
    source = (TEMPLATE / "NEW_SERVICE.c").read_text().replace("NEW_SERVICE", "party")
    server = serve_services({"party": source}, {"Workers": 2},
                            keys={"party": {"DocumentRoot": TEMPLATE / "html"}})
    with open_browser(tmp_path_factory.mktemp("browser"), ", NO CHAT IN A BROWSER") as browser:
        pages = [browser.page() for _ in range(4)]
        for page, room in zip(pages, ("#a%20b", "#a%20b", "#lobby", "")):
            page.navigate(f"http://127.0.0.1:{server.port}/party/{room}")
            page.evaluate(AWAIT % "document.querySelector('#state').textContent == 'connected'")
        send(pages[0], "one")
        await_messages(pages[1], ["one"])
        send(pages[3], "two")
        await_messages(pages[2], ["two"])
        assert [page.evaluate(MESSAGES) for page in (pages[0], pages[3])] == [["own: one"], ["own: two"]]
        assert pages[1].evaluate("document.querySelector('#room').textContent") == "a b"
        for page in pages:
            page.close()


def talk(server, browser, way):
    scheme, _, status = WAYS[way]
    pages = [browser.page() for _ in range(3)]
    for page in pages:
        page.call("Security.setIgnoreCertificateErrors", ignore=True)
        page.navigate(f"{scheme}://127.0.0.1:{server.port}/wschat/")
        response = page.wait("Network.webSocketHandshakeResponseReceived")["response"]
        assert response["status"] == status
        page.evaluate(AWAIT % "document.querySelector('#state').textContent == 'connected'")
    texts = ["hello", "<b>&amp;</b> ü", "third\nx" * 100]
    seen = [[], [], []]
    for sender, text in enumerate(texts):
        send(pages[sender], text)
        text = text.replace("\n", "")  # of the input
        for i, page in enumerate(pages):
            seen[i].append(f"own: {text}" if i == sender else text)
            await_messages(page, seen[i])
    for page in pages:
        assert all(answer["url"].startswith(f"{scheme}://127.0.0.1:{server.port}/") for answer in page.answers())
        page.close()
