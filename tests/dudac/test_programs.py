# SPDX-License-Identifier: Apache-2.0
"""Programs that dudac runs: their output, their limits, and what they leave."""

import pytest
from dudac import DudacError, programs
from dudac.programs import Program, run_program, run_programs

from harness.server import await_true, is_alive


def shell(tmp_path, text, seconds=60):
    return Program(["sh", "-c", text], tmp_path, seconds)


def test_status_and_output(tmp_path):
    done = run_program(shell(tmp_path, "echo out; echo error >&2; pwd; exit 3"))
    assert (done.status, done.text()) == (3, f"out\nerror\n{tmp_path}\n")
    assert run_program(shell(tmp_path, "kill -9 $$")).status == -9


def test_several_at_once(tmp_path):
    """Each waits for all others."""
    names = "a b c"
    wait = "touch $0; for each in $1; do while ! [ -e $each ]; do sleep 0.01; done; done; echo $0"
    all_programs = [Program(["sh", "-c", wait, name, names], tmp_path, 60) for name in names.split()]
    ended = []
    run_programs(all_programs, 3, ended.append)
    assert [each.text() for each in all_programs] == ["a\n", "b\n", "c\n"] and set(ended) == set(all_programs)


def test_one_after_the_other(tmp_path):
    run_programs([shell(tmp_path, "mkdir busy && echo x >>log; rmdir busy") for _ in range(5)])
    assert (tmp_path / "log").read_text() == "x\n" * 5


def test_output_without_end_is_cut(tmp_path):
    done = run_program(shell(tmp_path, "head -c 3000000 /dev/zero | tr '\\0' x"))
    assert len(done.output) == programs.OUTPUT_BYTES_MAX and done.left_out == 3000000 - programs.OUTPUT_BYTES_MAX
    assert done.text().endswith(f"x\n({done.left_out} more bytes of output are left out)\n")


@pytest.mark.parametrize("text", ["echo $$ >pid; exec sleep 1000", "echo $$ >pid; exec yes",
                                  "(trap '' TERM; sleep 1000) & echo $! >pid; wait"])
def test_a_program_that_never_ends(tmp_path, text):
    done = run_program(shell(tmp_path, text, seconds=3))
    assert done.status is None
    await_true(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_a_child_that_continues_is_not_waited_for(tmp_path):
    """As the server of a compiler's cache, which has the output open."""
    done = run_program(shell(tmp_path, "sleep 1000 & echo $! >pid; echo text"))
    child = int((tmp_path / "pid").read_text())
    assert is_alive(child) and (done.status, done.text()) == (0, "text\n")
    run_program(shell(tmp_path, f"kill {child}"))
    await_true(lambda: not is_alive(child))


@pytest.mark.parametrize("command, sentence", [
    (["./gone"], "./gone cannot be run: No such file or directory"), (["/"], "/ cannot be run: Permission denied"),
    (["sh", "-c", "a\0b"], "sh cannot be run: embedded null byte"),
])
def test_what_cannot_be_run(tmp_path, command, sentence):
    other = shell(tmp_path, "echo $$ >pid; exec sleep 1000")
    with pytest.raises(DudacError) as error:
        run_programs([other, Program(command, tmp_path, 60)], 2)
    assert str(error.value) == sentence
    assert not (tmp_path / "pid").exists() or not is_alive(int((tmp_path / "pid").read_text() or 0))


def test_a_folder_that_is_gone(tmp_path):
    with pytest.raises(DudacError) as error:
        run_program(shell(tmp_path / "gone", "true"))
    assert str(error.value) == f"the folder {tmp_path}/gone does not exist any more"
