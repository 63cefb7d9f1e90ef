# SPDX-License-Identifier: Apache-2.0
"""What a source folder is: the new layout, Makefile.in of the original, and what is wrong with others."""

import os

import pytest
from dudac import DudacError
from dudac.checks import find_tests
from dudac.folder import read_folder
from dudac.makefile import Makefile

from running import make_folder, make_source

OLD = {"Makefile.in": "NAME = pear\nCC = gcc\nCFLAGS = -Wall\nLDFLAGS = -lm\nDEFS = -DA=1\nINCDIR = -I./inc\n"
                      "OBJECTS = main.o sub/part.o\n", "main.c": make_source(), "sub/part.c": "int part;\n"}


def sources(service):
    return [str(unit.source.relative_to(service.folder)) for unit in service.units]


def make(top, text):
    path = top / "Makefile.in"
    path.write_text(text)
    return Makefile(path)


# ── the new layout ──


@pytest.mark.parametrize("folder, name", [
    ("apple", "apple"), ("01-hello", "hello"), ("2nd", "2nd"), ("a.b_c-d", "a.b_c-d")])
def test_a_service_is_named_like_its_folder(tmp_path, folder, name):
    [service] = read_folder(make_folder(tmp_path, folder, {"x.c": make_source()}))
    assert (service.name, service.level, service.path) == (name, 3, f"/{name}/")
    assert service.file == tmp_path / folder / "build" / f"{name}.duda"


def test_all_files_in_c_are_sources(tmp_path):
    [service] = read_folder(make_folder(tmp_path, files={"b.c": "", "a.c": "", "a.h": "", "sub/c.c": ""}))
    assert sources(service) == ["a.c", "b.c"]


def test_the_folders_of_a_service(tmp_path):
    folder = make_folder(tmp_path, files={"a.c": "", "html/index.html": "", "conf/x": "", "logs": "no folder"})
    [service] = read_folder(folder)
    assert service.folders == {"DocumentRoot": folder / "html", "ConfDir": folder / "conf"}


def test_settings_of_service_toml(tmp_path):
    settings = 'name = "pear"\nsources = ["*.c", "lib/*.c"]\ncflags = ["-DX=1"]\nldflags = ["-lm"]\nroot = true\n'
    [service] = read_folder(make_folder(tmp_path, files={"a.c": "", "lib/b.c": "", "service.toml": settings}))
    assert (service.name, service.root, service.path, service.ldflags) == ("pear", True, "/", ["-lm"])
    assert sources(service) == ["a.c", "lib/b.c"] and all(unit.flags == ["-DX=1"] for unit in service.units)


@pytest.mark.parametrize("text, sentence", [
    ("names = 1", 'there is no "names"; did you mean "name"?'),
    ("zzzz = 1", 'there is no "zzzz"; it can have name, sources, cflags, ldflags, root'),
    ("name = 1", "name must be a text"),
    ("cflags = [1]", "cflags must be a list of texts"),
    ("root = 'yes'", "root must be true or false"),
    ("sources = ['*.cc']", "no file matches *.cc"),
    ("sources = ['/etc/*.c']", "no file matches /etc/*.c"),
    ("sources = ['']", "no file matches "),
    ("name = '../x'", "'../x' cannot be the name of a service"),
    ("name = ", "service.toml: Invalid value"),
])
def test_wrong_settings(tmp_path, text, sentence):
    folder = make_folder(tmp_path, files={"a.c": "", "service.toml": text})
    with pytest.raises(DudacError) as error:
        read_folder(folder)
    assert sentence in str(error.value)


@pytest.mark.parametrize("files, path, sentence", [
    ({"apple.c": ""}, "pear", "there is no folder "),
    ({"apple.c": ""}, "apple/apple.c", "is no folder; name the folder of the service's sources"),
    ({"readme": ""}, "apple", "has no sources: no file matches *.c"),
    ({"Makefile.in": "NAME = x\n"}, "apple", "Makefile.in has no OBJECTS, and "),
    ({"Makefile.in": "NAME = x\nOBJECTS = gone.o\n"}, "apple", "gone.c does not exist, which the service x is made of"),
    ({"Makefile.in": "NAME = a b\n", "a.c": ""}, "apple", "'a b' cannot be the name of a service"),
])
def test_wrong_folders(tmp_path, files, path, sentence):
    make_folder(tmp_path, files=files)
    with pytest.raises(DudacError) as error:
        read_folder(tmp_path / path)
    assert sentence in str(error.value)


