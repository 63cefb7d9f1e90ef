# SPDX-License-Identifier: Apache-2.0
"""Snapshots against processes of known consumption, and against folders that are used instead of /proc."""

import os
import pathlib
import socket
import time

import pytest

from processes import child, wait_until
from watch_resources.proc import (
    TICK_NS, Allowance, Counters, ProcessTree, TcpReader, cpu_between, find_listening, listening_port, parse_rollup,
    parse_stat,
)

MB = 1024 * 1024
TOLERANCE_NS = 30_000_000  # what starts and ends besides the known work

BURN = """
import resource, sys, time
def burn(seconds):
    def used():
        now = resource.getrusage(resource.RUSAGE_SELF)
        return now.ru_utime + now.ru_stime
    begin = used()
    while used() - begin < seconds:
        sum(range(5000))
    return used() - begin
"""


def sample_around(process, line="go"):
    """Returns the complete samples before and after one step of a child, and what it said."""
    tree = ProcessTree(process.pid)
    first = tree.read(True)
    said = process.ask(line)
    return first, tree.read(True), said


# ── known consumption ──


def test_cpu_time_is_what_getrusage_says():
    with child(BURN + "print('ready', flush=True)\ninput()\nprint(burn(0.3), flush=True)\ninput()") as process:
        process.hear()
        first, last, said = sample_around(process)
        used = cpu_between(first, last)
        assert abs(used.total_ns - float(said) * 1e9) < TOLERANCE_NS
        assert used.user_ns + used.system_ns == used.total_ns


def test_user_and_system_time_are_split():
    """As getrusage splits it: among other processes the kernel's own split is a coarse one."""
    text = BURN + """
import os
def measure(work):
    begin = resource.getrusage(resource.RUSAGE_SELF)
    work()
    end = resource.getrusage(resource.RUSAGE_SELF)
    print(end.ru_utime - begin.ru_utime, end.ru_stime - begin.ru_stime, flush=True)
def read():
    file = os.open('/dev/zero', os.O_RDONLY)
    end = time.process_time() + 0.3
    while time.process_time() < end:
        os.read(file, 1 << 20)
print('ready', flush=True)
for work in (lambda: burn(0.3), read):
    input()
    measure(work)
input()"""
    with child(text) as process:
        process.hear()
        for _ in range(2):
            first, last, said = sample_around(process)
            used = cpu_between(first, last)
            user, system = (float(seconds) * 1e9 for seconds in said.split())
            assert abs(used.user_ns - user) < TOLERANCE_NS and abs(used.system_ns - system) < TOLERANCE_NS
            assert user + system > 250e6


def test_threads_that_end_between_samples_keep_their_time():
    text = BURN + """
import threading
def work():
    burned = time.thread_time() + 0.1
    while time.thread_time() < burned:
        sum(range(5000))
print('ready', flush=True)
input()
threads = [threading.Thread(target=work) for _ in range(3)]
for each in threads: each.start()
for each in threads: each.join()
print('done', flush=True)
input()"""
    with child(text) as process:
        process.hear()
        first, last, _ = sample_around(process)
    used = cpu_between(first, last).total_ns
    assert 0.3e9 - 2 * TICK_NS <= used < 0.3e9 + 3 * TOLERANCE_NS


def test_a_child_that_lives_between_two_samples_counts():
    text = BURN + """
import os
print('ready', flush=True)
input()
if os.fork() == 0:
    burn(0.2)
    os._exit(0)
os.wait()
print('done', flush=True)
input()"""
    with child(text) as process:
        process.hear()
        first, last, _ = sample_around(process)
    used = cpu_between(first, last).total_ns
    assert 0.2e9 - 2 * TICK_NS <= used < 0.2e9 + 2 * TOLERANCE_NS
    assert last.processes == 1


