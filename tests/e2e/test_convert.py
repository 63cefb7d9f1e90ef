# SPDX-License-Identifier: Apache-2.0
"""`monkey convert`: configurations of nginx, Caddy and Apache in data/convert become the ones next to them, which the
server accepts; what cannot be converted, or parsed, is a sentence with file and line."""

import contextlib
import http.client
import http.server
import os
import pathlib
import random
import re
import ssl
import sys
import threading
import urllib.parse

import pytest

from harness import build, fastcgi
from harness.certificates import Authority
from harness.originals import Original, find
from harness.recipes import needs_plugins
from harness.server import Server, free_port, run

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "monkey-convert").exists(), reason="this preset has no monkey-convert"),
]
DATA = build.TOP / "tests/e2e/data/convert"
RENEW = "MONKEY_RENEW_CONVERTED"
FILES = sorted(path for path in DATA.iterdir() if path.suffix in (".nginx", ".caddy", ".apache"))
FOLDERS = re.compile(r"(?<![\w/}.])/(srv|etc|var|run)(?=/)")
PLUGINS = ("auth", "cgi", "compress", "dirlisting", "fastcgi", "headers", "logger", "mandril", "proxy", "redirect",
           "respond", "status", "tls", "upstream")
sys.path.insert(0, str(build.TOP / "tools/convert"))


def convert(path, *options):
    return run("convert", path, *options)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


