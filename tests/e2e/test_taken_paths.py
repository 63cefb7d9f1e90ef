# SPDX-License-Identifier: Apache-2.0
"""What a section takes by its pattern is never sent as a file, by whatever way it is reached, and an index that is such
a program is run (test_sources.py has programs by their extension, and each directive)."""

import gzip
import io
import os
import re
import tarfile

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import OLD, populate
from harness.fastcgi import Application
from harness.fastcgi import answer as run_script
from harness.scripts import write_scripts
from harness.server import run, section, write_config
from harness.ways import WAYS as PROTOCOLS

pytestmark = pytest.mark.single_protocol
needs_gateways = pytest.mark.skipif(
    not all((build.PLUGINS / f"{name}.so").exists() for name in ("proxy", "fastcgi", "cgi")),
    reason="this preset has no gateways",
)
SECRET = b"<?php secret ?>\n"
SCRIPT = "#!/bin/sh\n# secret\nprintf 'Content-Type: text/plain\\n\\nran %s' \"$SCRIPT_NAME\"\n"
FILES = {
    "page.txt": b"page\n",
    "index.php": SECRET,
    "about.php": SECRET,
    "about.php.bak": SECRET,
    ".about.php.swp": SECRET,
    "about.php~": SECRET,
    "sub/index.php": SECRET,
    "sub/index.html": b"sub\n",
    "sub/a.txt": b"a\n",
    "app/secret.py": SECRET,
    "app/deep/index.html": SECRET,
    "app/static/a.css": b"css\n",
}


@pytest.fixture(params=["h1", "h2"])
def protocol(request):
    if not build.speaks("h2"):
        pytest.skip(f"the preset {build.PRESET} has no HTTP/2")
    return PROTOCOLS[request.param]


@pytest.fixture
def site(tmp_path):
    root = populate(tmp_path / "root", FILES)
    (root / "page.txt.gz").symlink_to("about.php")
    (root / "link.txt").symlink_to("about.php")
    (root / "applink.txt").symlink_to("app/secret.py")
    (root / "about.php.gz").write_bytes(gzip.compress(SECRET, mtime=0))
    for name in ("about.php.gz", "about.php"):
        os.utime(root / name, (OLD, OLD))
    return root


# Sections that take scripts by a pattern; the text is for a backend, an application of FastCGI, and one of SCGI.
OTHERS = "".join(f"[PROXY]\nMatch =/other{n}\nTo {{http}}\n" for n in range(20))
NAMES = {
    "proxy *.php": "[PROXY]\nMatch *.php\nTo {http}\n",
    "proxy /*.php": "[PROXY]\nMatch /**.php\nTo {http}\n",
    "proxy ~php": "[PROXY]\nMatch ~\\.php$\nTo {http}\n",
    "proxy ~*php": "[PROXY]\nMatch ~*\\.PHP(/|$)\nTo {http}\n",
    "proxy ~/|php": "[PROXY]\nMatch ~^/$|\\.php$\nTo {http}\n",
    "proxy =": "".join(f"[PROXY]\nMatch =/{name}.php\nTo {{http}}\n" for name in ("index", "about", "sub/index")),
    "proxy =, of many": OTHERS
    + "".join(f"[PROXY]\nMatch =/{name}.php\nTo {{http}}\n" for name in ("index", "about", "sub/index")),
    "proxy *.php, of many": OTHERS + "[PROXY]\nMatch *.php\nTo {http}\n",
    "proxy by a handler": "[PROXY]\nMatch /\nTo {http}\n[HANDLERS]\nMatch *.php proxy\nMatch / static\n",
    "fastcgi *.php": "[FASTCGI]\nMatch *.php\nTo {fastcgi}\n",
    "fastcgi Split Off": "[FASTCGI]\nMatch *.php\nSplit Off\nTo {fastcgi}\n",
    "scgi *.php": "[SCGI]\nMatch *.php\nSplit .php\nTo {scgi}\n",
    "scgi Split Off": "[SCGI]\nMatch ~\\.php$\nTo {scgi}\nSplit Off\n",
    "cgi *.php": "[CGI]\nMatch *.php\n",
    "cgi ~php": "[CGI]\nMatch ~\\.php$\nInterpreter .php /bin/sh\n",
}
# Directives by which a file is found, and requests that would get it.
WAYS = {
    "Indexfile": ({"Indexfile": "index.html index.php"}, "", ["/", "/sub/"]),
    "several names": ({"Indexfile": "none.php index.php about.php"}, "", ["/", "/sub/"]),
    "TryFiles": ({"TryFiles": "$path $path.php =404"}, "", ["/about", "/index", "/sub/index", "/about.php"]),
    "TryFiles, a last name": ({"TryFiles": "$path /about.php"}, "", ["/none", "/about.php"]),
    "TryFiles, then others": ({"TryFiles": "$path"}, "", ["/about.php", "/index.php"]),
    "TryFiles, a folder": ({"TryFiles": "$path $path/ /sub/", "Indexfile": "index.php"}, "", ["/", "/sub", "/none"]),
    "an exact alias": ({}, "[ALIAS]\nMatch =/x\nTo {root}/about.php\n", ["/x"]),
    "an alias": ({"Indexfile": "index.php"}, "[ALIAS]\nMatch /y\nTo {root}\n", ["/y/about.php", "/y/", "/y/sub/"]),
    "a link": ({"SymLink": "On"}, "", ["/link.txt"]),
    "a link inside": ({"SymLink": "Inside"}, "", ["/link.txt"]),
    "a handler": ({}, "[HANDLERS]\nMatch /about.php static\n", ["/about.php"]),
    "copies": ({"DotFiles": "On"}, "", ["/about.php.bak", "/about.php~", "/.about.php.swp", "/about.php.gz"]),
    "variants": ({"Precompressed": "gzip", "SymLink": "On"}, "", ["/page.txt", "/about.php"]),
}