@pytest.mark.parametrize("own, name", [
    ({"apple.c": ""}, "apple"), ({"service.toml": "sources = ['src/*.c']\n"}, "apple"),
    ({"Makefile.in": "NAME = pear\n", "main.c": ""}, "pear"), ({}, "zlib"),
])
def test_a_library_with_a_makefile_in(tmp_path, own, name):
    """It does not make the folder one of the original layout."""
    folder = make_folder(tmp_path, files={"src/zlib/Makefile.in": "NAME = zlib\n", "src/zlib/z.c": "", "src/a.c": "",
                                          **own})
    assert read_folder(folder)[0].name == name


def test_too_many_folders(tmp_path, monkeypatch):
    """As of a home directory."""
    monkeypatch.setattr("dudac.folder.FOLDERS_MAX", 5)
    for number in range(5):
        (tmp_path / "x" / str(number)).mkdir(parents=True)
    with pytest.raises(DudacError) as error:
        read_folder(tmp_path / "x")
    assert "x has more than 5 folders; name the folder of the service's sources" in str(error.value)


@pytest.mark.parametrize("name, files", [
    ("service.toml", {"a.c": ""}), ("Makefile.in", {"b.c": ""}), ("checks.toml", {"a.c": ""})])
def test_a_pipe_is_not_read(tmp_path, name, files):
    """It would be waited for."""
    folder = make_folder(tmp_path, files=files)
    os.mkfifo(folder / name)
    with pytest.raises(DudacError) as error:
        (find_tests if name == "checks.toml" else read_folder)(folder)
    assert str(error.value) == f"{folder}/{name} is no file"


@pytest.mark.parametrize("text, sentence", [
    (b"\xff", "service.toml: 'utf-8' codec can't decode byte 0xff"), (b"x=" + b"[" * 5000, "are nested too deeply"),
    (b"#" * (1 << 20) + b"#", "service.toml is larger than 1048576 bytes"), (b"name = 'a\\nb'", "cannot be the name"),
    (b"sources = ['\x00']", "service.toml:1:13: Found invalid character"),
    (b'sources = ["\\u0000"]', "no file matches"),
])
def test_odd_bytes_in_settings(tmp_path, text, sentence):
    folder = make_folder(tmp_path, files={"a.c": ""})
    (folder / "service.toml").write_bytes(text)
    with pytest.raises(DudacError) as error:
        read_folder(folder)
    assert sentence in str(error.value)


def test_a_build_folder_with_control_characters(tmp_path):
    with pytest.raises(DudacError) as error:
        read_folder(make_folder(tmp_path), tmp_path / "a\nb")
    assert "has control characters" in str(error.value)


# ── the original layout ──


def test_a_makefile_in(tmp_path):
    [service] = read_folder(make_folder(tmp_path, "x", OLD))
    assert (service.name, service.compiler, service.ldflags) == ("pear", "gcc", ["-lm"])
    assert sources(service) == ["main.c", "sub/part.c"]
    assert service.units[0].flags == ["-Wall", "-DA=1", "-I./inc"]


RULES = "\n.c.o:\n\t$(CC) $(CFLAGS) $(DEFS) -I$(INCDIR) -fPIC -c $<\n\nclean:\n\trm -rf *.o *~ *.duda\n"


@pytest.mark.parametrize("rule", [
    "all: pear.duda\n\npear.duda: $(OBJECTS)\n\t$(CC) -shared -o $@ $^ -lc\n",
    "pear.duda : $(OBJECTS) ; $(CC) -shared -o $@ $^\n",
    "OUT = ../pear.duda\n\nall: $(OUT)\n$(OUT): $(OBJECTS)\n\t$(CC) -shared -o $@ $^ -lc\n",
    "NAME = pear\n\n$(NAME).duda: $(OBJECTS)\n\t$(CC) -shared -o $@ $^ -lc\n",
    "NAME = pear\n\napple.duda: $(OBJECTS)\n\t$(CC) -shared -o $@ $^ -lc\n"])
