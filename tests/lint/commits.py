# SPDX-License-Identifier: Apache-2.0
"""Subjects of commits: `area: what it does`, at most 72 characters. Older ones than this file are left as they are."""

import re
import subprocess

from source import ROOT, Finding

SUBJECT = re.compile(r"(?P<area>[a-z0-9][\w+./-]*(, [a-z0-9][\w+./-]*)*): \S.*[^.\s]")
MOST = 72


def git(*words):
    """What git prints; nothing without git, or in a tree that is no checkout."""
    try:
        done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def read_subjects():
    """Of the commits behind the one that has added this file, merges apart: rows of a hash and a subject."""
    first = git("log", "--diff-filter=A", "--format=%H", "--", "tests/lint/commits.py").split()
    rows = git("log", "--no-merges", "--format=%h %s", f"{first[-1]}..HEAD").splitlines() if first else []
    return [row.split(" ", 1) for row in rows]


def find_fault(subject):
    if subject.startswith(("fixup! ", "squash! ")):
        return None  # it becomes part of another commit
    if len(subject) > MOST:
        return f"the subject of a commit has {len(subject)} characters, at most {MOST}: {subject}"
    if not SUBJECT.fullmatch(subject):
        return f"the subject of a commit is not \"area: what it does\": {subject}"
    return None


def check(_):
    faults = [(commit, find_fault(subject)) for commit, subject in read_subjects()]
    return [Finding(f"commit {commit}", 1, fault) for commit, fault in faults if fault]
