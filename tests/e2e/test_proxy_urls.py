# SPDX-License-Identifier: Apache-2.0
"""
URLs in the headers of responses and requests that the plugin proxy passes: which ones it maps, and which ones stay. The
table of plugins/proxy/proxy.md has what other servers do.
"""

import pytest

from harness import build
from harness.backend import Backend
from harness.certificates import Authority, TlsClient
from harness.groups import GROUPS, group
from harness.messages import lines, sized
from harness.proxies import PATIENT, TEXT
from harness.server import section

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins")

SITE = "site.example:8080"
HTTPS = ("X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https")


def send_back(peer):
    """Responds with the headers that the request has after `X-Send-`; in a 103, too, if it is to have a Link."""
    while True:
        got = peer.request()
        fields = [f"{name.removeprefix('x-send-')}: {value}" for name, value in names_of(got) if "x-send-" in name]
        early = lines("HTTP/1.1 103 Early Hints", *fields) if got["X-Early"] else b""
        peer.send(early + lines("HTTP/1.1 200 OK", TEXT, *fields, sized(b"hello")) + b"hello")


def names_of(got):
    return [(name.lower(), value) for name, value in got.fields]


@pytest.fixture
def backend():
    with Backend(send_back) as backend:
        yield backend


@pytest.fixture
def server(serve, backend):
    keys = [
        {"Match": "/app", "StripPrefix": "On"},
        {"Match": "/to", "To": backend.url + "/v2"},
        {"Match": '"/my app"', "StripPrefix": "On"},
        {"Match": "/off", "StripPrefix": "On", "RewriteLocation": "Off"},
        {"Match": "/named", "StripPrefix": "On", "HostHeader": "app.example:9"},
        {"Match": "/group", "To": "http://app", "StripPrefix": "On"},
        {"Match": "/"},
    ]
    text = "".join(section("PROXY", {"To": backend.url, **PATIENT, **each}) for each in keys)
    settings = {"Workers": 1, "TrustedProxies": "127.0.0.1"}
    return serve(settings, text=text, config={GROUPS: group([backend, "127.0.0.2:1 backup"])})


