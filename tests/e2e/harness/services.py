# SPDX-License-Identifier: Apache-2.0
"""Web services of tests: compiled from C with the compiler and the sanitizers of the server under test."""

import contextlib
import functools
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from . import build
from .server import section

INCLUDE = build.TOP / "include"
needs_duda = pytest.mark.skipif(not (build.PLUGINS / "duda.so").exists(), reason=f"{build.PRESET} has no plugin duda")

# A complete file of a service without the registration: HEAD + "... int duda_main(void) { ... }"
HEAD = "#include <duda/duda.h>\n#include <stdlib.h>\n#include <string.h>\n"

# The same with the headers that many services need, and a function that answers with a number.
NUMBERS_HEAD = (
    HEAD
    + """
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static inline void answer(duda_request_t *dr, long number)
{
    response->printf(dr, "%ld", number);
    response->end(dr, NULL);
}
"""
)

STRICT = ("-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wstrict-prototypes", "-fno-common")


def function_of(name, function):
    """A pattern of what the log says of a function of a service: NAME.duda+0x1234 (find_items, name.c:42)."""
    return rf"{name}\.duda\+0x[0-9a-f]+ \({function}, \S*{name}\.c:\d+\)"


@functools.cache
def cached(variable, default=""):
    """A variable of the build under test."""
    path = build.TOP / "build" / build.PRESET / "CMakeCache.txt"
    found = path.exists() and re.search(rf"^{variable}:\w+=(.*)$", path.read_text(), re.M)
    return found[1] if found else default


def list_libraries():
    """What a plugin is linked with: the runtime of a sanitizer is that of the server."""
    return ["-nodefaultlibs", "-lc"] if cached("MK_STATIC_ASAN") else []


def compile_command(*, warnings=STRICT):
    """Without optimisation: most services are compiled for one test, and half of the time goes into that."""
    command = [cached("CMAKE_C_COMPILER", "cc"), *warnings, "-O0", "-g1", "-fPIC", "-shared", "-pthread"]
    command += ["-Wl,-z,noseparate-code"]  # as dudac: fewer pages
    command += ["-fuse-ld=mold"] if shutil.which("mold") else []
    if sanitizers := cached("MK_SANITIZE"):
        command += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    return [*command, *list_libraries(), f"-I{INCLUDE}"]


KEPT = build.TOP / "build" / "services"  # what was compiled, by the hash of all that it is made of
KEPT_SECONDS = 7 * 86400  # since it was last used


def read_files(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(str(path.relative_to(folder)), path.read_bytes()) for path in paths]


@functools.cache
def describe_tools():
    """What a compiled service depends on besides its command and its files: the compiler, the linker, the headers."""
    programs = map(shutil.which, (cached("CMAKE_C_COMPILER", "cc"), "as", "ld", "mold"))
    versions = [(name, os.stat(name).st_size, os.stat(name).st_mtime_ns) for name in programs if name]
    return hashlib.sha256(repr((versions, read_files(INCLUDE))).encode()).hexdigest()


def drop_unused():
    """Removes what no run has used for a while."""
    for path in KEPT.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another process does the same
            if path.stat().st_mtime < time.time() - KEPT_SECONDS:
                path.unlink()


def compile_once(command, made):
    """Runs a compiler in the folder of `made`, or copies what the same command made of the same files before."""
    key = hashlib.sha256(repr((describe_tools(), command, read_files(made.parent))).encode()).hexdigest()
    copy = KEPT / f"{key}.duda"
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(copy, made)
        os.utime(copy)
        return
    done = subprocess.run([*map(str, command), "-o", made], capture_output=True, text=True, cwd=made.parent)
    assert done.returncode == 0, done.stderr
    new = copy.with_suffix(f".{os.getpid()}")
    KEPT.mkdir(parents=True, exist_ok=True)
    shutil.copy(made, new)
    new.rename(copy)


PATCHED = re.compile(r'PATCHED\("([^"\\]*)"\)')
PATCHED_BYTES = 512


def patched(text):
    """A string for the source of a service, such as the address of a server. It is written into the compiled file, so
    that sources that differ only in such strings are compiled once."""
    return f'PATCHED("{text}")'


def version_line(number):
    """For the end of a source: makes another file of it, which needs no compiler again."""
    return f"const char *version = {patched(number)};\n"


def extract_patches(source):
    """Returns the source with an array of characters for each of the strings, and the strings."""
    texts = []

    def replace(found):
        texts.append(found[1])
        return f"patched_{len(texts) - 1}"

    source = PATCHED.sub(replace, source)
    hidden = '__attribute__((visibility("hidden")))'
    arrays = [f'{hidden} char patched_{n}[{PATCHED_BYTES}] = "@patched {n}@";\n' for n in range(len(texts))]
    return "".join([*arrays, "#line 1\n"]) + source if texts else source, texts


