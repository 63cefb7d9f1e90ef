# SPDX-License-Identifier: Apache-2.0
"""Reads from /proc what a server uses: all threads of all its processes, and its TCP queues.

CPU time comes from schedstat, in ns, thread by thread. A thread that ends takes its counter with it, so its last value
is kept; what it used since then is in the ticks of its process's stat. A process that ends is in the ticks that its
parent has for waited-for children, also if it was never seen. Whichever of the two is more is the better value."""

import dataclasses
import glob
import operator
import os
import time
from typing import Callable, Iterable, NamedTuple, Optional

PROC = "/proc"
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
COSTLY_SHARE = 0.01  # of the time goes at most into each of the costly readings
LISTEN, ESTABLISHED = "0A", "01"  # states in /proc/net/tcp
ENDED_STATES = "ZXx"


def read_text(path: str) -> Optional[str]:
    """Returns the content, or None when the process has ended or may not be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts).decode(errors="replace")
    except OSError:
        return None
    finally:
        os.close(fd)


def list_numbers(path: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(path) if name.isdigit()]
    except OSError:
        return []


class Counters(NamedTuple):
    """What only grows."""

    cpu_ns: int = 0
    user_ticks: int = 0
    system_ticks: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    voluntary: int = 0
    involuntary: int = 0

    def plus(self, other: "Counters") -> "Counters":
        return Counters(*map(operator.add, self, other))

    def minus(self, other: "Counters") -> "Counters":
        return Counters(*map(operator.sub, self, other))

    def at_least(self, other: "Counters") -> "Counters":
        return Counters(*map(max, self, other))


ZERO = Counters()


class Stat(NamedTuple):
    """/proc/PID/stat: `own` has the threads that ended too, `children` the processes that were waited for."""

    name: str
    state: str
    parent: int
    threads: int
    start: int
    own: Counters
    children: Counters


def parse_stat(text: str) -> Stat:
    opening, closing = text.index("("), text.rindex(")")
    fields = text[closing + 2:].split()
    minor, child_minor, major, child_major = (int(field) for field in fields[7:11])
    user, system, child_user, child_system = (int(field) for field in fields[11:15])
    return Stat(
        name=text[opening + 1:closing],
        state=fields[0],
        parent=int(fields[1]),
        threads=int(fields[17]),
        start=int(fields[19]),
        own=Counters((user + system) * TICK_NS, user, system, minor, major),
        children=Counters((child_user + child_system) * TICK_NS, child_user, child_system, child_minor, child_major),
    )


def read_stat(pid: int, root: str = PROC) -> Optional[Stat]:
    text = read_text(f"{root}/{pid}/stat")
    return parse_stat(text) if text else None


@dataclasses.dataclass(frozen=True)
class Memory:
    pss_kb: int = 0
    dirty_kb: int = 0


def parse_rollup(text: str) -> Memory:
    """Adds up the lines of smaps_rollup that count."""
    values = {}
    for line in text.splitlines()[1:]:
        name, _, rest = line.partition(":")
        values[name] = int(rest.split()[0])
    return Memory(values.get("Pss", 0), values.get("Private_Dirty", 0) + values.get("Private_Hugetlb", 0))


@dataclasses.dataclass(frozen=True)
class Sample:
    """What the process tree used up to one moment. Memory and descriptors are None where they may not be read."""

    at_ns: int
    counters: Counters
    memory: Optional[Memory]
    threads: int
    processes: int
    descriptors: Optional[int]


@dataclasses.dataclass(frozen=True)
class Cpu:
    user_ns: int
    system_ns: int

    @property
    def total_ns(self) -> int:
        return self.user_ns + self.system_ns


def cpu_between(first: Sample, last: Sample) -> Cpu:
    """Splits the ns of schedstat as the ticks of stat are split."""
    used = last.counters.minus(first.counters)
    ticks = used.user_ticks + used.system_ticks
    share = used.user_ticks / ticks if ticks else 0.5
    user = round(used.cpu_ns * share)
    return Cpu(user, used.cpu_ns - user)


class Allowance:
    """Permits a costly reading as often as it takes no more than a share of the time."""

    def __init__(self, share: float = COSTLY_SHARE, clock: Callable[[], int] = time.monotonic_ns):
        self.share, self.clock = share, clock
        self.next_ns = 0

    def is_due(self) -> bool:
        return self.clock() >= self.next_ns

    def run(self, action: Callable):
        begin = self.clock()
        result = action()
        end = self.clock()
        self.next_ns = end + round((end - begin) / self.share)
        return result


class Process:
    """One process of the tree, with the last known values of its threads."""

    def __init__(self, pid: int, stat: Stat, is_new: bool, root: str):
        self.pid, self.stat, self.root, self.path = pid, stat, root, f"{root}/{pid}"
        self.known_children = ZERO if is_new else stat.children  # those that ended before the first sample
        self.ended_children = ZERO
        self.ended_threads = ZERO
        self.thread_ns: dict[int, int] = {}
        self.thread_switches: dict[int, tuple[int, int]] = {}
        self.memory: Optional[Memory] = None
        self.descriptors: Optional[int] = None

    def total(self) -> Counters:
        threads = self.ended_threads.plus(Counters(
            cpu_ns=sum(self.thread_ns.values()),
            voluntary=sum(value[0] for value in self.thread_switches.values()),
            involuntary=sum(value[1] for value in self.thread_switches.values()),
        ))
        children = self.stat.children.minus(self.known_children).at_least(self.ended_children)
        return self.stat.own.at_least(threads).plus(children)

    def list_threads(self) -> list[int]:
        if self.stat.threads == 1 and self.stat.state not in ENDED_STATES:
            return [self.pid]
        return list_numbers(f"{self.path}/task") or [self.pid]

    def read_threads(self) -> list[int]:
        """Reads the ns of each thread; those that have ended keep their last value."""
        current, tids = {}, self.list_threads()
        for tid in tids:
            text = read_text(f"{self.path}/task/{tid}/schedstat")
            if text:
                current[tid] = int(text.split()[0])
        for tid, ns in self.thread_ns.items():
            if current.get(tid, -1) < ns:  # it ended; perhaps another one has its number now
                self.forget_thread(tid, ns)
        self.thread_ns = current
        return tids

    def forget_thread(self, tid: int, ns: int) -> None:
        voluntary, involuntary = self.thread_switches.pop(tid, (0, 0))
        ended = Counters(cpu_ns=ns, voluntary=voluntary, involuntary=involuntary)
        self.ended_threads = self.ended_threads.plus(ended)

    def read_switches(self, tids: list[int]) -> None:
        for tid in tids:
            text = read_text(f"{self.path}/task/{tid}/status") or ""
            voluntary = text.partition("\nvoluntary_ctxt_switches:")[2].split(maxsplit=1)
            involuntary = text.partition("\nnonvoluntary_ctxt_switches:")[2].split(maxsplit=1)
            if voluntary and involuntary:
                self.thread_switches[tid] = int(voluntary[0]), int(involuntary[0])

    def read_memory(self) -> None:
        text = read_text(f"{self.path}/smaps_rollup")
        if text:
            self.memory = parse_rollup(text)

    def count_descriptors(self) -> None:
        """The size of the folder is their number since Linux 6.2."""
        path = f"{self.path}/fd"
        try:
            size = os.stat(path).st_size if self.root == PROC else 0
            self.descriptors = size or len(os.listdir(path))
        except OSError:
            self.descriptors = None

    def list_children(self, tids: list[int]) -> Optional[list[int]]:
        """Returns None when the kernel has no such file."""
        texts = [read_text(f"{self.path}/task/{tid}/children") for tid in tids]
        if not any(text is not None for text in texts):
            return None
        return [int(word) for text in texts if text for word in text.split()]


def list_family(pid: int) -> list[int]:
    """The process, and those that descend from it at this moment."""
    found = [pid]
    for each in found:
        for path in glob.glob(f"{PROC}/{each}/task/*/children"):
            found += map(int, (read_text(path) or "").split())
    return found


class ProcessTree:
    """A process and all that descend from it; read() is for one thread at a time."""

    def __init__(self, pid: int, root: str = PROC, clock: Callable[[], int] = time.monotonic_ns):
        self.pid, self.root, self.clock = pid, root, clock
        self.costly = {name: Allowance(clock=clock) for name in ("memory", "switches", "descriptors", "children")}
        self.pids_seen = {pid}
        self.processes: dict[int, Process] = {}
        self.ended = ZERO  # processes without a parent in the tree
        self.floor = ZERO
        self.is_first = True
        stat = read_stat(pid, root)
        if stat and stat.state not in ENDED_STATES:
            self.processes[pid] = Process(pid, stat, False, root)
            self.start, self.name = stat.start, stat.name
        else:
            self.start, self.name = -1, ""

    def is_alive(self) -> bool:
        stat = read_stat(self.pid, self.root)
        return stat is not None and stat.start == self.start and stat.state not in ENDED_STATES

    def read(self, complete: bool = False) -> Sample:
        """Takes a sample; the costly parts only when they are due, or all when it must be complete."""
        at_ns = self.clock()
        due = {name for name, allowance in self.costly.items() if complete or allowance.is_due()}
        tids = self.read_cpu()
        if "children" in due:
            self.costly["children"].run(lambda: self.find_children(tids, not self.is_first))
            self.is_first = False
        if "switches" in due:
            self.costly["switches"].run(lambda: self.each(lambda each: each.read_switches(tids[each.pid])))
        if "memory" in due:
            self.costly["memory"].run(lambda: self.each(Process.read_memory))
        if "descriptors" in due:
            self.costly["descriptors"].run(lambda: self.each(Process.count_descriptors))
        return self.make_sample(at_ns)

    def each(self, action: Callable[[Process], None]) -> None:
        for process in self.processes.values():
            action(process)

    def read_cpu(self) -> dict[int, list[int]]:
        """Children first: what one uses before it ends is then in the later reading of its parent."""
        tids = {}
        for process in reversed(list(self.processes.values())):
            stat = read_stat(process.pid, self.root)
            if stat is None or stat.start != process.stat.start:
                self.end_process(process)
                continue
            process.stat = stat
            tids[process.pid] = process.read_threads()
        return tids

    def end_process(self, process: Process) -> None:
        """Its counters go to its parent, which has waited for it; without one in the tree, to the tree."""
        del self.processes[process.pid]
        parent = self.processes.get(process.stat.parent)
        if parent:
            parent.ended_children = parent.ended_children.plus(process.total())
        else:
            self.ended = self.ended.plus(process.total())

    def find_children(self, tids: dict[int, list[int]], is_new: bool) -> None:
        queue = list(self.processes.values())
        for process in queue:
            for pid in self.list_children(process, tids[process.pid]):
                child = self.add_process(pid, is_new)
                if child:
                    tids[pid] = child.read_threads()
                    queue.append(child)

    def list_children(self, process: Process, tids: list[int]) -> list[int]:
        children = process.list_children(tids)
        if children is not None:
            return children
        stats = ((pid, read_stat(pid, self.root)) for pid in list_numbers(self.root))
        return [pid for pid, stat in stats if stat and stat.parent == process.pid]

    def add_process(self, pid: int, is_new: bool) -> Optional[Process]:
        stat = None if pid in self.processes else read_stat(pid, self.root)
        if stat is None:
            return None
        self.pids_seen.add(pid)
        self.processes[pid] = Process(pid, stat, is_new, self.root)
        return self.processes[pid]

    def make_sample(self, at_ns: int) -> Sample:
        alive = list(self.processes.values())
        total = self.ended
        for process in alive:
            total = total.plus(process.total())
        self.floor = total.at_least(self.floor)
        memory = [process.memory for process in alive if process.memory]
        descriptors = [process.descriptors for process in alive if process.descriptors is not None]
        return Sample(
            at_ns=at_ns,
            counters=self.floor,
            memory=Memory(sum(m.pss_kb for m in memory), sum(m.dirty_kb for m in memory)) if memory else None,
            threads=sum(process.stat.threads for process in alive),
            processes=len(alive),
            descriptors=sum(descriptors) if descriptors else None,
        )


def read_io(pids: Iterable[int], root: str = PROC) -> dict[str, int]:
    """Adds up what processes have read from disks and written to them, in bytes, with their ended children. Returns
    nothing where it may not be read."""
    total: dict[str, int] = {}
    for pid in pids:
        lines = (read_text(f"{root}/{pid}/io") or "").splitlines()
        values = dict(line.split(": ") for line in lines)
        for name in ("read_bytes", "write_bytes"):
            if name in values:
                total[name] = total.get(name, 0) + int(values[name])
    return total


class TcpCounts(NamedTuple):
    drops: int = 0
    retransmits: int = 0


class Listener(NamedTuple):
    """A listening socket, with the number of connections in its accept queue."""

    port: int
    queue: int
    inode: int


class TcpReader:
    """The TCP of a process's network namespace: the accept queue of one port, and counters of the namespace."""

    def __init__(self, pid: int, port: Optional[int], root: str = PROC):
        self.folder, self.port = f"{root}/{pid}/net", port

    def listeners(self) -> list["Listener"]:
        """Returns those of the port."""
        return [listener for listener in self.all_listeners() if listener.port == self.port]

    def all_listeners(self) -> list["Listener"]:
        return [each for name in ("tcp", "tcp6") for each in self.read_listeners(f"{self.folder}/{name}")]

    def read_listeners(self, path: str) -> list["Listener"]:
        """Listeners stand first; the thousands of rows behind them are not read."""
        rows = []
        try:
            with open(path, encoding="ascii") as file:
                next(file, None)
                for line in file:
                    fields = line.split()
                    if fields[3] != LISTEN:
                        break
                    port, queue = fields[1].rpartition(":")[2], fields[4].rpartition(":")[2]
                    rows.append(Listener(int(port, 16), int(queue, 16), int(fields[9])))
        except OSError:
            pass
        return rows

    def count_connections(self) -> int:
        """Those of the port that are established."""
        ends = f":{self.port:04X}"
        texts = (read_text(f"{self.folder}/{name}") or "" for name in ("tcp", "tcp6"))
        rows = (line.split(maxsplit=4) for text in texts for line in text.splitlines()[1:])
        return sum(row[3] == ESTABLISHED and row[1].endswith(ends) for row in rows)

    def queue(self) -> int:
        return sum(listener.queue for listener in self.listeners())

    def counts(self) -> TcpCounts:
        extended = parse_pairs(read_text(f"{self.folder}/netstat") or "", "TcpExt")
        plain = parse_pairs(read_text(f"{self.folder}/snmp") or "", "Tcp")
        return TcpCounts(extended.get("ListenDrops", 0), plain.get("RetransSegs", 0))


