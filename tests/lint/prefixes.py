# SPDX-License-Identifier: Apache-2.0
"""
The prefix of a function says where it is. A function mk__X_verb() that several files of lib/ use is defined in

  - X.c or X.h, or for a folder inside a folder in X = folder_file: mk__h2_stream_new() in h2/stream.c;
  - X_part.c, if X.h declares it: mk__module_open() in module_open.c and module_open_absent.c;
  - any file of the folder X, if the folder's own header declares it: X/X.h or X/internal.h;
  - the file whose header (or which itself) defines `struct mk__X`: mk__wheel_arm() in timer.c;
  - any file of a folder that SHORT abbreviates as X: mk__ws_mask() in websocket/frame.c.
"""

import os
import re

from source import Finding

IN_SOURCE = re.compile(r"^(?!static\b|typedef\b|extern\b)[A-Za-z_][\w \*]*?\bmk__(\w+)\((?!.*;\s*$)")
IN_HEADER = re.compile(r"^static inline [\w \*]*?\bmk__(\w+)\(")
DECLARATION = re.compile(r"\bmk__(\w+)\(")
STRUCT = re.compile(r"^struct (?:mk__|mk_)(\w+) \{", re.M)

SHORT = {"gateway": "gw", "websocket": "ws"}

# Functions of struct mk_generation that generation.c cannot have: plugins.h, which they need, includes generation.h.
KNOWN = {
    ("lib/core/server/generation/generation_load.c", "generation_stop"),
    ("lib/core/server/generation/generation_load.c", "generation_try_stop"),
    ("lib/core/server/generation/generation_load.c", "generation_release"),
    ("lib/core/server/generation/generation_load.c", "generation_free"),
}


def places(sources):
    """The functions that each header declares, and the structs that each file defines, by path."""
    declared, structs = {}, {}
    for source in sources:
        code = "\n".join(source.bare)
        structs[source.path] = set(STRUCT.findall(code))
        if source.path.endswith(".h"):
            declared[source.path] = set(DECLARATION.findall(code))
    return declared, structs


def prefixes(path, declared, structs):
    """The prefixes of functions in that file, and whole names that are right there, too."""
    folders, file = path.split("/")[1:-1], os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(path)
    result = {file} | {"_".join([*folders[first:], file]) for first in range(len(folders))}
    result |= {SHORT[name] for name in folders if name in SHORT}
    result |= structs.get(path, set()) | structs.get(f"{folder}/{file}.h", set())
    names = set()
    for header in (f"{folder}/{folders[-1]}.h", f"{folder}/internal.h"):
        names |= {name for name in declared.get(header, ()) if name.startswith(folders[-1] + "_")}
    stem = file.rpartition("_")[0]
    while stem and not path.endswith(".h"):
        names |= {name for name in declared.get(f"{folder}/{stem}.h", ()) if name.startswith(stem + "_")}
        stem = stem.rpartition("_")[0]
    return result, names


def has_prefix(name, prefix):
    return name == prefix or name.startswith(prefix + "_")


def misplaced(sources):
    """(path, line, name without "mk__") of each function in a wrong file."""
    ours = [source for source in sources if source.kind == "c" and source.is_in("lib")]
    declared, structs = places(ours)
    for source in ours:
        right, names = prefixes(source.path, declared, structs)
        pattern = IN_HEADER if source.path.endswith(".h") else IN_SOURCE
        for number, line in enumerate(source.bare, 1):
            match = pattern.match(line)
            if match and match[1] not in names and not any(has_prefix(match[1], prefix) for prefix in right):
                yield source.path, number, match[1]


def check(sources, known=frozenset(KNOWN)):
    found = set()
    for path, number, name in misplaced(sources):
        found.add((path, name))
        if (path, name) not in known:
            yield Finding(path, number, f"the prefix of mk__{name}() is not that of its file")
    for path, name in known - found:
        yield Finding(path, 1, f"mk__{name}() is right now: remove it from KNOWN in tests/lint/prefixes.py")
