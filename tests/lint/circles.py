# SPDX-License-Identifier: Apache-2.0
"""
Include circles between files of different folders. A source and its header are one node: what `a.c` includes, and what
`a.h` includes, are edges of `a`. Within a folder files may know each other; a circle that spans folders ties them
together. Run this file alone to see every circle, those within a folder too.
"""

import os
import re
import sys

from source import Finding, read_tree

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)

# Circles that are known and wait to be cut. A file in no list must not join one.
KNOWN = (
    {"lib/server", "lib/server/listen"},
)


def graph_of(sources):
    paths = {source.path: source for source in sources if source.is_in("lib", "plugins", "bin")}
    graph = {os.path.splitext(path)[0]: set() for path in paths if path.endswith((".c", ".h"))}
    for path, source in paths.items():
        node = os.path.splitext(path)[0]
        for name in INCLUDE.findall(source.text) if node in graph else ():
            for target in ("lib/" + name, os.path.normpath(os.path.join(os.path.dirname(path), name))):
                if target in paths and os.path.splitext(target)[0] != node:
                    graph[node].add(os.path.splitext(target)[0])
    return graph


def circles_of(graph):
    """The strongly connected components of more than one node (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def check(sources):
    for circle in circles_of(graph_of(sources)):
        folders = {os.path.dirname(node) for node in circle}
        if len(folders) > 1 and not any(folders <= known for known in KNOWN):
            yield Finding(circle[0], 1, "includes in a circle through several folders: " + ", ".join(circle))


if __name__ == "__main__":
    for each in circles_of(graph_of(read_tree())):
        print(f"{len(each)} files: {', '.join(each)}")
    sys.exit(0)
