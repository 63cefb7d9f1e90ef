# SPDX-License-Identifier: Apache-2.0
"""`monkey -t` on values that a key takes for something else than what was meant: a word for a name, a variable of
another server, two words for one. Each is one error or warning, with its place and what would be right."""

import pytest

from harness import build
from harness.server import run, write_config
from test_mistakes import PLACE
from test_mistakes_together import HOST, SECTIONS, SERVER, fill

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in (*SECTIONS, "health", "proxy")),
        reason="this preset has not all plugins",
    ),
]

BACKEND = "[PROXY]\n    To http://127.0.0.1:1\n    "
SECURE = "[PROXY]\n    To https://127.0.0.1:1\n    TlsVerify Off\n    "
NO_SWITCH = '"Upgrade": it takes names of protocols: write websocket, or leave the line out; Off passes none on'
CLIENT_HOST = '"HostHeader": a host name has no variables: write Client for the Host of the client'
NO_VARIABLE = (
    '"To": every request gets the same path, and $1 as it is: StripPrefix, a path in To, and [REWRITE] change the '
    "path; write a dollar as %24"
)
ONE_LINE = 'a page is for one status: write a line for each, such as "500 /50x.html"'

# What follows the first section, or a whole file; line and column of the mistake, and the sentence.
ROWS = {
    "Upgrade as a switch": (HOST, BACKEND + "Upgrade On\n", 6, 13, NO_SWITCH),
    "Upgrade as a switch among protocols": (HOST, BACKEND + "Upgrade websocket yes\n", 6, 23, NO_SWITCH),
    "Upgrade for all": (HOST, BACKEND + "Upgrade *\n", 6, 13, NO_SWITCH),
    "a host of nginx": (HOST, BACKEND + "HostHeader $host\n", 6, 16, CLIENT_HOST),
    "a host of Caddy": (HOST, BACKEND + "HostHeader {host}\n", 6, 16, CLIENT_HOST),
    "a header of nginx": (HOST, BACKEND + "HostHeader $http_host:80\n", 6, 16, CLIENT_HOST),
    "HostHeader as a switch": (
        HOST, BACKEND + "HostHeader On\n", 6, 16,
        '"HostHeader": it is no switch: write Client for the Host of the client, or Backend for the host in To',
    ),
    "TlsName as a variable": (
        HOST, BACKEND.replace("http:", "https:") + "TlsName $host\n", 6, 13,
        "the name of the server has no variables: it is the same for all requests",
    ),
    "a capture in To": (HOST, "[PROXY]\n    To http://127.0.0.1:1/$1\n", 5, 8, NO_VARIABLE),
    "a level behind ErrorLog": (
        SERVER, "    ErrorLog /nonexistent/error.log warn\n", 2, 14,
        '"ErrorLog": one path is needed (in quotes if it has blanks), or stderr; how much is logged says LogLevel',
    ),
    "a level behind stderr": (
        SERVER, "    ErrorLog stderr warn\n", 2, 14,
        '"ErrorLog": one path is needed (in quotes if it has blanks), or stderr; how much is logged says LogLevel',
    ),
    "ErrorLog to syslog": (
        SERVER, "    ErrorLog syslog:local0\n", 2, 14,
        '"ErrorLog": this log does not go to syslog: write stderr, which systemd passes to its journal, or a path',
    ),
    "ErrorLog off": (
        SERVER, "    ErrorLog off\n", 2, 14,
        '"ErrorLog": it has no Off: write LogLevel error for less, or ErrorLog /dev/null for nothing',
    ),
    "ErrorLog in capitals": (SERVER, "    ErrorLog STDERR\n", 2, 14, '"ErrorLog": write stderr in small letters'),
    "ErrorLog to stdout": (SERVER, "    ErrorLog stdout\n", 2, 14, '"ErrorLog": write stderr, or /dev/stdout'),
    "many statuses of a page": (HOST, "[ERROR_PAGES]\n    500 502 503 504 /50x.html\n", 5, 5, ONE_LINE),
    "two statuses of a text": (
        HOST, "[ERROR_PAGES]\n    500 503 maintenance.html\n", 5, 5,
        'a page is for one status: write a line for each, such as "500 /maintenance.html"',
    ),
    "an expression without its slash": (
        HOST, "[RULES]\n    Match ~^admin/x$\n    Action deny\n", 5, 13,
        '"Match": paths begin with a slash: write ~^/admin/x$',
    ),
    "a flag of Apache": (
        HOST, "[REWRITE]\n    Match /a\n    To /b [QSA,L]\n", 6, 11,
        '"To": flags in brackets are those of Apache: write lines, such as "Last On" for [L]; the query is kept '
        "without one",
    ),
    "flags of Apache": (
        HOST, "[REDIRECT]\n    Match /a\n    To /b [R=301,L]\n", 6, 11,
        '"To": flags in brackets are those of Apache: write lines, such as "Status 301" for [R=301]; the query is kept '
        "without one",
    ),
    "alternatives without their slash": (
        HOST, "[RULES]\n    Match ~^(admin|x(a|b)\\))(/|$)\n    Action deny\n", 5, 13,
        '"Match": paths begin with a slash: write ~^/(admin|x(a|b)\\))(/|$)',
    ),
    "alternatives that are not captured": (
        HOST, "[RULES]\n    Match ~^(?:admin|x)\n    Action deny\n", 5, 13,
        '"Match": paths begin with a slash: write ~^/(?:admin|x)',
    ),
    "an expression in any case without its slash": (
        HOST, "[HEADERS]\n    Match ~*^_x\n    Set X-A b\n", 5, 14,
        '"Match": paths begin with a slash: write ~*^/_x',
    ),
    "a list in braces": (
        HOST, "[HEADERS]\n    Match *.{css,js}\n    Set X-A b\n", 5, 13,
        '"Match": braces list nothing here: write an expression such as ~\\.(css|js)$',
    ),
    "a list of folders in braces": (
        HOST, "[HEADERS]\n    Match /{a,b}/\n    Set X-A b\n", 5, 12,
        '"Match": braces list nothing here: write an expression such as ~\\.(css|js)$',
    ),
    "include of nginx": (
        SERVER, "include conf.d/*.conf\n", 2, 1, 'another file is read by @INCLUDE: write "@INCLUDE FILE"',
    ),
    "Include of Apache": (
        HOST, "Include conf.d/a.conf\n", 4, 1, 'another file is read by @INCLUDE: write "@INCLUDE FILE"',
    ),
    "workers by themselves": (
        SERVER, "    Workers auto\n", 2, 13,
        '"Workers" wants a number from 0 to 1024, not "auto"; 0 starts one for each processor',
    ),
    "the time of KeepAlive": (
        SERVER, "    KeepAlive 65\n", 2, 15,
        '"KeepAlive" wants On or Off, not "65"; how long is KeepAliveTimeout',
    ),
    "one timeout of a proxy": (
        HOST, BACKEND + "Timeout 30s\n", 6, 5,
        '"Timeout" is not a key of [PROXY] here; there are several: ConnectTimeout, ResponseTimeout, ReadTimeout and '
        "SendTimeout",
    ),
    "one path of health": (
        SERVER, "[HEALTH]\n    LivenessPath /live\n    Path /health\n", 3, 5,
        '"Path" is not a key of [HEALTH] here; there are two: LivenessPath and ReadinessPath',
    ),
    "last behind a rewrite": (
        HOST, "[REWRITE]\n    Match ~^/a/(.*)\n    To /b/$1 last\n", 6, 14,
        '"To": this has its own line: write "Last On"',
    ),
    "permanent behind a rewrite": (
        HOST, "[REWRITE]\n    Match /a\n    To /b permanent\n", 6, 11,
        '"To": a rewritten request has no status: [REDIRECT] redirects, with "Status 301"',
    ),
    "permanent behind a redirection": (
        HOST, "[REDIRECT]\n    Match /a\n    To /b permanent\n", 6, 11,
        '"To": a status has its own line: write "Status 301"',
    ),
}  # fmt: skip

