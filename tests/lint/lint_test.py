# SPDX-License-Identifier: Apache-2.0
"""Each lint rule must be able to fail: a sample that breaks it and one that does not. A rule without samples fails."""

import pytest

import circles
import commits
import contracts
import keys
import language
import layers
import mentions
import mutants
import prefixes
import preprocessor
import readme_tree
import style
import tools
from source import Source, read_tree

HEAD = "// SPDX-License-Identifier: Apache-2.0\n/*\n * What this file is for.\n */\n"


def function(body_lines):
    """A function of that many lines from its name to its closing brace."""
    return "static int f(int a,\n             int b)\n{\n" + "    a++;\n" * (body_lines - 4) + "}\n"


def table(rows, indent=""):
    return f"{indent}static const int t[] = {{\n" + f"{indent}    1,\n" * rows + f"{indent}}};\n"


# rule: (path, text, lines of the findings)
STYLE_CASES = {
    "licence": [
        ("lib/core/base/a.c", HEAD, []),
        ("lib/core/base/a.c", "/* mine */\n", [1]),
        ("tool", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n", []),
        ("tool", "#!/bin/sh\ntrue\n", [1]),
        ("CMakeLists.txt", "project(x)\n", [1]),
        ("README.md", "text\n", []),
    ],
    "banned_functions": [
        ("lib/core/base/a.c", "x = snprintf(a, n, b);\nx->system(a); mk_str_strcpy(a);\n", []),
        ("lib/core/base/a.c", "/* strcpy(a, b) */ x = \"sprintf(\"; // gets(a)\n", []),
        ("lib/core/base/a.c", "strcpy(a, b);\nx = a + sprintf (b, c);\n/*\n\n*/ gets(a);\n", [1, 2, 5]),
        *[("tests/unit/core/base/a_test.c", f"    {name}(a);\n", [1]) for name in style.BANNED],
    ],
    "allocation": [
        ("lib/core/base/arena.c", "p = malloc(3);\nfree(p);\n", []),
        ("tests/unit/core/base/a_test.c", "free(p);\n", []),
        ("lib/core/http/a.c", "mk_buf_free(b);\npool.free(p);\npool->free(p);\n", []),
        ("lib/core/http/a.c", "p = malloc(3);\nx = !realloc(p, 4);\nfree(p);\n", [1, 2, 3]),
        *[("plugins/x/x.c", f"q = {name}(p);\n", [1]) for name in style.ALLOCATORS.split()],
    ],
    "function_name": [
        ("lib/core/base/a.c", "int main(void)\n{\n}\n\nint get_a(int a,\n          int b)\n{\n    b();\n}\n", []),
        ("lib/core/base/a.c", "static int get(int a,\n               int b)\n{\n}\n\nvoid\nput(void)\n{\n}\n", [1, 7]),
        ("lib/core/base/a.h", "struct map\n{\n};\n", []),
        ("tests/unit/a_test.c", "static int get(void)\n{\n}\n", []),
        ("tools/wr/data/peers/a/a.c", "static int get(void)\n{\n}\n", []),
    ],
    "function_length": [
        ("lib/core/base/a.c", function(60), []),
        ("lib/core/base/a.c", "\n" + function(61), [2]),
        ("lib/core/base/a.c", "int g(void)\n{\n" + table(70, "    ") + "}\n", []),
        ("lib/core/base/a.c", "int g(void)\n{\n" + table(9, "    ") + "    a++;\n" * 56 + "}\n", [1]),
        ("lib/core/base/a.c", "struct s {\n" + "    int a;\n" * 70 + "};\n", []),
    ],
    "file_length": [
        ("lib/core/base/a.c", "\n" * 800, []),
        ("lib/core/base/a.c", "\n" * 801, [1]),
        ("lib/core/base/a.c", "\n" * 700 + table(300), []),
    ],
    "trailing_space": [
        ("a.md", "a\nb\n", []),
        ("a.md", "a \nb\nc\t\nd\r\n", [1, 3, 4]),
    ],
    "last_line": [
        ("a.py", "a\n", []),
        ("a.py", "", []),
        ("a.py", "a", [1]),
        ("a.py", "a\n\n", [3]),
    ],
    "tabs": [
        ("debian/rules", "#!/usr/bin/make -f\n# SPDX-License-Identifier: Apache-2.0\n%:\n\tdh $@\n", []),
        ("lib/core/base/a.c", "    a\n", []),
        ("lib/core/base/a.c", "\ta\n", [1]),
        ("a.py", "\ta\n", [1]),
    ],
    "line_length": [
        ("a.py", "ä" * 120 + "\n", []),
        ("a.py", "\n" + "a" * 121 + "\n", [2]),
    ],
    "left_over": [
        ("a.py", "TODOS\nmastodo\n", []),
        ("a.py", "# TO" "DO: more\n# FIX" "ME\n# XX" "X\n", [1, 2, 3]),
        ("CMakeLists.txt", "# TO" "DO\n", [1]),
    ],
    "machine_path": [
        ("a.md", "/homework /srv/home/me ~/work/x {root}/work/x http://a/work/x docroot/root/x /root\n", []),
        ("a.md", "cd /ho" "me/me\n\"/wo" "rk/x\"\n(/ro" "ot/x)\n", [1, 2, 3]),
    ],
    "registry": [
        ("a.md", "debian.org pypi notcrates.iox\n", []),
        ("a.md", "http://deb.debian" ".org/debian\nhttps://PyPI" ".org/x\n", [1, 2]),
    ],
}

# path, text, how many findings
LAYER_CASES = [
    ("lib/core/base/a.c", '#include "base/b.h"\n#include <monkey/base/str.h>\n#include <sys/socket.h>\n', 0),
    ("lib/core/conf/a.c", '#include "base/b.h"\n#include <monkey/conf.h>\n', 0),
    ("lib/core/http/a.c", '#include "net/b.h"\n#include "loop/b.h"\n#include "http/b.h"\n', 0),
    ("lib/core/server/a.c", '#include "conf/b.h"\n#include "http/b.h"\n#include <monkey/plugin.h>\n', 0),
    ("lib/core/server/a.c", '#include "version.h"\n', 0),
    ("lib/core/base/a.c", '#include "conf/b.h"\n#include "loop/b.h"\n', 2),
    ("lib/core/conf/a.c", '#include "loop/b.h"\n#include "server/b.h"\n', 2),
    ("lib/core/loop/a.c", '#include "net/b.h"\n', 1),
    ("lib/core/net/a.h", '  #  include "http/b.h"\n', 1),
    ("lib/core/http/a.c", '#include "server/b.h"\n#include "conf/b.h"\n#include "../server/b.h"\n', 3),
    ("lib/core/http/a.c", '// #include "server/b.h"\n/*\n#include "server/b.h"\n*/\n', 0),
    ("lib/core/http/a.c", "#include <monkey/plugin.h>\n#include <monkey/unheard.h>\n", 2),
    ("lib/core/http/a.c", '#include "version.h"\n', 1),
    ("lib/misc/a.c", '#include "b.h"\n', 1),
    ("lib/core/misc/a.c", '#include "b.h"\n', 1),
    ("lib/core/http/a.c", '#include "inspect/a.h"\n', 1),
    ("lib/inspect/a.c", '#include "b.h"\n#include "inspect/b.h"\n#include "server/server.h"\n', 0),
    ("lib/embed/a.c", '#include "inspect/b.h"\n#include "store/store.h"\n', 2),
    ("lib/kit/store/a.c", '#include "../watched/paths.h"\n', 1),
    ("lib/kit/websocket/a.c", '#include "b.h"\n#include <monkey/base/buf.h>\n#include <monkey/tunnel.h>\n', 0),
    ("lib/kit/websocket/a.c", '#include "../base/arena.h"\n#include "../http/tunnel.h"\n', 2),
    ("lib/core/http/a.c", '#include "websocket/frame.h"\n', 1),
    ("plugins/x/x.c", '#include <monkey/plugin.h>\n#include "x.h"\n#include "part/y.h"\n', 0),
    ("plugins/x/x.c", '#include "../y/y.h"\n#include "../../lib/http/h1/h1.h"\n', 2),
    ("bin/monkey/main.c", '#include <monkey/monkey.h>\n#include "program.h"\n', 0),
    ("bin/monkey/main.c", '#include "../../lib/server/server.h"\n', 1),
    ("tools/x/a.c", '#include "loop/loop.h"\n#include "http/message/range.h"\n#include "a.h"\n', 0),
    ("tools/x/a.c", '#include "http/h1/h1.h"\n#include "server/server.h"\n#include "../y/a.h"\n', 3),
    ("tools/wr/load/tls.c", "#include <openssl/ssl.h>\n", 0),
    ("tools/wr/load/a.c", "#include <openssl/ssl.h>\n#include <zlib.h>\n", 2),
    ("include/monkey/a.h", '#include "str.h"\n#include <monkey/base/str.h>\n#include <stdint.h>\n', 0),
    ("include/monkey/a.h", '#include "../../lib/base/pool.h"\n#include <duda/duda.h>\n', 2),
    ("include/duda/packages/dice/dice.h", '#include "../../package.h"\n#include "../../../monkey/base/buf.h"\n', 1),
    ("plugins/x/x.c", "#include <duda/duda.h>\n", 1),
    ("duda/packages/json/a.c", '#include <duda/duda.h>\n#include <monkey/loop.h>\n#include "scan.h"\n', 0),
    ("duda/packages/json/a.c", '#include <monkey/plugin.h>\n#include "../sha/b.h"\n#include "../../core/b.h"\n', 3),
    ("duda/packages/json/a.c", "#include <cjson/cJSON.h>\n#include <openssl/evp.h>\n", 1),
    ("tests/unit/core/http/a_test.c", '#include "http/h1/h1.h"\n#include "check.h"\n#include <cmocka.h>\n', 0),
    ("lib/core/http/h2/session.c", "#include <nghttp2/nghttp2.h>\n", 1),
    ("lib/core/http/h1.c", "#include <nghttp2/nghttp2.h>\n#include <openssl/ssl.h>\n#include <cmocka.h>\n", 3),
    ("plugins/auth/auth.c", "#include <openssl/evp.h>\n#include <openssl/ssl.h>\n", 1),
    ("lib/core/base/a.c", "#include <unheard.h>\n", 1),
]


@pytest.mark.parametrize("rule", style.RULES, ids=lambda rule: rule.__name__)
def test_style_rule(rule):
    for path, text, lines in STYLE_CASES[rule.__name__]:
        source = Source(path, text)
        found = [line for line, _ in rule(source)] if source.kind in style.RULES[rule] else []
        assert found == lines, f"{path}: {text!r}"


def test_every_case_has_its_rule():
    assert set(STYLE_CASES) == {rule.__name__ for rule in style.RULES}


@pytest.mark.parametrize("path, text, count", LAYER_CASES)
def test_layers(path, text, count):
    findings = list(layers.check([Source(path, text)]))
    assert len(findings) == count, findings


def test_layers_reports_the_line():
    assert [str(finding) for finding in layers.check([Source("lib/core/base/a.c", '\n\n#include "net/addr.h"\n')])] == [
        'lib/core/base/a.c:3: lib/core/base must not include "net/addr.h"']


def includes(**files):
    """Sources by their paths without suffix (__ for /), each with what it includes."""
    return [Source(path.replace("__", "/") + ".c", "".join(f'#include "{name}"\n' for name in names))
            for path, names in files.items()] + [Source(path.replace("__", "/") + ".h", "") for path in files]


@pytest.mark.parametrize("graph, count", [
    ({"lib__base__a": ["loop/b.h"], "lib__loop__b": ["base/a.h"]}, 1),
    ({"lib__base__a": ["base/b.h"], "lib__base__b": ["base/a.h"]}, 1),
    ({"lib__base__a": ["loop/b.h"], "lib__loop__b": ["net/c.h"], "lib__net__c": ["base/a.h"]}, 1),
    ({"lib__base__a": [], "lib__loop__b": ["base/a.h"], "lib__net__c": ["base/a.h", "loop/b.h"]}, 0),
    ({"plugins__x__a": ["sub/b.h"], "plugins__x__sub__b": ["../a.h"]}, 1),
    ({"plugins__x__a": ["b.h"], "plugins__x__b": ["a.h"]}, 1),
    ({"tools__x__a": ["b.h"], "tools__x__b": ["a.h"]}, 1),
    ({"duda__packages__a": ["b.h"], "duda__packages__b": ["a.h"]}, 1),
    ({"duda__core__a__b": ["c/d.h"], "duda__core__c__d": ["a/b.h"]}, 1),
    ({f"duda__core__a__{i}": [f"a/{(i + 1) % 34}.h"] for i in range(34)}, 1),
])
def test_circles(graph, count):
    assert len(list(circles.check(includes(**graph)))) == count


@pytest.mark.parametrize("text, count", [
    ("/* Returns x. */\nMK_API int mk_a(void);\n", 0),
    ("/*\n * Returns x.\n */\nstatic inline int mk_a(void)\n{\n}\n", 0),
    ("/* Return x and y. */\nMK_API int mk_a(int b,\n                int c);\nMK_API int mk_b(void);\n", 0),
    ("/* Returns x, which mk_b() changes. */\nMK_API int mk_a(void);\nMK_API int mk_b(void);\n", 0),
    ("/* Returns x. */\nMK_API int mk_a(void);\nMK_API int mk_b(void);\n", 1),
    ("/* Returns x. */\n\nMK_API int mk_a(void);\n", 1),
    ("static inline int mk_a(void)\n{\n}\n\nstatic inline int mk_b(void)\n{\n}\n", 2),
    ("/* Return x and y. */\nMK_API int mk_a(void);\n\nMK_API int mk_b(void);\n", 1),
])
def test_contracts(text, count):
    assert len(list(contracts.check([Source("include/monkey/a.h", text)]))) == count
    assert not list(contracts.check([Source("lib/core/base/a.h", text)]))


@pytest.mark.parametrize("tree, missing", [
    ("lib/kit/    cgi,\n            json\nplugins/    tls\n", []),
    ("lib/kit/    cgi\nplugins/    tls, json\n", ["lib/kit/json/"]),
    ("lib/kit/cgi/    scripts\nlib/kit/    json\n", ["plugins/tls/"]),
])
def test_source_tree_of_readme(tree, missing):
    files = [Source(f"{folder}/a.c", "") for folder in ("lib/kit/cgi", "lib/kit/json", "plugins/tls")]
    readme = Source("README.md", f"# A\n\n## Source tree\n\n```\n{tree}```\n")
    findings = list(readme_tree.check([*files, Source("lib/kit/kit.cmake", ""), readme]))
    assert [(each.line, each.text) for each in findings] == [
        (3, f"the source tree does not name {folder}") for folder in missing]
    (finding,) = readme_tree.check([*files, Source("README.md", "# A\n")])
    assert finding.text == "there is no source tree"


@pytest.mark.parametrize("text, count", [
    ("`lib/core/base/a.c`, `base/a.c`, `a.c` and `known()`, `open()`\n", 0),
    ("`lib/core/base/b.c`\n`b.c`\n`other/a.c`\n", 3),
    ("`unknown()`, `SSL_read()`\n", 1),
])
def test_mentions(text, count):
    sources = [Source("lib/core/base/a.c", "int known(void);\n"), Source("docs/a.md", text)]
    assert len(list(mentions.check(sources))) == count


TREE = [
    Source("lib/core/http/conn.h", "struct mk__conn {\n    int state, n[3];\n    void (*fn)(int);\n};\n"
                              "int mk__conn_open(void);\n"),
    Source("tests/unit/core/http/conn_test.c", ""),
    Source("tests/e2e/test_tls.py", ""),
]


@pytest.mark.parametrize("text, count", [
    ("mk__conn_open and struct mk__conn, mk__conn_* and mk__\n", 0),
    ("mk__conn_shut, struct mk_con\n", 2),
    ("set $c = (struct mk__conn *)$arg0\n$c->state $c->n $c->fn $d->h2\n", 0),
    ("set $c = (struct mk__conn *)$arg0\n$c->h2 ((struct mk__conn *)x)->h1\n", 2),
    ("conn.h, http/conn.h, <conf.h>, *.c, x-conn.html\n", 0),
    ("break conn.h, a.c:mk__conn_open\nbreak a.c:run\n", 3),
    ("```c\nc->state = 1, c.n = {.fn = f}; // c->old\n#include <a.x>\n```\nc->old\n", 0),
    ("```c\nstruct own {\n    int mine;\n};\no->mine = 1;\n```\n", 0),
    ("```c\nc->old = {.older = c.oldest};\n```\n", 3),
    ("con.h, h1/conn.h, conn.c\n", 3),
    ("unit-http, `./dev unit http`, ctest -R conn, ./dev e2e tls\n", 0),
    ("unit-htp, `./dev unit htp`, ctest --test-dir x -R h1, ./dev e2e tsl\n", 4),
])
def test_mentions_in_pages(text, count):
    findings = list(mentions.check([*TREE, Source("docs/a.md", text)]))
    assert len(findings) == count, findings


@pytest.mark.parametrize("text, count", [
    ("/* See mk__conn_open() in conn.h. */\nint mk__new(void);\n", 0),
    ("/*\n * mk__conn_shut, con.h,\n * gone()\n */\nx = \"mk__none none.h\";\n", 3),
])
def test_mentions_in_comments(text, count):
    findings = list(mentions.check([*TREE, Source("lib/core/http/a.c", text)]))
    assert len(findings) == count, findings


@pytest.mark.parametrize("path, count", [("docs/internals/a.md", 3), ("docs/guide/a.md", 0)])
def test_mentions_of_folders(path, count):
    text = "`lib/core/http`, `lib/core/http/conn.h`, `lib/monkey`, `plugins/NAME/`, `lib/net/`, `tests/u`, `bin/x`\n"
    assert len(list(mentions.check([*TREE, Source(path, text)]))) == count


A_FUNCTION = "int mk__{}(int a,\n        int b)\n{{\n}}\n"


@pytest.mark.parametrize("path, name, count", [
    ("lib/core/http/conn.c", "conn_open", 0),
    ("lib/core/http/conn.c", "con_open", 1),
    ("lib/core/http/conn.c", "connect", 1),
    ("lib/core/http/h2/stream.c", "stream_new", 0),
    ("lib/core/http/h2/stream.c", "h2_stream_new", 0),
    ("lib/core/http/h2/session.c", "h2_open", 0),
    ("lib/core/http/h2/session.c", "h2_load", 1),
    ("lib/core/loop/timer.c", "wheel_arm", 0),
    ("lib/core/loop/timer.c", "loop_arm", 1),
    ("lib/kit/websocket/frame.c", "ws_open", 0),
    ("lib/kit/websocket/frame.c", "wss_open", 1),
    ("lib/core/loop/frame.c", "ws_open", 1),
    ("lib/core/net/dial_absent.c", "dial_open", 0),
    ("lib/core/net/dial_absent.c", "dial_close", 1),
])
def test_prefixes(path, name, count):
    headers = [Source("lib/core/http/h2/h2.h", "int mk__h2_open(void);\n"),
               Source("lib/core/loop/timer.h", "struct mk__wheel {\n    int a;\n};\n"),
               Source("lib/core/net/dial.h", "int mk__dial_open(void);\n")]
    assert len(list(prefixes.check([*headers, Source(path, A_FUNCTION.format(name))], set()))) == count


def test_prefixes_in_headers():
    text = "static inline int mk__b_get(void)\n{\n}\nint mk__c_new(int a,\n              int b);\n"
    assert len(list(prefixes.check([Source("lib/core/base/a.h", text)], set()))) == 1


def test_prefixes_that_are_known():
    sources = [Source("lib/core/base/a.c", A_FUNCTION.format("b_get"))]
    assert not list(prefixes.check(sources, {("lib/core/base/a.c", "b_get")}))
    assert len(list(prefixes.check(sources, {("lib/core/base/a.c", "b_get"), ("lib/core/base/a.c", "b_put")}))) == 1


@pytest.mark.parametrize("text, count", [
    ("#ifndef A_H\n#define A_H\n#if X\n#endif\n#endif\n", 0),
    ("int f(void)\n{\n#ifdef X\n    a();\n#elif Y\n    b();\n#endif\n}\n", 2),
    ("    return MK_HAS_ASAN; /* MK_SMALL */\n", 0),
    ("    if (MK_HAS_RELOAD)\n        return !MK_SMALL;\n", 2),
    ("#if X\n#endif\n" * preprocessor.TESTS_MAX, 0),
    ("#if X\n#endif\n" * (preprocessor.TESTS_MAX + 1), 1),
])
def test_preprocessor(text, count):
    assert len(list(preprocessor.check([Source("lib/core/base/a.c", text)]))) == count
    assert not list(preprocessor.check([Source("tests/unit/a_test.c", text)]))


@pytest.mark.parametrize("path, text, count", [
    ("docs/a.md", "Nobody buries a guest.\n", 3),
    ("lib/core/base/a.c", "/* Whoever comes. */\nint nobody;\n", 1),
    ("lib/core/base/a.c", 'x = "nobody"; y = "`nobody`"; z = "nobody waits";\n', 1),
    ("lib/core/base/a.c", "/* A client who waits sends a frame of HTTP/2. `kill --kill-whom=main` */\n", 2),
    ("tests/unit/core/base/a_test.c", "/* nobody */\nTEST(who_waits)\n", 2),
    ("tests/e2e/test_a.py", "def test_nobody_waits(serve):\n    pass\n", 1),
    ("tests/e2e/harness/a.py", '"""Who waits.\n\nNobody.\n"""\nX = "nobody"  # whoever\n', 3),
    ("tools/wr/a.py", 'def f():\n    """One\n    verdict."""\n    x = "verdict"\n', 1),
    ("duda/core/a.c", '/* Nobody waits. */\nint nobody;\nx = "one who waits";\n', 2),
    ("tests/plugins/a.c", "/* A truth machine. */\n", 1),
    ("docs/a.py", "# nobody\n", 0),
    ("tests/e2e/test_a.py", "def test_clients_whose_time_is_over(serve):\n    pass\n", 0),
    ("lib/core/base/a.c", "/*\n * one\n * deeds\n */\n", 1),
])
def test_words(path, text, count):
    source = Source(path, text)
    assert len(list(language.check_words(source)) if language.is_checked(source) else []) == count


@pytest.mark.parametrize("path, text, count", [
    ("tests/e2e/a.py", "def test_told(world, told):\n    open_world(was_told, TOLD, myWorld, x=told.a)\n", 8),
    ("tests/e2e/a.py", "# world told\nx = 'world told'\n'''verdict'''\nhandshake = stolen = settle\n", 0),
    ("tests/e2e/a.py", "@fixture\ndef good(ca):\n    good = 1\ndef wire(good):\n    wire = good\n", 2),
    ("tests/e2e/a.py", "def test_it_still_works():\n    still = 1\nclass Tab:\n    open_tab = add_tabs\n", 3),
    ("tests/bench/a.c", "struct a_world w; /* world */ f(\"told\", w->scenes, w.shakes, handshakes);\n", 3),
    ("duda/core/a.c", "static bool is_still(struct verdict *v);\n", 2),
    ("tools/wr/a.py", "import truth_machine, leftovers, acting, shake_128\n", 3),
])
def test_names(path, text, count):
    source = Source(path, text)
    assert language.is_checked(source) and language.has_checked_names(source)
    assert len(list(language.check_names(source))) == count


@pytest.mark.parametrize("path", ["lib/core/base/a.c", "docs/a.md", "tests/lint/lint_test.py", "tests/e2e/a.sh"])
def test_names_that_are_not_checked(path):
    source = Source(path, "world")
    assert not (language.is_checked(source) and language.has_checked_names(source))


def test_spelling(tmp_path):
    (tmp_path / "a.md").write_text("one\ntwo th" "ier\n")
    assert [str(each).split(" ==")[0] for each in language.check_spelling([Source("a.md", "")], root=tmp_path)] == [
        "a.md:2: spelling: th" "ier"]


@pytest.mark.parametrize("path, good, bad", [
    ("a.c", "int a;\n", "int  a ;\n"),
    ("a.sh", "#!/bin/sh\necho \"$1\"\n", "#!/bin/sh\necho $1\n"),
])
def test_tools(tmp_path, path, good, bad):
    for text, fails in ((good, False), (bad, True)):
        (tmp_path / path).write_text(text)
        findings = list(tools.check([Source(path, text)], root=tmp_path))
        assert bool(findings) == fails
        assert all(finding.path == path and finding.line > 0 for finding in findings)


def test_tools_that_fail_without_a_report_are_findings(tmp_path):
    findings = list(tools.check([Source("gone.c", "")], root=tmp_path))
    assert len(findings) == 1 and "failed" in findings[0].text


@pytest.mark.parametrize("subject, fails", [
    ("http: read a head", False),
    ("http, net: read a head", False),
    ("plugins/tls: read .pem files", False),
    ("fixup! anything", False),
    ("a: " + "x" * (commits.MOST - 3), False),
    ("a: " + "x" * (commits.MOST - 2), True),
    ("read a head", True),
    ("HTTP: read a head", True),
    ("http: read a head.", True),
    ("http:read a head", True),
])
def test_subjects_of_commits(subject, fails):
    assert bool(commits.find_fault(subject)) == fails


ROW = {"name": "a", "text": "b", "file": "lib/a.c", "old": "x = 1;", "new": "x = 2;", "tests": ["base-a"]}


@pytest.mark.parametrize("change, fault", [
    ({}, None),
    ({"tests": ["base-a", "duda-route-b", "plugins-c-c", "e2e/test_d.py::test_e", "bin-f"]}, None),
    ({"old": "x = 3;"}, "is 0 times"),
    ({"old": "x"}, "is 2 times"),
    ({"file": "lib/b.c"}, "no file lib/b.c"),
    ({"new": "x = 1;"}, "changes nothing"),
    ({"tests": []}, "names no test"),
    ({"tests": ["base-b"]}, "no test base-b"),
    ({"tests": ["base-a", "e2e/test_e.py"]}, "no test e2e/test_e.py"),
])
def test_mutants(tmp_path, change, fault):
    for path in ("lib/a.c", "tests/unit/core/base/a_test.c", "tests/unit/duda/core/route/b_test.c",
                 "tests/unit/plugins/c/c_test.c", "tests/unit/bin/f_test.c", "tests/e2e/test_d.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x = 1;\nint x;\n")
    text = "# rows\n\n[[mutant]]\n" + "".join(f"{key} = {value!r}\n" for key, value in {**ROW, **change}.items())
    findings = [str(each) for each in mutants.check([Source(mutants.TABLE, text)], root=tmp_path)]
    assert len(findings) == bool(fault) and all(fault in each for each in findings)


def test_mutants_of_one_name(tmp_path):
    table = '[[mutant]]\nname = "a"\ntext = "b"\nfile = "c"\nold = "d"\nnew = "e"\ntests = ["f"]\n'
    findings = [str(each) for each in mutants.check([Source(mutants.TABLE, table * 2)], root=tmp_path)]
    assert findings == [f"{mutants.TABLE}:{line}: a: another one has this name" for line in (1, 8)]


@pytest.mark.parametrize("kind", ["", "EC ", "RSA ", "ENCRYPTED ", "OPENSSH "])
def test_keys(tmp_path, kind):
    for name in ("a.md", "tests/fuzz/corpus/x", "image", "build/x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xff\n-----BEGIN PUBLIC KEY-----\n-----BEGIN " + kind.encode() + b"PRIVATE" b" KEY-----\n")
    (tmp_path / "link").symlink_to("nowhere")
    findings = [(finding.path, finding.line) for finding in keys.check(tmp_path)]
    assert findings == [("a.md", 3), ("image", 3), ("tests/fuzz/corpus/x", 3)]


def test_the_tree_is_read():
    paths = {source.path: source.kind for source in read_tree()}
    assert paths["dev"] == "shell" and paths["tests/lint/check.py"] == "python" and paths["CMakeLists.txt"] == "cmake"
    assert paths["lib/core/base/arena.c"] == "c" and not any(path.startswith(("build/", ".git/")) for path in paths)