@pytest.mark.parametrize("reaps", [True, False])
def test_a_child_that_was_seen_counts_once_when_it_has_ended(reaps):
    text = BURN + f"""
import os, signal
if not {reaps}: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
reader, writer = os.pipe()
pid = os.fork()
if pid == 0:
    burn(0.2)
    os.write(writer, b'x')
    time.sleep(60)
os.read(reader, 1)
print('burned', flush=True)
input()
os.kill(pid, 9)
try: os.wait()
except ChildProcessError: pass
print('ended', flush=True)
input()"""
    with child(text) as process:
        tree = ProcessTree(process.pid)
        tree.read(True)
        process.hear()
        while_it_lives = tree.read(True)
        process.ask()
        after = tree.read(True)
    assert while_it_lives.processes == 2 and after.processes == 1
    assert while_it_lives.counters.cpu_ns >= 0.2e9 - 2 * TICK_NS
    assert abs(after.counters.cpu_ns - while_it_lives.counters.cpu_ns) < TOLERANCE_NS


def test_a_daemon_whose_parent_ended_stays_in_the_tree():
    text = """
import os, time
print('ready', flush=True)
input()
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(60)
    input()
    os._exit(0)
print('forked', flush=True)
os.wait()
print('gone', flush=True)
time.sleep(60)"""
    with child(text) as process:
        process.hear()
        tree = ProcessTree(process.pid)
        tree.read(True)
        process.ask()
        wait_until(lambda: tree.read(True).processes == 3)
        process.ask()
        last = tree.read(True)
        orphan = next(pid for pid in tree.processes if pid != process.pid)
        assert last.processes == 2
        os.kill(orphan, 9)
        wait_until(lambda: tree.read(True).processes == 1)


def test_dirtied_memory_is_private_dirty_and_pss():
    text = f"""
import mmap
print('ready', flush=True)
input()
memory = mmap.mmap(-1, {20 * MB})
for at in range(0, {20 * MB}, 4096): memory[at] = 1
print('dirty', flush=True)
input()"""
    with child(text) as process:
        process.hear()
        first, last, _ = sample_around(process)
    assert 20 * 1024 <= last.memory.dirty_kb - first.memory.dirty_kb < 21 * 1024 + 512
    assert 19 * 1024 <= last.memory.pss_kb - first.memory.pss_kb < 22 * 1024  # others share the libraries, or cease to
    faults = last.counters.minor_faults - first.counters.minor_faults
    assert faults >= 20 * MB // (2 * MB)  # pages of 4 KB, or of 2 MB


def test_descriptors_and_threads_are_counted():
    text = """
import os, threading
print('ready', flush=True)
input()
files = [os.open('/dev/null', os.O_RDONLY) for _ in range(37)]
stop = threading.Event()
for _ in range(5): threading.Thread(target=stop.wait, daemon=True).start()
print('open', flush=True)
input()"""
    with child(text) as process:
        process.hear()
        first, last, _ = sample_around(process)
    assert last.descriptors - first.descriptors == 37
    assert last.threads - first.threads == 5


def test_sleeping_is_a_voluntary_switch():
    text = """
import time
print('ready', flush=True)
input()
for _ in range(100): time.sleep(0.0005)
print('slept', flush=True)
input()"""
    with child(text) as process:
        process.hear()
        first, last, _ = sample_around(process)
    assert 100 <= last.counters.voluntary - first.counters.voluntary < 130


def test_counters_never_fall_and_the_end_is_seen():
    with child(BURN + "print('ready', flush=True)\nburn(0.05)\nprint('done', flush=True)\ninput()") as process:
        tree = ProcessTree(process.pid)
        process.hear()
        process.hear()
        before = tree.read(True)
        assert tree.is_alive()
        process.process.kill()
        process.process.wait()
        after = tree.read(True)
        assert not tree.is_alive()
    assert after.counters.cpu_ns >= before.counters.cpu_ns
    assert (after.processes, after.threads, after.memory) == (0, 0, None)


def test_a_process_that_is_none():
    tree = ProcessTree(2**22 + 1)
    assert not tree.is_alive()
    assert tree.read(True).processes == 0


# ── TCP ──


