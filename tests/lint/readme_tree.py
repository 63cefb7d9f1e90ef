# SPDX-License-Identifier: Apache-2.0
"""The source tree in README names each folder of code."""

import re

from source import Finding

PARENTS = ("lib/core/", "lib/kit/", "plugins/", "duda/core/", "duda/packages/", "tools/", "bin/", "bindings/")
BLOCK = re.compile(r"^## Source tree\n+```\n(.*?)^```", re.M | re.S)
ENTRY = re.compile(r"^(\S+/)?( +.*)$", re.M)


def read_entries(text):
    """The words that stand behind each folder of the block."""
    entries, last = {}, ""
    for folder, words in ENTRY.findall(text):
        last = folder or last
        entries.setdefault(last, set()).update(re.findall(r"[\w-]+", words))
    return entries


def check(sources):
    for source in (each for each in sources if each.path == "README.md"):
        match = BLOCK.search(source.text)
        if not match:
            yield Finding(source.path, 1, "there is no source tree")
            continue
        entries, line = read_entries(match[1]), source.text[: match.start()].count("\n") + 1
        for parent in PARENTS:
            folders = {other.path[len(parent):].partition("/")[0] for other in sources
                       if other.path.startswith(parent) and "/" in other.path[len(parent):]}
            for folder in sorted(folders - entries.get(parent, set())):
                if f"{parent}{folder}/" not in entries:
                    yield Finding(source.path, line, f"the source tree does not name {parent}{folder}/")
