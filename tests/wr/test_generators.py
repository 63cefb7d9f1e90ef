# SPDX-License-Identifier: Apache-2.0
"""Command lines and outputs of the load generators: recorded ones, and those of the programs that are installed."""

import pathlib
import re

import pytest

from processes import BUILD, HERE, small_server
from watch_resources import WrError
from watch_resources.generators import GENERATORS, Load, make_generator, parse_duration_us
from watch_resources.spawn import Program

RECORDED = pathlib.Path(__file__).parent / "recorded"
URL = "http://127.0.0.1:1/x"


def generator(name):
    return GENERATORS[name](program=name)


def read(name, file, load=Load(URL, requests=100), folder="/nowhere"):
    return generator(name).read(load, (RECORDED / file).read_text(), "", folder)


def words(name, folder="/nowhere", **load):
    return generator(name).command(Load(URL, **load), str(folder))


# ── recorded output ──


def test_wr_load():
    answers = read("wr-load", "wr-load.json")
    assert (answers.count, answers.seconds, answers.rps) == (160000, 2.0, 80000.0)
    assert answers.statuses == {"200": 159998, "503": 2}
    assert answers.errors == {"read": 1, "status": 2}
    assert answers.latency_us["p99.99"] == 1900
    assert (answers.cpu_share, answers.cpu_us) == (0.93, {"user": 300000, "system": 1560000})
    assert answers.hdr.startswith("HIST")
    assert answers.failed == 3


def test_wr_load_without_an_expected_status_counts_bad_ones():
    text = (RECORDED / "wr-load.json").read_text().replace('"status": 2', '"status": 0')
    assert generator("wr-load").read(Load(URL), text, "", "").errors == {"read": 1, "status": 2}
    assert generator("wr-load").read(Load(URL, status=503), text, "", "").errors == {"read": 1}


def test_wrk():
    answers = read("wrk", "wrk.txt")
    assert (answers.count, answers.seconds, answers.rps) == (88, 1.01, 87.49)
    assert answers.statuses == {"2xx-3xx": 80, "other": 8}
    assert answers.errors == {"connect": 1, "read": 2, "write": 3, "timeout": 4, "status": 8}
    assert answers.latency_us == {"mean": 44320.0, "max": 1080000.0, "p50": 472.42, "p75": 47750.0, "p90": 48050.0,
                                  "p99": 53080.0}


def test_h2load():
    answers = read("h2load", "h2load.txt")
    assert (answers.count, answers.seconds, answers.rps) == (196, 2.3, 84.11)
    assert answers.statuses == {"2xx": 190, "4xx": 6}
    assert answers.errors == {"read": 3, "timeout": 1, "status": 6}
    assert answers.latency_us == {"min": 289.0, "max": 71800.0, "mean": 44100.0}
    assert generator("h2load").progress(Load(URL), (RECORDED / "h2load.txt").read_text(), "") == 0.6


def test_ab(tmp_path):
    (tmp_path / "ab.csv").write_text(
        "Percentage served,Time in ms\n0,0.020\n50,1.234\n90,4.000\n99,24.033\n100,103.3\n")
    answers = read("ab", "ab.txt", folder=str(tmp_path))
    assert (answers.count, answers.seconds, answers.rps) == (1776, 1.5, 1188.67)
    assert answers.statuses == {"2xx": 1767, "other": 9}
    assert answers.errors == {"connect": 1, "read": 2, "other": 4, "status": 9}
    assert answers.latency_us == {"min": 0, "mean": 2000, "max": 103000, "p50": 1234, "p90": 4000, "p99": 24033}


def test_oha():
    answers = read("oha", "oha.json")
    assert (answers.count, answers.seconds) == (100000, 2.001)
    assert answers.rps == pytest.approx(49975.01, abs=0.01)
    assert answers.statuses == {"200": 99950, "404": 50}
    assert answers.errors == {"connection closed before message completed": 3, "status": 50}
    assert answers.latency_us == {"p50": 720.0, "p75": 950.0, "p90": 1300.0, "p99": 3100.0, "p99.9": 9200.0,
                                  "min": 110.0, "mean": 810.0, "max": 21300.0}


def test_weighttp_with_sentences():
    answers = read("weighttp", "weighttp-0.3.txt")
    assert (answers.count, answers.seconds) == (10000, 0.1875)
    assert answers.rps == pytest.approx(53333.3, abs=0.1)
    assert answers.statuses == {"2xx": 9990, "4xx": 10}
    assert answers.errors == {"status": 10}
    assert generator("weighttp").progress(Load(URL), (RECORDED / "weighttp-0.3.txt").read_text(), "") == 1.0


