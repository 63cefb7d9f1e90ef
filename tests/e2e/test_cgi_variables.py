# SPDX-License-Identifier: Apache-2.0
"""The variables of CGI and FastCGI that say how a request came: TLS, a certificate, a proxy in front, a login."""

import base64

import pytest

from harness import build
from harness.certificates import TlsClient
from harness.fastcgi import Application, answer, fastcgi_section
from harness.scripts import ENVIRONMENT, cgi_section, variables, write_scripts
from harness.server import section

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists() or not (build.PLUGINS / "fastcgi.so").exists(),
                       reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]  # fmt: skip
NAMES = ("HTTPS", "REQUEST_SCHEME", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR", "REMOTE_USER", "AUTH_TYPE",
         "SSL_PROTOCOL", "SSL_CIPHER", "SSL_TLS_SNI", "SSL_CLIENT_S_DN", "SSL_CLIENT_VERIFY")  # fmt: skip
LOGIN = "Authorization: Basic " + base64.b64encode(b"ada:passw0rd").decode()


@pytest.fixture(params=["cgi", "fastcgi"])
def serve_variables(request, serve, tmp_path):
    """Starts a server, and a function that returns those of NAMES that a request had."""
    with Application(answer()) as application:

        def start(settings=None, text="", tls=""):
            if request.param == "cgi":
                text += cgi_section(write_scripts(tmp_path / "scripts", {"a": ENVIRONMENT}))
            else:
                text += fastcgi_section(application, Match="/cgi", Split="Off")
            server = serve({"Workers": 1, **(settings or {})}, text=tls + text)
            server.baseline += 2 * (request.param == "cgi")  # sockets of the starter
            return server

        def get(got):
            assert got.status == 200
            found = variables(got.body)[0] if request.param == "cgi" else application.requests[-1].params
            return {name: found[name] for name in NAMES if name in found}

        yield start, get


def plain(server, **others):
    """Of a request without anything special; None: it has no such variable."""
    expected = {"REQUEST_SCHEME": "http", "SERVER_NAME": "localhost", "SERVER_PORT": str(server.port)}
    expected |= {"REMOTE_ADDR": "127.0.0.1", **others}
    return {name: value for name, value in expected.items() if value is not None}


def test_plain(serve_variables):
    start, get = serve_variables
    server = start()
    with server.connect() as client:
        assert get(client.ask("/cgi/a", LOGIN)) == plain(server)
        forged = ["X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.7", "Forwarded: for=192.0.2.7;proto=https"]
        assert get(client.ask("/cgi/a", *forged, host="localhost:8443")) == plain(server)


def test_trusted_proxy(serve_variables):
    """The port is that of the URL which the client has, or the usual one of the scheme."""
    start, get = serve_variables
    server = start({"TrustedProxies": "127.0.0.1"})
    proxied = ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https"]
    with server.connect() as client:
        for host, port in (("localhost:8443", "8443"), ("localhost", "443")):
            expected = plain(server, HTTPS="on", REQUEST_SCHEME="https", SERVER_PORT=port, REMOTE_ADDR="192.0.2.7")
            assert get(client.ask("/cgi/a", *proxied, host=host)) == expected
        got = get(client.ask("/cgi/a", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http"))
        assert got == plain(server, SERVER_PORT="80", REMOTE_ADDR="192.0.2.7")


@pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="this preset has no auth")
def test_login(serve_variables, tmp_path):
    start, get = serve_variables
    users = tmp_path / "users"
    users.write_text("ada:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n")
    users.chmod(0o600)
    server = start(text=section("AUTH", {"Match": "/cgi", "Users": users}))
    with server.connect() as client:
        assert client.ask("/cgi/a").status == 401
        assert get(client.ask("/cgi/a", LOGIN)) == plain(server, REMOTE_USER="ada", AUTH_TYPE="Basic")


@pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls")
@pytest.mark.parametrize("has_certificate", [False, True])
def test_tls(serve_variables, ca, certificate, has_certificate):
    start, get = serve_variables
    keys = certificate.keys(ClientCertificate="Optional", ClientCA=ca.cert)
    server = start({"Listen": "127.0.0.1:0 tls"}, tls=section("TLS", keys))
    pair = ca.make("client", subject="/O=Clients/CN=alice") if has_certificate else None
    with TlsClient(server.addresses[0], ca.context(pair=pair)) as client:
        got = get(client.ask("/cgi/a"))
        cipher, version, _ = client.sock.cipher()
    owner = {"SSL_CLIENT_VERIFY": "SUCCESS", "SSL_CLIENT_S_DN": "CN=alice,O=Clients"}
    owner = owner if has_certificate else {"SSL_CLIENT_VERIFY": "NONE"}
    tls = {"SSL_PROTOCOL": version, "SSL_CIPHER": cipher, "SSL_TLS_SNI": "localhost", **owner}
    assert got == plain(server, HTTPS="on", REQUEST_SCHEME="https", **tls)
