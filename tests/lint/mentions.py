# SPDX-License-Identifier: Apache-2.0
"""What documents and comments name must exist: files, folders, functions, types, fields of structs, unit tests."""

import os
import re

from source import COMMENT_OR_LITERAL, Finding

FILE = re.compile(r"(?<![\w./*<$}-])((?:[\w.-]+/)*[\w-]+\.(?:c|h|py|cmake))\b(?![.\w])")
FOLDER = re.compile(r"`((?:bin|docs|duda|include|lib|plugins|tests|tools)/[\w./-]*\w)/?`")
PAGE = re.compile(r"`([\w./-]*\w\.md)`")
FUNCTION = re.compile(r"\b(\w+)\(\)")
OURS = re.compile(r"\b((?:mk|MK|test)_\w*[A-Za-z0-9])\b(?![_*.<])")
UNIT = re.compile(r"\bunit-([a-z][\w-]*)\b(?!\.)")
UNIT_PATTERN = re.compile(r"\./dev unit ([a-z][\w-]*)|\bctest [^`\n]*-R ([\w-]+)")
E2E = re.compile(r"\./dev e2e ([a-z]\w*)")
VARIABLE = re.compile(r"set \$(\w+) = \(struct (\w+) \*\)")
FIELD = re.compile(r"(?:\$(\w+)|\(\(struct (\w+) \*\)[^()]*\))->(\w+)")
IN_FILE = re.compile(r"\b\w+\.c:([A-Za-z_]\w*)\b")  # as breakpoints are written
ACCESS = re.compile(r"(?:->|(?<=[\s{(])\.|\w\.)([a-z]\w*)\b(?!\()")  # in C: a->b, a.b and {.b = 1}
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.M | re.S)
MEMBER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*(?=[;,:])|\(\*(\w+)\)")
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
FOR_DEVELOPERS = ("docs/internals/", "CONTRIBUTING.md", "README.md")
CODE_KINDS = ("c", "python", "shell", "cmake", "template", "rust")
NOT_OURS = re.compile(r"CHANGELOG\.md$")  # it names what was

# Files and calls of the system and of libraries that documents and comments may name.
NO_FOLDER = re.compile(r"lib/(?:lib)?monkey\b|.*\b[A-Z]+$")  # installed, or with a word for any name
FOREIGN_FILES = {"shop.c", "app.c", "app.py", "reports.c", "zconf.h"}  # of the guide, and of zlib
FOREIGN = set("""
    Future accept4 bind calloc close connect dlclose dlopen epoll_ctl epoll_wait exec execv express fchown
    flushHeaders fork free
    fstat getaddrinfo io_uring_enter kill listen malloc malloc_trim mmap mprotect open openat openat2 poll pread
    preadv2 prctl pwrite read readlink recv send sendfile setuid shutdown sigwait sleep splice stat statx
    syscall timerfd_create tcache toUpperCase write writev
    """.split())
FOREIGN_PREFIXES = ("SSL_", "nghttp2_", "pcre2_")


class Names:
    """What the tree defines. Comments do not count: they are what is checked."""

    def __init__(self, sources):
        self.words, self.paths, self.fields, self.units, self.e2e = set(), set(), {}, set(), set()
        self.programs = set()
        for source in sources:
            self.paths.add(source.path)
            if source.kind in CODE_KINDS:
                self.words.update(IDENTIFIER.findall("\n".join(source.code) if source.kind == "c" else source.text))
            if source.kind == "c":
                self.add_fields("\n".join(source.code))
            if match := re.match(r"tests/unit/(.*)_test\.c$", source.path):
                self.units.add(match[1].replace("/", "-"))
                folder = match[1].rpartition("/")[0]
                self.programs.add(re.sub("^(core|kit)/", "", folder).replace("/", "-"))
            if match := re.match(r"tests/e2e/test_(\w+)\.py$", source.path):
                self.e2e.add(match[1])
        self.files = {part for path in self.paths for part in suffixes(path)}
        self.folders = {path[:at] for path in self.paths for at, letter in enumerate(path) if letter == "/"}

    def add_fields(self, code):
        for name, body in STRUCT.findall(code):
            self.fields.setdefault(name, set()).update(a or b for a, b in MEMBER.findall(body))


def suffixes(path):
    """a/b/c.h, b/c.h and c.h."""
    parts = path.split("/")
    return ("/".join(parts[first:]) for first in range(len(parts)))


def texts(source):
    """The lines that name things: of a page all, of C those of comments, with their numbers."""
    if source.path.endswith(".md"):
        yield from enumerate(source.lines, 1)
    if source.kind != "c":
        return
    for match in COMMENT_OR_LITERAL.finditer(source.text):
        if match[0][0] == "/":
            yield from enumerate(match[0].split("\n"), source.text.count("\n", 0, match.start()) + 1)


def missing_in_line(line, names):
    for name in FILE.findall(line):
        if re.sub(r"^(?:\.\.?/)+", "", name) not in names.files and os.path.basename(name) not in FOREIGN_FILES:
            yield f"there is no file {name}"
    for name in IN_FILE.findall(line):
        if name not in names.words:
            yield f"there is no {name}"
    for name in FUNCTION.findall(line):
        if name not in names.words and name not in FOREIGN and not name.startswith(FOREIGN_PREFIXES):
            yield f"there is no function {name}()"
    for name in OURS.findall(line):
        if name not in names.words:
            yield f"there is no {name}"
    for name in UNIT.findall(line):
        if name not in names.programs:
            yield f"there is no unit program {name}"
    for either in UNIT_PATTERN.findall(line):
        name = "".join(either)
        if not any(name in unit for unit in names.units):
            yield f"no unit test has a name that contains {name}"
    for name in E2E.findall(line):
        if name not in names.e2e:
            yield f"there is no tests/e2e/test_{name}.py"


def missing_in_page(line, names, variables):
    for name in PAGE.findall(line):
        if name.removeprefix("./") not in names.files:
            yield f"there is no file {name}"
    variables.update(VARIABLE.findall(line))
    for variable, struct, field in FIELD.findall(line):
        struct = struct or variables.get(variable)
        if struct in names.fields and field not in names.fields[struct]:
            yield f"struct {struct} has no field {field}"


def missing_folders(line, names):
    """Of a page for developers: those for users name folders of an installed server."""
    for name in FOLDER.findall(line):
        if name not in names.folders and name not in names.files and not NO_FOLDER.match(name):
            yield f"there is no {name}"


def missing_in_code(line, names):
    """A line of C in a page: its fields belong to structs of the tree, or to one of the page's own."""
    if not line.lstrip().startswith("#include"):
        for name in ACCESS.findall(re.sub(r'"(?:\\.|[^"\\])*"|//.*|/\*.*?\*/', "", line)):
            if not any(name in fields for fields in names.fields.values()):
                yield f"no struct has a field {name}"


def check(sources):
    names = Names(sources)
    for source in sources:
        if NOT_OURS.search(source.path):
            continue
        variables, language = {}, None  # of gdb: name to struct; of the code block
        if source.path.endswith(".md"):
            for block in re.findall(r"^```c\n(.*?)^```", source.text, re.M | re.S):
                names.add_fields(block)
        for number, line in texts(source):
            found = list(missing_in_line(line, names))
            if source.path.endswith(".md"):
                found += missing_in_page(line, names, variables)
                found += missing_folders(line, names) if source.path.startswith(FOR_DEVELOPERS) else []
                if line.startswith("```"):
                    language = None if language else line.strip("`") or "text"
                elif language == "c":
                    found += missing_in_code(line, names)
            for text in found:
                yield Finding(source.path, number, text)
