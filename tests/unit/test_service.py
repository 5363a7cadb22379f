"""The HTTP service: taggers, tagging, limits, keys. Requests go to the application without a network."""

from __future__ import annotations

import base64
import json

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")

import spanshot
from service_app import KEY, Api
from spanshot.errors import ConfigError
from spanshot.service.settings import Limits, Settings, read_keys

EXAMPLES = ["[Oslo](city) is cold on [Monday](day).", "We met in [Rome](city) last [Friday](day)."]
TEXT = "Is Bergen rainy on Tuesday?"
SMALL = Limits(text=50, texts=3, examples=4, example=60, labels=3, label=20, taggers=3, versions=2, body=3000)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    api = Api(tmp_path_factory.mktemp("service"))
    created = api.ask("POST", "/v1/taggers", {"name": "news", "examples": EXAMPLES})
    assert created.status_code == 201, created.text
    yield api
    api.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    api = Api(tmp_path_factory.mktemp("small"), limits=SMALL)
    assert api.ask("POST", "/v1/taggers", {"name": "news", "examples": EXAMPLES}).status_code == 201
    yield api
    api.close()


def plain(entities) -> list[tuple[int, int, str, float]]:
    return [(e["start"], e["end"], e["label"], pytest.approx(e["score"], abs=1e-5)) for e in entities]


def expected(entities) -> list[tuple[int, int, str, float]]:
    return [(e.start, e.end, e.label, e.score) for e in entities]


def test_the_service_finds_what_the_tagger_finds(api):
    tagger = spanshot.learn(EXAMPLES)
    texts = [TEXT, "", "Nothing here.", "From Paris to Lima, " * 40 + "\nand to Kyiv on Sunday."]
    answer = api.ask("POST", "/v1/taggers/news/tag-many", {"texts": texts}).json()
    for text, entities in zip(texts, answer["results"], strict=True):
        assert plain(entities) == expected(tagger(text))
        assert all(text[e["start"] : e["end"]] == e["text"] for e in entities)
    assert plain(api.ask("POST", "/v1/taggers/news/tag", {"text": TEXT}).json()["entities"]) == expected(tagger(TEXT))


def test_an_explanation_names_the_examples(api):
    entities = api.ask("POST", "/v1/taggers/news/explain", {"text": TEXT}).json()["entities"]
    assert {"Oslo is cold on Monday.", "We met in Rome last Friday."} <= {
        reason["example"] for entity in entities for reason in entity["because"]
    }


def test_requests_to_different_taggers_share_batches_and_get_their_own_entities(api):
    sets = {f"t{number}": [f"[Oslo](label{number}) is cold.", "It is warm."] for number in range(6)}
    for name, examples in sets.items():
        assert api.ask("POST", "/v1/taggers", {"name": name, "examples": examples}).status_code == 201
    before = api.service.metrics.registry.get_sample_value("spanshot_batch_taggers_sum")
    count = api.service.metrics.registry.get_sample_value("spanshot_batch_taggers_count")
    calls = [
        ("POST", f"/v1/taggers/{name}/tag", {"text": f"They saw Oslo {n} times."}) for n in (1, 2) for name in sets
    ]
    responses = api.ask_all(calls)
    for (_, path, body), response in zip(calls, responses, strict=True):
        tagger = spanshot.learn(sets[path.split("/")[3]])
        assert plain(response.json()["entities"]) == expected(tagger(body["text"]))
    sample = api.service.metrics.registry.get_sample_value
    taggers = sample("spanshot_batch_taggers_sum") - before
    assert taggers / (sample("spanshot_batch_taggers_count") - count) > 1  # several taggers in a batch
    for name in sets:
        assert api.ask("DELETE", f"/v1/taggers/{name}").status_code == 204


