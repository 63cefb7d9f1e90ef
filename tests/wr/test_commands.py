# SPDX-License-Identifier: Apache-2.0
"""`wr run`, `compare`, `check` and `counts` as programs: files, exit statuses, and that nothing is left running."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from watch_resources import generators, measure, servers, workloads

from harness.server import find_processes
from processes import PYTHON, WR

NGINX = servers.parse_choice("nginx").program
pytestmark = pytest.mark.skipif(not NGINX or not shutil.which("wrk"), reason="nginx or wrk is not installed")
SHORT = ["-d", "0.3", "--repeats", "0", "--share-cpu", "--seed", "3"]
RULE = '[[rule]]\nworkload = "W1"\nserver = "nginx"\nagainst = "again"\ncost_max = {}\n'


def wr(*words, cwd=None):
    return subprocess.run([PYTHON, str(WR), *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120)


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    done = wr("run", "W1", "W2", "-s", "nginx", "-s", f"again={NGINX}", "-r", 2, *SHORT, "-o", "A.jsonl", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "A.jsonl", done.stdout


def test_run_writes_a_file_that_says_how_to_repeat_it(measured):
    path, _ = measured
    lines = read_lines(path)
    kinds = [line["type"] for line in lines]
    assert [kinds.count(kind) for kind in ("session", "workload", "server", "round", "pair")] == [1, 2, 2, 8, 4]
    session = lines[0]
    assert session["settings"]["plan"]["seed"] == 3 and session["cpus"].keys() == {"server", "generator"}
    assert session["machine"]["congestion_control"] and session["settings"]["locked_files"] and session["tools"]["wrk"]
    server = next(line for line in lines if line["type"] == "server")
    assert "nginx/" in server["version"] and "sendfile on" in server["config"]["nginx.conf"]
    row = next(line for line in lines if line["type"] == "round")
    assert row["answers"] > 0 and row["cost_us"]["total"] > 0 and row["server"] in ("nginx", "again")
    folder = server["command"][2]
    assert not pathlib.Path(folder).exists() and not find_processes(folder)


def test_tables(measured):
    path, printed = measured
    assert "W1  13 bytes, keep-alive, 64 clients" in printed
    assert len(re.findall(r"between nginx and again: |nginx needs [\d.]+ x of again", printed)) == 2
    assert wr("compare", path).stdout == printed
    rows = wr("compare", "--markdown", path).stdout.splitlines()
    assert rows[0] == "|  | nginx | again |" and rows[2].startswith("| CPU µs: 13 bytes, keep-alive, 64 clients | ")
    two = wr("compare", path, path).stdout
    assert "the rounds are not paired" in two and "beside again: " in two


def test_check(measured, tmp_path):
    path, _ = measured
    rules = tmp_path / "rules.toml"
    for limit, status, word in ((1e11, 0, "holds"), (1e-11, 1, "MISSED")):
        rules.write_text(RULE.format(limit))
        done = wr("check", rules, path)
        assert (done.returncode, done.stdout.split()[0]) == (status, word)
    rules.write_text(RULE.format('"much"'))
    done = wr("check", rules, path)
    assert done.returncode == 1 and "rules.toml:5: rule.1.cost_max: 'much' is not a number" in done.stderr


def test_a_signal_keeps_what_was_measured_and_resume_continues(tmp_path):
    path = tmp_path / "B.jsonl"
    command = ["run", "W1", "-s", "nginx", "-s", f"again={NGINX}", "-r", "3", *SHORT, "-o", str(path)]
    process = subprocess.Popen([PYTHON, str(WR), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while time.monotonic() < end and (not path.exists() or '"pair"' not in path.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 130 and "--resume" in errors and "W1  13 bytes" in printed
    folder = pathlib.Path(next(line for line in read_lines(path) if line["type"] == "server")["command"][2]).parents[1]
    assert not folder.exists() and not find_processes(str(folder))
    with path.open("a") as file:
        file.write('{"type": "round", "n": 99, "work')  # as of a crash
    done = wr("run", "--resume", path)
    assert done.returncode == 0, done.stderr
    lines = read_lines(path)
    assert sum(line["type"] == "pair" for line in lines) == 3
    assert [line["resumes"] for line in lines if line["type"] == "session"] == [None, lines[0]["id"]]
    assert wr("run", "W2", "--resume", path).returncode == 1


def test_sigterm_ends_the_servers(tmp_path):
    path = tmp_path / "C.jsonl"
    process = subprocess.Popen(
        [PYTHON, str(WR), "run", "W1", "-s", "nginx", "-r", "9", *SHORT, "-o", str(path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    end = time.monotonic() + 60
    while time.monotonic() < end and (not path.exists() or '"round"' not in path.read_text()):
        time.sleep(0.05)
    process.terminate()
    assert process.wait(120) == 143
    folder = pathlib.Path(next(line for line in read_lines(path) if line["type"] == "server")["command"][2]).parents[1]
    assert not folder.exists() and not find_processes(str(folder))


def test_a_server_that_hangs_is_reported(tmp_path):
    """It answers the check, and nothing to 64 clients."""
    own = tmp_path / "own.toml"
    own.write_text(
        'name = "own"\ntext = "own"\nprograms = ["python3"]\n'
        'command = ["@program@", "@folder@/server.py", "@port@"]\n[config]\n"server.py" = \'\'\'\n'
        "import socket, sys, time\n"
        "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "print('ready', flush=True)\n"
        "for n in range(3):\n"
        "    c = s.accept()[0]\n"
        "    while c.recv(9999):\n"
        "        c.send(b'HTTP/1.1 200 OK\\r\\nContent-Length: 13\\r\\n\\r\\nHello, World\\n')\n"
        "    c.close()\n"
        "time.sleep(99)\n"
        "'''\n"
    )
    done = wr("run", "W1", "-s", own, "-r", 1, *SHORT, "-o", tmp_path / "D.jsonl")
    assert done.returncode == 1
    assert re.search("wr: own cannot be measured with W1: wr[a-z-]+ got no answer", done.stderr)
    assert done.stderr.rstrip().endswith("its last output:\n  ready")
    assert not find_processes("/own/server.py")


@pytest.mark.parametrize(
    "words, message",
    [
        (["run", "W0", "-o", "E"], "there is no workload W0"),
        (["run", "W1", "-s", "ngnix", "-o", "E"], "there is no server ngnix: do you mean nginx?"),
        (["compare", "none.jsonl"], "none.jsonl: No such file or directory"),
        (["check", "none.toml", "A.jsonl"], "A.jsonl: No such file or directory"),
        (["run", "--resume", "none.jsonl"], "none.jsonl: No such file or directory"),
    ],
)
def test_mistakes(tmp_path, words, message):
    done = wr(*words, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("wr: ") and message in done.stderr
    assert not list(tmp_path.iterdir())


def test_counts(tmp_path):
    path = tmp_path / "E.jsonl"
    done = wr("counts", "-s", "nginx", "-o", path, "--share-cpu")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in read_lines(path) if line["type"] == "counts"]
    assert line["binary_kb"] > 100 and 0 < line["connection_bytes"] < 20_000 and line["crowd_dirty_kb"] > 1000
    assert line["calls"] is None or 3 <= line["calls"] <= 20
    assert line["start_ms"] > 0 and line["idle_cpu_us"] >= 0 and line["idle_wakeups"] >= 0
    assert "nginx" in done.stdout


class FakeServer:
    port, root = 80, "/tmp"

    def __init__(self, folder):
        self.folder = self.root = str(folder)
        for name in ("13.txt", "26k.bin.gz"):
            (folder / name).write_bytes(b"x" * 13)


def test_loads_of_workloads(tmp_path):
    server = FakeServer(tmp_path)
    found = {}
    for name in ("W2", "W3z", "W6", "W8f", "W9s"):
        workload = workloads.load_workload(name)
        kind = measure.list_generators(workload)[0]
        found[name] = measure.make_load(workload, server, 2, kind())
    assert not found["W2"].keep_alive and (found["W2"].status, found["W2"].length) == (200, 13)
    assert found["W3z"].headers == ("Accept-Encoding: gzip",) and found["W3z"].length == 13
    assert found["W6"].pipeline == 16 and found["W6"].keep_alive
    assert found["W8f"].insecure and found["W8f"].extra == ("--full-handshakes",)
    assert found["W9s"].http2 and found["W9s"].pipeline == 100 and found["W9s"].url == "https://127.0.0.1:80/13.txt"


def test_h2load_draws_paths(tmp_path):
    """-B has the server, and the file the paths: drawn from the list, the same ones for each server."""
    (tmp_path / "list").write_text("".join(f"/many/{n} 200 {1000 + n}\n" for n in range(50)))
    load = generators.Load("http://127.0.0.1:80/", http2=True, seconds=1, seed=1, paths=str(tmp_path / "list"))
    generator, drawn = measure.H2LoadPaths("h2load"), []
    generator.refuse(load)
    for _ in range(2):
        words = generator.command(load, str(tmp_path))
        assert words[-4:] == ["-i", str(tmp_path / "uris.txt"), "-B", load.url]
        drawn.append((tmp_path / "uris.txt").read_text().splitlines())
    assert drawn[0] == drawn[1] and len(drawn[0]) == 50
    assert set(drawn[0]) < {f"/many/{n}" for n in range(50)} and drawn[0] != sorted(drawn[0])


def test_strangers_add_up_the_runs_of_h2load():
    run = """starting benchmark...
finished in 10.00ms, 1600.00 req/s, 1MB/s
requests: 16 total, 16 started, 16 done, 16 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 16 2xx, 0 3xx, 0 4xx, 0 5xx
                     min         max         mean         sd        +/- sd
time for request:     {}ms       {}ms       3ms      1ms    60.00%
"""
    load = generators.Load("https://127.0.0.1/", clients=16, seconds=1, keep_alive=False)
    found = measure.Strangers().parse(load, run.format(1, 4) + run.format(2, 9), "", "")
    assert (found.count, found.statuses, found.latency_us) == (32, {"2xx": 32}, {"min": 1000, "max": 9000})
    assert found.seconds == pytest.approx(0.02) and found.rps == pytest.approx(1600)
