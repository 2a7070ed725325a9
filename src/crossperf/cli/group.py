"""The command line's outer form: commands in sections, each loaded when it is used, errors in terms of flags."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from crossperf.errors import CrossperfError

#: The commands of each section: where each lives, and its line in the help.
Sections = Mapping[str, Mapping[str, tuple[str, str]]]


class LazyCommands(Mapping[str, click.Command]):
    """Commands by name, each imported when it is first looked up."""

    def __init__(self, sections: Sections) -> None:
        self.places = {name: place for commands in sections.values() for name, (place, _) in commands.items()}

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = self.places[name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


class CommandGroup(click.Group):
    """Commands under headings; only the module of the command that runs is imported.

    Parameters
    ----------
    sections
        By heading and name: ``module:attribute``, and the sentence that the help shows, so that it imports nothing.
    """

    def __init__(self, *arguments: Any, sections: Sections, **settings: Any) -> None:
        super().__init__(*arguments, **{**settings, "commands": LazyCommands(sections)})
        self.sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, section by section."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about a Python argument is put in terms of the command's flags."""
        try:
            return super().invoke(ctx)
        except CrossperfError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            error.args = (in_flags(error, list(_parameters(command))), *error.args[1:])
            raise


def _parameters(command: click.Command | None) -> Iterator[click.Parameter]:
    """Yield the parameters of a command, and of the commands below it."""
    if command is not None:
        yield from command.params
    if isinstance(command, click.Group):
        for part in command.commands.values():
            yield from _parameters(part)


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
    return re.sub(r"\b(\w+)=True\b", lambda match: _switch(match, parameters), sentence)


def _flag(argument: str, parameters: list[click.Parameter]) -> str:
    for parameter in parameters:
        flags = [flag for flag in parameter.opts if flag.startswith("--")]
        if argument == parameter.name or f"--{argument.replace('_', '-')}" in flags:
            return flags[0] if flags else parameter.human_readable_name.strip("[]")
    return argument


def _switch(match: re.Match[str], parameters: list[click.Parameter]) -> str:
    switches = [parameter for parameter in parameters if isinstance(parameter, click.Option) and parameter.is_flag]
    flag = _flag(match[1], list(switches))
    return flag if flag != match[1] else match[0]
