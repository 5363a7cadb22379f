"""Killing the server or the browser at any moment loses no action that was confirmed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from spanshot.ui.project import read_history

KILLS = int(os.environ.get("SPANSHOT_KILLS", "3"))
"""Number of random moments; 50 for a thorough run."""
TEXT = " ".join(f"word{number}" for number in range(2000))
BOUNDS = [match.span() for match in re.finditer(r"\S+", TEXT)]


def start(path):
    """Start a server, and return it with the address of its page and the token."""
    command = [sys.executable, "-m", "spanshot", "ui", str(path), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")
    lines = []
    for line in server.stdout:
        lines.append(line)
        if match := re.search(r"(http://[\d.:]+)/#token=(\S+)", line):
            return server, match[1], match[2]
    raise AssertionError("".join(lines))


def act_until_killed(url, token, wanted, confirmed):
    """Mark words until the server is gone; record which were sent and which were confirmed."""
    with httpx.Client(base_url=url, headers={"X-Spanshot-Token": token}, timeout=30) as client:
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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_killed_server_loses_no_confirmed_action(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(TEXT + "\n", encoding="utf-8")
    project = tmp_path / "words.spanshot.jsonl"
    rng = random.Random(0)
    wanted, confirmed = [], []
    for _ in range(KILLS):
        server, url, token = start(path)
        user = threading.Thread(target=act_until_killed, args=(url, token, wanted, confirmed))
        user.start()
        already = len(confirmed)
        while len(confirmed) == already and user.is_alive() and rng.random() < 0.99:  # now and then before any action
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 0.3))
        server.send_signal(signal.SIGKILL)
        server.wait()
        user.join()
        marks = {(mark.start, mark.end) for mark in read_history(project).state.texts[1].marks}
        assert set(confirmed) <= marks <= set(wanted)
        wanted = sorted(marks)  # an action that was saved but not confirmed is not sent again
        confirmed = sorted(marks)
    assert confirmed, "no action was sent; was the server too slow?"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_the_page_says_that_the_server_is_gone_and_a_new_one_continues(tmp_path, browser):
    path = tmp_path / "trips.txt"
    path.write_text("to Oslo\nfrom Rome\n", encoding="utf-8")
    server, url, token = start(path)
    page = browser.new_page()
    page.goto(f"{url}/#token={token}")
    page.wait_for_selector('[data-row="1"] .segment')
    with httpx.Client(headers={"X-Spanshot-Token": token}) as client:
        client.post(f"{url}/api/do", json={"do": "mark", "text": 1, "start": 3, "end": 7, "label": "city"})
    page.wait_for_selector('[data-row="1"] .tag.mark')
    server.kill()
    server.wait()
    page.wait_for_selector(".banner >> text=Nothing is lost", timeout=60_000)
    server, url, token = start(path)
    page.goto(f"{url}/#token={token}")
    page.wait_for_selector('[data-row="1"] .tag.mark')
    page.keyboard.press("u")
    page.wait_for_selector('[data-row="1"] .tag.mark', state="detached")
    page.close()
    server.kill()
    server.wait()
    assert not read_history(tmp_path / "trips.spanshot.jsonl").state.texts[1].marks
