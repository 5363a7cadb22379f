"""Put a trained model into the package: graphs, weights in half precision, tokenizer, settings and digests.

    python tools/embed_model.py RUN                       a run or checkpoint of the method `linear`
    python tools/embed_model.py RUN RUN                   the mean of the weights of several
    python tools/embed_model.py weights.safetensors       weights alone, of the shape of the packaged model
    python tools/embed_model.py --scores scores.toml RUN  with other numbers for calibration and thresholds
    python tools/embed_model.py --match 2 RUN             with another bonus for texts that are marked in the examples
    python tools/embed_model.py --float32 --folder F RUN  in single precision, elsewhere; to compare the two
    python tools/embed_model.py --refresh                 only the card and digests, after an edit by hand

Calibration and thresholds stay as they are in the package unless they are given. The model card of the documentation is
copied into the folder.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file

from spanshot.heads.settings import ScoreSettings
from spanshot.manifest import Manifest, StoredFile
from spanshot.model import load_model
from spanshot.research import checkpoint
from spanshot.research.export_model import exported_files
from spanshot.research.methods import Method
from spanshot.research.training.settings import RunSettings
from spanshot.settings import Table, build, read_table, to_toml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "src" / "spanshot" / "model_files"
CONFIG = ROOT / "configs" / "many" / "linear-minilm.toml"
CARD = ROOT / "docs" / "model-card.md"
# Names of tensors in weights that were trained before the method was part of this package.
_RENAMED = (
    (r"^encoder\.bert\.", "encoder.transformer."),
    (r"^(start|end|width|out)\.", r"spans.\1."),
    (r"^name_(hidden|out|bias)\.", r"names.\1."),
    (r"^nameless_", "names.nameless_"),
    (r"^settings\.", "head."),
)


def method_of(source: Path) -> tuple[Method, checkpoint.ModelSettings, Table]:
    """Return the method of a run, its settings and its record; or a new method with weights from a file."""
    if source.is_dir():
        saved = checkpoint.load(source)
        return saved.method, saved.settings, checkpoint.read_record(source)
    settings = RunSettings.of(read_table(CONFIG))
    method = checkpoint.new_method(settings)
    weights = renamed(load_file(source))
    missing = [name for name, _ in method.named_parameters() if name not in weights]
    if missing and missing != ["encoder.transformer.embeddings.word_embeddings.weight"]:  # frozen in training
        raise SystemExit(f"{source}: {missing[0]} is missing")
    method.load_state_dict({name: value.float() for name, value in weights.items()}, strict=False)
    return method.eval(), settings.model, settings.to_table()


def mean_of(sources: Sequence[Path]) -> tuple[Method, checkpoint.ModelSettings, Table]:
    """Return a method with the mean of the weights of all sources; settings and record are those of the last one."""
    methods = [method_of(source) for source in sources]
    method, settings, record = methods[-1]
    weights = [other.state_dict() for other, _, _ in methods]
    mean = {
        name: sum(other[name] for other in weights) / len(weights) if value.is_floating_point() else value
        for name, value in weights[-1].items()
    }
    method.load_state_dict(mean)
    return method, settings, record


def renamed(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return weights under the names of the method in this package."""
    names = {}
    for name, value in weights.items():
        for pattern, new in _RENAMED:
            name = re.sub(pattern, new, name)
        names[name] = value
    return names


def embed(
    sources: Sequence[Path],
    scores: ScoreSettings | None = None,
    folder: Path = FOLDER,
    match: float | None = None,
    *,
    half: bool = True,
) -> None:
    """Write the model to the package's folder and open it."""
    method, settings, record = mean_of(sources)
    if match is not None:
        with torch.no_grad():
            method.get_parameter("head.match").fill_(match)
    files = exported_files(checkpoint.SavedModel(method, settings), scores, half=half)
    record["data"]["folder"] = "data"  # wherever it was on the machine that trained
    write_folder(folder, {**files, checkpoint.RECORD: to_toml(record).encode()})
    load_model(folder)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder}: {size:.1f} MB")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replace the files of the model and its card; other files stay."""
    folder.mkdir(exist_ok=True)
    (folder / "README.md").write_text(card(), encoding="utf-8")
    if (folder / "checkpoint.json").exists():
        for stored in Manifest.read(folder).files.values():
            (folder / stored.file).unlink(missing_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    Manifest("model", {name: StoredFile.of(name, content) for name, content in files.items()}, ()).write(folder)


def card() -> str:
    """Return the model card without links to other pages, which are not in the package."""
    return re.sub(r"\[([^]]+)\]\((?!https?:)[^)]*\)", r"\1", CARD.read_text(encoding="utf-8"))


def refresh(folder: Path = FOLDER) -> None:
    """Write the card and the digests of the files as they are, and check that the model can be loaded."""
    (folder / "README.md").write_text(card(), encoding="utf-8")
    manifest = Manifest.read(folder)
    files = {
        name: StoredFile.of(stored.file, (folder / stored.file).read_bytes()) for name, stored in manifest.files.items()
    }
    Manifest(manifest.kind, files, ()).write(folder)
    load_model(folder)


def main() -> None:
    """Parse the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", type=Path, help="runs, checkpoints or files of weights to average")
    parser.add_argument("--scores", type=Path, help="TOML file with calibration and thresholds")
    parser.add_argument("--match", type=float, help="bonus for texts that are marked in the examples")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder to write")
    parser.add_argument("--float32", action="store_true", help="store the weights in single precision")
    parser.add_argument("--refresh", action="store_true", help="only write the card and new digests")
    options = parser.parse_args()
    if options.refresh:
        refresh(options.folder)
    elif not options.sources:
        parser.error("name a run or a file of weights")
    else:
        scores = build(ScoreSettings, read_table(options.scores)) if options.scores else None
        embed(options.sources, scores, options.folder, options.match, half=not options.float32)


if __name__ == "__main__":
    main()
