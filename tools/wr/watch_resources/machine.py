# SPDX-License-Identifier: Apache-2.0
"""Reads the machine: CPU time that others used, pressure, page cache; and what a result needs to be repeated."""

import dataclasses
import gzip
import math
import os
import pathlib
import time
from typing import Callable, Iterable, Optional

NS = 10**9
TICK_NS = NS // os.sysconf("SC_CLK_TCK")
KERNEL_HZ = 250  # samples a second behind the columns of /proc/stat, where the configuration does not say
KERNEL_THREADS = 2  # kthreadd, the parent of all kernel threads
RESOURCES = "cpu", "memory", "io"
SYSCTLS = (
    "kernel/sched_autogroup_enabled", "kernel/perf_event_paranoid", "kernel/randomize_va_space", "vm/swappiness",
    "vm/overcommit_memory", "fs/file-max", "net/core/somaxconn", "net/core/netdev_max_backlog", "net/core/rmem_max",
    "net/core/wmem_max", "net/core/busy_poll", "net/core/default_qdisc", "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_fastopen", "net/ipv4/tcp_max_syn_backlog", "net/ipv4/tcp_syncookies", "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_max_tw_buckets", "net/ipv4/tcp_fin_timeout", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_mem", "net/ipv4/tcp_notsent_lowat", "net/ipv4/tcp_autocorking", "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_sack", "net/ipv4/ip_local_port_range",
)


def read_text(path) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def parse_busy(text: str) -> tuple[int, int, int]:
    """Returns the ns that all CPUs worked for tasks, for interrupts, and that the hypervisor took."""
    fields = [int(word) * TICK_NS for word in text.split("\n", 1)[0].split()[1:]] + [0] * 8
    user, nice, system, _, _, irq, softirq, steal = fields[:8]
    return user + nice + system, irq + softirq, steal


def parse_pressure(text: str) -> int:
    """Returns the µs in which at least one task waited; 0 where the kernel does not count."""
    line = text.split("\n", 1)[0]
    return int(line.rpartition("total=")[2]) if "total=" in line else 0


@dataclasses.dataclass(frozen=True)
class MachineSample:
    at_ns: int
    task_ns: int
    irq_ns: int
    steal_ns: int
    pressure_us: dict
    page_cache_kb: int
    process_ns: dict  # (PID, start) of each process: its own time and that of its ended children


class Machine:
    """Reads all of the machine's processes: two readings a round, at its ends."""

    def __init__(self, root: str = "/", clock: Callable[[], int] = time.monotonic_ns):
        self.root, self.clock = pathlib.Path(root), clock
        self.proc = self.root / "proc"
        config = read_kernel_config(self.root)
        # Without this option the time of interrupts is also in that of the task that was interrupted.
        self.counts_irq_apart = config.get("CONFIG_IRQ_TIME_ACCOUNTING", "y" if not config else "n") == "y"
        self.hz = int(config.get("CONFIG_HZ", KERNEL_HZ))
        self.cpus = read_text(self.proc / "stat").count("\ncpu") or 1

    def read(self) -> MachineSample:
        task, irq, steal = parse_busy(read_text(self.proc / "stat") or "cpu")
        return MachineSample(
            at_ns=self.clock(),
            task_ns=task,
            irq_ns=irq,
            steal_ns=steal,
            pressure_us={name: parse_pressure(read_text(self.proc / "pressure" / name)) for name in RESOURCES},
            page_cache_kb=parse_meminfo(read_text(self.proc / "meminfo")).get("Cached", 0),
            process_ns=self.read_processes(),
        )

    def read_processes(self) -> dict:
        times = {}
        for name in filter(str.isdigit, os.listdir(self.proc)):
            text = read_text(self.proc / name / "stat")
            if not text:
                continue
            fields = text[text.rindex(")") + 2:].split()
            is_softirq = int(fields[1]) == KERNEL_THREADS and "(ksoftirqd/" in text
            if not is_softirq:  # it works for the connections of the load
                own, children = sum(map(int, fields[11:13])) * TICK_NS, sum(map(int, fields[13:15])) * TICK_NS
                times[int(name), int(fields[19])] = max(own, self.read_first_thread(name)) + children
        return times

    def read_first_thread(self, name: str) -> int:
        """Returns its ns, which are those of the process where it has no other thread."""
        words = read_text(self.proc / name / "schedstat").split()
        return int(words[0]) if words else 0

    def others_ns(self, first: MachineSample, last: MachineSample, ours_ns: int, our_pids: Iterable[int]) -> int:
        """Returns the CPU time that others used: the processes that are seen here, or, where that is more, what the
        CPUs worked without ours; plus what the hypervisor took. The columns of /proc/stat are sampled, so that their
        difference counts only as far as it is no error of sampling."""
        ours = set(our_pids)
        seen = sum_others(last, ours) - sum_others(first, ours)
        busy = last.task_ns - first.task_ns
        if not self.counts_irq_apart:
            busy += last.irq_ns - first.irq_ns
        unseen = busy - ours_ns - self.sampling_error_ns(last.at_ns - first.at_ns)
        return max(seen, unseen, 0) + max(last.steal_ns - first.steal_ns, 0)

    def sampling_error_ns(self, duration_ns: int) -> int:
        """Three standard deviations of a CPU that is busy half of the time."""
        samples = self.hz * self.cpus * duration_ns / NS
        return round(3 * 0.5 * math.sqrt(samples) * NS / self.hz) + 2 * TICK_NS * self.cpus


