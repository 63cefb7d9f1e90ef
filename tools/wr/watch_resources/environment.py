# SPDX-License-Identifier: Apache-2.0
"""What all servers of a comparison have in common: CPUs, files in memory, congestion control, limits."""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import pathlib
import resource
import socket
import struct
import time

from .data import Problem

FILES = {"13.txt": 13, "26k.bin": 26510, "200k.bin": 200 * 1024, "1m.bin": 1 << 20}
# Of programs rather than files, as docs/examples/services/01-hello, peers/duda/notes.c, peers/cgi/hello.c ... have it.
ANSWERS = {
    "hello/": b"Hello, world\n",
    "notes/500": b"note 500: " + 80 * b"x" + b"\n",
    "value/": b"Hello, world\n",
    "hello.php": b"Hello, world\n",
    "cgi-bin/hello": b"Hello, world\n",
}
MANY = "many"  # a folder of files
COLD, COLD_BYTES = "cold", 16 * 1024  # a folder of files that are not locked in memory, and their size
EVICTIONS, EVICTION_SECONDS = 50, 0.01  # attempts, and the time between them
PRECOMPRESSED = {"26k.bin.gz": 8000}  # its content is not read
PINNED = "cubic", "reno"  # the first of these that this machine permits is that of all workloads that name none
CONGESTION_CONTROLS = (*PINNED, "bbr")  # what a workload may name
SYSCTL = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
CLONE_NEWUSER, CLONE_NEWNET, MAP_POPULATE = 0x10000000, 0x40000000, 0x8000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def make_file(path, size):
    with open(path, "wb") as file:
        file.write((b"Hello, World\n" * (size // 13 + 1))[:size])
    os.utime(path, (time.time() - 3600,) * 2)  # servers do not trust the times of new files


def size_of_many(n):
    return 1024 + n * 7919 % (7 * 1024)


def make_files(root, many=0, cold=0):
    """Those of all workloads; `many` of 1 to 8 KB in the folder many, and `cold` of 16 KB in the folder cold."""
    os.makedirs(os.path.join(root, "many"), exist_ok=True)
    for name, size in {**FILES, **PRECOMPRESSED}.items():
        make_file(os.path.join(root, name), size)
    for n in range(many):
        make_file(os.path.join(root, "many", str(n)), size_of_many(n))
    if cold:
        make_cold_files(os.path.join(root, COLD), cold)


def make_cold_files(folder, number):
    os.makedirs(folder, exist_ok=True)
    for n in range(number):
        make_file(os.path.join(folder, str(n)), COLD_BYTES)
    os.sync()  # pages that are to be written stay in memory


def is_in_memory(fd, size):
    """Whether the page cache has a page of a file. A read with RWF_NOWAIT would not do: it starts to read ahead."""
    at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    if at == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    libc.mincore(at, size, pages)
    libc.munmap(at, size)
    return any(page & 1 for page in pages)


def evict_file(path):
    """Takes the content of a file out of the page cache, also what the CPUs have not added to its lists yet. Raises a
    Problem when it stays there."""
    fd = os.open(path, os.O_RDONLY)
    try:
        for _ in range(EVICTIONS):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            if not is_in_memory(fd, COLD_BYTES):
                return
            time.sleep(EVICTION_SECONDS)
    finally:
        os.close(fd)
    raise Problem(f"{path} stays in memory: it is not on a disk (TMPDIR names another folder), or in use")


def evict_cold_files(root):
    for path in sorted(pathlib.Path(root, COLD).iterdir()):
        evict_file(path)


def read_content(root, path):
    """What is answered to a path of a workload."""
    return ANSWERS[path] if path in ANSWERS else pathlib.Path(root, path).read_bytes()


def content_size(root, path):
    return len(ANSWERS[path]) if path in ANSWERS else os.path.getsize(os.path.join(root, path))


def read_siblings(cpu):
    """The CPUs that share its core; a core's two threads slow each other down."""
    try:
        text = pathlib.Path(SIBLINGS.format(cpu)).read_text("ascii")
    except OSError:
        return {cpu}
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def choose_cpus(allowed=None, share=False):
    """(CPU of the servers, CPU of the generator), of different cores where there are."""
    allowed = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
    if len(allowed) == 1:
        if share:
            return allowed[0], allowed[0]
        raise Problem(
            "this machine gives wr one CPU, and server and generator would disturb each other on it:"
            " use two CPUs, or --share-cpu, whose costs are too high by what the generator evicts from the caches"
        )
    server = allowed[0]
    others = [cpu for cpu in allowed[1:] if cpu not in read_siblings(server)] or allowed[1:]
    return server, others[0]


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        row = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(sock, SIOCGIFFLAGS, row))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def unshare_network():
    """Returns "" or why there is no network namespace of our own. An ordinary user gets one with a user
    namespace, in which every id stays what it is."""
    if libc.unshare(CLONE_NEWNET) == 0:
        return ""
    user, group = os.geteuid(), os.getegid()
    if ctypes.get_errno() == errno.EPERM and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
        pathlib.Path("/proc/self/setgroups").write_text("deny", "ascii")
        pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1", "ascii")
        pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1", "ascii")
        return ""
    return os.strerror(ctypes.get_errno())


def pin_congestion_control():
    """(its name, notes), in a network namespace that ends with this process; loopback is all that it has. It must be
    called before threads are started, since a namespace belongs to a thread."""
    notes = []  # of what the user should know, when none could be set
    if reason := unshare_network():
        notes.append(f"no network namespace ({reason}): congestion control and sysctls are those of the machine")
        return SYSCTL.read_text("ascii").strip(), notes
    raise_loopback()
    for name in PINNED:
        try:
            SYSCTL.write_text(name, "ascii")
            return name, []
        except OSError as error:
            notes.append(f"the congestion control {name} cannot be set: {error.strerror}")
    return SYSCTL.read_text("ascii").strip(), notes


class LockedFiles:
    """Keeps the content in the page cache: small machines reclaim it while a comparison runs. Not of cold files."""

    def __init__(self, folder):
        self.areas, self.failed = [], 0
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file() and path.stat().st_size and path.parent.name != COLD:
                self.lock(path)

    def lock(self, path):
        fd, size = os.open(path, os.O_RDONLY), path.stat().st_size
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED | MAP_POPULATE, fd, 0)
        os.close(fd)
        if at == ctypes.c_void_p(-1).value:
            self.failed += 1
            return
        self.areas.append((at, size))
        self.failed += libc.mlock(at, size) != 0

    def release(self):
        for at, size in self.areas:
            libc.munmap(at, size)
        self.areas = []


def raise_descriptor_limit():
    """To the highest that is permitted: thousands of clients need a descriptor each, on both sides."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Environment:
    """`notes` says what could not be made equal, in sentences. `built`: that of builds.build_all()."""

    def __init__(self, folder, many=0, share_cpu=False, built=None, cold=0):
        self.folder, self.root, self.built = folder, os.path.join(folder, "www"), built or {}
        os.chmod(folder, 0o755)
        make_files(self.root, many, cold)
        self.server_cpu, self.generator_cpu = choose_cpus(share=share_cpu)
        os.sched_setaffinity(0, {self.generator_cpu})  # servers change to theirs when they start
        self.congestion_control, self.notes = pin_congestion_control()
        self.descriptors = raise_descriptor_limit()
        self.locked = LockedFiles(self.root)
        if self.locked.failed:
            self.notes.append(f"{self.locked.failed} files are not locked in memory: raise `ulimit -l`")

    @contextlib.contextmanager
    def use_congestion_control(self, name):
        """That of sockets which are opened in the block. Raises a Problem where it is not permitted."""
        before = self.congestion_control
        try:
            SYSCTL.write_text(name or before, "ascii")
            self.congestion_control = name or before
        except OSError as error:
            if name:
                raise Problem(f"the congestion control {name} cannot be set: {error.strerror}") from None
        try:
            yield
        finally:
            if name:
                SYSCTL.write_text(before, "ascii")
            self.congestion_control = before

    def describe(self):
        """For the session's line."""
        return {
            "cpus": {"server": self.server_cpu, "generator": self.generator_cpu},
            "congestion_control": self.congestion_control,
            "locked_files": len(self.locked.areas) - self.locked.failed,
            "notes": self.notes,
        }
