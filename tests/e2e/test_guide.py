# SPDX-License-Identifier: Apache-2.0
"""The guide's configurations, as they stand in its pages, below a folder of the test's own instead of /srv."""

import base64
import hmac
import io
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tarfile

import pytest

from harness import build
from harness.caching import await_settled
from harness.certificates import Authority, Pair, TlsClient
from harness.client import ProtocolError
from harness.codings import decode
from harness.content import populate
from harness.messages import request
from harness.protocol import Client
from harness.backend import Backend, echo
from harness.server import Server, await_true, free_port, is_refused, run

GUIDE = build.TOP / "docs" / "guide"
MODULES = build.binary().parent.parent / "lib" / "monkey"
BLOCK = re.compile(r"```conf\n# file: (\S+)\n(.*?)```", re.S)
TREE = {
    "www/index.html": b"www\n",
    "www/errors/404.html": b"lost\n",
    "www/long.txt": b"a long text\n" * 200,
    "www/account/index.html": b"an account\n" * 200,
    "default/index.html": b"default\n",
    "customers/index.html": b"customers\n",
    "app/1/index.html": b"app\n",
    "app/1/assets/app.3f2a.js": b"let a = 1;\n",
    "app/1/assets/app.3f2a.js.br": b"br\n",
    "downloads/system-2.iso": b"i" * 100_000,
    "data/a.json": b"{}\n",
    "www/assets/logo.svg": b"<svg/>\n",
    "pages/closed.html": b"closed\n",
    "log/.keep": b"",
    "hot.txt": b"/long.txt\nhttps://example.org/account/\n",
    "downloads/old.bak": b"old\n",
    "downloads/incoming/new.iso": b"new\n",
    "blocked.txt": b"# nobody now\n203.0.113.0/24\n",
    "auth/users": b"ada:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\nbob:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n"
    b"eve:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n",
    "auth/groups": b"staff: bob\n",
    "auth/jwks.json": b'{"keys": [{"kty": "OKP", "crv": "Ed25519", '
    b'"x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}\n',
}


def sections():
    """Each heading with blocks below it is one configuration; other tests run the pages that have more than that."""
    others = {GUIDE / f"{name}.md" for name in ("applications", "protect", "questions", "recipes", "scripts", "slow")}
    for page in sorted(set(GUIDE.glob("*.md")) - others):
        for part in re.split(r"^## ", page.read_text(), flags=re.M)[1:]:
            blocks = dict(BLOCK.findall(part))
            if blocks:
                yield part.split("\n", 1)[0], blocks


SECTIONS = dict(sections())
COMPRESSED = "Compressed responses"
LISTED = "A folder of downloads"
REWRITTEN = "Other paths than those of the files"
AS_ROOT = "A service that starts as root"
BALANCED = "A load balancer with the PROXY protocol"
BY_HTTPS, SEVERAL_CERTIFICATES = "A site with HTTPS", "Several hosts with certificates"
CLIENTS, MACHINES = "Client certificates", "One site on several machines"
TLS_DEFAULTS = "Defaults for all hosts"
ENCRYPTED = {BY_HTTPS, SEVERAL_CERTIFICATES, TLS_DEFAULTS, CLIENTS, MACHINES}
FOR_ALL = "Settings by path, and for all hosts"
LOCAL, BOUND = "A server for this machine only", "Hosts of one listener"
NETWORK_RULES, CLIENT_LIMITS = "Rules for networks and paths", "Limits for clients"
FOR_ALL_HOSTS = "Connections and defaults for all hosts"
PASSWORDS, TOKENS = "Users and passwords", "Tokens of an identity provider"
BY_CERTIFICATE, BY_NETWORK = "Certificates for some paths", "A network or a login"
BY_SERVER = "A login server"
LOGINS = {PASSWORDS, TOKENS, BY_SERVER, BY_CERTIFICATE, BY_NETWORK}
COMMON_LOG, JSON_LOG = "One file for all hosts", "JSON, with request IDs"
SEVERAL_LOGS = "Several logs for one host"
FILES_FIRST, BACKEND_COSTS = "Files of an application, and the application", "What a backend has cost"
APPLICATION_PORT, LOGIN_PORT = free_port(), free_port()
CHANGES_SEEN, WARMED = "How soon changes are seen", "After a start"
ONE_FILE, SHORT_FORMS = "One file", "Short forms"
FIGURES, OWN_FIGURES = "Figures of a server", "Figures on their own listener"


