# SPDX-License-Identifier: Apache-2.0
"""What workloads of a contest add to a load: idle and slow clients, cold files, fresh servers, few descriptors, steps
and a share of the capacity. One run of nginx shows each of them in its rounds."""

import dataclasses
import json
import os
import socket
import subprocess
import sys
import threading

import pytest
from watch_resources import environment, measure, servers, workloads
from watch_resources.data import Problem
from watch_resources.generators import WrLoad
from watch_resources.proc import TcpReader, read_io

from processes import BUILD, run_wr

NGINX = servers.parse_choice("nginx").program
HEAD = 'name = "{0}"\ntext = "{0}"\n'
FILES = {
    "idle": 'path = "13.txt"\nclients = 4\nidle = 50\n',
    "slow": 'path = "13.txt"\nclients = 4\nslow = 5\n',
    "cold": 'path = "cold/@n@"\npaths = 60\nrequests = 60\nclients = 4\ncold = true\n',
    "half": 'path = "13.txt"\nclients = 4\ncapacity = 0.5\n',
    "few": 'path = "13.txt"\nclients = 100\ndescriptors = 64\nvariants = ["few"]\n',
    "kept": 'path = "13.txt"\nclients = 4\nrequests = 100\nrequests_per_connection = 10\n',
    "fresh": 'path = "many/@n@"\npaths = 10\npick = "uniform"\nclients = 4\nfresh = true\n',
}


def write_workload(folder, name, text):
    (folder / f"{name}.toml").write_text(HEAD.format(name) + text)
    return f"{name}.toml"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """{workload: its rounds}"""
    if not NGINX or not (BUILD / "wr-load").exists():
        pytest.skip("nginx or wr-load is not there")
    folder = tmp_path_factory.mktemp("workloads")
    files = [write_workload(folder, name, text) for name, text in FILES.items()]
    done = run_wr("run", *files, "-s", "nginx", "-r", 2, "-d", 0.2, "--others-max", 99, "--repeats", 5,
                  "--share-cpu", "-o", "r.jsonl", cwd=folder)
    assert done.returncode == 0, done.stderr
    rounds = {}
    for line in map(json.loads, (folder / "r.jsonl").read_text().splitlines()):
        if line["type"] == "round":
            rounds.setdefault(line["workload"], []).append(line)
    return rounds


def test_idle_and_slow_connections_are_open(measured):
    for row in measured["idle"]:
        assert row["descriptors_max"] >= 54 and row["answers"] > 0
    assert all(row["descriptors_max"] >= 9 for row in measured["slow"])


def test_cold_files_are_read_from_the_disk(measured):
    """Also in the second round."""
    assert [row["io"]["read_bytes"] for row in measured["cold"]] == [60 * environment.COLD_BYTES] * 2
    assert all(row["answers"] == 60 and row["statuses"] == {"200": 60} for row in measured["cold"])
    assert all(row["io"]["read_bytes"] == 0 for row in measured["idle"])


def test_the_rate_is_a_share_of_the_capacity(measured):
    rates = {row["generator"]["command"][row["generator"]["command"].index("-r") + 1] for row in measured["half"]}
    assert len(rates) == 1 and int(rates.pop()) > 10


def test_descriptors_are_limited(measured):
    assert all(0 < row["answers"] and row["descriptors_max"] <= 2 * 64 for row in measured["few"])  # of two processes


def test_requests_of_a_connection(measured):
    for row in measured["kept"]:
        command = row["generator"]["command"]
        assert command[command.index("--requests-per-connection") + 1] == "10" and row["answers"] == 100


def test_steps():
    a3 = workloads.load_workload("A3")
    assert [step.clients for step in a3.list_steps()] == [100, 250, 500, 750, 1000]
    assert {step.name for step in a3.list_steps()} == {"A3"}
    warm = dataclasses.replace(a3, requests=5, capacity=0.5, idle=3).make_warm_up()
    assert (warm.requests, warm.capacity, warm.idle, len(warm.list_steps())) == (0, 0, 0, 1)


