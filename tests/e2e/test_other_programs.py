# SPDX-License-Identifier: Apache-2.0
"""A host that sends the source of what another host runs, or none does, is told at the check, with both lines."""

import re

import pytest

from harness import build
from harness.content import populate
from harness.scripts import write_scripts
from harness.server import run, section, write_config
from test_auth import users  # noqa: F401

needs_gateways = pytest.mark.skipif(
    not all((build.PLUGINS / f"{name}.so").exists() for name in ("proxy", "fastcgi", "cgi")),
    reason="this preset has no gateways",
)
pytestmark = [needs_gateways, pytest.mark.single_protocol]

TO = "127.0.0.1:1"
PHP = section("FASTCGI", {"To": TO})
OTHERS = "is a program of another host, which runs it by {folder}/sites/default:{line}, and a file of this one"
NONE = "is a script that no section runs: its source is sent as a file"


@pytest.fixture
def check(tmp_path):
    """The warnings for two hosts: one whose root has programs, and one that may send them."""
    root = populate(tmp_path / "www", {"page.txt": b"", "sub/a.txt": b"", "app/a.txt": b""})
    write_scripts(root, {"cgi-bin/run": "#!/bin/sh\n", "tools/run": "#!/bin/sh\n"})

    def make(runs, sends, send_root=None, files=None):
        populate(root, files or {})
        fill = lambda text: text.replace("{root}", str(root))
        one = section("HOST", {"ServerName": "runs", "DocumentRoot": root}) + fill(runs)
        two = section("HOST", {"ServerName": "sends", "DocumentRoot": fill(send_root or "{root}")}) + fill(sends)
        write_config(tmp_path / "conf", tmp_path, files={"sites/default": one, "sites/sends": two})
        return run("-c", tmp_path / "conf", "-t").stderr

    make.folder, make.root = tmp_path / "conf", root
    return make


