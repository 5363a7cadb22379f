"""The ML backend for Label Studio, with the requests that Label Studio sends."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")

from service_app import Api
from spanshot.errors import DataError
from spanshot.integrations.label_studio_backend import LabelConfig, example_of

CONFIG = """<View>
  <Header value="Mark"/>
  <Labels name="label" toName="text">
    <Label value="city" background="red"/>
    <Label value="day" hint="of the week"/>
  </Labels>
  <Text name="text" value="$body"/>
  <Choices name="tone" toName="text"><Choice value="good"/></Choices>
</View>"""


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    api = Api(tmp_path_factory.mktemp("service"))
    yield api
    api.close()


def region(text: str, part: str, label: str, name: str = "label") -> dict[str, object]:
    start = text.index(part)
    value = {"start": start, "end": start + len(part), "text": part, "labels": [label]}
    return {"id": "x", "from_name": name, "to_name": "text", "type": "labels", "value": value, "origin": "manual"}


def event(action: str, text: str, number: int, *regions: dict[str, object], **more: object) -> dict[str, object]:
    annotation = {"id": number, "result": list(regions), "was_cancelled": False, "lead_time": 3.2, **more}
    project = {"id": 1, "title": "p", "label_config": CONFIG}
    task = {"id": 5, "data": {"body": text, "other": 1}, "meta": None}
    return {"action": action, "project": project, "task": task, "annotation": annotation}


def test_a_project_is_connected_tagged_and_learned_from(api):
    path = "/label-studio/mail"
    assert api.ask("GET", f"{path}/health").json()["status"] == "UP"
    setup = {"project": "1.17", "schema": CONFIG, "hostname": "http://localhost:8080", "access_token": "t"}
    assert api.ask("POST", f"{path}/setup", setup).json() == {"model_version": "mail-1"}
    assert api.ask("POST", f"{path}/setup", setup).json() == {"model_version": "mail-1"}  # connected again
    assert api.ask("GET", "/v1/taggers/mail").json()["labels"] == {"city": "", "day": "of the week"}

    text = "We saw Bergen on Friday."
    learned = api.ask("POST", f"{path}/webhook", event("ANNOTATION_CREATED", text, 7, region(text, "Bergen", "city")))
    assert learned.json() == {"status": "learned", "model_version": "mail-2"}
    request = {"tasks": [{"id": 1, "data": {"body": text}}, {"id": 2, "data": {"body": 4}}], "label_config": CONFIG}
    results = api.ask("POST", f"{path}/predict", {**request, "project": "1.17", "params": {}}).json()["results"]
    assert [len(result["result"]) for result in results] == [1, 0]
    city = results[0]["result"][0]
    assert (city["from_name"], city["to_name"], city["type"]) == ("label", "text", "labels")
    assert city["value"] == {"start": 7, "end": 13, "text": "Bergen", "labels": ["city"]}
    assert results[0]["model_version"] == "mail-2"
    assert results[0]["score"] == city["score"]

    regions = [region(text, "Bergen", "city"), region(text, "Friday", "day"), region(text, "on", "good", "tone")]
    changed = event("ANNOTATION_UPDATED", text, 7, *regions)
    assert api.ask("POST", f"{path}/webhook", changed).json()["status"] == "learned"
    assert api.ask("POST", f"{path}/webhook", changed).json()["status"] == "unchanged"  # delivered twice
    examples = api.ask("GET", "/v1/taggers/mail/examples").json()["examples"]
    assert [[entity["label"] for entity in example["entities"]] for example in examples] == [["city", "day"]]

    empty = event("ANNOTATION_CREATED", "Nothing here.", 8)
    assert api.ask("POST", f"{path}/webhook", empty).json()["status"] == "learned"
    gone = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 7}], "project": {"id": 1}}
    assert api.ask("POST", f"{path}/webhook", gone).json()["status"] == "forgotten"
    examples = api.ask("GET", "/v1/taggers/mail/examples").json()["examples"]
    assert [example["text"] for example in examples] == ["Nothing here."]


def test_other_events_and_skipped_tasks_change_nothing(api):
    path = "/label-studio/quiet"
    api.ask("POST", f"{path}/setup", {"schema": CONFIG})
    for body in (
        {"action": "START_TRAINING", "project": {"label_config": CONFIG}},
        {"action": "TASKS_CREATED", "tasks": [{"id": 1}]},
        {"action": "ANNOTATION_CREATED"},
        event("ANNOTATION_CREATED", "Bergen", 1, was_cancelled=True),
        event("ANNOTATION_CREATED", "", 1),
        {"action": "ANNOTATION_DELETED", "annotation": {"id": 99}},
    ):
        answer = api.ask("POST", f"{path}/webhook", body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] in ("ignored", "unchanged")
    assert api.ask("GET", "/v1/taggers/quiet").json()["version"] == 1


@pytest.mark.parametrize(
    "config",
    [
        "",
        "<View>",
        "<View/>",
        '<View><Labels name="l" toName="t"><Label value="a"/></Labels></View>',
        '<View><Labels name="l" toName="t"/><Text name="t" value="$x"/></View>',
        '<View><Choices name="l" toName="t"><Choice value="a"/></Choices><Text name="t" value="$x"/></View>',
        '<!DOCTYPE x [<!ENTITY a "aaaa">]><View>&a;</View>',
        "<View>" + " " * 100_001 + "</View>",
    ],
)
def test_a_configuration_without_labels_for_text_is_refused(api, config):
    with pytest.raises(DataError):
        LabelConfig.parse(config)
    answer = api.ask("POST", "/label-studio/none/setup", {"schema": config})
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid")


def test_offsets_of_old_versions_in_utf16_units_are_understood():
    text = "🚀🚀 to Bergen"
    old = {"start": 8, "end": 14, "text": "Bergen", "labels": ["city"]}
    result = {"from_name": "label", "to_name": "text", "type": "labels", "value": old}
    example = example_of({"body": text}, {"result": [result]}, LabelConfig.parse(CONFIG))
    assert [example.text_of(span.start, span.end) for span in example.spans] == ["Bergen"]
