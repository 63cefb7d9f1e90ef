# SPDX-License-Identifier: Apache-2.0
"""`--sanitize`: how a service is compiled with sanitizers, the server that runs it, and their reports.

The runtime of AddressSanitizer has to be in a process from its begin, and that of UBSan be known to the server, which
then keeps objects readable (lib/core/base/library.c): they are preloaded into a server that was built without. It takes
a server that was built with ThreadSanitizer to run services with it, since it knows no synchronisation of other code.
"""

import functools
import os
import pathlib
import re

from . import DudacError, clean
from .installation import Installation, list_tops
from .lock import await_lock
from .programs import Program, run_program

KINDS = ("address", "undefined", "thread")
FLAGS = ("-fno-omit-frame-pointer",)
SECONDS = 20
BUILD_SECONDS = 3600
LINES_MAX = 500  # of reports of one server
OPTIONS = {"ASAN_OPTIONS": "detect_leaks={leaks}", "UBSAN_OPTIONS": "print_stacktrace=1",
           "TSAN_OPTIONS": "halt_on_error=0"}

RULER = re.compile(r"={18,}")
BEGIN = re.compile(r"==\d+==ERROR: (\w+Sanitizer: .*)|WARNING: (ThreadSanitizer: .*) \(pid|"
                   r"^(\S+:\d+:\d+: runtime error: .*)")
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\S+Z ")
FRAME = re.compile(r"^ +#\d+ (?:0x[0-9a-f]+ in )?(\S+) (\S+?):(\d+)(?::\d+)?(?: |$)")
PART = re.compile(r"^\S.*:$|^ {2}\S.*:$|^0x[0-9a-f]+ is located ")
MEMORY = re.compile(r"\b(freed|allocated) by ")  # in a part
LEAK = re.compile(r"^(?:Direct|Indirect) leak of ")
LEAKS_END = re.compile(r"^SUMMARY: ")
NO_LEAKS = re.compile(r"^==\d+==(?:LeakSanitizer has encountered a fatal error|"
                      r"HINT: .*(?:LSAN_OPTIONS|LeakSanitizer))")
KEEP_MAPPED = "-Wl,-z,nodelete"  # for services whose leaks are reported when they have ended
INDENTS = {"what": " " * 4, "part": " " * 6, "place": " " * 8}


def parse_kinds(text: str) -> tuple:
    """The sanitizers of a list with commas, in the order of KINDS; "none" is none."""
    names = [] if text.strip() == "none" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in KINDS:
            raise DudacError(f'there is no sanitizer "{name}"; --sanitize takes {", ".join(KINDS)}, a list of them '
                             "with commas, or none")
    if {"address", "thread"} <= set(names):
        raise DudacError("--sanitize: address and thread cannot be combined; run dudac once with each")
    return tuple(kind for kind in KINDS if kind in names)


def list_flags(kinds: tuple) -> list:
    """For the compiler and the linker."""
    return [f"-fsanitize={','.join(kinds)}", *FLAGS] if kinds else []


# ── the server ──


@functools.cache  # services are linked for the server that runs them
def read_built(server: pathlib.Path) -> set:
    """The sanitizers that a server was built with."""
    program = run_program(Program([str(server), "--build"], server.parent, SECONDS))
    match = re.search(r"^sanitizers: (.*)$", program.text(), re.M)
    return set(match[1].split(",")) if match else set()


def brings_runtime(server: pathlib.Path, kinds: tuple) -> bool:
    """Whether the runtime of the sanitizers is in the server: a process can have only one."""
    return bool(kinds) and kinds[0] in read_built(server)


def find_runtime(kinds: tuple, compiler: list) -> str:
    """The shared object of AddressSanitizer, which is that of UBSan, too, or else of UBSan."""
    name = "libasan.so" if "address" in kinds else "libubsan.so"
    program = run_program(Program([*compiler, f"-print-file-name={name}"], pathlib.Path("/"), SECONDS))
    path = program.text().strip()
    if not os.path.isabs(path) or not os.path.exists(path):
        raise DudacError(f"the compiler {compiler[0]} has no {name}, which --sanitize needs; use gcc, or "
                         "--sanitize none")
    return path


def build_thread_server(checkout: pathlib.Path, screen) -> None:
    """Brings it up to date with the headers, by which services are compiled; one dudac at a time."""
    dev, lock = str(checkout / "dev"), await_lock(checkout, checkout / "build" / "tsan", BUILD_SECONDS, screen)
    try:
        screen.notice("bringing the server with ThreadSanitizer up to date: ./dev build tsan programs")
        program = run_program(Program([dev, "build", "tsan", "programs"], checkout, BUILD_SECONDS))
    finally:
        os.close(lock)
    if program.status != 0:
        screen.output(program.text())
        raise DudacError(f"the server cannot be built with ThreadSanitizer: run {dev} build tsan")