def indent(text):
    return re.sub(r"^ *(?=\w)", "    ", text, flags=re.M)


@pytest.fixture
def start(serve, site, protocol):  # pylint: disable=unused-argument
    servers = []

    def scgi(peer):
        peer.request_scgi()
        peer.send(b"Content-Type: text/plain\r\n\r\nran")

    def make(text, host=None, **rest):
        made = [Backend(answer(b"ran", "Content-Type: text/plain")), Application(run_script(b"ran")), Application(scgi)]
        servers.extend(made)
        http, fastcgi, scgi_server = (one.__enter__() for one in made)
        if "[CGI]" in text:
            write_scripts(site, {name: SCRIPT for name in ("index.php", "about.php", "sub/index.php")})
        filled = text.replace("{http}", http.url).replace("{fastcgi}", fastcgi.to).replace("{scgi}", scgi_server.to)
        server = serve(root=site, host=host, text=indent(filled.replace("{root}", str(site))), **rest)
        server.baseline += 2 if "[CGI]" in text else 0  # sockets of the starter
        server.http, server.fastcgi = http, fastcgi
        return server

    yield make
    for one in servers:
        one.__exit__(None, None, None)


def ask(client, target):
    for fields in ((), ("Accept-Encoding: gzip, br",), ("Range: bytes=0-99",)):
        got = client.ask(target, *fields)
        assert b"secret" not in got.body, (target, got)
        assert gzip.compress(SECRET, mtime=0) not in got.body, (target, got)
    return got


@needs_gateways
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_scripts_are_never_sent(start, protocol, name, way):
    host, text, targets = WAYS[way]
    if "HANDLERS" in NAMES[name] and "HANDLERS" in text:
        text = ""
    with protocol.connect(start(text + NAMES[name], host)) as client:
        for target in targets:
            ask(client, target)
        assert client.ask("/page.txt").body == b"page\n"


@needs_gateways
@pytest.mark.parametrize("name", NAMES)
def test_error_page(site, tmp_path, name):
    """It is told at the start, as for programs by their extension."""
    text = NAMES[name].replace("{http}", "http://127.0.0.1:1").replace("{fastcgi}", "127.0.0.1:1")
    text = text.replace("{scgi}", "127.0.0.1:1") + section("ERROR_PAGES", {"404": "/about.php"})
    write_scripts(site, {"about.php": SCRIPT})
    write_config(tmp_path / "conf", site, text=indent(text))
    said = run("-c", tmp_path / "conf", "-t").stderr
    assert "the page /about.php is a program of another plugin, and never sent" in said


@needs_gateways
@pytest.mark.parametrize("name", [each for each in NAMES if each not in ("proxy ~/|php", "proxy by a handler")])
def test_listing_and_archive(start, protocol, name):
    text = NAMES[name] + section("DIRLISTING", {"Archives": "tar"})
    with protocol.connect(start(text, {"Indexfile": "none"})) as client:
        shown = re.findall(rb'"name": ?"([^"]*)"', client.ask("/", "Accept: application/json").body)
        assert b"page.txt" in shown and not [each for each in shown if b"php" in each], shown
        got = client.ask("/?archive=tar")
        with tarfile.open(fileobj=io.BytesIO(got.body)) as archive:
            names = archive.getnames()
        assert [each for each in names if "page" in each] and not [each for each in names if "php" in each], names


# ── an index that is a program ──

RUN = [each for each in NAMES if each != "proxy ~/|php"]  # which takes "/" itself


