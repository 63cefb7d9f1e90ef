# SPDX-License-Identifier: Apache-2.0
"""One round against a small server, what it is marked with, and how it ends when something fails."""

import dataclasses
import os
import pathlib
import socket
import threading
import time

import pytest

from harness.names import needs_localhost
from processes import HERE, child, small_server, wait_until
from test_results import make_round
from watch_resources import WrError
from watch_resources.generators import Answers, Load, WrLoad
from watch_resources.machine import (
    Machine, MachineSample, describe_machine, find_virtualisation, parse_busy, parse_pressure, pressure_between,
)
from watch_resources.proc import Counters, Memory, Sample, read_stat
from watch_resources.results import DISTURBED, GENERATOR_LIMITED, REPEATED, ResultsWriter
from watch_resources.rounds import (
    Limits, Measurement, RoundError, StallWatch, Target, make_target, port_of, repeat_disturbed,
)
from watch_resources.sampler import Sampler, mean_over_time, rows, summarize_memory
from watch_resources.series import (
    Series, Settings, attempts_of, check_url, is_local_address, merge_settings, parse_clients, settings_of,
    warn_listener,
)
from watch_resources.spawn import Program

FAKE_LOAD = str(HERE / "fake_load.py")
MS = 1_000_000


class FakeMachine(Machine):
    """Others use what the test says."""

    def __init__(self, *shares):
        super().__init__()
        self.shares = list(shares)

    def others_ns(self, first, last, ours_ns, our_pids):
        return round(self.shares.pop(0) * (last.at_ns - first.at_ns))


class RecordingMachine(Machine):
    """Records what it is asked to leave out."""

    def others_ns(self, first, last, ours_ns, our_pids):
        self.known_ns, self.pids = ours_ns, set(our_pids)
        return super().others_ns(first, last, ours_ns, our_pids)


def measurement(server, machine=None, limits=Limits(), on_progress=None, **load):
    load = Load(**{"url": server.url, "clients": 3, "requests": 100, **load})
    return Measurement(make_target(server.pid, server.url), WrLoad(FAKE_LOAD), load, limits,
                       machine or FakeMachine(0.0), on_progress)


# ── one round ──


def test_a_round_has_what_was_measured():
    with small_server() as server:
        result = measurement(server).measure()
        assert server.count() == 100
    assert (result.answers, result.clients, result.statuses, result.errors) == (100, 3, {"200": 100}, {})
    assert result.cpu_us["total"] > 1000
    assert abs(result.cpu_us["user"] + result.cpu_us["system"] - result.cpu_us["total"]) <= 1
    assert result.cost_us["total"] == pytest.approx(result.cpu_us["total"] / 100)
    assert result.memory_kb["pss_max"] >= result.memory_kb["pss_mean"] > 1000
    assert result.threads == 1
    assert result.descriptors_max >= 4
    assert set(result.pressure) == {"cpu", "memory", "io"}
    assert result.generator["version"] == "1.0-fake"
    assert result.generator["cpu_share"] == 0.1
    assert result.generator["command"][0] == FAKE_LOAD
    assert result.latency_us["p99"] == 5
    assert result.marks == []
    assert result.samples[0][:2] == [0.0, 0] and len(result.samples) >= 2
    assert result.samples[-1][1] // 1000 == result.cpu_us["total"]
    assert 0 < result.sampler_us < 1_000_000


def test_samples_are_taken_meanwhile():
    seen = []
    with small_server() as server:
        result = measurement(server, on_progress=seen.append, requests=None, seconds=3.0).measure()
    assert 5 <= len(result.samples) <= 10 * result.samples[-1][0] + 6
    assert [row[0] for row in result.samples] == sorted(row[0] for row in result.samples)
    assert seen and all(0 <= each.done <= 1 for each in seen)


def test_marks():
    with small_server() as server:
        result = measurement(server, FakeMachine(0.06), url=server.url + "missing", extra=("--share", "0.95")).measure()
    assert result.others_share == pytest.approx(0.06, abs=0.001)
    assert result.marks == ["disturbed", "generator_limited", "errors"]


