# SPDX-License-Identifier: Apache-2.0
"""The Python package of bindings/python: its examples, with the library that was installed."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from harness import build, embed
from harness.content import populate
from harness.embed import Program

cffi = pytest.importorskip("cffi", reason="cffi is not installed")

PACKAGE = build.TOP / "bindings" / "python"
PYTHON = sys.executable

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET in ("small", "tsan"), reason="no library, or one that Python cannot load"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    library = next(embed.install(tmp_path_factory.mktemp("prefix")).rglob("libmonkey.so"))
    variables = {"LIBMONKEY": str(library), "PYTHONPATH": str(PACKAGE)}
    if build.PRESET == "asan":  # must be loaded before Python, whose own memory is not freed at its end
        asan = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        variables["LD_PRELOAD"] = asan.stdout.strip()
        variables["ASAN_OPTIONS"] = build.environment()["ASAN_OPTIONS"] + ":detect_leaks=0"
    return variables


def test_functions(environment, tmp_path):
    root = populate(tmp_path / "root", {"a.txt": b"embedded\n"})
    program = Program(PYTHON, PACKAGE / "examples" / "hello.py", root, env=environment)
    assert program.ask().body == b"Hello, you!\n"
    assert program.ask("/hello/%C3%A4").body == "Hello, ä!\n".encode()
    assert program.ask("/hello/%FF").body == b"Hello, \xff!\n"  # a path that is not UTF-8, sent back as it came
    assert program.ask("/a.txt").body == b"embedded\n"
    assert program.ask("/notes/1", method="PUT", body=b"x" * 30_000).status == 201
    assert program.ask("/notes/1").body == b"x" * 30_000
    assert program.ask("/notes/2").status == 500  # a KeyError
    assert program.ask("/notes/1", method="DELETE").status == 405
    assert program.ask("/stop", method="POST").body == b"the end\n"
    program.end()


def test_wsgi(environment):
    with Program(PYTHON, PACKAGE / "examples" / "wsgi_hello.py", env=environment) as program:
        answer = program.ask("/a/b%20c?d=e%20f")
        assert (answer.status, answer.body, answer["X-Application"]) == (200, b"/a/b c?d=e%20f\n", "hello")
        assert program.ask("/").body == b"/?\n"
        assert program.ask("/", method="POST", body=b"a body\n").body == b"a body\n"


CHECKER = """
import sys
from wsgiref.validate import validator
from monkey.wsgi import make_server

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["REQUEST_METHOD"].encode()]

server = make_server(validator(application), "[SERVER]\\n    Listen 127.0.0.1:0\\n")
server.start()
print(f"http://127.0.0.1:{server.port}/", flush=True)
for _ in range(int(sys.argv[1])):
    server.run_once(30000)
server.serve()
"""


def test_wsgi_as_the_standard_says(environment, tmp_path):
    (tmp_path / "checker.py").write_text(CHECKER)
    program = Program(PYTHON, tmp_path / "checker.py", "1", env=environment)
    try:
        assert program.ask("/x?y").body == b"GET"
    finally:
        program.process.kill()
        program.process.communicate()


def run_python(environment, text):
    variables = {**build.environment(), **environment}
    return subprocess.run([PYTHON, "-c", text], env=variables, capture_output=True, text=True, timeout=120)


def test_errors_have_sentences(environment):
    text = "from monkey import Server\nServer('[SERVER]\\n    Timeouts 5s\\n').start()\n"
    run = run_python(environment, text)
    assert 'MonkeyError: [Errno 22] text:2:5: unknown key "Timeouts"' in run.stderr
    run = run_python(environment, "from monkey import Server\nServer().handle('GET', 'a')(print)\n")
    assert "adds no handler: it does not begin with" in run.stderr


def test_the_package_can_be_built(environment, tmp_path):
    """By what pip calls; the wheel has all that the package needs."""
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source)
    code = "import sys\nfrom setuptools import build_meta\nprint(build_meta.build_wheel(sys.argv[1]))\n"
    run = subprocess.run([PYTHON, "-c", code, tmp_path], cwd=source, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with zipfile.ZipFile(tmp_path / run.stdout.splitlines()[-1]) as wheel:
        wheel.extractall(tmp_path / "site")
    run = run_python({**environment, "PYTHONPATH": str(tmp_path / "site")}, "import monkey; print(monkey.__file__)")
    assert run.stdout == f"{tmp_path / 'site' / 'monkey' / '__init__.py'}\n", run.stderr


@pytest.mark.slow
def test_the_package_can_be_installed(environment, tmp_path):
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    variables = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", PACKAGE, source], check=True)
    run = subprocess.run([*command, f"--target={tmp_path / 'site'}", source], env=variables, capture_output=True)
    assert run.returncode == 0, run.stderr
    run = run_python({**environment, "PYTHONPATH": str(tmp_path / "site")}, "import monkey; print(monkey.__file__)")
    assert run.stdout == f"{tmp_path / 'site' / 'monkey' / '__init__.py'}\n", run.stderr