def test_a_tagger_is_changed_restored_and_deleted_in_versions(small):
    assert small.ask("POST", "/v1/taggers", {"name": "v", "labels": {"city": "a town"}}).json()["version"] == 1
    added = small.ask("POST", "/v1/taggers/v/examples", {"examples": EXAMPLES, "labels": ["port"]}).json()
    assert (added["version"], added["examples"]) == (2, 2)
    assert added["labels"] == {"city": "a town", "day": "", "port": ""}
    examples = small.ask("GET", "/v1/taggers/v/examples").json()["examples"]
    removed = small.ask("DELETE", f"/v1/taggers/v/examples/{examples[0]['id']}").json()
    assert (removed["version"], removed["examples"]) == (3, 1)
    assert small.ask("GET", "/v1/taggers/v/versions").json() == {"versions": [2, 3]}  # two are kept
    assert small.ask("DELETE", "/v1/taggers/v/labels/port").json()["labels"] == {"city": "a town", "day": ""}
    old = small.ask("POST", "/v1/taggers/v/tag", {"text": TEXT, "version": 3})
    assert (old.status_code, old.json()["version"]) == (200, 3)
    restored = small.ask("POST", "/v1/taggers/v/restore", {"version": 3}).json()
    assert (restored["version"], "port" in restored["labels"]) == (5, True)
    assert small.ask("DELETE", "/v1/taggers/v").status_code == 204
    assert small.ask("GET", "/v1/taggers/v").json()["error"] == "no_tagger"


def test_a_tagger_with_the_name_of_a_deleted_one_is_not_taken_for_it(small):
    for label in ("first", "second"):
        small.ask("POST", "/v1/taggers", {"name": "again", "examples": [f"[Oslo]({label}) is cold."]})
        entities = small.ask("POST", "/v1/taggers/again/tag", {"text": "Oslo is cold."}).json()["entities"]
        assert {entity["label"] for entity in entities} == {label}
        small.ask("DELETE", "/v1/taggers/again")


def test_taggers_are_listed_by_name_in_pages(small):
    small.ask("POST", "/v1/taggers", {"name": "b-2", "labels": ["x"]})
    first = small.ask("GET", "/v1/taggers?limit=1").json()
    assert ([t["name"] for t in first["taggers"]], first["next"]) == (["b-2"], "b-2")
    second = small.ask("GET", "/v1/taggers?limit=1&after=b-2").json()
    assert ([t["name"] for t in second["taggers"]], second["next"]) == (["news"], None)
    small.ask("DELETE", "/v1/taggers/b-2")


def test_what_could_not_be_used_is_a_warning(small):
    record = {"text": "in Oslo", "entities": [{"start": 30, "end": 40, "label": "city"}]}
    answer = small.ask("POST", "/v1/taggers/news/examples", {"examples": [record]})
    assert "outside the text" in answer.json()["warnings"][0]
    rejected = {"text": "in May", "entities": [], "rejected": [{"start": 3, "end": 6, "label": "city"}]}
    small.ask("POST", "/v1/taggers", {"name": "r", "examples": [EXAMPLES[0], rejected]})
    assert small.ask("GET", "/v1/taggers/r/examples").json()["examples"][1]["rejected"] == rejected["rejected"]
    small.ask("DELETE", "/v1/taggers/r")


TAG, NEW = "/v1/taggers/news/tag", "/v1/taggers"
REFUSED = [
    (TAG, {"text": "x" * 51}, 422, "text_too_long"),
    ("/v1/taggers/news/tag-many", {"texts": ["a"] * 4}, 422, "too_many_texts"),
    ("/v1/taggers/news/tag-many", {"texts": ["a", "x" * 51]}, 422, "text_too_long"),
    (NEW, {"name": "a", "examples": ["[a](x)"] * 5}, 422, "too_many_examples"),
    ("/v1/taggers/news/examples", {"examples": ["[a](x)"] * 4}, 422, "too_many_examples"),
    (NEW, {"name": "a", "examples": ["[a](x)" + "y" * 60]}, 422, "example_too_long"),
    (NEW, {"name": "a", "labels": ["a", "b", "c", "d"]}, 422, "too_many_labels"),
    (NEW, {"name": "a", "labels": ["x" * 21]}, 422, "label_too_long"),
    (NEW, {"name": "a", "labels": {"x": "y" * 21}}, 422, "label_too_long"),
    (TAG, {"text": "x" * 4000}, 413, "body_too_large"),
    (NEW, {"name": "news", "labels": ["a"]}, 409, "exists"),
    (NEW, {"name": "a"}, 422, "invalid"),
    (NEW, {"name": "a", "examples": ["examples.txt"]}, 422, "invalid"),  # never read as a file
    (NEW, {"name": "a", "labels": ["a"], "model": "/etc"}, 422, "invalid"),
    (NEW, {"name": "a", "labels": ["a"], "threshold": 2}, 422, "invalid"),
    (TAG, {"text": "\ud800"}, 422, "invalid"),
    (TAG, {"text": 3}, 422, "invalid"),
    (TAG, {"text": "a", "version": 99}, 404, "no_version"),
    ("/v1/taggers/none/tag", {"text": "a"}, 404, "no_tagger"),
    ("/v1/taggers/news/restore", {"version": 99}, 404, "no_version"),
]


