"""The settings of the service: where taggers are kept, who may use it, and its limits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from spanshot.errors import ConfigError, did_you_mean
from spanshot.json_text import Fields, parse_json, to_json

VARIABLE = "SPANSHOT_SERVICE"
"""The environment variable that hands the settings to worker processes."""
KEYS_VARIABLE = "SPANSHOT_API_KEYS"
"""API keys, separated by commas."""
SHORTEST_KEY = 16
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on requests. A request beyond one of them is refused with an error that names it."""

    text: int = 100_000
    """Most characters of a text."""
    texts: int = 1_000
    """Most texts of a request."""
    examples: int = 5_000
    """Most examples of a tagger."""
    example: int = 20_000
    """Most characters of an example."""
    labels: int = 200
    """Most labels of a tagger."""
    label: int = 200
    """Most characters of a label, or of its description."""
    taggers: int = 10_000
    """Most taggers."""
    versions: int = 10
    """Versions that are kept of a tagger."""
    body: int = 8_000_000
    """Most bytes of a request's body; of a line of a stream."""
    bodies: int = 64_000_000
    """Most bytes of all bodies that are being read or processed."""
    requests: int = 256
    """Most requests at the same time; more get status 429."""
    queue: int = 2_000_000
    """Most characters that wait to be tagged; more get status 429."""
    changes: int = 32
    """Most changes of taggers that wait to be learned; more get status 429."""
    seconds: int = 30
    """Most seconds of a request."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise ConfigError(f"the limit {limit.name} must be at least 1; found {getattr(self, limit.name)}")

    def changed(self, assignments: Iterable[str]) -> Limits:
        """Return the limits with others given as ``NAME=VALUE``.

        >>> Limits().changed(["text=500"]).text
        500
        """
        known = [limit.name for limit in fields(self)]
        changes = {}
        for assignment in assignments:
            name, _, number = assignment.partition("=")
            if name not in known:
                hint = did_you_mean(name, known)
                raise ConfigError(f"unknown limit {name!r}; the limits are {', '.join(known)}{hint}")
            if not number.isdecimal() or len(number) > 15:
                raise ConfigError(f"a limit must be a whole number, such as {name}=1000; found {assignment!r}")
            changes[name] = int(number)
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of the service."""

    folder: Path
    """Where the taggers are kept; several workers may share it."""
    keys: tuple[str, ...] = field(default=(), repr=False)
    """API keys; without any, everybody who can connect may use the service."""
    origins: tuple[str, ...] = ()
    """Web pages that browsers may call the service from (CORS)."""
    hosts: tuple[str, ...] = ()
    """Host names that requests may use; empty: any."""
    model: Path | None = None
    """The folder of a model; None: the one in the package."""
    threads: int | None = None
    """Threads of the model."""
    batch_words: int = 1024
    """Most words that are tagged at once: it bounds how long a short text waits for long ones."""
    batch_wait: float = 0.002
    """Most seconds that a batch waits for requests of other clients; nothing waits if there is one client."""
    cached: int = 1_000
    """Most taggers that are kept in memory."""
    metrics: Path | None = None
    """Where several workers share their metrics."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for key in self.keys:
            if len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key or ":" in key:
                raise ConfigError(
                    f"an API key must have at least {SHORTEST_KEY} ASCII characters, without spaces and colons; "
                    "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` makes one"
                )
        if self.batch_words < 1 or not 0 <= self.batch_wait <= 1 or self.cached < 1:
            raise ConfigError("batch_words and cached must be at least 1, batch_wait from 0 to 1 second")

    def to_json(self) -> str:
        """Return the settings as text, for the workers."""
        return to_json(
            {
                "folder": str(self.folder),
                "keys": self.keys,
                "origins": self.origins,
                "hosts": self.hosts,
                "model": str(self.model) if self.model else None,
                "threads": self.threads,
                "batch_words": self.batch_words,
                "batch_wait": self.batch_wait,
                "cached": self.cached,
                "metrics": str(self.metrics) if self.metrics else None,
                "limits": asdict(self.limits),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Read settings that `to_json` wrote."""
        record = Fields.of(parse_json(text))
        limits = record.object("limits")
        keys, origins, hosts = (tuple(map(str, record.list(name))) for name in ("keys", "origins", "hosts"))
        return cls(
            Path(record.text("folder")),
            keys,
            origins,
            hosts,
            Path(record.text("model")) if record.value("model") else None,
            record.integer("threads") if record.value("threads") else None,
            record.integer("batch_words"),
            record.number("batch_wait"),
            record.integer("cached"),
            Path(record.text("metrics")) if record.value("metrics") else None,
            Limits(**{name: limits.integer(name) for name in limits.record}),
        )


def read_keys(file: Path | None) -> tuple[str, ...]:
    """Read API keys: one on each line of a file, and those in the environment variable ``SPANSHOT_API_KEYS``."""
    keys = [key.strip() for key in os.environ.get(KEYS_VARIABLE, "").split(",")]
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as problem:
            raise ConfigError(f"{file}: cannot be read: {getattr(problem, 'strerror', 'not UTF-8')}") from None
        keys += [line.strip() for line in lines if not line.lstrip().startswith("#")]
        if not any(keys):
            raise ConfigError(f"{file}: has no API key; write one on each line")
    return tuple(dict.fromkeys(key for key in keys if key))
