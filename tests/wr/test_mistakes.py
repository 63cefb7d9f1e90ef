# SPDX-License-Identifier: Apache-2.0
"""What a careless user and files of others give to `wr`: each is a sentence with file and line, never a trace."""

import json
import os
import re
import subprocess

import pytest
from watch_resources import WrError, clean
from watch_resources.results import parse_results, to_line

from processes import PYTHON, WR, run_wr, wait_until
from test_results import PAIR, SERVER, SESSION, WORKLOAD, make_round

HUGE = 10**400
RULES = '[[rule]]\nworkload = "W1"\nserver = "monkey"\nagainst = "nginx"\ncost_max = 1\n'


def change(record, **fields):
    return {**json.loads(to_line(record)), **fields}


WRONG = {
    "type": ({"type": []}, "there is no type"),
    "settings": (change(SESSION, settings=5), "settings is 5 instead of an object"),
    "name": (change(SERVER, name=["a"]), "name is .* instead of text"),
    "workload": (change(WORKLOAD, name={}), "name is {} instead of text"),
    "clients": (change(make_round(), clients="x"), "clients is 'x' instead of an integer"),
    "huge clients": (change(make_round(), clients=HUGE), "clients is a number out of range"),
    "number": (change(make_round(), n=[1]), "n is .* instead of an integer"),
    "server": (change(make_round(), server=5), "server is 5 instead of text"),
    "marks": (change(make_round(), marks=[["disturbed"]]), "marks is .* instead of a list, each entry text"),
    "no cost": (change(make_round(), cost_us=None), "cost_us is None instead of an object"),
    "cost of no total": (change(make_round(), cost_us={}), "cost_us has no total"),
    "huge cost": (change(make_round(), cost_us={"total": HUGE}), "cost_us is .* instead of .* each member a number"),
    "infinite": (change(make_round(), rps=float("inf")), "rps is a number out of range instead of a number"),
    "true": (change(make_round(), threads=True), "threads is True instead of an integer"),
    "latency": (change(make_round(), latency_us={"p99": "x"}), "latency_us is .* each member a number"),
    "rounds": (change(PAIR, rounds=5), "rounds is 5 instead of a list"),
    "three rounds": (change(PAIR, rounds=[1, 2, 3]), "the rounds of a pair are two"),
    "ratio": (change(PAIR, ratio="x"), "ratio is 'x' instead of a number or null"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_another_type_is_reported_with_its_line(name):
    line, said = WRONG[name]
    data = to_line(SESSION) + json.dumps(line) + "\n" + to_line(PAIR)
    with pytest.raises(WrError, match=f"^r.jsonl:2: {said}"):
        parse_results("r.jsonl", data.encode())


def test_a_line_that_is_nested_too_deeply():
    with pytest.raises(WrError, match="r.jsonl:1: it is nested too deeply"):
        parse_results("r.jsonl", b"[" * 100_000 + b"\n{}\n")


@pytest.mark.parametrize("settings, said", [
    ({"plan": 5}, "the plan of its session cannot be read"),
    ({"plan": {"evil": 1}}, "the plan of its session cannot be read"),
    ({"plan": {"workloads": ["W1"], "servers": "monkey"}}, "servers is 'monkey' instead of a list"),
    ({"plan": {"rounds": HUGE}}, "rounds is a number out of range"),
])
def test_a_plan_of_others_is_not_resumed(tmp_path, settings, said):
    (tmp_path / "r.jsonl").write_text(json.dumps(change(SESSION, settings=settings)) + "\n")
    done = run_wr("run", "--resume", "r.jsonl", cwd=tmp_path)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr


def test_settings_of_others_are_not_resumed(tmp_path):
    settings = {"url": "http://localhost/", "clients": "many"}
    (tmp_path / "r.jsonl").write_text(json.dumps(change(SESSION, settings=settings)) + "\n")
    done = run_wr("-p", os.getpid(), "--resume", "r.jsonl", cwd=tmp_path)
    assert done.returncode == 1 and "r.jsonl: the settings of its session cannot be read: clients" in done.stderr


@pytest.mark.parametrize("words", [
    ["compare", "r"], ["compare", "--markdown", "r"], ["compare", "r", "r"], ["check", "rules", "r"],
    ["report", "r", "-o", "page"], ["report", "--markdown", "r"],
])
def test_names_of_others_reach_no_terminal_as_they_are(tmp_path, words):
    name = "a\x1b]0;title\x07\x1b[31m\ud800"
    lines = [change(make_round(), server=name, workload="W1"), change(SERVER, name=name)]
    (tmp_path / "r").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "rules").write_text(RULES)
    done = run_wr(*words, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)


def test_clean():
    assert clean("a\tb\nc ä\u20ac\x1b\x07\x7f\x9b\ud800") == "a\tb\nc ä\u20ac" + "\ufffd" * 5


@pytest.mark.parametrize("url, said", [
    ("http://[::1", "is no URL of a server"),
    ("http://" + "a" * 80 + "/", "is not known: it is no name of a host"),
    ("http://a..b/", "is not known: it is no name of a host"),
])
def test_urls_that_no_library_takes(tmp_path, url, said):
    done = run_wr("-p", os.getpid(), "-u", url, "-c", 1, "-n", 1, cwd=tmp_path)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


SERVER_PROGRAM = """#!{python}
import os, signal, socket, sys, time
mode, port, out = sys.argv[1:]
if mode == "background" and os.fork():
    sys.exit()
if mode == "child" and os.fork():
    time.sleep(600)
os.setsid()
open(out, "w").write(str(os.getpid()))
listener = socket.create_server(("127.0.0.1", int(port)), backlog=100)
while True:
    connection = listener.accept()[0]
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 13\\r\\nConnection: close\\r\\n\\r\\nHello, World\\n")
    connection.close()
"""
SERVER_FILE = """name = "own"
text = "own"
programs = ["own"]
command = ["@program@", "{mode}", "@port@", "{out}"]
"""


@pytest.mark.parametrize("mode", ["background", "child"])
def test_a_server_that_leaves_its_session_is_ended(tmp_path, mode):
    program, out = tmp_path / "own", tmp_path / "pid"
    program.write_text(SERVER_PROGRAM.format(python=PYTHON))
    program.chmod(0o755)
    (tmp_path / "own.toml").write_text(SERVER_FILE.format(mode=mode, out=out))
    done = run_wr("run", "W2", "-s", f"own.toml={program}", "-r", 1, "-d", "0.2", "--repeats", 0, "--share-cpu",
                  cwd=tmp_path)
    assert (done.returncode == 1 and "status 0" in done.stderr) == (mode == "background"), done.stderr
    if mode == "child" or out.exists():
        wait_until(lambda: not os.path.exists(f"/proc/{out.read_text() or 'none'}"))


def test_folders_are_no_files(tmp_path):
    (tmp_path / "r").write_text(to_line(SESSION))
    for words, verb in (["report", "."], "read"), (["report", "r", "-o", "."], "written"):
        done = run_wr(*words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (1, f"wr: . cannot be {verb}: Is a directory\n")


def test_a_file_without_rounds_is_not_compared_in_silence(tmp_path):
    (tmp_path / "r").write_text(to_line(SESSION))
    done = run_wr("compare", "r", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "wr: r holds no rounds\n")


def test_a_full_disk_names_the_folder(tmp_path):
    """What the servers send is written into TMPDIR."""
    limit = ["prlimit", "--fsize=100000", "--"]  # bytes of a file: root may write into any folder
    done = subprocess.run([*limit, PYTHON, WR, "run", "W2", "-s", "limit-memory", "--share-cpu"], cwd=tmp_path,
                          env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.search(rf"^wr: {tmp_path}/wr-.*: File too large: TMPDIR names another folder", done.stderr, re.M)
    assert [path.suffix for path in tmp_path.glob("wr-*")] == [".jsonl"]


def test_a_file_that_memory_does_not_hold(tmp_path):
    with open(tmp_path / "r", "wb") as file:
        file.truncate(1 << 31)
    done = subprocess.run(["prlimit", "--as=1000000000", "--", PYTHON, WR, "compare", "r"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (1, "wr: memory is exhausted\n")


def test_closed_and_full_outputs(tmp_path):
    """A limit of the size of files is used instead of a full disk: not every machine has /dev/full."""
    (tmp_path / "r").write_text(to_line(make_round()))
    full = "prlimit --fsize=10 -- {} >out"
    for shell, status in (("{} >&-", 0), ("{} 2>&-", 0), (full, 1), ("{} | true", 0), ("{} | head -1", 0)):
        command = shell.format(f"{PYTHON} {WR} compare r")
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == status and "Traceback" not in done.stderr and "Error" not in done.stderr, command


@pytest.mark.parametrize("module", ["click", "rich"])
def test_a_missing_module_is_a_sentence(tmp_path, module):
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('gone', name='{module}')\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([PYTHON, WR, "watch", str(os.getpid()), "--count", "1"], env=env, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"wr: the Python module {module} is missing: install the Debian package python3-{module}\n"