def find_thread_server(installation: Installation, screen) -> pathlib.Path:
    """That of build/tsan of the checkout."""
    if "thread" in read_built(installation.server):
        return installation.server
    checkout = list_tops()[0]
    if not (checkout / "dev").is_file():
        raise DudacError("--sanitize thread needs a server that is built with ThreadSanitizer, and the sources of "
                         "the server are not here: run dudac of a checkout")
    build_thread_server(checkout, screen)
    return checkout / "build" / "tsan" / "bin" / "monkey"


def prepare_server(kinds: tuple, finds_leaks: bool, installation: Installation, compiler: list, screen):
    """Returns the server for services with these sanitizers, and the changes of its environment."""
    if not kinds:
        return installation.server, {}
    changes = {name: f"{value.format(leaks=int(finds_leaks))}:{os.environ.get(name, '')}"
               for name, value in OPTIONS.items()}
    if "thread" in kinds:
        return find_thread_server(installation, screen), changes
    if "thread" in read_built(installation.server):
        raise DudacError("this server is built with ThreadSanitizer: it can run --sanitize thread,undefined only")
    if finds_leaks or not brings_runtime(installation.server, kinds):
        # The fast unwinder needs frame pointers, which packages need not have, and the bounds of the stacks of
        # dthreads, which only a server that was built with the sanitizer tells.
        changes["ASAN_OPTIONS"] = f"fast_unwind_on_malloc=0:{changes['ASAN_OPTIONS']}"
    if not brings_runtime(installation.server, kinds):
        changes["LD_PRELOAD"] = " ".join(filter(None, [find_runtime(kinds, compiler), os.environ.get("LD_PRELOAD")]))
    return installation.server, changes


# ── reports ──


class Reports:
    """The lines of sanitizers in the log of a server. `folders` are those of the services. A leak that none of their
    functions has to do with is one of the server, and left out."""

    def __init__(self, folders: list):
        self.lines, self.folders = [], folders
        self.has_begun = self.has_leaks = self.cannot_find_leaks = False
        self.head = []  # lines that are added before the next ones
        self.leak = None  # the lines of a leak

    def take(self, line: str) -> bool:
        """Returns whether the line belongs to a report."""
        if NO_LEAKS.match(line):
            self.cannot_find_leaks = True
            return True
        if LOG_LINE.match(line) or not self.has_begun and not BEGIN.search(line) and not RULER.fullmatch(line):
            return False
        self.has_begun = True
        self.take_line(clean(line))
        return True

    def take_line(self, line: str) -> None:
        if "LeakSanitizer: " in line:
            self.has_leaks, self.leak = True, []
            self.head += [line, ""]
        elif RULER.fullmatch(line):
            self.head = [line]
        elif self.leak is None:
            self.add([line])
        elif LEAK.match(line) or LEAKS_END.match(line):
            self.end_leak()
            self.leak = [line] if LEAK.match(line) else None
        else:
            self.leak.append(line)

    def end_leak(self) -> None:
        """Adds a leak that is one of the services."""
        if any(find_place(line, self.folders) for line in self.leak):
            self.add(self.leak)

    def add(self, lines: list) -> None:
        self.lines += [*self.head, *lines][:LINES_MAX - len(self.lines)]
        self.head = []

    def explains(self, status: int) -> bool:
        """Whether a server ends with this status for leaks of its own only, or because they cannot be looked for."""
        return status > 0 and (self.has_leaks or self.cannot_find_leaks)

    def find(self):
        """Yields what is wrong, and where the services have to do with it, as ("what", text), ("part", text) and
        ("place", text); a place belongs to the part before it, or is where it went wrong."""
        part = ""
        for line in self.lines:
            if match := BEGIN.search(line):
                yield "what", (match[1] or match[2] or match[3]).partition(" at pc 0x")[0]
                part = ""
            elif PART.match(line):
                part = line.strip()
            elif place := find_place(line, self.folders):
                if part:
                    yield "part", part
                yield "place", place
                part = ""

    def summarize(self) -> str:
        return "\n".join(["a sanitizer reports:", *(INDENTS[kind] + text for kind, text in self.find())])

    def describe_first(self) -> str:
        """The first report in one line: what is wrong, and the first function of the services that is named with it:
        where it went wrong, or else where the memory was freed or allocated."""
        (_, what), *found = [*self.find()] or [("what", "")]
        what = re.sub(r" on (?:unknown )?address 0x[0-9a-f]+.*", "", what)
        part = ""
        for kind, text in found if "runtime error" not in what else []:
            if kind == "place" and " created " not in part:
                function, _, place = text.partition(" ")
                how = MEMORY.search(part)
                return f"{what}, {how[1]} in {function}(), {place}" if how else f"{what} in {function}(), {place}"
            if kind == "what":
                break
            part = text if kind == "part" else part
        return what

    def describe(self) -> str:
        return "\n".join([self.summarize(), "", "the whole report:", *self.lines])


def find_place(line: str, folders: list):
    """FUNCTION FILE:LINE of a frame that is in one of the folders, else None."""
    match = FRAME.match(line)
    for folder in folders if match else []:
        path = os.path.normpath(os.path.join(folder, match[2]))
        if path.startswith(f"{folder}/") and os.path.exists(path):
            return f"{match[1]} {os.path.relpath(path, folder)}:{match[3]}"
    return None
