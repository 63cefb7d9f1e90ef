# SPDX-License-Identifier: Apache-2.0
"""`cmake --install` into an empty root: the bare program serves what was installed, and opens a plugin that was built
against it. The run with the mark `budget` is that of the release."""

import os
import pathlib
import re
import shutil
import subprocess
import urllib.request

import pytest

from harness import build, embed, services
from harness.messages import request
from harness.server import Server, run, section

PAGE = build.TOP / "docs" / "guide" / "plugins.md"
TREES = {
    "usr": ("/usr", "/etc/monkey", "/usr/share/monkey/htdocs"),
    "local": ("/usr/local", "/usr/local/etc/monkey", "/usr/local/share/monkey/htdocs"),
}

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not shutil.which("cmake"), reason="NOT TESTED: no cmake here"),
    pytest.mark.skipif(build.PRESET == "small", reason="the small build has no modules, and looks in one place only"),
]


def install(prefix, root=""):
    """Installs the build; with `root` as a package is made."""
    command = ["cmake", "--install", build.TOP / "build" / build.PRESET, "--prefix", prefix]
    done = subprocess.run(command, env={**os.environ, "DESTDIR": str(root)}, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("usr", marks=pytest.mark.slow),
        pytest.param("local", marks=pytest.mark.slow),
        pytest.param("prefix", marks=pytest.mark.slow),
        pytest.param("usr, optimised", marks=pytest.mark.budget),
    ],
)
def tree(request, tmp_path_factory):
    """The installation's folder for programs, its configuration and its site, as they lie here."""
    folder = tmp_path_factory.mktemp("root")
    if request.param == "prefix":
        install(folder)
        return folder, folder / "etc/monkey", folder / "share/monkey/htdocs"
    prefix, conf, htdocs = TREES[request.param.split(",")[0]]
    install(prefix, folder)
    return tuple(folder / path.lstrip("/") for path in (prefix, conf, htdocs))


@pytest.fixture
def start(tree, tmp_path):
    servers = []

    def begin(*args):
        servers.append(Server("-l", "127.0.0.1:0", *args, cwd=tmp_path, program=tree[0] / "bin" / "monkey"))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


def test_the_bare_program_serves(tree, start, tmp_path):
    """It finds the configuration by its own path, and the configuration the site."""
    prefix, conf, htdocs = tree
    shown = run("--show-config", "default", program=prefix / "bin" / "monkey", cwd=tmp_path)
    assert str(conf) in shown.stdout
    server = start()
    with server.connect() as client:
        assert client.ask("/").body == (htdocs / "index.html").read_bytes()
        assert client.ask("/nothing").body == (htdocs / "404.html").read_bytes()


def test_the_configuration_is_right(tree, tmp_path):
    prefix, conf, _ = tree
    done = run("-t", "-p", "0", program=prefix / "bin" / "monkey", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "../../htdocs" not in (conf / "sites" / "default").read_text()


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="NOT TESTED: no dirlisting here")
def test_themes(tree, start, tmp_path):
    """The installed themes are found, and none of the checkout."""
    (tmp_path / "listed").mkdir()
    (tmp_path / "listed" / "a.txt").write_text("a")
    themes = tree[0] / "lib/monkey/themes"
    assert {theme.name for theme in themes.iterdir()} == {"default", "guineo"}
    footer = themes / "default" / "footer.theme"
    footer.write_text(footer.read_text() + "<!-- installed -->\n")
    with start("listed", "--list").connect() as client:
        page = client.ask("/").body
        assert b'href="a.txt"' in page and page.endswith(b"<!-- installed -->\n")


def load(*names):
    """plugins.load with plugins of others, and those that the installed configuration uses."""
    return section("PLUGINS", {"Load": ["liana", *names, "cache", "static"]})


