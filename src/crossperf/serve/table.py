"""The table of endpoints: paths, parameters, bodies and scopes of the API, from which routes and schema follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossperf.plain import Between
from crossperf.platforms import Platform
from crossperf.prediction.explain import Explanation
from crossperf.prediction.measuring import NextMeasurements
from crossperf.records import Familiarity, Run
from crossperf.serve import api
from crossperf.serve.answers import Predictions
from crossperf.serve.bodies import CSV, JSON, JSONL, PARQUET
from crossperf.serve.drift import Drift
from crossperf.serve.endpoints import Endpoint, Parameter
from crossperf.serve.placing import QueueOption
from crossperf.serve.problems import Fault

_OCTETS, _TEXT, _EVENTS = "application/octet-stream", "text/plain", "text/event-stream"
_MODEL = Parameter("model", str, "The model that answers, by its id; the default is the first of /models.")
_CAN = Parameter(
    "can",
    list,
    "Platform classes or platforms for which there is a version of the program, with commas between: cpu,gpu.",
)
_KEEP = Parameter("keep", bool, "Keep what was predicted, to be compared with runs that follow; write scope.", False)
_NEED_RUNTIME = Parameter("need_runtime", bool, "Whether a run without a runtime is a problem.", True)
_RUNS: Mapping[str, Any] = {JSON: Run | list[Run], JSONL: str, CSV: str, PARQUET: bytes}
_EXAMPLE = {
    "app": "lulesh",
    "input": "30",
    "platform": "epyc-1t",
    "runtime_s": 12.5,
    "counters": {"instructions": 3.1e10, "mem_ratio": 0.41, "float_ratio": 0.22, "page_faults": 5300},
}
_PLACE_EXAMPLE = {
    "run": _EXAMPLE,
    "job": {"nodes": 1, "requested_s": 600},
    "queues": [
        {"name": "small", "platform": "epyc-2t", "nodes": 64, "free_nodes": 3, "queued": 0},
        {"name": "large", "platform": "xeon-16t", "nodes": 8, "free_nodes": 0, "queued": 12, "wait_s": 300},
    ],
}
_SUGGESTION: Mapping[str, Any] = {"app": str, "input": str, "gain": float, "why": str}
_MODEL_FACTS: Mapping[str, Any] = {
    "id": str,
    "kind": str,
    "fingerprint": str,
    "platforms": list[Mapping[str, str]],
    "sources": list[str],
    "workloads": int,
}
_PLATFORM: Mapping[str, Any] = {"name": str, "platform_class": str, "facts": Mapping[str, Any]}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/health", api.health, "Alive", "open", answers={JSON: {"status": str, "version": str}}),
    Endpoint(
        "GET", "/ready", api.ready, "Loaded", "open", answers={JSON: {"status": str, "models": Mapping[str, str]}}
    ),
    Endpoint("GET", "/metrics", api.metrics, "Figures of operation", answers={_TEXT: str}),
    Endpoint("GET", "/openapi.json", api.openapi, "This document", answers={JSON: Mapping[str, Any]}),
    Endpoint("GET", "/models", api.models, "Models", answers={JSON: {"models": [_MODEL_FACTS]}}),
    Endpoint("GET", "/models/{id}", api.model, "One model", answers={JSON: Mapping[str, Any]}),
    Endpoint("GET", "/platforms", api.platforms, "Platforms", answers={JSON: {"platforms": [_PLATFORM]}}),
    Endpoint("GET", "/platforms/{name}", api.platform, "One platform", answers={JSON: _PLATFORM}),
    Endpoint(
        "PUT",
        "/platforms/{name}",
        api.put_platform,
        "Keep a platform's facts and price",
        "write",
        body={JSON: Platform},
        answers={JSON: _PLATFORM},
        example={"name": "h200", "platform_class": "gpu", "facts": {"price_per_hour": 3.5}},
    ),
    Endpoint(
        "POST",
        "/predict",
        api.predict,
        "Predict",
        parameters=(
            _MODEL,
            Parameter("relative_to", str, "source, fastest, slowest, or a platform.", "source"),
            Parameter("level", float, "How often each interval should hold the truth.", 0.8, Between(0.0, 1.0)),
            _CAN,
            Parameter("joint", bool, "Whether the intervals of a run hold all at once that often.", False),
            Parameter("name", str, "What notes and problems call the runs, such as the name of a file.", "runs"),
            Parameter("pairs", bool, "Also tell how likely each platform beats each other one.", False),
            _KEEP,
        ),
        body=_RUNS,
        answers={JSON: Predictions, CSV: str},
        example=_EXAMPLE,
    ),
    Endpoint(
        "POST",
        "/explain",
        api.explain,
        "Explain predictions",
        parameters=(
            _MODEL,
            Parameter("platform", str, "The platform to explain; the default is the fastest predicted elsewhere."),
            Parameter("samples", int, "Walks between known runs and each run.", 64, Between(8, 1024)),
            Parameter("neighbours", int, "How many known workloads to name.", 5, Between(0, 100)),
            _CAN,
            Parameter("seed", int, "Seed of the draws.", 0, Between(0, 2**32 - 1)),
        ),
        body=_RUNS,
        answers={JSON: {"notes": list[str], "explanations": list[Explanation]}},
        example=_EXAMPLE,
    ),
    Endpoint(
        "POST",
        "/suggest",
        api.suggest,
        "What to measure next",
        parameters=(
            _MODEL,
            Parameter("count", int, "How many workloads to name for a new platform.", 5, Between(1, 100)),
            Parameter("platform", str, "The new platform, where the runs are on several."),
            _CAN,
        ),
        body=_RUNS,
        answers={JSON: {"runs": list[NextMeasurements], "workloads": [_SUGGESTION]}},
        example=_EXAMPLE,
    ),
    Endpoint(
        "POST",
        "/runs/check",
        api.check_runs,
        "Every problem of a runs table",
        parameters=(_NEED_RUNTIME,),
        body=_RUNS,
        answers={JSON: {"usable": bool, "problems": list[Fault]}},
        example=_EXAMPLE,
    ),
    Endpoint(
        "POST",
        "/import",
        api.import_file,
        "A profiler's file into runs",
        parameters=(
            Parameter("format", str, "The format, as 'crossperf import' names it; auto tells it by its looks.", "auto"),
            Parameter("name", str, "The file's name; some formats are recognised by its ending.", "profile"),
            Parameter("app", str, "The application, above what the file says."),
            Parameter("input", str, "The input, above what the file says."),
            Parameter("platform", str, "The platform, above what the file says."),
            Parameter("platform_class", str, "The class of the platform."),
            Parameter("runtime_s", float, "The runtime, above what the file says.", None, Between(above=0.0)),
        ),
        body={_OCTETS: bytes},
        answers={JSON: {"runs": list[Run], "notes": list[str], "rejected": list[str]}, JSONL: str},
    ),
    Endpoint(
        "GET",
        "/workloads",
        api.workloads,
        "Known workloads",
        parameters=(
            Parameter("like", str, "Words that the application and input must hold.", ""),
            Parameter("limit", int, "How many to return.", 100, Between(1, 10_000)),
            _MODEL,
        ),
        answers={
            JSON: {
                "workloads": [
                    {
                        "app": str,
                        "input": str,
                        "seconds": Mapping[str, float | None],
                        "sources": list[str],
                        "fastest": str,
                    }
                ]
            }
        },
    ),
    Endpoint(
        "GET",
        "/workloads/run",
        api.workload_run,
        "A known workload as a run",
        parameters=(
            Parameter("app", str, "The application.", ""),
            Parameter("input", str, "The input.", ""),
            Parameter("source", str, "Where it was profiled."),
            _MODEL,
        ),
        answers={JSON: Run},
    ),
    Endpoint(
        "GET",
        "/map",
        api.workload_map,
        "The map of known workloads",
        parameters=(_MODEL,),
        answers={
            JSON: {
                "platforms": list[str],
                "workloads": [{"app": str, "input": str, "x": float, "y": float, "fastest": str | None}],
            }
        },
    ),
    Endpoint(
        "POST",
        "/place",
        api.place,
        "A policy's choice for a job",
        parameters=(_MODEL, _CAN, _KEEP),
        body={JSON: api.PlaceRequest},
        answers={
            JSON: {
                "choice": str | None,
                "reason": str,
                "policy": str,
                "options": list[QueueOption],
                "cannot": Mapping[str, str],
                "familiarity": Familiarity | None,
            }
        },
        example=_PLACE_EXAMPLE,
    ),
    Endpoint(
        "POST",
        "/runs",
        api.add_runs,
        "Keep finished runs",
        "write",
        body=_RUNS,
        answers={JSON: {"added": int, "known": int}},
        status=201,
        example=_EXAMPLE,
    ),
    Endpoint(
        "GET",
        "/runs",
        api.kept_runs,
        "Kept runs",
        parameters=(
            Parameter("app", str, "Of this application alone."),
            Parameter("input", str, "Of this input alone."),
            Parameter("platform", str, "On this platform alone."),
            Parameter("after", int, "Those after this number.", 0, Between(0, 2**53)),
            Parameter("limit", int, "How many to return.", 1000, Between(1, 10_000)),
        ),
        answers={JSON: {"runs": list[Run], "next": int | None}, JSONL: str},
    ),
    Endpoint(
        "GET",
        "/drift",
        api.drift,
        "How far off past predictions were",
        parameters=(Parameter("since", float, "Of runs after this moment, in seconds since 1970.", 0.0),),
        answers={JSON: Drift},
    ),
    Endpoint("GET", "/campaigns", api.campaigns, "Campaigns", answers={JSON: {"campaigns": list[Mapping[str, Any]]}}),
    Endpoint(
        "GET",
        "/campaigns/{id}/events",
        api.campaign_events,
        "Follow a campaign",
        parameters=(
            Parameter("after", int, "Send visits after this number.", 0, Between(0, 2**53)),
            Parameter("once", bool, "End after what is known now.", False),
        ),
        answers={_EVENTS: str},
    ),
)