@needs_gateways
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PROPFIND"])
@pytest.mark.parametrize("name", RUN)
def test_an_index_is_run(start, protocol, name, method):
    server = start(NAMES[name] + section("DIRLISTING", {"Match": "/"}), {"Indexfile": "index.php index.html"})
    with protocol.connect(server) as client:
        for folder in ("/", "/sub/"):
            got = client.ask(f"{folder}?a=b", method=method, **({"body": b"x=y"} if method == "POST" else {}))
            assert got.status == 200 and (method == "HEAD" or got.body.startswith(b"ran")), (folder, got)
    if "proxy" in name:
        assert [each.target for each in server.http.requests] == ["/index.php?a=b", "/sub/index.php?a=b"]
        assert method != "POST" or server.http.requests[0].body == b"x=y"
    if name == "fastcgi *.php":
        params = server.fastcgi.requests[1].params
        wanted = {"SCRIPT_NAME": "/sub/index.php", "REQUEST_URI": "/sub/?a=b", "QUERY_STRING": "a=b"}
        assert {key: params[key] for key in wanted} == wanted


@needs_gateways
@pytest.mark.parametrize("name", RUN)
def test_the_last_name_of_tryfiles_is_run(start, protocol, site, name):
    """As the front controller of an application: it gets what is not there, with all methods. Files come first."""
    host = {"TryFiles": "$path $path/ /index.php", "Indexfile": "index.html"}
    server = start(NAMES[name], host)
    with protocol.connect(server) as client:
        for method in ("GET", "HEAD", "POST", "DELETE"):
            for path in ("/none", "/none/deep/", "/page?a=b", "/index.php"):
                got = client.ask(path, method=method, **({"body": b"x=y"} if method == "POST" else {}))
                assert got.status == 200 and (method == "HEAD" or got.body.startswith(b"ran")), (path, got)
        assert client.ask("/page.txt").body == b"page\n"
        assert client.ask("/sub/").body == b"sub\n"
        assert client.ask("/sub").status == 301
        (site / "index.php").unlink()
        is_proxied = "proxy" in name or "Split Off" in name  # where the script is, or none, is the backend's matter
        assert client.ask("/gone").status == 404 or is_proxied
    if name == "fastcgi *.php":
        params = server.fastcgi.requests[0].params
        assert (params["SCRIPT_NAME"], params["REQUEST_URI"]) == ("/index.php", "/none")


@needs_gateways
@pytest.mark.parametrize("tries, path", [
    ("$path /index.php =404", "/none"),  # only the last name is for what is not there
    ("/index.php $path", "/none"),
    ("$path $path.php", "/about"),
    ("$path /gone.php", "/none"),
])  # fmt: skip
def test_other_names_of_tryfiles_are_not_run(start, protocol, tries, path):
    with protocol.connect(start(NAMES["proxy *.php"], {"TryFiles": tries})) as client:
        assert client.ask(path).status == 404
        assert client.ask(path, method="POST", body=b"").status == 405


@needs_gateways
@pytest.mark.parametrize("name", RUN)
def test_the_server_itself(start, protocol, name):
    """`OPTIONS *` is about no path; a proxy for all passes it on."""
    with protocol.connect(start(NAMES[name])) as client:
        assert client.ask("*", method="OPTIONS").status == (200 if name == "proxy by a handler" else 204)


@needs_gateways
def test_an_index_of_other_folders(start, protocol, site):
    """The first name that is there is used, also behind one of a program; other folders have none."""
    populate(site, {"sub2/page.php": SECRET, "empty/a.txt": b"a\n"})
    host = {"Indexfile": "index.html index.php", "TryFiles": "$path $path/"}
    with protocol.connect(start(NAMES["fastcgi *.php"], host)) as client:
        assert client.ask("/sub/").body == b"sub\n"
        assert client.ask("/").body == b"ran"
        assert client.ask("/sub").status == 301
        assert client.ask("/empty/").status == 404
        assert client.ask("/empty/", method="POST", body=b"").status == 405
        assert client.ask("/page.txt", method="POST", body=b"").status == 405
        assert client.ask("/empty/", method="PROPFIND").status == 501


@needs_gateways
@pytest.mark.parametrize("rule, status", [("[AUTH]\nMatch *.php\nType Forward\nTo http://127.0.0.1:1\n", 503),
                                          ("[RULES]\nMatch *.php\nAction deny\n", 403),
                                          ("[RULES]\nMatch /sub\nAction deny\n", 200),
                                          ("[REDIRECT]\nMatch =/index.php\nTo /\n", 200)])  # fmt: skip
def test_access_to_an_index(start, protocol, rule, status):
    """Rules and logins go by the path of the script, too; redirects of that path do not."""
    with protocol.connect(start(NAMES["fastcgi *.php"] + rule, {"Indexfile": "index.php"})) as client:
        assert client.ask("/").status == status


# ── folders ──