def test_a_makefile_in_of_2012(tmp_path, rule):
    """The service is named by its rule, and INCDIR begins with a folder."""
    text = f"CC = gcc -g -Wall -DDEBUG\nINCDIR = ../src -I../../include/ -DA -I inc\nOBJECTS = main.o\n{rule}{RULES}"
    [service] = read_folder(make_folder(tmp_path, "x", {"Makefile.in": text, "main.c": make_source()}))
    assert (service.name, service.compiler, sources(service)) == ("pear", "gcc -g -Wall -DDEBUG", ["main.c"])
    assert service.units[0].flags == ["-I../src", "-I../../include/", "-DA", "-I", "inc"]


def test_a_name_with_dots_leads_to_the_folders_of_another(tmp_path):
    """In service/src, whose shared object the original has made in service."""
    make_folder(tmp_path, "service", {"src/Makefile.in": "NAME = ../pear\nOBJECTS = a.o\n", "src/a.c": "",
                                      "html/index.html": "", "src/data/x": "", "data/y": ""})
    [service] = read_folder(tmp_path / "service/src")
    assert service.name == "pear"
    assert service.folders == {"DocumentRoot": tmp_path / "service/html", "DataDir": tmp_path / "service/src/data"}
    [same] = read_folder(tmp_path / "service")
    assert (same.name, same.folders["DocumentRoot"]) == ("pear", tmp_path / "service/html")


def test_sub_folders_with_a_makefile_in(tmp_path):
    """Without a NAME, or with the same, they are part of the service; with another they are another service."""
    folder = make_folder(tmp_path, "x", {
        "Makefile.in": "NAME = pear\nCFLAGS = -DTOP\nOBJECTS = main.o\n", "main.c": "",
        "part/Makefile.in": "CFLAGS = -DPART\nOBJECTS = part.o\n", "part/part.c": "",
        "same/Makefile.in": "NAME = ../pear\nOBJECTS = same.o\n", "same/same.c": "",
        "tool/Makefile.in": "NAME = tool\nOBJECTS = tool.o\n", "tool/tool.c": ""})
    pear, tool = read_folder(folder)
    assert (pear.name, tool.name) == ("pear", "tool")
    assert sources(pear) == ["main.c", "part/part.c", "same/same.c"]
    assert [unit.flags for unit in pear.units] == [["-DTOP"], ["-DPART"], []]


def test_an_older_makefile_with_rules(tmp_path):
    """Those before 2013 are complete: recipes and rules are left out, and sources found without OBJECTS."""
    text = "NAME=pear\nall: $(NAME).duda\n\tgcc -c $< NAME=other\n%.o: %.c\n\t@echo x\n-include Makefile.deps\n"
    [service] = read_folder(make_folder(tmp_path, "x", {"Makefile.in": text, "a.c": ""}))
    assert (service.name, sources(service)) == ("pear", ["a.c"])


@pytest.mark.parametrize("text, name", [
    ("CFLAGS = -g\n", "apple"), ("NAME =\n", "apple"), ("NAME = /\n", "apple"), ("NAME = pear.duda\n", "pear"),
    ("NAME = ../../pear/\n", "pear")])
def test_names_of_a_makefile_in(tmp_path, text, name):
    [service] = read_folder(make_folder(tmp_path, files={"Makefile.in": text, "a.c": ""}))
    assert service.name == name


@pytest.mark.parametrize("text", ["NAME = ..\n", "NAME = a\x01b\n", "NAME = -x\n", "NAME = a\0b\n"])
def test_names_that_no_service_can_have(tmp_path, text):
    with pytest.raises(DudacError) as error:
        read_folder(make_folder(tmp_path, files={"Makefile.in": text, "a.c": ""}))
    assert "cannot be the name of a service" in str(error.value)


def test_dudac_conf_is_tolerated(tmp_path):
    files = {**OLD, "dudac.conf": "[MONKEY]\n    version branch@dst-1\n[DUDA]\n    https_repo https://x\n"}
    assert read_folder(make_folder(tmp_path, "x", files))[0].name == "pear"


# ── the variables of a makefile ──


