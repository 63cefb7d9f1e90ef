# SPDX-License-Identifier: Apache-2.0
"""
Which folder may include which.

    base <- conf          base <- loop <- net <- http <- server          conf is reached by server only

These are the folders of lib/core, the server. Public headers include public headers. Plugins, programs and each folder
of lib/kit, which is linked into plugins, see the public headers and their own folder, as any stranger's plugin would;
lib/embed and lib/inspect see lib/core, which sees neither; the folders of duda/core see each other; tools/
sees base, loop, net and http/message. A package of the framework sees <duda/...>, the public headers but those of conf
and server, and its own folder. A header that is not the system's has one place. Run this file alone to see only these
findings.
"""

import os
import re
import sys

from source import Finding, read_tree

LAYERS = {
    "base": {"base"},
    "conf": {"base", "conf"},
    "loop": {"base", "loop"},
    "net": {"base", "loop", "net"},
    "http": {"base", "loop", "net", "http"},
    "server": {"base", "conf", "loop", "net", "http", "server"},
}

# Folders of lib/ that see all of lib/core.
ABOVE = ("embed", "inspect")

# What of lib/core programs in tools/ may include.
TOOLS_SEE = ("base/", "loop/", "net/", "http/message/")

# The layer that a public header speaks for: a lower layer must not know it.
PUBLIC = {f"{name}.h": layer for layer, names in {
    "base": """
        base/address base/arena base/base64 base/buf base/escape base/file base/hash base/library base/list base/memory
        base/log_limit base/pattern base/poll base/random base/sha1 base/siphash base/str base/thread_start
        base/time base/utf8 counters kit/command kit/counter_table kit/hash_table kit/json kit/log_writer
        kit/status_set kit/watched log status""",
    "conf": """
        conf kit/when""",
    "loop": """
        base/epoch base/thread_pool kit/inbox kit/spool kit/store loop""",
    "net": """
        base/dial kit/upstream transport""",
    "http": """
        base/accept base/chunked base/header_id base/response_parser kit/client_table kit/cookie
        kit/embedded kit/http_client kit/open_file kit/routes kit/variables kit/via kit/websocket request
        tunnel""",
    "server": """
        embed file_cache hooks inspect kit/backend_stats kit/cgi kit/child kit/encoded_slash kit/event_stream
        kit/fastcgi kit/gateway kit/header_line kit/local_client kit/request_job kit/source kit/target kit/threads
        monkey plugin program request_ref upstreams""",
}.items() for name in names.split()}

# Headers that are neither ours nor the system's, and where they may appear.
THIRD_PARTY = {
    "archive.h": ("plugins/dirlisting/tar.c",),
    "archive_entry.h": ("plugins/dirlisting/tar.c",),
    "sha256.h": ("plugins/dirlisting/theme.c",),
    "ares.h": ("plugins/upstream/lookup.c", "tests/unit/plugins/"),
    "brotli/": ("plugins/compress/encoder.c", "tests/unit/plugins/"),
    "cmocka.h": ("tests/unit/",),
    "event2/": ("docs/examples/embed/",),
    "glib-unix.h": ("docs/examples/embed/",),
    "uv.h": ("docs/examples/embed/",),
    "hiredis/": ("duda/packages/redis/", "tests/unit/duda/packages/"),
    "nghttp2/": ("tests/unit/core/http/", "tests/fuzz/", "tests/msan/"),
    "pcre2.h": ("lib/core/base/regex.c",),
    "crypt.h": ("plugins/auth/auth.c", "plugins/auth/hash.c", "duda/packages/password/compute.c"),
    "jansson.h": ("plugins/auth/", "bin/shell/object.c", "tests/unit/plugins/"),
    "openssl/ssl.h": ("plugins/tls/", "tools/wr/load/tls.c", "tests/unit/plugins/", "tests/fuzz/tls_fuzz.c"),
    "openssl/": ("plugins/tls/", "plugins/auth/", "duda/packages/sha/", "tools/wr/load/tls.c", "tests/unit/plugins/",
                 "tests/unit/duda/packages/", "tests/fuzz/tls_fuzz.c", "tests/fuzz/auth_jws_fuzz.c"),
    "editline/": ("bin/shell/edit.c",),
    "cjson/": ("duda/packages/json/", "tests/unit/duda/packages/", "tests/fuzz/json_fuzz.c"),
    "civetweb.h": ("tools/wr/data/peers/", "tests/embed/peers/"),
    "kore/": ("tools/wr/data/peers/",),
    "microhttpd.h": ("tools/wr/data/peers/", "tests/embed/peers/"),
    "httplib.h": ("tests/embed/peers/",),
    "libwebsockets.h": ("tools/wr/data/peers/",),
    "ulfius.h": ("tools/wr/data/peers/",),
    "openssl/evp.h": ("plugins/tls/", "plugins/auth/", "duda/packages/sha/", "tools/wr/load/"),
    "sqlite3.h": ("duda/packages/sqlite/", "tests/unit/duda/packages/"),
    "backtrace.h": ("duda/core/crash/names.c",),
    "unwind.h": ("duda/core/crash/trace.c",),
    "zlib.h": ("plugins/compress/encoder.c", "lib/kit/websocket/deflate.c", "tools/wr/load/histogram.c",
               "tests/unit/plugins/", "tests/unit/tools/", "tests/unit/kit/websocket/"),
    "zstd.h": ("plugins/compress/encoder.c", "tests/unit/plugins/"),
}

