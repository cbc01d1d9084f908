"""The command line for tests: run it as a user does, or only parse arguments."""

import os
import subprocess
import sys
from pathlib import Path

import typer

from same.cli import app

COMMAND = Path(sys.executable).with_name("same")


def same(*arguments, **environment):
    """Run the installed command; returns exit code, standard output and standard error."""
    run = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    return run.returncode, run.stdout, run.stderr


def _verbs(group, path=()):
    for name, command in group.commands.items():
        yield from _verbs(command, (*path, name)) if hasattr(command, "commands") else [((*path, name), command)]


VERBS = dict(_verbs(typer.main.get_command(app)))
"""Every verb, including those of groups, by the words that call it."""


def parse(arguments):
    """Parse arguments without running the verb; raises if they are invalid."""
    group, words = typer.main.get_command(app), list(arguments)
    while hasattr(group, "commands"):
        context = group.make_context("same", words, resilient_parsing=False)
        words = [*context._protected_args, *context.args]
        _, group, words = group.resolve_command(context, words)
    return group.make_context("same", words).params
