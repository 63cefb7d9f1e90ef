# SPDX-License-Identifier: Apache-2.0
"""Comparisons: the order of the rounds, what happens when servers fail, --resume, and the tables."""

import json
import re
import os
import random
import shutil
import tempfile

import pytest
from fakes import make_lines, make_row, measure_by_wrk
from watch_resources import compare, data, environment, servers, tables, workloads
from watch_resources.analysis import Results, compare_pairs
from watch_resources.compare import Comparison, Plan, is_first_ahead, resume_plan
from watch_resources.data import Problem

SERVER = """
name = "NAME"
text = "TEXT"
limit = LIMIT
programs = ["python3"]
command = ["@program@", "@folder@/server.py", "@port@", "@root@"]
version = ["@program@", "--version"]
[config]
"server.py" = '''
import functools, http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
http.server.ThreadingHTTPServer.request_queue_size = 128
handler = functools.partial(Handler, directory=sys.argv[2])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
'''
"""


class SmallEnvironment:
    """Without CPUs, network namespace and locks, which would stay with the tests."""

    def __init__(self, folder):
        self.folder, self.root, self.server_cpu, self.notes = folder, os.path.join(folder, "www"), None, []
        self.built = {}
        os.chmod(folder, 0o755)
        environment.make_files(self.root)


@pytest.fixture
def small():
    folder = tempfile.mkdtemp(prefix="wr-test-")
    yield SmallEnvironment(folder)
    shutil.rmtree(folder)


def make_servers(tmp_path, *names, limit=()):
    for name in names:
        text = SERVER.replace("NAME", name).replace("TEXT", f"limit: {name}" if name in limit else name)
        (tmp_path / f"{name}.toml").write_text(text.replace("LIMIT", "true" if name in limit else "false"))
    return [str(tmp_path / f"{name}.toml") for name in names]


def make_measure(costs, log=None, marks=None):
    """costs: {server: µs}; `log` takes the servers of the rounds that count."""

    def measure(workload, server, seconds, _others_max):
        if seconds != compare.WARM_UP_SECONDS_MAX and log is not None:
            log.append(server.name)
        return make_row(costs[server.name], marks=marks(server, log) if marks and log else ())

    return measure


def run(small, plan, measure, known=None):
    lines = list(known or [])
    comparison = Comparison(plan, small, measure, lines.append, Results(known or []), "session")
    problems = comparison.run()
    return lines, problems


def test_pairs_and_their_order(tmp_path, small):
    log = []
    plan = Plan(["W1"], make_servers(tmp_path, "a", "b", "c"), rounds=6, seconds=2, seed=5, chosen=True)
    lines, problems = run(small, plan, make_measure({"a": 7, "b": 10, "c": 7}, log))
    assert not problems and len(log) == 24
    pairs = [log[n : n + 2] for n in range(0, 24, 2)]
    assert all("a" in pair and len(set(pair)) == 2 for pair in pairs)
    assert {tuple(pair) for pair in pairs} == {("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")}
    results = Results(lines)
    assert [row["n"] for row in results.rounds.values()] == list(range(1, 25))
    assert all(row["session"] == "session" for row in results.rounds.values())
    assert len(results.pairs_of("W1", "a", "b")) == len(results.pairs_of("W1", "c", "a")) == 6
    text = "\n".join(tables.format_file(results))
    assert "a needs 0.70 x of b (0.70 to 0.70)" in text
    assert "no difference seen between a and c" in text
    again = []
    run(small, plan, make_measure({"a": 7, "b": 10, "c": 7}, again))
    assert again == log


@pytest.mark.parametrize("seed", range(5))
def test_each_server_is_ahead_as_often_as_the_other(tmp_path, small, seed):
    """The second round of a pair may meet warmer caches, or a CPU that is slower."""
    log = []
    plan = Plan(["W1"], make_servers(tmp_path, "a", "b", "c"), rounds=6, seconds=2, seed=seed, chosen=True)

    def measure(workload, server, seconds, others_max):
        row = make_measure({"a": 7, "b": 7, "c": 7}, log)(workload, server, seconds, others_max)
        if seconds == 2 and len(log) % 2 == 0:
            row["cost_us"]["total"] *= 1.1
        return row

    results = Results(run(small, plan, measure)[0])
    for other in "bc":
        assert sum(log[n : n + 2] == ["a", other] for n in range(0, len(log), 2)) == 3
        assert compare_pairs(results, "W1", "a", other).interval.ratio == pytest.approx(1)


