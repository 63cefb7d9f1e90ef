# SPDX-License-Identifier: Apache-2.0
"""Names in Listen lines: localhost, and what stands in /etc/hosts."""

import re
import signal
import socket

import pytest

from harness import build
from harness.protocol import Client
from harness.server import free_port, run, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="small builds read addresses only"),
]


def is_there(address, family):
    try:
        with socket.socket(family) as sock:
            sock.bind((address, 0))
        return True
    except OSError:
        return False


HAS_V6 = is_there("::1", socket.AF_INET6)
FAMILIES = 1 + HAS_V6
ONE_WORKER = {"Workers": 1, "KeepAliveTimeout": "60s"}


def get(address):
    with Client(address) as client:
        return client.ask("/hello.txt").status


def inodes(server):
    return sorted(name for name in server.open_files() if name.startswith("socket:"))


def test_localhost_is_both_addresses(serve):
    server = serve({"Listen": ["localhost:0"]}, listeners=FAMILIES)
    assert [name.rsplit(":", 1)[0] for name in server.names] == ["127.0.0.1", "[::1]"][:FAMILIES]
    for address in server.addresses:
        assert get(address) == 200


def test_one_port_for_both(serve):
    port = free_port()
    server = serve({"Listen": [f"LocalHost:{port}"]}, listeners=FAMILIES)
    assert {address[1] for address in server.addresses} == {port}
    for address in server.addresses:
        assert get(address) == 200


def test_a_reload_keeps_the_sockets(serve):
    """Also if the line names the addresses from then on."""
    server = serve({"Listen": ["localhost:0"], **ONE_WORKER}, listeners=FAMILIES)
    server.baseline += 2  # of the loop that waits for old generations
    before = inodes(server)
    with Client(server.addresses[0]) as client:
        assert client.ask("/hello.txt").status == 200
        for count, lines in enumerate((["localhost:0"], ["127.0.0.1:0", "[::1]:0"][:FAMILIES]), 1):
            path = server.conf / "monkey.conf"
            path.write_text(section("SERVER", {"Listen": lines, **ONE_WORKER}))
            server.send_signal(signal.SIGHUP)
            server.wait_log("the new configuration is in use", count)
            assert set(before) <= set(inodes(server))
        assert client.ask("/hello.txt").status == 200
    for address in server.addresses:
        assert get(address) == 200


def test_a_reload_names_the_chosen_port(serve):
    """The socket stays open, so that no connection that waits in it is reset."""
    server = serve({"Listen": ["127.0.0.1:0"], **ONE_WORKER})
    server.baseline += 2  # of the loop that waits for old generations
    with Client(server.addresses[0]) as client:
        assert client.ask("/hello.txt").status == 200
        before = inodes(server)
        for count, listen in enumerate((server.names[0], "127.0.0.1:0", server.names[0]), 1):
            (server.conf / "monkey.conf").write_text(section("SERVER", {"Listen": listen, **ONE_WORKER}))
            server.send_signal(signal.SIGHUP)
            server.wait_log("the new configuration is in use", count)
            assert set(before) <= set(inodes(server)), listen
        assert client.ask("/hello.txt").status == 200
    assert get(server.addresses[0]) == 200


def test_a_host_is_bound_to_the_name(serve, site_root):
    """Both sockets are one listener."""
    host = section("HOST", {"ServerName": "a.test", "DocumentRoot": site_root, "Listener": "localhost:0"})
    host += section("HEADERS", {"Match": "/", "Set": "X-Host a"})
    server = serve({"Listen": ["localhost:0", "127.0.0.2:0"]}, config={"sites/a": host}, listeners=FAMILIES + 1)
    found = []
    for address in server.addresses:
        with Client(address) as client:
            found.append(client.ask("/hello.txt", host="a.test")["X-Host"])
    assert found == ["a"] * FAMILIES + [None]


def check(folder, site_root, *lines):
    return run("-c", write_config(folder / "conf", site_root, {"Listen": list(lines)}), "-t")


@pytest.mark.parametrize(
    "line, fault",
    [
        ("no.such.name.test:80", "the name is not in /etc/hosts, and DNS is not asked: use an address"),
        ("localhost:http", "the port must be a number from 0 to 65535"),
        ("localhost", "the port must be a number"),
    ],
)
def test_what_is_wrong(tmp_path, site_root, line, fault):
    result = check(tmp_path, site_root, line)
    assert result.returncode == 1 and re.search(r"monkey\.conf:2:\d+: error: .*" + re.escape(fault), result.stderr)


def test_places_behind_a_name(tmp_path, site_root):
    """One line is two listeners: messages about others still have the right line."""
    result = check(tmp_path, site_root, "localhost:0", "127.0.0.1:8123 nonsense", "localhost:8124", "127.0.0.1:8124")
    assert re.search(r'monkey\.conf:3:\d+: error: .*no loaded plugin "nonsense"', result.stderr), result.stderr
    covered = r"monkey\.conf:5:\d+: error: Listen 127\.0\.0\.1:8124 is covered by Listen localhost"
    assert re.search(covered, result.stderr), result.stderr
    assert result.stderr.count("error:") == 2, result.stderr
