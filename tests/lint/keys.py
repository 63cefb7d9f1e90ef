# SPDX-License-Identifier: Apache-2.0
"""No private key is ever shipped: none in PEM in any file, be it text, a seed of a fuzz target or an image."""

import os
import re

from source import ROOT, SKIPPED_FOLDERS, Finding

PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----")


def check(root=ROOT):
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name == "corpus" or name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                content = file.read()
            for match in PRIVATE_KEY.finditer(content):
                line = content.count(b"\n", 0, match.start()) + 1
                yield Finding(os.path.relpath(path, root), line, "a private key in PEM: tests make theirs")