FOLDERS = {
    "proxy": "[PROXY]\nMatch /app\nTo {http}\n",
    "proxy ~": "[PROXY]\nMatch ~^/app(/|$)\nTo {http}\n",
    "fastcgi": "[FASTCGI]\nMatch /app\nSplit Off\nTo {fastcgi}\n",
    "scgi": "[SCGI]\nMatch /app\nSplit Off\nTo {scgi}\n",
    "cgi": "[CGI]\nMatch /app\n",
    "handler": "[PROXY]\nMatch /\nTo {http}\n[HANDLERS]\nMatch /app proxy\nMatch / static\n",
}
FOLDER_WAYS = {
    "TryFiles": ({"TryFiles": "$path /app/secret.py"}, "", ["/none"]),
    "an exact alias": ({}, "[ALIAS]\nMatch =/x\nTo {root}/app/secret.py\n", ["/x"]),
    "an alias": ({}, "[ALIAS]\nMatch /y\nTo {root}\n", ["/y/app/secret.py", "/y/app/deep/"]),
    "a link": ({"SymLink": "On"}, "", ["/applink.txt"]),
    "an index": ({"Indexfile": "app/secret.py"}, "", ["/"]),
}


@needs_gateways
@pytest.mark.parametrize("way", FOLDER_WAYS)
@pytest.mark.parametrize("name", FOLDERS)
def test_folders_are_never_sent(start, protocol, name, way):
    host, text, targets = FOLDER_WAYS[way]
    with protocol.connect(start(text + FOLDERS[name], host)) as client:
        for target in targets:
            ask(client, target)
        assert client.ask("/page.txt").body == b"page\n"


@needs_gateways
@pytest.mark.parametrize("text", ["[PROXY]\nMatch /\nTo {http}\n", "[PROXY]\nMatch ~^/(?!static/)\nTo {http}\n",
                                  "[PROXY]\nMatch /app\nTo {http}\n"])  # fmt: skip
def test_files_first(start, protocol, text):
    """A section that comes after files takes nothing from them, but what has its name."""
    with protocol.connect(start(text, {"TryFiles": "$path"})) as client:
        assert client.ask("/page.txt").body == b"page\n"
        assert client.ask("/app/static/a.css").body == b"css\n"
        assert client.ask("/app/none").body == b"ran"


# ── an alias within the prefix of a section ──


@needs_gateways
@pytest.mark.parametrize("line", ["", "[HANDLERS]\nMatch /app/static static\n"], ids=["alone", "with a line"])
@pytest.mark.parametrize("name", FOLDERS)
def test_alias_within(start, protocol, site, tmp_path, name, line):
    """It comes first, and the section has all other paths."""
    outside = populate(tmp_path / "outside", {"a.css": b"css\n", "deep/index.html": b"deep\n", "one.txt": b"one\n"})
    text = section("ALIAS", {"Match": "/app/static", "To": outside})
    text += section("ALIAS", {"Match": "=/app/one", "To": outside / "one.txt"})
    if name in ("proxy ~", "handler"):
        pytest.skip("a regular expression has no prefix, and a line of [HANDLERS] is explicit")
    write_scripts(site, {"app/x": SCRIPT})
    server = start(text + line + FOLDERS[name])
    with protocol.connect(server) as client:
        assert client.ask("/app/static/a.css").body == b"css\n"
        assert client.ask("/app/static/deep/").body == b"deep\n"
        assert client.ask("/app/static").status == 301
        assert client.ask("/app/static/none").status == 404
        assert client.ask("/app/one").body == b"one\n"
        for path in ("/app/x", "/app/statics", "/app/one/x"):
            assert client.ask(path).body.startswith(b"ran") or ("cgi" == name and path != "/app/x"), path


@needs_gateways
@pytest.mark.parametrize("keys, is_said", [
    ({"/app": "CGI", "/app/static": "ALIAS"}, False),
    ({"/app": "CGI", "=/app/one": "ALIAS"}, False),
    ({"/app/static": "CGI", "/app": "ALIAS"}, False),
    ({"/app": "CGI", "/app ": "ALIAS"}, True),
    ({"~^/app/": "CGI", "/app/static": "ALIAS"}, False),
    ({"/**": "CGI", "/app/static": "ALIAS"}, True),
])  # fmt: skip
def test_order_is_checked(site, tmp_path, keys, is_said):
    targets = {match: {"To": site / ("page.txt" if match[0] == "=" else "app")} for match in keys}
    rules = {match: targets[match] if name == "ALIAS" else {} for match, name in keys.items()}
    text = "".join(section(name, {"Match": match, **rules[match]}) for match, name in keys.items())
    write_config(tmp_path / "conf", site, text=text)
    assert ("no request gets here" in run("-c", tmp_path / "conf", "-t").stderr) == is_said