RESPONSES = [
    # path of the request, further lines of it, header, value, what the client gets (None: the same)
    ("/", (), "Location", "https://site.example:8080/x", None),
    ("/", (), "Location", "http://site.example:8080/x", "/x"),
    ("/", (), "Location", "HTTP://SITE.example:8080/x?y#z", "/x?y#z"),
    ("/", (), "Location", "http://site.example/x", None),
    ("/", (), "Location", "http://u@site.example:8080/x", None),
    ("/", (), "Location", "//site.example:8080/x", "/x"),
    ("/", (), "Location", "//other.example/x", None),
    ("/", (), "Location", "http://{back}/x", "/x"),
    ("/", (), "Location", "https://{back}/x", None),
    ("/", (), "Content-Location", "https://site.example:8080/x", None),
    ("/", HTTPS, "Location", "https://site.example:8080/x", "/x"),
    ("/", HTTPS, "Location", "http://site.example:8080/x", None),
    ("/", HTTPS, "Location", "http://{back}/x", "/x"),
    ("/", ("X-Forwarded-Host: front.example", *HTTPS), "Location", "https://front.example/x", "/x"),
    ("/", ("X-Forwarded-Host: front.example",), "Location", "https://front.example/x", None),
    ("/", ("X-Forwarded-Host: front.example, inner.example", *HTTPS), "Location", "https://front.example/x", "/x"),
    ("/", ("X-Forwarded-Host: front.example, inner.example", *HTTPS), "Location", "https://inner.example/x", None),
    ("/", ("Forwarded: for=192.0.2.1;host=front.example", *HTTPS), "Location", "https://front.example/x", "/x"),
    ("/", ('Forwarded: Host="front.example:8443", host=a', *HTTPS), "Location", "https://front.example:8443/x", "/x"),
    ("/", ("X-Forwarded-Host: a.example", "Forwarded: host=b.example"), "Location", "http://b.example/x", None),
    ("/", ("X-Forwarded-Host: front", "X-Forwarded-Port: 81"), "Location", "http://front:81/x", "/x"),
    ("/", ("X-Forwarded-Host: front", "X-Forwarded-Port: 81, 82"), "Location", "http://front:81/x", "/x"),
    ("/", ("X-Forwarded-Host: front", "X-Forwarded-Port: 81"), "Location", "http://front/x", "/x"),
    ("/", ("X-Forwarded-Host: front", "X-Forwarded-Port: 81"), "Location", "http://front:82/x", None),
    ("/", ("X-Forwarded-Host: front", "X-Forwarded-Port: 443", *HTTPS), "Location", "https://front/x", "/x"),
    ("/", ("X-Forwarded-Host: front:80", "X-Forwarded-Port: 81"), "Location", "http://front/x", "/x"),
    ("/", ("X-Forwarded-Host: [::1]", "X-Forwarded-Port: 81"), "Location", "http://[::1]:81/x", "/x"),
    ("/", ("X-Forwarded-Host: front", "X-Forwarded-Port: x"), "Location", "http://front/x", "/x"),
    ("/app", (), "Location", "/app", None),
    ("/app", (), "Location", "/app/x?y", None),
    ("/app", (), "Location", "/%61pp/x", None),
    ("/app", (), "Location", "/apple", "/app/apple"),
    ("/app", (), "Location", "/x", "/app/x"),
    ("/app", (), "Location", "http://site.example:8080/app/x", "/app/x"),
    ("/app", (), "Location", "https://site.example:8080/app/x", None),
    ("/app", (), "Location", "x", None),
    ("/app", (), "Location", "?x", None),
    ("/app", (), "Location", "#x", None),
    ("/app", (), "Content-Location", "/x", "/app/x"),
    ("/app", (), "Content-Location", "/app/x", None),
    ("/app", (), "Refresh", "5; url=/x", "5; url=/app/x"),
    ("/app", (), "Refresh", "5; url=/app/x", None),
    ("/app", (), "Refresh", "5", None),
    ("/app", (), "Link", '</x>; rel="next", <//other.example/y>', '</app/x>; rel="next", <//other.example/y>'),
    ("/app", (), "Link", "</app/x>; rel=preload", None),
    ("/app", (), "Set-Cookie", "a=b; Path=/app", None),
    ("/app", (), "Set-Cookie", "a=b; Path=/app/", None),
    ("/app", (), "Set-Cookie", "a=b; Path=/", "a=b; Path=/app"),
    ("/app", (), "Set-Cookie", "a=b; Path=/apple", "a=b; Path=/app/apple"),
    ("/app", (), "Set-Cookie", "a=b; Domain=127.0.0.1", "a=b; Domain=site.example"),
    ("/app", ("X-Forwarded-Host: front:1",), "Set-Cookie", "a=b; Domain=127.0.0.1", "a=b; Domain=front"),
    ("/to", (), "Location", "/v2/x", "/to/x"),
    ("/to", (), "Location", "/to/x", None),
    ("/to", (), "Location", "/x", None),
    ("/to", (), "Link", "</v2/x>", "</to/x>"),
    ("/my%20app", (), "Location", "/x", "/my%20app/x"),
    ("/my%20app", (), "Location", "/my%20app/x", None),
    ("/my%20app", (), "Set-Cookie", "a=b; Path=/", "a=b; Path=/my%20app"),
    ("/named", (), "Location", "http://app.example:9/x", "/named/x"),
    ("/named", (), "Location", "http://site.example:8080/x", "/named/x"),
    ("/named", (), "Set-Cookie", "a=b; Domain=app.example", "a=b; Domain=site.example"),
    ("/group", (), "Location", "http://{back}/x", "/group/x"),
    ("/group", (), "Location", "http://app/x", "/group/x"),
    ("/group", (), "Location", "http://127.0.0.2:1/x", None),
    ("/group", (), "Set-Cookie", "a=b; Domain=127.0.0.1", "a=b; Domain=site.example"),
    ("/off", (), "Location", "/x", None),
    ("/off", (), "Link", "</x>", None),
    ("/off", (), "Refresh", "5; url=/x", None),
    ("/off", (), "Set-Cookie", "a=b; Path=/; Domain=127.0.0.1", None),
]


def test_responses(server, backend):
    back = backend.url.removeprefix("http://")
    with server.connect() as client:
        for path, fields, name, value, wanted in RESPONSES:
            value = value.format(back=back)
            got = client.ask(path, f"X-Send-{name}: {value}", *fields, host=SITE)
            assert got[name] == (wanted or value), (path, fields, name, value)


def test_each_of_several_lines(server):
    sent = ["a=1; Path=/", "b=2; Path=/app/x", "__Host-c=3; Path=/; Secure", "d=4"]
    with server.connect() as client:
        got = client.ask("/app", *(f"X-Send-Set-Cookie: {each}" for each in sent), host=SITE)
    cookies = [value for name, value in got.fields if name.lower() == "set-cookie"]
    assert cookies == ["a=1; Path=/app", "b=2; Path=/app/x", "__Host-c=3; Path=/; Secure", "d=4"]


