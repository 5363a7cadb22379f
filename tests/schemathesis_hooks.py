"""Lets schemathesis send lines of JSON. Start `spanshot serve` with a key, and then, with schemathesis 4 installed:

SCHEMATHESIS_HOOKS=tests/schemathesis_hooks.py schemathesis run http://127.0.0.1:8000/openapi.json \\
    -H "Authorization: Bearer $KEY" --exclude-checks positive_data_acceptance

The check that is left out takes every request that fits the schema for one that must succeed, but a schema cannot say,
for instance, that examples must mark a label.
"""

from __future__ import annotations

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context: object, value: object) -> bytes:
    """Send a text as it is."""
    del context
    return str(value).encode("utf-8", errors="replace")