def test_the_cpu_share_of_a_generator_that_does_not_report_it():
    with small_server() as server:
        measuring = measurement(server)
        program = type("", (), {"cpu_us": {"user": 300_000, "system": 620_000}, "command": ["x"]})
        answers = Answers(1, 1.0, 1.0, {}, {})
        described = measuring.describe_generator(program, answers)
        assert described["cpu_share"] == pytest.approx(0.92)
        assert GENERATOR_LIMITED in measuring.find_marks(0.0, described["cpu_share"], answers)


def test_threads_share_the_cpus(monkeypatch):
    """Eight threads on two CPUs use a quarter of their time at most."""
    monkeypatch.setattr(WrLoad, "cpus", 2)
    answers = Answers(1, 1.0, 1.0, {}, {})
    with small_server() as server:
        for threads, share, limited in ((8, 0.24, True), (8, 0.2, False), (2, 0.91, True), (1, 0.5, False)):
            measuring = measurement(server, clients=8, threads=threads)
            assert (GENERATOR_LIMITED in measuring.find_marks(0.0, share, answers)) == limited, threads


def test_other_programs_disturb_and_the_own_ones_do_not():
    """Nothing is said of the machine's own noise here: the burner is an upper and the load a lower bound."""
    with child("print('ready', flush=True)\nwhile True: pass") as burner:
        burner.hear()
        with small_server() as server:
            result = measurement(server, Machine(), requests=None, seconds=1.0).measure()
    assert result.others_share > 0.2
    assert DISTURBED in result.marks


def test_helpers_are_no_others():
    """As much as the burner of the test before, but it works for the server."""
    with child("print('ready', flush=True)\nwhile True: pass") as burner:
        burner.hear()
        with small_server() as server:
            measuring = measurement(server, RecordingMachine(), requests=None, seconds=1.0)
            measuring.target = dataclasses.replace(measuring.target, helpers=(burner.pid,))
            measuring.measure()
    assert burner.pid in measuring.machine.pids
    assert measuring.machine.known_ns > 200 * MS  # the burner is among what is known


# ── failures ──


def ended_with(error, measuring):
    with pytest.raises(RoundError, match=error):
        measuring.measure()
    return measuring


def test_a_server_that_dies():
    with small_server("--die-after", 20) as server:
        ended_with("the server .PID .* ended during the round with 3 clients",
                   measurement(server, requests=10**6))


def test_a_server_that_hangs():
    with small_server("--hang-after", 20) as server:
        ended_with("hangs: in the round with 3 clients it used no CPU time for 0.5 s",
                   measurement(server, limits=Limits(stall_seconds=0.5)))


def test_the_pid_of_another_server():
    """Its process sleeps while another one answers the URL."""
    with small_server() as server, child("import sys; print('ready', flush=True); sys.stdin.readline()") as other:
        other.hear()
        wait_until(lambda: read_stat(other.pid).state == "S")
        asked = measurement(server)
        asked = Measurement(Target(other.pid, "other", server.port), asked.generator, asked.load)
        said = rf"the server \(PID \d+, other\) used no CPU time while [\d,]+ answers came: .* answers {server.url}"
        with pytest.raises(RoundError, match=said):
            asked.measure()


def test_a_round_that_takes_too_long():
    with small_server() as server:
        ended_with("did not end within 0.5 s; wr-load was ended",
                   measurement(server, limits=Limits(round_seconds=0.5), requests=10**9))


def test_a_generator_that_fails():
    with small_server() as server:
        ended_with("wr-load printed no result: no memory.*; its exit status was 1",
                   measurement(server, extra=("--fail", "no memory")))


def test_a_generator_without_answers():
    with small_server() as server, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # does not listen, and no other server gets its port
        ended_with("wr-load got no answer from .* with 3 clients; errors: read 5",
                   measurement(server, url=f"http://127.0.0.1:{silent.getsockname()[1]}/", requests=5))


