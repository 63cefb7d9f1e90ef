# SPDX-License-Identifier: Apache-2.0
"""What compiler and linker add against exploits, read from the optimised builds (presets release and small)."""

import pathlib
import platform
import re
import subprocess

import pytest

from harness import build

pytestmark = pytest.mark.budget

X86 = platform.machine() == "x86_64"
ARM64 = platform.machine() in ("aarch64", "arm64")
FOLDERS = {"release": ("bin", "lib", "lib/monkey"), "small": ("bin",)}
ENDBR64 = bytes.fromhex("f30f1efa")
LEAST_ENDBR64 = 100  # in a program: functions whose address is taken
PROBE_PAGE = re.compile(r"\bor[qb]\s+\$0x0,|\bstr\s+xzr, \[sp")  # what -fstack-clash-protection touches each page with


def files(preset):
    top = build.TOP / "build" / preset
    return [
        path
        for folder in FOLDERS[preset]
        for path in sorted((top / folder).glob("*"))
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"
    ]


ELF_FILES = [pytest.param(path, id=f"{preset}-{path.name}") for preset in FOLDERS for path in files(preset)]
PROGRAMS = [build.TOP / "build" / preset / "bin" / "monkey" for preset in FOLDERS]
each_release_file = pytest.mark.parametrize("path", [row for row in ELF_FILES if row.id.startswith("release")])
each_file = pytest.mark.parametrize("path", ELF_FILES)
each_program = pytest.mark.parametrize("path", PROGRAMS, ids=FOLDERS)


def read_elf(*options, tool="readelf"):
    return subprocess.run([tool, *map(str, options)], check=True, capture_output=True, text=True).stdout


def segments(path):
    """(type, flags) of each program header, flags as in "RE"."""
    rows = re.findall(r"^  (\w+) +(?:0x\w+ +){5}([RWE ]{3}) ", read_elf("-lW", path), re.M)
    assert rows, path
    return [(kind, flags.replace(" ", "")) for kind, flags in rows]


def imports(path):
    rows = read_elf("--dyn-syms", "-W", path).splitlines()
    return {row.split()[7].split("@")[0] for row in rows if len(row.split()) >= 8 and row.split()[6] == "UND"}


def crt_files_have(feature):
    """Whether the start-up files of the C library carry the mark; the linker keeps only what all of its inputs have."""
    names = ("Scrt1.o", "crti.o", "crtn.o")
    paths = [read_elf(f"-print-file-name={name}", tool="gcc").strip() for name in names]
    return all(re.search(rf"Properties:.*\b{feature}\b", read_elf("-nW", path)) for path in paths)


def test_every_built_file_is_read():
    for preset in FOLDERS:
        assert files(preset), f"./dev build {preset}"
    names = {path.name for path in files("release")}
    assert {"monkey", "libmonkey.so.2.0.0", "tls.so", "compress.so"} <= names


@each_file
def test_relocations_are_read_only_after_the_start(path):
    assert "GNU_RELRO" in dict(segments(path))
    dynamic = read_elf("-dW", path)
    assert re.search(r"\(FLAGS\).*\bBIND_NOW\b", dynamic) and re.search(r"\(FLAGS_1\).*\bNOW\b", dynamic)


@each_file
def test_no_memory_is_writable_and_executable(path):
    rows = segments(path)
    assert not [row for row in rows if "W" in row[1] and "E" in row[1]]
    assert dict(rows)["GNU_STACK"] == "RW"
    assert "TEXTREL" not in read_elf("-dW", path)


@each_release_file
def test_code_has_a_segment_of_its_own(path):
    """Constants and headers are not executable: they hold no instructions for an exploit to jump to."""
    rows = read_elf("-lW", path)
    mapping = re.findall(r"^   (\d\d) +(.*)$", rows, re.M)
    executable = [n for n, (_, flags) in enumerate(segments(path)) if "E" in flags]
    sections = {name for number, names in mapping if int(number) in executable for name in names.split()}
    assert ".text" in sections
    assert not sections - {".init", ".plt", ".plt.got", ".plt.sec", ".text", ".fini", ".iplt"}


@each_program
def test_program_is_position_independent(path):
    assert re.search(r"Type: +DYN ", read_elf("-hW", path))
    assert re.search(r"\(FLAGS_1\).*\bPIE\b", read_elf("-dW", path))


@each_program
def test_stack_protector_and_fortify(path):
    names = imports(path)
    assert "__stack_chk_fail" in names
    fortified = {name for name in names if name.endswith("_chk")}
    assert {"__snprintf_chk", "__vsnprintf_chk"} <= fortified, fortified


@pytest.mark.parametrize("name", ["tls.so", "logger.so"])
def test_stack_protector_and_fortify_of_plugins(name):
    names = imports(build.TOP / "build/release/lib/monkey" / name)
    assert "__stack_chk_fail" in names
    assert {"__snprintf_chk", "__memcpy_chk"} & names, names


@each_program
def test_large_frames_touch_each_page(path):
    """-fstack-clash-protection: a frame cannot step over the guard page."""
    assert PROBE_PAGE.search(read_elf("-d", "--no-show-raw-insn", path, tool="objdump"))


@pytest.mark.skipif(not X86, reason="x86-64 only")
@each_file
def test_indirect_branches_and_returns_are_checked(path):
    properties = read_elf("-nW", path)
    assert re.search(r"Properties:.*\bSHSTK\b", properties), properties
    assert not crt_files_have("IBT") or re.search(r"Properties:.*\bIBT\b", properties)


@pytest.mark.skipif(not X86, reason="x86-64 only")
def test_functions_begin_with_a_landing_pad():
    disassembly = read_elf("-d", "--no-show-raw-insn", PROGRAMS[0], tool="objdump")
    assert disassembly.count("endbr64") >= LEAST_ENDBR64


@pytest.mark.skipif(not X86, reason="x86-64 only")
def test_exported_functions_begin_with_a_landing_pad():
    path = build.TOP / "build/release/bin/monkey"
    rows = [row.split() for row in read_elf("--dyn-syms", "-W", path).splitlines()]
    exported = {row[7]: int(row[1], 16) for row in rows if len(row) == 8 and row[3] == "FUNC" and row[6] != "UND"}
    assert len(exported) >= 100
    text = re.search(r" \.text +PROGBITS +(\w+) (\w+) ", read_elf("-SW", path))
    shift = int(text[2], 16) - int(text[1], 16)
    data = pathlib.Path(path).read_bytes()
    assert [name for name, at in exported.items() if data[at + shift : at + shift + 4] != ENDBR64] == []


@pytest.mark.skipif(not ARM64, reason="arm64 only")
@each_program
def test_branch_targets_are_marked(path):
    disassembly = read_elf("-d", "--no-show-raw-insn", path, tool="objdump")
    assert re.search(r"\bbti\b", disassembly) and re.search(r"\bpaciasp\b", disassembly)
