# SPDX-License-Identifier: Apache-2.0
"""`dudac build`: what is compiled again, what the compiler says, and where things are found."""

import os
import pathlib
import re
import subprocess

import pytest

from harness import build
from running import DUDAC, PYTHON, environment, make_folder, make_source, run_dudac

HEADER = {"apple.c": '#include "text.h"\n' + make_source().replace('"one"', "TEXT"), "text.h": '#define TEXT "one"\n'}


def compiled(done):
    """The files that were compiled, and whether it was linked."""
    rows = [line.split() for line in done.stdout.splitlines()]
    return [row[1] for row in rows if row[0] == "compile"], any(row[0] == "link" for row in rows)


def test_a_build_makes_a_shared_object(tmp_path):
    folder = make_folder(tmp_path)
    done = run_dudac("build", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "build/apple.duda").read_bytes()[:4] == b"\x7fELF"
    assert (folder / "build/.gitignore").read_text() == "*\n"
    assert "built in" in done.stdout and "\x1b" not in done.stdout


def test_without_a_folder_the_current_one_is_built(tmp_path):
    folder = make_folder(tmp_path)
    done = run_dudac("build", cwd=folder)
    assert done.returncode == 0 and done.stdout.endswith("s\n") and "build/apple.duda: built in" in done.stdout


def test_what_has_not_changed_is_kept(tmp_path):
    folder = make_folder(tmp_path, files={**HEADER, "other.c": "int other;\n"})
    assert compiled(run_dudac("build", folder)) == (["apple.c", "other.c"], True)
    inode = os.stat(folder / "build/apple.duda").st_ino
    done = run_dudac("build", folder)
    assert compiled(done) == ([], False) and "nothing to do" in done.stdout
    assert os.stat(folder / "build/apple.duda").st_ino == inode


CHANGES = [
    ({"other.c": "int another;\n"}, ["other.c"]),
    ({"text.h": '#define TEXT "two"\n'}, ["apple.c"]),
    ({"new.c": "int new;\n"}, ["new.c"]),
    ({"service.toml": 'ldflags = ["-lm"]\n'}, []),
    ({"service.toml": 'cflags = ["-DX"]\nldflags = ["-lm"]\n'}, ["apple.c", "new.c", "other.c"]),
]


def test_what_has_changed_is_built(tmp_path):
    folder = make_folder(tmp_path, files={**HEADER, "other.c": "int other;\n"})
    run_dudac("build", folder)
    for change, expected in CHANGES:
        make_folder(tmp_path, files=change)
        assert compiled(run_dudac("build", folder)) == (expected, True), change
        assert compiled(run_dudac("build", folder)) == ([], False), change


def set_times(path, seconds):
    """Moves the times of a file, as a copy that keeps them or a clock that is set back does."""
    status = path.stat()
    os.utime(path, (status.st_atime + seconds, status.st_mtime + seconds))


@pytest.mark.parametrize("seconds", [-100_000, 100_000])
def test_a_file_that_is_replaced_by_an_older_or_newer_one(tmp_path, seconds):
    folder = make_folder(tmp_path)
    run_dudac("build", folder)
    (tmp_path / "other.c").write_text(make_source("two"))
    set_times(tmp_path / "other.c", seconds)
    (tmp_path / "other.c").rename(folder / "apple.c")
    assert compiled(run_dudac("build", folder)) == (["apple.c"], True)
    assert b"two" in (folder / "build/apple.duda").read_bytes()
    assert compiled(run_dudac("build", folder)) == ([], False)


def test_objects_from_the_future_are_not_newer(tmp_path):
    """As after a clock that was set back."""
    folder = make_folder(tmp_path)
    run_dudac("build", folder)
    for path in (folder / "build").rglob("*.*"):
        set_times(path, 100_000)
    make_folder(tmp_path, text="two")
    assert compiled(run_dudac("build", folder)) == (["apple.c"], True)


