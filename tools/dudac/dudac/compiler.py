# SPDX-License-Identifier: Apache-2.0
"""Makes NAME.duda of a service: compiles what has changed, and links. The build folder has

obj/FILE.c.o    the object
obj/FILE.c.d    the files that it was made of
obj/FILE.c.cmd  the command, and the times and sizes of these files
NAME.duda       replaced by rename(), since a server may have it open
"""

import os
import pathlib
import re
import shlex
import shutil
import time
from dataclasses import dataclass, field

from . import DudacError
from .folder import Service, Unit
from .installation import Installation
from .level import LINK_FLAGS, NEW_LEVEL, compile_flags
from .lock import await_lock
from .programs import Program, run_program, run_programs
from .sanitize import brings_runtime, list_flags
from .screen import Screen

# A call that is the last statement of a function stays a call: messages about it find the function on the stack.
COMMON_FLAGS = ("-O2", "-g", "-fno-optimize-sibling-calls")
SECONDS = 600  # of one compilation
LOCK_SECONDS = 600
CLOCK_NS = 10_000_000  # times of files are those of the kernel's tick


class CompileError(DudacError):
    """What the compiler printed is in `output`."""

    def __init__(self, text: str, output: str):
        super().__init__(text)
        self.output = output


@dataclass
class Result:
    compiled: list = field(default_factory=list)
    linked: bool = False
    seconds: float = 0.0


def find_compiler(service: Service) -> list:
    """$CC, the CC of Makefile.in, or gcc; as words, since CC may have arguments."""
    command = os.environ.get("CC", "").strip()
    if command:
        words = split_words(command, "the environment variable CC")
        if not shutil.which(words[0]):
            raise DudacError(f'there is no compiler "{words[0]}", which the environment variable CC names')
        return [os.path.abspath(words[0]) if "/" in words[0] else words[0], *words[1:]]
    for name in (service.compiler or "", "gcc", "cc", "clang"):
        words = split_words(name, f"{service.folder}/Makefile.in: CC")
        if words and shutil.which(words[0]):
            return words
    raise DudacError("there is no C compiler: install the Debian package gcc, or set CC")


def split_words(text: str, origin: str) -> list:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise DudacError(f"{origin}: {error}") from None


