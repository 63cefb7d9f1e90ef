# SPDX-License-Identifier: Apache-2.0
"""Makes NAME.duda of a service: compiles what has changed, and links. The build folder has

obj/FILE.o      the object, with the time at which its compilation began
obj/FILE.d      the files that it was made of
obj/FILE.cmd    the command
NAME.duda       replaced by rename(), since a server may have it open
"""

import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass, field

from . import DudacError
from .folder import Service, Unit
from .installation import Installation
from .level import LINK_FLAGS, NEW_LEVEL, compile_flags
from .screen import Screen

COMMON_FLAGS = ("-O2", "-g")
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
    told = os.environ.get("CC", "").strip()
    if told:
        words = shlex.split(told)
        if not shutil.which(words[0]):
            raise DudacError(f'there is no compiler "{words[0]}", which the environment variable CC names')
        return words
    for name in (service.compiler or "", "gcc", "cc", "clang"):
        words = shlex.split(name)
        if words and shutil.which(words[0]):
            return words
    raise DudacError("there is no C compiler: install the Debian package gcc, or set CC")


def read_text(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def list_dependencies(depfile: pathlib.Path) -> list:
    """The files of a rule that the compiler has written, or nothing."""
    text = read_text(depfile).replace("\\\n", " ")
    _, colon, names = text.partition(": ")
    words = re.findall(r"(?:\\.|\$\$|[^\s\\$])+", names) if colon else []
    return [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words]


def modified_ns(path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return -1


class Compiler:
    """Builds one service."""

    def __init__(self, service: Service, installation: Installation, screen: Screen):
        self.service, self.installation, self.screen = service, installation, screen
        self.command = find_compiler(service)

    # ── commands ──

    def flags(self) -> list:
        return [*compile_flags(self.service.level, self.installation.include), *COMMON_FLAGS]

    def object_path(self, unit: Unit) -> pathlib.Path:
        path = pathlib.PurePath(os.path.relpath(unit.source, self.service.folder))
        parts = ["up" if part == ".." else part for part in path.parts]
        return self.service.build.joinpath("obj", self.service.name, *parts).with_suffix(".o")

    def compile_command(self, unit: Unit) -> list:
        made = self.object_path(unit)
        source = os.path.relpath(unit.source, unit.folder)
        depfile = ["-MD", "-MF", str(made.with_suffix(".d"))]
        return [*self.command, *self.flags(), *unit.flags, *depfile, "-c", source, "-o", str(made)]

    def link_command(self, target: pathlib.Path) -> list:
        objects = [str(self.object_path(unit)) for unit in self.service.units]
        whole = ["-Wl,-z,defs"] if self.service.level == NEW_LEVEL else []
        return [*self.command, *LINK_FLAGS, *whole, *objects, *self.service.ldflags, "-o", str(target)]

    # ── what has to be done ──

    def is_current(self, unit: Unit) -> bool:
        made = self.object_path(unit)
        if read_text(made.with_suffix(".cmd")) != shlex.join(self.compile_command(unit)):
            return False
        made_ns, files = modified_ns(made), list_dependencies(made.with_suffix(".d"))
        times = [modified_ns(unit.folder / name) for name in files]
        return bool(files) and min(times) >= 0 and max(times) < made_ns

    def is_linked(self) -> bool:
        stamp = self.stamp_path()
        return self.service.file.exists() and read_text(stamp) == shlex.join(self.link_command(self.service.file))

    def stamp_path(self) -> pathlib.Path:
        return self.service.build / "obj" / self.service.name / "link.cmd"

    # ── doing it ──

    def run(self, command: list, folder: pathlib.Path):
        """Returns whether it succeeded, and what it printed."""
        color = ["-fdiagnostics-color=always"] if self.screen.colored else []
        self.screen.detail(shlex.join(command))
        try:
            done = subprocess.run([*command, *color], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace", check=False)
        except OSError as error:
            raise DudacError(f"{command[0]} cannot be run: {error.strerror}") from None
        return done.returncode == 0, done.stdout

    def compile(self, unit: Unit):
        made, command = self.object_path(unit), self.compile_command(unit)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.with_suffix(".cmd").unlink(missing_ok=True)
        began = time.time_ns() - CLOCK_NS
        done, output = self.run(command, unit.folder)
        if done:
            os.utime(made, ns=(began, began))
            made.with_suffix(".cmd").write_text(shlex.join(command), encoding="utf-8", errors="surrogateescape")
        return done, output

    def compile_all(self, units: list) -> None:
        failed = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            pending = []
            for unit in units:
                self.screen.step("compile", os.path.relpath(unit.source, self.service.folder))
                pending.append((unit, pool.submit(self.compile, unit)))
            for unit, each in pending:
                done, output = each.result()
                self.screen.output(output)
                failed += [] if done else [(unit, output)]
        if failed:
            names = ", ".join(os.path.relpath(unit.source, self.service.folder) for unit, _ in failed)
            verb = "do" if len(failed) > 1 else "does"
            raise CompileError(f"{names} {verb} not compile", "".join(output for _, output in failed))

    def link(self) -> None:
        new = self.service.build / f"{self.service.name}.duda.new"
        self.screen.step("link", self.service.file.name)
        self.stamp_path().unlink(missing_ok=True)
        done, output = self.run(self.link_command(new), self.service.folder)
        self.screen.output(output)
        if not done:
            raise CompileError(f"{self.service.name} cannot be linked", output)
        new.rename(self.service.file)
        self.stamp_path().write_text(shlex.join(self.link_command(self.service.file)), encoding="utf-8",
                                     errors="surrogateescape")

    def build(self) -> Result:
        started = time.monotonic()
        make_build_folder(self.service.build)
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
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise DudacError(f"{folder}: {error.strerror}; --build-dir names another folder") from None


def build_services(services: list, installation: Installation, screen: Screen) -> Result:
    """Builds all; raises a CompileError for the first that fails."""
    total = Result()
    for service in services:
        result = Compiler(service, installation, screen).build()
        total.compiled += result.compiled
        total.linked |= result.linked
        total.seconds += result.seconds
    return total
