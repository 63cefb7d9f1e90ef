# SPDX-License-Identifier: Apache-2.0
"""Prints rounds: a row each as it ends, progress while one runs (on a terminal), and a summary."""

import statistics
from typing import Optional

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn

from .results import DISTURBED, ERRORS, GENERATOR_LIMITED, REPEATED, Round, choose_counted
from .rounds import Progress

# heading, width
COLUMNS = (
    ("clients", 8), ("req/s", 11), ("user s", 8), ("system s", 9), ("CPU µs/req", 11), ("PSS KB", 9), ("dirty KB", 9),
    ("p50 µs", 9), ("p99 µs", 9),
)
EXPLANATIONS = {
    DISTURBED: "other programs used the CPUs; such a round is repeated, and does not count in the summary",
    GENERATOR_LIMITED: "the generator had no CPU time left, so that the server can do more than req/s says; "
                       "the CPU time per request holds",
    REPEATED: "measured again after a disturbed round",
    ERRORS: "some answers were wrong or did not come; the file of results says which",
}


def show(value: Optional[float], digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def row_values(result: Round) -> list[str]:
    return [
        str(result.clients), show(result.rps), show(result.cpu_us["user"] / 1e6, 2),
        show(result.cpu_us["system"] / 1e6, 2), show(result.cost_us["total"], 2),
        show(result.memory_kb.get("pss_mean")), show(result.memory_kb.get("dirty_mean")),
        show(result.latency_us.get("p50")), show(result.latency_us.get("p99")),
    ]


def align(values: list[str], marks: str) -> str:
    cells = (value.rjust(width) for value, (_, width) in zip(values, COLUMNS))
    return f"{' '.join(cells)}  {marks}".rstrip()


def header() -> str:
    return align([heading for heading, _ in COLUMNS], "marks")


def spread(values: list[float], digits: int = 0) -> str:
    middle, least, most = (show(value, digits) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} (from {least} to {most})"


def summarize(rounds: list[Round]) -> list[str]:
    """Returns the lines of the summary. Disturbed rounds count only where there are no others."""
    if not rounds:
        return ["no round was completed"]
    counted = choose_counted(rounds, lambda each: DISTURBED in each.marks)
    memory = [each.memory_kb["pss_mean"] for each in counted if each.memory_kb]
    lines = [
        f"rounds: {len(rounds)}" + (f", {len(rounds) - len(counted)} of them disturbed" if counted != rounds else ""),
        f"requests per second, median: {spread([each.rps for each in counted])}",
        f"CPU µs per request, median: {spread([each.cost_us['total'] for each in counted], 2)}",
    ]
    if memory:
        lines.append(f"PSS in KB, median: {spread(memory)}")
    marks = {mark for each in rounds for mark in each.marks}
    return lines + [f"{mark}: {text}" for mark, text in EXPLANATIONS.items() if mark in marks]


class Screen:
    """A Reporter. Rows are plain text also on a terminal, where a bar stands below them while a round runs."""

    def __init__(self, console: Optional[Console] = None):
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.bar: Optional[Bar] = None
        self.task = None
        self.has_header = False

    def print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def begin(self, clients: int, number: int, count: int) -> None:
        if not self.has_header:
            self.print(header())
            self.has_header = True
        if self.console.is_terminal:
            self.end()
            self.bar = Bar(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"),
                           console=self.console, transient=True)
            self.task = self.bar.add_task(f"round {number} of {count}, {clients} clients", total=None, text="")
            self.bar.start()

    def progress(self, progress: Progress) -> None:
        if not self.bar:
            return
        memory = progress.sample.memory
        text = (f"{progress.seconds:.0f} s, server {progress.cpus_used:.0%} CPU"
                + (f", PSS {memory.pss_kb:,} KB" if memory else ""))
        if progress.done is None:
            self.bar.update(self.task, text=text)
        else:
            self.bar.update(self.task, total=1.0, completed=progress.done, text=text)

    def row(self, result: Round) -> None:
        self.print(align(row_values(result), " ".join(result.marks)))

    def end(self) -> None:
        if self.bar:
            self.bar.stop()
            self.bar = None

    def summary(self, rounds: list[Round], path: str) -> None:
        self.end()
        self.print("")
        for line in summarize(rounds):
            self.print(line)
        self.print(f"results: {path}")
