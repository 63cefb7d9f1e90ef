# SPDX-License-Identifier: Apache-2.0
"""The checks that others wrote: clang-format for C, shellcheck for shell; their reports as findings."""

import re
import subprocess

from source import ROOT, Finding

# kind of file: the program; every one of them reports path:line:column: text
PROGRAMS = {
    "c": ["clang-format-14", "--dry-run", "-Werror", "--ferror-limit=3", "--style=file"],
    "shell": ["shellcheck", "--format=gcc"],
}
REPORT = re.compile(r"^([^\s:][^:]*):(\d+):\d+: (.+)$")


def findings_in(output):
    for line in output.splitlines():
        match = REPORT.match(line)
        if match:
            yield Finding(match[1], int(match[2]), match[3])


def check(sources, root=ROOT):
    for kind, command in PROGRAMS.items():
        paths = [source.path for source in sources if source.kind == kind]
        if not paths:
            continue
        done = subprocess.run(command + paths, cwd=root, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        findings = list(findings_in(done.stdout))
        yield from findings
        if done.returncode and not findings:
            yield Finding(command[0], 1, f"failed with {done.returncode}: {done.stdout.strip()}")