@pytest.mark.parametrize("text, words", [
    ("V = a b", ["a", "b"]),
    ("V=a\nV+=b", ["a", "b"]),
    ("V = a\nV ?= b\nW ?= c", ["a"]),
    ("V = a \\\n    b # a comment", ["a", "b"]),
    ("A = x\nV = $(A)y ${A} $A", ["xy", "x", "x"]),
    ("V = $(A)\nA = late", ["late"]),
    ("A = early\nV := $(A)\nA = late", ["early"]),
    ("V = -DT='\"a b\"' \"c d\"", ['-DT="a b"', "c d"]),
    ("V = $(shell printf 'a\\nb')", ["a", "b"]),
    ("V = `echo -lm` -lx", ["-lm", "-lx"]),
    ("V = a $(shell exit 3) `exit 3`", ["a"]),
    ("V = $(wildcard *.z) $(UNKNOWN)", ["a.z", "b.z"]),
    ("O = a.o b.o\nV = $(O:.o=.c)", ["a.c", "b.c"]),
    ("V = $$x", ["$x"]),
    ("export V = a", ["a"]),
    ("O = a.o b.x\nV = $(O:%.o=src/%.c)", ["src/a.c", "b.x"]),
    ("V = $(patsubst %.z,%.o,$(wildcard *.z))", ["a.o", "b.o"]),
    ("V = $(patsubst a%,b,ab ba x,c)", ["b", "ba", "x,c"]),
    ("V = $(wildcard HERE/a.*) $(wildcard )", ["HERE/a.z"]),
    ("V = a\r\nV += b \\\r\n\tc\r\n", ["a", "b", "c"]),
    ("ifndef X\n\tV = a\nendif\nall:\n\tV = b\n", ["a"]),
    ("ifdef X\nV = a\nelse\nV = b\nendif\nV += c", ["b", "c"]),
    ("X = x\nifdef X\nifeq ($(X),y)\nV = a\nelse ifneq ($(X) , y)\nV = b\nelse\nV = c\nendif\nendif", ["b"]),
    ("ifdef X\nifeq (a,a)\nV = a\nelse\nV = b\nendif\nelse\nV = c\nendif\nendif\nelse", ["c"]),
    ("X = a,b\nifeq \"$(X)\" 'a,b'\nV = a\nendif\nifeq ($(patsubst a%,b%,ac),bc)\nV += b\nendif", ["a", "b"]),
    ("V = $(subst a,b,banana x) $(subst ,c,a)", ["bbnbnb", "x", "ac"]),
    ("V = $(addprefix s/,a b) $(addsuffix .o,a b)", ["s/a", "s/b", "a.o", "b.o"]),
    ("V = $(filter %.c x,a.c x y) $(filter-out a% b,ab b bb)", ["a.c", "x", "bb"]),
    ("V = $(sort b a b) $(strip  a  b ) $(firstword a b) $(lastword a b)", ["a", "b", "a", "b", "a", "b"]),
    ("V = $(dir a s/b) $(notdir s/t/a.c b) $(basename s.t/a.c s.t/b)", ["./", "s/", "a.c", "b", "s.t/a", "s.t/b"]),
    ("V = $(CURDIR) $(PWD)", ["HERE", "HERE"]),
    ("-include none\nsinclude none a.z\nV = $(notdir $(addsuffix .c,$(basename a.o)))", ["a.c"]),
    ("\tV := a\n", ["a"]),
    ("all: V\n\tV = a\n", []),
    ("V = a\x0cb", ["a\x0cb"]),
    ("V = a\u2028W = b", ["a\u2028W", "=", "b"]),
    ("V = a # b \\\nV = c", ["a"]),
    ("V = -DX=\\#1", ["-DX=#1"]),
    ("V = é", ["é"]),
    ("V = $(shell printf '\\377')", ["\udcff"]),
    ("V = $", ["$"]),
    ("", []),
])
def test_variables(tmp_path, text, words):
    for name in ("a.z", "b.z"):
        (tmp_path / name).touch()
    here = str(tmp_path)
    makefile = make(tmp_path, text.replace("HERE", here))
    assert makefile.words("V") == [word.replace("HERE", here) for word in words]


