# SPDX-License-Identifier: Apache-2.0
"""The command line: reads a file, finds out which server it is for, and prints the converted one.

Exit statuses: 0 all is converted; 1 something is not; 2 the file cannot be parsed, or the options are wrong."""

import argparse
import os
import sys

from . import detect
from .model import Config
from .report import ConvertError, Place, Report
from .writer import write_config

DESCRIPTION = "Prints a configuration of nginx, Caddy or Apache as one file of this server."
EPILOG = """Comments at the beginning of the output say what is not converted, with file and line.

Exit codes: 0 all lines are converted; 1 some are not; 2 the file cannot be parsed, or the options are wrong."""


def read_options(args):
    parser = argparse.ArgumentParser(prog="monkey convert", description=DESCRIPTION, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", help="nginx.conf, a file of sites-enabled, a Caddyfile or httpd.conf")
    parser.add_argument("--from", dest="server", choices=detect.SERVERS, help="the server whose configuration it is")
    parser.add_argument("-o", "--output", metavar="FILE", help="write FILE instead of standard output")
    return parser.parse_args(args)


def convert(path: str, server=None):
    """Returns the converted text, the report and what was converted."""
    report, config = Report(), Config()
    convert_from = detect.find_converter(path, server)
    nodes = convert_from.read(path, report)
    report.lines += sum(node.count() for node in nodes)
    convert_from.convert(nodes, path, config, report)
    if not config.hosts:
        raise ConvertError(Place(path, 1), f"no {convert_from.HOSTS} is there")
    return write_config(config, report, os.path.basename(path)), report, config


def write_files(path: str, data: bytes, config: Config) -> None:
    """Writes the configuration, and files of users next to it, which are not replaced."""
    with open(path, "wb") as file:
        file.write(data)
    for name, lines in config.users.items():
        place = os.path.join(os.path.dirname(path), name)
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640), "w") as file:
            file.write("".join(f"{line}\n" for line in lines))


def main(args=None) -> int:
    options = read_options(args)
    try:
        text, report, config = convert(options.file, options.server)
        data = text.encode(errors="surrogateescape")
        if options.output:
            write_files(options.output, data, config)
        else:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
    except ConvertError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except OSError as error:
        print(f"monkey: {error.filename or 'the output'} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    if report.skipped:
        print(f"monkey: {report.summary()}", file=sys.stderr)
    return 1 if report.skipped else 0