GENERATED = {"version.h": ("lib/core/server/", "lib/inspect/", "tools/wr/load/options.c",
                           "tools/wr/load/report.c")}

SYSTEM_FOLDERS = ("arpa/", "linux/", "net/", "netinet/", "sys/")
SYSTEM = set("""
    assert.h ctype.h dirent.h dlfcn.h endian.h errno.h execinfo.h fcntl.h fenv.h float.h fnmatch.h getopt.h glob.h grp.h
    ftw.h ifaddrs.h inttypes.h langinfo.h limits.h link.h locale.h malloc.h math.h netdb.h poll.h pthread.h pwd.h
    regex.h sched.h semaphore.h setjmp.h signal.h spawn.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h
    stdio.h stdlib.h stdnoreturn.h string.h strings.h syslog.h termios.h threads.h time.h ucontext.h unistd.h wchar.h
    sanitizer/asan_interface.h sanitizer/msan_interface.h
    """.split())

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    """The folder of lib/core, or None."""
    parts = path.split("/")
    return parts[2] if parts[:2] == ["lib", "core"] and len(parts) > 3 else None


def check_angle(source, name):
    """What is wrong with `#include <name>` in this file, or None."""
    if name.startswith("monkey/"):
        return check_public(source, name[len("monkey/"):])
    if name.startswith("duda/"):
        may = source.is_in("duda", "include/duda", "docs", "tests", "tools/dudac", "tools/wr/data/peers")
        return None if may else f"only duda/ may include <{name}>"
    if name in SYSTEM or name.startswith(SYSTEM_FOLDERS):
        return None
    for prefix in (name, name.split("/")[0] + "/"):
        if prefix in THIRD_PARTY:
            places = THIRD_PARTY[prefix]
            return None if source.path.startswith(places) else f"<{name}> belongs to {', '.join(places)}"
    return f"<{name}> is no header of the system; if it is welcome, give it a place in tests/lint/layers.py"


def check_public(source, name):
    layer = layer_of(source.path)
    if name not in PUBLIC:
        return f"<monkey/{name}> has no layer yet; give it one in tests/lint/layers.py"
    if source.is_in("duda/packages") and PUBLIC[name] in ("conf", "server"):
        return f"a package must not know <monkey/{name}>, which speaks for {PUBLIC[name]}"
    if layer in LAYERS and PUBLIC[name] not in LAYERS[layer]:
        return f"lib/core/{layer} must not know <monkey/{name}>, which speaks for {PUBLIC[name]}"
    return None


def check_quoted(source, name):
    """What is wrong with `#include "name"` in this file, or None."""
    folder = os.path.dirname(source.path)
    if source.is_in("tests"):
        return None
    if name in GENERATED:
        return None if source.path.startswith(GENERATED[name]) else f'"{name}" belongs to {", ".join(GENERATED[name])}'
    if source.is_in("include"):
        target = os.path.normpath(os.path.join(folder, name))
        library = "/".join(source.path.split("/")[:2])
        return None if target.startswith(library + "/") else f'a public header must not include "{name}"'
    if source.is_in("lib") and not source.is_in("lib/kit"):
        return check_inside(source, name)
    if source.is_in("tools") and name.split("/")[0] in LAYERS:
        return None if name.startswith(TOOLS_SEE) else f'tools/ must not include "{name}"'
    own = "/".join(source.path.split("/")[:3 if source.is_in("duda/packages", "lib/kit") else 2])
    target = f"duda/core/{name}" if own == "duda/core" else os.path.normpath(os.path.join(folder, name))
    return None if target.startswith(own + "/") else f'{own} may include <monkey/...> and its own folder, not "{name}"'


def check_inside(source, name):
    part, layer = source.path.split("/")[1], layer_of(source.path)
    target = name.split("/")[0] if "/" in name else layer or part
    if part in ABOVE:
        return None if target in LAYERS or target == part else f'lib/{part} must not include "{name}"'
    if layer not in LAYERS:
        return f"{os.path.dirname(source.path)} is no layer of tests/lint/layers.py"
    return None if target in LAYERS[layer] else f'lib/core/{layer} must not include "{name}"'


def check(sources):
    for source in sources:
        if source.kind != "c":
            continue
        for number, line in enumerate(source.code, 1):
            match = INCLUDE.match(line)
            if match:
                wrong = (check_angle if match[1] == "<" else check_quoted)(source, match[2])
                if wrong:
                    yield Finding(source.path, number, wrong)


if __name__ == "__main__":
    findings = list(check(read_tree()))
    print(*findings, sep="\n", end="\n" if findings else "")
    sys.exit(1 if findings else 0)
