"""API keys: compared in constant time, and kept as digests."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable


class Keys:
    """The API keys of the service. Without any, every request is allowed."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key.encode()) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def allow(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether the headers of a request hold one of the keys.

        Accepted are ``Authorization: Bearer KEY``, ``X-API-Key: KEY``, and the key as the password of ``Basic``.
        """
        if not self._digests:
            return True
        allowed = False
        for name, content in headers:
            if name == b"x-api-key":
                allowed |= self._holds(content.strip())
            elif name == b"authorization":
                allowed |= self._holds(_key_in(content))
        return allowed

    def _holds(self, key: bytes) -> bool:
        """Compare with all keys, so that the time tells nothing about them."""
        digest = _digest(key)
        return sum(hmac.compare_digest(digest, known) for known in self._digests) > 0


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _key_in(authorization: bytes) -> bytes:
    scheme, _, rest = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""