@pytest.fixture(scope="session")
def company(tmp_path_factory):
    """The authority of all certificates here, and the one that the guide's page names."""
    ca = Authority(tmp_path_factory.mktemp("company"), "company")
    ca.make("example.org", "example.org", "www.example.org")
    ca.make("example.org-rsa", "example.org", kind="rsa")
    ca.make("customers", "*.customers.example.org")
    ca.make("alice")
    return ca


@pytest.fixture
def conf(tmp_path, company):
    for name, content in TREE.items():
        path = tmp_path / "srv" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "srv" / "app" / "current").symlink_to("1")
    (tmp_path / "srv" / "tls").symlink_to(company.folder)
    if not (company.folder / "tickets").exists():
        (company.folder / "tickets").write_bytes(os.urandom(80))
        (company.folder / "tickets").chmod(0o600)

    def make(heading):
        for name, text in SECTIONS[heading].items():
            path = tmp_path / "conf" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            for here, there in (
                ("/srv/", f"{tmp_path}/srv/"),
                ("/run/monkey/", f"{tmp_path}/"),
                ("Listen          2001", "Listen 127.0.0.1:0"),
                ("Listen          443 tls", "Listen 127.0.0.1:0 tls"),
                ("Listen          80\n", "Listen 127.0.0.1:0\n"),
                ("127.0.0.1:9000", "127.0.0.1:0"),
                ("127.0.0.1:2002", "127.0.0.2:0"),
                ("localhost:2003", "localhost:0"),
                ("Listener        2001", "Listener 127.0.0.1:0"),
                ("127.0.0.1:8080", f"127.0.0.1:{APPLICATION_PORT}"),
                ("127.0.0.1:9091", f"127.0.0.1:{LOGIN_PORT}"),
            ):
                text = text.replace(here, there)
            path.write_text(text)
        return tmp_path / "conf"

    return make


@pytest.fixture
def site(conf):
    servers = []

    def start(heading, **rest):
        servers.append(Server("-c", conf(heading), **rest))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def needs_modules(heading):
    if heading == AS_ROOT and os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can become another user")
    modules = build.binary().parent.parent / "lib" / "monkey"
    text = "".join(SECTIONS[heading].values())
    needed = ["tls"] * ("[TLS]" in text) + ["auth"] * ("[AUTH]" in text) + ["mandril"] * ("[RULES]" in text)
    needed += ["cache"] * ("[CACHE]" in text) + ["status"] * ("[STATUS]" in text) + ["proxy"] * ("[PROXY]" in text)
    needed += ["proxy", "auth", "compress", "dirlisting"] * (heading == SHORT_FORMS)
    for name in re.findall("Load (compress|logger)", text) + needed:
        if not (modules / f"{name}.so").exists():
            pytest.skip(f"the preset {build.PRESET} does not build {name}")


@pytest.mark.parametrize("heading", SECTIONS)
def test_is_accepted(conf, heading):
    needs_modules(heading)
    result = run("-c", conf(heading), "-t")
    assert result.returncode == 0, result.stderr


def show(*args):
    shown = run(*args, "--show-config")
    assert shown.returncode == 0, shown.stderr
    return re.sub("  # .*|^# .*/.*\n", "", shown.stdout, flags=re.M)


@pytest.mark.parametrize("heading", SECTIONS)
def test_as_one_file(conf, heading, tmp_path):
    """The same configuration, wherever the file is."""
    needs_modules(heading)
    folder, file = conf(heading), tmp_path / "elsewhere" / "web.conf"
    file.parent.mkdir()
    made = run("-c", folder, "--one-file")
    assert made.returncode == 0, made.stderr
    file.write_text(made.stdout)
    assert show(file) == show("-c", folder)


