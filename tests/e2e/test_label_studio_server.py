"""The ML backend with a real Label Studio server.

It is large, so it is not among the packages of the tests. To run this test, install it in an environment of its own and
name its command: ``LABEL_STUDIO=/path/to/label-studio pytest tests/e2e/test_label_studio_server.py``. The variable may
also be the address of a server that runs already.
"""

from __future__ import annotations

import os
import subprocess
import time

import pytest

pytest.importorskip("httpx")

import httpx

from service_process import ServiceProcess, free_port

COMMAND = os.environ.get("LABEL_STUDIO", "")
pytestmark = pytest.mark.skipif(not COMMAND, reason="the variable LABEL_STUDIO names no command")
USER, PASSWORD = "a@b.co", "secret12345"
KEY = "a-key-that-is-long-enough"
CONFIG = (
    '<View><Labels name="label" toName="text"><Label value="city"/><Label value="day"/></Labels>'
    '<Text name="text" value="$text"/></View>'
)
TEXTS = ["We saw Bergen on Friday.", "They left Kyiv on Monday.", "Lima was warm."]


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    if COMMAND.startswith("http"):
        yield logged_in(COMMAND)
        return
    folder, port = tmp_path_factory.mktemp("studio"), free_port()
    environment = {
        **os.environ,
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SSRF_PROTECTION_ENABLED": "false",  # the backend is on this machine
        "USE_DEFAULT_BANNED_SUBNETS": "false",
    }
    arguments = ["start", "--no-browser", "--port", str(port), "--username", USER, "--password", PASSWORD]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([COMMAND, *arguments], env=environment, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        for _ in range(1200):
            assert process.poll() is None, (folder / "log").read_text()
            try:
                if httpx.get(f"{url}/health", timeout=60).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(1)
        yield logged_in(url)
        process.terminate()
        process.wait(60)


def logged_in(url: str) -> httpx.Client:
    """Return a client with a session of the first user."""
    client = httpx.Client(base_url=url, timeout=300, follow_redirects=True)
    client.get("/user/login/")
    form = {"email": USER, "password": PASSWORD, "csrfmiddlewaretoken": client.cookies["csrftoken"]}
    client.post("/user/login/", data=form, headers={"Referer": f"{url}/user/login/"})
    assert client.get("/api/projects/").status_code == 200
    client.headers.update({"X-CSRFToken": client.cookies["csrftoken"], "Referer": url})
    return client


def result(text: str, part: str, label: str) -> dict[str, object]:
    start = text.index(part)
    value = {"start": start, "end": start + len(part), "text": part, "labels": [label]}
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value}


def test_label_studio_gets_predictions_and_each_annotation_is_learned(studio, tmp_path):
    def ask(method: str, path: str, body: object = None) -> object:
        answer = studio.request(method, path, json=body)
        assert answer.is_success, (path, answer.status_code, answer.text[:500])
        return answer.json() if answer.content else None

    with ServiceProcess(tmp_path, keys=KEY) as service:
        backend = f"{service.url}/label-studio/mail"
        bearer = {"Authorization": f"Bearer {KEY}"}
        project = ask("POST", "/api/projects/", {"title": "mail", "label_config": CONFIG})["id"]
        connected = ask(
            "POST",
            "/api/ml/",
            {
                "url": backend,
                "project": project,
                "title": "spanshot",
                "auth_method": "BASIC_AUTH",
                "basic_auth_user": "label-studio",
                "basic_auth_pass": KEY,
            },
        )
        assert connected["state"] == "CO", connected  # connected
        assert httpx.get(f"{service.url}/v1/taggers/mail", headers=bearer).json()["labels"] == {"city": "", "day": ""}
        hook = {"url": f"{backend}/webhook", "project": project, "send_payload": True, "headers": bearer}
        ask("POST", "/api/webhooks/", {**hook, "send_for_all_actions": True, "is_active": True})
        ask("POST", f"/api/projects/{project}/import", [{"text": text} for text in TEXTS])
        tasks = {task["data"]["text"]: task["id"] for task in ask("GET", f"/api/tasks/?project={project}")["tasks"]}

        def examples() -> list[dict[str, object]]:
            return httpx.get(f"{service.url}/v1/taggers/mail/examples", headers=bearer).json()["examples"]

        first, second = TEXTS[0], TEXTS[1]
        made = ask("POST", f"/api/tasks/{tasks[first]}/annotations/", {"result": [result(first, "Bergen", "city")]})
        assert [[e["label"] for e in example["entities"]] for example in examples()] == [["city"]]
        both = [result(first, "Bergen", "city"), result(first, "Friday", "day")]
        ask("PATCH", f"/api/annotations/{made['id']}/", {"result": both})
        assert [[e["label"] for e in example["entities"]] for example in examples()] == [["city", "day"]]
        spans = [result(second, "Kyiv", "city"), result(second, "Monday", "day")]
        other = ask("POST", f"/api/tasks/{tasks[second]}/annotations/", {"result": spans})
        assert len(examples()) == 2

        selected = {"selectedItems": {"all": True, "excluded": []}}
        ask("POST", f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}", selected)
        predictions = ask("GET", f"/api/predictions/?project={project}")
        by_task = {prediction["task"]: prediction for prediction in predictions}
        assert set(by_task) == set(tasks.values())
        prediction = by_task[tasks[first]]
        assert {(region["value"]["text"], region["value"]["labels"][0]) for region in prediction["result"]} == {
            ("Bergen", "city"),
            ("Friday", "day"),
        }
        assert prediction["model_version"] == "mail-4"

        ask("DELETE", f"/api/annotations/{other['id']}/")
        assert [example["text"] for example in examples()] == [first]