def test_orders_differ_by_seed():
    orders = {tuple(is_first_ahead(f"{seed} W1 b", n) for n in range(0, 20, 2)) for seed in range(20)}
    assert len(orders) == 20
    ahead = sum(sum(order) for order in orders)
    assert 70 <= ahead <= 130  # of 200


def test_a_disturbed_pair_counts_only_without_others():
    lines = make_lines("W1", [(7, 10), (7, 10), (28, 10)])
    assert compare_pairs(Results(lines), "W1", "monkey", "nginx").interval.count == 3
    lines[-3]["marks"] = ["disturbed"]
    found = compare_pairs(Results(lines), "W1", "monkey", "nginx").interval
    assert (found.ratio, found.count) == (pytest.approx(0.7), 2)
    for line in lines:
        line["marks"] = ["disturbed"]
    assert compare_pairs(Results(lines), "W1", "monkey", "nginx").interval.count == 3


def test_resume_continues_where_it_ended(tmp_path, small):
    plan = Plan(["W1"], make_servers(tmp_path, "a", "b", "c"), rounds=4, seconds=2, seed=5, chosen=True)
    whole = []
    run(small, plan, make_measure(dict.fromkeys("abc", 5), whole))
    log, lines = [], []

    def measure(workload, server, seconds, others_max):
        if len(log) == 9:
            raise KeyboardInterrupt
        return make_measure(dict.fromkeys("abc", 5), log)(workload, server, seconds, others_max)

    with pytest.raises(KeyboardInterrupt):
        Comparison(plan, small, measure, lines.append, Results([]), "one").run()
    assert not os.path.exists(os.path.join(small.folder, "W1"))
    assert len(Results(lines).pairs) == 4 and len(Results(lines).rounds) == 9
    rest = []
    lines, problems = run(small, plan, make_measure(dict.fromkeys("abc", 5), rest), lines)
    results = Results(lines)
    assert not problems and log[:8] + rest == whole
    assert len(results.pairs_of("W1", "a", "b")) == len(results.pairs_of("W1", "a", "c")) == 4
    assert sum(line["type"] == "workload" for line in lines) == 1
    assert len(results.rounds) == sum(line["type"] == "round" for line in lines)


def test_one_server_alone_and_resumed(tmp_path, small):
    plan = Plan(["W1"], make_servers(tmp_path, "a"), rounds=3, seconds=2, chosen=True)
    lines, _ = run(small, plan, make_measure({"a": 7}))
    assert len(Results(lines).rounds) == 3 and not Results(lines).pairs
    plan.rounds = 5
    lines, _ = run(small, plan, make_measure({"a": 7}), lines)
    assert len(Results(lines).rounds) == 5


def test_a_disturbed_pair_is_repeated(tmp_path, small):
    log = []
    plan = Plan(["W1"], make_servers(tmp_path, "a", "b"), rounds=2, seconds=2, chosen=True)
    measure = make_measure({"a": 7, "b": 9}, log, lambda server, log: ["disturbed"] if len(log) == 2 else [])
    results = Results(run(small, plan, measure)[0])
    assert len(results.rounds) == 6 and len(results.pairs) == 2
    assert [row["marks"] for row in results.rounds.values()] == [[], ["disturbed"], ["repeated"], ["repeated"], [], []]
    assert results.pairs[0]["rounds"] in ([3, 4], [4, 3])


def test_a_server_that_dies_in_a_round(tmp_path, small):
    log = []

    def measure(workload, server, seconds, others_max):
        if server.name == "b" and len(log) > 3:
            server.process.kill()
            server.process.wait()
        return make_measure(dict.fromkeys("abc", 5), log)(workload, server, seconds, others_max)

    plan = Plan(["W1"], make_servers(tmp_path, "a", "b", "c"), rounds=5, seconds=2, seed=1, chosen=True)
    lines, problems = run(small, plan, measure)
    assert len(problems) == 1 and problems[0].startswith("b died: signal SIGKILL; its command was ")
    results = Results(lines)
    assert len(results.pairs_of("W1", "a", "c")) == 5 and len(results.pairs_of("W1", "a", "b")) < 5


