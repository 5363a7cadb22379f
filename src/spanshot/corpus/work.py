"""The work of a job as workers receive it, and the digest of the tagger that identifies it."""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spanshot.corpus.part import PartTagger
from spanshot.corpus.settings import CorpusSettings
from spanshot.engine.threads import VARIABLE
from spanshot.manifest import Manifest

if TYPE_CHECKING:
    from spanshot.tagger import Tagger

ONE_THREAD = {VARIABLE: "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Environment of workers: one thread each, as batches, and so the last digits of scores, depend on the number."""


@dataclass(frozen=True)
class Work:
    """What a worker needs, besides the parts."""

    tagger: Tagger
    settings: CorpusSettings
    folder: Path
    """The output folder, an absolute path."""

    def packed(self) -> bytes:
        """Return the work as bytes, for a worker of this job."""
        return pickle.dumps(self)

    def start(self) -> PartTagger:
        """Return the function that tags parts."""
        return PartTagger(self.tagger, self.settings, self.folder)


def unpacked(content: bytes) -> PartTagger:
    """Load the tagger in a worker and return the function that tags parts."""
    os.environ.update(ONE_THREAD)
    work = pickle.loads(content)
    assert isinstance(work, Work)
    return work.start()


def tagger_digest(tagger: Tagger) -> str:
    """Return a digest of a tagger: of the files that it is saved as, and the type of its numbers."""
    if tagger.model is None:  # a tagger of the user's own kind, which cannot be saved
        return hashlib.sha256(repr((type(tagger), tagger.support, tagger.options)).encode()).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(Path(folder, "tagger"), examples=tagger.has_examples)
        files = Manifest.read(Path(folder, "tagger")).files
    lines = [f"{name} {stored.sha256}\n" for name, stored in sorted(files.items())]
    method = tagger.tuned or getattr(tagger.model, "method", None)
    lines.append(f"dtype {getattr(method, 'dtype', '')}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()