def test_a_generator_ends_with_its_children_in_each_case(tmp_path):
    pids = tmp_path / "pids"
    with small_server("--hang-after", 5) as server:
        ended_with("hangs", measurement(server, limits=Limits(stall_seconds=5), extra=("--child", str(pids))))
    for pid in pids.read_text().split():
        wait_until(lambda: is_gone(int(pid)))


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_program_dies_with_its_parent(tmp_path):
    text = (f"import sys, os\nsys.path.insert(0, {str(HERE.parents[1] / 'tools' / 'wr')!r})\n"
            f"from watch_resources.spawn import Program\nprogram = Program(['sleep', '300'], {str(tmp_path)!r})\n"
            "print(program.pid, flush=True)\ninput()")
    with child(text) as process:
        pid = int(process.hear())
        wait_until(lambda: pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        assert os.getsid(pid) == pid
        process.process.kill()
        wait_until(lambda: is_gone(pid))


def test_a_program_that_is_missing(tmp_path):
    with pytest.raises(WrError, match="there is no program no-such-program"):
        Program(["no-such-program"], str(tmp_path))


def test_the_cpu_time_of_a_program(tmp_path):
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    with Program(["/usr/bin/python3", "-c", burn], str(tmp_path)) as program:
        assert program.wait(60)
    assert program.status == 0
    assert 0.3e6 <= sum(program.cpu_us.values()) < 0.6e6


def test_wrong_pids():
    with pytest.raises(WrError, match="there is no process with PID 4194305"):
        make_target(4194305, "http://localhost/")
    with small_server() as server:
        target = make_target(server.pid, server.url)
    with pytest.raises(RoundError, match="has ended"):
        Measurement(target, WrLoad(FAKE_LOAD), Load(server.url)).measure()


def test_a_stall_needs_time_without_cpu():
    now = [0.0]
    watch = StallWatch(1, clock=lambda: now[0])
    looks = [(0.125 * n, 5) for n in range(1, 10)] + [(0.125 * n, 6) for n in range(10, 19)]
    stalled_at = []
    for now[0], cpu in looks:
        if watch.is_stalled(cpu):
            stalled_at.append(now[0])
    assert stalled_at == [1.125, 2.25]
    never = StallWatch(0, clock=lambda: now[0])
    for now[0] in range(100):
        assert not never.is_stalled(5)


def test_a_pause_of_the_machine_is_no_stall():
    now = [0.0]
    watch = StallWatch(1, clock=lambda: now[0])
    for now[0] in (0.1, 0.2, 30, 60, 90):
        assert not watch.is_stalled(5)
    for now[0] in (120, 150):
        stalled = watch.is_stalled(5)
    assert stalled


# ── repetitions ──


def scripted(*marks):
    rounds = [make_round(marks=each) for each in marks]
    return lambda: rounds.pop(0)


@pytest.mark.parametrize("marks, repeats, done, expected", [
    ([[]], 2, 0, [[]]),
    ([[DISTURBED], []], 2, 0, [[DISTURBED], [REPEATED]]),
    ([[DISTURBED]] * 3, 2, 0, [[DISTURBED], [DISTURBED, REPEATED], [DISTURBED, REPEATED]]),
    ([[DISTURBED]], 0, 0, [[DISTURBED]]),
    ([[]], 2, 1, [[REPEATED]]),
    ([], 2, 3, []),
])
def test_disturbed_rounds_are_repeated(marks, repeats, done, expected):
    assert [each.marks for each in repeat_disturbed(scripted(*marks), repeats, done)] == expected


class Recorder:
    """A Reporter."""

    def __init__(self):
        self.begun, self.rows = [], []

    def begin(self, clients, number, count):
        self.begun.append((clients, number, count))

    def progress(self, progress):
        pass

    def row(self, result):
        self.rows.append((result.n, result.clients, result.marks))


def make_series(path, measure, clients=(10, 20), resume=False, repeats=1):
    writer = ResultsWriter(str(path), resume)
    target = Target(os.getpid(), "server", 80)
    settings = Settings("http://localhost/", tuple(clients), requests=5, generator="wr-load")
    series = Series(settings, target, WrLoad(FAKE_LOAD), writer, Recorder(), measure, repeats=repeats)
    series.open_session(["wr"], {})
    return series


def measure_with(marks, fail_at=None):
    """A measure function: the marks of each round in turn."""
    marks = list(marks)

    def measure(target, generator, load, limits, reporter):
        if not marks:
            raise RoundError("the server hangs")
        return make_round(clients=load.clients, marks=marks.pop(0))

    return measure


def test_a_series_keeps_and_repeats(tmp_path):
    series = make_series(tmp_path / "r", measure_with([[DISTURBED], [], []]))
    series.run()
    assert series.reporter.begun == [(10, 1, 2), (20, 2, 2)]
    assert series.reporter.rows == [(1, 10, [DISTURBED]), (2, 10, [REPEATED]), (3, 20, [])]
    assert {each.session for each in series.rounds} == {series.session}


@pytest.mark.parametrize("first, second, expected", [
    ([[]], [[]], [(1, 10, []), (2, 20, [])]),
    ([[DISTURBED]], [[], []], [(1, 10, [DISTURBED]), (2, 10, [REPEATED]), (3, 20, [])]),
    ([[DISTURBED]] * 2, [[]], [(1, 10, [DISTURBED]), (2, 10, [DISTURBED, REPEATED]), (3, 20, [])]),
    ([], [[], []], [(1, 10, []), (2, 20, [])]),
])
def test_a_resumed_series_continues_behind_the_last_complete_round(tmp_path, first, second, expected):
    path = tmp_path / "r"
    series = make_series(path, measure_with(first))
    with pytest.raises(RoundError):
        series.run()
    series.writer.close()
    resumed = make_series(path, measure_with(second), resume=True)
    resumed.run()
    resumed.writer.close()
    with ResultsWriter(str(path), resume=True) as writer:
        assert [(each.n, each.clients, each.marks) for each in writer.results.rounds] == expected
        sessions = [each for each in writer.results.records if type(each).__name__ == "Session"]
        assert [each.resumes for each in sessions] == [None, sessions[0].id]
        assert settings_of(writer.results) == series.settings
        assert attempts_of(writer.results, 20) == (1, True)


def test_settings_must_be_the_same():
    recorded = Settings("http://localhost/", (1, 2), requests=5)
    assert merge_settings({"url": None, "requests": 5}, recorded) is recorded
    with pytest.raises(WrError, match="r.jsonl was measured with requests = 5, not 6"):
        merge_settings({"requests": 6}, recorded, "r.jsonl")
    with pytest.raises(WrError, match=r"clients = \(1, 2\), not \(1,\)"):
        merge_settings({"clients": (1,)}, recorded, "r.jsonl")


# ── input ──


@pytest.mark.parametrize("text, counts", [
    ("64", (64,)), ("1,2,4", (1, 2, 4)), ("100:1000:300", (100, 400, 700, 1000)), ("1:3", (1, 2, 3)),
    ("10:15:3", (10, 13)), ("1,10:20:10,10", (1, 10, 20)),
])
def test_numbers_of_clients(text, counts):
    assert parse_clients(text) == counts


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "5:1", "1:5:0", "1:2:3:4", "1:1000000:1", "9999999", "1,,2"])
def test_wrong_numbers_of_clients(text):
    with pytest.raises(WrError, match="-c "):
        parse_clients(text)


