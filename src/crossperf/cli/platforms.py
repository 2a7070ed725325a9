"""``crossperf platforms``: the machines that runs belong to, with their facts."""

from __future__ import annotations

from pathlib import Path

import click

from crossperf import platforms as known
from crossperf.cli.completion import completing, kept_platforms
from crossperf.cli.options import REGISTRY, SETTINGS
from crossperf.cli.output import JSON, say, tell, write_facts, wrote
from crossperf.errors import PlatformError
from crossperf.plain import to_json
from crossperf.platforms import MachineFacts, Platform
from crossperf.text import as_utf8

#: What a line of the list shows of a platform, and the word that goes with it.
_HEADLINES = {"cpu_model": "", "cores": "cores", "memory_bytes": "memory", "price_per_hour": "an hour"}
_GPU_HEADLINES = {"gpu_model": "", "gpu_memory_bytes": "memory", "cpu_model": "beside it", "price_per_hour": "an hour"}
_NAMES = completing(kept_platforms)


@click.group(invoke_without_command=True)
@REGISTRY
@click.pass_context
def platforms(context: click.Context, registry: Path) -> None:
    """List the platforms that are kept; add, show and compare them."""
    context.obj = registry
    if context.invoked_subcommand is not None:
        return
    kept = known.read(registry)
    if not kept:
        say(f"no platforms are kept in {registry}; add this machine with 'crossperf platforms add NAME'")
    for entry in kept:
        facts = dict(known.describe(entry))
        headlines = _GPU_HEADLINES if entry.platform_class == "gpu" else _HEADLINES
        shown = [f"{facts[name]} {unit}".strip() for name, unit in headlines.items() if name in facts]
        tell(f"{entry.name:<28} {entry.platform_class or '':<5} {', '.join(shown)}")


@platforms.command("add")
@click.argument("name", required=False)
@click.option("--class", "platform_class", default="cpu", help="cpu, gpu or another word.")
@SETTINGS
@click.option("--overwrite", is_flag=True, help="Replace the entry of that name.")
@click.pass_obj
def platforms_add(
    registry: Path, name: str | None, platform_class: str, settings: tuple[str, ...], overwrite: bool
) -> None:
    """Gather the facts of this machine into an entry; NAME is made from them where it is left out.

    Further facts with --set, such as price_per_hour=1.2.
    """
    facts = known.facts_of_this_machine()
    if platform_class == "gpu" and not facts.gpus:
        # The processor of this machine is none of the GPU's facts.
        facts = _facts_from_elsewhere(name, settings)
    name, platform_class = name and as_utf8(name), as_utf8(platform_class)
    entry = Platform(name or known.name_for(facts, platform_class), platform_class, facts)
    for pair in settings:
        entry = known.set_fact(entry, as_utf8(pair))
    known.add(registry, entry, overwrite=overwrite)
    _show_facts(entry)
    wrote(registry)


def _facts_from_elsewhere(name: str | None, settings: tuple[str, ...]) -> MachineFacts:
    """Return no facts for a GPU that is not here; its user must give its name and some."""
    if not name or not settings:
        problem = f"{name or 'a GPU'}: this machine shows no GPU, so nothing is known of it but its class"
        advice = "Add it on the machine that has it, or give its facts: --set gpu_model='NVIDIA H200'"
        raise PlatformError(f"{problem}. {advice}.", name=name)
    return MachineFacts()


def _show_facts(entry: Platform) -> None:
    tell(entry.name)
    for fact, text in known.describe(entry):
        tell(f"  {fact:<24} {text}")


@platforms.command("show")
@click.argument("name", required=False, shell_complete=_NAMES)
@JSON
@click.pass_obj
def platforms_show(registry: Path, name: str | None, json_file: Path | None) -> None:
    """Show every fact of an entry; without NAME those of this machine, kept or not."""
    entry = _entry(registry, name)
    _show_facts(entry)
    write_facts(json_file, entry.to_json)


@platforms.command("compare")
@click.argument("first", shell_complete=_NAMES)
@click.argument("second", shell_complete=_NAMES)
@JSON
@click.pass_obj
def platforms_compare(registry: Path, first: str, second: str, json_file: Path | None) -> None:
    """Show two entries side by side, with the second over the first; 'here' is this machine."""
    rows = known.compare(_entry(registry, first), _entry(registry, second))
    shown = [(row.fact, *row.texts, f"{row.ratio:.3g}" if row.ratio is not None else "") for row in rows]
    table = [("", first, second, "ratio"), *shown]
    widths = [max(len(line[column]) for line in table) for column in range(3)]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        tell("  ".join([*cells, line[3]]).rstrip())
    write_facts(json_file, lambda: {"a": first, "b": second, "facts": to_json(rows)})


def _entry(registry: Path, name: str | None) -> Platform:
    if name is None or name == "here":
        facts = known.facts_of_this_machine()
        return Platform(known.name_for(facts), "cpu", facts)
    return known.find(known.read(registry), name)