def write_patches(path, texts):
    data = path.read_bytes()
    for number, text in enumerate(texts):
        old, new = (each.encode().ljust(PATCHED_BYTES, b"\0") for each in (f"@patched {number}@", text))
        assert data.count(old) == 1 and len(new) == PATCHED_BYTES, text
        data = data.replace(old, new)
    path.write_bytes(data)


def build_service(folder, name, source, *, flags=(), warnings=STRICT, files=None):
    """Compiles folder/NAME.duda and returns its path; a file of that name is replaced by rename(), as deployments do.

    source    text of the service's C file, which may have strings of patched()
    files     further files, name to text: each *.c is compiled, headers are only written
    flags     for the compiler and the linker; ["-DNAME=1"] ...
    warnings  instead of the strict ones, for sources of the old API
    """
    folder = pathlib.Path(folder)
    sources = folder / f"{name}.src"
    sources.mkdir(parents=True, exist_ok=True)
    source, patches = extract_patches(source)
    texts = {f"{name}.c": source, **(files or {})}
    for file, text in texts.items():
        (sources / file).parent.mkdir(parents=True, exist_ok=True)
        (sources / file).write_text(text)
    result, made = folder / f"{name}.duda", sources / f"{name}.new"
    inputs = [file for file in texts if file.endswith(".c")]
    compile_once([*compile_command(warnings=warnings), *flags, *inputs], made.resolve())
    write_patches(made, patches)
    made.rename(result)
    return result


CPP = {"clang++-14": ["-nostdlib++"], "g++": []}  # compilers and flags; there is no library of C++ in clang-14


def build_cpp(folder, name, source, compiler):
    """Compiles folder/NAME.duda from the text of one file."""
    file = folder / f"{name}.cpp"
    file.write_text(source)
    command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-shared", "-fPIC"]
    command += [*CPP[compiler], f"-I{INCLUDE}", file, "-o", folder / f"{name}.duda"]
    subprocess.run(list(map(str, command)), check=True)


def load_level():
    """The module of dudac that knows the levels of the original API; dudac is no package of the tests."""
    spec = importlib.util.spec_from_file_location("level", build.TOP / "tools/dudac/dudac/level.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


level = load_level()


def build_old_service(folder, name, source, *, files=None, any_level=False, number=None):
    """
    The same for a service of the original API, with the flags of dudac: for a level, `number` or the one that the
    sources have; any_level: without DUDA_API_LEVEL.
    """
    if number is None and not any_level:
        number = level.detect_level([source, *(files or {}).values()])
    flags = level.compile_flags(number, INCLUDE)
    return build_service(folder, name, source, files=files, warnings=flags, flags=["-Wl,-Bsymbolic"])


def web_service(name, **keys):
    """A section [WEB_SERVICE]: web_service("hello", Root="On")."""
    return section("WEB_SERVICE", {"Name": name, **keys})


def duda_section(folder, **keys):
    """A section [DUDA] that leaves out no line of the log: a fast machine writes many at once."""
    return section("DUDA", {"ServicesRoot": folder, **keys, "LogLimit": keys.get("LogLimit", "Off")})


def service_config(folder, services, root=None, *, host=None, text="", files=None):
    """Files for write_config(): the default host with services, and `folder` as ServicesRoot.

    services  names, or name to further keys: ["hello"], {"hello": {"Root": "On"}}
    host      further keys of [HOST]
    text      behind the host's sections
    files     further files of the configuration, name to text
    """
    keys = {"ServerName": "localhost", **({"DocumentRoot": root} if root else {}), **(host or {})}
    rows = services if isinstance(services, dict) else dict.fromkeys(services, {})
    sections = [section("HOST", keys), *(web_service(name, **more) for name, more in rows.items()), text]
    return {
        "plugins/duda/duda.conf": duda_section(folder),
        "sites/default": "".join(sections),
        **(files or {}),
    }


CONTROL_THREAD = 2  # its descriptors; it exists after the first reload
DONE, REFUSED = "the new configuration is in use", "the new configuration cannot be used"


def reload(server, accepted=True):
    """Has the server read its configuration again; returns the lines that it has logged meanwhile."""
    seen, known = len(server.lines), len(re.findall(f"{DONE}|{REFUSED}", server.log))
    if not known:
        server.baseline += CONTROL_THREAD
    server.send_signal(signal.SIGHUP)
    server.wait_log(f"{DONE}|{REFUSED}", known + 1)
    lines = server.lines[seen:]
    results = [line for line in lines if DONE in line or REFUSED in line]
    assert (DONE in results[0]) == accepted, "\n".join(lines)
    return lines
