"""A checkpoint folder is read whole or refused, and replaced without a moment in which neither version is there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from spanshot import checkpoint
from spanshot.checkpoint import check_target, is_checkpoint, read_checkpoint, write_checkpoint
from spanshot.errors import CheckpointError
from spanshot.locks import locked
from spanshot.manifest import MANIFEST, Manifest, StoredFile

posix = pytest.mark.skipif(os.name != "posix", reason="needs links, limits and signals of POSIX")


def version(number: int) -> dict[str, bytes]:
    """Files of which one never changes."""
    return {"model.toml": b"same", "weights.safetensors": b"%d" % number * 1000, "tagger.json": b"<%d>" % number}


def save(folder: Path, number: int, **options: float) -> None:
    write_checkpoint(folder, "tagger", version(number), **options)


def saved(folder: Path) -> int:
    """Return which version a folder contains; all of its files must be of that one."""
    files = read_checkpoint(folder).files
    number = int(files["tagger.json"].strip(b"<>"))
    assert files == version(number)
    return number


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path) -> Path:
    save(tmp_path / "mine", 1)
    return tmp_path / "mine"


def test_what_was_saved_is_read_back(folder):
    read = read_checkpoint(folder)
    assert read.kind == "tagger"
    assert read.files == version(1)
    assert read.text("model.toml") == "same"
    assert set(read_checkpoint(folder, ["model.toml", "no such file"]).files) == {"model.toml"}
    assert names(folder) == {MANIFEST, *version(1)}
    assert names(folder.parent) == {"mine"}


def test_each_save_replaces_the_one_before_and_leaves_nothing_of_it(folder):
    for number in range(2, 6):
        save(folder, number)
        assert saved(folder) == number
        assert len(names(folder)) == 1 + len(version(number))
    assert names(folder.parent) == {"mine"}


def test_a_file_that_has_not_changed_is_not_written_again(folder):
    before = (folder / "model.toml").stat()
    save(folder, 2)
    assert (folder / "model.toml").stat().st_mtime_ns == before.st_mtime_ns
    assert (folder / "model.toml").stat().st_ino == before.st_ino


def test_a_damaged_file_is_written_again_by_the_next_save(folder):
    (folder / "model.toml").write_bytes(b"SAME")
    (folder / "tagger.json").unlink()
    save(folder, 1)
    assert saved(folder) == 1
    assert (folder / "model.toml").read_bytes() == b"SAME"  # not what we wrote, so not ours to remove


def test_a_file_becomes_no_folder(tmp_path):
    (tmp_path / "afile").write_text("mine", encoding="utf-8")
    for act in (lambda: save(tmp_path / "afile", 1), lambda: check_target(tmp_path / "afile", "tagger")):
        with pytest.raises(CheckpointError, match="afile: is a file; give the name of a folder"):
            act()
    assert (tmp_path / "afile").read_text(encoding="utf-8") == "mine"


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work", encoding="utf-8")
    for act in (lambda: save(tmp_path / "thesis", 1), lambda: check_target(tmp_path / "thesis", "tagger")):
        with pytest.raises(CheckpointError, match="thesis: contains other files and is not a spanshot checkpoint"):
            act()
    assert names(tmp_path) == {"thesis"}
    assert names(tmp_path / "thesis") == {"chapter1.tex"}


def test_a_trained_model_is_not_replaced_by_a_tagger(tmp_path):
    write_checkpoint(tmp_path / "best", "model", version(1))
    for act in (lambda: save(tmp_path / "best", 2), lambda: check_target(tmp_path / "best", "tagger")):
        with pytest.raises(
            CheckpointError, match="best: contains a model, not a tagger; give the name of a new folder"
        ):
            act()
    assert saved(tmp_path / "best") == 1
    check_target(tmp_path / "best", "model")
    check_target(tmp_path / "new", "tagger")


@pytest.mark.parametrize("name", ["a\0b", "half\ud800"])
def test_a_name_that_no_folder_can_have_is_one_line(tmp_path, name):
    for act in (lambda: save(tmp_path / name, 1), lambda: check_target(tmp_path / name, "tagger")):
        with pytest.raises(CheckpointError, match="is not a folder name"):
            act()
    with pytest.raises(CheckpointError, match="no such checkpoint folder"):
        read_checkpoint(tmp_path / name)


def test_a_name_that_is_too_long_is_one_line(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_checkpoint(tmp_path / ("x" * 300))
    with pytest.raises(CheckpointError, match="cannot be saved"):
        save(tmp_path / ("x" * 300), 1)


def test_neighbours_with_likely_names_are_left_alone(tmp_path):
    for name in ("mine.old", "mine.new", "mine.tmp", ".mine.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").touch()
    for number in (1, 2, 3):
        save(tmp_path / "mine", number)
    for name in ("mine.old", "mine.new", "mine.tmp", ".mine.tmp"):
        assert names(tmp_path / name) == {"precious"}
    assert names(tmp_path) == {"mine", "mine.old", "mine.new", "mine.tmp", ".mine.tmp"}


def test_foreign_files_in_a_checkpoint_stay_also_where_they_have_names_of_ours(folder):
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    (folder / "weights-2.safetensors").write_text("mine too", encoding="utf-8")
    (folder / "sub").mkdir()
    save(folder, 2)
    save(folder, 3)
    assert saved(folder) == 3
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (folder / "weights-2.safetensors").read_text(encoding="utf-8") == "mine too"
    assert (folder / "sub").is_dir()


def test_an_empty_folder_is_filled_and_missing_parents_are_made(tmp_path):
    (tmp_path / "empty").mkdir()
    inode = (tmp_path / "empty").stat().st_ino
    save(tmp_path / "empty", 1)
    assert saved(tmp_path / "empty") == 1
    assert (tmp_path / "empty").stat().st_ino == inode  # a shell may stand in it
    save(tmp_path / "a" / "b" / "c", 1)
    assert saved(tmp_path / "a" / "b" / "c") == 1


def test_the_current_folder_can_be_saved_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(Path(), 1)
    save(Path(), 2)
    assert saved(Path()) == 2
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    Path("file").touch()
    with pytest.raises(CheckpointError, match=r"^\.: contains other files"):
        save(Path(), 3)


@posix
def test_a_link_to_a_folder_is_followed(folder):
    link = folder.with_name("link")
    link.symlink_to(folder)
    save(link, 2)
    assert link.is_symlink()
    assert saved(folder) == 2


FULL_DISK = """
import resource, sys
from pathlib import Path
from spanshot.checkpoint import write_checkpoint
from spanshot.errors import CheckpointError
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    write_checkpoint(sys.argv[1], "tagger", {"a.txt": b"small", "b.txt": b"x" * 10_000})
except CheckpointError as error:
    print(error)
