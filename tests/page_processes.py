"""The server of the page and a browser, in processes of their own that can be killed; and a user with a keyboard."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

CHROMIUM_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
)
CONNECT_SECONDS = (30, 60, 120)
"""Time to wait for a Chromium that has just started. Some starts hang on a busy machine; another follows."""


def chromium() -> str | None:
    """Return the path of a Chromium of the system."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return os.environ.get("SPANSHOT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


class PageServer:
    """`spanshot ui` for a file, with the address of its page."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "spanshot", "ui", str(path), "--no-browser"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        )
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            if match := re.search(r"((http://[\d.:]+)/#token=(\S+))", line):
                self.page, self.url, self.token = match.groups()
                return
        raise AssertionError("".join(lines))

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Spanshot-Token": self.token}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class BrowserProcess:
    """A Chromium that is controlled from outside, so that all of its processes can be killed."""

    def __init__(self, playwright, folder: Path) -> None:
        from playwright.sync_api import TimeoutError as Hangs

        for seconds in CONNECT_SECONDS:
            address = self._start(folder.with_name(f"{folder.name}-{seconds}"))
            try:
                self._context = playwright.chromium.connect_over_cdp(address, timeout=1000 * seconds).contexts[0]
                break
            except Hangs:
                self.kill()
        else:
            raise AssertionError("Chromium does not answer")
        self._context.set_default_timeout(60_000)

    def _start(self, folder: Path) -> str:
        """Start Chromium and return the address to control it."""
        options = [*CHROMIUM_OPTIONS, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [chromium(), *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        port = folder / "DevToolsActivePort"
        deadline = time.monotonic() + 120
        while not (port.exists() and "\n" in port.read_text(encoding="ascii")):
            assert self._process.poll() is None, "Chromium did not start"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return f"http://127.0.0.1:{port.read_text(encoding='ascii').splitlines()[0]}"

    def open(self, address: str):
        """Return a new page; the others are closed."""
        page = self._context.new_page()
        for other in self._context.pages:
            if other != page:
                other.close()
        page.goto(address)
        return page

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class KeyboardUser:
    """Marks the words of a text one after the other, by keys in a page."""

    def __init__(self, page, text: int) -> None:
        self._page, self._text = page, text
        self.confirmed: list[tuple[int, int]] = []
        page.on("response", self._note)

    def _note(self, reply) -> None:
        if reply.status == 200 and reply.request.url.endswith("/api/do"):
            action = reply.request.post_data_json
            self.confirmed.append((action["start"], action["end"]))

    def go_to_text(self) -> None:
        """Make the text the current one."""
        self._page.wait_for_selector('[data-row="1"] .segment')
        self._page.locator(".list").focus()
        for _ in range(self._text - 1):
            self._page.keyboard.press("j")
        self._page.wait_for_selector(f'[data-row="{self._text}"].current .segment')

    def mark_words(self) -> None:
        """Mark words until the server or the browser is gone."""
        from playwright.sync_api import Error

        with contextlib.suppress(Error):  # the browser is gone
            while not self._page.locator(".banner").count():
                self._page.keyboard.press("ArrowRight")
                self._page.keyboard.press("1")

    def wait_for_marks(self, count: int) -> None:
        """Wait until the text has so many marks."""
        self._page.wait_for_function(
            "([selector, count]) => document.querySelectorAll(selector).length === count",
            arg=[f'[data-row="{self._text}"] .tag.mark', count],
        )
