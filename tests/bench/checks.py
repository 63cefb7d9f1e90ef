# SPDX-License-Identifier: Apache-2.0
"""Does a server send what a workload asks for? Asked once before it is measured, by curl."""

import os
import subprocess
import sys
import zlib

from peers import MANY

VERSIONS = {"1.1": "--http1.1", "2": "--http2-prior-knowledge"}


def ask(workload, url):
    """(version, status, coding, body)"""
    told = "%{stderr}%{http_version} %{http_code} %header{content-encoding}"
    command = ["curl", "-sk", VERSIONS[workload.protocol], "-w", told]
    command += ["-H", "Accept-Encoding: gzip"] if workload.gzip else []
    done = subprocess.run([*command, url], capture_output=True)
    return *(done.stderr.decode().split(" ") + [""] * 3)[:3], done.stdout


def check(workload, server, root):
    paths = [workload.path]
    if workload.path.startswith("many/"):
        paths = [f"many/{n}" for n in range(0, MANY, MANY // 10)]
    for path in paths:
        url = workload.url(server.port).removesuffix(workload.path) + path
        coding = "gzip" if workload.gzip else ""
        with open(os.path.join(root, path + (".gz" if coding else "")), "rb") as file:
            wanted = (workload.protocol, "200", coding, file.read())
        found = ask(workload, url)
        if found != wanted:
            told = [(*rest, f"{len(body)} bytes, CRC {zlib.crc32(body):08x}") for *rest, body in (found, wanted)]
            sys.exit(f"{server.name} answers {workload.name} {path} with {told[0]} instead of {told[1]}")