"""


@posix
@pytest.mark.parametrize("target", ["mine", "new", "a/b", "empty"])
def test_a_full_disk_is_one_line_and_leaves_everything_as_it_was(folder, target):
    (folder.parent / "empty").mkdir()
    before = names(folder)
    path = folder.parent / target
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: cannot be saved: File too large\n"
    assert names(folder.parent) == {"mine", "empty"}
    assert names(folder) == before
    assert names(folder.parent / "empty") == set()
    assert saved(folder) == 1


def test_a_save_that_has_to_wait_too_long_says_why(folder):
    with locked(folder / checkpoint.LOCK, 0), pytest.raises(CheckpointError, match="another process is saving"):
        save(folder, 2, timeout=0.1)
    save(folder, 2, timeout=0.1)
    assert saved(folder) == 2
    assert checkpoint.LOCK not in names(folder)


def in_child(act: Callable[[], None]) -> int:
    """Start a process that does something; return its number."""
    child = os.fork()
    if not child:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


@posix
@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("existing", [False, True])
def test_of_several_processes_that_save_to_one_folder_each_succeeds_and_the_last_wins(tmp_path, processes, existing):
    folder = tmp_path / "mine"
    if existing:
        save(folder, 0)

    def save_often(number: int) -> None:
        for _ in range(5):
            save(folder, number)
            assert 1 <= saved(folder) <= processes

    children = [in_child(partial(save_often, number)) for number in range(1, processes + 1)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * processes
    assert 1 <= saved(folder) <= processes
    assert len(names(folder)) == 1 + len(version(1))
    assert names(tmp_path) == {"mine"}


def test_a_reader_starts_over_when_another_process_saves_meanwhile(folder, monkeypatch):
    read, turns = checkpoint.read_stored, iter((2, 3))

    def slowly(where: Path, stored: StoredFile) -> bytes:
        if where == folder and (number := next(turns, 0)):
            monkeypatch.setattr(checkpoint, "read_stored", read)
            save(folder, number)
            monkeypatch.setattr(checkpoint, "read_stored", slowly)
        return read(where, stored)

    monkeypatch.setattr(checkpoint, "read_stored", slowly)
    assert saved(folder) == 3


def save_and_die(folder: Path, number: int, steps: int) -> None:
    """Save, but be killed after so many steps; each change of the file system is one before and one after."""
    left = iter(range(steps))

    def around(act):
        def done(*args, **options):
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            returned = act(*args, **options)
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return returned

        return done

    for name in ("replace", "rename", "unlink", "mkdir", "rmdir"):
        setattr(Path, name, around(getattr(Path, name)))
    os.open, os.fsync = around(os.open), around(os.fsync)
    save(folder, number)


@posix
@pytest.mark.parametrize("start", ["new", "empty", "old"])
def test_a_kill_at_any_step_leaves_the_old_version_or_the_new_one_and_the_next_save_cleans_up(tmp_path, start):
    """Every step of a save is the last one once; on each of these states, another save is killed in the middle."""
    for step in count():
        parent = tmp_path / str(step)
        folder = parent / "mine"
        parent.mkdir()
        if start == "empty":
            folder.mkdir()
        elif start == "old":
            save(folder, 1)
        _, killed = os.waitpid(in_child(partial(save_and_die, folder, 2, step)), 0)
        if not killed or start == "old":
            assert saved(folder) in ({1, 2} if killed else {2})
        elif start == "new":
            assert not folder.exists() or saved(folder) == 2
        elif is_checkpoint(folder) and not Manifest.read(folder).files:
            with pytest.raises(CheckpointError, match="saving to it was interrupted"):
                read_checkpoint(folder)
        os.waitpid(in_child(partial(save_and_die, folder, 3, step // 2)), 0)
        save(folder, 4)
        assert saved(folder) == 4
        assert len(names(folder)) == 1 + len(version(4)), names(folder)
        assert names(parent) == {"mine"}, names(parent)
        if not killed:
            break
    assert 20 < step < 200


def test_temporary_folders_that_hold_anything_else_are_left_alone(tmp_path):
    for name in (".spanshot-0123456789abcdef.tmp", ".spanshot-mine.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").touch()
    save(tmp_path / "mine", 1)
    save(tmp_path / ".spanshot-fedcba9876543210.tmp", 1)
    (tmp_path / ".spanshot-fedcba9876543210.tmp" / "tagger.json").write_bytes(b"edited")
    save(tmp_path / "other", 1)
    assert (tmp_path / ".spanshot-0123456789abcdef.tmp" / "precious").exists()
    assert (tmp_path / ".spanshot-mine.tmp" / "precious").exists()
    assert (tmp_path / ".spanshot-fedcba9876543210.tmp" / "tagger.json").read_bytes() == b"edited"


def change(folder: Path, **fields: object) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **fields}), encoding="utf-8")


ENTRY = {"file": "model.toml", "size": 4, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"format": 2}, "checkpoint format 2; this version of spanshot reads format 1"),
        ({"format": 10**400}, "checkpoint format 1000"),
        ({"format": "1"}, "damaged: field 'format' must be a whole number"),
        ({"format": True}, "damaged: field 'format' must be a whole number"),
        ({"kind": "pickle"}, "damaged: field 'kind' must be one of model, tagger"),
        ({"files": []}, "damaged: field 'files' must be an object"),
        ({"files": {"a": ENTRY | {"file": "../model.toml"}}}, "damaged: invalid file name '../model.toml'"),
        ({"files": {"a": ENTRY | {"file": "/etc/passwd"}}}, "damaged: invalid file name '/etc/passwd'"),
        ({"files": {"a": ENTRY | {"file": "C:evil"}}}, "damaged: invalid file name 'C:evil'"),
        ({"files": {"a": ENTRY | {"file": "a\\b"}}}, "damaged: invalid file name"),
        ({"files": {"a": ENTRY | {"file": "NUL.txt"}}}, "damaged: invalid file name"),
        ({"files": {"a": ENTRY | {"file": ".hidden"}}}, "damaged: invalid file name"),
        ({"files": {"a": ENTRY | {"file": MANIFEST}}}, "damaged: invalid file name"),
        ({"files": {"a": ENTRY | {"file": "x" * 5000}}}, "damaged: invalid file name"),
        ({"files": {"../a": ENTRY}}, "damaged: invalid file name"),
        ({"files": {"a": ENTRY | {"size": -1}}}, "damaged: a file has no valid size and digest"),
        ({"files": {"a": ENTRY | {"size": 10**300}}}, "damaged: a file has no valid size and digest"),
        ({"files": {"a": ENTRY | {"size": 4.0}}}, "damaged: field 'size' must be a whole number"),
        ({"files": {"a": ENTRY | {"sha256": "0"}}}, "damaged: a file has no valid size and digest"),
        ({"files": {"a": ENTRY | {"sha256": None}}}, "damaged: field 'sha256' must be a string"),
        ({"unused": [ENTRY | {"file": "../../x"}]}, "damaged: invalid file name"),
        ({"unused": None}, "damaged: field 'unused' must be a list"),
    ],
)
def test_a_manifest_with_wrong_values_is_refused_by_readers_and_writers(folder, fields, problem):
    change(folder, **fields)
    for act in (lambda: read_checkpoint(folder), lambda: save(folder, 2)):
        with pytest.raises(CheckpointError) as raised:
            act()
        assert str(raised.value).startswith(f"{folder / MANIFEST}: {problem}")
        assert len(str(raised.value)) < 400
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "damaged: malformed JSON"),
        (b"{", "damaged: malformed JSON"),
        (b"[]", "damaged: expected a JSON object"),
        (b"{}", "damaged: field 'format' is missing"),
        (b"\xff{}", "damaged: not UTF-8 at byte 0"),
        (b"[" * 100_000, "damaged: JSON is nested too deeply"),
        (b'{"format": 1' + b"0" * 5000 + b"}", "damaged: malformed JSON"),
        (b'{"format": NaN}', "damaged: malformed JSON: NaN is not a JSON value"),
        (b" " * 2_000_000, "damaged: more than 1,000,000 bytes"),
    ],
)
def test_a_manifest_that_is_no_manifest_is_refused(folder, content, problem):
    (folder / MANIFEST).write_bytes(content)
    for act in (lambda: read_checkpoint(folder), lambda: save(folder, 2)):
        with pytest.raises(CheckpointError) as raised:
            act()
        assert str(raised.value).startswith(f"{folder / MANIFEST}: {problem}")
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", list(version(1)))
def test_every_bit_of_every_file_is_verified(folder, name):
    path = folder / name
    whole = path.read_bytes()
    for bit in {0, 7, len(whole) * 4, len(whole) * 8 - 1}:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"{name}: damaged: its digest differs from the one in {MANIFEST}"):
            read_checkpoint(folder)
    for content in (b"", whole[:-1], whole + b"x"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=rf"{name}: damaged: \d+ bytes, but {len(whole)} in {MANIFEST}"):
            read_checkpoint(folder)
    path.unlink()
    with pytest.raises(CheckpointError, match=f"{name}: missing"):
        read_checkpoint(folder)


@posix
def test_links_and_pipes_in_a_checkpoint_are_verified_like_files(folder, tmp_path):
    path = folder / "model.toml"
    path.unlink()
    (tmp_path / "same").write_bytes(b"same")
    path.symlink_to(tmp_path / "same")
    assert saved(folder) == 1
    for target in ("/dev/zero", str(tmp_path), str(path)):
        path.unlink()
        path.symlink_to(target)
        with pytest.raises(CheckpointError, match=r"model\.toml: (damaged|cannot be read)"):
            read_checkpoint(folder)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match=r"model\.toml: damaged: not a regular file"):
        read_checkpoint(folder)


def test_what_is_no_checkpoint_says_so(tmp_path):
    (tmp_path / "file").touch()
    for name, problem in (
        ("missing", "no such checkpoint folder"),
        ("file", "is a file, not a checkpoint folder"),
        (".", "not a checkpoint: checkpoint.json missing"),
    ):
        with pytest.raises(CheckpointError, match=problem):
            read_checkpoint(tmp_path / name)