LEVEL = (
    "paths further below do not match, such as {0}a/b: write {0} or {0}**, or an expression (~^{0}[^/]*$) if that "
    "is meant"
)

# What is valid, but protects less than it seems to.
WARNINGS = {
    "one level of a rule": (
        HOST, "[RULES]\n    Match /admin/*\n    Action deny\n", 5, 11, LEVEL.format("/admin/")
    ),
    "no changes of headers": (
        HOST, "[HEADERS]\n    OnErrors On\n", 4, 1,
        'this section has no effect without "Set NAME VALUE", "Add", "Remove" or "Expires"',
    ),
    "no changes of headers of a path": (
        HOST, "[HEADERS]\n    Match /a\n", 5, 11,
        'this section has no effect without "Set NAME VALUE", "Add", "Remove" or "Expires"',
    ),
    "a header in single quotes": (
        HOST, "[HEADERS]\n    Set Cache-Control 'no-store, max-age=0'\n", 5, 9,
        "quotes are double: 'no-store, max-age=0' is sent with its single ones",
    ),
    "no handlers": (
        HOST, "[HANDLERS]\n", 4, 1, 'this section has no effect without a line "Match PATTERN PLUGIN"'
    ),
    "a method in small letters": (
        HOST, "[CORS]\n    Origins *\n    Methods GET put\n", 6, 17, 'no page uses the method "put": write "PUT"'
    ),
    "an index with a slash": (
        HOST, "    Indexfile index.php /index.html\n", 4, 25,
        "an index is a file of the folder that is asked for: write its name without a slash",
    ),
    "one level of a login": (
        HOST, "[AUTH]\n    Match /*\n    Type Forward\n    To http://127.0.0.1:1/a\n", 5, 11, LEVEL.format("/")
    ),
}  # fmt: skip