def test_an_exclusion_is_written_once(tmp_path, small):
    """The first server fails in each step of a workload with the same reason."""
    steps = tmp_path / "steps.toml"
    steps.write_text('name = "steps"\ntext = "13 bytes"\npath = "13.txt"\nclients = 8\nsteps = [32]\n')

    def measure(workload, server, seconds, others_max):
        return make_row(5, answers=0 if server.name == "a" and seconds > 1 else 9)

    plan = Plan([str(steps)], make_servers(tmp_path, "a", "b"), rounds=2, seconds=2, chosen=True)
    lines, problems = run(small, plan, measure)
    assert len(problems) == 2
    assert [line["server"] for line in lines if line["type"] == "exclusion"] == ["a"]


@pytest.mark.parametrize("which, pairs", [("a", 0), ("b", 2)])
def test_a_server_without_answers(tmp_path, small, which, pairs):
    def measure(workload, server, seconds, others_max):
        return make_row(5, answers=0 if server.name == which and seconds > 1 else 9)

    plan = Plan(["W1"], make_servers(tmp_path, "a", "b", "c"), rounds=2, seconds=2, chosen=True)
    lines, problems = run(small, plan, measure)
    assert len(problems) == 1 and problems[0].startswith(f"{which} gave no answers to W1 in a round")
    assert len(Results(lines).pairs) == pairs


def test_an_empty_round_is_repeated(tmp_path, small):
    """A busy machine may give a server no turn; both rounds of the pair are measured again."""
    log = []

    def measure(workload, server, seconds, others_max):
        log.append((server.name, seconds))
        is_empty = len(log) in (1, 5, 8)  # of the warm-up, of a first and of a second round
        return make_row(5, answers=0 if is_empty else 9)

    plan = Plan(["W1"], make_servers(tmp_path, "a", "b"), rounds=2, seconds=2, chosen=True)
    lines, problems = run(small, plan, measure)
    assert not problems and len(Results(lines).pairs) == 2
    rounds = [name for name, seconds in log if seconds == 2]
    assert [name for name, seconds in log if seconds != 2] == ["a", "a", "b"] and len(rounds) == 4 + 3
    marks = [row["marks"] for row in Results(lines).rounds.values()]
    assert marks.count(["repeated"]) == 4


def test_the_ranks_of_a_second_witness(tmp_path, small):
    files = make_servers(tmp_path, "a", "b")
    plan = Plan(["W1"], files, rounds=3, seconds=2, chosen=True, witnesses={"W1": "wrk"})
    costs = {"W1": {"a": 5, "b": 9}, "W1-wrk": {"a": 5, "b": 9}}

    def measure(workload, server, seconds, _others_max):
        return make_row(costs[workload.name][server.name])

    assert "the ranks by W1 and W1-wrk are the same" in tables.format_file(Results(run(small, plan, measure)[0]))
    costs["W1-wrk"] = {"a": 9, "b": 5}
    text = "\n".join(tables.format_file(Results(run(small, plan, measure)[0])))
    assert "the ranks by W1 and W1-wrk differ: a (1 and 2), b (2 and 1)" in text


def test_a_server_that_does_not_start(tmp_path, small):
    files = make_servers(tmp_path, "a", "b", "c")
    broken = tmp_path / "b.toml"
    broken.write_text(broken.read_text().replace("import functools", "raise SystemExit('no')\nimport functools"))
    plan = Plan(["W1"], files, rounds=2, seconds=2, chosen=True)
    lines, problems = run(small, plan, make_measure(dict.fromkeys("abc", 5)))
    assert len(problems) == 1 and "b does not start: it ended with status 1" in problems[0]
    assert len(Results(lines).pairs_of("W1", "a", "c")) == 2
    plan.servers = [files[1], files[0], files[2]]
    lines, problems = run(small, plan, make_measure(dict.fromkeys("abc", 5)))
    assert len(problems) == 1 and not Results(lines).rounds


def test_a_limit_server_is_named(tmp_path, small):
    plan = Plan(["W1"], make_servers(tmp_path, "a", "open", limit=["open"]), rounds=2, seconds=2, chosen=True)
    lines, _ = run(small, plan, make_measure({"a": 8, "open": 4}))
    text = "\n".join(tables.format_file(Results(lines)))
    assert "a needs 2.00 x of limit: open (2.00 to 2.00)" in text


