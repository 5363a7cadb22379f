"""The frame of HTML pages that need no other file: no scripts, no links, nothing loaded from elsewhere."""

from __future__ import annotations

from html import escape

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8884; --soft: light-dark(#666, #aaa); }}
body {{ font: 16px/1.75 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.25rem; margin: 0 0 .25rem; }}
header p {{ color: var(--soft); margin: 0 0 1.5rem; }}
{style}
</style>
</head>
<body>
<header><h1>{title}</h1>
<p>{subtitle}</p></header>
<main>
"""
FOOT = """</body>
</html>
"""


def head(title: str, subtitle: str, style: str) -> str:
    """Return the beginning of a page, up to and including ``<main>``. ``style`` is CSS; the rest is plain text."""
    return _HEAD.format(title=escape(title), subtitle=escape(subtitle), style=style)