# What is valid, and stays so.
VALID = {
    "no protocol": (HOST, BACKEND + "Upgrade Off\n"),
    "another protocol": (HOST, BACKEND + "Upgrade websocket raw\n"),
    "the host of the client": (HOST, BACKEND + "HostHeader Client\n"),
    "a host with a port": (HOST, BACKEND + "HostHeader app.example:80\n"),
    "a dollar in To": (HOST, "[PROXY]\n    To http://127.0.0.1:1/$metadata\n"),
    "ErrorLog to a file with a blank": (SERVER, '    ErrorLog "/tmp/a log"\n'),
    "all levels of a rule": (HOST, "[RULES]\n    Match /admin/**\n    Action deny\n"),
    "names in all folders": (HOST, "[RULES]\n    Match /a/*.x\n    Action deny\n"),
    "an expression of a path": (HOST, "[RULES]\n    Match ~^/admin/[^/]*$\n    Action deny\n"),
    "an expression with an optional start": (HOST, "[HEADERS]\n    Match ~^a?/b\n    Set X-A b\n"),
    "alternatives, one with its slash": (HOST, "[HEADERS]\n    Match ~^(a|/b)\n    Set X-A b\n"),
    "alternatives, one with an optional start": (HOST, "[HEADERS]\n    Match ~^(a|b?/c)\n    Set X-A b\n"),
    "alternatives outside of a group": (HOST, "[HEADERS]\n    Match ~^(a)|/b\n    Set X-A b\n"),
    "an alternative without a group": (HOST, "[HEADERS]\n    Match ~^a|/b\n    Set X-A b\n"),
    "alternatives with a quote": (HOST, "[HEADERS]\n    Match ~^(a\\Q)\\E|/x)\n    Set X-A b\n"),
    "alternatives that may be missing": (HOST, "[HEADERS]\n    Match ~^(a|b)?/c\n    Set X-A b\n"),
    "sources in single quotes": (HOST, "[HEADERS]\n    Set Content-Security-Policy default-src 'self'\n"),
    "a method of one's own": (HOST, "[CORS]\n    Origins *\n    Methods GET purge\n"),
    "braces in a path": (HOST, "[HEADERS]\n    Match /{a}/b\n    Set X-A b\n"),
    "a text with a number": (HOST, "[ERROR_PAGES]\n    500 503 times this has failed\n"),
}


def check_rows(folder, root, rows):
    """Checks all rows at once, each in a file. Returns what was found of each."""
    files = {}
    for number, (kind, text, *_) in enumerate(rows.values()):
        files[f"{'parts' if kind is SERVER else 'sites'}/{number}"] = fill(kind, text, number, root)
    result, found = None, {name: [] for name in rows}
    includes = "".join(f"@INCLUDE {name}\n" for name in files if name.startswith("parts/"))
    files["monkey.conf"] = "[SERVER]\n    Listen 127.0.0.1:0\n" + includes
    result = run("-c", write_config(folder, root, files=files), "-t")
    for m in PLACE.finditer(result.stderr):
        name = list(rows)[int(m["file"].rpartition("/")[2])]
        found[name].append((int(m["line"]), int(m["col"]), m["severity"], m["text"]))
    return result.returncode, found


@pytest.mark.parametrize(("rows", "severity", "code"), [(ROWS, "error", 1), (WARNINGS, "warning", 0)])
def test_mistakes(tmp_path, site_root, rows, severity, code):
    expected = {name: [(line, col, severity, sentence)] for name, (_, _, line, col, sentence) in rows.items()}
    assert check_rows(tmp_path / "conf", site_root, rows) == (code, expected)


def test_valid(tmp_path, site_root):
    assert check_rows(tmp_path / "conf", site_root, VALID) == (0, {name: [] for name in VALID})


def test_listeners(tmp_path, site_root):
    """The line that is not needed is reported, wherever it is; and a path that no socket can have."""
    file = tmp_path / "file"
    file.write_text("kept")
    lines = ["Listen 127.0.0.1:8124", "Listen 0.0.0.0:8124", f"Listen unix:{file}"]
    conf = write_config(tmp_path / "conf", site_root, files={"monkey.conf": "[SERVER]\n    " + "\n    ".join(lines)})
    first = run("-c", conf, "-t").stderr
    write_config(tmp_path / "conf", site_root, files={"monkey.conf": f"[SERVER]\n    {lines[2]}\n"})
    second = run("-c", conf, "-t").stderr
    assert "monkey.conf:2:12: error: Listen 127.0.0.1:8124 is covered by Listen 0.0.0.0:8124\n" in first
    said = "the path is that of a file that is no socket"
    assert f"monkey.conf:2:12: error: cannot listen on unix:{file}: {said}" in second
    assert file.read_text() == "kept"
