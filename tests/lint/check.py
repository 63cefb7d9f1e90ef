#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every lint rule over the tree, prints `file:line: text` for each finding, and fails if there is one."""

import sys
from concurrent.futures import ThreadPoolExecutor

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
from source import read_tree


def main():
    sources = read_tree()
    checks = (tools, circles, commits, contracts, language, layers, mentions, mutants, prefixes, preprocessor,
              readme_tree, style)
    with ThreadPoolExecutor() as threads:  # clang-format runs at the same time as the rules of this folder
        found = threads.map(lambda check: list(check.check(sources)), checks)
    findings = sorted({*(each for of_one in found for each in of_one), *keys.check()})
    for finding in findings:
        print(finding)
    print(f"lint: {len(sources)} files, {len(style.RULES) + len(tools.PROGRAMS) + 11} rules, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
