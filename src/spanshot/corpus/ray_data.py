"""Run a job on Ray Data: on this machine, or on a cluster.

The dataset is the list of parts, and an actor class with ``map_batches`` tags one part at a time: it loads the tagger
once, reads the rows of a part from the input and writes its output file. So no text passes through Ray, the rows of an
output file do not depend on Ray's blocks, and Ray repeats only the part of an actor that dies.
"""

from __future__ import annotations

import logging
import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from spanshot.corpus.local import MOST_DEATHS, lost_part
from spanshot.corpus.part import PartRecord
from spanshot.corpus.scan import InputFile, scan
from spanshot.corpus.settings import CorpusSettings
from spanshot.corpus.work import ONE_THREAD, Work, unpacked
from spanshot.corpus.worker import parse_part, part_line
from spanshot.errors import ConfigError, DataError, SpanshotError
from spanshot.json_text import Fields, JsonValue, parse_json, to_json
from spanshot.optional import need

if TYPE_CHECKING:
    import ray

    from spanshot.corpus.plan import Part

log = logging.getLogger(__name__)
_SECONDS_TO_CONNECT = 10


class RayRunner:
    """Runs a job on Ray."""

    def __init__(self, workers: int | None, address: str | None) -> None:
        self._ray = need("ray", "ray")
        self._data = need("ray.data", "ray")
        self._started = not self._ray.is_initialized()
        if self._started:
            self._connect(workers, address)
        self.workers = workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)

    def _connect(self, workers: int | None, address: str | None) -> None:
        options: dict[str, object] = {"include_dashboard": False, "num_cpus": workers} if address is None else {}
        try:
            if address and (match := re.fullmatch(r"([^/]+):(\d+)", address)):
                # Ray itself would try for minutes.
                socket.create_connection((match[1], int(match[2])), _SECONDS_TO_CONNECT).close()
            self._ray.init(address or "local", log_to_driver=False, logging_level="error", **options)
        except (OSError, ValueError, RuntimeError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ConfigError(f"cannot connect to Ray at {address or 'this machine'}: {reason}") from error

    def scan(self, names: Sequence[str], settings: CorpusSettings) -> list[InputFile]:
        """Scan files on the workers."""
        task = self._ray.remote(_scan)
        files = []
        for file in self._ray.get([task.remote(name, settings) for name in names]):
            if isinstance(file, str):
                raise DataError(file)
            files.append(file)
        return files

    def run(self, work: Work, parts: Sequence[Part]) -> Iterator[PartRecord]:
        """Yield the record of each part when it is done, in any order."""
        desk = self._ray.remote(num_cpus=0)(Desk).remote(work.packed())
        lines = [{"part": part_line(part).decode()} for part in parts]
        dataset = self._data.from_items(lines, override_num_blocks=len(lines))
        done = dataset.map_batches(
            RayWorker,
            batch_size=1,
            batch_format="numpy",
            compute=self._data.ActorPoolStrategy(size=min(self.workers, len(lines))),
            fn_constructor_args=(desk,),
            runtime_env={"env_vars": ONE_THREAD},
            num_cpus=1,
        )
        lost: list[str] = []
        for row in done.iter_rows():
            answer = Fields.of(parse_json(row["answer"]))
            if "error" in answer.record:
                raise DataError(answer.text("error"))
            if "lost" in answer.record:
                lost.append(answer.text("lost"))
            else:
                yield PartRecord.of(answer.object("record"))
        for part, count in self._ray.get(desk.repeated.remote()).items():
            log.info("workers died with part %d, which was begun %d times", part, count)
        if lost:
            raise DataError("; ".join(lost))

    def close(self) -> None:
        """Leave Ray if this runner has connected to it."""
        if self._started:
            self._ray.shutdown()


def _scan(name: str, settings: CorpusSettings) -> InputFile | str:
    """Scan a file; return the message of an error that users can fix."""
    try:
        return scan(name, settings)
    except SpanshotError as error:
        return str(error)


class Desk:
    """An actor that hands out the packed work and counts how often each part is begun.

    Ray itself would repeat a part that kills its worker for ever.
    """

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._counts: Counter[int] = Counter()

    def packed(self) -> bytes:
        """Return the packed work, for a worker that starts."""
        return self._packed

    def begin(self, part: int) -> int:
        """Return how often the part was begun, this time included."""
        self._counts[part] += 1
        return self._counts[part]

    def repeated(self) -> dict[int, int]:
        """Return the parts that were begun more than once."""
        return {part: count for part, count in self._counts.items() if count > 1}


class RayWorker:
    """The actor: loads the tagger once and tags parts."""

    def __init__(self, desk: ray.actor.ActorHandle) -> None:
        self._ray = need("ray", "ray")
        self._desk = desk
        self._tag_part = unpacked(self._ray.get(desk.packed.remote()))

    def __call__(self, batch: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
        """Tag the parts of a batch and return their records as JSON."""
        return {"answer": [to_json(self._answer(parse_part(str(line).encode()))) for line in batch["part"]]}

    def _answer(self, part: Part) -> dict[str, JsonValue]:
        if self._ray.get(self._desk.begin.remote(part.number)) > MOST_DEATHS:
            return {"lost": lost_part(part)}
        try:
            return {"record": self._tag_part(part).json()}
        except SpanshotError as error:
            return {"error": str(error)}
