"""The command line's outer form: commands in sections, each loaded when it is used, errors in terms of flags."""

from __future__ import annotations

import importlib
import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from crossperf.errors import CrossperfError


class CommandGroup(click.Group):
    """Commands under headings; only the module of the command that runs is imported, ``crossperf.cli.NAME``.

    `sections` holds the sentences of the help by heading and name, so that the help imports no command.
    """

    def __init__(self, *arguments: Any, sections: Mapping[str, Mapping[str, str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, section by section."""
        return [name for commands in self.sections.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now."""
        if cmd_name not in self.list_commands(ctx):
            return None
        name = cmd_name + "_" * keyword.iskeyword(cmd_name)
        command: click.Command = getattr(importlib.import_module(f"crossperf.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about a Python argument is put in terms of the command's flags."""
        try:
            return super().invoke(ctx)
        except CrossperfError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            below = command.commands.values() if isinstance(command, click.Group) else ()
            parameters = [parameter for part in (command, *below) if part for parameter in part.params]
            error.args = (in_flags(error, parameters), *error.args[1:])
            raise


class GroupWithDefault(click.Group):
    """A group one command of which need not be named: ``campaign SPEC`` is ``campaign run SPEC``."""

    def __init__(self, *arguments: Any, default: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._default = default

    def named(self, words: list[str]) -> list[str]:
        """Return words of a command line with the command named."""
        bare = bool(words) and words[0] not in {*self.commands, "-h", "--help"}
        return [self._default, *words] if bare else words

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the default command where none is named."""
        return super().parse_args(ctx, self.named(args))


def in_flags(error: CrossperfError, parameters: list[click.Parameter]) -> str:
    """Return an error's sentence with the flag, or the word of the usage line, for each Python argument.

    >>> level = click.Option(["--level"])
    >>> in_flags(CrossperfError("level: found 2, expected a share.", argument="level"), [level])
    '--level: found 2, expected a share.'
    """
    sentence, argument = str(error), error.facts.get("argument")
    if argument and (flag := _flag(argument, parameters)) != argument:
        named = sentence.startswith(f"{argument}:")
        sentence = flag + sentence.removeprefix(argument) if named else f"{sentence.rstrip('.')} ({flag})."
    switches = [parameter for parameter in parameters if isinstance(parameter, click.Option) and parameter.is_flag]
    for name in re.findall(r"\b(\w+)=True\b", sentence):
        if (flag := _flag(name, switches)) != name:
            sentence = sentence.replace(f"{name}=True", flag)
    return sentence


def _flag(argument: str, parameters: Sequence[click.Parameter]) -> str:
    for parameter in parameters:
        flags = [flag for flag in parameter.opts if flag.startswith("--")]
        if argument == parameter.name or f"--{argument.replace('_', '-')}" in flags:
            return flags[0] if flags else parameter.human_readable_name.strip("[]")
    return argument
