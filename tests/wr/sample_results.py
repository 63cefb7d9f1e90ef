# SPDX-License-Identifier: Apache-2.0
"""Makes a file of results as wr writes it: several servers, one workload at one number of clients with pairs, one over
concurrency, rounds with marks, histograms and samples. The same seed makes the same file."""

import base64
import json
import math
import random
import struct
import zlib
from collections import Counter

HALF_BITS = 10  # three significant digits: 2048 counters to a bucket, half of which are new
SERVERS = {"monkey": 4.6, "nginx": 7.8, "lighttpd": 4.8, "limit-memory": 2.9}
CLIENTS = (10, 50, 100, 500, 1000)


def index_of(value):
    bucket = max(value.bit_length() - HALF_BITS - 1, 0)
    return (bucket << HALF_BITS) + (value >> bucket)


def zigzag(number):
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number >= 0x80 and len(out) < 8:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode_histogram(values, compressed=True):
    """An HdrHistogram V2 in base64; a run of empty counters is one negative number."""
    counts, payload, at = Counter(map(index_of, values)), b"", 0
    for index in sorted(counts):
        if index > at:
            payload += zigzag(at - index)
        payload += zigzag(counts[index])
        at = index + 1
    data = struct.pack(">Iiiiqqd", 0x1C849313, len(payload), 0, 3, 1, 3_600_000_000, 1.0) + payload
    if compressed:
        packed = zlib.compress(data)
        data = struct.pack(">Ii", 0x1C849314, len(packed)) + packed
    return base64.b64encode(data).decode()


def percentile(ordered, part):
    return ordered[min(len(ordered) - 1, math.ceil(part / 100 * len(ordered)) - 1)]


def describe_latencies(values):
    ordered = sorted(values)
    parts = {f"p{part:g}": percentile(ordered, part) for part in (50, 75, 90, 99, 99.9, 99.99)}
    return {"min": ordered[0], "mean": round(sum(ordered) / len(ordered), 1), "max": ordered[-1], **parts}


class Sample:
    def __init__(self, seed=1):
        self.random, self.records, self.rounds = random.Random(seed), [], 0

    def add(self, type_of_record, **values):
        self.records.append({"type": type_of_record, **values})
        return self.records[-1]

    def add_head(self, servers=SERVERS):
        self.add("session", id="s1", started="2026-11-20T05:04:03Z", wr="1.0",
                 command=["wr", "compare", "--rounds", "7", "-o", "results.jsonl"],
                 machine={"cpu": "AMD EPYC", "cores": 2, "memory_kb": 8_000_000, "kernel": "6.18.0", "virtual": True,
                          "congestion_control": "reno", "sysctls": {"net.core.somaxconn": "4096"}},
                 tools={"wr-load": "1.0", "wrk": "4.1.0"}, cpus={"server": [0], "generator": [1]})
        for name in servers:
            self.add("server", name=name, version="1.2.3", command=[f"bin/{name}", "-c", "conf"],
                     config={"server.conf": f"# {name}\nworkers 1;\n"}, limit=name.startswith("limit"))
        self.add("workload", name="W1", text="13 bytes, keep-alive", path="/small", clients=64)
        self.add("workload", name="W3", text="26,510 bytes", path="/medium", clients=list(CLIENTS))
        return self

    def add_round(self, workload, server, clients, base, marks=(), **changes):
        noise = self.random.gauss(1, 0.03)
        cost = round(base * noise * (1 + clients / 4000) * (1.6 if "disturbed" in marks else 1), 3)
        rps = round(900_000 / cost)
        values = [int(self.random.lognormvariate(math.log(40 + clients), 0.3)) + 20 for _ in range(400)]
        values[0] = 40_000
        self.rounds += 1
        memory = 4000 + 8 * clients
        samples = [[round(t / 10, 1), int(t * 9e7), memory - 500 + 50 * min(t, 10), memory - 900, 2, clients + 9]
                   for t in range(20)]
        record = self.add(
            "round", session="s1", n=self.rounds, workload=workload, server=server, clients=clients,
            started="2026-11-20T05:05:03Z", seconds=2.0, answers=rps * 2, errors={"connect": 0, "read": 0},
            generator={"name": "wr-load", "version": "1.0", "cpu_us": 1_500_000, "cpu_share": 0.74,
                       "command": ["wr-load", "-c", str(clients), "http://127.0.0.1:2001/small"]},
            statuses={"200": rps * 2}, rps=rps, latency_us=describe_latencies(values), hdr=encode_histogram(values),
            cpu_us={"user": 1, "system": 2, "total": 3},
            cost_us={"user": round(cost * 0.3, 3), "system": round(cost * 0.7, 3), "total": cost},
            memory_kb={"pss_mean": memory - 100, "pss_max": memory, "dirty_mean": memory - 950,
                       "dirty_max": memory - 900},
            threads=2, switches={"voluntary": 10, "involuntary": 3}, faults={"minor": 9, "major": 0},
            descriptors_max=clients + 9, tcp={"queue_max": 0, "drops": 0, "retransmits": 0}, others_share=0.01,
            pressure={"cpu": 0.0, "memory": 0.0, "io": 0.0}, page_cache_kb=1_000_000, marks=list(marks),
            samples=samples)
        record.update(changes)
        return record

    def add_pair(self, workload, first, second):
        self.add("pair", workload=workload, first=first["server"], second=second["server"],
                 rounds=[first["n"], second["n"]], ratio=first["cost_us"]["total"] / second["cost_us"]["total"])

    def add_pairs(self, count=7, servers=SERVERS):
        """The first server and each other one; one round of the second server is disturbed and measured again."""
        first, *others = servers
        for number in range(count):
            for other in others:
                one = self.add_round("W1", first, 64, servers[first])
                marks = ["generator_limited"] if other.startswith("limit") else []
                if number == 2 and other == others[0]:
                    self.add_round("W1", other, 64, servers[other], ["disturbed"], others_share=0.4)
                    marks = ["repeated"]
                two = self.add_round("W1", other, 64, servers[other], marks)
                self.add_pair("W1", one, two)

    def add_curves(self, servers=SERVERS):
        for server in servers:
            for clients in CLIENTS:
                marks = ["generator_limited"] if server == "monkey" and clients == 10 else []
                self.add_round("W3", server, clients, 2 * servers[server], marks)
        if "nginx" in servers:
            self.add_round("W3", "nginx", 500, 30, ["disturbed"])

    def write(self, path, end=""):
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records) + end)
        return path


def make_sample(path, seed=1):
    sample = Sample(seed).add_head()
    sample.add_pairs()
    sample.add_curves()
    sample.write(path)
    return sample
