# SPDX-License-Identifier: Apache-2.0
"""The commands of comparisons: run, compare, check and counts. cli.py names them."""

import datetime
import random
import sys
from typing import Optional

import click
from click.core import ParameterSource

from . import VERSION, WrError, clean, counts, rules, tables
from . import contest as contests
from .analysis import Results
from .compare import Comparison, Plan, count_files, list_choices, make_session, open_environment, resume_plan
from .machine import describe_machine
from .measure import crowd_command, list_tools, measure
from .results import EXCLUSIONS, ResultsWriter, from_fields, read_results, to_fields
from .servers import parse_choice
from .workloads import choose_defaults, load_workload

INTERRUPTED = 130
OF_ANY_PLAN = "others_max", "repeats", "share_cpu"  # options that a contest takes too
OPTIONS = {"chosen": "-s", "rounds": "-r", "seconds": "-d", "with_counts": "--counts", "resume": "--resume"}
CROWD = "W4"  # the workload, with more clients


def load_results(path):
    return Results(map(to_fields, read_results(path).records), path)


def describe_session():
    return {
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "wr": VERSION,
        "command": sys.argv,
        "machine": describe_machine(),
        "tools": list_tools(),
    }


def print_lines(lines):
    """Names in a file of results may hold anything."""
    for line in lines:
        click.echo(clean(str(line)))


def say(text):
    click.echo(clean(text), err=True)


def tell(problems):
    """Below the tables, where they are seen."""
    for problem in problems:
        click.echo(f"wr: {clean(str(problem))}", err=True)


def make_crowd_command(server, folder):
    return crowd_command(load_workload(CROWD, clients=counts.CROWD), server, counts.CROWD_SECONDS, folder)


SERVERS = click.option(
    "-s", "--server", "chosen", multiple=True, metavar="NAME[+VARIANT][=PROGRAM]",
    help="A server; the first is compared with each other one. All that are installed.",
)  # fmt: skip
SHARE = click.option("--share-cpu", is_flag=True, help="Server and generator on one CPU, where there is no other.")
MARKDOWN = click.option("--markdown", is_flag=True, help="Print the table of the README.")


@click.command("run")
@click.argument("workloads", nargs=-1)
@SERVERS
@click.option("--contest", metavar="NAME|FILE", help="Measure a contest: its file has workloads, servers and rounds.")
@click.option("-r", "--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Pairs of two servers.")
@click.option("-d", "--duration", "seconds", type=click.FloatRange(min=0, min_open=True), default=2.0,
              show_default=True, help="Seconds of a round.")  # fmt: skip