def test_resume_needs_the_same_command_line(tmp_path):
    plan = {"workloads": ["W1"], "servers": ["monkey", "nginx"], "rounds": 3}
    known = Results([{"type": "session", "id": "1", "settings": {"plan": plan}}])
    assert resume_plan(known, "f.jsonl").rounds == 3
    assert resume_plan(known, "f.jsonl", ("W1",)).servers == ["monkey", "nginx"]
    with pytest.raises(Problem, match="f.jsonl was begun with the workloads W1: leave them out with --resume"):
        resume_plan(known, "f.jsonl", ("W2",))
    with pytest.raises(Problem, match="f.jsonl does not say what was to be measured"):
        resume_plan(Results([]), "f.jsonl")


def test_mistakes_are_reported_before_anything_is_measured():
    with pytest.raises(Problem, match="there is no workload W0"):
        Plan(["W0"], ["monkey"]).choose()
    with pytest.raises(Problem, match="-s monkey is there twice: give one of them another name"):
        Plan(["W1"], ["monkey", "monkey"]).choose()
    with pytest.raises(Problem, match="-s base=/no/such: /no/such is no program"):
        Plan(["W1"], ["base=/no/such"]).choose()


@pytest.mark.parametrize(
    "text, message",
    [
        ("paths = 5", '{}:5: paths: unknown'),
        ("streams = 5", "{}:5: streams: only HTTP/2 has streams"),
        ('websocket = "echo"', '{}:3: path: the path of websocket = "echo" is "echo"'),
        ('protocol = "2"', "{}:5: protocol: the servers have to be started for HTTP/2"),
        ('connections = "strangers"', "{}:5: connections: only TLS has strangers"),
        ('variants = ["tsl"]', "{}:5: variants.1: 'tsl' is not one of 'tls', 'h2', 'log', 'gz'"),
    ],
)
def test_mistakes_in_a_workload(tmp_path, text, message):
    path = tmp_path / "own.toml"
    path.write_text(f'name = "own"\ntext = "own"\npath = "13.txt"\nclients = 1\n{text}\n')
    if "unknown" in message:
        message = "{}:3: path: with several paths it holds @n@"
    with pytest.raises(Problem) as found:
        workloads.load_workload(str(path))
    assert str(found.value).startswith(message.format(path))


def test_two_files():
    rng = random.Random(4)

    def lines(factor, seed):
        pairs = [(7 * factor * d, 10 * d) for d in (1 + rng.random() / 50 for _ in range(9))]
        found = make_lines("W1", [(a * (1 + rng.random() / 100), b) for a, b in pairs])
        found[0]["settings"]["plan"]["seed"] = seed
        found[0]["machine"]["kernel"] = f"6.{seed}"
        found[1]["version"] = f"build {seed}"
        return found

    found = list(tables.format_two(Results(lines(1, 1), "A.jsonl"), Results(lines(2, 2), "B.jsonl")))
    assert found[0] == "A.jsonl was measured at 2026-01-02, B.jsonl at 2026-01-02: the rounds are not paired"
    assert found[1] == "the machines differ in kernel (6.1, 6.2)"
    assert found[2] == "the orders of the rounds differ (seeds 1 and 2)"
    assert found[3].startswith("W1  monkey of A.jsonl needs 0.50 x of monkey of B.jsonl (0.4")
    assert "(build 1; build 2)" in found[3]
    assert found[4].startswith("    beside nginx: monkey of A.jsonl needs 0.50 x of monkey of B.jsonl")
    assert found[5].startswith("W1  no difference seen between nginx of A.jsonl and nginx of B.jsonl")
    assert found[7] == "0 of 1 ratios (0%) lie within their intervals in A.jsonl"
    assert found[8] == "0 of 1 ratios (0%) lie where a second run was expected by them"
    assert found[9] == "0 of 1 ratios (0%) do not differ by the rounds of both files"
    assert found[10].startswith("    W1: nginx 0.71 x, before 1.4")
    assert found[10].endswith(": differs")
    same = list(tables.format_repeated(Results(lines(1, 1), "A.jsonl"), Results(lines(1, 1), "B.jsonl")))
    assert same == [
        "1 of 1 ratios (100%) lie within their intervals in A.jsonl",
        "1 of 1 ratios (100%) lie where a second run was expected by them",
        "1 of 1 ratios (100%) do not differ by the rounds of both files",
    ]


