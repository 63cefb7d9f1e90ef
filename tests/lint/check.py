#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every lint rule over the tree, prints `file:line: text` for each finding, and fails if there is one."""

import sys

import circles
import commits
import contracts
import keys
import language
import layers
import mentions
import prefixes
import preprocessor
import style
import tools
from source import read_tree


def main():
    sources = read_tree()
    checks = (circles, commits, contracts, language, layers, mentions, prefixes, preprocessor, style, tools)
    findings = sorted({*(each for check in checks for each in check.check(sources)), *keys.check()})
    for finding in findings:
        print(finding)
    print(f"lint: {len(sources)} files, {len(style.RULES) + len(tools.PROGRAMS) + 9} rules, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