def test_every_configuration_has_a_test():
    tried = {"One site", "Several hosts", "A single-page application", "Downloads", "An API for other origins"}
    tried |= {LOCAL, BOUND, COMPRESSED, REWRITTEN, COMMON_LOG, JSON_LOG, SEVERAL_LOGS, LISTED}
    tried |= {NETWORK_RULES, CLIENT_LIMITS, FOR_ALL_HOSTS, FIGURES, OWN_FIGURES, FILES_FIRST, BACKEND_COSTS}
    tried |= {CHANGES_SEEN, WARMED, ONE_FILE, SHORT_FORMS}
    proxied = {"A site behind a proxy", BALANCED, FOR_ALL}
    assert set(SECTIONS) == tried | proxied | ENCRYPTED | LOGINS | {"A service", AS_ROOT}


def ask(server, target, *fields, **rest):
    with Client(server.addresses[0]) as client:
        return client.ask(target, *fields, **rest)


def test_rewritten_paths(site):
    server = site(REWRITTEN)
    assert ask(server, "/item/7").body == TREE["www/long.txt"]
    assert ask(server, "/item/x").status == 404
    assert ask(server, "/").body == TREE["www/index.html"]
    assert ask(server, "/", "Cookie: a=b; session=c").body == TREE["www/account/index.html"]
    assert ask(server, "/v1/a").status == 404
    assert ask(server, "/search?q=x&y")["Location"] == "https://search.example.org/?q=x&y"
    assert ask(server, "/search").status == 404


def test_a_server_for_this_machine_only(site):
    server = site(LOCAL)
    assert server.names[0].startswith("127.0.0.1:")
    assert ask(server, "/").body == b"www\n"


def test_hosts_of_one_listener(site):
    server = site(BOUND, listeners=2)
    for address, body in zip(server.addresses, (b"www\n", b"default\n")):
        for name in ("example.org", "internal.example.org"):
            with Client(address) as client:
                assert client.ask("/", host=name).body == body


@pytest.mark.skipif(not (MODULES / "status.so").exists(), reason=f"the preset {build.PRESET} does not build it")
def test_figures(site):
    server = site(FIGURES)
    assert ask(server, "/").body == b"www\n"
    status = json.loads(ask(server, "/status").body)
    assert status["paths"]["busiest"][0]["path"] == "/" and status["totals"]["requests"] == 1
    assert b"monkey_requests_total" in ask(server, "/metrics").body
    assert b"<h1>" in ask(server, "/status/").body
    server = site(OWN_FIGURES, listeners=2)
    for address, shows in zip(server.addresses, (False, True)):
        with Client(address) as client:
            assert client.ask("/").status == (404 if shows else 200)
            assert client.ask("/metrics").status == (200 if shows else 404)


@pytest.mark.skipif(not (MODULES / "proxy.so").exists(), reason=f"the preset {build.PRESET} does not build it")
def test_files_first(site):
    server = site(FILES_FIRST)
    with Backend(echo, port=APPLICATION_PORT):
        for target, body in (("/", b"www\n"), ("/long.txt", TREE["www/long.txt"]), ("/users", b"")):
            assert ask(server, target).body == body, target
        assert ask(server, "/long.txt", method="POST", body=b"x")["Echo"] == "POST /long.txt"


@pytest.mark.skipif(not (MODULES / "proxy.so").exists(), reason=f"the preset {build.PRESET} does not build it")
def test_costs_of_a_backend(site, tmp_path):
    server = site(BACKEND_COSTS)
    with Backend(echo, port=APPLICATION_PORT) as backend:
        assert ask(server, "/api/a")["Echo"] == "GET /api/a"
        log = tmp_path / "srv/log/access.json"
        await_true(lambda: log.exists() and log.read_text().count("\n") == 1, 30, "the line of the log")
        assert json.loads(log.read_text())["upstream"] == backend.url