def test_weighttp_with_json():
    answers = read("weighttp", "weighttp-0.5.txt")
    assert (answers.count, answers.seconds, answers.rps) == (9997, 0.25, 39988.0)
    assert answers.errors == {"read": 3}


@pytest.mark.parametrize("name", GENERATORS)
def test_output_without_a_result_is_reported(name):
    with pytest.raises(WrError, match=f"{name} printed no result: one / the reason"):
        generator(name).read(Load(URL), "", "one\nthe reason\n", "/nowhere")
    with pytest.raises(WrError, match="nothing at all"):
        generator(name).read(Load(URL), "", "", "/nowhere")


def test_durations():
    assert [parse_duration_us(text) for text in ("5us", "1.5ms", "2.00s", "1.5m", "1h")] == [
        5, 1500, 2e6, 90e6, 3600e6]


def test_progress_of_requests():
    load = Load(URL, requests=1000)
    assert generator("wr-load").progress(load, "", '{"answers": 100}\n{"answers": 250}\n{"ans') == 0.25
    assert generator("wr-load").progress(load, "", "") is None
    assert generator("ab").progress(load, "", "Completed 100 requests\nCompleted 300 requests\n") == 0.3


# ── command lines ──


def test_command_lines():
    assert words("wr-load", clients=64, requests=1000, threads=2) == [
        "wr-load", "--progress", "-c", "64", "-t", "2", "-n", "1000", URL]
    assert words("wr-load", seconds=2.5, keep_alive=False, pipeline=16, rate=1e4, paths="p", pick="zipf", seed=1,
                 status=200, length=13, timeout=5.0, ca="ca.pem", headers=("A: b",), extra=("--x",)) == [
        "wr-load", "--progress", "-c", "1", "-t", "1", "-d", "2.5", "--close", "-p", "16", "-r", "10000",
        "--paths", "p", "--pick", "zipf", "--seed", "1", "--status", "200", "--length", "13", "--timeout", "5",
        "--ca", "ca.pem", "-H", "A: b", "--x", "http://127.0.0.1:1/"]
    assert words("wrk", clients=8, seconds=3, keep_alive=False, prefix=("taskset", "-c", "1")) == [
        "taskset", "-c", "1", "wrk", "--latency", "-t1", "-c8", "-d3s", "-H", "Connection: close", URL]
    assert words("h2load", clients=16, requests=9, http2=True, pipeline=100) == [
        "h2load", "-t", "1", "-c", "16", "-m", "100", "-n", "9", URL]
    assert words("h2load", clients=4, threads=9, seconds=2, keep_alive=False) == [
        "h2load", "--h1", "-t", "4", "-c", "4", "-m", "1", "-D", "2", "-H", "Connection: close", URL]
    assert words("ab", clients=4, requests=100) == [
        "ab", "-r", "-l", "-k", "-c", "4", "-n", "100", "-e", "/nowhere/ab.csv", URL]
    assert words("ab", seconds=2, keep_alive=False)[1:9] == ["-r", "-l", "-c", "1", "-t", "2", "-n", "5000000"]
    assert words("oha", clients=4, seconds=2, keep_alive=False, rate=100) == [
        "oha", "--no-tui", "--json", "-c", "4", "-z", "2s", "--disable-keepalive", "-q", "100", "--latency-correction",
        URL]
    assert words("weighttp", clients=4, requests=9, pipeline=8) == [
        "weighttp", "-n", "9", "-c", "4", "-t", "1", "-k", "-K", "8", URL]


def test_ab_needs_a_path():
    assert GENERATORS["ab"](program="ab").command(Load("http://h:1", requests=1), "/x")[-1] == "http://h:1/"


def test_large_numbers_are_not_abbreviated():
    assert "10000000" in words("wr-load", requests=10_000_000)
    assert "1234567" in words("wr-load", requests=1, rate=1234567.0)