class Place:
    """Makes what a configuration names below a folder of the test, at free ports."""

    def __init__(self, folder, authority):
        self.folder, self.authority, self.ports = folder, authority, {}

    def port(self, found):
        return self.ports.setdefault(found, free_port())

    def translate(self, text):
        text = FOLDERS.sub(rf"{self.folder}/\1", text)
        text = re.sub(r"(Listene?r? +)(80|443|8080)\b", lambda m: f"{m[1]}127.0.0.1:{self.port(m[2])}", text)
        return re.sub(r"^    (?:User|Group) .*\n", "", text, flags=re.M)

    def make(self, text):
        """Makes the files that the keys of a translated configuration need."""
        for key, value in re.findall(r"^    (\w+) +\"?([^\"\n]+)", text, re.M):
            path = pathlib.Path(value.split()[-1])
            if key in ("Root", "DocumentRoot", "To") and path.is_absolute():
                path.mkdir(parents=True, exist_ok=True)
            elif key in ("AccessLog", "ErrorLog") and path.is_absolute():
                path.parent.mkdir(parents=True, exist_ok=True)
            elif key in ("Users", "Login"):
                path = self.folder / path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("bob:$2a$04$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n")
                path.chmod(0o600)
            elif key == "Certificate":
                made = self.authority.make("example.org", "example.org", "www.example.org")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(made.cert.read_bytes())
                key_path = pathlib.Path(re.search(r"CertificateKey +(\S+)", text)[1])
                key_path.write_bytes(made.key.read_bytes())
                key_path.chmod(0o600)
        roots = re.findall(r"^    Root +(/\S+)$", text, re.M)
        for page in re.findall(r"^    404 +(/\S+)", text, re.M):
            for root in roots:
                (pathlib.Path(root) / page[1:]).write_text("missing\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_the_configuration_next_to_it(path):
    done = convert(path)
    expected = path.with_name(path.name + ".conf")
    if os.environ.get(RENEW):
        expected.write_text(done.stdout)
    assert done.stdout == expected.read_text()
    skipped = re.search(r"^# Not converted:\n((?:# \S.*\n)+)", done.stdout, re.M)
    assert done.returncode == (1 if skipped else 0), done.stderr
    assert bool(re.fullmatch(r"monkey: \d+ of \d+ lines (?:is|are) not converted\n", done.stderr)) == bool(skipped)


@needs_plugins(*PLUGINS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_server_accepts_it(path, open_folder, authority):
    place = Place(open_folder, authority)
    text = place.translate(path.with_name(path.name + ".conf").read_text())
    place.make(text)
    (open_folder / "web.conf").write_text(text)
    checked = run("-t", open_folder / "web.conf")
    assert checked.returncode == 0, checked.stderr
    assert " error: " not in checked.stderr


EXAMPLES = re.findall(r"^```(nginx|caddy|apache)\n(.*?)^```\n\n```\n(.*?)^```",
                      (build.TOP / "docs/guide/migrate.md").read_text(), re.M | re.S)


@pytest.mark.parametrize("server, text, expected", EXAMPLES, ids=[row[0] for row in EXAMPLES])
def test_the_examples_of_the_guide(tmp_path, server, text, expected):
    assert len(EXAMPLES) == 3
    (tmp_path / "site").write_text(text)
    done = convert(tmp_path / "site", "--from", server)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.partition("\n\n")[2] == expected


ORDERED = """server {
    root /srv;
    location /closed/ { auth_basic "a"; auth_basic_user_file /srv/users; }
    location /closed/open/ { }
    location ~ [.]txt$ { expires 1d; }
    location ~ ^/other/ { expires 1h; }
}
"""


def test_locations_within_others(tmp_path):
    """What a location has is not for those within it; but expressions open no part of one with a login."""
    (tmp_path / "a.nginx").write_text(ORDERED)
    text = convert(tmp_path / "a.nginx").stdout
    rows = "[AUTH]\n    Match           /closed/open\n    Type            Off\n\n[AUTH]\n    Match           /closed\n"
    assert rows in text and text.count("[AUTH]") == 2
    assert "# a.nginx:5: what holds for /closed holds for paths of both, too\n" in text


def test_locations_within_one_that_comes_first(tmp_path):
    text = """server {
    root /srv;
    location ~ [.]txt$ { return 200 "text"; }
    location ^~ /.well-known {
        location = /.well-known/carddav { return 301 /dav/; }
        location /.well-known/acme-challenge { }
        return 301 /index.php$request_uri;
    }
}
"""
    (tmp_path / "a.nginx").write_text(text)
    made = convert(tmp_path / "a.nginx").stdout
    patterns = re.findall(r"^    Match +(\S+)", made, re.M)
    assert patterns[0] == "=/.well-known/carddav" and "acme" in patterns[1] and patterns[1].startswith("~^(?!")


def test_headers_of_one_scope(tmp_path):
    """One that is removed and a time do not replace each other."""
    text = "DocumentRoot /srv\nExpiresDefault \"access plus 1 hour\"\nHeader unset A\nHeader unset B\n"
    (tmp_path / "a.apache").write_text(text + "ProxyPass /ws ws://127.0.0.1:8080/ws\nProxyPass /a ws://127.0.0.1:1/a\n"
                                       "ProxyPass /a http://127.0.0.1:1/a\n")
    made = convert(tmp_path / "a.apache").stdout
    assert made.endswith("[HEADERS]\n    Remove          A\n    Remove          B\n    Expires         1h\n")
    assert "    Proxy           /ws http://127.0.0.1:8080\n    Proxy           /a http://127.0.0.1:1\n" in made
    assert "# a.apache:6: ProxyPass /a ws://127.0.0.1:1/a: WebSocket works without a line\n" in made


def test_patterns_that_overlap():
    from convert.patterns import covers, overlaps, without

    rows = [("/", "/a", 1, 1), ("/a", "/a/b", 1, 1), ("/a", "/ab", 0, 0), ("/a", "=/a/b", 1, 1), ("/a", "~^/a/b", 1, 1),
            ("/a", "~^/b", 0, 0), ("*.php", "=/a.php", 1, 1), ("*.php", "=/a", 0, 0), ("*.php", r"~\.(css|js)$", 0, 0),
            ("*.php", "/a", 0, 1), (r"~\.css$", r"~\.(css|js)$", 0, 1), ("=/a", "=/b", 0, 0), ("~^/a|b", "/c", 0, 1),
            ("/a", "~^/ab?c", 0, 1), ("/a", "~^/a", 0, 1), ("~^/ab?c", "/ac", 0, 1)]  # fmt: skip
    for one, two, covered, overlapping in rows:
        found = covers(one, two), overlaps(one, two), overlaps(two, one)
        assert found == (covered, overlapping, overlapping), (one, two)
    pattern = without("/", ["/api", "=/x.y", "*.php", "~*^/Z"]).removeprefix("~")
    paths = "/", "/api", "/api/a", "/apis", "/x.y", "/x_y", "/a.php", "/z", "/a"
    assert [path for path in paths if re.match(pattern, path)] == ["/", "/apis", "/x_y", "/a"]


def test_python_is_missing(tmp_path):
    program = build.install(tmp_path)
    (tmp_path / "lib/monkey").mkdir(parents=True, exist_ok=True)
    other = tmp_path / "lib/monkey/monkey-convert"
    assert "cannot run " in run("convert", "x", program=program).stderr
    other.write_text("#!/missing/python3\n")
    other.chmod(0o755)
    done = run("convert", "x", program=program)
    assert (done.returncode, done.stderr) == (2, "monkey: convert needs python3, which is not installed\n")


def test_help():
    done = run("convert", "--help")
    assert done.returncode == 0 and "--from {nginx,caddy,apache}" in done.stdout
    assert run("convert").returncode == 2


# ── the original server and this one respond alike ──

COMPARED = ("Cache-Control", "X-Frame-Options", "X-Content-Type-Options", "X-Kind")
PAGES = {"index.html": b"<p>index of FOLDER</p>", "a.css": b"p { }", "file.txt": b"text",
         "sub/index.html": b"<p>sub</p>", "404.html": b"missing", "item.html": b"<p>item</p>",
         "manual.html": b"<p>manual</p>", "empty/x.txt": b"x",
         "index.php": b"<?php", "a.php": b"<?php", ".hidden": b"hidden", "app.js": b"let a", "private/x": b"x"}


class Echo(http.server.BaseHTTPRequestHandler):
    """A backend that tells which one it is and what it was asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        text = f"{self.server.written} {self.command} {self.path} {self.headers['X-Api-Version']}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/x-echo")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_HEAD = do_POST = do_GET

    def log_message(self, *_):
        pass


class UnixEcho(http.server.ThreadingHTTPServer):
    address_family = 1

    def server_bind(self):
        self.socket.bind(self.server_address)

    def get_request(self):
        return self.socket.accept()[0], ("unix", 0)


@contextlib.contextmanager
def run_backends(text, place):
    """Backends at the addresses that a configuration names."""
    servers, applications = [], []
    for written in sorted(set(re.findall(r"(?:127[.]0[.]0[.]1|localhost):(3\d\d\d)", text))):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", place.port(written)), Echo)
        server.written = written
        servers.append(server)
    for path in set(re.findall(r"unix:(/[\w./-]+)", text)):
        here = pathlib.Path(place.translate(path))
        here.parent.mkdir(parents=True, exist_ok=True)
        if "php" in path:
            applications.append(fastcgi.Application(echo_script, str(here)))
        else:
            servers.append(UnixEcho(str(here), Echo))
            servers[-1].written = "unix"
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    with contextlib.ExitStack() as stack:
        for application in applications:
            stack.enter_context(application)
        try:
            yield
        finally:
            for server in servers:
                server.shutdown()
                server.server_close()


def echo_script(peer):
    request = peer.request()
    text = f"script {os.path.basename(request.params['SCRIPT_FILENAME'])} of {request.params['REQUEST_URI']}"
    peer.respond(text.encode(), b"Content-Type: text/x-echo\r\n\r\n")


class Sites(Place):
    """The ports of one of the two servers; files and backends are those of both."""

    def __init__(self, folder, authority, other=None):
        super().__init__(folder, authority)
        self.backends = other.backends if other else {}

    def port(self, found):
        ports = self.backends if found.startswith("3") else self.ports
        return ports.setdefault(found, free_port())

    def translate_source(self, text, server):
        text = re.sub(r"^(?:user|User|Group) .*\n", "", FOLDERS.sub(rf"{self.folder}/\1", text), flags=re.M)
        text = re.sub(r"(127[.]0[.]0[.]1|localhost):(3\d\d\d)", lambda m: f"{m[1]}:{self.port(m[2])}", text)
        if server == "nginx":
            text = re.sub(r"^ *listen \[::\].*\n", "", text, flags=re.M)
            return re.sub(r"(listen )(80|443|8080)\b", lambda m: f"{m[1]}127.0.0.1:{self.port(m[2])}", text)
        text = text.replace("${APACHE_LOG_DIR}", f"{self.folder}/var/log/apache2")
        text = re.sub(r"Listen (8080)", lambda m: f"Listen 127.0.0.1:{self.port(m[1])}", text)
        text = re.sub(r"LoadModule .*\n", "", text)
        text = re.sub(r"(<VirtualHost )\*:(80|443)", lambda m: f"{m[1]}127.0.0.1:{self.port(m[2])}", text)
        listens = "" if "Listen " in text else "".join(f"Listen 127.0.0.1:{port}\n" for port in self.ports.values())
        return listens + text


def fill(text):
    """Writes files into the folders of a converted configuration."""
    for folder in re.findall(r"^    (?:Root|To) +(/\S+)$", text, re.M):
        for name, data in PAGES.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.replace(b"FOLDER", pathlib.Path(folder).name.encode()))
            path.chmod(0o644)


def ask(ports, method, url):
    """Status, target, type, body and headers of a response."""
    parts = urllib.parse.urlsplit(url)
    written = str(parts.port or (443 if parts.scheme == "https" else 80))
    address = "127.0.0.1", ports[written]
    context = ssl._create_unverified_context()
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(*address, timeout=30, context=context)
    else:
        connection = http.client.HTTPConnection(*address, timeout=30)
    with contextlib.closing(connection):
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, headers={"Host": parts.hostname, "User-Agent": "test"})
        response = connection.getresponse()
        body = response.read()
    location = urllib.parse.urljoin(url, response.headers.get("Location", "")) if "Location" in response.headers else ""
    found = {"status": response.status, "location": re.sub(r":\d+(?=/|$)", "", location)}
    if response.status < 300:
        found["body"] = body
        found["type"] = response.headers.get("Content-Type", "").partition(";")[0]
        found.update({name: ", ".join(response.headers.get_all(name, ())) for name in COMPARED})
    return found


def read_requests(path):
    """Rows of a file: method, URL, and the names of what may differ (behind them the reason)."""
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            request, _, difference = line.partition(" | ")
            yield (*request.split(), difference.split(":")[0].split() if difference else [])


@pytest.mark.slow
@needs_plugins(*PLUGINS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_both_servers_respond_alike(path, open_folder, authority):
    server = path.suffix[1:]
    if not find(server):
        pytest.skip(f"NOT TESTED: {server} is not installed")
    source = path.read_text()
    theirs = Sites(open_folder, authority)
    ours = Sites(open_folder, authority, theirs)
    original, copied = theirs.translate_source(source, server), ours.translate_source(source, server)
    (open_folder / f"source.{server}").write_text(copied)
    text = convert(open_folder / f"source.{server}").stdout
    assert text
    head, *rest = text.split("\n[HOST")
    text = "\n[HOST".join([re.sub(r"^    (?:ErrorLog|LogLevel) .*\n", "", head, flags=re.M), *rest])
    (open_folder / "web.conf").write_text(text)
    for folder in ("run", "var/log/nginx", "var/log/apache2", "var/cache/nginx"):
        (open_folder / folder).mkdir(parents=True, exist_ok=True)
    ours.make(text)
    fill(text)
    with run_backends(source, theirs), contextlib.ExitStack() as stack:
        other = Original(server, original, open_folder, next(iter(theirs.ports.values())))
        stack.callback(other.stop)
        this = Server(open_folder / "web.conf", listeners=len(re.findall(r"^    Listen ", text, re.M)))
        stack.callback(this.stop)
        for method, url, differs in read_requests(path.with_name(path.name + ".requests")):
            expected, found = ask(theirs.ports, method, url), ask(ours.ports, method, url)
            for name in differs:
                assert expected.pop(name, None) != found.pop(name, None), f"{method} {url}: {name} is the same"
                if name == "status":
                    expected, found = {}, {}
            assert found == expected, f"{method} {url}"


# ── mistakes: a sentence with file and line ──

BROKEN = [  # name, text, place and sentence
    ("a.nginx", "server {\n    listen 80;\n", '1:1: there is no "}" for the block "server"'),
    ("a.nginx", "server {\n    listen 80\n}\n", '2:5: there is no ";" behind "listen"'),
    ("a.nginx", "server { }\n}\n", '2:1: there is no block that this "}" ends'),
    ("a.nginx", "server {\n    root \"/srv;\n}\n", '2:10: the text that begins with " does not end'),
    ("a.nginx", "server { { } }\n", '1:10: there is no directive before "{"'),
    ("a.nginx", "a {" * 80 + "}" * 80, "1:195: blocks are more than 64 deep"),
    ("a.nginx", "user www-data;\n", "1:1: no block server is there"),
    ("a.caddy", "example.org {\n    root * /srv\n", '1:1: there is no "}" for the block "example.org"'),
    ("a.caddy", "example.org {\n}\n}\n", '3:1: there is no block that this "}" ends'),
    ("a.caddy", "example.org {\n    respond \"ok\n}\n", '2:13: the text that begins with " does not end'),
    ("a.caddy", "a.org {\n    respond <<END\n    ok\n}\n", "2:13: the text that begins with <<END does not end"),
    ("a.apache", "<VirtualHost *:80>\n    ServerName a\n", "1:1: there is no </VirtualHost> for <VirtualHost>"),
    ("a.apache", "<Location />\n</Directory>\n", "2:1: </Directory> does not fit: </Location> is expected here"),
    ("a.apache", "<VirtualHost *:80\n", "1:1: <VirtualHost *:80 is no section: its bracket does not end"),
    ("a.apache", "ServerName \"a\n", '1:1: the text that begins with " does not end'),
    ("a.apache", "</VirtualHost>\n", "1:1: </VirtualHost> does not fit: no closing tag is expected here"),
]


@pytest.mark.parametrize("name, text, sentence", BROKEN, ids=[f"{row[0]}-{n}" for n, row in enumerate(BROKEN)])
def test_a_file_that_cannot_be_parsed(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_text(text)
    done = convert(path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{path}:{sentence}\n")


UNKNOWN = [
    ("a.nginx", "server {\n    listen 80;\n    root /srv;\n    frobnicate on;\n}\n",
     "# a.nginx:4: frobnicate is not converted: the word is not known at this place", "1 of 4 lines is"),
    ("a.nginx", "server {\n    root /srv;\n    location / {\n        uwsgi_pass unix:/run/a.sock;\n    }\n}\n",
     "# a.nginx:4: uwsgi_pass is not converted: there is no uwsgi: ", "1 of 4 lines is"),
    ("a.nginx", "geo $office {\n    10.0.0.0/8 1;\n}\nserver {\n    root /srv;\n}\n",
     "# a.nginx:1: geo is not converted: there are no variables", "2 of 4 lines are"),
    ("a.nginx", "server {\n    root /srv;\n    include missing.conf;\n}\n",
     "# a.nginx:3: include is not converted: the file ", "1 of 3 lines is"),
    ("a.caddy", "http://a {\n    root * /srv\n    file_server\n    templates\n}\n",
     "# a.caddy:4: templates is not converted: bodies are not changed", "1 of 4 lines is"),
    ("a.caddy", "http://a {\n    import missing.caddy\n}\n", "# a.caddy:2: import is not converted: the file ",
     "1 of 2 lines is"),
    ("a.apache", "<VirtualHost *:80>\n    DocumentRoot /srv\n    SetEnv A b\n</VirtualHost>\n",
     "# a.apache:3: SetEnv is not converted: Params of [FASTCGI]", "1 of 3 lines is"),
    ("a.apache", "DocumentRoot /srv\nInclude missing.conf\n", "# a.apache:2: Include is not converted: the file ",
     "1 of 2 lines is"),
]


@pytest.mark.parametrize("name, text, comment, count", UNKNOWN, ids=[f"{row[0]}-{n}" for n, row in enumerate(UNKNOWN)])
def test_a_line_that_is_not_converted(tmp_path, name, text, comment, count):
    path = tmp_path / name
    path.write_text(text)
    done = convert(path)
    assert done.returncode == 1 and comment in done.stdout
    assert done.stderr == f"monkey: {count} not converted\n"


def test_includes(tmp_path):
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites/a.conf").write_text("server {\n    server_name a;\n    root /srv/a;\n    foo;\n}\n")
    (tmp_path / "sites/b.conf").write_text("server {\n    server_name b;\n    root /srv/b;\n}\n")
    (tmp_path / "nginx.conf").write_text("http {\n    include sites/*.conf;\n    include none/*.conf;\n}\n")
    done = convert(tmp_path / "nginx.conf")
    assert "# a.conf:4: foo is not converted" in done.stdout and "nginx.conf:3: include none/*.conf" in done.stdout
    assert "[HOST a]\n    Root            /srv/a\n" in done.stdout and "[HOST b]" in done.stdout


@pytest.mark.parametrize("name, text", [("a.nginx", "include b.nginx;\n"), ("a.caddy", "import b.caddy\n"),
                                        ("a.apache", "Include b.apache\n")])  # fmt: skip
def test_files_that_include_each_other(tmp_path, name, text):
    other = tmp_path / text.split()[1].strip(";")
    (tmp_path / name).write_text("\n" + text)
    other.write_text(text.replace("b.", "a."))
    done = convert(tmp_path / name)
    assert done.returncode == 2
    assert done.stderr == f"{other}:1:1: {name} includes itself\n"


def test_snippets_that_import_each_other(tmp_path):
    (tmp_path / "Caddyfile").write_text("(a) {\n    import b\n}\n(b) {\n    import a\n}\nhttp://x {\n    import a\n}\n")
    done = convert(tmp_path / "Caddyfile")
    assert done.returncode == 2 and done.stderr.endswith(": snippets import each other without end\n")


def test_the_kind_of_a_file(tmp_path):
    texts = {"nginx": "server {\n    listen 80;\n    root /srv;\n}\n",
             "caddy": "http://a {\n    root * /srv\n    file_server\n}\n",
             "apache": "<VirtualHost *:80>\n    DocumentRoot /srv\n</VirtualHost>\n"}
    for text in texts.values():
        (tmp_path / "site").write_text(text)
        done = convert(tmp_path / "site")
        assert (done.returncode, done.stderr) == (0, "") and "    Root            /srv\n" in done.stdout
    (tmp_path / "site").write_text("hello\n")
    done = convert(tmp_path / "site")
    assert done.returncode == 2 and "write --from nginx, --from caddy or --from apache" in done.stderr
    assert convert(tmp_path / "missing").stderr.endswith("cannot be read: No such file or directory\n")
    assert convert(tmp_path / "site", "--from", "nginx").returncode == 2


def test_output_to_a_file(tmp_path):
    text = "http://a {\n    root * /srv\n    file_server\n    basic_auth {\n        bob $2a$04$abc\n    }\n}\n"
    (tmp_path / "a.caddy").write_text(text)
    done = convert(tmp_path / "a.caddy", "-o", tmp_path / "web.conf")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "    Login           caddy-users\n" in (tmp_path / "web.conf").read_text()
    assert (tmp_path / "caddy-users").read_text() == "bob:$2a$04$abc\n"
    assert (tmp_path / "caddy-users").stat().st_mode & 0o077 == 0o040


# ── any text either is converted, or gives a sentence ──

PIECES = {
    "nginx": "server location listen server_name root / ~ = ^~ { } ; { } ; \n \" ' \\ $host return 301 if "
              "( ) proxy_pass http://a try_files $uri @a rewrite ^/(.*)$ # x include alias upstream "
              "error_page limit_req [::]:80 1m",
    "caddy": "example.org { } \n \n handle @a /x* {path} reverse_proxy :80 redir respond \" ` <<A A import "
              "(a) a tls # \\ basic_auth header -X route file_server root * php_fastcgi try_files log { } "
              "\n not path",
    "apache": "<VirtualHost *:80> </VirtualHost> \n \n <Directory /a> </Directory> Require ip all \" \\ "
              "RewriteRule ^ [R] RewriteCond %{HTTPS} off ProxyPass / http://a/ Alias Header set Redirect "
              "301 # <Location / > Options -X",
}


@pytest.mark.parametrize("server", PIECES)
def test_random_texts(tmp_path, server):
    from convert import cli
    from convert.report import ConvertError

    chance, pieces = random.Random(server), [piece for piece in PIECES[server].split(" ") if piece]
    path = tmp_path / f"a.{server}"
    converted = 0
    for _ in range(1500):
        words = [chance.choice(pieces) for _ in range(chance.randrange(40))]
        if server == "nginx" and chance.random() < 0.5:  # of lines that can be parsed
            words = ["server {", *(word for word in words if word not in "{}\"'\\()#"), "; }"]
        path.write_text("".join(word + chance.choice([" ", " ", "\n", ""]) for word in words))
        try:
            text, *_ = cli.convert(str(path), server)
            converted += 1
            assert text.startswith("# Converted from ")
        except ConvertError as error:
            assert re.match(rf"{re.escape(str(path))}:\d+:\d+: \S", str(error))
    assert converted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_texts_with_a_piece_missing(tmp_path, path):
    """Real configurations, of which a few bytes are missing or twice there."""
    from convert import cli
    from convert.report import ConvertError

    chance, source, copy = random.Random(path.name), path.read_text(), tmp_path / path.name
    for _ in range(60):
        begin = chance.randrange(len(source))
        end = min(len(source), begin + chance.randrange(1, 30))
        copy.write_text(source[:begin] + source[begin:end] * chance.choice([0, 2]) + source[end:])
        with contextlib.suppress(ConvertError):
            cli.convert(str(copy), path.suffix[1:])
