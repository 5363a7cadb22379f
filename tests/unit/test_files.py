"""Files are replaced as a whole or not at all, through links, and without leaving anything behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from spanshot import files
from spanshot.errors import DataError
from spanshot.files import remove_stale, replacing, same_file, write_bytes, write_text

posix = pytest.mark.skipif(os.name != "posix", reason="needs links, pipes and signals of POSIX")


@pytest.fixture
def old(tmp_path) -> Path:
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")
    return path


def test_text_is_utf_8_with_unix_line_ends_and_bytes_are_kept(tmp_path):
    write_text(tmp_path / "a", ["é\n", "ß\r\n"])
    assert (tmp_path / "a").read_bytes() == "é\nß\r\n".encode()
    write_bytes(tmp_path / "b", b"\x00\r\n\xff")
    assert (tmp_path / "b").read_bytes() == b"\x00\r\n\xff"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_the_old_file_is_there_until_the_new_one_is_complete(old):
    with replacing(old) as file:
        file.write("new")
        file.flush()
        assert old.read_text(encoding="utf-8") == "old"
    assert old.read_text(encoding="utf-8") == "new"


@pytest.mark.parametrize(
    "error", [ValueError("stop"), KeyboardInterrupt(), SystemExit(3), OSError(5, "x", "other.txt")]
)
def test_an_error_leaves_the_old_file_and_no_other(old, error):
    def fail() -> None:
        with replacing(old) as file:
            file.write("new")
            raise error

    with pytest.raises(type(error)) as raised:
        fail()
    assert raised.value is error
    assert old.read_text(encoding="utf-8") == "old"
    assert list(old.parent.iterdir()) == [old]


def test_no_new_file_is_left_by_an_error(tmp_path):
    with pytest.raises(DataError, match=r"out: cannot be written: '\\ud800' is not valid Unicode"):
        write_text(tmp_path / "out", ["fine", "\ud800"])
    assert not list(tmp_path.iterdir())


FULL_DISK = """
import resource, sys
from spanshot.errors import DataError
from spanshot.files import write_text
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_text(sys.argv[1], ["x" * 100] * 100)
except DataError as error:
    print(error)
"""


@posix
def test_a_full_disk_is_one_line_that_names_the_file_and_leaves_the_old_one(old):
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(old)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{old}: cannot be written: File too large\n"
    assert old.read_text(encoding="utf-8") == "old"
    assert list(old.parent.iterdir()) == [old]


@posix
def test_a_symbolic_link_stays_and_its_target_is_replaced(old, tmp_path):
    (tmp_path / "sub").mkdir()
    link = tmp_path / "sub" / "link"
    link.symlink_to("../out.txt")
    write_text(link, ["new"])
    assert link.is_symlink()
    assert old.read_text(encoding="utf-8") == "new"
    assert list((tmp_path / "sub").iterdir()) == [link]


@posix
def test_the_missing_target_of_a_link_is_made(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target")
    write_text(link, ["new"])
    assert link.is_symlink()
    assert (tmp_path / "target").read_text(encoding="utf-8") == "new"


@posix
def test_a_link_to_itself_is_an_error(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("link")
    with pytest.raises(DataError, match="link: cannot be written: Too many levels of symbolic links"):
        write_text(link, ["new"])


@posix
def test_a_named_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_text(pipe, ["through ", "the pipe"])
    reader.join()
    assert read == [b"through the pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@posix
def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    node = tmp_path / "null"
    try:
        os.mknod(node, stat.S_IFCHR | 0o600, Path("/dev/null").stat().st_rdev)
        node.write_bytes(b"")
    except OSError:
        pytest.skip("only root can make device nodes, and not everywhere")
    link = tmp_path / "link"
    link.symlink_to(node)
    write_text(node, ["gone"])
    write_text(link, ["gone"])
    assert stat.S_ISCHR(node.stat().st_mode)
    assert link.is_symlink()


@posix
def test_standard_output_is_written_to_also_where_it_is_a_file(tmp_path):
    program = "import sys; from spanshot.files import write_text; write_text('/dev/stdout', ['second\\n'])"
    log = tmp_path / "log"
    with log.open("ab") as out:
        out.write(b"first\n")
        out.flush()
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert log.read_bytes() == b"first\nsecond\n"


@pytest.mark.parametrize("name", ["a\0b", "half\ud800"])
def test_a_name_that_no_file_can_have_is_one_line(tmp_path, name):
    with pytest.raises(DataError, match="is not a file name"):
        write_text(tmp_path / name, ["x"])


def test_a_folder_and_a_missing_folder_are_errors_that_say_so(tmp_path):
    with pytest.raises(DataError, match="cannot be written: it is a folder"):
        write_text(tmp_path, ["x"])
    with pytest.raises(DataError, match=r"cannot be written: the folder .*missing does not exist"):
        write_text(tmp_path / "missing" / "out", ["x"])
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot be written: the folder .*file does not exist"):
        write_text(tmp_path / "file" / "out", ["x"])


def test_a_read_only_file_is_not_replaced(old, monkeypatch):
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)  # root may write anything
    with pytest.raises(DataError, match="cannot be written: it is read-only"):
        write_text(old, ["new"])
    assert old.read_text(encoding="utf-8") == "old"


@posix
def test_permissions_are_those_of_the_old_file_or_the_usual_ones(old):
    old.chmod(0o640)
    write_text(old, ["new"])
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    usual = os.umask(0o022)
    os.umask(usual)
    write_text(old.with_name("fresh"), ["new"])
    assert stat.S_IMODE(old.with_name("fresh").stat().st_mode) == 0o666 & ~usual


KILLED = """
import sys, time
from spanshot.files import replacing
with replacing(sys.argv[1]) as file:
    file.write("half of it")
    file.flush()
    print("ready", flush=True)
    time.sleep(60)