@click.option("--seed", type=int, help="Of the order of the rounds; random, and kept in the file.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="The file of results; wr-TIME.jsonl.")
@click.option("--resume", type=click.Path(dir_okay=False), help="Continue in this file, with what it was begun with.")
@click.option("--others-max", type=click.FloatRange(min=0), default=0.05, show_default=True,
              help="CPUs that others may use in a round that counts.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(min=0), default=2, show_default=True,
              help="How often a disturbed pair is repeated.")  # fmt: skip
@click.option("--counts", "with_counts", is_flag=True, help="Count memory, sizes and system calls first.")
@MARKDOWN
@SHARE
@click.pass_context
def run(context, workloads, chosen, contest, output, resume, with_counts, markdown, **given) -> None:
    """Measure servers side by side in interleaved rounds.

    WORKLOADS: W1, W2 ... or files of your own that end in .toml; all that wr has.

    Servers are started here and listen on 127.0.0.1, so that there is no --agent: `wr rounds` has it."""
    if output and resume:
        raise click.UsageError("--resume FILE writes into FILE: leave out -o")
    if contest:
        refuse_beside_contest(context)
    seed = random.randrange(1 << 31) if given.pop("seed") is None else context.params["seed"]
    if resume:
        plan = resume_plan(load_results(resume), resume, workloads, chosen)
    elif contest:
        plan = contests.make_plan(contest, seed=seed, **{name: given[name] for name in OF_ANY_PLAN})
    else:
        plan = Plan.make(workloads, chosen, seed=seed, counts=with_counts, **given)
    plan.choose()  # mistakes are reported before a file is made
    contests.check_generators(plan)
    path = resume or output or datetime.datetime.now().strftime("wr-%Y%m%d-%H%M%S.jsonl")
    with ResultsWriter(path, resume is not None) as writer:
        problems = []
        try:
            run_plan(plan, writer, problems)
        except KeyboardInterrupt:
            click.echo(f"\nended; {path} has what was measured, and --resume {path} continues it", err=True)
            sys.exit(INTERRUPTED)
        finally:
            found = load_results(path)
            print_lines(tables.format_markdown(found) if markdown else tables.format_file(found))
            tell(problems)
        if problems:
            sys.exit(1)


def refuse_beside_contest(context):
    """The options that the file of a contest has a key for, and --resume, whose file says what is measured."""
    given = [name for name in ("workloads", "chosen", "rounds", "seconds", "with_counts", "resume")
             if context.params[name] and context.get_parameter_source(name) is not ParameterSource.DEFAULT]  # fmt: skip
    if given:
        raise click.UsageError("--contest FILE says what is measured: leave out " + ", ".join(
            OPTIONS.get(name, "WORKLOADS") for name in given))  # fmt: skip


def begin_contest(plan, comparison, known):
    """Says how long it will take, and names the servers that are not part of it."""
    comparison.progress.say(contests.describe(plan, known))
    for each in contests.list_missing(plan):
        comparison.exclude(**each)
        comparison.progress.say(f"NOT MEASURED: {each['server']} {EXCLUSIONS[each['kind']]}: {each['reason']}")


def run_plan(plan, writer, problems):
    """Appends to `problems` what could not be measured."""
    known = load_results(writer.path)

    def write(line):
        writer.append(from_fields(line))

    with open_environment(count_files(plan), plan.share_cpu, list_choices(plan), say) as environment:
        session = make_session(plan, environment, describe_session(), known)
        write(session)
        comparison = Comparison(plan, environment, measure, write, known, session["id"], problems)
        for note in environment.notes:
            comparison.progress.say(note)
        if plan.contest:
            begin_contest(plan, comparison, known)
        if plan.counts:
            left = [choice for choice in comparison.choices if choice.label not in known.counts]
            counts.count_servers(left, environment, make_crowd_command, write, problems.append)
        comparison.run()


def require_measured(results, columns, rows):
    """Raises a WrError for a server or a workload that the file does not have."""
    names = tables.names_measured(results)
    known = {*results.counts, *(results.column_of(name, label) for name in names for label in results.labels_of(name))}
    for kind, given, there in (("server", columns, known), ("workload", rows, set(names))):
        if missing := next((name for name in given if name not in there), None):
            raise WrError(f"{results.path} has no {kind} {missing}: it has {' '.join(sorted(there))}")


@click.command("compare")
@click.argument("files", nargs=-1, required=True)
@MARKDOWN
@click.option("-s", "--server", "columns", multiple=True, metavar="NAME", help="A column of the table; all servers.")
@click.option("-w", "--workload", "rows", multiple=True, metavar="NAME", help="A row of the table; all workloads.")
def compare(files, markdown, columns, rows) -> None:
    """Print the table of one file of results, or compare two files."""
    if len(files) > 2 or (markdown and len(files) > 1):
        raise click.UsageError("give one file or two, and --markdown only with one")
    if (columns or rows) and not markdown:
        raise click.UsageError("-s and -w choose from the table of --markdown")
    found = [load_results(path) for path in files]
    if empty := next((each.path for each in found if not each.rounds and not each.counts), None):
        raise WrError(f"{empty} holds no rounds")
    if markdown:
        require_measured(found[0], columns, rows)
        print_lines(tables.format_markdown(found[0], columns, rows))
    else:
        print_lines(tables.format_file(*found) if len(found) == 1 else tables.format_two(*found))


@click.command("check")
@click.argument("rules_file", metavar="RULES")
@click.argument("file")
@click.option("--strict", is_flag=True, help="Rules that are not certain or not measured fail too.")
def check(rules_file, file, strict) -> None:
    """Check a file of results against rules; exit status 1 when one is missed."""
    findings = rules.check(load_results(file), rules.read_rules(rules_file))
    print_lines(findings)
    if not rules.passes(findings, strict):
        sys.exit(1)


@click.command("counts")
@SERVERS
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="The file of results; none.")
@SHARE
def count(chosen, output: Optional[str], share_cpu) -> None:
    """Count memory, sizes and system calls of servers."""
    choices = [parse_choice(text) for text in chosen or choose_defaults()["servers"]]
    choices = [choice for choice in choices if choice.program or chosen]
    rows, problems = [], []
    with open_environment({}, share_cpu, choices, say) as environment:
        session = make_session(Plan(servers=list(chosen)), environment, describe_session(), Results([]))
        counts.count_servers(choices, environment, make_crowd_command, rows.append, problems.append)
    if output:
        with ResultsWriter(output) as writer:
            for line in (session, *rows):
                writer.append(from_fields(line))
    print_lines(counts.format_counts(rows))
    tell(problems)
    if problems:
        sys.exit(1)
