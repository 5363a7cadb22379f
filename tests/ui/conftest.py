"""Tests of the page need the extra [ui]; those in a browser also need Chromium."""

import importlib.util

MISSING = [name for name in ("fastapi", "httpx", "uvicorn") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_server.py", "test_page*.py", "test_kill.py"] if MISSING else []