@needs_localhost
def test_a_url_with_a_name():
    check_url("http://localhost/x")


def test_urls():
    for url in ("http://127.0.0.1:80/", "http://127.0.0.1/x", "https://127.5.5.5/"):
        check_url(url)
    for url in ("localhost:80", "ftp://localhost/", "http:///x", "http://localhost:99999/", "/x"):
        with pytest.raises(WrError, match="is no URL of a server"):
            check_url(url)
    with pytest.raises(WrError, match="is not on this machine .192.0.2.1.: .*--remote-ok"):
        check_url("http://192.0.2.1/")
    check_url("http://192.0.2.1/", remote_ok=True)
    with pytest.raises(WrError, match="the host no-such.invalid is not known"):
        check_url("http://no-such.invalid/")
    assert (port_of("http://h/"), port_of("https://h/"), port_of("http://h:81/")) == (80, 443, 81)


def test_local_addresses():
    assert is_local_address("127.0.0.1") and is_local_address("::1")
    assert not is_local_address("192.0.2.1") and not is_local_address("2001:db8::1")


def test_a_process_that_does_not_listen_is_reported():
    with small_server() as server, small_server() as other:
        target = make_target(server.pid, server.url)
        assert warn_listener(target, {server.pid}) is None
        wrong = warn_listener(make_target(server.pid, other.url), {server.pid})
    assert f"(PID {server.pid}, " in wrong and f"does not listen on port {other.port}; PID {other.pid} (" in wrong