def compile_with(tree, tmp_path, source, *options, flags, define=(), package="monkey"):
    """Compiles by what pkg-config says; nothing that is installed elsewhere is seen."""
    pc = next(tree[0].glob("lib/**/monkey.pc"))
    env = {**os.environ, "PKG_CONFIG_LIBDIR": str(pc.parent), "PKG_CONFIG_PATH": ""}
    flags = subprocess.run(
        ["pkg-config", *define, *flags, package], env=env, capture_output=True, text=True, check=True
    ).stdout.split()
    assert str(tree[0]) in " ".join(flags)
    subprocess.run(["cc", source, *flags, *options], check=True, cwd=tmp_path)
    plugins = subprocess.run(["pkg-config", "--variable=plugindir", "monkey"], env=env, capture_output=True, text=True)
    return plugins.stdout.strip()


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="NOT TESTED: no pkg-config here")
@pytest.mark.parametrize("define", [[], ["--define-prefix"]], ids=["as it is", "define-prefix"])
def test_a_plugin_built_by_pkg_config(tree, start, tmp_path, define):
    (tmp_path / "hello.c").write_text(re.search(r"```c\n(.*?)```", PAGE.read_text(), re.S)[1])
    options = ["-shared", "-fPIC", "-o", "hello.so"]
    plugins = compile_with(tree, tmp_path, "hello.c", *options, flags=["--cflags"], define=define)
    shutil.copy(tmp_path / "hello.so", plugins)
    conf = tmp_path / "copy"
    shutil.copytree(tree[1], conf)
    (conf / "plugins.load").write_text(load("hello"))
    (conf / "sites" / "default").write_text(f"[HOST]\n    DocumentRoot {tree[2]}\n")
    with start("-c", conf).connect() as client:
        assert client.ask("/hello").body == b"Hello.\n"


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="NOT TESTED: no pkg-config here")
def test_a_plugin_with_websockets_built_by_pkg_config(tree, start, tmp_path):
    source = build.TOP / "tests" / "plugins" / "modules" / "wsprobe.c"
    options = ["-shared", "-fPIC", "-o", "wsprobe.so"]
    compile_with(tree, tmp_path, source, *options, flags=["--cflags", "--libs"], package="monkey-kit")
    conf = tmp_path / "copy"
    shutil.copytree(tree[1], conf)
    (conf / "plugins.load").write_text(load(f"{tmp_path}/wsprobe.so"))
    (conf / "sites" / "default").write_text(f"[HOST]\n    DocumentRoot {tree[2]}\n")
    with start("-c", conf).connect() as client:
        fields = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
        client.send(request("/ws/echo", *fields, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
        head = client.until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ") and b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head


@pytest.mark.skipif(build.SANITIZED, reason="programs need the sanitizer's library too")
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="NOT TESTED: no pkg-config here")
def test_a_program_built_by_pkg_config(tree, tmp_path):
    source = build.TOP / "docs" / "examples" / "embed.c"
    compile_with(tree, tmp_path, source, "-pthread", "-o", "embed", flags=["--cflags", "--libs"])
    assert (tmp_path / "embed").exists()


# ── the CMake package ──

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(guest VERSION 1 LANGUAGES C CXX)
find_package(monkey {version} REQUIRED)
add_executable(shared {examples}/embed/hello.c)
target_link_libraries(shared PRIVATE monkey::monkey)
add_executable(static {examples}/embed/hello.c)
target_link_libraries(static PRIVATE monkey::static)
target_link_options(static PRIVATE -fno-lto) # which takes 10 seconds
add_executable(cpp {tests}/small.cpp)
set_target_properties(cpp PROPERTIES CXX_STANDARD 17)
target_link_libraries(cpp PRIVATE monkey::monkey)
file(WRITE ${{CMAKE_BINARY_DIR}}/plugins "${{monkey_PLUGIN_DIR}}")
"""


def configure_project(tree, tmp_path, text, version):
    """A project that knows nothing but the installation's prefix. Returns the run of cmake, and its folder."""
    examples, flags = build.TOP / "docs" / "examples", " ".join(embed.FLAGS)
    fields = {"examples": examples, "tests": build.TOP / "tests" / "embed", "version": version}
    (tmp_path / "CMakeLists.txt").write_text(text.format(**fields))
    command = ["cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "out", f"-DCMAKE_PREFIX_PATH={tree[0]}"]
    command += [f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}"]
    command += [f"-DCMAKE_MODULE_LINKER_FLAGS={' '.join(services.list_libraries())}"]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True), tmp_path / "out"


def run_cmake_build(folder):
    subprocess.run(["cmake", "--build", folder], check=True, capture_output=True)


@pytest.mark.skipif(build.PRESET == "clang", reason="the libraries have the sanitizer of another compiler")
def test_programs_by_find_package(tree, tmp_path):
    run, out = configure_project(tree, tmp_path, PROJECT, "2.0")
    assert run.returncode == 0, run.stderr
    run_cmake_build(out)
    for name in ("shared", "static", "cpp"):
        with embed.Program(out / name) as program:
            assert program.ask().body == b"Hello, you!\n"
    links = subprocess.run(["ldd", out / "shared"], capture_output=True, text=True, check=True).stdout
    assert f"libmonkey.so.2 => {tree[0]}/" in links
    assert "libmonkey" not in subprocess.run(["ldd", out / "static"], capture_output=True, text=True).stdout
    assert pathlib.Path((out / "plugins").read_text()) == tree[0] / "lib/monkey"


def test_another_version_is_refused(tree, tmp_path):
    for version in ("1.9", "3", "2.99"):
        run, _ = configure_project(tree, tmp_path, PROJECT, version)
        assert run.returncode != 0 and "monkey-config.cmake, version: 2.0.0" in run.stderr


PLUGINS = """cmake_minimum_required(VERSION 3.25)
project(plugins VERSION 1 LANGUAGES C)
find_package(monkey {version} REQUIRED)
foreach(name IN ITEMS visitor echo)
    add_library(${{name}} MODULE {examples}/plugins/${{name}}.c)
    set_target_properties(${{name}} PROPERTIES PREFIX "")
endforeach()
target_link_libraries(visitor PRIVATE monkey::headers monkey::kit)
target_link_libraries(echo PRIVATE monkey::kit)
install(TARGETS visitor echo DESTINATION ${{monkey_PLUGIN_DIR}})
"""


def test_plugins_by_find_package(tree, start, tmp_path):
    run, out = configure_project(tree, tmp_path, PLUGINS, "2")
    assert run.returncode == 0, run.stderr
    run_cmake_build(out)
    subprocess.run(["cmake", "--install", out], check=True, capture_output=True)
    conf = tmp_path / "copy"
    shutil.copytree(tree[1], conf)
    (conf / "plugins.load").write_text(load("visitor", "echo"))
    (conf / "sites" / "default").write_text(f"[HOST]\n    DocumentRoot {tree[2]}\n")
    with start("-c", conf).connect() as client:
        assert client.ask("/visitor").body == b"Welcome"


def test_no_file_of_the_package_names_the_build(tree):
    """It can be moved, and used on another machine."""
    for path in tree[0].glob("lib/**/cmake/monkey/*.cmake"):
        text = path.read_text()
        assert str(build.TOP) not in text and "/libz" not in text, path


def test_the_unit_names_the_installed_files(tmp_path):
    install("/usr", tmp_path)
    unit = (tmp_path / "usr/lib/systemd/system/monkey.service").read_text()
    assert "ExecStart=/usr/bin/monkey --supervise -c /etc/monkey\n" in unit and "@" not in unit.split("[Service]")[0]
    install(tmp_path / "other")
    unit = (tmp_path / "other/lib/systemd/system/monkey.service").read_text()
    assert f"ExecStart={tmp_path}/other/bin/monkey --supervise -c {tmp_path}/other/etc/monkey\n" in unit


CLI = build.TOP / "tools" / "wr" / "watch_resources" / "cli.py"
MAKE_PAGE = """import pathlib, sys
sys.path.insert(0, sys.argv[1])
from watch_resources import report
print(report.__file__)
report.write_page(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))"""


def run_python(*args):
    """By the interpreter that Debian's packages belong to, which makes no files of its own in the installation."""
    command = ["/usr/bin/python3", "-B", *args]
    return subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)