@pytest.mark.parametrize("family, host", [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_accept_queue_of_a_port(family, host):
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip(f"no {host} here")
        listener.listen(16)
        port = listener.getsockname()[1]
        reader = TcpReader(os.getpid(), port)
        assert reader.queue() == 0
        waiting = [socket.create_connection((host, port)) for _ in range(3)]
        assert wait_until(lambda: reader.queue() == 3)
        assert find_listening(os.getpid(), port) == [os.getpid()]
        assert TcpReader(os.getpid(), 1).queue() == 0
        assert listening_port([os.getpid()], os.getpid()) <= port
        for each in waiting:
            each.close()


def test_counts_of_the_namespace_only_grow():
    reader = TcpReader(os.getpid(), None)
    before = reader.counts()
    assert all(after >= first >= 0 for first, after in zip(before, reader.counts()))


# ── simulated folders ──


class Tree:
    """A folder that is used instead of /proc."""

    def __init__(self, path: pathlib.Path):
        self.path = path

    def put(self, pid, name="server", parent=1, start=100, state="S", user=0, system=0, child_user=0, child_system=0,
            faults=(0, 0, 0, 0), threads=None, children=None, pss=0):
        threads = {pid: 0} if threads is None else threads
        minor, child_minor, major, child_major = faults
        fields = [state, parent, 1, 1, 0, -1, 0, minor, child_minor, major, child_major, user, system, child_user,
                  child_system, 20, 0, len(threads), 0, start, *[0] * 30]
        folder = self.path / str(pid)
        self.remove(pid)
        for tid, ns in threads.items():
            task = folder / "task" / str(tid)
            task.mkdir(parents=True)
            if ns is not None:
                (task / "schedstat").write_text(f"{ns} 0 1\n")
            (task / "status").write_text("Name: x\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n")
            if children is not None:
                (task / "children").write_text(" ".join(map(str, children)) + " ")
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))}\n")
        if pss:
            (folder / "smaps_rollup").write_text(f"0-1 ---p 0 00:00 0 [rollup]\nPss: {pss} kB\nPrivate_Dirty: 1 kB\n")

    def remove(self, pid):
        folder = self.path / str(pid)
        for each in sorted(folder.rglob("*"), reverse=True):
            each.rmdir() if each.is_dir() else each.unlink()
        if folder.exists():
            folder.rmdir()


@pytest.fixture
def proc(tmp_path):
    return Tree(tmp_path)


def cpu_ns(tree):
    return tree.read(True).counters.cpu_ns


def test_a_name_may_hold_anything():
    stat = parse_stat("7 (a) S (b) R 1) S 3 " + " ".join(["0"] * 15) + " 4 0 99 " + " ".join(["0"] * 30))
    assert (stat.name, stat.state, stat.parent, stat.threads, stat.start) == ("a) S (b) R 1", "S", 3, 4, 99)


def test_without_schedstat_ticks_count(proc):
    proc.put(5, threads={5: None}, user=10, system=5)
    tree = ProcessTree(5, root=str(proc.path))
    first = tree.read(True)
    proc.put(5, threads={5: None}, user=40, system=15)
    used = cpu_between(first, tree.read(True))
    assert (used.user_ns, used.system_ns) == (30 * TICK_NS, 10 * TICK_NS)


def test_ns_are_split_as_ticks_are(proc):
    proc.put(5, threads={5: 0})
    tree = ProcessTree(5, root=str(proc.path))
    first = tree.read(True)
    proc.put(5, threads={5: 44_000_000}, user=3, system=1)
    used = cpu_between(first, tree.read(True))
    assert (used.user_ns, used.system_ns) == (33_000_000, 11_000_000)


def test_the_last_value_of_an_ended_thread_stays(proc):
    proc.put(5, threads={5: 100, 6: 900})
    tree = ProcessTree(5, root=str(proc.path))
    assert cpu_ns(tree) == 1000
    proc.put(5, threads={5: 150})
    assert cpu_ns(tree) == 1050
    proc.put(5, threads={5: 150, 6: 30})  # another thread with the same number
    assert cpu_ns(tree) == 1080


def test_a_pid_that_was_given_again_is_another_process(proc):
    proc.put(5, children=[6])
    proc.put(6, parent=5, start=200, threads={6: 500})
    tree = ProcessTree(5, root=str(proc.path))
    assert cpu_ns(tree) == 500
    proc.put(6, parent=5, start=300, threads={6: 70})
    assert cpu_ns(tree) == 570
    proc.put(5, start=400)
    assert not tree.is_alive()


