"""The server: actions, two clients, exports, and requests that are refused."""

import asyncio
import io
import json
import time
import zipfile

import httpx
import pytest

from spanshot.formats.documents import Document
from spanshot.formats.examples import read_documents, read_examples
from spanshot.model import embedded_model, load
from spanshot.ui.exporting import KINDS
from spanshot.ui.project import Project, read_history
from spanshot.ui.server import make_app
from spanshot.ui.session import Session

TOKEN, PORT = "secret", 8111
HEADERS = {"X-Spanshot-Token": TOKEN, "Host": f"127.0.0.1:{PORT}"}
TEXTS = ["Maria flies to Oslo on Friday.", "The train from Rome to Milan.", "🚌 Kofi in Lima.", "Nobody knew."]
HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\u202eevil\u202c \u0001 }}{{ ${x} </textarea>",
    "'; DROP TABLE x; --",
]


class Client:
    """A synchronous client of the application, without a socket."""

    def __init__(self, app):
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://127.0.0.1:{PORT}")

    def __call__(self, path, body=None, headers=HEADERS, method=None):
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        method = method or ("GET" if body is None else "POST")
        return self._loop.run_until_complete(self._client.request(method, path, content=content, headers=headers))

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        return self

    def __exit__(self, *_):
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()

    def do(self, **action):
        reply = self("/api/do", action)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def rows(self, *ids):
        return self("/api/rows", {"ids": list(ids)}).json()["rows"]


@pytest.fixture(scope="module")
def model():
    return embedded_model()


@pytest.fixture
def session(tmp_path, model):
    project = Project.open(tmp_path / "trips.spanshot.jsonl")
    project.add_texts([Document(text) for text in TEXTS])
    opened = Session(project, lambda: model)
    opened.start()
    yield opened
    opened.close()


@pytest.fixture
def client(session):
    with Client(make_app(session, TOKEN, PORT)) as opened:
        yield opened


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def settled(session):
    wait_until(lambda: session.learned == session.version)


def test_a_mark_is_saved_before_it_is_confirmed_and_leads_to_suggestions(client, session):
    reply = client.do(do="mark", text=1, start=15, end=19, label="city")
    assert len(read_history(session.project.file.path).state.texts[1].marks) == 1
    assert reply["rows"][0]["marks"] == [{"start": 15, "end": 19, "label": "city"}]
    settled(session)
    (row,) = client.rows(2)
    assert {"Rome", "Milan"} <= {row["text"][s["start"] : s["end"]] for s in row["suggested"]}
    summary = client("/api/summary").json()
    assert summary["labels"][0]["marks"] == 1
    assert summary["labels"][0]["suggested"] >= 2
    assert client("/api/list?status=suggestions").json()["ids"][0] == 2


def test_a_rejected_suggestion_stays_away_and_an_accepted_text_has_none(client, session):
    client.do(do="mark", text=1, start=15, end=19, label="city")
    settled(session)
    client.do(do="reject", text=2, start=15, end=19, label="city")
    settled(session)
    (row,) = client.rows(2)
    assert "Rome" not in {row["text"][s["start"] : s["end"]] for s in row["suggested"]}
    client.do(do="review", text=2, accept=[{"start": 23, "end": 28, "label": "city"}])
    (row,) = client.rows(2)
    assert (row["suggested"], row["reviewed"], len(row["marks"])) == ([], True, 1)
    settled(session)
    assert client("/api/next?current=1").json()["id"] in {3, 4}


def test_a_second_tab_hears_of_a_change(client, session):
    settled(session)
    before = client("/api/summary").json()["revision"]
    client.do(do="mark", text=3, start=10, end=14, label="city")  # by the first tab
    news = client(f"/api/changes?since={before}").json()
    assert news["revision"] > before
    assert 3 in news["changed"]
    client.do(do="undo")
    assert client.rows(3)[0]["marks"] == []


def test_a_threshold_can_be_tried_before_it_is_saved(client, session):
    client.do(do="mark", text=1, start=15, end=19, label="city")
    settled(session)
    assert client.rows(2)[0]["suggested"]
    client("/api/preview", {"label": "city", "threshold": 0.98})
    settled(session)
    assert not client.rows(2)[0]["suggested"]
    client("/api/preview", {"label": "city", "threshold": None})
    settled(session)
    assert client.rows(2)[0]["suggested"]
    assert read_history(session.project.file.path).state.labels["city"].threshold is None


def test_reasons_lead_to_the_example(client, session):
    client.do(do="mark", text=1, start=15, end=19, label="city")
    settled(session)
    reasons = client("/api/why?text=2&start=15&end=19&label=city").json()["reasons"]
    example = next(reason for reason in reasons if reason["kind"] == "example")
    assert (example["text"], example["words"]) == (1, "Oslo")


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_is_exported_and_read_back(client, session, kind, tmp_path):
    for package in {"spacy": ["spacy"], "parquet": ["pyarrow"]}.get(kind, []):
        pytest.importorskip(package)
    client.do(do="mark", text=3, start=10, end=14, label="city")
    reply = client(f"/api/export?kind={kind}")
    assert reply.status_code == 200, reply.text
    path = tmp_path / ("x" + KINDS[kind][1])
    path.write_bytes(reply.content)
    if kind == "brat":
        zipfile.ZipFile(io.BytesIO(reply.content)).extractall(tmp_path / "brat")
        path = tmp_path / "brat"
    (document,) = read_documents(path, KINDS[kind][0]).documents
    assert [document.text[mark.start : mark.end] for mark in document.marks] == ["Lima"]


def test_the_tagger_is_saved_and_the_commands_learn_the_same(client, session, tmp_path):
    assert client("/api/export?kind=jsonl").status_code == 400  # nothing is annotated
    client.do(do="mark", text=1, start=15, end=19, label="city")
    wait_until(lambda: session.suggester is not None)
    reply = client("/api/tagger", {"folder": "my-tagger"})
    assert reply.status_code == 200, reply.text
    assert [e.text for e in load(tmp_path / "my-tagger")("Trains to Milan")] == ["Milan"]
    commands = client("/api/commands").json()
    assert "spanshot learn --examples" in commands["shell"]
    values: dict[str, object] = {}
    exec(commands["python"].replace('print(tagger("…"))', ""), values)
    assert values["tagger"] == load(tmp_path / "my-tagger")


def test_dropped_files_keep_their_annotations(client, session):
    content = '{"text": "in Bergen 🌧", "entities": [{"start": 3, "end": 9, "label": "city"}]}\n'.encode()
    assert client("/api/texts?name=a%2F..%2Fb.jsonl", content).json() == {"added": 1}
    assert client.rows(5)[0]["marks"] == [{"start": 3, "end": 9, "label": "city"}]
    assert client("/api/texts?name=x.json", b'[{"a": 1}]').status_code == 400
    assert client("/api/texts?example=1", b"").json()["added"] == 10


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_and_labels_come_back_as_they_are(client, session, text):
    assert client("/api/texts", f"x {text}".encode()).json() == {"added": 1}
    (row,) = client.rows(5)
    assert row["text"] == f"x {text}"
    label = text.strip()[:50]
    client.do(do="mark", text=5, start=0, end=1, label=label)
    assert client.rows(5)[0]["marks"][0]["label"] == label
    assert client("/api/summary").headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Spanshot-Token": "wrong"}, 401),
        ({"X-Spanshot-Token": ""}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Length": "99999999999"}, 413),
    ],
)
def test_requests_from_elsewhere_are_refused(client, session, headers, status):
    for path, body in (("/api/summary", None), ("/api/do", {"do": "label", "label": "x"})):
        assert client(path, body, {**HEADERS, **headers}).status_code == status
    assert not session.project.state.labels


def test_the_page_has_a_policy_without_inline_scripts_and_needs_no_other_host(client):
    page = client("/", headers={"Host": f"localhost:{PORT}"})
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "<script>" not in page.text
    for path in ("/app.js", "/app.css"):
        assert "unsafe-eval" not in client(path).headers["content-security-policy"]
    assert client("/../server.py").status_code == 404


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"do": 1}', b'{"do": "explode"}', b"\xff", b'{"do": "mark"}'])
def test_malformed_requests_are_errors_of_one_line(client, session, body):
    reply = client("/api/do", body)
    assert reply.status_code == 400
    assert "\n" not in reply.json()["error"]
    assert session.project.history.actions == 0


def test_examples_are_read_while_the_project_is_open(client, session):
    client.do(do="mark", text=1, start=15, end=19, label="city")
    assert read_examples(session.project.file.path).labels == {"city": 1}
