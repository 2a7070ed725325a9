"""One command per stage, one sentence per error: the result first, then caveats, then the files written."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from crossperf import __version__
from crossperf.cli.group import CommandGroup
from crossperf.cli.interrupts import Interrupts
from crossperf.errors import CrossperfError
from crossperf.plain import whole
from crossperf.text import safe

_SECTIONS = {
    "Start here": {
        "ask": "Run a command and tell where it would run how fast.",
        "demo": "Run the main job end to end on measured runs that come along.",
        "toy": "Write a runs table drawn from a known law.",
        "runs": "Check, describe or rename what a runs table holds.",
    },
    "Measure": {
        "profile": "Run a command and add its counters and time to a table.",
        "import": "Add the runs of profilers' files to a table.",
        "platforms": "List, add, show and compare platforms.",
        "campaign": "Measure a list of inputs, here or through Slurm.",
        "include": "Print the folder of crossperf.h, which marks a region.",
    },
    "Learn": {
        "evaluate": "Score models on held-out runs.",
        "train": "Train a model and save it as a folder.",
        "predict": "Predict the times of new runs on every platform.",
        "adapt": "Add a platform to a model from a few workloads.",
        "convert": "Rewrite a model or a result of an earlier format.",
    },
    "Show": {"report": "Make a page of an evaluation or a model.", "plot": "Draw one figure."},
    "Place": {
        "schedule": "Simulate clusters that place jobs by predictions.",
        "slurm": "Use predictions in a Slurm cluster.",
        "serve": "Answer over HTTP: an API and a page.",
    },
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what goes wrong is one sentence and an exit code."""
    _open_what_is_closed()
    _forget_sizes_that_are_none()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a letter that the terminal lacks is no reason to fail
    with Interrupts() as interrupts:
        try:
            status = commands.main(arguments, prog_name="crossperf", standalone_mode=False)
        except (Exception, KeyboardInterrupt) as error:
            # Libraries turn an interrupt while they are imported into errors of their own.
            if interrupts.number is not None or isinstance(error, KeyboardInterrupt | click.Abort):
                _fail("interrupted; no file was left half-written.", 128 + (interrupts.number or signal.SIGINT))
            _explain(error)
    sys.exit(status if isinstance(status, int) else 0)


def _forget_sizes_that_are_none() -> None:
    """Let the terminal tell its size where the environment does not: rich takes whatever looks like digits."""
    for name in ("COLUMNS", "LINES"):
        if name in os.environ and whole(os.environ[name]) is None:
            del os.environ[name]


def _open_what_is_closed() -> None:
    """Lead standard streams that the caller closed to nowhere.

    Otherwise the next file that is opened takes the number of a closed stream, and what is printed ends up in it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _explain(error: BaseException) -> NoReturn:
    """End with a sentence about an error that is no defect of ours; what is one is raised again."""
    if isinstance(error, CrossperfError):
        _fail(str(error))
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message())
        sys.exit(error.exit_code)
    if isinstance(error, click.ClickException):
        _fail(f"{error.format_message()} 'crossperf --help' and 'crossperf COMMAND --help' tell more.", error.exit_code)
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        sys.exit(141)
    if isinstance(error, MemoryError):
        _fail("there is not enough memory for this. Take fewer runs or platforms, or a machine with more.")
    if isinstance(error, OSError):
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}.")
    raise error


def _fail(sentence: str, status: int = 1) -> NoReturn:
    click.echo(f"error: {safe(sentence)}", err=True)
    sys.exit(status)


@click.group(
    cls=CommandGroup,
    sections=_SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog='Completion in bash: eval "$(_CROSSPERF_COMPLETE=bash_source crossperf)"',
)
@click.version_option(__version__, package_name="crossperf")
def commands() -> None:
    """I ran this application here; how fast would it be over there?"""