def test_a_file_that_changes_while_it_is_compiled(tmp_path):
    """The object is that of the old text; the next build notices."""
    folder = make_folder(tmp_path)
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\ngcc "$@" || exit 1\ncase " $* " in *" -c "*) '
                        f'[ -e {tmp_path}/new.c ] && mv {tmp_path}/new.c {folder}/apple.c ;; esac\nexit 0\n')
    compiler.chmod(0o755)
    (tmp_path / "new.c").write_text(make_source("two"))
    set_times(tmp_path / "new.c", -100_000)
    env = {"CC": compiler}
    assert compiled(run_dudac("build", folder, env=env)) == (["apple.c"], True)
    assert compiled(run_dudac("build", folder, env=env)) == (["apple.c"], True)
    assert b"two" in (folder / "build/apple.duda").read_bytes()
    assert compiled(run_dudac("build", folder, env=env)) == ([], False)


def test_two_folders_with_one_build_folder(tmp_path):
    one, two = (make_folder(tmp_path / name, text=name) for name in ("one", "two"))
    for folder in (one, two):
        assert compiled(run_dudac("build", folder, "-B", tmp_path / "made")) == (["apple.c"], True)
    assert b"two" in (tmp_path / "made/apple.duda").read_bytes()


def test_sources_of_one_name(tmp_path):
    files = {"apple.c": make_source(), "apple.x.c": "int x;\n", "lib/apple.c": "int other;\n",
             "apple.S": '.section .note.GNU-stack,"",@progbits\n', "service.toml": 'sources = ["**/*.c", "*.S"]\n'}
    folder = make_folder(tmp_path, files=files)
    done = run_dudac("build", folder)
    assert done.returncode == 0 and len(compiled(done)[0]) == 4, done.stderr
    assert {path.name for path in (folder / "build/obj").rglob("*.o")} == {"apple.c.o", "apple.x.c.o", "apple.S.o"}


def test_a_source_that_is_gone_is_linked_no_more(tmp_path):
    folder = make_folder(tmp_path, files={**HEADER, "other.c": "int other;\n"})
    run_dudac("build", folder)
    (folder / "other.c").unlink()
    assert compiled(run_dudac("build", folder)) == ([], True)
    assert b"other" not in (folder / "build/apple.duda").read_bytes()


def test_a_header_that_is_gone_is_an_error(tmp_path):
    folder = make_folder(tmp_path, files=HEADER)
    run_dudac("build", folder)
    (folder / "text.h").unlink()
    done = run_dudac("build", folder)
    assert done.returncode == 1 and "text.h: No such file" in done.stderr


def test_an_error_is_shown_as_the_compiler_prints_it(tmp_path):
    folder = make_folder(tmp_path, files={"apple.c": make_source() + "int x = y;\n", "b.c": "int a\n", "c.c": ""})
    done = run_dudac("build", folder)
    assert done.returncode == 1
    assert "apple.c:15:9: error: ‘y’ undeclared" in done.stderr and "b.c:1:1: error: expected" in done.stderr
    assert done.stderr.endswith("dudac: apple.c, b.c do not compile\n")
    assert not (folder / "build/apple.duda").exists()
    make_folder(tmp_path, files={"apple.c": make_source(), "b.c": ""})
    assert compiled(run_dudac("build", folder)) == (["apple.c", "b.c"], True)


def test_a_warning_is_shown_and_the_service_built(tmp_path):
    done = run_dudac("build", make_folder(tmp_path, files={"apple.c": "static int unused;\n" + make_source()}))
    assert done.returncode == 0 and "‘unused’ defined but not used" in done.stderr


# What would crash later: a pointer cut to the size of an int, arguments that are not passed, a result that is not set.
TYPE_MISTAKES = {
    "copy_name": "char *f(void)\n{\n    return copy_name();\n}",
    "makes pointer from integer": "int n;\nchar *f(void)\n{\n    return n;\n}",
    "makes integer from pointer": "int f(char *s)\n{\n    return s;\n}",
    "incompatible": "void g(int *p);\nvoid f(char **p)\n{\n    g(p);\n}",
    "incompatible type": '#include <duda/duda.h>\nstatic void h(int n)\n{\n    (void)n;\n}\n'
                         'void *f(void)\n{\n    return router->get("/", h);\n}',
    "defaults to ‘int’": "f(void)\n{\n    return 1;\n}",
    "no return statement": "char *f(void)\n{\n}",
}


@pytest.mark.parametrize("words", [pytest.param(words, id=f"{number}") for number, words in enumerate(TYPE_MISTAKES)])
def test_what_would_crash_is_an_error_of_the_build(tmp_path, words):
    done = run_dudac("build", make_folder(tmp_path, files={"apple.c": make_source(), "b.c": TYPE_MISTAKES[words]}))
    assert done.returncode == 1 and re.search(rf"^b\.c:\d+:\d+: error: .*{words.split()[0]}", done.stderr, re.M)
    assert done.stderr.endswith("dudac: b.c does not compile\n")


