# SPDX-License-Identifier: Apache-2.0
"""Libraries in front of the C library: a server whose calls fail as a test wants."""

import re
import subprocess

from . import build


def preload(folder, source):
    """Compiles C `source` in `folder`; returns the environment of a server with it. A sanitizer must come first."""
    (folder / "calls.c").write_text(source)
    library = folder / "calls.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, folder / "calls.c"], check=True)
    needed = subprocess.run(["ldd", build.binary()], check=True, capture_output=True, text=True).stdout
    return {"LD_PRELOAD": " ".join([*re.findall(r"(/\S+/lib[at]san\S+)", needed), str(library)])}
