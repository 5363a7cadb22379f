"""Tests of the page need the extra [ui]; those in a browser also need Chromium."""

from __future__ import annotations

import importlib.util
import threading
import time
from pathlib import Path

import pytest

from page_processes import CHROMIUM_OPTIONS, chromium

MISSING = [name for name in ("fastapi", "httpx", "uvicorn") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_server.py", "test_page*.py", "test_kill.py"] if MISSING else []

TEXTS = (
    "Maria flies to Oslo on Friday with two colleagues.",
    "The train from Rome to Milan leaves at nine on Monday.",
    "We met Ahmed in Nairobi and left Nairobi last Tuesday.",
    "Chen takes the night bus from Lima to Cusco.",
    "Nobody knew why the ferry was late.",
    "Please book a room in Lisbon for Sofia.",
)


@pytest.fixture(scope="module")  # its event loop must not outlive the module
def playwright():
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("needs the package playwright")
    if chromium() is None:
        pytest.skip("needs Chromium; name it in SPANSHOT_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright):
    started = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_OPTIONS)
    yield started
    started.close()


@pytest.fixture(scope="session")
def model():
    from spanshot.model import embedded_model

    return embedded_model()


class Served:
    """A project and the server of its page, in threads of this process."""

    def __init__(self, path: Path, texts, model) -> None:
        import uvicorn

        from spanshot.formats.documents import Document
        from spanshot.ui.project import Project
        from spanshot.ui.server import bind, make_app
        from spanshot.ui.session import Session

        project = Project.open(path)
        project.add_texts([Document(text) for text in texts])
        self.path = path
        self.session = Session(project, lambda: model)
        self.session.start()
        socket = bind()
        port = socket.getsockname()[1]
        app = make_app(self.session, "token", port)
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=0)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [socket]}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{port}/#token=token"

    def close(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10)
        self.session.close()

    def text(self, number):
        return self.session.project.state.texts[number]

    def marks(self, number):
        text = self.text(number)
        return {(text.text[span.start : span.end], span.label) for span in text.marks}

    def settle(self) -> None:
        deadline = time.monotonic() + 60
        while self.session.learned != self.session.version:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def serve(tmp_path, model):
    opened = []

    def start(texts=TEXTS, name="trips.spanshot.jsonl"):
        opened.append(Served(tmp_path / name, texts, model))
        return opened[-1]

    yield start
    for served in opened:
        served.close()


class Tab:
    """A page in the browser, with the actions of a user."""

    def __init__(self, page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2] if "//" in request.url else ""))

    def place(self, row, words, edge="middle"):
        """Return where words stand on the screen."""
        find = """([row, words]) => {
            const text = document.querySelector(`[data-row="${row}"] .text`);
            const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
            for (let node; (node = walker.nextNode()); ) {
                const at = node.data.indexOf(words);
                if (at < 0 || !node.parentElement.closest("[data-start]")) continue;
                const range = document.createRange();
                range.setStart(node, at);
                range.setEnd(node, at + words.length);
                const box = range.getBoundingClientRect();
                return [box.left, box.right, box.top + box.height / 2];
            }
            return null;
        }"""
        self.page.wait_for_function(find, arg=[row, words])
        left, right, y = self.page.evaluate(find, [row, words])
        return {"middle": (left + right) / 2, "left": left + 1, "right": right - 1}[edge], y

    def click(self, row, words, **options):
        self.page.mouse.click(*self.place(row, words), **options)

    def drag(self, row, first, last):
        self.page.mouse.move(*self.place(row, first, "left"))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(row, last, "right"), steps=4)
        self.page.mouse.up()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def label(self, row, words, label):
        """Select a word and give it a label by typing."""
        self.click(row, words)
        self.page.wait_for_selector(".popover input")
        self.page.keyboard.type(label)
        self.page.wait_for_selector(".popover [aria-selected=true]")
        self.press("Enter")
        self.page.wait_for_selector(f'[data-row="{row}"] .tag.mark')

    def focused(self):
        """Return the class of the element that has the keyboard's focus."""
        return self.page.evaluate("document.activeElement.className")

    def tags(self, row, kind="suggestion"):
        return self.page.locator(f'[data-row="{row}"] .tag.{kind}')

    def wait_for_tags(self, row, count, kind="suggestion"):
        self.page.wait_for_function(
            "([selector, count]) => document.querySelectorAll(selector).length === count",
            arg=[f'[data-row="{row}"] .tag.{kind}', count],
        )

    def wait_for(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline
            self.page.wait_for_timeout(20)


@pytest.fixture
def tab(browser):
    opened = []

    def start(url, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(60_000)
        page = Tab(context.new_page())
        opened.append((context, page))
        page.page.goto(url)
        page.page.wait_for_selector(".row .segment, .welcome")
        return page

    yield start
    for context, page in opened:
        context.close()
        assert page.problems == []
        assert {host.split(":")[0] for host in page.hosts} <= {"127.0.0.1", ""}
