"""Checkpoints: folders of files with digests, read and written safely.

A checkpoint is a folder with the file `checkpoint.json`, its manifest: a format number, the kind of checkpoint, and
for each file of the checkpoint its name on disk, size and SHA-256 digest. Reading verifies all of them. A digest
protects against damage, not against a forger; whoever reads a file must not trust its content.

Saving never changes a file of the old checkpoint. New files are written beside the old ones under names that are
free, then the manifest is replaced, then the old files are removed. Replacing the manifest is one atomic operation on
every platform, so a kill at any moment leaves the old checkpoint or the new one. Before files are written, the
manifest lists them as `unused`, so that the next save recognises and removes the leftovers of a killed one. Files that
are not in the manifest, or differ from their digest, are not ours and are left alone. A checkpoint in a new folder is
written under a temporary name first and then renamed. A lock file keeps two processes from saving at the same time;
readers need no lock, as they start over if the manifest changes while they read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from spanshot.errors import CheckpointError, DataError
from spanshot.files import is_temporary, remove_stale, write_bytes
from spanshot.locks import locked
from spanshot.manifest import MANIFEST, Manifest, StoredFile, read_stored, remove_stored
from spanshot.scratch import ScratchFolder

LOCK = ".spanshot.lock"
LOCK_SECONDS = 60.0
"""Time that a save waits for another one to the same folder, in seconds."""
_READ_TRIES = 20


@dataclass(frozen=True)
class Checkpoint:
    """The verified content of a checkpoint."""

    folder: Path
    manifest: Manifest
    files: Mapping[str, bytes]

    @property
    def kind(self) -> str:
        """The kind of checkpoint: `model` or `tagger`."""
        return self.manifest.kind

    def content(self, name: str) -> bytes:
        """Return the content of a file that was read."""
        if name not in self.files:
            raise CheckpointError(f"{self.folder / MANIFEST}: the checkpoint has no file {name!r}")
        return self.files[name]

    def text(self, name: str) -> str:
        """Return the content of a UTF-8 file."""
        try:
            return self.content(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error(name, f"not UTF-8 at byte {error.start}") from None

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self.folder / self.manifest.files[name].file

    def error(self, name: str, problem: str) -> CheckpointError:
        """Return an error that names a file of the checkpoint."""
        where = self.path(name) if name in self.manifest.files else self.folder / name
        return CheckpointError(f"{where}: {problem}")


def is_checkpoint(folder: Path) -> bool:
    """Return whether the folder has a manifest; it may still be damaged."""
    return (folder / MANIFEST).is_file()


def checkpoint_in(folder: Path) -> Path:
    """Return the folder itself, or the best checkpoint of the run that it contains."""
    return folder / "best" if not is_checkpoint(folder) and (folder / "best").is_dir() else folder


def packaged_folder() -> Path:
    """Return the folder of the model in the package."""
    folder = Path(str(resources.files("spanshot"))) / "model_files"
    if not folder.is_dir():
        raise CheckpointError(
            "this build of spanshot contains no model; train one (`spanshot train`) and name its folder: "
            "spanshot.load_model(folder), or --model FOLDER"
        )
    return folder


def read_checkpoint(folder: Path, names: Collection[str] | None = None) -> Checkpoint:
    """Read and verify the named files of a checkpoint, or all of them. Names that it does not have are left out."""
    try:
        if not folder.is_dir():
            problem = "is a file, not a checkpoint folder" if folder.exists() else "no such checkpoint folder"
            raise CheckpointError(f"{folder}: {problem}")
    except OSError as error:  # such as a name that is too long
        raise CheckpointError(f"{folder}: cannot be read: {error.strerror}") from None
    for _ in range(_READ_TRIES):
        manifest = Manifest.read(folder)
        if not manifest.files:
            raise CheckpointError(f"{folder}: not a checkpoint: saving to it was interrupted; save again")
        try:
            files = {
                name: read_stored(folder, stored)
                for name, stored in manifest.files.items()
                if names is None or name in names
            }
        except CheckpointError:
            if Manifest.read(folder) == manifest:  # else another process has saved meanwhile
                raise
        else:
            return Checkpoint(folder, manifest, files)
    raise CheckpointError(f"{folder}: cannot be read: other processes keep saving to it")


def write_checkpoint(
    folder: str | Path, kind: str, files: Mapping[str, bytes], *, timeout: float = LOCK_SECONDS
) -> None:
    """Save files as the checkpoint in `folder`, replacing the one that is there.

    Refuse a folder with other files that is not a checkpoint, and one with a checkpoint of another kind. If another
    process is saving to the same folder, wait up to `timeout` seconds.
    """
    target = _target(folder)
    try:
        if not os.path.lexists(target):
            with ScratchFolder(target) as scratch:
                _replace(scratch.path, kind, files)
                if scratch.move():
                    return
        _check_target(target, folder, kind)
        with locked(target / LOCK, timeout):
            remove_stale(target)
            _replace(target, kind, files)
    except TimeoutError:
        raise CheckpointError(f"{folder}: another process is saving to this folder; try again later") from None
    except DataError as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else str(error)
        raise CheckpointError(f"{folder}: cannot be saved: {reason}") from error
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be saved: {error.strerror}") from error


def check_target(folder: str | Path, kind: str) -> None:
    """Raise `CheckpointError` if `write_checkpoint` would refuse the folder; for use before long work."""
    target = _target(folder)
    if os.path.lexists(target):
        _check_target(target, folder, kind)


def _target(folder: str | Path) -> Path:
    """Return the folder with links resolved."""
    try:
        return Path(os.path.realpath(folder))
    except ValueError:  # a null byte, or half of a surrogate pair
        raise CheckpointError(f"{str(folder)!a} is not a folder name; check the path") from None


def _check_target(target: Path, folder: str | Path, kind: str) -> None:
    if not target.is_dir():
        raise CheckpointError(f"{folder}: is a file; give the name of a folder to save to")
    if not is_checkpoint(target) and not _is_empty(target):
        raise CheckpointError(
            f"{folder}: contains other files and is not a spanshot checkpoint; give the name of a new folder"
        )
    if is_checkpoint(target):
        old = Manifest.read(target)
        if old.files and old.kind != kind:
            raise CheckpointError(f"{folder}: contains a {old.kind}, not a {kind}; give the name of a new folder")


def _is_empty(folder: Path) -> bool:
    return all(path.name == LOCK or is_temporary(path.name) for path in folder.iterdir())


def _replace(folder: Path, kind: str, files: Mapping[str, bytes]) -> None:
    """Replace the checkpoint in a folder that no other process saves to."""
    old = Manifest.read(folder) if is_checkpoint(folder) else None
    before = old or Manifest(kind, {}, ())
    for stored in before.unused:
        remove_stored(folder, stored)
    unchanged: dict[str, StoredFile] = {}
    fresh: dict[str, StoredFile] = {}
    for name, content in files.items():
        if stored_already := _find(folder, content, before):
            unchanged[name] = stored_already
        else:
            used_names = {stored.file.lower() for stored in fresh.values()}
            fresh[name] = StoredFile.of(_free_name(folder, name, used_names), content)
    planned = {name: unchanged.get(name) or fresh[name] for name in files}
    dropped = tuple(stored for stored in before.files.values() if stored not in planned.values())
    try:
        Manifest(before.kind, before.files, tuple(fresh.values())).write(folder)
        for name, stored in fresh.items():
            write_bytes(folder / stored.file, files[name])
        Manifest(kind, planned, dropped).write(folder)
    except BaseException:
        _undo(folder, old, planned, fresh.values())
        raise
    if dropped:
        remaining = tuple(stored for stored in dropped if not remove_stored(folder, stored))
        Manifest(kind, planned, remaining).write(folder)


def _undo(folder: Path, old: Manifest | None, planned: Mapping[str, StoredFile], fresh: Iterable[StoredFile]) -> None:
    """Remove the files of an interrupted save, unless the manifest lists them already."""
    with contextlib.suppress(OSError, CheckpointError, DataError):  # at worst, unused files remain and are listed
        if Manifest.read(folder).files != planned:
            for stored in fresh:
                remove_stored(folder, stored)
            if old is None:
                (folder / MANIFEST).unlink()
            else:
                Manifest(old.kind, old.files, ()).write(folder)


def _find(folder: Path, content: bytes, before: Manifest) -> StoredFile | None:
    """Return the file of the old checkpoint that has this content already."""
    for stored in before.files.values():
        if stored.matches(content):
            with contextlib.suppress(CheckpointError):
                read_stored(folder, stored)
                return stored
    return None


def _free_name(folder: Path, name: str, used_names: Collection[str]) -> str:
    """Return `name`, or `name` with a number, so that no file of this name exists."""
    stem, dot, suffix = name.partition(".")
    number, file = 1, name
    while os.path.lexists(folder / file) or file.lower() in used_names:
        number += 1
        file = f"{stem}-{number}{dot}{suffix}"
    return file
