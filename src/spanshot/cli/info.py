"""``spanshot info``: print versions and paths for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import spanshot
from spanshot.cli import options
from spanshot.cli.console import visible
from spanshot.cli.new_app import new_app
from spanshot.json_text import JsonValue, to_json

PACKAGES = ("numpy", "tokenizers", "onnxruntime", "safetensors", "typer", "rich", "torch", "transformers", "accelerate")
VARIABLES = (
    *("SPANSHOT_THREADS", "SPANSHOT_DTYPE", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
    *("TOKENIZERS_PARALLELISM", "CUDA_VISIBLE_DEVICES", "HF_HOME"),
)

app = new_app()


@app.command()
def info(as_json: options.Json = False) -> None:
    """Show versions, model, threads and paths, for bug reports."""
    facts = collect()
    if as_json:
        print(to_json(facts, indent=2))
        return
    for section, values in facts.items():
        print(section)
        for name, value in values.items():
            print(visible(f"  {name}: {'not set' if value is None else value}"))


def collect() -> dict[str, dict[str, JsonValue]]:
    """Collect versions, the packaged model, threads and paths, without importing anything heavy."""
    package = Path(spanshot.__file__).parent
    return {
        "versions": {
            "spanshot": spanshot.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{name: _version(name) for name in PACKAGES},
        },
        "model": _model(package / "model_files"),
        "threads": {"cpus": os.cpu_count(), "usable cpus": _usable_cpus()},
        "environment": {name: os.environ.get(name) for name in VARIABLES},
        "paths": {"python": sys.executable, "spanshot": str(package)},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _model(folder: Path) -> dict[str, JsonValue]:
    files = sorted(path for path in folder.glob("*") if path.is_file())
    size = sum(path.stat().st_size for path in files)
    return {"folder": str(folder), "files": ", ".join(path.name for path in files), "megabytes": round(size / 1e6, 1)}


def _usable_cpus() -> int | None:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count()
