"""The models that a server answers with, by id; loaded once, and again as a whole on a reload."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf import plain
from crossperf.errors import CrossperfError, did_you_mean, some_of
from crossperf.model import store
from crossperf.model.trained import TrainedModel

#: The id of the model that comes with the package.
SHIPPED = "crossperf"


class UnknownNameError(CrossperfError):
    """What a request names is not known here: a model, a platform, a workload, a campaign."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model with the id that requests call it by, and the fingerprint of its numbers."""

    id: str
    model: TrainedModel
    fingerprint: str
    folder: Path | None = None

    @classmethod
    def load(cls, folder: Path | None, name: str) -> ServedModel:
        """Return the model of a folder, or the one that ships; its numbers are checked as `store.load` does."""
        written = store.read_description(folder or store.SHIPPED).written
        return cls(name, store.load(folder), str(written.get("fingerprint", "")), folder)

    def to_json(self, *, whole: bool = False) -> dict[str, Any]:
        """Return its facts as JSON's own types; `whole` adds counters, events, scores and the table it learned from."""
        model = self.model
        classes = dict(zip(model.platforms, model.cells.platform_classes, strict=True))
        facts: dict[str, Any] = {
            "id": self.id,
            "kind": model.name,
            "fingerprint": self.fingerprint,
            "platforms": [{"name": name, "platform_class": kind} for name, kind in classes.items()],
            "sources": list(model.sources),
            "workloads": len(model.workloads),
        }
        if not whole:
            return facts
        training = {**plain.to_json(model.training)} if model.training else None
        if training:
            training["path"] = Path(str(training.get("path"))).name  # no folder of the server leaves it
        return {
            **facts,
            "counters": list(model.counters),
            "events": list(model.columns.events),
            "training": training,
            "fit": plain.to_json(model.summary),
            "settings": plain.to_json(model.settings),
            "versions": dict(model.versions),
        }


class Models:
    """Served models in the order in which they were named; the first one answers where a request names none."""

    def __init__(self, models: Sequence[ServedModel], folders: Sequence[Path | None]) -> None:
        self._models = {model.id: model for model in models}
        self._folders = tuple(folders)

    @classmethod
    def load(cls, folders: Sequence[Path] = ()) -> Models:
        """Return the models of folders, under the names of these; without any, the model that ships."""
        places: list[Path | None] = list(folders) or [None]
        return cls([ServedModel.load(place, name) for place, name in zip(places, _ids(places), strict=True)], places)

    def loaded_again(self) -> Models:
        """Return the models of the same folders as they are now; one that cannot be read raises."""
        return Models.load([place for place in self._folders if place is not None])

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __len__(self) -> int:
        return len(self._models)

    @property
    def default(self) -> ServedModel:
        """The model that answers where none is named."""
        return next(iter(self))

    def find(self, name: str | None) -> ServedModel:
        """Return the model of an id, the default one without."""
        if name is None:
            return self.default
        if name not in self._models:
            expected = f"expected one of {some_of(self._models, 20)}"
            raise UnknownNameError(
                f"model: found {name!r}{did_you_mean(name, self._models)}, {expected}.", argument="model"
            )
        return self._models[name]


def _ids(places: Sequence[Path | None]) -> list[str]:
    """Return an id for each folder, made of its name; a second one of the same name gets a number."""
    ids: list[str] = []
    for place in places:
        name = SHIPPED if place is None else re.sub(r"[^\w.-]+", "-", place.resolve().name) or "model"
        ids.append(next(own for own in (name, *(f"{name}-{n}" for n in range(2, 999))) if own not in ids))
    return ids