def test_a_repeated_ratio_may_miss_a_narrow_interval():
    """The mean of a second run varies, too: it may lie outside of the interval of the first and yet not differ."""
    one = make_lines("W1", [(100, 100 + d) for d in (9, 10, 11, 10, 10, 9, 11)])
    other = make_lines("W1", [(100, 100 + d) for d in (0, 15, 35, 20, 5, 25, 10)])
    found = list(tables.format_repeated(Results(one, "A.jsonl"), Results(other, "B.jsonl")))
    assert found[0].startswith("0 of 1 ratios (0%) lie within")
    assert found[1].startswith("0 of 1 ratios (0%) lie where")
    assert found[2].startswith("1 of 1 ratios (100%) do not differ")
    assert found[3].startswith("    W1: nginx 1.1") and not found[3].endswith("differs")


def test_latencies_stand_below_their_headings():
    """Medians of the rounds; what a generator does not know is empty."""
    lines = make_lines("W1", [(7, 10)] * 3)
    known = iter([(40, 900, 12_000), (41, 950, 14_000), (90, 1000, 13_000)])
    for line in lines:
        if line.get("server") == "monkey" and line["type"] == "round":
            line["latency_us"] = dict(zip(("p50", "p99", "p99.9"), next(known)))
    _, head, *rows = tables.format_workload(Results(lines), "W1")
    ends = [found.end() for found in re.finditer(r"\bp[\d.]+", head)]
    cells = {row.split()[0]: [row[end - 9 : end].strip() for end in ends] for row in rows}
    assert cells == {"monkey": ["41 us", "950 us", "13 ms"], "nginx": ["", "100 us", ""]}


def test_markdown():
    lines = make_lines("W8", [(7, 10)] * 4, "monkey+tls", "nginx+cache+tls", variants=["tls"])
    lines.append({"type": "counts", "server": "monkey", "binary_kb": 1310, "calls": 7.0, "dirty_kb": 224})
    rows = list(tables.format_markdown(Results(lines)))
    assert rows[0] == "|  | monkey | nginx, open_file_cache |"
    assert rows[2] == "| binary, stripped, KB | 1,310 |  |"
    assert "| CPU µs: text of W8 | 7.0 | 10.0 (0.70; 0.70 to 0.70) |" in rows
    json.dumps(lines)


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_end_to_end_with_wrk(small):
    """Two of the same program; counted by wrk, from schedstat."""
    nginx = servers.parse_choice("nginx").program
    if not nginx:
        pytest.skip("nginx is not installed")
    plan = Plan(["W1"], ["nginx", f"again={nginx}"], rounds=2, seconds=1.1, chosen=True)
    lines, problems = run(small, plan, measure_by_wrk)
    assert not problems and len(Results(lines).pairs) == 2
    comparison = tables.compare_pairs(Results(lines), "W1", "nginx", "again")
    assert 0.5 < comparison.interval.ratio < 2


def test_names_of_defaults_exist():
    defaults = workloads.read_defaults()
    assert {name for each in defaults for name in each["workloads"]} == set(data.list_names("workloads"))
    for each in defaults:
        found, choices = Plan(each["workloads"], each["servers"]).choose()
        assert len(found) == len(each["workloads"]) and all(choice.program for choice in choices)


def test_workloads_have_their_default_servers():
    files, services, websockets, *_ = workloads.read_defaults()
    assert websockets["servers"][0] == "monkey" and "node-ws" in websockets["servers"]
    assert Plan.make((), ()).workloads == files["workloads"] and Plan.make((), ()).servers == files["servers"]
    plan = Plan.make(("S1",), ())
    assert (plan.workloads, plan.servers) == (["S1"], services["servers"])
    both = Plan.make(("W1", "S1"), ())
    assert set(both.servers) == {*files["servers"], *services["servers"]} and both.servers[0] == "monkey"
    assert Plan.make(("S1",), ("nginx",)).servers == ["nginx"]
