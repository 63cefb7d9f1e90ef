# SPDX-License-Identifier: Apache-2.0
"""What all servers have in common: CPUs, files in memory, congestion control."""

import ctypes
import fcntl
import mmap
import os
import pathlib
import socket
import struct

from peers import GENERATOR_CPU

CONGESTION_CONTROLS = "cubic", "reno"  # the first that this machine permits
SYSCTL = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
CLONE_NEWNET, MAP_POPULATE = 0x40000000, 0x8000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def pin_congestion_control():
    """In a network namespace of its own, which ends with the bench; loopback is all that it has."""
    if libc.unshare(CLONE_NEWNET) == 0:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            row = struct.pack("16sH14x", b"lo", 0)
            flags = struct.unpack("16sH14x", fcntl.ioctl(sock, SIOCGIFFLAGS, row))[1]
            fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))
        for name in CONGESTION_CONTROLS:
            try:
                SYSCTL.write_text(name)
                break
            except OSError as error:
                print(f"congestion control {name}: {error.strerror}")
    print(f"congestion control: {SYSCTL.read_text().strip()}")


def lock_files(folder):
    """Keeps the content in the page cache until the bench ends: small machines reclaim it while a bench runs."""
    locked = failed = 0
    for path in pathlib.Path(folder).rglob("*"):
        size = path.stat().st_size
        if path.is_dir() or not size:
            continue
        fd = os.open(path, os.O_RDONLY)
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED | MAP_POPULATE, fd, 0)
        os.close(fd)
        done = at != ctypes.c_void_p(-1).value and libc.mlock(at, size) == 0
        locked, failed = locked + done, failed + (not done)
    print(f"files locked in memory: {locked}" + (f"; {failed} not: raise `ulimit -l`" if failed else ""))


def prepare(folder):
    os.sched_setaffinity(0, {GENERATOR_CPU})  # servers are moved to theirs when they start
    pin_congestion_control()
    lock_files(folder)
