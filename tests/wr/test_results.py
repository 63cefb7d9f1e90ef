# SPDX-License-Identifier: Apache-2.0
"""The file of results: what is written can be read, torn lines are cut, other faults are named."""

import json
import os
import resource

import pytest

from watch_resources import WrError
from watch_resources.results import (
    Pair, ResultsWriter, Round, Server, Session, Workload, from_fields, parse_results, read_results, to_line,
)

SESSION = Session("s1", "2026-01-01T00:00:00+00:00", "1.0", ["wr", "-p", "1"], {"cpu": "x"}, {"wrk": "4"})
SERVER = Server("monkey", "2.0", ["monkey", "-c", "dir"], {"monkey.conf": "[SERVER]\n"})
WORKLOAD = Workload("W1", "13 bytes, keep-alive", {"url": "/13.txt", "clients": 64})
PAIR = Pair("W1", "monkey", "nginx", [1, 2], 0.7)


def make_round(n=1, clients=10, marks=(), **changes):
    fields = {
        "session": "s1", "n": n, "workload": "rounds", "server": "monkey", "clients": clients, "started": "2026",
        "seconds": 1.0, "generator": {"name": "wrk"}, "answers": 100, "errors": {}, "statuses": {"200": 100},
        "rps": 100.0, "latency_us": {"p50": 1}, "hdr": None, "cpu_us": {"user": 1, "system": 2, "total": 3},
        "cost_us": {"user": 0.01, "system": 0.02, "total": 0.03}, "memory_kb": {"pss_mean": 1, "dirty_mean": 1},
        "threads": 1, "switches": {}, "faults": {}, "descriptors_max": 5, "tcp": {}, "others_share": 0.0,
        "pressure": {}, "page_cache_kb": 0, "marks": list(marks), "samples": [[0.0, 0, 1, 1, 1, 5]]}
    return Round(**{**fields, **changes})


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "results.jsonl")


def write(path, *records):
    with ResultsWriter(path) as writer:
        for record in records:
            writer.append(record)


@pytest.mark.parametrize("record", [SESSION, SERVER, WORKLOAD, make_round(), PAIR])
def test_a_record_is_one_line_and_comes_back(record):
    line = to_line(record)
    assert line.endswith("}\n") and line.count("\n") == 1
    assert from_fields(json.loads(line)) == record


def test_the_keys_of_a_workload_stand_beside_its_name():
    assert json.loads(to_line(WORKLOAD)) == {
        "type": "workload", "name": "W1", "text": "13 bytes, keep-alive", "url": "/13.txt", "clients": 64}


def test_a_file_comes_back_in_its_order(path):
    write(path, SESSION, SERVER, WORKLOAD, make_round(1), make_round(2), PAIR)
    results = read_results(path)
    assert results.records == [SESSION, SERVER, WORKLOAD, make_round(1), make_round(2), PAIR]
    assert [each.n for each in results.rounds] == [1, 2]
    assert not results.torn


def test_each_line_is_in_the_file_at_once(path):
    with ResultsWriter(path) as writer:
        writer.append(SESSION)
        assert read_results(path).records == [SESSION]


def test_keys_of_a_later_version_are_ignored():
    fields = json.loads(to_line(PAIR))
    assert from_fields({**fields, "later": 1}) == PAIR


@pytest.mark.parametrize("length", range(1, len(to_line(PAIR).encode()) - 1, 7))
def test_a_torn_last_line_is_ignored_and_cut(path, length):
    write(path, SESSION, PAIR)
    whole = os.path.getsize(path)
    with open(path, "ab") as file:
        file.write(to_line(PAIR).encode()[:length])
    assert read_results(path).records == [SESSION, PAIR]
    assert read_results(path).torn
    with ResultsWriter(path, resume=True) as writer:
        assert os.path.getsize(path) == whole
        writer.append(make_round(7))
    assert read_results(path).records == [SESSION, PAIR, make_round(7)]


def test_each_beginning_of_a_file_can_be_read(tmp_path):
    records = [SESSION, SERVER, WORKLOAD, PAIR]
    lines = [to_line(record).encode() for record in records]
    data = b"".join(lines)
    for length in range(len(data) + 1):
        complete = sum(len(b"".join(lines[:number])) - 1 <= length for number in range(1, len(lines) + 1))
        assert parse_results("r", data[:length]).records == records[:complete]


def test_a_line_that_lacks_only_its_newline_is_kept(path):
    write(path, SESSION, PAIR)
    os.truncate(path, os.path.getsize(path) - 1)
    with ResultsWriter(path, resume=True) as writer:
        writer.append(SERVER)
    assert read_results(path).records == [SESSION, PAIR, SERVER]


def test_a_character_that_was_cut_in_two(path):
    write(path, SESSION)
    with open(path, "ab") as file:
        file.write('{"type": "server", "name": "ä'.encode()[:-1])
    assert read_results(path).records == [SESSION]


@pytest.mark.parametrize("line, said", [
    ("{", "2: no JSON"),
    ("[]", "2: it is no JSON object"),
    ('{"type": "rond"}', "2: there is no type 'rond'"),
    ('{"type": "pair", "workload": "W1", "ratio": 1}', "2: the pair has no first, second, rounds"),
])
def test_faults_before_the_last_line_name_file_and_line(path, line, said):
    write(path, SESSION)
    with open(path, "a", encoding="ascii") as file:
        file.write(line + "\n" + to_line(PAIR))
    size = os.path.getsize(path)
    with pytest.raises(WrError, match=f"results.jsonl:{said}"):
        read_results(path)
    with pytest.raises(WrError, match=said):
        ResultsWriter(path, resume=True)
    assert os.path.getsize(path) == size


def test_a_last_line_of_another_version_is_not_cut(path):
    write(path, SESSION)
    with open(path, "a", encoding="ascii") as file:
        file.write('{"type": "later"}\n')
    with pytest.raises(WrError, match=":2: there is no type 'later'"):
        ResultsWriter(path, resume=True)


def test_a_second_writer_is_refused(path):
    with ResultsWriter(path) as writer:
        writer.append(SESSION)
        with pytest.raises(WrError, match="another wr writes to this file"):
            ResultsWriter(path, resume=True)
    ResultsWriter(path, resume=True).close()


def test_a_file_with_results_is_not_written_over(path):
    write(path, SESSION)
    with pytest.raises(WrError, match="exists: give another file, or continue in it with --resume"):
        ResultsWriter(path)


def test_files_that_cannot_be_opened(path, tmp_path):
    with pytest.raises(WrError, match="No such file"):
        read_results(path)
    with pytest.raises(WrError, match="No such file"):
        ResultsWriter(path, resume=True)
    with pytest.raises(WrError, match="directory"):
        ResultsWriter(str(tmp_path))


def test_a_full_disk_is_a_sentence(path):
    """A limit of the size of files is used instead: not every machine has /dev/full."""
    own = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ResultsWriter(path) as writer, pytest.raises(WrError, match="File too large; the results up to here are kept"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, own[1]))
        try:
            writer.append(SESSION)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, own)
