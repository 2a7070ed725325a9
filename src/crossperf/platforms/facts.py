"""The facts of a machine: what is known of its processor, memory, caches, GPUs and system.

A fact that is not known is ``None``. Sizes are in bytes, clocks in GHz.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from crossperf import plain

#: A size or a clock, and a number of things.
Number = Annotated[int | float, plain.Between(least=0)]
Count = Annotated[int, plain.Between(least=0)]
#: What a user may note of a machine: numbers are finite and of 64 bits.
OwnFact = bool | int | float | str | list[Any] | dict[str, Any] | None


@dataclass(frozen=True)
class CpuCache:
    """A cache of a processor: `kind` is ``data``, ``instruction`` or ``unified``.

    `shared_by` is how many hardware threads share it, `instances` how many such caches the machine has.
    """

    level: Count
    kind: str
    size_bytes: Number | None = None
    ways: Count | None = None
    line_bytes: Count | None = None
    shared_by: Count | None = None
    instances: Count | None = None


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver describes it."""

    vendor: str | None = None
    model: str | None = None
    memory_bytes: Number | None = None
    compute_capability: str | None = None
    max_ghz: Number | None = None
    driver: str | None = None
    architecture: str | None = None


@dataclass(frozen=True)
class MachineFacts:
    """What is known of a machine; `more` holds facts that only its user knows, such as a price.

    >>> facts = MachineFacts(cores=2, more={"price_per_hour": 1.2})
    >>> facts.to_json()
    {'cores': 2, 'price_per_hour': 1.2}
    >>> MachineFacts.from_json(facts.to_json()) == facts
    True
    """

    cpu_vendor: str | None = None
    cpu_implementer: str | None = None
    cpu_model: str | None = None
    architecture: str | None = None
    sockets: Count | None = None
    cores: Count | None = None
    threads_per_core: Count | None = None
    hardware_threads_online: Count | None = None
    hardware_threads: Count | None = None
    cpu_quota: Number | None = None
    base_ghz: Number | None = None
    base_ghz_from: str | None = None
    max_ghz: Number | None = None
    caches: tuple[CpuCache, ...] = ()
    memory_bytes: Number | None = None
    memory_limit_bytes: Number | None = None
    numa_nodes: Count | None = None
    page_bytes: Count | None = None
    page_levels: Count | None = None
    huge_page_bytes: Count | None = None
    huge_pages_reserved: Count | None = None
    transparent_huge_pages: str | None = None
    kernel: str | None = None
    os: str | None = None
    hypervisor: bool | None = None
    hypervisor_name: str | None = None
    gpus: tuple[Gpu, ...] = ()
    more: Mapping[str, OwnFact] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse_wide(self.more)

    def to_json(self) -> dict[str, Any]:
        """Return the facts that are known, all on one level."""
        facts: dict[str, Any] = _known(plain.to_json(self))
        more: dict[str, Any] = facts.pop("more", {})
        lists = {name: list(map(_known, facts[name])) for name in ("caches", "gpus") if name in facts}
        return facts | lists | more

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> MachineFacts:
        """Return the facts that `to_json` wrote; one of the wrong type raises `plain.MisfitError`."""
        if not isinstance(facts, Mapping):
            raise plain.MisfitError(plain.shown(facts), "an object of facts")
        names = {known.name for known in fields(cls)} - {"more"}
        more = {name: value for name, value in facts.items() if name not in names}
        return plain.from_json(cls, {name: value for name, value in facts.items() if name in names} | {"more": more})


def _refuse_wide(facts: Any) -> None:
    """Raise `plain.MisfitError` where a whole number within facts has more than 64 bits: JSON of others has none."""
    parts = facts.items() if isinstance(facts, Mapping) else enumerate(facts) if isinstance(facts, list) else ()
    for name, value in parts:
        if type(value) is int and not -(2**63) < value < 2**63:
            raise plain.MisfitError(plain.shown(value), "a number of 64 bits").below(name)
        try:
            _refuse_wide(value)
        except plain.MisfitError as misfit:
            raise misfit.below(name) from None


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value not in (None, [], {})}