def test_wr_is_whole(tree, tmp_path):
    """Everything that the program needs is installed, and nothing that a run in the checkout left there."""
    prefix, share = tree[0], tree[0] / "share/monkey/wr"
    assert os.access(prefix / "bin/wr", os.X_OK) and not (prefix / "bin/wr").is_symlink()
    source = build.TOP / "tools" / "wr"
    for folder in ("watch_resources", "data"):
        wanted, found = ({str(path.relative_to(top)) for path in (top / folder).rglob("*") if path.is_file()}
                         for top in (source, share))
        assert found == {name for name in wanted if "__pycache__" not in name}
    assert (prefix / "share/man/man1/wr.1").exists()
    if run_python("-c", "import click, matplotlib").returncode:
        pytest.skip("NOT TESTED: no python3-click or python3-matplotlib here")
    (tmp_path / "r.jsonl").write_text('{"type": "session", "id": "a"}\n')
    done = run_python("-c", MAKE_PAGE, share, tmp_path / "r.jsonl", tmp_path / "r.html")
    assert done.stdout == f"{share}/watch_resources/report.py\n", done.stderr
    assert "The file holds no rounds" in (tmp_path / "r.html").read_text()


@pytest.mark.skipif(not CLI.exists(), reason="NOT TESTED: there are no commands yet")
def test_wr_starts(tree):
    for program in (tree[0] / "bin/wr", build.TOP / "build" / build.PRESET / "bin" / "wr"):
        done = run_python(program, "--help")
        assert done.returncode == 0 and "report" in done.stdout, done.stderr


@pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="the preset has no plugin auth")
def test_mk_passwd_works(tree, tmp_path):
    path = tmp_path / "users"
    for args in (("-c", path, "ada"), ("-v", path, "ada")):
        command = [tree[0] / "bin/mk_passwd", *args]
        done = subprocess.run(command, input="a long password\n", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tree[0] / "share/man/man1/mk_passwd.1").exists()


