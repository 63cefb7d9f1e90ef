# SPDX-License-Identifier: Apache-2.0
"""A system call that is refused, as sandboxes and old kernels do: `serve(wrapper=refuse(OPENAT2, errno.ENOSYS))`."""

import ctypes
import os
import struct
import sys

OPENAT2 = 437
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7FFF0000


def refuse(call, error):
    """The command line that runs another one, without this call."""
    return [sys.executable, os.path.abspath(__file__), str(call), str(error)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rows", ctypes.c_void_p)]


def install(call, error):
    rows = [(LOAD, 0, 0, 0), (JUMP_EQUAL, 0, 1, call), (RETURN, 0, 0, RET_ERRNO | error), (RETURN, 0, 0, RET_ALLOW)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
    program = Program(len(rows), ctypes.cast(text, ctypes.c_void_p))
    calls = ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)))
    if any(LIBC.prctl(*arguments) for arguments in calls):
        raise OSError(ctypes.get_errno(), "the machine allows no filters")


if __name__ == "__main__":
    install(int(sys.argv[1]), int(sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])
