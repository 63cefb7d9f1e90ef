# SPDX-License-Identifier: Apache-2.0
"""The Rust crate of bindings/rust: its example, tests and documentation, with the library that was installed."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import build, embed
from harness.content import populate
from harness.embed import Program

CRATE = build.TOP / "bindings" / "rust"
EDITION = re.search(r'edition = "(\d+)"', (CRATE / "Cargo.toml").read_text())[1]

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build has no library for programs"),
    pytest.mark.skipif(build.PRESET == "tsan", reason="Rust's own locks are not instrumented: TSan would report races"),
]


def find_tool(name):
    """Debian's, whatever stands first in PATH: the oldest that the crate supports."""
    path = pathlib.Path("/usr/bin") / name
    found = path if path.exists() else shutil.which(name)
    assert found, f"{name} is not installed"
    return found


class Compiled:
    """The crate, compiled as Cargo does, in a folder."""

    def __init__(self, prefix, folder):
        self.folder = folder
        self.environment = build.environment()
        self.compile(CRATE / "build.rs", "-o", folder / "build")
        variables = {**os.environ, "PKG_CONFIG_PATH": str(next(prefix.rglob("monkey.pc")).parent)}
        run = subprocess.run([folder / "build"], env=variables, check=True, capture_output=True, text=True)
        self.library = re.search(r"^cargo:rustc-link-search=native=(.*)$", run.stdout, re.M)[1]
        self.paths = [f"-Lnative={self.library}", f"-Ldependency={folder}"]
        self.compile(CRATE / "src/lib.rs", "--crate-type=rlib", "--crate-name=monkey", "--out-dir", folder, *self.paths)
        if build.PRESET == "asan":  # rustc links no such runtime, which must be the first library
            asan = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
            self.environment["LD_PRELOAD"] = asan.stdout.strip()

    def compile(self, source, *words):
        command = [find_tool("rustc"), "--edition", EDITION, "-Dwarnings", source, *words]
        subprocess.run(list(map(str, command)), check=True)

    def program(self, source, *words):
        program = self.folder / source.stem
        crate = f"monkey={self.folder / 'libmonkey.rlib'}"
        self.compile(
            source, *words, "--extern", crate, *self.paths, f"-Clink-arg=-Wl,-rpath,{self.library}", "-o", program
        )
        return program


@pytest.fixture(scope="module")
def crate(tmp_path_factory):
    prefix = embed.install(tmp_path_factory.mktemp("prefix"))
    return Compiled(prefix, tmp_path_factory.mktemp("crate"))


def test_the_example(crate, tmp_path):
    root = populate(tmp_path / "root", {"a.txt": b"embedded\n"})
    with Program(crate.program(CRATE / "examples" / "hello.rs"), root, env=crate.environment) as program:
        assert program.ask().body == b"Hello, you!\n"
        assert program.ask("/hello/%C3%A4").body == "Hello, ä!\n".encode()
        assert program.ask("/a.txt").body == b"embedded\n"
        assert program.ask(method="DELETE").status == 405


def run(command, environment, cwd):
    run = subprocess.run(
        list(map(str, command)), env=environment, cwd=cwd, capture_output=True, text=True, timeout=240
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_of_the_crate(crate, tmp_path):
    program = crate.program(CRATE / "tests" / "server.rs", "--test")
    tests = (CRATE / "tests" / "server.rs").read_text().count("#[test]")
    assert f"test result: ok. {tests} passed" in run([program], crate.environment, tmp_path)


def test_what_the_documentation_shows(crate, tmp_path):
    """It is compiled, the example of README.md too."""
    command = [find_tool("rustdoc"), "--test", CRATE / "src/lib.rs", "--edition", EDITION, "--crate-name=monkey"]
    command += ["--extern", f"monkey={crate.folder / 'libmonkey.rlib'}", *crate.paths]
    environment = {**crate.environment, "LD_LIBRARY_PATH": crate.library}
    environment.pop("LD_PRELOAD", None)  # the compiler is not for ASan, and its children would be
    assert "test result: ok. 3 passed" in run(command, environment, tmp_path)


KEEPER = """
use std::sync::{{Arc, Mutex}};
pub fn keep(server: &mut monkey::Server) {{
    let kept: Arc<Mutex<Vec<{kind}>>> = Arc::default();
    server.handle("GET", "/", move |req| {{ kept.lock().unwrap().push({value}); "kept" }}).unwrap();
}}
"""


@pytest.mark.parametrize("kind, value, error", [
    ("Vec<u8>", "req.body().to_vec()", None), ("String", "req.path().into_owned()", None),
    ("&'static [u8]", "req.body()", "E0521"), ("std::borrow::Cow<'static, str>", "req.path()", "E0521"),
    ("Option<std::borrow::Cow<'static, str>>", 'req.header("a")', "E0521"),
    ("&'static monkey::Request<'static>", "req", "E0277"),
])  # fmt: skip
def test_a_kept_request_is_not_compiled(crate, tmp_path, kind, value, error):
    """Copies of what it has are; a borrow would outlive the call, and a request belongs to one thread."""
    source = tmp_path / "keeper.rs"
    source.write_text(KEEPER.format(kind=kind, value=value))
    extern = f"monkey={crate.folder / 'libmonkey.rlib'}"
    command = [find_tool("rustc"), "--edition", EDITION, "--crate-type=lib", "--emit=metadata", source]
    command += ["--extern", extern, *crate.paths, "--out-dir", tmp_path]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert (run.returncode == 0) == (error is None), run.stderr
    assert not error or f"error[{error}]" in run.stderr, run.stderr


@pytest.mark.slow
def test_cargo(crate, tmp_path):
    """What Cargo.toml says, where Cargo is installed; no other crate is fetched."""
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed")
    source = tmp_path / "source"
    shutil.copytree(CRATE, source)
    variables = {
        **os.environ,
        "PKG_CONFIG_PATH": str(next(pathlib.Path(crate.library).rglob("monkey.pc")).parent),
        "CARGO_HOME": str(tmp_path / "home"),
    }
    subprocess.run(["cargo", "build", "--offline", "--quiet", "--examples"], cwd=source, env=variables, check=True)
    assert (source / "target/debug/examples/hello").exists()
