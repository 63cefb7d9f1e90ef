# SPDX-License-Identifier: Apache-2.0
"""The example plugins, built out of tree against the installed headers, by a C11 compiler that knows nothing else."""

import re
import shutil
import subprocess

import pytest

from harness import build
from harness.server import section

EXAMPLES = build.TOP / "docs" / "examples" / "plugins"
PAGE = build.TOP / "docs" / "guide" / "plugins.md"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.c"))

pytestmark = pytest.mark.skipif(build.PRESET == "small", reason="the small build opens no modules")


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    built = build.TOP / "build" / build.PRESET
    subprocess.run(["cmake", "--install", built, "--prefix", folder], check=True, capture_output=True)
    return folder / "include"


@pytest.fixture(scope="module")
def examples(headers, tmp_path_factory):
    """All of them, and the one that the guide begins with, as shared objects in one folder."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "hello.c").write_text(re.search(r"```c\n(.*?)```", PAGE.read_text(), re.S)[1])
    for source in [folder / "hello.c", *(EXAMPLES / f"{name}.c" for name in NAMES)]:
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-g", "-shared", "-fPIC", "-pthread"]
        command += [f"-I{headers}", source, "-o", folder / f"{source.stem}.so"]
        subprocess.run(list(map(str, command)), check=True)
    return folder


@pytest.fixture
def configure(serve, examples, tmp_path):
    """Starts a server with examples; `host` is text behind the default host's own section."""

    def make(*names, settings=None, host="", files=None):
        root = tmp_path / "root"
        root.mkdir()
        for name, content in (files or {"a.txt": b"small letters\n"}).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        load = ["liana", *(examples / f"{name}.so" for name in names), "static"]
        texts = {
            "plugins.load": section("PLUGINS", {"Load": load}),
            "sites/default": section("HOST", {"DocumentRoot": root}) + host,
        }
        return serve(settings, root=root, config=texts)

    return make


def test_each_has_a_test():
    assert NAMES == ["gate", "later", "meter", "shout"]


def test_the_smallest(configure):
    assert configure("hello").connect().ask("/hello").body == b"Hello.\n"


def test_later(configure):
    server = configure("later", settings={"HandlerTimeout": "300ms"})
    client, other = server.connect(), server.connect()
    client.send(b"GET /later?100 HTTP/1.1\r\nHost: h\r\n\r\n")
    assert other.ask("/a.txt").status == 200  # meanwhile
    assert client.response().body == b"Now.\n"
    assert other.ask("/later?x").status == 400
    assert other.ask("/later?5000").status == 503  # HandlerTimeout answers for it
    gone = server.connect()
    gone.send(b"GET /later?200 HTTP/1.1\r\nHost: h\r\n\r\n")
    gone.reset()
    assert server.connect().ask("/later?250").body == b"Now.\n"


GATE = "[GATE]\n    Match /private\n    Key one\n    Key two\n[GATE]\n    Match *.key\n    Key three\n"


def test_gate(configure):
    files = {"a.txt": b"", "private/b.txt": b"secret", "private/c.key": b""}
    client = configure("gate", host=GATE, files=files).connect()
    assert client.ask("/a.txt").status == 200
    assert client.ask("/private/b.txt").status == 403
    assert client.ask("/private/b.txt", "X-Key: three").status == 403
    assert client.ask("/private/b.txt", "X-Key: one").body == b"secret"
    assert client.ask("/private/b.txt", "X-Key: two").status == 200
    assert client.ask("/private/c.key", "X-Key: two").status == 403  # both gates must open


def test_shout(configure):
    big = b"abcdefgh" * 100_000
    client = configure("shout", files={"a.txt": b"small letters\n", "big.txt": big, "p.html": b"<p>html"}).connect()
    answer = client.ask("/a.txt")
    assert answer.body == b"SMALL LETTERS\n" and answer["Content-Length"] == "14" and answer["ETag"] is None
    assert client.ask("/big.txt").body == big.upper()
    assert client.ask("/p.html").body == b"<p>html"
    part = client.ask("/a.txt", "Range: bytes=0-4")
    assert (part.status, part.body) == (206, b"small")
    assert client.ask("/a.txt", method="HEAD")["Content-Length"] == "14"


def test_meter(configure):
    files = {"a.txt": b"x" * 1000, "big": b"y" * 3_000_000}
    server = configure("meter", settings={"Listen": "127.0.0.1:0 meter"}, files=files)
    with server.connect() as client:
        assert len(client.ask("/a.txt").body) == 1000
        assert len(client.ask("/big").body) == 3_000_000
    ((counted),) = server.wait_log(r"meter: (\d+) bytes in, (\d+) bytes out")
    assert int(counted[1]) > 50 and int(counted[2]) > 3_001_000


# ── C++ ──

GREET = build.TOP / "tests" / "plugins" / "cpp" / "greet.cpp"
CPP = {  # g++ complains about members that a designated initializer leaves out; there is no library of C++ in clang-14
    "clang++-14": ["-nostdlib++"],
    "g++": ["-Wno-missing-field-initializers"],
}


@pytest.mark.parametrize("compiler", [name for name in CPP if shutil.which(name)])
def test_a_plugin_in_cpp(configure, headers, examples, compiler):
    command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-shared", "-fPIC"]
    command += [*CPP[compiler], f"-I{headers}", GREET, "-o", examples / "greet.so"]
    subprocess.run(list(map(str, command)), check=True)
    server = configure("greet", settings={"Workers": 1}, host="[GREET]\n    Greeting good day\n")
    with server.connect() as client:
        assert client.ask("/greet").body == b"good day"
        assert client.ask("/greet?loud").body == b"GOOD DAY"
        assert client.ask("/a.txt").status == 200
    server.stop()
    assert "greet: 2 greetings" in server.log


def test_all_headers_are_for_cpp():
    included = set(re.findall(r"<monkey/(\w+\.h)>", GREET.read_text()))
    assert included == {path.name for path in (build.TOP / "include" / "monkey").glob("*.h")}


def test_the_pages_name_them():
    """The guide shows how each is built and loaded."""
    for name in NAMES:
        assert re.search(rf"examples/plugins/{name}\.c", PAGE.read_text()), name