@pytest.mark.parametrize("has_file", [True, False])
def test_children_of_children_are_found(proc, has_file):
    proc.put(5, children=[6] if has_file else None, threads={5: 1})
    proc.put(6, parent=5, children=[7] if has_file else None, threads={6: 10})
    proc.put(7, parent=6, children=[] if has_file else None, threads={7: 100}, pss=50)
    proc.put(8, parent=1, threads={8: 1000})
    sample = ProcessTree(5, root=str(proc.path)).read(True)
    assert (sample.counters.cpu_ns, sample.processes, sample.memory.pss_kb) == (111, 3, 50)


def test_children_that_ended_before_the_first_sample_do_not_count(proc):
    proc.put(5, children=[6], child_user=500)
    proc.put(6, parent=5, threads={6: 3 * TICK_NS})
    tree = ProcessTree(5, root=str(proc.path))
    first = cpu_ns(tree)
    proc.remove(6)  # and no other process waited for it
    proc.put(5, children=[], child_user=500)
    assert cpu_ns(tree) - first == 0
    proc.put(5, children=[], child_user=504)  # it was waited for, with a tick more
    assert cpu_ns(tree) - first == TICK_NS


def test_faults_of_children_count(proc):
    proc.put(5, faults=(10, 1, 2, 0))
    tree = ProcessTree(5, root=str(proc.path))
    first = tree.read(True).counters
    proc.put(5, faults=(15, 21, 3, 4))
    used = tree.read(True).counters.minus(first)
    assert (used.minor_faults, used.major_faults) == (25, 5)


def test_a_zombie_has_ended(proc):
    proc.put(5, state="Z")
    assert not ProcessTree(5, root=str(proc.path)).is_alive()


def test_the_rollup_of_pages():
    memory = parse_rollup("0-1 ---p 0 00:00 0 [rollup]\nPss: 10 kB\nPss_Dirty: 9 kB\nPrivate_Dirty: 4 kB\n"
                          "Private_Hugetlb: 2048 kB\n")
    assert (memory.pss_kb, memory.dirty_kb) == (10, 2052)


def test_listeners_stand_first_and_no_more_is_read(tmp_path):
    folder = tmp_path / "5" / "net"
    folder.mkdir(parents=True)
    rest = "00:00000000 00000000     0        0"
    (folder / "tcp").write_text(
        "  sl  local_address rem_address st tx_queue rx_queue\n"
        f"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000005 {rest} 621 1\n"
        f"   1: 0100007F:0050 00000000:0000 0A 00000000:00000007 {rest} 622 1\n"
        f"   2: 0100007F:1F90 0100007F:D438 01 00000000:00000009 {rest} 623 1\n")
    (folder / "netstat").write_text("TcpExt: A ListenDrops B\nTcpExt: 1 22 3\nIpExt: A\nIpExt: 9\n")
    (folder / "snmp").write_text("Ip: A\nIp: 1\nTcp: RetransSegs InErrs\nTcp: 44 0\n")
    reader = TcpReader(5, 8080, root=str(tmp_path))
    assert reader.queue() == 5
    assert reader.counts() == (22, 44)


def test_costly_readings_take_a_share_of_the_time():
    now = [0]

    def cost_ten():
        now[0] += 10

    allowance = Allowance(share=0.01, clock=lambda: now[0])
    assert allowance.is_due()
    allowance.run(cost_ten)
    now[0] += 999
    assert not allowance.is_due()
    now[0] += 1
    assert allowance.is_due()


def test_a_sample_costs_little():
    with child("print('ready', flush=True)\ninput()") as process:
        process.hear()
        tree = ProcessTree(process.pid)
        tree.read(True)
        begin = time.thread_time_ns()
        for _ in range(100):
            tree.read()
        assert (time.thread_time_ns() - begin) / 100 < 3_000_000  # 30 us is usual


def test_counters_add_up():
    one, two = Counters(1, 2, 3, 4, 5, 6, 7), Counters(7, 6, 5, 4, 3, 2, 1)
    assert one.plus(two).minus(one) == two
    assert one.at_least(two) == Counters(7, 6, 5, 4, 5, 6, 7)