@pytest.mark.parametrize(("path", "body", "status", "code"), REFUSED, ids=lambda value: str(value)[:30])
def test_a_request_beyond_a_limit_or_invalid_is_refused_with_a_code_and_a_message(small, path, body, status, code):
    answer = small.ask("POST", path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert 0 < len(answer.json()["message"]) < 500
    assert str(small.service.settings.folder) not in answer.text


def test_the_number_of_taggers_is_limited(small):
    for name in ("a1", "a2"):
        assert small.ask("POST", NEW, {"name": name, "labels": ["x"]}).status_code == 201
    assert small.ask("POST", NEW, {"name": "a3", "labels": ["x"]}).json()["error"] == "too_many_taggers"
    for name in ("a1", "a2"):
        small.ask("DELETE", f"/v1/taggers/{name}")


@pytest.mark.parametrize(
    "name", ["..", "A", "a/b", "a%2Fb", ".hidden", "a.b", "a" * 65, "-a", "%00", "a%0A", "con.x", "é"]
)
def test_a_name_that_could_be_a_path_is_refused(api, name):
    assert api.ask("POST", f"/v1/taggers/{name}/tag", {"text": "a"}).status_code in (404, 405, 422)
    if "%" not in name:
        assert api.ask("POST", NEW, {"name": name, "labels": ["x"]}).status_code == 422
    assert sorted(path.name for path in (api.service.settings.folder / "taggers").iterdir()) == ["t-news"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b'{"text": ' + b"9" * 5000 + b"}", b"NaN"])