def test_the_originals_dialect_is_no_error(tmp_path):
    """Services of its API call functions without a declaration; the flags say so also to compilers that refuse it."""
    source = ('#include "webservice.h"\nDUDA_REGISTER("a", "b");\nstatic count;\n'
              "int duda_main()\n{\n    return note(&count);\n}\n")
    files = {"apple.c": source, "b.c": "note(n)\nint *n;\n{\n    return *n;\n}\n", "Makefile.in": "NAME = apple\n"}
    done = run_dudac("build", make_folder(tmp_path, files=files), "-v")
    assert done.returncode == 0 and "-Wno-error=implicit-function-declaration" in done.stdout


def test_a_missing_function_is_an_error_of_the_build(tmp_path):
    """Not only when the server loads the service. The last good build is kept."""
    folder = make_folder(tmp_path)
    run_dudac("build", folder)
    before = (folder / "build/apple.duda").read_bytes()
    make_folder(tmp_path, files={"b.c": "void gone(void);\nvoid b(void);\nvoid b(void)\n{\n    gone();\n}\n"})
    done = run_dudac("build", folder)
    assert done.returncode == 1 and "undefined reference to `gone'" in done.stderr
    assert done.stderr.endswith("dudac: apple cannot be linked\n")
    assert (folder / "build/apple.duda").read_bytes() == before
    assert run_dudac("build", folder).returncode == 1


def test_flags_of_a_makefile_in(tmp_path):
    files = {"Makefile.in": "NAME = pear\nDEFS = -DTEXT='\"a b\"'\nINCDIR = -Iinc\nLDFLAGS = -lm\nOBJECTS = src/a.o\n",
             "src/a.c": '#include <math.h>\n#include "part.h"\n' + make_source().replace('"one"', "TEXT")
             + "double root(double);\ndouble root(double x)\n{\n    return part(sqrt(x));\n}\n",
             "inc/part.h": "#define part(x) (x)\n"}
    done = run_dudac("build", make_folder(tmp_path, files=files))
    assert done.returncode == 0, done.stderr
    assert b"a b" in (tmp_path / "apple/build/pear.duda").read_bytes()


def test_another_build_folder(tmp_path):
    folder = make_folder(tmp_path)
    folder.chmod(0o555)
    assert run_dudac("build", folder, "-B", tmp_path / "made here").returncode == 0
    assert (tmp_path / "made here/apple.duda").exists() and os.listdir(folder) == ["apple.c"]


@pytest.mark.parametrize("build_dir", [".", ".."])
def test_a_build_folder_with_the_sources_in_it(tmp_path, build_dir):
    for command in (["build"], ["run", "--watch", "-p", 0]):
        done = run_dudac(*command, "-B", build_dir, cwd=make_folder(tmp_path))
        assert done.returncode == 1 and "cannot be the build folder, because the sources are in it" in done.stderr


def test_a_build_folder_that_exists_gets_no_gitignore(tmp_path):
    (tmp_path / "out").mkdir()
    assert run_dudac("build", make_folder(tmp_path), "-B", tmp_path / "out").returncode == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["apple.duda", "obj"]


def test_names_that_a_shell_would_split(tmp_path):
    folder = make_folder(tmp_path / "a b $x #", files={"the file.c": make_source(), "a'b.c": "int b;\n"})
    assert compiled(run_dudac("build", folder))[1]
    done = run_dudac("build", folder)
    assert done.returncode == 0 and "nothing to do" in done.stdout, done.stderr


@pytest.mark.parametrize("cc, sentence", [
    ("no-such-cc", 'there is no compiler "no-such-cc", which the environment variable CC names'),
    ("false", "apple.c does not compile"),
    ("gcc '", "the environment variable CC: No closing quotation"),
    ("/", 'there is no compiler "/", which the environment variable CC names'),
])
def test_a_wrong_compiler(tmp_path, cc, sentence):
    done = run_dudac("build", make_folder(tmp_path), env={"CC": cc})
    assert (done.returncode, done.stderr) == (1, f"dudac: {sentence}\n")