@pytest.mark.parametrize("text, said", [
    ('path = "13.txt"\nclients = 1\ncold = true\n', "own.toml:5: cold: the files that are not kept in memory are"),
    ('path = "cold/@n@"\nclients = 1\npaths = 5\n', "own.toml:1: cold: the files that are not kept"),
    ('path = "cold/@n@"\nclients = 1\npaths = 10001\ncold = true\n', "own.toml:5: paths: cold/@n@ has 10,000 files"),
    ('path = "13.txt"\nclients = 1\nrequests = 9\nseconds = 1\n', "own.toml:6: seconds: either requests or seconds"),
    ('path = "13.txt"\nclients = 1\ncapacity = 0.5\nrate = 5\n', "own.toml:5: capacity: the rate of an open loop"),
    ('path = "13.txt"\nclients = 1\ncapacity = 1.5\n', "own.toml:5: capacity: 1.5 is too high"),
    ('path = "13.txt"\nclients = 1\nconnections = "close"\nrequests_per_connection = 2\n',
     "own.toml:6: requests_per_connection: only connections that are kept"),
    ('path = "13.txt"\nclients = 1\ndescriptors = 5\n', "own.toml:5: descriptors: 5 is too low: 64 is the least"),
    ('path = "13.txt"\nclients = 1\nsteps = [5, 0]\n', "own.toml:5: steps.2: 0 is too low"),
    ('path = "13.txt"\nclients = 1\ncongestion = "vegas"\n', "own.toml:5: congestion: 'vegas' is not one of"),
])
def test_mistakes(tmp_path, text, said):
    path = tmp_path / write_workload(tmp_path, "own", text)
    with pytest.raises(Problem) as found:
        workloads.load_workload(str(path))
    assert str(found.value).removeprefix(f"{tmp_path}/").startswith(said)


def test_only_wr_load_can_do_it():
    for name in ("A2", "H1"):
        assert measure.list_generators(workloads.load_workload(name)) == [WrLoad]


def test_a_file_that_stays_in_memory(tmp_path, monkeypatch):
    """One that is locked there, as those of other workloads are."""
    monkeypatch.setattr(environment, "EVICTIONS", 2)
    environment.make_cold_files(str(tmp_path / "cold"), 2)
    with monkeypatch.context() as kernel:  # which drops what it wants
        kernel.setattr(environment, "is_in_memory", lambda fd, size: False)
        environment.evict_cold_files(str(tmp_path))
    locked = environment.LockedFiles(str(tmp_path))
    assert not locked.areas, "cold files are not locked"
    locked.lock(tmp_path / "cold" / "0")
    try:
        if locked.failed:
            pytest.skip("memory cannot be locked")
        with pytest.raises(Problem, match="cold/0 stays in memory"):
            environment.evict_cold_files(str(tmp_path))
    finally:
        locked.release()


def test_connections_are_counted():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reader = TcpReader(os.getpid(), listener.getsockname()[1])
        assert reader.count_connections() == 0
        with socket.create_connection(listener.getsockname()), listener.accept()[0]:
            assert reader.count_connections() == 1


def test_a_server_that_takes_fewer_connections(monkeypatch):
    monkeypatch.setattr(measure, "OPEN_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = type("Server", (), {"pid": os.getpid(), "name": "own", "port": listener.getsockname()[1]})
        with pytest.raises(Problem, match="own takes 0 of 5 connections within 0.1 s"):
            measure.await_connections(server, 5)


def test_bytes_of_disks():
    assert set(read_io([os.getpid()])) == {"read_bytes", "write_bytes"} and read_io([]) == {}


def test_slow_clients_ask_again():
    """After a whole answer, and on another connection after the end of one."""
    asked, ended = [], threading.Event()

    def serve(listener):
        for n in range(2):
            with listener.accept()[0] as sock:
                for _ in range(2):
                    asked.append((n, sock.recv(4096).split(b"\r\n")[0]))
                    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + bytes(5000))
        ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        process = subprocess.Popen([sys.executable, measure.SLOW_CLIENTS, str(listener.getsockname()[1]), "/x", "1"])
        try:
            assert ended.wait(30)
        finally:
            process.kill()
            process.wait()
    assert asked == [(n, b"GET /x HTTP/1.1") for n in (0, 0, 1, 1)]