def test_a_body_that_is_not_json_is_refused(api, content):
    answer = api.ask("POST", TAG, content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"] in ("invalid", "invalid_body")


def test_a_body_without_a_length_is_limited_too(small):
    async def parts():
        for _ in range(100):
            yield b" " * 1000

    answer = small.ask("POST", TAG, content=parts(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (413, "body_too_large")


def test_a_stream_of_lines_is_answered_line_by_line(small):
    lines = [{"text": "In Rome"}, {"text": "In Oslo", "id": {"a": 1}}, {"txt": 1}, {"text": "x" * 51}]
    content = "\n".join([*map(json.dumps, lines), "{", "", "[1]"]).encode() + b"\n\xff\n"
    response = small.ask("POST", "/v1/taggers/news/tag-stream", content=content)
    answers = [json.loads(line) for line in response.text.splitlines()]
    assert response.headers["content-type"] == "application/x-ndjson"
    assert [answer["line"] for answer in answers] == [1, 2, 3, 4, 5, 7, 8]
    assert [entity["text"] for entity in answers[0]["entities"]] == ["Rome"]
    assert answers[1]["id"] == {"a": 1}
    assert ["error" in answer for answer in answers] == [False, False, True, True, True, True, True]
    assert "at most 50" in answers[3]["error"]


def test_a_line_of_a_stream_is_limited(small):
    answer = small.ask("POST", "/v1/taggers/news/tag-stream", content=b'{"text": "In Rome"}\n' + b" " * 4000)
    assert "a line is too long" in json.loads(answer.text.splitlines()[-1])["error"]


def test_a_key_is_needed_if_there_are_keys(tmp_path):
    api = Api(tmp_path, keys=(KEY, "another-key-of-some-length"))
    basic = base64.b64encode(f"user:{KEY}".encode()).decode()
    right = [{"Authorization": f"Bearer {KEY}"}, {"X-API-Key": KEY}, {"Authorization": f"Basic {basic}"}]
    wrong = [{}, {"Authorization": f"Bearer {KEY}x"}, {"X-API-Key": ""}, {"Authorization": KEY}]
    wrong += [{"Authorization": "Basic %%%"}, {"Authorization": "Bearer "}, {"X-API-Key": KEY[:-1]}]
    for headers in right:
        assert api.ask("GET", "/v1/taggers", headers=headers).status_code == 200
    for headers in wrong:
        answer = api.ask("GET", "/v1/taggers", headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (401, "no_key")
        assert "Bearer" in answer.headers["www-authenticate"]
        assert api.ask("GET", "/metrics", headers=headers).status_code == 401
    assert api.ask("GET", "/health").json() == {"status": "ok"}
    assert api.ask("GET", "/ready").json() == {"status": "ready"}
    assert KEY not in repr(api.service.settings)
    api.close()


def test_other_web_pages_may_call_the_service_only_if_they_are_named(tmp_path, api):
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in api.ask("OPTIONS", TAG, headers=asked).headers
    assert "access-control-allow-origin" not in api.ask("GET", "/health", headers=asked).headers
    other = Api(tmp_path, origins=("https://page.example",), hosts=("localhost",))
    allowed = other.ask("OPTIONS", TAG, headers=asked).headers["access-control-allow-origin"]
    assert allowed == "https://page.example"
    assert "access-control-allow-origin" not in other.ask("GET", "/health", headers={"Origin": "https://evil"}).headers
    assert other.ask("GET", "/health", headers={"Host": "evil.example"}).status_code == 400
    other.close()


def test_metrics_count_requests_texts_and_batches(api):
    api.ask("POST", TAG, {"text": TEXT})
    lines = api.ask("GET", "/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    route = 'method="POST",route="/v1/taggers/{name}/tag",status="200"'
    assert float(values[f"spanshot_requests_total{{{route}}}"]) >= 1
    assert float(values["spanshot_texts_total"]) >= 1
    assert float(values["spanshot_batch_requests_count"]) >= 1
    assert not any("news" in line for line in lines)  # no names of taggers


def test_the_service_is_not_ready_if_taggers_cannot_be_saved(api, monkeypatch):
    def fail() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(api.service.store, "check_writable", fail)
    answer = api.ask("GET", "/ready")
    assert (answer.status_code, "No space left" in answer.json()["message"]) == (503, True)


def test_an_internal_error_tells_nothing_to_clients(tmp_path, monkeypatch):
    api = Api(tmp_path)

    def fail(name: str) -> list[int]:
        raise RuntimeError("secret")

    monkeypatch.setattr(api.service.store, "versions", fail)
    with pytest.raises(RuntimeError):  # the server logs it
        api.ask("GET", "/v1/taggers/news/versions")
    api.close()


def test_settings_reach_the_workers_unchanged(tmp_path, monkeypatch):
    settings = Settings(tmp_path, (KEY,), ("https://a",), ("b",), tmp_path, 2, 512, 0.001, 7, tmp_path, SMALL)
    assert Settings.from_json(settings.to_json()) == settings
    (tmp_path / "keys").write_text(f"# ours\n{KEY}\n\n", encoding="utf-8")
    monkeypatch.setenv("SPANSHOT_API_KEYS", f"another-key-of-some-length, {KEY}")
    assert read_keys(tmp_path / "keys") == ("another-key-of-some-length", KEY)
    for wrong in (lambda: Limits(text=0), lambda: Limits().changed(["txt=1"]), lambda: Limits().changed(["text=x"])):
        with pytest.raises(ConfigError):
            wrong()
    with pytest.raises(ConfigError, match="at least 16"):
        Settings(tmp_path, ("short",))