# ── the sampler ──


def sample(at_ms, pss=None, cpu=0):
    return Sample(at_ms * MS, Counters(cpu), None if pss is None else Memory(pss, pss // 2), 1, 1, 5)


def test_memory_is_weighed_by_time():
    samples = [sample(0, 100), sample(100, 200), sample(400, 900)]
    assert summarize_memory(samples) == {"pss_mean": 175, "pss_max": 900, "dirty_mean": 88, "dirty_max": 450}
    assert summarize_memory([sample(0), sample(1)]) == {}
    assert mean_over_time([sample(5, 3)], lambda each: each.memory.pss_kb) == 3


def test_rows_begin_at_zero():
    assert rows([sample(50, 10, 7), sample(150, None, 9)]) == [[0.0, 0, 10, 5, 1, 5], [0.1, 2, None, None, 1, 5]]


class FakeTree:
    def __init__(self):
        self.reads = []

    def read(self, complete=False):
        self.reads.append((complete, threading.current_thread().name))
        return sample(len(self.reads), 1)


def test_a_fault_of_the_sampler_is_reported():
    tree = FakeTree()
    sampler = Sampler(tree, interval=0.01)
    sampler.start()
    sampler.check()
    tree.reads = None
    sampler.thread.join(10)
    with pytest.raises(AttributeError):
        sampler.check()


def test_a_costly_tree_is_read_less_often():
    class CostlyTree(FakeTree):
        def read(self, complete=False):
            end = time.thread_time() + 0.02
            while time.thread_time() < end:
                pass
            return super().read(complete)

    sampler = Sampler(CostlyTree(), interval=0.01)
    began = time.monotonic()
    sampler.start()
    time.sleep(1)
    sampler.stop()
    assert len(sampler.marks) <= 3 + (time.monotonic() - began) / 0.38  # one in 0.4 s, and both ends


def test_complete_samples_stand_at_both_ends():
    tree = FakeTree()
    sampler = Sampler(tree, interval=0.01)
    sampler.start()
    wait_until(lambda: len(tree.reads) > 4)
    sampler.stop()
    sampler.stop()
    assert [complete for complete, _ in tree.reads] == [True, *[False] * (len(tree.reads) - 2), True]
    assert tree.reads[1][1] == "sampler" != tree.reads[-1][1]


# ── the machine ──


def machine_sample(at_ms=0, task=0, irq=0, steal=0, processes=None):
    pressure = {"cpu": at_ms * 100, "memory": 0, "io": 0}
    return MachineSample(at_ms * MS, task * MS, irq * MS, steal * MS, pressure, 0, processes or {})


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_text("cpu  100 1 10 999 5 2 3 4 50 0\ncpu0 1\ncpu1 1\n")
    made = Machine(str(tmp_path))
    made.hz, made.counts_irq_apart = 250, False
    return made


def others_ms(machine, last, ours_ms=0, ours=()):
    first = machine_sample(processes={(1, 0): 500 * MS, (9, 0): 100 * MS})
    return machine.others_ns(first, last, ours_ms * MS, ours) / MS


def test_others_are_the_processes_that_are_not_ours(machine):
    last = machine_sample(1000, processes={(1, 0): 510 * MS, (9, 0): 900 * MS, (12, 5): 30 * MS})
    assert others_ms(machine, last, ours={9}) == 40
    assert others_ms(machine, last) == 840


def test_a_process_that_was_waited_for_counts_once(machine):
    assert others_ms(machine, machine_sample(1000, processes={(1, 0): 605 * MS})) == 5
    assert others_ms(machine, machine_sample(1000, processes={(1, 0): 500 * MS})) == 0


def test_others_that_are_not_seen_need_more_than_the_error_of_sampling(machine):
    error = machine.sampling_error_ns(1000 * MS) / MS
    assert 100 < error < 250
    same = {(1, 0): 500 * MS, (9, 0): 100 * MS}
    assert others_ms(machine, machine_sample(1000, task=900, irq=100, processes=same), ours_ms=950) == 0
    assert others_ms(machine, machine_sample(1000, task=1500, irq=100, processes=same), ours_ms=500) == pytest.approx(
        1100 - error)
    machine.counts_irq_apart = True
    assert others_ms(machine, machine_sample(1000, task=1500, irq=100, processes=same), ours_ms=500) == pytest.approx(
        1000 - error)


def test_what_the_hypervisor_took_is_added(machine):
    same = {(1, 0): 500 * MS, (9, 0): 100 * MS}
    assert others_ms(machine, machine_sample(1000, steal=70, processes=same)) == 70


def test_the_columns_of_stat(machine):
    tick = 10 * MS
    assert parse_busy("cpu  100 1 10 999 5 2 3 4 50 0\n") == (111 * tick, 5 * tick, 4 * tick)
    assert parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=131071096\nfull total=1\n") == 131071096
    assert parse_pressure("") == 0
    assert machine.cpus == 2
    assert pressure_between(machine_sample(0), machine_sample(1000))["cpu"] == 0.1


def test_ksoftirqd_is_none_of_the_others(tmp_path):
    for pid, name, parent in ((10, "ksoftirqd/0", 2), (11, "kworker/0:1", 2), (12, "ksoftirqd/0", 1)):
        (tmp_path / "proc" / str(pid)).mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "stat").write_text(
            f"{pid} ({name}) S {parent} " + "0 " * 9 + "3 4 0 0 20 0 1 0 77 " + "0 " * 20)
    (tmp_path / "proc" / "12" / "schedstat").write_text("77000000 0 1\n")
    assert Machine(str(tmp_path)).read_processes() == {(11, 77): 70 * MS, (12, 77): 77 * MS}


@pytest.mark.parametrize("flags, files, expected", [
    ("fpu", {}, None),
    ("fpu hypervisor", {}, "a hypervisor"),
    ("fpu hypervisor", {"sys/class/dmi/id/sys_vendor": "QEMU\n"}, "QEMU"),
    ("fpu hypervisor", {".dockerenv": ""}, "docker on a hypervisor"),
    ("fpu", {"run/systemd/container": "lxc\n"}, "lxc"),
])
def test_virtualisation(tmp_path, flags, files, expected):
    for name, text in {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\n", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert find_virtualisation(tmp_path) == expected


def test_this_machine_is_described():
    described = describe_machine()
    assert described["cores"] >= 1 and described["memory_kb"] > 10000 and described["kernel"]
    assert described["sysctls"]["net.core.somaxconn"].isdigit()
    assert described["congestion_control"] == described["sysctls"]["net.ipv4.tcp_congestion_control"]
    reading = Machine().read()
    assert reading.task_ns > 0 and reading.page_cache_kb > 0 and (os.getpid() in {pid for pid, _ in reading.process_ns})
