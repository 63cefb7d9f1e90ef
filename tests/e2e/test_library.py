# SPDX-License-Identifier: Apache-2.0
"""libmonkey as others see it: installed headers and libraries, and nothing from the source tree."""

import pathlib
import re
import subprocess

import pytest

from harness import build
from harness.content import populate
from harness.protocol import Client

pytestmark = pytest.mark.single_protocol

FLAGS = {
    "asan": ["-fsanitize=address,undefined", "-g"],
    "tsan": ["-fsanitize=thread", "-g"],
}.get(build.PRESET, ["-O2"])
COMPILER = "clang-14" if build.PRESET == "clang" else "cc"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    built = build.TOP / "build" / build.PRESET
    if not (built / "lib" / "libmonkey.so").exists():
        pytest.skip(f"the preset {build.PRESET} has no shared library")
    subprocess.run(["cmake", "--install", built, "--prefix", folder], check=True, capture_output=True)
    return folder


def compile_example(prefix, tmp_path, *link):
    program = tmp_path / "embed"
    command = [COMPILER, "-std=c11", "-Wall", "-Werror", *FLAGS, f"-I{prefix}/include"]
    command += [build.TOP / "docs/examples/embed.c", "-o", program, *link, "-pthread"]
    subprocess.run(list(map(str, command)), check=True)
    return program


def try_out(program, root):
    process = subprocess.Popen(
        [program, root, "127.0.0.1:0"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=build.environment()
    )
    log = b""
    while not (found := re.search(rb"listening on 127\.0\.0\.1:(\d+)", log)):
        line = process.stderr.readline()
        assert line, log
        log += line
    with Client(("127.0.0.1", int(found[1]))) as client:
        assert client.ask("/a.txt").body == b"embedded\n"
    process.stdin.write(b"\n")
    process.stdin.close()
    assert process.wait(60) == 0, process.stderr.read()
    process.stderr.close()


def library_folder(prefix):
    return next(pathlib.Path(prefix).rglob("libmonkey.so")).parent


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_embedding(prefix, tmp_path, kind):
    folder = library_folder(prefix)
    link = [f"-L{folder}", "-lmonkey", f"-Wl,-rpath,{folder}"] if kind == "shared" else [folder / "libmonkey.a"]
    program = compile_example(prefix, tmp_path, *link)
    try_out(program, populate(tmp_path / "root", {"a.txt": b"embedded\n"}))


def exported(path):
    rows = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    return {row.split()[-1].split("@")[0] for row in rows.splitlines()}


def test_only_the_public_functions_are_exported(prefix):
    names = exported(library_folder(prefix) / "libmonkey.so")
    assert "mk_server_new" in names
    assert not {name for name in names if not re.match(r"mk_[a-z]|LIBMONKEY_", name)}


@pytest.mark.parametrize("header", build.PUBLIC_HEADERS)
def test_headers_stand_alone(prefix, tmp_path, header):
    """Each can be included first, by a C11 program, and by C++ authors' linters: no warnings at -Wall -Wextra."""
    source = tmp_path / "one.c"
    source.write_text(f"#include <monkey/{header}>\nint main(void) {{ return 0; }}\n")
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include", "-fsyntax-only", source]
    subprocess.run(list(map(str, command)), check=True)
