# SPDX-License-Identifier: Apache-2.0
"""The checks before a contest: a server that lies in one way is disqualified, with what it does in the reason."""

import os
import pathlib
import socket
import tempfile

import pytest
from watch_resources import congestion, environment, generators, measure, qualify, servers, workloads
from watch_resources.checks import Disqualified, check_answers

HERE = pathlib.Path(__file__).resolve().parent
W1 = workloads.load_workload("W1")
LIES = {
    "bytes": "with .* 13 bytes, CRC .* instead of .* 13 bytes",
    "status": "with HTTP/1.1, status 418",
    "close": "closes the connection after an answer to W1, which is to be kept",
    "length of head": "answers HEAD with Content-Length: 14, and GET with 13",
    "body of head": "answers HEAD with status 200 and 13 bytes",
    "missing": "answers with status 200 instead of 404 where no file is",
    "range": "answers Range: bytes=2-5 with status 206 and 4 bytes instead of 206",
    "content-range": "answers Range: bytes=2-5 with Content-Range: bytes 3-5/13, not bytes 2-5/13",
    "range beyond": "answers a range beyond the end of the file with status 206 and 0 bytes",
    "etag": 'answers If-None-Match: "not-this-one" with status 304 and 0 bytes instead of the whole file',
    "date": "answers If-Modified-Since: Sun, 06 Nov 1994 .* with status 304 and 0 bytes",
    "body of 304": "answers If-None-Match with 304 and a body",
    "log": r"writes a log: access.log has grown by [\d,]+ bytes with 100 requests",
    "congestion control": "sends with the congestion control .*; that of the others is",
}
SERVER = """
name = "own"
text = "own"
programs = ["python3"]
command = ["@program@", "{program}", "@port@", "@root@", "{lie}"]
"""


@pytest.fixture(scope="module")
def root():
    with tempfile.TemporaryDirectory(prefix="wr-test-") as folder:
        environment.make_files(folder)
        yield folder


@pytest.fixture
def start(tmp_path, root):
    started = []

    def start_server(lie):
        path = tmp_path / "own.toml"
        path.write_text(SERVER.format(program=HERE / "lying_server.py", lie=lie))
        started.append(servers.Server(servers.parse_choice(str(path)), tmp_path / "own", root))
        started[-1].congestion_control = environment.SYSCTL.read_text("ascii").strip()
        started[-1].start()
        return started[-1]

    yield start_server
    for server in started:
        server.stop()


def ask_all(server):
    check_answers(W1, server)
    return qualify.qualify(W1, server)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_noticed(start, lie):
    if lie == "congestion control" and len(environment.SYSCTL.with_name(
            "tcp_allowed_congestion_control").read_text("ascii").split()) < 2:  # fmt: skip
        pytest.skip("this machine permits one congestion control")
    with pytest.raises(Disqualified, match=f"^own .*{LIES[lie]}"):
        ask_all(start(lie))


def test_no_lie(start):
    found = ask_all(start("none"))
    assert found["ranges"] == "yes" and found["validators"] == "etag and last-modified"
    assert found["congestion control"] == environment.SYSCTL.read_text("ascii").strip()


def test_what_a_server_may_leave_out(start):
    found = ask_all(start("plain"))
    assert (found["ranges"], found["validators"]) == ("no", "none")


@pytest.mark.parametrize("data", [b"", b"SSH-2.0", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/2 200\r\n\r\n",
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"])
def test_what_is_no_answer(data):
    with pytest.raises(ValueError):
        qualify.parse_answer(data)


def test_answers():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    assert qualify.parse_answer(chunked).body == b"abcde"
    found = qualify.parse_answer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 No\r\nX-Y:  z \r\n\r\nbody")
    assert found == (404, {"x-y": "z"}, b"body")


def test_congestion_control_of_connections():
    """What the kernel says of one port is what its socket says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert congestion.list_congestion_controls(port) == set()
        with socket.create_connection(("127.0.0.1", port)), listener.accept()[0] as served:
            name = served.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
            assert congestion.list_congestion_controls(port) == {name}


def test_messages_of_the_kernel_that_are_cut():
    """None of them makes an endless loop."""
    whole = congestion.HEADER.pack(24, 20, 0, 1, 0) + bytes(8)
    assert list(congestion.split_messages(whole)) == [(20, bytes(8))]
    assert not list(congestion.split_messages(whole[:20])) and not list(congestion.split_messages(bytes(64)))
    message = bytes(4) + (80).to_bytes(2, "big") + bytes(66)
    assert congestion.parse_socket(message + bytes(8)) == (80, "")
    assert congestion.parse_socket(message + b"\x09\0\x04\0reno\0") == (80, "reno")


def test_files_that_grow(start):
    server = start("none")
    watch = qualify.WrittenFiles(server)
    path = pathlib.Path(server.folder, "some.log")
    path.write_text("x" * 1599)
    assert watch.find_log(100) == "" and "some.log has grown by 1,599 bytes" in watch.find_log(99)


def test_files_that_are_no_logs(start, tmp_path):
    """The list of paths for wr-load, and what a server writes about clients that it refuses."""
    server, workload = start("none"), workloads.load_workload("W7", paths=3)
    watch, server.root = qualify.WrittenFiles(server), str(tmp_path)
    for path in map(tmp_path.joinpath, workload.list_paths()):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    load = measure.make_load(workload, server, 1, generators.WrLoad())
    assert pathlib.Path(load.paths).read_text().count("\n") == 3 and watch.find_log(1) == ""
    assert qualify.shows_log(workloads.load_workload("W7")) and not qualify.shows_log(workloads.load_workload("O1"))


def test_what_is_checked():
    names = [name for name in os.listdir(environment.__file__.rpartition("/")[0] + "/../data/workloads")]
    found = {name[:-5] for name in names if qualify.is_qualified(workloads.load_workload(name[:-5]))}
    assert {"W1", "W2", "W8", "D1", "A1"} <= found and not {"W1L", "W9", "S1", "P1", "F1", "S2", "W3z"} & found
