"""``spanshot ui``: annotate text on a local page, with suggestions."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanshot.cli import options
from spanshot.cli.console import visible
from spanshot.cli.new_app import new_app
from spanshot.errors import DataError
from spanshot.optional import need

if TYPE_CHECKING:
    from spanshot.ui.project import Project

app = new_app()
DEFAULT_PROJECT = "annotations.spanshot.jsonl"


@app.command()
def ui(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILES]",
            help="Texts to annotate, with or without annotations, in any format that `spanshot convert` reads; or a "
            "project (.spanshot.jsonl).",
            show_default=False,
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project", "-p", metavar="FILE", help="Project file. Default: next to the first file, or in this folder."
        ),
    ] = None,
    model: options.ModelFolder = None,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port. Default: a free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    device: options.Device = None,
) -> None:
    """Annotate text on a local page, with suggestions after the first example.

    Every action is saved at once in a project file, which `spanshot learn --examples` and all other commands read.
    The page is served to this computer only, and needs no internet.
    """
    for package in ("fastapi", "uvicorn"):
        need(package, "ui")
    from spanshot.formats.project import is_project
    from spanshot.ui.project_file import project_path
    from spanshot.ui.reading import open_project

    files = files or []
    for path in files:
        if not path.exists():
            raise DataError.at(path, None, "no such file; check the path")
    texts = [path for path in files if not is_project(path)]
    projects = [path for path in (*([project] if project else []), *files) if is_project(path)]
    if project is not None and not is_project(project):
        raise typer.BadParameter("a project file must end with .spanshot.jsonl", param_hint="--project")
    if len(set(projects)) > 1:
        raise typer.BadParameter("name one project only")
    target = projects[0] if projects else project_path(texts[0]) if texts else Path(DEFAULT_PROJECT)
    _serve(open_project(target, texts), model, port, browser, device)


def _serve(opened: Project, model: Path | None, port: int, browser: bool, device: str | None) -> None:
    import uvicorn

    from spanshot.ui.server import bind, make_app, new_token
    from spanshot.ui.session import Session

    session = Session(opened, lambda: options.load_model_or_default(model, device))
    try:
        with contextlib.closing(bind(port)) as bound:
            token, port = new_token(), bound.getsockname()[1]
            address = f"http://127.0.0.1:{port}/#token={token}"
            config = uvicorn.Config(
                make_app(session, token, port), log_level="critical", access_log=False, timeout_graceful_shutdown=1
            )
            print(visible(f"{opened.file.path}: every action is saved here"))
            print(f"open {address}  (Ctrl-C stops)", flush=True)
            session.start()
            if browser:
                threading.Timer(0.5, webbrowser.open, [address]).start()
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(uvicorn.Server(config).serve(sockets=[bound]))
    finally:
        session.close()
    print(visible(f"all actions are saved in {opened.file.path}"))
