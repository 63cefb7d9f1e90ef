# SPDX-License-Identifier: Apache-2.0
"""Runs `wr rounds --agent` in a network namespace whose loopback has the address of a network: test_agent.py starts it.

    unshare -n python3 agent_rounds.py FOLDER WR_LOAD       prints the JSON lines of the file of results
"""

import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import conftest  # noqa: F401  the paths of what follows
from processes import run_wr
from test_agent import SshServer

ADDRESS = "192.0.2.7"


class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


def make_programs(folder, config, wr_load):
    """An ssh that knows the key of the test, and wr-load, in a folder for PATH."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
    (programs / "ssh").chmod(0o755)
    (programs / "wr-load").symlink_to(wr_load)
    return programs


def main():
    folder, wr_load = pathlib.Path(sys.argv[1]), sys.argv[2]
    for words in (("link", "set", "lo", "up"), ("address", "add", f"{ADDRESS}/32", "dev", "lo")):
        subprocess.run(["ip", *words], check=True)
    web = http.server.ThreadingHTTPServer((ADDRESS, 0), Hello)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    server = SshServer(folder)
    try:
        done = run_wr("-p", os.getpid(), "-u", f"http://{ADDRESS}:{web.server_port}/", "-c", "2", "-n", "50", "-k",
                      "--others-max", "100", "-o", folder / "results.jsonl", "--agent", "agent",
                      path=make_programs(folder, server.config, wr_load))
    finally:
        server.stop()
    sys.stderr.write(done.stdout + done.stderr)
    sys.stdout.write((folder / "results.jsonl").read_text())
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