def test_no_compiler(tmp_path):
    (tmp_path / "empty").mkdir()
    done = run_dudac("build", make_folder(tmp_path), env={"PATH": tmp_path / "empty"})
    sentence = "there is no C compiler: install the Debian package gcc, or set CC"
    assert (done.returncode, done.stderr) == (1, f"dudac: {sentence}\n")


def test_cc_may_have_arguments(tmp_path):
    folder = make_folder(tmp_path)
    assert run_dudac("build", folder, env={"CC": "gcc -O0"}).returncode == 0
    assert "gcc -O0 -std=gnu17" in (folder / "build/obj/apple/apple.c.cmd").read_text()


def test_cc_may_be_a_relative_path(tmp_path):
    make_folder(tmp_path)
    (tmp_path / "cc").symlink_to("/usr/bin/gcc")
    done = run_dudac("build", "apple", cwd=tmp_path, env={"CC": "./cc"})
    assert done.returncode == 0, done.stderr


def test_a_compiler_with_much_to_say(tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\nyes '\033[31merror' | head -c 5000000\nexit 1\n")
    compiler.chmod(0o755)
    done = run_dudac("build", make_folder(tmp_path), env={"CC": compiler})
    assert done.returncode == 1 and len(done.stderr) < 1_200_000
    assert done.stderr.endswith("more bytes of output are left out)\ndudac: apple.c does not compile\n")


def test_a_folder_that_vanishes_while_it_is_compiled(tmp_path):
    folder = make_folder(tmp_path)
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\nrm -r {folder}\n')
    compiler.chmod(0o755)
    done = run_dudac("build", folder, env={"CC": compiler})
    assert done.returncode == 1 and done.stderr.startswith("dudac: ") and done.stderr.count("\n") == 1, done.stderr
    assert not folder.exists()


def test_a_current_folder_that_is_gone(tmp_path):
    """Of all commands."""
    for words in ("build", "run -p 0", "run --watch -p 0", "test", "routes", "new apple", "-w ."):
        script = f'mkdir gone && cd gone && rmdir ../gone && exec {PYTHON} -B {DUDAC} {words}'
        done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (1, "dudac: the current folder has been deleted\n"), words


def test_a_folder_that_cannot_be_written(tmp_path):
    folder = make_folder(tmp_path)
    (folder / "build").write_text("a file")
    done = run_dudac("build", folder)
    assert done.returncode == 1
    assert done.stderr == f"dudac: {folder}/build: Not a directory; --build-dir names another folder\n"


def test_colours_on_a_terminal(tmp_path):
    """`script` gives it one."""
    folder = make_folder(tmp_path, files={"apple.c": "int x = y;\n"})
    command = f"{PYTHON} -B {DUDAC} build {folder}"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True, check=False,
                          env=environment(), stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 1 and "\x1b[01;31m" in done.stdout and "\x1b[36mcompile" in done.stdout
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True, check=False,
                          env=environment({"NO_COLOR": "1"}), stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 1 and "\x1b" not in done.stdout


@pytest.mark.parametrize("arguments, status", [
    ([], 0), (["--help"], 0), (["-h"], 0), (["--version"], 0), (["nonsense"], 2), (["build", "a", "b"], 2),
    (["run", "-p", "x"], 2), (["run", "-p", "65536"], 2), (["-p", "1"], 2), (["build", "gone"], 1)])
def test_exit_statuses(tmp_path, arguments, status):
    done = run_dudac(*arguments, cwd=tmp_path)
    assert done.returncode == status and "Traceback" not in done.stderr, done.stderr


def test_it_works_through_a_link(tmp_path):
    """The server is the one next to the program that the link leads to."""
    (tmp_path / "dudac").symlink_to(DUDAC)
    done = run_dudac("build", make_folder(tmp_path), program=tmp_path / "dudac")
    assert done.returncode == 0, done.stderr


def test_a_package_without_headers(tmp_path):
    """A copy of the program alone."""
    source = build.TOP / "tools" / "dudac"
    files = [source / "start.py", *source.glob("dudac/*.py"), *source.glob("dudac/templates/**/*")]
    for path in filter(pathlib.Path.is_file, files):
        copy = tmp_path / "a/b" / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    done = run_dudac("build", make_folder(tmp_path), program=tmp_path / "a/b/start.py")
    assert done.returncode == 1 and done.stderr.startswith("dudac: the headers of Duda are missing: there is no")
