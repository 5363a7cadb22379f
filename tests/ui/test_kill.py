"""Killing the server or the browser at any moment loses no action that was confirmed.

``SPANSHOT_KILLS=50 pytest tests/ui/test_kill.py`` kills them at 50 random moments.
"""

from __future__ import annotations

import os
import random
import re
import sys
import threading
import time

import httpx
import pytest

from page_processes import BrowserProcess, KeyboardUser, PageServer
from spanshot.ui.project import read_history

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")

KILLS = int(os.environ.get("SPANSHOT_KILLS", "3"))
"""Number of random moments; 50 for a thorough run."""
TEXT = " ".join(f"word{number}" for number in range(2000))
BOUNDS = [match.span() for match in re.finditer(r"\S+", TEXT)]


def act_until_killed(server, wanted, confirmed):
    """Mark words until the server is gone; record which were sent and which were confirmed."""
    with httpx.Client(base_url=server.url, headers=server.headers, timeout=30) as client:
        number = len(wanted)
        while number < len(BOUNDS):
            begin, end = BOUNDS[number]
            body = {"do": "mark", "text": 1, "start": begin, "end": end, "label": f"l{number % 3}"}
            wanted.append((begin, end))
            try:
                reply = client.post("/api/do", json=body)
            except httpx.TransportError:
                return
            assert reply.status_code == 200, reply.text
            confirmed.append((begin, end))
            number += 1


def test_a_killed_server_loses_no_confirmed_action(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(TEXT + "\n", encoding="utf-8")
    project = tmp_path / "words.spanshot.jsonl"
    rng = random.Random(0)
    wanted, confirmed = [], []
    for _ in range(KILLS):
        server = PageServer(path)
        user = threading.Thread(target=act_until_killed, args=(server, wanted, confirmed))
        user.start()
        already = len(confirmed)
        while len(confirmed) == already and user.is_alive() and rng.random() < 0.99:  # now and then before any action
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 0.3))
        server.kill()
        user.join()
        marks = {(mark.start, mark.end) for mark in read_history(project).state.texts[1].marks}
        assert set(confirmed) <= marks <= set(wanted)
        wanted = sorted(marks)  # an action that was saved but not confirmed is not sent again
        confirmed = sorted(marks)
    assert confirmed, "no action was sent; was the server too slow?"


def test_a_killed_browser_and_a_killed_server_lose_no_confirmed_action(tmp_path, playwright):
    path, project = tmp_path / "texts.txt", tmp_path / "texts.spanshot.jsonl"
    words = " ".join(f"word{number}" for number in range(40))
    path.write_text("".join(f"text{text} {words}\n" for text in range(KILLS)), encoding="utf-8")
    rng = random.Random(1)
    server, browser = PageServer(path), BrowserProcess(playwright, tmp_path / "browser")
    httpx.post(f"{server.url}/api/do", json={"do": "label", "label": "x"}, headers=server.headers)
    saved = []
    for text in range(1, KILLS + 1):
        user = KeyboardUser(browser.open(server.page), text)
        user.go_to_text()
        victims = [(browser,), (server,), (browser, server)][text % 3]
        killer = threading.Timer(rng.uniform(0.0, 1.5), lambda victims=victims: [victim.kill() for victim in victims])
        killer.start()
        user.mark_words()
        killer.join()
        if browser in victims:
            browser = BrowserProcess(playwright, tmp_path / f"browser{text}")
        if server in victims:
            server = PageServer(path)
        after = KeyboardUser(browser.open(server.page), text)
        after.go_to_text()
        marks = {(mark.start, mark.end) for mark in read_history(project).state.texts[text].marks}
        # A browser that is killed does not report its last requests, so what was sent is known by its form only.
        words_of_text = {match.span() for match in re.finditer(r"\S+", f"text{text - 1} {words}")}
        assert set(user.confirmed) <= marks <= words_of_text
        after.wait_for_marks(len(marks))
        saved.append(len(marks))
    browser.kill()
    server.kill()
    print(f"marks that were saved before each kill: {saved}")
    assert any(saved), "no action was saved; was the page too slow?"


def test_the_page_says_that_the_server_is_gone_and_a_new_one_continues(tmp_path, browser):
    path = tmp_path / "trips.txt"
    path.write_text("to Oslo\nfrom Rome\n", encoding="utf-8")
    server = PageServer(path)
    page = browser.new_page()
    page.goto(server.page)
    page.wait_for_selector('[data-row="1"] .segment')
    mark = {"do": "mark", "text": 1, "start": 3, "end": 7, "label": "city"}
    httpx.post(f"{server.url}/api/do", json=mark, headers=server.headers)
    page.wait_for_selector('[data-row="1"] .tag.mark')
    server.kill()
    page.wait_for_selector(".banner >> text=Nothing is lost", timeout=60_000)
    server = PageServer(path)
    page.goto(server.page)
    page.wait_for_selector('[data-row="1"] .tag.mark')
    page.keyboard.press("u")
    page.wait_for_selector('[data-row="1"] .tag.mark', state="detached")
    page.close()
    server.kill()
    assert not read_history(tmp_path / "trips.spanshot.jsonl").state.texts[1].marks