def test_objects_of_a_rule(tmp_path):
    """Without OBJECTS, and with libraries among the objects, which the linker gets."""
    text = "OBJ = main.o part/lib.a\nall: pear.duda\npear.duda: $(OBJ) Makefile ; cc $^\nLDFLAGS = -lm\nother: x.o\n"
    [service] = read_folder(make_folder(tmp_path, "x", {"Makefile.in": text, "main.c": "", "x.c": ""}))
    assert (service.name, sources(service)) == ("pear", ["main.c"])
    assert service.ldflags == [f"{tmp_path}/x/part/lib.a", "-lm"]


def test_parts_of_several_services(tmp_path):
    """A folder without a NAME belongs to the nearest one above, with its libraries."""
    folder = make_folder(tmp_path, "x", {
        "a/Makefile.in": "NAME = pear\n", "a/main.c": "", "b/Makefile.in": "NAME = plum\n", "b/main.c": "",
        "b/part/Makefile.in": "LDFLAGS = -lm\n", "b/part/part.c": "", "c/Makefile.in": "CFLAGS =\n", "c/c.c": ""})
    assert [(each.name, sources(each), each.ldflags) for each in read_folder(folder)] == [
        ("pear", ["main.c"], []), ("plum", ["main.c", "part/part.c"], ["-lm"]), ("c", ["c.c"], [])]


def test_bytes_of_another_encoding(tmp_path):
    """In a comment, as of 2012."""
    path = tmp_path / "Makefile.in"
    path.write_bytes(b"# caf\xe9\r\nNAME = pear\r\n")
    assert Makefile(path).get("NAME") == "pear"


@pytest.mark.parametrize("text, sentence", [
    ("V = $(V)", "a variable refers to itself"),
    ("V = $(A", "$( is never closed"),
    ("include none", "there is no file none, which it includes"),
    ("include Makefile.in", "more than 100 files are included"),
    ("V = 'a", "V: No closing quotation"),
    ("V = a \\", "V: No escaped character"),
    ("V0 = a\n" + "".join(f"V{n} = $(V{n - 1})$(V{n - 1})\n" for n in range(1, 30)) + "V = $(V29)",
     "a variable has more than 10000 references"),
    (f"A = {'a' * 10_000}\nV = {'$(A)' * 200}", "a variable is longer than 1048576 bytes"),
    (f"A = {'a' * 5_000}\nV = $(subst a,$(A),$(A))", "the arguments of a function are too long"),
    (f"A = {'a ' * 5_000}\nV = $(A:a={'b' * 5_000})", "the arguments of a function are too long"),
    ("V = $(shell head -c 2000000 /dev/zero | tr '\\0' a)", "a variable is longer than 1048576 bytes"),
])
def test_wrong_variables(tmp_path, text, sentence):
    with pytest.raises(DudacError) as error:
        make(tmp_path, text).words("V")
    assert sentence in str(error.value)


@pytest.mark.parametrize("text", [
    f"X = $(subst a,b,{'a' * 500_000})",
    f"ifeq {chr(34) * 500_000}x\nendif",
    f"{'$(' * 200_000}) : a",
    "ifeq (a,a)\n" * 90_000,
], ids=["argument", "quotes", "rule", "conditionals"])
def test_long_texts(tmp_path, text):
    """Their time grows with their length, not with its square, which would take minutes."""
    make(tmp_path, f"V = a\n{text}\n")


# ── the level of the API ──


@pytest.mark.parametrize("files, level", [
    ({"a.c": "#include <duda/duda.h>\n"}, 3),
    ({"a.c": '#include "webservice.h"\nvoid f() { router->map("/", x); }\n'}, 2),
    ({"Makefile.in": "CFLAGS = -Iinc -I ../x\n", "a.c": '#include "a.h"\n', "inc/a.h": '#include "b.h"\n',
      "../x/b.h": '#include "a.h"\n#include "webservice.h"\nvoid f() { router->root(x); }\n'}, 2),
    ({"a.c": '#include "a.h"\n', "a.h": '#include "webservice.h"\n', "b.c": 'void f() { router->root(x); }\n'}, 2),
])
def test_the_level_is_that_of_all_files(tmp_path, files, level):
    assert read_folder(make_folder(tmp_path, files=files))[0].level == level
