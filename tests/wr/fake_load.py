#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replaces wr-load: makes requests one after the other, and prints the same JSON.

    fake_load.py [options of wr-load] [--share S] [--fail TEXT] [--child FILE] URL"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse


def parse_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", type=int, default=1)
    parser.add_argument("-t", type=int, default=1)
    parser.add_argument("-n", type=int)
    parser.add_argument("-d", type=float, default=10)
    parser.add_argument("-r", type=int)
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("--close", action="store_true")
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("--version", action="version", version="wr-load 1.0-fake")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--fail")
    parser.add_argument("--child")
    parser.add_argument("url")
    return parser.parse_args()


def print_result(options, seconds, statuses, errors):
    answers = sum(statuses.values())
    print(json.dumps({
        "version": "1.0-fake", "command": sys.argv, "seconds": seconds, "answers": answers, "bytes": answers * 5,
        "head_bytes": 0, "statuses": statuses, "errors": errors, "connections_opened": 1, "hashed": 0,
        "latency_us": {"min": 1, "mean": 2, "max": 9, "p50": 2, "p75": 3, "p90": 4, "p99": 5, "p99.9": 6, "p99.99": 7},
        "loop": "closed", "rate": 0, "late_starts": 0, "cpu_us": {"user": 10, "system": 20},
        "cpu_share": options.share, "hdr": None}))


def load(options):
    url = urllib.parse.urlsplit(options.url)
    begin, statuses, errors = time.monotonic(), {}, {"read": 0, "status": 0}
    connection = http.client.HTTPConnection(url.hostname, url.port)
    while sum(statuses.values()) + errors["read"] < options.n if options.n else time.monotonic() - begin < options.d:
        try:
            connection.request("GET", url.path or "/")
            answer = connection.getresponse()
            answer.read()
            statuses[str(answer.status)] = statuses.get(str(answer.status), 0) + 1
        except (OSError, http.client.HTTPException):
            errors["read"] += 1
            connection.close()
            time.sleep(0.01)
    print_result(options, time.monotonic() - begin, statuses, errors)


def main():
    options = parse_options()
    if options.child:  # one that does not end on SIGTERM
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "300"])
        with open(options.child, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()} {child.pid}")
    if options.fail:
        sys.exit(options.fail)
    load(options)


main()