def test_rules_for_networks_and_paths(site):
    server = site(NETWORK_RULES)
    assert ask(server, "/").body == b"www\n"
    assert ask(server, "/account/").status == 404
    server.wait_log(r"\(account\): deny 404 127\.0\.0\.1: GET /account/; 1 so far, peer: 127\.0\.0\.1, listener: ")
    assert ask(server, "/assets/logo.svg").status == 200
    assert ask(server, "/assets/logo.svg", "Referer: https://example.org/").status == 200
    assert ask(server, "/assets/logo.svg", "Referer: https://elsewhere.test/").status == 403


def test_limits_for_clients(site):
    server = site(CLIENT_LIMITS)
    answer = ask(server, "/data/a.json")
    assert answer["RateLimit-Policy"] == '"api";q=30;w=3' and answer["RateLimit"] == '"api";r=29;t=1'
    with server.connect() as client:
        client.send(request("/data/a.json") * 100)
        assert 429 in [client.response().status for _ in range(100)]
    assert ask(server, "/downloads/system-2.iso").body == TREE["downloads/system-2.iso"]


@pytest.mark.single_protocol  # asks how a connection ends
def test_connections_and_defaults(site, tmp_path):
    server = site(FOR_ALL_HOSTS)
    assert ask(server, "/").body == b"www\n"
    assert ask(server, "/.git/config").status == 404
    server.wait_log(r"\(hidden\): deny 404")
    (tmp_path / "srv" / "blocked.txt").write_text("127.0.0.0/8\n")

    def is_closed():
        with Client(server.addresses[0]) as client:
            try:
                return client.ask("/") is None
            except (ProtocolError, ConnectionError):
                return True

    await_true(is_closed, 30, "the new networks")


def test_site_behind_a_proxy(site, tmp_path):
    server = site("A site behind a proxy", listeners=2)
    assert server.names[0].startswith("unix:")
    with server.connect(0) as proxy, server.connect(1) as balancer:
        assert proxy.ask("/").body == b"www\n"
        assert balancer.ask("/readyz").body == b"ready\n"
        assert balancer.ask("/").status == proxy.ask("/readyz").status == 404
        (tmp_path / "srv" / "closed").touch()
        await_true(lambda: proxy.ask("/").body == b"closed\n", 30, "the maintenance")
        assert proxy.ask("/assets/logo.svg").status == 200
        server.send_signal(signal.SIGTERM)
        await_true(lambda: readiness(server) == 503, 30, "the end of readiness")
        assert balancer.ask("/healthz").body == b"ok\n"
        assert proxy.ask("/assets/logo.svg").status == 200