"""


@posix
def test_a_killed_writer_leaves_the_old_file_and_its_temporary_goes_with_the_next_write(old):
    writers = [subprocess.Popen([sys.executable, "-c", KILLED, str(old)], stdout=subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
    writers[0].send_signal(signal.SIGKILL)
    writers[0].wait()
    foreign = old.with_name(".spanshot-mine.tmp")
    foreign.touch()
    assert old.read_text(encoding="utf-8") == "old"
    assert len(list(old.parent.iterdir())) == 4
    write_text(old, ["new"])  # the other writer is still alive: its file stays
    assert old.read_text(encoding="utf-8") == "new"
    assert len(list(old.parent.iterdir())) == 3
    writers[1].send_signal(signal.SIGKILL)
    writers[1].wait()
    remove_stale(old.parent)
    assert set(old.parent.iterdir()) == {old, foreign}


def test_a_temporary_file_that_is_a_link_is_left_alone(old):
    link = old.with_name(".spanshot-0123456789abcdef.tmp")
    link.symlink_to(old)
    remove_stale(old.parent)
    assert link.is_symlink()
    assert old.exists()


def test_a_temporary_that_was_taken_for_stale_before_it_was_locked_is_made_again(old, monkeypatch):
    lock, removed = files.try_lock, []

    def remove_first(descriptor: int) -> bool:
        if not removed:
            (path,) = old.parent.glob(".spanshot-*.tmp")
            removed.append(path)
            path.unlink()
        return lock(descriptor)

    monkeypatch.setattr(files, "try_lock", remove_first)
    write_text(old, ["new"])
    assert removed
    assert old.read_text(encoding="utf-8") == "new"


def test_many_writers_of_one_file_leave_one_whole_version(tmp_path):
    path = tmp_path / "out"
    versions = [f"{number}" * 50_000 for number in range(4)]

    def write(text: str) -> None:
        for _ in range(5):
            write_text(path, [text])
            time.sleep(0)

    writers = [threading.Thread(target=write, args=(text,)) for text in versions]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_text(encoding="utf-8") in versions
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_file_is_recognised_through_links_and_other_spellings(old, tmp_path):
    (tmp_path / "hard").hardlink_to(old)
    assert same_file(old, tmp_path / "x" / ".." / "out.txt") is False  # there is no folder x
    assert same_file(old, f"{tmp_path}/./out.txt")
    assert same_file(old, tmp_path / "hard")
    assert not same_file(old, tmp_path / "missing")