def parse_pairs(text: str, name: str) -> dict[str, int]:
    """Reads the pairs of lines, names and values, of netstat and snmp."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(name + ":")]
    return dict(zip(lines[0], map(int, lines[1]))) if len(lines) == 2 else {}


def sockets_of(pid: int, root: str = PROC) -> set[int]:
    """Returns the inodes of the sockets that a process has open, as far as they may be read."""
    inodes = set()
    for number in list_numbers(f"{root}/{pid}/fd"):
        try:
            target = os.readlink(f"{root}/{pid}/fd/{number}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(int(target[8:-1]))
    return inodes


def find_listening(pid: int, port: int, root: str = PROC) -> list[int]:
    """Returns the processes that listen on a port in the network namespace of a process."""
    inodes = {listener.inode for listener in TcpReader(pid, port, root).listeners()}
    return [each for each in sorted(list_numbers(root)) if inodes & sockets_of(each, root)] if inodes else []


def listening_port(pids: Iterable[int], pid: int, root: str = PROC) -> Optional[int]:
    """Returns the lowest port on which one of the processes listens."""
    inodes = set().union(*(sockets_of(each, root) for each in pids))
    return min((each.port for each in TcpReader(pid, None, root).all_listeners() if each.inode in inodes), default=None)


def read_command(pid: int, root: str = PROC) -> list[str]:
    return (read_text(f"{root}/{pid}/cmdline") or "").rstrip("\0").split("\0")