def read_made(path: pathlib.Path) -> str:
    """The text of a file that was made here, or nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def write_made(path: pathlib.Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def list_dependencies(depfile: pathlib.Path) -> list:
    """The files of a rule that the compiler has written, or nothing."""
    text = read_made(depfile).replace("\\\n", " ")
    _, colon, names = text.partition(": ")
    words = re.findall(r"(?:\\.|\$\$|[^\s\\$])+", names) if colon else []
    return [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words]


def list_states(folder: pathlib.Path, names: list) -> list:
    """(times and size, name) of each file. The time of the last change of the inode differs even if a file was replaced
    by an older one, or the clock was set back; (None, name) is a file that is gone."""
    found = []
    for name in names:
        try:
            status = os.stat(folder / name)
            found.append(((status.st_mtime_ns, status.st_ctime_ns, status.st_size), name))
        except (OSError, ValueError):
            found.append((None, name))
    return found


class Compiler:
    """Builds one service."""

    def __init__(self, service: Service, installation: Installation, screen: Screen):
        self.service, self.installation, self.screen = service, installation, screen
        self.command = find_compiler(service)

    # ── commands ──

    def flags(self) -> list:
        return [*compile_flags(self.service.level, self.installation.include), *COMMON_FLAGS,
                *list_flags(self.service.sanitizers)]

    def object_path(self, unit: Unit) -> pathlib.Path:
        path = pathlib.PurePath(os.path.relpath(unit.source, self.service.folder))
        parts = ["up" if part == ".." else part for part in path.parts]
        return self.service.build.joinpath("obj", self.service.name, *parts[:-1], f"{parts[-1]}.o")

    def compile_command(self, unit: Unit) -> list:
        made = self.object_path(unit)
        source = os.path.relpath(unit.source, unit.folder)
        source = f"./{source}" if source[0] in "-@" else source  # no option, no file of options
        depfile = ["-MD", "-MF", str(made.with_suffix(".d"))]
        return [*self.command, *self.flags(), *unit.flags, *depfile, "-c", source, "-o", str(made)]

    def link_command(self, target: pathlib.Path) -> list:
        objects = [str(self.object_path(unit)) for unit in self.service.units]
        whole = ["-Wl,-z,defs"] if self.service.level == NEW_LEVEL else []
        flags = [*list_flags(self.service.sanitizers), *whole]
        if brings_runtime(self.installation.server, self.service.sanitizers):
            flags = []  # the linker would bring another one, or miss its functions
        return [*self.command, *LINK_FLAGS, *flags, *objects, *self.service.ldflags, "-o", str(target)]

    # ── what has to be done ──

    def make_stamp(self, unit: Unit) -> str:
        """The command, and the state of the files that the object is made of; nothing without such files."""
        states = list_states(unit.folder, list_dependencies(self.object_path(unit).with_suffix(".d")))
        if not states or any(state is None for state, _ in states):
            return ""
        rows = [" ".join([*map(str, state), name]) for state, name in states]
        return "\n".join([shlex.join(self.compile_command(unit)), *rows])

    def is_current(self, unit: Unit) -> bool:
        made = self.object_path(unit)
        stamp = read_made(made.with_suffix(".cmd"))
        return bool(stamp) and made.exists() and stamp == self.make_stamp(unit)

    def is_linked(self) -> bool:
        stamp = self.stamp_path()
        return self.service.file.exists() and read_made(stamp) == shlex.join(self.link_command(self.service.file))

    def stamp_path(self) -> pathlib.Path:
        return self.service.build / "obj" / self.service.name / "link.cmd"

    # ── doing it ──

    def make_program(self, command: list, folder: pathlib.Path) -> Program:
        color = ["-fdiagnostics-color=always"] if self.screen.colored else []
        return Program([*command, *color], folder, SECONDS)

    def take_result(self, program: Program, made: pathlib.Path) -> bool:
        """Shows what a program has printed; returns whether it has made its file."""
        if program.status is None:
            program.output += f"no end after {SECONDS} s: {shlex.join(program.command)}\n".encode()
        self.screen.output(program.text())
        if program.status != 0:
            made.unlink(missing_ok=True)
        return program.status == 0

    def prepare_unit(self, unit: Unit) -> Program:
        made, command = self.object_path(unit), self.compile_command(unit)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.with_suffix(".cmd").unlink(missing_ok=True)
        self.screen.step("compile", os.path.relpath(unit.source, self.service.folder))
        self.screen.detail(shlex.join(command))
        return self.make_program(command, unit.folder)

    def note_unit(self, unit: Unit, began_ns: int) -> None:
        """Writes the stamp, unless a file was changed while it was compiled: then it is compiled again."""
        made, now_ns = self.object_path(unit), time.time_ns()
        states = list_states(unit.folder, list_dependencies(made.with_suffix(".d")))
        if not any(state and began_ns - CLOCK_NS <= state[1] <= now_ns for state, _ in states):
            write_made(made.with_suffix(".cmd"), self.make_stamp(unit))

    def compile_all(self, units: list) -> None:
        """What has compiled is kept, also if another file does not or dudac is interrupted."""
        programs, failed = [self.prepare_unit(unit) for unit in units], []

        def take(program: Program) -> None:
            unit = next(unit for unit, each in zip(units, programs) if each is program)
            if self.take_result(program, self.object_path(unit)):
                self.note_unit(unit, program.began_ns)
            else:
                failed.append(program)

        run_programs(programs, os.cpu_count() or 1, take)
        if failed:
            names = ", ".join(os.path.relpath(unit.source, self.service.folder)
                              for unit, program in zip(units, programs) if program in failed)
            verb = "do" if len(failed) > 1 else "does"
            raise CompileError(f"{names} {verb} not compile", "".join(program.text() for program in failed))

    def link(self) -> None:
        new, command = self.service.build / f"{self.service.name}.duda.new", self.link_command
        self.screen.step("link", self.service.file.name)
        self.screen.detail(shlex.join(command(new)))
        self.stamp_path().unlink(missing_ok=True)
        try:
            program = run_program(self.make_program(command(new), self.service.folder))
            if not self.take_result(program, new):
                raise CompileError(f"{self.service.name} cannot be linked", program.text())
            new.rename(self.service.file)
        finally:
            new.unlink(missing_ok=True)
        write_made(self.stamp_path(), shlex.join(command(self.service.file)))

    def build(self) -> Result:
        started = time.monotonic()
        stale = [unit for unit in self.service.units if not self.is_current(unit)]
        if stale:
            self.stamp_path().unlink(missing_ok=True)  # also if the link fails or is interrupted
            self.compile_all(stale)
        linked = bool(stale) or not self.is_linked()
        if linked:
            self.link()
        return Result([unit.source.name for unit in stale], linked, time.monotonic() - started)


def make_build_folder(folder: pathlib.Path) -> None:
    try:
        is_new = not folder.exists()
        (folder / "obj").mkdir(parents=True, exist_ok=True)
        if is_new:
            write_made(folder / ".gitignore", "*\n")
    except OSError as error:
        raise DudacError(f"{folder}: {error.strerror}; --build-dir names another folder") from None


def build_services(services: list, installation: Installation, screen: Screen) -> Result:
    """Builds all; raises a CompileError for the first that fails."""
    total, folder = Result(), services[0].build
    make_build_folder(folder)
    lock = await_lock(folder / "obj", folder, LOCK_SECONDS, screen)  # one dudac builds there at a time
    try:
        for service in services:
            result = Compiler(service, installation, screen).build()
            total.compiled += result.compiled
            total.linked |= result.linked
            total.seconds += result.seconds
    finally:
        os.close(lock)
    return total