def test_behind_a_balancer(site):
    server = site(BALANCED)
    with server.connect() as balancer:
        balancer.send(b"PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\n")
        assert balancer.ask("/").body == b"www\n"
    with server.connect() as stranger:
        stranger.send_all_you_can(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        stranger.assert_gone()


@pytest.mark.skipif(not (MODULES / "dirlisting.so").exists(), reason=f"the preset {build.PRESET} does not build it")
def test_a_folder_of_downloads(site):
    server = site(LISTED)
    found = json.loads(ask(server, "/downloads/", "Accept: application/json").body)
    assert [entry["name"] for entry in found["entries"]] == ["system-2.iso"]
    assert ask(server, "/downloads/").status == 200
    for path in ("/downloads/incoming/", "/downloads/?archive=tar", "/errors/"):
        assert ask(server, path).status == 404
    answer = ask(server, "/downloads/?archive=tar.gz")
    assert answer["Content-Disposition"] == 'attachment; filename="downloads.tar.gz"'
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        assert archive.getnames() == ["downloads/system-2.iso"]
        assert archive.extractfile("downloads/system-2.iso").read() == TREE["downloads/system-2.iso"]


def first_line(path):
    return await_true(lambda: path.exists() and path.read_text(), 30, f"a line in {path}").splitlines()[0]


@pytest.mark.single_protocol
def test_one_file_for_all_hosts(site, tmp_path):
    needs_modules(COMMON_LOG)
    ask(site(COMMON_LOG), "/missing", "User-Agent: me")
    assert re.search(
        r'"GET /missing HTTP/1.1" 404 \d+ "-" "me"$', first_line(tmp_path / "srv" / "log" / "access.log")
    )
    assert '404 "GET /missing HTTP/1.1"' in first_line(tmp_path / "srv" / "log" / "error.log")


@pytest.mark.single_protocol
def test_json_with_numbers(site, tmp_path):
    needs_modules(JSON_LOG)
    answer = ask(site(JSON_LOG), "/")
    row = json.loads(first_line(tmp_path / "srv" / "log" / "access.json"))
    assert row["request_id"] == answer["X-Request-Id"] and row["request"] == "GET / HTTP/1.1"


@pytest.mark.single_protocol
def test_several_logs_for_one_host(site, tmp_path):
    needs_modules(SEVERAL_LOGS)
    server = site(SEVERAL_LOGS)
    with Client(server.addresses[0]) as client:  # one worker: each takes its own samples
        for target in ("/healthz", "/", *["/assets/logo.svg"] * 100):
            client.ask(target)
    logs = tmp_path / "srv" / "log"
    first_line(logs / "assets.log")
    await_true(lambda: len((logs / "site.log").read_text().splitlines()) == 101, 30, "all lines")
    assert "/healthz" not in (logs / "site.log").read_text()
    assert [json.loads(row)["target"] for row in (logs / "failed.json").read_text().splitlines()] == ["/healthz"]
    assert len((logs / "assets.log").read_text().splitlines()) == 1
    assert not (logs / "access.log").exists() or not (logs / "access.log").read_text()


def test_site_by_https(site, company):
    server = site(BY_HTTPS, listeners=2)
    with TlsClient(server.addresses[0], company.context(), "example.org") as client:
        answer = client.ask("/", host="example.org")
        assert (answer.body, answer["Strict-Transport-Security"]) == (b"www\n", "max-age=31536000")
    with server.connect(1) as client:
        assert client.ask("/a?b", host="www.example.org")["Location"] == "https://www.example.org/a?b"


def test_several_certificates(site, company):
    server = site(SEVERAL_CERTIFICATES)
    for name, body in (("example.org", b"www\n"), ("a.customers.example.org", b"customers\n")):
        with TlsClient(server.addresses[0], company.context(check_hostname=True), name) as client:
            assert client.ask("/", host=name).body == body


def test_defaults_of_certificates(site, company):
    needs_modules(TLS_DEFAULTS)
    server = site(TLS_DEFAULTS, listeners=2)
    year = "max-age=31536000"
    for name, status, hsts in (("example.org", 301, year), ("a.customers.example.org", 200, None)):
        with TlsClient(server.addresses[0], company.context(), name) as client:
            assert client.ask("/", host=name)["Strict-Transport-Security"] == hsts
        with server.connect(1) as client:
            assert client.ask("/", host=name).status == status


def test_clients_with_certificates(site, company, tmp_path):
    needs_modules(CLIENTS)
    server = site(CLIENTS)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with TlsClient(server.addresses[0], company.context(), "example.org") as client:
            client.ask("/", host="example.org")
    alice = Pair(company.folder, "alice")
    with TlsClient(server.addresses[0], company.context(pair=alice), "example.org") as client:
        assert client.ask("/", host="example.org").body == b"www\n"
    assert first_line(tmp_path / "srv" / "log" / "access.log").endswith(" CN=alice GET / 200")


def test_one_site_on_several_machines(site, company):
    context, session = company.context(), None
    for machine in (site(MACHINES), site(MACHINES)):
        with TlsClient(machine.addresses[0], context, "example.org", session=session) as client:
            assert client.ask("/", host="example.org").body == b"www\n"
            assert client.sock.session_reused == (session is not None)
            session = client.sock.session


def basic(user, password):
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_users_and_passwords(site, tmp_path):
    needs_modules(PASSWORDS)
    server = site(PASSWORDS)
    assert ask(server, "/").status == ask(server, "/assets/logo.svg").status == 200
    assert ask(server, "/account/")["WWW-Authenticate"] == 'Basic realm="members of the club", charset="UTF-8"'
    statuses = [ask(server, "/account/", basic(user, "passw0rd")).status for user in ("ada", "bob", "eve")]
    assert statuses == [200, 200, 403]


def test_tokens(site, company, tmp_path):
    needs_modules(TOKENS)

    def encode(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    secret = b"a secret of thirty-two bytes and more"
    key = {"kty": "oct", "alg": "HS256", "k": encode(secret).decode()}
    server = site(TOKENS)
    path = tmp_path / "srv" / "auth" / "jwks.json"
    path.with_suffix(".new").write_text(json.dumps({"keys": [key]}))
    path.with_suffix(".new").chmod(0o600)
    path.with_suffix(".new").rename(path)
    claims = {"iss": "https://id.example.org", "aud": "data.example.org", "scope": "read", "exp": 4_000_000_000}
    text = encode(b'{"alg":"HS256"}') + b"." + encode(json.dumps(claims).encode())
    token = text + b"." + encode(hmac.new(secret, text, "sha256").digest())
    field = f"Authorization: Bearer {token.decode()}"
    await_true(lambda: ask(server, "/a.json", field).status == 200, 30, "the new key")
    assert ask(server, "/a.json").status == 401


def test_login_server(site, tmp_path):
    needs_modules(BY_SERVER)
    text = re.search(r"```python\n# file: app.py\n(.*?)```", (GUIDE / "auth.md").read_text(), re.S)[1]
    (tmp_path / "app.py").write_text(text)
    with subprocess.Popen([sys.executable, tmp_path / "app.py", str(LOGIN_PORT)], stderr=subprocess.DEVNULL) as login:
        try:
            await_true(lambda: not is_refused(("127.0.0.1", LOGIN_PORT)), 30, "the login server")
            server = site(BY_SERVER)
            assert ask(server, "/account/")["Location"] == "/login"
            assert b"<form" in ask(server, "/login").body
            for password, location in (("wrong", "/login"), ("ada", "/account/")):
                done = ask(server, "/login", method="POST", body=f"name=ada&password={password}".encode())
                assert (done.status, done["Location"]) == (303, location)
            cookie = f"Cookie: {done['Set-Cookie'].partition(';')[0]}"
            assert ask(server, "/account/", cookie).body == TREE["www/account/index.html"]
            assert ask(server, "/account/", "Cookie: session=x").status == 302
        finally:
            login.kill()


def test_certificates_for_some_paths(site, company):
    needs_modules(BY_CERTIFICATE)
    server = site(BY_CERTIFICATE)
    for context, status in ((company.context(), 403), (company.context(pair=Pair(company.folder, "alice")), 200)):
        with TlsClient(server.addresses[0], context, "example.org") as client:
            assert client.ask("/", host="example.org").status == 200
            assert client.ask("/account/", host="example.org").status == status


def test_a_network_or_a_login(site):
    needs_modules(BY_NETWORK)
    server = site(BY_NETWORK)
    assert ask(server, "/account/").status == 401
    assert ask(server, "/account/", basic("ada", "passw0rd")).status == 200


def readiness(server):
    with server.connect(1) as balancer:
        return balancer.ask("/readyz").status


def test_one_site(site):
    server = site("One site")
    assert ask(server, "/").body == b"www\n"
    answer = ask(server, "/missing")
    assert (answer.status, answer.body) == (404, b"lost\n")


def test_sections_for_all_hosts(site, tmp_path):
    server = site(FOR_ALL)
    shop = {"host": "shop.example.org"}
    answer, own = ask(server, "/missing"), ask(server, "/missing", **shop)
    assert (answer.status, answer.body, own.body) == (404, b"lost\n", b"lost\n")
    assert answer["X-Content-Type-Options"] == own["X-Content-Type-Options"] == "nosniff"
    assert ask(server, "/")["Referrer-Policy"] == "no-referrer"
    assert ask(server, "/", **shop)["Referrer-Policy"] == "same-origin"
    assert ask(server, "/api/x", **shop).body == b"no such item"
    body = {"method": "POST", "body": b"x" * 1_100_000}
    assert ask(server, "/", **body).status == ask(server, "/", **body, **shop).status == 413
    assert ask(server, "/upload", **body, **shop).status == 405
    (tmp_path / "srv" / "closed").touch()
    await_true(lambda: ask(server, "/").status == 503, 30)
    assert ask(server, "/", **shop).status == 200
    (tmp_path / "srv" / "shop-closed").touch()
    await_true(lambda: ask(server, "/", **shop).status == 503, 30)
    assert ask(server, "/upload", **shop).status == 404


@pytest.mark.parametrize(
    "host, body",
    [
        ("example.org", b"www\n"),
        ("EXAMPLE.org.:8080", b"www\n"),
        ("a.customers.example.org", b"customers\n"),
        ("a.b.customers.example.org", b"customers\n"),
        ("customers.example.org", b"default\n"),
        ("elsewhere.test", b"default\n"),
    ],
)
def test_several_hosts(site, host, body):
    assert ask(site("Several hosts"), "/", host=host).body == body


@pytest.mark.skipif(not (MODULES / "proxy.so").exists(), reason="the preset builds no proxy")
def test_one_file(site):
    server = site(ONE_FILE)
    for name in ("example.org", "www.example.org", "other.example"):
        answer = ask(server, "/", host=name)
        assert (answer.body, answer["X-Content-Type-Options"]) == (TREE["www/index.html"], "nosniff")
        assert ask(server, "/none", host=name).body == TREE["www/errors/404.html"]
    assert ask(server, "/", host="app.example.org").status == 502  # nothing listens there


def test_short_forms(site):
    needs_modules(SHORT_FORMS)
    server = site(SHORT_FORMS)
    assert ask(server, "/").body == TREE["www/index.html"] and ask(server, "/internal/").status == 401
    assert ask(server, "/long.txt", "Accept-Encoding: gzip")["Content-Encoding"] == "gzip"
    assert ask(server, "/api/").status == 502  # nothing listens there


def test_host_that_moved(site):
    answer = ask(site("Several hosts"), "/a/b?c", host="www.example.org")
    assert (answer.status, answer["Location"]) == (301, "https://example.org/a/b?c")


def test_single_page_application(site):
    server = site("A single-page application")
    assert ask(server, "/any/where").body == b"app\n"
    assert ask(server, "/")["Cache-Control"] == ask(server, "/any/where")["Cache-Control"] == "no-cache"
    answer = ask(server, "/assets/app.of-the-last-release.js")
    assert (answer.status, answer["Cache-Control"]) == (404, None)
    answer = ask(server, "/assets/app.3f2a.js", "Accept-Encoding: gzip, br")
    assert (answer["Content-Encoding"], answer.body) == ("br", b"br\n")
    assert "immutable" in answer["Cache-Control"] and "Accept-Encoding" in answer["Vary"]
    assert ask(server, "/assets/app.3f2a.js").body == b"let a = 1;\n"


def get_figure(server, *keys):
    value = json.loads(ask(server, "/cache/stats").body)
    for key in keys:
        value = value[key]
    return value


def test_changes_of_cached_files(site, tmp_path):
    """A release that is replaced; files that never change are not looked at within it."""
    needs_modules(CHANGES_SEEN)
    server, app = site(CHANGES_SEEN), tmp_path / "srv/app"
    populate(app / "2", {"index.html": b"second\n", "assets/app.3f2a.js": b"let a = 1;\n"})
    await_settled(app)
    with Client(server.addresses[0]) as client:
        for _ in range(3):
            assert client.ask("/").body == b"app\n"
            assert client.ask("/assets/app.3f2a.js").body == b"let a = 1;\n"
        (app / "1/index.html").write_bytes(b"edited\n")
        assert client.ask("/").body == b"edited\n"
        (app / "next").symlink_to("2")
        (app / "next").rename(app / "current")
        assert client.ask("/").body == b"second\n"


def test_files_that_are_loaded_at_the_start(site, tmp_path):
    needs_modules(WARMED)
    await_settled(tmp_path / "srv")
    server = site(WARMED)
    server.wait_log("cache: Warm has kept")
    assert get_figure(server, "misses") == 0 and get_figure(server, "kinds", "body", "entries") == 3
    for path in ("/assets/logo.svg", "/long.txt", "/account/"):
        assert ask(server, path).status == 200
    assert get_figure(server, "kinds", "body", "entries") == 3
    assert b"<title>" in ask(server, "/cache/").body


def test_downloads(site):
    server = site("Downloads")
    answer = ask(server, "/latest")
    assert (answer.status, answer["Location"]) == (302, "/system-2.iso")
    answer = ask(server, "/system-2.iso", "Range: bytes=99990-")
    assert (answer.status, answer.body) == (206, b"i" * 10)
    assert answer["Content-Disposition"] == "attachment"


def test_interface(site):
    server = site("An API for other origins")
    answer = ask(server, "/a.json", "Origin: https://app.example.org")
    assert answer["Access-Control-Allow-Origin"] == "https://app.example.org"


def test_compressed_answers(site):
    needs_modules(COMPRESSED)
    server = site(COMPRESSED)
    answer = ask(server, "/long.txt", "Accept-Encoding: gzip, br")
    assert answer["Content-Encoding"] == "br" and decode("br", answer.body) == TREE["www/long.txt"]
    assert ask(server, "/", "Accept-Encoding: br").body == b"www\n"
    assert ask(server, "/account/", "Accept-Encoding: br").body == TREE["www/account/index.html"]


def test_a_service(site, tmp_path):
    server = site("A service", wait=False)
    log, pid = tmp_path / "error.log", tmp_path / "monkey.pid"
    port = await_true(lambda: log.exists() and re.search(r"listening on 127\.0\.0\.1:(\d+)", log.read_text()), 60)[1]
    await_true(lambda: "supervisor: process" in log.read_text(), 60, "the server")
    assert pid.read_text() == f"{server.pid}\n"
    with Client(("127.0.0.1", int(port))) as client:
        assert client.ask("/").body == b"www\n"


def test_a_service_that_starts_as_root(site, tmp_path):
    needs_modules(AS_ROOT)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    server = site(AS_ROOT, env={"ASAN_OPTIONS": "exitcode=97:detect_leaks=0"})
    server.wait_log("running as user www-data")
    assert ask(server, "/").body == b"www\n"


def script_blocks():
    """Those of pages about scripts, which other tests run with sections of their own."""
    for page in ("php", "cgi"):
        text = (GUIDE / f"{page}.md").read_text()
        for number, block in enumerate(re.findall(r"```\n(\[.*?)```", text, re.S)):
            yield pytest.param(block, id=f"{page}-{number}")


@pytest.mark.skipif(not (MODULES / "cgi.so").exists(), reason="this preset has no plugins")
@pytest.mark.parametrize("block", script_blocks())
def test_blocks_of_scripts(tmp_path, block):
    """They are valid; sockets that do not exist are warnings."""
    for folder in ("wordpress", "www", "cgi", "git"):
        (tmp_path / "srv" / folder).mkdir(parents=True)
    text = re.sub(r"/srv\b", str(tmp_path / "srv"), block)
    if not os.path.exists("/usr/lib/git-core/git-http-backend"):
        text = text.replace("/usr/lib/git-core/git-http-backend", "/bin/true")
    is_group = text.startswith("[UPSTREAM]")
    host = f"[HOST]\n    ServerName localhost\n    DocumentRoot {tmp_path}/srv/www\n"
    site = ("" if text.startswith("[HOST]") else host) + ("[FASTCGI]\n    To php\n" if is_group else text)
    populate(tmp_path / "conf", {"monkey.conf": text.encode() if is_group else b"", "sites/default": site.encode()})
    checked = run("-t", "-c", tmp_path / "conf")
    assert checked.returncode == 0 and "error" not in checked.stderr, checked.stderr
