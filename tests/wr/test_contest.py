# SPDX-License-Identifier: Apache-2.0
"""Contests: mistakes in their files, a whole small one, those that are excluded, and one that is interrupted."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from watch_resources import contest, data, servers
from watch_resources.analysis import Results
from watch_resources.data import Problem

from harness.server import find_processes
from processes import PYTHON, WR, run_wr

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = all(servers.parse_choice(name).program for name in ("nginx", "lighttpd")) and shutil.which("wrk")
needs_servers = pytest.mark.skipif(not INSTALLED, reason="nginx, lighttpd or wrk is not installed")
CONTEST = """name = "small"
text = "three servers and three workloads"
servers = ["monkey", "nginx", "lighttpd", "liar.toml", "broken.toml", "none.toml"]
workloads = ["W1", "W2", "steps.toml"]
rounds = 2
seconds = 0.2
counts = false

[[witness]]
workload = "W1"
generator = "wrk"

[[absent]]
name = "G-WAN"
reason = "its source is not published"
"""
# On a busy machine all rounds are disturbed, and some are empty: only these are repeated.
OPTIONS = "--others-max", "99", "--repeats", "5", "--share-cpu"
STEPS = 'name = "steps"\ntext = "200 KB, 8 and 32 clients"\npath = "200k.bin"\nclients = 8\nsteps = [32]\n'
OWN = """name = "NAME"
text = "NAME"
programs = ["PROGRAM"]
command = ["@program@", COMMAND]
"""


def write_server(folder, name, *command, program="python3"):
    words = ", ".join(f'"{word}"' for word in command)
    text = OWN.replace("NAME", name).replace("PROGRAM", program).replace("COMMAND", words)
    (folder / f"{name}.toml").write_text(text)


def write_contest(folder, text=CONTEST):
    write_server(folder, "liar", str(HERE / "lying_server.py"), "@port@", "@root@", "etag")
    write_server(folder, "broken", "-c", "print('bad luck'); raise SystemExit(3)")
    write_server(folder, "none", "@port@", program="no-such-program")
    (folder / "steps.toml").write_text(STEPS)
    (folder / "small.toml").write_text(text)
    return folder / "small.toml"


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# ── files ──


@pytest.mark.parametrize("name", data.list_names("contests"))
def test_files_are_valid(name):
    values = contest.read_contest(name)
    assert values["name"] == name and "monkey" in values["servers"]
    measured = {servers.parse_choice(text).kind.name for text in values["servers"]}
    for each in values["absent"]:
        assert each["name"].lower() not in {*measured, *data.list_names("servers")}


@pytest.mark.parametrize("old, new, message", [
    ("rounds = 2", "rounds = 0", "small.toml:5: rounds: 0 is too low: 1 is the least"),
    ("rounds = 2", "round = 2", "small.toml:5: round: unknown key; do you mean rounds?"),
    ('"W2"', '"W0"', "small.toml:4: workloads.2: there is no workload W0"),
    ('"nginx"', '"ngnix"', "small.toml:3: servers.2: there is no server ngnix: do you mean nginx?"),
    ('"nginx"', '"nginx+tsl"', r"small.toml:3: servers.2: -s nginx\+tsl: nginx has no variant \+tsl; do you mean tls?"),
    ('"nginx"', '"monkey"', "small.toml:3: servers.2: monkey is there twice"),
    ('workload = "W1"', 'workload = "W11"', "small.toml:10: witness.1.workload: W11 is not measured; do you mean W1?"),
    ('"wrk"', '"ab"', "small.toml:11: witness.1.generator: 'ab' is not one of 'wrk', 'h2load'"),
    ('reason = "its', 'why = "its', "small.toml:15: absent.1.why: unknown key"),
    ('["W1", "W2", "steps.toml"]', "[]", "small.toml:4: workloads: the list is empty"),
    ("[[absent]]", "[[absent]", "small.toml:13: "),
])
def test_mistakes(tmp_path, old, new, message):
    path = write_contest(tmp_path, CONTEST.replace(old, new, 1))
    with pytest.raises(Problem, match=re.escape(message).replace(r"\\\+", r"\+")):
        contest.read_contest(str(path))


def test_mistakes_on_the_command_line(tmp_path):
    write_contest(tmp_path)
    for words, said in ((["--contest", "smalls"], "there is no contest smalls"),
                        (["--contest", "no.toml"], "No such file"),
                        (["--contest", "small.toml", "W1"], "leave out WORKLOADS"),
                        (["--contest", "small.toml", "-s", "nginx", "-r", 3], "leave out -s, -r")):
        done = run_wr("run", *words, cwd=tmp_path)
        assert done.returncode in (1, 2) and said in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.jsonl"))


def test_what_to_do_about_a_missing_server():
    explain = lambda name: contest.explain_missing(servers.parse_choice(name).kind)
    assert explain("nginx") == "install the Debian package nginx-light"
    assert explain("merecat") == "install the Debian package merecat, which cannot be installed together with h2o"
    assert explain("monkey") == "build it first"


def test_a_second_witness_that_is_not_installed(tmp_path):
    """It is said before a file is made."""
    write_contest(tmp_path)
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([PYTHON, str(WR), "run", "--contest", "small.toml"], cwd=tmp_path, env=env, text=True,
                          capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (1, "wr: the contest measures with wrk too, which is not installed\n")
    assert not list(tmp_path.glob("*.jsonl"))


def test_how_long_it_takes(tmp_path):
    """Of what is left: nothing, when all pairs are in the file."""
    write_contest(tmp_path, CONTEST.replace("counts = false", "counts = true"))
    plan = contest.make_plan(str(tmp_path / "small.toml"), seed=1)
    found, choices = plan.choose()
    assert [workload.name for workload in found] == ["W1", "W1-wrk", "W2", "steps"]
    assert (found[1].generator, found[1].witness_of) == ("wrk", "W1")
    whole = contest.estimate_seconds(plan, Results([]))
    pairs = len(found) + 1  # a workload has two steps
    least = pairs * 2 * 2 * (len(choices) - 1) * plan.seconds
    assert least < whole < 20 * least + 60 * len(choices)
    lines = [{"type": "counts", "server": choice.label} for choice in choices]
    shipped = contest.make_plan("files", seed=1)
    assert contest.estimate_seconds(shipped, Results([])) <= 90 * 60, "the contest of the project"
    assert contest.estimate_seconds(plan, Results(lines)) == pytest.approx(whole - 12 * len(choices))
    assert "4 workloads, 2 pairs of 0.2 s: about" in contest.describe(plan, Results([]))


# ── measured ──


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contest")
    write_contest(folder)
    begin = time.monotonic()
    done = run_wr("run", "--contest", "small.toml", *OPTIONS, "-o", "small.jsonl", cwd=folder)
    return folder / "small.jsonl", done, time.monotonic() - begin


@needs_servers
def test_a_whole_contest(measured):
    path, done, seconds = measured
    assert "Traceback" not in done.stderr and seconds < 120
    results = Results(read_lines(path))
    for workload in ("W1", "W1-wrk", "W2", "steps"):
        assert results.labels_of(workload) == ["monkey", "nginx", "lighttpd"], done.stderr
        assert len(results.all_pairs_of(workload, "monkey", "nginx")) == (4 if workload == "steps" else 2)
    assert results.steps_of("steps") == [8, 32] and results.steps_of("W1") == [None]
    assert {row["generator"]["name"] for row in results.rounds_of("W1-wrk", "nginx")} == {"wrk"}
    features = results.features["nginx", "W1"]
    assert features["ranges"] == "yes" and features["congestion control"]
    assert "8 clients" in done.stdout and "32 clients" in done.stdout


@needs_servers
def test_it_says_what_is_not_measured(measured):
    """A sentence each, in the terminal and in the file; those excluded are in the status."""
    path, done, _ = measured
    assert done.returncode == 1
    begins = r"^contest small \(three servers and three workloads\): 5 servers, 4 workloads, 2 pairs of 0.2 s: about "
    assert re.search(begins, done.stderr, re.M)
    assert "NOT MEASURED: G-WAN cannot be had as a package: its source is not published" in done.stderr
    assert "NOT MEASURED: none is not installed on this machine" in done.stderr
    assert re.search(r"^wr: W1: liar answers If-None-Match: ", done.stderr, re.M)
    assert "W2: broken does not start: it ended with status 3" in done.stderr and "bad luck" in done.stderr
    assert re.search(r"^W2 \(3 of 4\), \d+:\d\d left: 13 bytes", done.stderr, re.M)
    excluded = [each for each in read_lines(path) if each["type"] == "exclusion"]
    found = {(each["server"], each["workload"]): each["kind"] for each in excluded}
    assert found["G-WAN", ""] == "absent" and found["none", ""] == "missing"
    assert found["liar", "W1"] == "disqualified" and found["broken", "W2"] == "failed"


@needs_servers
def test_an_interrupted_contest_continues(tmp_path):
    write_contest(tmp_path, CONTEST.replace(', "liar.toml", "broken.toml"', "").replace(', "W2", "steps.toml"', ""))
    path = tmp_path / "c.jsonl"
    command = [PYTHON, str(WR), "run", "--contest", "small.toml", *OPTIONS, "-o", str(path)]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while time.monotonic() < end and (not path.exists() or '"pair"' not in path.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    before = [line for line in read_lines(path) if line["type"] == "round"]
    done = run_wr("run", "--resume", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = read_lines(path)
    assert [line for line in lines if line["type"] == "round"][: len(before)] == before
    assert sum(line["type"] == "pair" for line in lines) == 2 * 2 * 2
    excluded = [(line["server"], line["kind"]) for line in lines if line["type"] == "exclusion"]
    assert sorted(excluded) == [("G-WAN", "absent"), ("none", "missing")]
    again = run_wr("run", "--resume", path, cwd=tmp_path)
    assert again.returncode == 0 and len(read_lines(path)) == len(lines) + 1  # the session


@needs_servers
def test_what_is_excluded_is_not_tried_again(measured):
    path = pathlib.Path(shutil.copy(measured[0], measured[0].with_name("again.jsonl")))
    lines = read_lines(path)
    again = run_wr("run", "--resume", path, cwd=path.parent)
    assert "liar" not in again.stderr and "broken" not in again.stderr
    assert len(read_lines(path)) == len(lines) + 1  # the session


@needs_servers
def test_servers_that_die_and_hang_amid_it(tmp_path):
    """A sentence each; they are ended, and what the others did is kept."""
    write_contest(tmp_path, CONTEST.replace('"liar.toml", "broken.toml", "none.toml"', '"dead.toml", "stuck.toml"')
                  .replace('["W1", "W2", "steps.toml"]', '["W1"]').partition("[[witness]]")[0])
    for name, lie in (("dead", "death"), ("stuck", "hang")):
        write_server(tmp_path, name, str(HERE / "lying_server.py"), "@port@", "@root@", lie)
    done = run_wr("run", "--contest", "small.toml", *OPTIONS, "-o", "c.jsonl", cwd=tmp_path)
    lines = read_lines(tmp_path / "c.jsonl")
    excluded = {line["server"]: (line["kind"], line["reason"]) for line in lines if line["type"] == "exclusion"}
    assert done.returncode == 1 and {kind for kind, _ in excluded.values()} == {"failed"}
    assert re.search(r"^dead .*\n  no more$", excluded["dead"][1], re.S), excluded
    assert re.match(r"stuck (cannot be measured|gave no answers|hangs)", excluded["stuck"][1])
    assert f"wr: W1: {excluded['dead'][1].splitlines()[0]}" in done.stderr
    assert len(Results(lines).all_pairs_of("W1", "monkey", "nginx")) == 2
    folder = str(pathlib.Path(next(line["command"][-1] for line in lines if line["type"] == "server")).parents[1])
    assert not find_processes(folder)
