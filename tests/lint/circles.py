# SPDX-License-Identifier: Apache-2.0
"""
Include circles. A source and its header are one node: what `a.c` includes, and what `a.h` includes, are edges of `a`.
Files include each other in one direction, so that each can be read with what it includes alone.
Circles by what they call are small: tests/e2e/test_circles_budget.py.
"""

import os

from layers import INCLUDE
from source import Finding


def graph_of(sources):
    paths = {source.path: source for source in sources
             if source.kind == "c" and source.is_in("lib", "plugins", "bin", "duda", "tools")}
    graph = {os.path.splitext(path)[0]: set() for path in paths}
    for path, source in paths.items():
        node = os.path.splitext(path)[0]
        matches = map(INCLUDE.match, source.code)
        for name in (match[2] for match in matches if match and match[1] == '"'):
            neighbor = os.path.normpath(os.path.join(os.path.dirname(path), name))
            for target in ("lib/core/" + name, "lib/" + name, "duda/core/" + name, neighbor):
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
        yield Finding(circle[0], 1, f"includes in a circle of {len(circle)}: " + ", ".join(circle))
