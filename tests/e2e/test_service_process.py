"""The service as a process: the commands of its page, its end, several workers, and kills.

``SPANSHOT_KILLS=50 pytest tests/e2e/test_service_process.py -k kill`` kills it at 50 random moments.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")
pytest.importorskip("httpx")

import httpx

from forking_service import ForkingService
from markdown_blocks import blocks
from service_process import ServiceProcess
from spanshot.service.client import AsyncClient, Client, ClientError

KEY = "a-key-that-is-long-enough"
PAGE = Path(__file__).parents[2] / "docs" / "integrations" / "service.md"
EXAMPLES = ["[Oslo](city) is cold.", "We met in [Rome](city)."]
KILLS = int(os.environ.get("SPANSHOT_KILLS", "3"))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with ServiceProcess(tmp_path_factory.mktemp("taggers"), keys=KEY) as process:
        yield process


def without_times(value: object) -> object:
    """Leave out what differs from run to run."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in {"created", "score", "weight"}}
    return [without_times(item) for item in value] if isinstance(value, list) else value


@pytest.mark.skipif(not shutil.which("bash") or not shutil.which("curl"), reason="needs bash and curl")
def test_the_commands_of_the_page_work_and_print_what_it_says(service, tmp_path):
    page = blocks(PAGE)
    checked = 0
    for block, after in pairwise(page):
        if block.language == "sh" and "curl" in block.code:
            program = block.code.replace("http://127.0.0.1:8000", service.url)
            environment = {**os.environ, "KEY": KEY}
            done = subprocess.run(
                ["bash", "-ec", program], capture_output=True, text=True, env=environment, cwd=tmp_path
            )
            assert done.returncode == 0, done.stderr
            output = done.stdout
        elif block.language == "py":
            code = block.code.replace("http://127.0.0.1:8000", service.url)
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "KEY": KEY}
            )
            assert done.returncode == 0, done.stderr
            output = done.stdout
        else:
            continue
        if after.language == "json":
            answers = [without_times(json.loads(line)) for line in output.splitlines()]
            wanted = [without_times(json.loads(line)) for line in after.code.splitlines()]
            assert answers == wanted, f"line {after.line}"
            checked += 1
        elif after.language == "text":
            assert output.strip() == after.code.strip(), f"line {after.line}"
            checked += 1
    assert checked > 5


def test_both_clients_offer_the_same_and_raise_what_the_service_says(service):
    with Client(service.url, KEY) as client:
        client.create("plain", EXAMPLES, threshold={"city": 0.2})
        assert [entity.text for entity in client.tag("plain", "They saw Bergen.")] == ["Bergen"]
        assert client.explain("plain", "They saw Bergen.")[0].because
        assert len(list(client.pipe("plain", ["In Rome", "no"] * 5, batch_size=3))) == 10
        example = client.examples("plain")[0]["id"]
        assert client.remove_example("plain", str(example))["examples"] == 1
        assert client.add("plain", labels={"day": "day of the week"})["labels"] == {
            "city": "",
            "day": "day of the week",
        }
        assert client.remove_label("plain", "day")["version"] == 4
        assert client.restore("plain", 1)["examples"] == 2
        assert client.tagger("plain")["version"] == 5
        assert "plain" in [tagger["name"] for tagger in client.taggers()]
        with pytest.raises(ClientError, match="there is a tagger 'plain' already") as refused:
            client.create("plain", EXAMPLES)
        assert (refused.value.status, refused.value.code) == (409, "exists")
        client.delete("plain")
    with Client(service.url) as stranger, pytest.raises(ClientError, match="API key"):
        list(stranger.taggers())

    async def same() -> None:
        async with AsyncClient(service.url, KEY) as client:
            await client.create("own", EXAMPLES)
            texts = [client.tag("own", f"They saw Bergen {number} times.") for number in range(8)]
            assert {entities[0].text for entities in await asyncio.gather(*texts)} == {"Bergen"}
            assert (await client.explain("own", "They saw Bergen."))[0].because
            assert [len(entities) async for entities in client.pipe("own", ["In Rome", "no"])] == [1, 0]
            example = (await client.examples("own"))[0]["id"]
            assert (await client.remove_example("own", str(example)))["examples"] == 1
            assert (await client.add("own", labels=["day"]))["version"] == 3
            assert (await client.remove_label("own", "day"))["version"] == 4
            assert (await client.restore("own", 1))["examples"] == 2
            assert (await client.tagger("own"))["version"] == 5
            assert [tagger["name"] async for tagger in client.taggers()] == ["own"]
            await client.delete("own")

    asyncio.run(same())
    public = {name for name in vars(Client) if not name.startswith("_")}
    assert public == {name for name in vars(AsyncClient) if not name.startswith("_")}


