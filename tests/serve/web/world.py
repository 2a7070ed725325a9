"""A server with everything that pages show: hostile names, evaluations, a campaign that runs, prices."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from crossperf import dataset, platforms
from crossperf.datasets import toy
from crossperf.evaluation.run import evaluate
from crossperf.model import make, store, train
from crossperf.platforms import Gpu, MachineFacts, Platform
from crossperf.records import Run
from tests.model.conftest import QUICK

MARKUP = """<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>"""
LONG = "very-long-" * 1000
RIGHT_TO_LEFT = "مرحبا \u202eevil\u202c"
#: Applications whose names do more than name, where a page lets them.
HOSTILE = {"app0": MARKUP, "app1": LONG, "app2": RIGHT_TO_LEFT}
HOSTILE_PLATFORM = "<b onmouseover=alert(1)>gpu"
WRITE, READ = "w" * 24, "r" * 24
SPEC = """
inputs = ["inputs.toml"]
visits = 40
repeats = 1

[platforms.{platform}]
command = ["./app", "{{n}}"]
threads = 1
check = "stdout"

[platforms.other]
command = ["./app", "{{n}}"]
threads = 1
check = "stdout"
"""


def runs() -> list[Run]:
    """Return toy runs with hostile names."""
    made = toy.make_runs(apps=8, inputs=4, seed=3)
    names = {"gpu-b": HOSTILE_PLATFORM}
    return [
        replace(run, app=HOSTILE.get(run.app, run.app), platform=names.get(run.platform, run.platform)) for run in made
    ]


def asked() -> Run:
    """Return a run that the model has not seen, without two of its counters."""
    run = next(run for run in toy.make_runs(apps=9, inputs=4, seed=3) if run.app == "app8" and run.platform == "cpu-a")
    return replace(run, counters={name: run.counters[name] for name in list(run.counters)[:-2]})


def unknown() -> Run:
    """Return a run that is like nothing."""
    run = asked()
    far = {name: None if value is None else 1e9 * (value + 1.0) for name, value in run.counters.items()}
    return replace(run, app="stranger", counters=far)


@dataclass(frozen=True)
class World:
    """The folder of a world, and the command line of its server."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> World:
        """Train, evaluate, and write what a server reads."""
        table = runs()
        train(table, "crossperf", **QUICK["crossperf"]).save(folder / "toy")
        data = dataset.build(table)
        for split in ("workload", "app"):
            models = {name: (lambda name=name: make(name, **QUICK[name])) for name in ("ridge", "median")}
            result = evaluate(data, models, split=split, n_folds=2)
            (folder / f"{split}.json").write_text(json.dumps(result.to_json()))
        _platforms(folder / "platforms.json")
        _campaign(folder / "campaign")
        tokens = folder / "tokens"
        tokens.write_text(f"write {WRITE}\n")
        tokens.chmod(0o600)
        return cls(folder)

    @property
    def command(self) -> list[str]:
        """The command line of the server, on a free port."""
        at = self.folder
        options = {
            "--port": "0", "--token-file": at / "tokens", "--platforms": at / "platforms.json",
            "--runs": at / "runs.db", "--access-log": at / "log",
            "--campaign": f"night={at / 'campaign'},{at / 'campaign' / 'spec.toml'}",
        }  # fmt: skip
        evaluations = [part for split in ("workload", "app") for part in ("--evaluation", at / f"{split}.json")]
        words = [*(word for pair in options.items() for word in pair), *evaluations, at / "toy", store.SHIPPED]
        return [sys.executable, "-m", "crossperf", "serve", *map(str, words)]

    def start(self) -> tuple[subprocess.Popen[str], str]:
        """Start the server; return it with its address."""
        errors = (self.folder / "stderr").open("w")
        server = subprocess.Popen(self.command, stderr=errors, stdout=errors, text=True)
        until = time.monotonic() + 60
        while time.monotonic() < until and server.poll() is None:
            said = re.search(r"http://[\w.]+:\d+", (self.folder / "stderr").read_text())
            if said:
                return server, said[0]
            time.sleep(0.05)
        server.kill()
        raise AssertionError((self.folder / "stderr").read_text())

    def start_campaign(self) -> subprocess.Popen[bytes]:
        """Start a real campaign in the folder that the server follows."""
        at = self.folder / "campaign"
        words = ["campaign", str(at / "spec.toml"), "-o", str(at), "--resume"]
        return subprocess.Popen(
            [sys.executable, "-m", "crossperf", *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )


def _platforms(path: Path) -> None:
    cpu = MachineFacts(cpu_model="Toy CPU", cores=8, more={"price_per_hour": 0.5, "threads": 8})
    gpu = MachineFacts(gpus=(Gpu(model="Toy GPU"),), more={"price_per_hour": 2.5})
    for name, kind, facts in (("cpu-a", "cpu", cpu), ("gpu-a", "gpu", gpu), (HOSTILE_PLATFORM, "gpu", gpu)):
        platforms.add(path, Platform(name, kind, facts))


def _campaign(folder: Path) -> None:
    folder.mkdir()
    (folder / "inputs.toml").write_text("[app]\nn = [1, 2, 13]\n")
    (folder / "spec.toml").write_text(SPEC.format(platform="here"))
    app = folder / "app"
    app.write_text("#!/bin/sh\nif [ $1 = 13 ]; then echo '<b>bad luck</b>' >&2; exit 3; fi\nsleep 0.02\necho done\n")
    app.chmod(0o755)