def test_hints(serve, backend):
    """An interim response is sent before the final one, and has the same links."""
    text = section("PROXY", {"To": backend.url, "Match": "/app", "StripPrefix": "On", "EarlyHints": "All", **PATIENT})
    with serve(text=text).connect() as client:
        client.send(lines("GET /app HTTP/1.1", f"Host: {SITE}", "X-Early: 1", "X-Send-Link: </x>"))
        assert client.interim()["Link"] == "</app/x>"
        assert client.response()["Link"] == "</app/x>"


REQUESTS = [
    # path of the request, further lines of it, header, value, what the backend gets (None: the same)
    ("/", (), "Destination", "http://site.example:8080/x", None),
    ("/", (), "Destination", "/x", None),
    ("/", (), "Destination", "http://other.example/x", None),
    ("/", HTTPS, "Destination", "https://site.example:8080/x", "http://site.example:8080/x"),
    ("/app", (), "Destination", "http://site.example:8080/app/b%20c", "http://site.example:8080/b%20c"),
    ("/app", (), "Destination", "/app/x", "/x"),
    ("/app", (), "Destination", "http://site.example:8080/apple", None),
    ("/to", (), "Destination", "http://site.example:8080/to/x", "http://site.example:8080/v2/x"),
    ("/named", (), "Destination", "http://site.example:8080/named/x", "http://app.example:9/x"),
    ("/my%20app", (), "Destination", "/my%20app/x", "/x"),
    ("/off", (), "Destination", "http://site.example:8080/off/x", None),
    ("/", HTTPS, "If", "<https://site.example:8080/x> (<urn:uuid:1>)", "<http://site.example:8080/x> (<urn:uuid:1>)"),
    ("/app", (), "If", "(<urn:uuid:1>)", None),
    ("/app", (), "If", "<http://site.example:8080/app/x> (<a:1>) </app/y> ([W/\"e\"])",
     "<http://site.example:8080/x> (<a:1>) </y> ([W/\"e\"])"),
    ("/app", (), "If", "<http://other.example/app/x> (Not <a:1>)", None),
    ("/to", (), "If", "<http://site.example:8080/to/x> (<a:1>)", "<http://site.example:8080/v2/x> (<a:1>)"),
    ("/named", (), "If", "<http://site.example:8080/named/x> (<a:1>)", "<http://app.example:9/x> (<a:1>)"),
    ("/off", (), "If", "<http://site.example:8080/off/x> (<a:1>)", None),
    ("/app", (), "Referer", "http://site.example:8080/app/x", None),
    ("/named", HTTPS, "Referer", "https://site.example:8080/named/x", None),
    ("/app", (), "Origin", "http://site.example:8080", None),
    ("/named", HTTPS, "Origin", "https://site.example:8080", None),
]


def test_requests(server, backend):
    with server.connect() as client:
        for path, fields, name, value, wanted in REQUESTS:
            assert client.ask(path, f"{name}: {value}", *fields, host=SITE, method="MOVE").status == 200
            assert backend.requests[-1][name] == (wanted or value), (path, fields, name, value)


def test_a_section_may_replace_the_destination(serve, backend):
    keys = {"To": backend.url, "Match": "/app", "StripPrefix": "On", "RequestSet": "Destination /mine", **PATIENT}
    with serve(text=section("PROXY", keys)).connect() as client:
        client.ask("/app", "Destination: /app/x", method="MOVE")
    assert backend.requests[-1]["Destination"] == "/mine"


@pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls")
@pytest.mark.parametrize("family", ["tcp", "unix"])
def test_https(serve, tmp_path, family):
    """A server with both schemes: a redirect from one to the other keeps its scheme, and the one from https is ours."""
    ca = Authority(tmp_path)
    pair = ca.make("localhost", "localhost")
    with Backend(send_back, path=tmp_path / "socket" if family == "unix" else None) as backend:
        listen = {"Listen": ["127.0.0.1:0", "127.0.0.1:0 tls"]}
        text = section("PROXY", {"To": backend.url, **PATIENT}) + section("TLS", pair.keys())
        server = serve(listen, text=text)
        server.await_listeners(2)
        clear, tls = server.addresses
        sent = ["X-Send-Location: https://localhost/account", "X-Send-Content-Location: http://localhost/account"]
        with server.connect(server.addresses.index(clear)) as client:
            got = client.ask("/account", *sent, host="localhost")
            assert (got["Location"], got["Content-Location"]) == ("https://localhost/account", "/account")
        with TlsClient(tls, ca.context()) as client:
            got = client.ask("/account", *sent, host="localhost")
            assert (got["Location"], got["Content-Location"]) == ("/account", "http://localhost/account")