def test_a_client_tries_again_while_the_service_is_busy():
    answers = [httpx.Response(429, headers={"Retry-After": "0"}, json={"error": "overloaded", "message": "busy"})] * 2
    answers.append(httpx.Response(200, json={"version": 1, "entities": []}))
    left = iter(answers)
    client = Client("http://localhost", tries=3)
    client._http = httpx.Client(base_url="http://localhost", transport=httpx.MockTransport(lambda _: next(left)))
    assert client.tag("a", "text") == []
    busy = Client("http://localhost", tries=2)
    busy._http = httpx.Client(base_url="http://localhost", transport=httpx.MockTransport(lambda _: answers[0]))
    with pytest.raises(ClientError, match="busy"):
        busy.tag("a", "text")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_requests_under_way_are_answered_before_the_service_ends(tmp_path):
    with ServiceProcess(tmp_path, "--limit", "seconds=600") as process:
        client = Client(process.url)
        client.create("a", EXAMPLES)
        statuses: list[int] = []

        def ask() -> None:
            body = {"texts": ["They saw Bergen and Kyiv in the rain. " * 20] * 30}
            response = httpx.post(f"{process.url}/v1/taggers/a/tag-many", json=body, timeout=600)
            statuses.append(response.status_code)

        thread = threading.Thread(target=ask)
        thread.start()
        while "in_flight 2.0" not in httpx.get(f"{process.url}/metrics").text:
            assert not statuses, "answered too soon"  # until the request has arrived, beside the one for metrics
        assert process.stop() in (0, -signal.SIGTERM)
        thread.join()
        assert statuses == [200]


def test_workers_share_their_taggers_and_metrics(tmp_path):
    with ServiceProcess(tmp_path, "--workers", "2") as process:
        for number in range(4):  # each request is a new connection, to either worker
            created = httpx.post(
                f"{process.url}/v1/taggers", json={"name": f"t{number}", "labels": [f"label{number}"]}, timeout=60
            )
            assert created.status_code == 201
            for _ in range(3):
                answer = httpx.get(f"{process.url}/v1/taggers/t{number}", timeout=60)
                assert answer.json()["labels"] == {f"label{number}": ""}
        answers = {httpx.get(f"{process.url}/metrics", timeout=60).text.count('status="201"') for _ in range(3)}
        assert answers == {1}
        line = next(
            line
            for line in httpx.get(f"{process.url}/metrics", timeout=60).text.splitlines()
            if line.startswith("spanshot_requests_total") and 'status="201"' in line
        )
        assert line.endswith(" 4.0")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_loses_no_acknowledged_change(tmp_path):
    """Create, change and delete taggers until the process is killed; what was acknowledged is there afterwards."""
    chance = random.Random(KILLS)
    acknowledged: dict[str, int] = {}
    deleted: set[str] = set()
    unsure: set[str] = set()
    changes = 0

    def check(client: Client) -> None:
        present = {str(tagger["name"]): int(str(tagger["version"])) for tagger in client.taggers()}
        for name, version in acknowledged.items():
            assert name in unsure or present.get(name, 0) >= version, f"{name} is lost"
        assert not (deleted - unsure) & present.keys()
        for name in list(present)[-2:]:  # and they work
            client.tag(name, "They saw Bergen.")

    with ForkingService(tmp_path) as services:
        for _ in range(KILLS):
            url, process = services.start()
            with Client(url, timeout=60) as client:
                check(client)
                began = time.monotonic()
                client.create(f"t{changes}", EXAMPLES)
                acknowledged[f"t{changes}"] = 1
                seconds = chance.uniform(0.0, 2 * (time.monotonic() - began))  # however busy the machine is
                changes += 1
                moment = threading.Timer(seconds, os.kill, (process, signal.SIGKILL))
                moment.start()
                with contextlib.suppress(httpx.TransportError):
                    while True:
                        name = f"t{changes}"
                        client.create(name, EXAMPLES)
                        acknowledged[name] = 1
                        acknowledged[name] = int(str(client.add(name, ["[Kyiv](city) too."])["version"]))
                        if changes % 3 == 0:
                            unsure.add(name)  # until the answer comes
                            client.delete(name)
                            unsure.discard(name)
                            acknowledged.pop(name)
                            deleted.add(name)
                        changes += 1
                changes += 1
            moment.join()
            print(f"killed after {seconds:.2f} s; {len(acknowledged)} taggers, {len(deleted)} deleted", flush=True)
        url, process = services.start()
        with Client(url) as client:
            check(client)
        os.kill(process, signal.SIGKILL)