@pytest.mark.parametrize("name, load, said", [
    ("wrk", {"requests": 10}, "wrk ends after a time only"),
    ("weighttp", {"seconds": 1}, "weighttp ends after a number of requests only"),
    ("ab", {"requests": 10, "pipeline": 2}, "ab does not pipeline"),
    ("wrk", {"seconds": 1, "http2": True}, "wrk does not speak HTTP/2"),
    ("h2load", {"seconds": 1, "rate": 5}, "h2load has no open loop"),
    ("oha", {"seconds": 1, "paths": "x"}, "oha takes no list of paths"),
    ("oha", {"seconds": 1, "status": 200}, "oha does not check answers"),
    ("wrk", {"seconds": 1, "ca": "x"}, "wrk takes no file of authorities"),
    ("ab", {"requests": 10, "clients": 11}, "ab needs at least one request for each of 11 clients: raise -n 10"),
])
def test_what_a_generator_cannot_do_is_reported(name, load, said):
    with pytest.raises(WrError, match=said):
        generator(name).refuse(Load(URL, **load))


def test_what_it_can_do_is_accepted():
    generator("h2load").refuse(Load(URL, seconds=1, http2=True, pipeline=100))
    generator("wr-load").refuse(Load(URL, requests=5, rate=5, pipeline=4, keep_alive=False, paths="x", status=200))


def test_unknown_and_missing_generators(monkeypatch):
    with pytest.raises(WrError, match="there is no generator siege; there are: wr-load, wrk"):
        make_generator("siege")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(WrError, match="the generator oha is not installed"):
        make_generator("oha")


# ── the programs ──


def find_tool(name):
    """The program of the build under test, or what is installed."""
    built = BUILD / name
    tool = GENERATORS[name](program=str(built) if built.exists() else None)
    if not tool.is_available():
        pytest.skip(f"{name} is neither built nor installed")
    return tool


def run(name, load, folder):
    tool = find_tool(name)
    tool.refuse(load)
    with Program(tool.command(load, str(folder)), str(folder)) as program:
        assert program.wait(60)
        answers = tool.read(load, program.stdout, program.stderr, str(folder))
    assert re.match(r"\d+\.\d+", tool.version())
    return answers, program


COUNTED = [(name, keep_alive) for name in ("wr-load", "h2load", "ab") for keep_alive in (True, False)]


@pytest.mark.parametrize("name, keep_alive", COUNTED)
def test_counts_are_those_of_the_server(name, keep_alive, tmp_path):
    with small_server() as server:
        answers, program = run(name, Load(server.url, clients=4, requests=300, keep_alive=keep_alive), tmp_path)
        assert (answers.count, server.count()) == (300, 300)
    assert answers.statuses in ({"2xx": 300}, {"200": 300})
    assert answers.errors == {}
    assert answers.latency_us["min"] <= answers.latency_us["mean"] <= answers.latency_us["max"]
    assert answers.rps == pytest.approx(300 / answers.seconds, rel=0.1)
    assert sum(program.cpu_us.values()) > 0


@pytest.mark.parametrize("name, keep_alive", [("wr-load", True), ("wr-load", False), ("wrk", True), ("wrk", False),
                                              ("h2load", True), ("ab", True)])
def test_counts_of_a_duration(name, keep_alive, tmp_path):
    with small_server() as server:
        answers, _ = run(name, Load(server.url, clients=4, seconds=1, keep_alive=keep_alive), tmp_path)
        assert 0 < answers.count <= server.count() <= answers.count * 1.02 + 8  # those in flight at the end
    assert 0.9 < answers.seconds < 10
    assert answers.errors == {}


@pytest.mark.parametrize("name", ["wr-load", "wrk", "h2load"])
def test_pipelined_requests(name, tmp_path):
    with small_server() as server:
        answers, _ = run(name, Load(server.url, clients=2, seconds=1, pipeline=8), tmp_path)
        assert 0 < answers.count <= server.count()
    assert answers.errors == {}


ENDS = [("wr-load", {"requests": 50}), ("wrk", {"seconds": 1}), ("h2load", {"requests": 50}), ("ab", {"requests": 50})]


@pytest.mark.parametrize("name, end", ENDS)
def test_wrong_statuses_are_errors(name, end, tmp_path):
    with small_server() as server:
        answers, _ = run(name, Load(server.url + "missing", clients=2, **end), tmp_path)
    assert answers.errors == {"status": answers.count}


@pytest.mark.parametrize("name, end", ENDS)
def test_no_server_is_no_answer(name, end, tmp_path):
    with small_server() as server:
        url = server.url
    try:
        answers, _ = run(name, Load(url, clients=2, **end), tmp_path)
    except WrError as error:
        assert "printed no result" in str(error)
    else:
        assert answers.count == 0
