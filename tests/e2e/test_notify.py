# SPDX-License-Identifier: Apache-2.0
"""What a service manager hears of the server: sd_notify(3) without its library."""

import signal
import socket

import pytest

from harness.server import Server, write_config


class Manager:
    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0", 1))
        self.socket.settimeout(60)

    def hear(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def hear_until(self, key):
        while key not in (heard := self.hear()):
            pass
        return heard


@pytest.fixture(params=["path", "abstract", "supervised"])
def manager(request, tmp_path):
    one = Manager(f"@{tmp_path}/m" if request.param == "abstract" else str(tmp_path / "m"))
    one.args = ["--supervise"] if request.param == "supervised" else []
    yield one
    one.socket.close()


def test_the_life_of_a_server(manager, tmp_path, site_root):
    conf = write_config(tmp_path / "conf", site_root)
    server = Server("-c", conf, *manager.args, env={"NOTIFY_SOCKET": manager.address})
    heard = manager.hear_until("READY")
    assert heard["READY"] == "1" and heard["STATUS"]
    assert heard.get("MAINPID", str(server.pid)) == str(server.pid)
    for text in (None, "[SERVER]\n    Nonsense 1\n"):  # a failed reload is over as well
        if text:
            (conf / "monkey.conf").write_text(text)
        server.send_signal(signal.SIGHUP)
        heard = manager.hear_until("RELOADING")
        assert int(heard["MONOTONIC_USEC"]) > 0
        manager.hear_until("READY")
    server.stop()
    assert manager.hear_until("STOPPING")["STOPPING"] == "1"


@pytest.mark.parametrize("address", ["/nowhere/at/all", "nonsense", "", "/" + "x" * 200])
def test_a_manager_that_is_not_there(tmp_path, site_root, address):
    server = Server("-c", write_config(tmp_path / "conf", site_root), env={"NOTIFY_SOCKET": address})
    server.connect().assert_open()
    server.stop()


def test_a_manager_that_does_not_read(tmp_path, site_root):
    """Its queue is full: the server continues without it."""
    one = Manager(str(tmp_path / "m"))
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            filler.sendto(b"x", one.address)
    server = Server("-c", write_config(tmp_path / "conf", site_root), env={"NOTIFY_SOCKET": one.address})
    server.connect().assert_open()
    server.stop()
