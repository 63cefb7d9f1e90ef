# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/guide/measuring.md, in its order, in one folder: with fewer clients and shorter rounds, and a
server of the test's own. Each must end with 0, and write the files that the next ones read."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess

import pytest
from watch_resources import contest, servers, workloads

from processes import BUILD, WR

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE, RULES = TOP / "docs" / "guide" / "measuring.md", TOP / "docs" / "contest" / "rules.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)
MONKEY = BUILD / "monkey"
NAMES = "nginx", "lighttpd"
SHORT = "-d 0.2 --repeats 5 --others-max 99 --share-cpu"
# What is replaced in a command, so that it ends within seconds. Options of 'wr run' take servers of this machine.
SHORTER = (
    (r"^monkey -p 2001 ~/my-site &$", ""), (r"-p \$!", "-p PID"), (r"-c 100:1000:100 -n 500000", "-c 1:3:1 -n 500"),
    (r"^PATH=.*", ""), (r"PID", "{pid}"), (r"127\.0\.0\.1:2001/index\.html", "127.0.0.1:{port}/13.txt"),
    (r"-r 20000 -d 30", "-r 200 -d 0.3"), (r"^(wr run [WS].*) -r [579]\b", rf"\1 -r 2 {SHORT}"),
    (r"-r [579]\b", f"-r 1 {SHORT}"), (r" -s haproxy\b(?!\+)", ""), (r"^wr counts .*", "wr counts -s monkey+ws"),
    (r"\$HOME/old/bin/monkey", "{monkey}"), (r"wr-20261120-101500\.jsonl", "{newest}"),
    (r"^wr watch (.*)", r"wr watch \1 --count 1 --interval 0.05"), (r" W3 ", " W2 "),
    (r"^wr scale (.*)", r"wr scale \1 -r 1 -d 0.1 --share-cpu"),
    (r"--contest files", "--contest guide.toml --repeats 5 --others-max 99 --share-cpu"),
    (r"^wr run S2 S2b\b", "wr run S2 few.toml -s monkey"),  # the others are built by npm
    (r"^wr run W1 -s monkey -s base=(\S+)", r"wr run W1 -s monkey -s base=\1 -o after.jsonl"),
)
CONTEST = """name = "guide"
text = "two servers"
servers = ["nginx", "lighttpd"]
workloads = ["W1", "W2"]
rounds = 2
seconds = 0.2
counts = false
"""
ELSEWHERE = re.compile(r"--agent|^wr agent|^ssh |ws://")  # test_agent.py; a server of messages
NEEDED = shutil.which("wrk") and all(servers.parse_choice(name).program for name in NAMES)
pytestmark = pytest.mark.skipif(not NEEDED or not MONKEY.exists(), reason="a server is not installed")


def commands():
    """Of all blocks, and the files that stand between them: [(language, text)]."""
    for language, text in BLOCK.findall(PAGE.read_text()):
        if language == "sh":
            yield from (("sh", line) for line in text.splitlines() if line)
        else:
            yield language, text


def shorten(line, **values):
    for pattern, other in SHORTER:
        line = re.sub(pattern, lambda match: match.expand(other), line)
    return line.format(**values) if "{" in line else line


def make_small_broadcast():
    """S2b, which has rounds of 20 s for its 10,000 clients."""
    text = (TOP / "tools" / "wr" / "data" / "workloads" / "S2b.toml").read_text()
    small = text.replace("clients = 10000", "clients = 100").replace("seconds = 20\n", "")
    assert len(small) < len(text) - len("seconds = 20")
    return small


@pytest.fixture
def server(tmp_path):
    """wr-limit: the guide's server under load is any process."""
    (tmp_path / "13.txt").write_text("Hello, World\n")
    port = servers.free_port()
    process = subprocess.Popen([BUILD / "wr-limit", "memory", str(port), tmp_path])
    yield process.pid, port
    process.send_signal(signal.SIGTERM)
    process.wait()


@pytest.mark.timeout(900)
def test_the_commands_of_the_guide(tmp_path, server):
    env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}
    pid, port = server
    ran = []
    (tmp_path / "guide.toml").write_text(CONTEST)
    (tmp_path / "few.toml").write_text(make_small_broadcast())
    for language, text in commands():
        if language == "toml":
            (tmp_path / "rules.toml").write_text(text.replace("0.75", "1000"))
            continue
        if ELSEWHERE.search(text):
            continue
        newest = max(tmp_path.glob("wr-*.jsonl"), default="none")
        line = shorten(text, pid=pid, port=port, monkey=MONKEY, newest=newest)
        if not line:
            continue
        if line.startswith("wr compare before.jsonl"):
            shutil.copy(tmp_path / "results.jsonl", tmp_path / "before.jsonl")
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{text}\nas {line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        ran.append(shlex.split(line)[:2])
    found = {" ".join(words) if words[0] == "wr" and not words[1].startswith("-") else words[0] for words in ran}
    known = ("run", "compare", "counts", "check", "scale", "watch", "report")
    assert found == {"wr", "wr-load", *(f"wr {name}" for name in known)}
    assert len(list(tmp_path.glob("results/*/README.md"))) == 1
    assert (tmp_path / "page.html").stat().st_size and "| " in (tmp_path / "tables.md").read_text()


def test_the_server_of_the_rules_is_the_one_that_is_measured():
    block = next(text for language, text in BLOCK.findall(RULES.read_text()) if language == "toml")
    data = (TOP / "tools" / "wr" / "data" / "servers" / "mini-httpd.toml").read_text()
    assert data.partition("\n")[2] == block and block.count("\n") <= 10


def test_the_workloads_of_the_rules_are_those_of_the_contest():
    values = contest.read_contest("files")
    table = RULES.read_text().partition("| workload | |")[2].partition("\n\n")[0]
    named = [word for line in table.splitlines()[2:] for word in line.split("|")[1].replace(",", " ").split()]
    assert sorted(named) == sorted(values["workloads"])


def test_the_options_of_the_guide_exist():
    """Also of the commands that need another machine."""
    for language, text in commands():
        words = shlex.split(text, comments=True) if language == "sh" else []
        if not words or words[0] != "wr":
            continue
        command = [words[1]] if len(words) > 1 and not words[1].startswith("-") else ["rounds"]
        output = subprocess.run([WR, *command, "--help"], capture_output=True, text=True, timeout=60).stdout
        for option in filter(lambda word: word.startswith("-"), words[1:]):
            assert re.search(rf"(^|\s){option}\b", output), (text, option)


def test_the_servers_and_workloads_of_the_guide_exist():
    """Also those that are left out when the commands run."""
    lines = [shlex.split(text, comments=True) for language, text in commands() if language == "sh"]
    words = [word for line in lines if line[:2] in (["wr", "run"], ["wr", "counts"]) for word in line]
    choices = [name for option, name in zip(words, words[1:]) if option == "-s" and "=" not in name]
    names = [word for word in words if re.fullmatch("[A-Z][0-9][a-z]*", word)]
    assert len(choices) > 10 and len(names) > 5
    for choice in choices:
        assert servers.parse_choice(choice).kind.programs
    for name in names:
        assert workloads.load_workload(name).name == name
