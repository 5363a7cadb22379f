"""Read texts to annotate: files in any format, with or without annotations, and pasted text."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from spanshot.errors import DataError
from spanshot.formats.documents import Document
from spanshot.formats.examples import read_documents
from spanshot.formats.files import lines_of, read_text
from spanshot.formats.guess import UnknownFormatError, format_of_name
from spanshot.formats.json_values import parse_json_lines
from spanshot.formats.table_files import check_columns, is_table_file, read_rows
from spanshot.ui.project import Project


def read_file(path: Path) -> list[Document]:
    """Read a file in any format. A file without annotations is read line by line."""
    try:
        return list(read_documents(path).documents)
    except UnknownFormatError:
        if path.suffix.lower() == ".json":
            raise
    except DataError:
        if format_of_name(path) != "table":
            raise
    return _plain(path)  # texts only


def _plain(path: Path) -> list[Document]:
    """Read texts without annotations: a text per line, the field "text" of JSON lines, or a column of a table."""
    if is_table_file(path):
        chunks = list(read_rows(path))
        for chunk in chunks:
            check_columns(chunk.names, "text")
        texts = [text for chunk in chunks for text in chunk.column("text")]
        return [Document(text) for text in texts if isinstance(text, str)]
    content = read_text(path)
    if path.suffix.lower() in {".jsonl", ".ndjson"} or content.lstrip().startswith('{"'):
        return [Document(place.take(record, "text", str)) for place, record in parse_json_lines(path, content)]
    return [Document(line) for _, line in lines_of(content) if line.strip()]


def read_pasted(text: str) -> list[Document]:
    """Read pasted text: a text per line, or the content of a file in any format."""
    return read_upload("pasted.txt", text.encode("utf-8", "replace"))


def read_upload(name: str, content: bytes) -> list[Document]:
    """Read the content of a file that was dropped on the page."""
    suffix = "".join(character for character in Path(name).suffix if character.isalnum() or character == ".")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix[:16]}"
        path.write_bytes(content)
        try:
            return read_file(path)
        except DataError as error:
            message = error.problem if isinstance(error, UnknownFormatError) else str(error)
            raise DataError(message.replace(str(path), name).replace(path.name, name)) from None


def add_new(project: Project, documents: Iterable[Document], source: str = "") -> list[int]:
    """Add the documents whose texts the project does not hold yet."""
    known = Counter(text.text for text in project.state.texts.values())
    new = []
    for document in documents:
        known[document.text] -= 1
        if known[document.text] < 0:
            new.append(document)
    return project.add_texts(new, source)


def open_project(path: Path, files: Sequence[Path]) -> Project:
    """Open a project and add the texts of files that it does not hold yet."""
    read = [(file, read_file(file)) for file in files]
    project = Project.open(path)
    try:
        for file, documents in read:
            add_new(project, documents, file.name)
    except BaseException:
        project.close()
        raise
    return project