def sum_others(sample: MachineSample, ours: set) -> int:
    return sum(ns for (pid, _), ns in sample.process_ns.items() if pid not in ours)


def pressure_between(first: MachineSample, last: MachineSample) -> dict:
    """Returns the share of the time in which at least one task waited for each resource."""
    us = max(1, (last.at_ns - first.at_ns) // 1000)
    return {name: round((last.pressure_us[name] - first.pressure_us[name]) / us, 4) for name in RESOURCES}


def parse_meminfo(text: str) -> dict:
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name: int(rest.split()[0]) for name, rest in pairs}


def read_kernel_config(root: pathlib.Path) -> dict:
    """Returns the options the kernel was built with; none where it does not say."""
    text = read_text(root / "boot" / f"config-{os.uname().release}")
    if not text:
        try:
            text = gzip.decompress((root / "proc" / "config.gz").read_bytes()).decode()
        except OSError:
            return {}
    lines = (line.partition("=") for line in text.splitlines() if line.startswith("CONFIG_"))
    return {name: value for name, _, value in lines}


def read_sysctls(root: pathlib.Path) -> dict:
    values = {name: " ".join(read_text(root / "proc" / "sys" / name).split()) for name in SYSCTLS}
    return {name.replace("/", "."): value for name, value in values.items() if value}


def cpu_field(text: str, name: str) -> str:
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def find_virtualisation(root: pathlib.Path) -> Optional[str]:
    """Returns what the machine runs on, None on hardware of its own."""
    container = read_text(root / "run" / "systemd" / "container").strip()
    layers = [container or "docker"] if container or (root / ".dockerenv").exists() else []
    if "hypervisor" in cpu_field(read_text(root / "proc" / "cpuinfo"), "flags").split():
        identity = root / "sys" / "class" / "dmi" / "id"
        names = (read_text(identity / name).strip() for name in ("sys_vendor", "product_name"))
        layers.append(" ".join(name for name in names if name) or "a hypervisor")
    return " on ".join(layers) or None


def describe_machine(root: str = "/") -> dict:
    """Returns what the `machine` of a session says."""
    base = pathlib.Path(root)
    cpuinfo = read_text(base / "proc" / "cpuinfo")
    sysctls = read_sysctls(base)
    return {
        "cpu": cpu_field(cpuinfo, "model name"),
        "cores": cpuinfo.count("processor\t:") or os.cpu_count(),
        "memory_kb": parse_meminfo(read_text(base / "proc" / "meminfo")).get("MemTotal", 0),
        "kernel": read_text(base / "proc" / "sys" / "kernel" / "osrelease").strip() or os.uname().release,
        "sysctls": sysctls,
        "congestion_control": sysctls.get("net.ipv4.tcp_congestion_control", ""),
        "governor": read_text(base / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip(),
        "virtual": find_virtualisation(base),
    }