# What one host has, what the other one has, its root, and the line of the section that runs the program; None: nothing
# is said.
ROWS = {
    "one root": (PHP, "", None, 4),
    "one root by a link": (PHP, "", "{root}/../link", 4),
    "a root above": (PHP, "", "{root}/..", 4),
    "a root below": (PHP, "", "{root}/sub", 4),
    "another root": (PHP, "", "{root}/../other", None),
    "both run it": (PHP, PHP, None, None),
    "another section runs it": (PHP, section("CGI", {"Match": "*.php"}), None, None),
    "SCGI": (section("SCGI", {"To": TO, "Split": ".py"}), "", None, 4),
    "Split Off": (section("FASTCGI", {"Match": "/app", "Split": "Off", "To": TO}), "", None, 4),
    "all of a site": (section("PROXY", {"To": f"http://{TO}"}), "", None, None),
    "a proxy for a pattern": (section("PROXY", {"Match": "*.php", "To": f"http://{TO}"}), "", None, 4),
    "a proxy for an expression": (section("PROXY", {"Match": r"~\.pl(/|$)", "To": f"http://{TO}"}), "", None, 4),
    "a proxy for a folder": (section("PROXY", {"Match": "/app", "To": f"http://{TO}"}), "", None, 4),
    "a proxy for a path that is no folder": (section("PROXY", {"Match": "/api", "To": f"http://{TO}"}), "", None, None),
    "no folder, Split Off": (section("FASTCGI", {"Match": "/api", "Split": "Off", "To": TO}), "", None, None),
    "the other redirects all": (PHP, "    Redirect https://runs\n", None, None),
    "the other redirects all paths": (PHP, section("REDIRECT", {"Match": "/", "To": "https://runs"}), None, None),
    "the other redirects them, not an index": (PHP, section("REDIRECT", {"Match": "*.php", "To": "/"}), None, 4),
    "the other redirects some": (
        PHP,
        section("REDIRECT", {"Match": "/", "To": "/x", "When": "header X-A =b"}),
        None,
        4,
    ),
    "the other proxies all": (PHP, section("PROXY", {"To": f"http://{TO}"}), None, None),
    "a handler takes it": (
        PHP,
        section("CGI", {"Match": "/x"}) + section("HANDLERS", {"Match": "*.php cgi"}),
        None,
        None,
    ),
    "CGI by a pattern": (section("CGI", {"Match": "*.cgi"}), "", None, 4),
    "an interpreter": (section("CGI", {"Match": "/x", "Interpreter": ".py /bin/sh"}), "", None, 4),
    "a root above CGI's": (section("CGI", {"Match": "/c", "Root": "{root}/cgi-bin"}), "", "{root}/..", 4),
    "a root that is CGI's": (section("CGI", {"Match": "/c", "Root": "{root}/cgi-bin"}), "", "{root}/cgi-bin", 4),
    "a root beside CGI's": (section("CGI", {"Match": "/c", "Root": "{root}/cgi-bin"}), "", "{root}/tools", None),
    "a script": (section("CGI", {"Match": "/c", "Script": "{root}/tools/run"}), "", "{root}/tools", 4),
    "an alias to the root": (PHP, section("ALIAS", {"Match": "/x", "To": "{root}"}), "{root}/../other", 4),
    "an alias below it": (PHP, section("ALIAS", {"Match": "/x", "To": "{root}/sub"}), "{root}/../other", 4),
    "an alias to CGI's root": (
        section("CGI", {"Match": "/c", "Root": "{root}/cgi-bin"}),
        section("ALIAS", {"Match": "/x", "To": "{root}/cgi-bin"}),
        "{root}/../other",
        4,
    ),
    "an alias to a program": (PHP, section("ALIAS", {"Match": "=/x", "To": "{root}/a.php"}), "{root}/../other", 4),
    "denied": (PHP, section("RULES", {"Match": "*.php", "Action": "deny"}), None, None),
    "denied, but to some": (
        PHP,
        section("RULES", {"Match": "/x", "Action": "allow"})
        + section("RULES", {"Match": "*.php", "Network": "192.0.2.0/24", "Action": "deny"}),
        None,
        4,
    ),
    "another path is denied": (PHP, section("RULES", {"Match": "/lib", "Action": "deny"}), None, 4),
    "an alias is denied": (
        PHP,
        section("RULES", {"Match": "/x", "Action": "drop"}) + section("ALIAS", {"Match": "/x", "To": "{root}"}),
        "{root}/../other",
        None,
    ),
    "the folder of an alias is denied": (
        PHP,
        section("RULES", {"Match": "/sub", "Action": "deny"}) + section("ALIAS", {"Match": "/x", "To": "{root}/sub"}),
        "{root}/../other",
        4,
    ),
    "an alias to a file": (PHP, section("ALIAS", {"Match": "=/x", "To": "{root}/page.txt"}), "{root}/../other", None),
}


@pytest.mark.parametrize("row", ROWS)
def test_other_hosts(check, tmp_path, row):
    runs, sends, root, line = ROWS[row]
    (tmp_path / "link").symlink_to("www")
    (tmp_path / "other").mkdir()
    text = check(runs, sends, root, {"a.php": b""} if "a program" in row else None)
    said = re.findall(r"sites/sends:(\d+):\d+: warning: .*" + OTHERS.format(folder=".*", line=line or r"\d+"), text)
    at = str(6 + sends[: sends.index("[ALIAS]")].count("\n")) if "ALIAS" in sends else "3"
    assert said == ([at] if line else []), text
    assert "error" not in text, text


SCRIPTS = {"index.php": b"", "a.txt": b""}


@pytest.mark.parametrize("text, files, is_said", [
    ("", SCRIPTS, True),
    ("", {"lib/x.php": b""}, True),
    ("", {"a/b/c/x.php": b""}, True),
    ("", {"a/b/c/d/x.php": b""}, False),
    ("", {"a/x.txt": b"", "b/x.txt": b"", "c/x.php": b""}, True),
    ("", {".git/x.php": b"", ".x.php": b""}, False),
    ("", {f"{i}.txt": b"" for i in range(1000)} | {"lib/x.php": b""}, False),
    (PHP, {"lib/x.php": b""}, False),
    (section("PROXY", {"Match": "/lib", "To": f"http://{TO}"}), {"lib/x.php": b""}, False),
    ("", {"x.PHP": b""}, True),
    ("", {"x.php5": b""}, True),
    (section("ALIAS", {"Match": "/s", "To": "/nothing/here"}), {"s/x.php": b""}, False),
    ("", {"sub/x.phtml": b""}, True),
    ("", {"x.phps": b"", "php": b""}, False),
    (PHP, SCRIPTS, False),
    (section("CGI", {"Match": "*.cgi"}), SCRIPTS, True),
    (section("PROXY", {"Match": "*.php", "To": f"http://{TO}"}), SCRIPTS, False),
    (section("PROXY", {"To": f"http://{TO}"}), SCRIPTS, False),
    (section("PROXY", {"Match": "/app", "To": f"http://{TO}"}), SCRIPTS, True),
])  # fmt: skip
def test_scripts_that_none_runs(tmp_path, text, files, is_said):
    write_config(tmp_path / "conf", populate(tmp_path / "www", files), text=text)
    assert (NONE in run("-c", tmp_path / "conf", "-t").stderr) == is_said


