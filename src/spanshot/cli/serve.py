"""``spanshot serve``: answer HTTP requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanshot.cli import options
from spanshot.cli.console import note
from spanshot.cli.new_app import new_app
from spanshot.errors import ConfigError
from spanshot.optional import need

app = new_app()


@app.command()
def serve(
    folder: Annotated[Path, typer.Option("--folder", metavar="FOLDER", help="Keep the taggers in this folder.")],
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port to listen on.", min=0, max=65535)] = 8000,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", help="Number of processes. They share the folder.", min=1)
    ] = 1,
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            help="File with API keys, one per line. The environment variable SPANSHOT_API_KEYS may hold further ones, "
            "separated by commas.",
        ),
    ] = None,
    no_keys: Annotated[
        bool, typer.Option("--no-keys", help="Let everybody who can connect use the service, on any address.")
    ] = False,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--cors",
            metavar="ORIGIN",
            help="Let web pages of this origin, such as https://example.org, call the service. Can be repeated.",
        ),
    ] = None,
    model: options.ModelFolder = None,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", help="Threads of the model in each process.", min=1)
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Change a limit: text, texts, examples, example, labels, label, taggers, versions, body, bodies, "
            "requests, queue, changes or seconds. Can be repeated.",
        ),
    ] = None,
) -> None:
    """Answer HTTP requests: create taggers from examples, and tag texts with them.

    Needs the extra [serve]. The API is described at /openapi.json. Without API keys, the service listens on the local
    machine only.
    """
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        need(package, "serve")
    from spanshot.service.settings import LOCAL_HOSTS, Limits, Settings, read_keys

    is_local = host in LOCAL_HOSTS
    api_keys = read_keys(keys)
    if not api_keys and not is_local and not no_keys:
        raise ConfigError(f"--host {host} lets other machines connect; use --keys FILE, or --no-keys if that is wanted")
    settings = Settings(
        folder.absolute(),
        api_keys,
        tuple(origins or ()),
        hosts=() if api_keys or no_keys else ("127.0.0.1", "localhost", "[::1]"),
        model=model.absolute() if model else None,
        threads=threads,
        limits=Limits().changed(limits or []),
    )
    from spanshot.service.run import serve as run
    from spanshot.service.store import TaggerStore

    TaggerStore(settings.folder)  # report a folder that cannot be used before processes are started
    note(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}, taggers in {folder}")
    run(settings, host, port, workers)