@pytest.mark.skipif(build.PRESET == "small", reason="the small build has no monkey-convert")
def test_convert_works(tree, tmp_path):
    """With the package of the installation, and nothing of the checkout."""
    program = tree[0] / "lib/monkey/monkey-convert"
    assert os.access(program, os.X_OK) and not program.is_symlink()
    source, share = build.TOP / "tools/convert/convert", tree[0] / "share/monkey/convert/convert"
    wanted, found = ({path.name for path in top.iterdir() if path.suffix == ".py"} for top in (source, share))
    assert found == wanted
    (tmp_path / "a.nginx").write_text("server { listen 80; root /srv; }\n")
    done = subprocess.run([tree[0] / "bin/monkey", "convert", tmp_path / "a.nginx"], capture_output=True, text=True,
                          env=build.environment(), check=False)  # fmt: skip
    assert done.returncode == 0 and "    Root            /srv\n" in done.stdout, done.stderr


needs_dudac = pytest.mark.skipif(not (build.PLUGINS / "duda.so").exists(), reason="the preset has no plugin duda")


@needs_dudac
@pytest.mark.skipif(run_python("-c", "import click").returncode != 0, reason="NOT TESTED: no python3-click here")
def test_dudac_makes_builds_and_tests_a_service(tree, tmp_path):
    """With the headers, the server and the plugin of the installation, and nothing of the checkout."""
    program = tree[0] / "bin/dudac"
    assert os.access(program, os.X_OK) and not program.is_symlink()
    assert (tree[0] / "share/man/man1/dudac.1").exists()
    source, share = build.TOP / "tools/dudac/dudac", tree[0] / "share/monkey/dudac/dudac"
    wanted, found = ({str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}
                     for top in (source, share))
    assert found == {name for name in wanted if "__pycache__" not in name}
    made = run_python(program, "new", tmp_path / "apple")
    assert made.returncode == 0, made.stderr
    done = run_python(program, "test", tmp_path / "apple", "-v")
    assert done.returncode == 0 and "checks passed" in done.stdout, done.stdout + done.stderr
    assert f"-I{tree[0]}/include" in done.stdout and str(build.TOP) not in done.stdout + done.stderr


@needs_dudac
@pytest.mark.skipif(run_python("-c", "import click").returncode != 0, reason="NOT TESTED: no python3-click here")
@pytest.mark.parametrize("name", ["json", "digest"])
def test_packages_of_services(tree, tmp_path, name):
    """An example with packages passes its checks by the packages of the installation, which need no directive."""
    (example,) = (build.TOP / "docs/examples/services").glob(f"*-{name}")
    shutil.copytree(example, tmp_path / name)
    done = run_python(tree[0] / "bin/dudac", "test", tmp_path / name)
    assert done.returncode == 0 and "checks passed" in done.stdout, done.stdout + done.stderr
    packages = tree[0] / "lib/monkey/packages"
    packages.rename(packages.with_name("moved"))
    try:
        done = run_python(tree[0] / "bin/dudac", "test", tmp_path / name)
    finally:
        packages.with_name("moved").rename(packages)
    assert done.returncode == 1 and "cannot be loaded: " in done.stdout + done.stderr


def list_mapped(pid):
    """The files that a process has mapped."""
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {fields[5] for line in lines if len(fields := line.split(None, 5)) == 6 and fields[5][0] == "/"}


@needs_dudac
@pytest.mark.skipif(run_python("-c", "import click").returncode != 0, reason="NOT TESTED: no python3-click here")
def test_dudac_runs_a_service(tree, tmp_path):
    """With each command; the server has mapped nothing of the checkout."""
    program, folder = tree[0] / "bin/dudac", tmp_path / "apple"
    for words in (["new", folder, "-t", "rest"], ["build", folder], ["routes", folder]):
        done = run_python(program, *words)
        assert done.returncode == 0 and str(build.TOP) not in done.stdout + done.stderr, done.stderr
    assert "/apple/counters/:name" in done.stdout
    command = ["/usr/bin/python3", "-B", program, "run", folder, "-p", "0"]
    with subprocess.Popen(command, env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = next(line.split()[1] for line in process.stdout if line.startswith("serving"))
            with urllib.request.urlopen(url + "counters/", timeout=60) as answer:
                assert answer.read() == b"{}"
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            mapped = set().union(*map(list_mapped, children))
            assert str(tree[0] / "bin/monkey") in mapped
            assert not [path for path in mapped if path.startswith(f"{build.TOP}/")]
        finally:
            process.terminate()


def test_changed_files_of_the_configuration_are_kept(tmp_path):
    install(tmp_path)
    changed = tmp_path / "etc/monkey/monkey.conf"
    changed.write_text("# mine\n")
    (tmp_path / "etc/monkey/monkey.mime").unlink()
    output = install(tmp_path)
    assert f"Kept: {changed}" in output
    assert changed.read_text() == "# mine\n" and (tmp_path / "etc/monkey/monkey.mime").exists()
