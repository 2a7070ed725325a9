"""``crossperf serve``: predictions over HTTP, and pages on the same server."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from crossperf.cli.options import PATH, registry_path
from crossperf.cli.output import say
from crossperf.errors import MissingDependencyError


@click.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1, type=PATH)
@click.option("--host", default="127.0.0.1", help="The address to listen on; beyond this machine it needs a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, help="The port; 0 takes any that is free.")
@click.option("--workers", type=click.IntRange(1, 256), default=1, help="Processes that answer, on the same port.")
@click.option("--token-file", type=PATH, help="Lines of 'read TOKEN' or 'write TOKEN'; its owner's alone.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name that requests may use; may be repeated.")
@click.option(
    "--platforms",
    "platforms_file",
    type=PATH,
    envvar="CROSSPERF_PLATFORMS",
    default=registry_path,
    show_default="platforms.json in the folder for settings",
    help="Where platforms and their prices are kept.",
)
@click.option("--runs", "runs_file", type=PATH, help="The database to keep finished runs in; made where it is absent.")
@click.option(
    "--campaign", "campaigns", multiple=True, metavar="[NAME=]DIR[,SPEC]", help="A campaign to follow; may be repeated."
)
@click.option("--access-log", type=PATH, help="Write a line of JSON a request here instead of to stderr.")
@click.option("--max-upload", type=click.IntRange(1, 4096), default=32, help="Megabytes of one request's body.")
@click.option("--upload-seconds", type=click.FloatRange(1), default=30.0, help="Seconds that reading one may take.")
@click.option("--upload-memory", type=click.IntRange(512), default=4096, help="Megabytes that reading one may take.")
def serve(
    models: tuple[Path, ...],
    host: str,
    port: int,
    workers: int,
    token_file: Path | None,
    allow_host: tuple[str, ...],
    platforms_file: Path,
    runs_file: Path | None,
    campaigns: tuple[str, ...],
    access_log: Path | None,
    max_upload: int,
    upload_seconds: float,
    upload_memory: int,
) -> int:
    """Answer over HTTP with MODEL, or several, or the model that comes with crossperf.

    The page is at the address that is printed, the API under /api/v1, its description at /api/v1/openapi.json. SIGTERM
    finishes what is in flight; SIGHUP loads the models again.
    """
    # One run is too little work for more threads, which only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        from crossperf.serve import running
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"The service needs {error.name}: pip install 'crossperf[serve]'", package=error.name
        ) from error
    from crossperf.serve.atlas import cache_folder
    from crossperf.serve.context import ServerLimits
    from crossperf.serve.readers import MEGABYTE, Readers, UploadLimits
    from crossperf.serve.service import Service
    from crossperf.serve.tokens import Tokens

    logging.basicConfig(level=logging.WARNING, format="crossperf: %(message)s")
    listening = running.Listening(
        host,
        port,
        workers,
        allow_host,
        Tokens.read(token_file, os.environ),
        ServerLimits(body_bytes=max_upload * MEGABYTE),
        access_log,
    )
    listening.refuse_open()
    followed = []
    if campaigns:
        from crossperf.serve.following import Campaign

        followed = [Campaign.parse(text) for text in campaigns]
    service = Service.open(
        models,
        platforms_file=platforms_file,
        runs_file=runs_file,
        campaigns=followed,
        cache=cache_folder(),
        readers=Readers(UploadLimits(upload_seconds, upload_memory * MEGABYTE)),
    )
    return running.serve(service, listening, say)
