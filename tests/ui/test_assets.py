"""The built page in the package belongs to the sources; no Node is needed to check that."""

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "ui"
STATIC = ROOT / "src" / "spanshot" / "ui" / "static"
NAMES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.js")


def digest() -> str:
    """Return the digest that ui/digest.mjs writes."""
    files = [
        *NAMES,
        *(f"{folder}/{path.name}" for folder in ("public", "src") for path in (SOURCES / folder).iterdir()),
    ]
    sources = hashlib.sha256()
    for name in sorted(files):
        sources.update(f"{name}\n".encode())
        sources.update((SOURCES / name).read_text(encoding="utf-8").encode())
    return sources.hexdigest()


def test_the_built_page_matches_its_sources():
    assert (STATIC / "sources.sha256").read_text(encoding="utf-8").strip() == digest(), "run `make page`"


def test_the_page_names_no_other_host():
    for path in STATIC.iterdir():
        hosts = set(re.findall(r"https?://([\w.-]+)", path.read_text(encoding="utf-8")))
        assert hosts <= {"www.w3.org"}, path.name  # names of XML vocabularies


@pytest.mark.parametrize("name", ["package-lock.json", ".npmrc"])
def test_the_lock_file_names_no_registry(name):
    text = (SOURCES / name).read_text(encoding="utf-8")
    assert '"resolved"' not in text
    assert "registry=" not in text.replace("omit-lockfile-registry-resolved=", "")


@pytest.mark.parametrize("path", sorted((SOURCES / "src").iterdir()), ids=lambda path: path.name)
def test_sources_of_the_page_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