def deny(match, action="deny", **more):
    return section("RULES", {"Match": match, **more, "Action": action})


LIB = {"lib/x.php": b""}
ALIAS = section("ALIAS", {"Match": "/a", "To": "{other}"})
ANY = section("AUTH", {"Match": "/lib", "Users": "{users}", "Realm": "r", "Satisfy": "any"})


@pytest.mark.parametrize("text, files, links, found", [
    (deny("/lib"), LIB, {}, None),
    (deny("*.php"), LIB, {}, None),
    (deny("*.php", "deny 404"), LIB, {}, None),
    (deny("*.php", "drop"), LIB, {}, None),
    (deny("/lib"), LIB | {"b/y.php": b""}, {}, "b/y.php"),
    (deny("*.php", DryRun="On"), LIB, {}, "lib/x.php"),
    (deny("/lib", "delay 1s") + deny("*.php"), LIB, {}, "lib/x.php"),
    (deny("/lib/x.php", "allow", Network="192.0.2.1") + deny("*.php"), LIB, {}, "lib/x.php"),
    (deny("/lib", Network="192.0.2.1"), LIB, {}, "lib/x.php"),
    (deny("/lib", Network="192.0.2.1") + deny("/lib"), LIB, {}, None),
    (deny("/lib", When="query x"), LIB, {}, "lib/x.php"),
    (deny("/lib", ForeignReferer="On"), LIB, {}, "lib/x.php"),
    (deny("/lib") + ANY, LIB, {}, "lib/x.php"),
    (deny("/lib", "drop") + ANY, LIB, {}, None),
    ("", {"a.txt": b""}, {"pub": "lib"}, None),
    ("", LIB, {"pub": "lib"}, "lib/x.php"),
    (deny("/lib"), LIB, {"pub": "lib"}, "pub/x.php"),
    (deny("/lib") + deny("/pub"), LIB, {"pub": "lib"}, None),
    (deny("/lib"), LIB, {"y.php": "lib/x.php"}, "y.php"),
    (deny("*.php"), LIB, {"y.php": "lib/x.php"}, None),
    (deny("/lib"), LIB, {"y.php": "lib"}, "y.php/x.php"),
    (deny("/lib"), LIB, {"y.php": "../other/z.php"}, None),
    (deny("*.php"), LIB, {"loop": "."}, None),
    (ALIAS, {"../other/z.php": b""}, {}, "other/z.php"),
    (ALIAS + deny("/a"), {"../other/z.php": b""}, {}, None),
    (ALIAS + deny("/other"), {"../other/z.php": b""}, {}, "other/z.php"),
    (ALIAS + deny("*.php"), {"../other/z.php": b""} | LIB, {}, None),
    (ALIAS + deny("/lib"), {"../other/z.php": b""} | LIB, {}, "other/z.php"),
])  # fmt: skip
def test_scripts_that_rules_deny(tmp_path, users, text, files, links, found):
    """What all clients are denied is not sent, by whichever path; a link or an alias is another path of it."""
    root = populate(tmp_path / "www", files)
    (tmp_path / "other").mkdir(exist_ok=True)
    for name, target in links.items():
        (root / name).symlink_to(target)
    text = text.replace("{other}", str(tmp_path / "other")).replace("{users}", str(users))
    write_config(tmp_path / "conf", root, host={"SymLink": "Inside"}, text=text)
    out = run("-c", tmp_path / "conf", "-t").stderr
    said = re.findall(rf"warning: {tmp_path}/(?:www/)?(\S+) {NONE}", out)
    assert said == ([found] if found else []), out
    assert "error" not in out, out
