# SPDX-License-Identifier: Apache-2.0
"""`monkey -t` on servers that are this server itself, and on Unix sockets that cannot be used: in `To` of the sections
that pass requests on, and in `Server` of a group."""

import re
import socket

import pytest

from harness import build
from harness.groups import GROUPS, group
from harness.server import free_port, run, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
]

PLACE = re.compile(r"(\S+):(\d+):\d+: warning: (.*)$", re.M)
ITSELF = "is this server itself, by a Listen line"


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
        return True
    except OSError:
        return False


LISTENERS = [
    # Listen, the server (TMP: the folder of the test), and whether that is this one
    ("127.0.0.1:8017", "127.0.0.1:8017", True),
    ("127.0.0.1:8017", "localhost:8017", True),
    ("127.0.0.1:8017", "LOCALHOST:8017", True),
    ("127.0.0.1:8017", "app.localhost:8017", True),
    ("127.0.0.1:8017", "0.0.0.0:8017", True),
    ("localhost:8017", "127.0.0.1:8017", True),
    ("0.0.0.0:8017", "127.0.0.1:8017", True),
    ("0.0.0.0:8017", "127.9.9.9:8017", True),
    ("0.0.0.0:8017", "localhost:8017", True),
    ("*:8017", "localhost:8017", True),
    ("8017", "127.0.0.1:8017", True),
    ("8017", "192.0.2.1:8017", False),
    ("127.0.0.1:8017", "127.0.0.2:8017", False),
    ("127.0.0.1:8017", "127.0.0.1:8018", False),
    ("127.0.0.1:80", "127.0.0.1", True),  # of http://; a group's server has a port
    ("unix:TMP/own", "unix:TMP/own", True),
    ("unix:TMP/own", "unix:TMP/link/own", True),
    ("unix:TMP/own", "unix:TMP/other", False),
]
LISTENERS_V6 = [
    ("[::1]:8017", "[::1]:8017", True),
    ("[::1]:8017", "[::]:8017", True),
    ("[::1]:8017", "localhost:8017", True),
    ("[::]:8017", "[::1]:8017", True),
    ("[::]:8017", "127.0.0.1:8017", False),
    ("[::]:8017", "localhost:8017", True),
    ("*:8017", "[::1]:8017", True),
    ("127.0.0.1:8017", "[::ffff:127.0.0.1]:8017", True),
    ("0.0.0.0:8017", "[::1]:8017", False),
]


@pytest.fixture
def folder(tmp_path):
    """Has a socket of the server, as it runs, and one of an application."""
    with socket.socket(socket.AF_UNIX) as own, socket.socket(socket.AF_UNIX) as other:
        for sock, name in ((own, "own"), (other, "other")):
            sock.bind(str(tmp_path / name))
        (tmp_path / "link").symlink_to(tmp_path)
        yield tmp_path


def warnings_of(folder, root, listen, text, config=None):
    conf = write_config(folder / "conf", root, {"Listen": listen.replace("TMP", str(folder))}, text=text, files=config)
    done = run("-t", "-c", conf)
    return done.stdout + done.stderr, PLACE.findall(done.stdout + done.stderr)


@pytest.mark.parametrize("listen, server, is_own", LISTENERS + (LISTENERS_V6 if has_ipv6() else []))
def test_own_listeners(folder, site_root, listen, server, is_own):
    address = server.replace("TMP", str(folder))
    url = address if address.startswith("unix:") else f"http://{address}"
    text, found = warnings_of(folder, site_root, listen, section("PROXY", {"To": url}))
    assert sum(ITSELF in sentence for _, _, sentence in found) == is_own, text
    if server.rpartition(":")[2].isdigit() or server.startswith("unix:"):
        config = {GROUPS: group(["192.0.2.7:1", address])}
        text, found = warnings_of(folder, site_root, listen, section("PROXY", {"To": "http://app"}), config)
        assert sum(ITSELF in sentence for _, _, sentence in found) == is_own, text
        assert not found or (found[0][0].endswith("upstream.conf") and found[0][1] == "4")


@pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugin fastcgi")
@pytest.mark.parametrize("name", ["FASTCGI", "SCGI"])
def test_own_listeners_of_scripts(folder, site_root, name):
    for to, count in (("127.0.0.1:8017", 1), ("127.0.0.1:8018", 0)):
        text, found = warnings_of(folder, site_root, "127.0.0.1:8017", section(name, {"Match": "/x", "To": to}))
        assert sum(ITSELF in sentence for _, _, sentence in found) == count, text


SOCKETS = [
    ("missing", "does not exist now"),
    ("file", "is no socket"),
    ("other", None),
]


@pytest.mark.parametrize("name, problem", SOCKETS)
@pytest.mark.parametrize("kind", ["PROXY", "FASTCGI", "SCGI", "UPSTREAM"])
def test_unix_sockets(folder, site_root, kind, name, problem):
    if kind in ("FASTCGI", "SCGI") and not (build.PLUGINS / "fastcgi.so").exists():
        pytest.skip("this preset has no plugin fastcgi")
    (folder / "file").touch()
    address, config = f"unix:{folder / name}", None
    if kind == "UPSTREAM":
        config = {GROUPS: group(["127.0.0.1:1", address])}
        text = section("PROXY", {"To": "http://app"})
    else:
        text = section(kind, {"Match": "/x", "To": address})
    output, found = warnings_of(folder, site_root, "127.0.0.1:8017", text, config)
    wanted = f"the socket {folder / name} {problem}: requests get 502 until it can be used"
    assert [sentence for _, _, sentence in found if "socket" in sentence] == [wanted] * (problem is not None), output


@pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="this preset has no plugins")
@pytest.mark.parametrize("own", [True, False])
def test_own_listeners_of_logins(folder, site_root, own):
    port = free_port()
    to = f"http://127.0.0.1:{port if own else free_port()}/check"
    text = section("AUTH", {"Type": "Forward", "To": to})
    write_config(folder / "conf", site_root, {"Listen": f"127.0.0.1:{port}"}, text=text)
    result = run("-c", folder / "conf", "-t")
    assert (ITSELF in result.stderr) == own and result.returncode == 0, result.stderr
