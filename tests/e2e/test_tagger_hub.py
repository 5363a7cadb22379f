"""Taggers and models on a hub, with the real `huggingface_hub` and a stand-in for the hub's HTTP API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import spanshot
from hub_server import HubServer
from spanshot.errors import CheckpointError, ConfigError
from spanshot.integrations.hub import is_hub_name, tagger_card

pytest.importorskip("huggingface_hub")
EXAMPLES = ["[Oslo](city) is cold.", "We met in [Rome](city) on [Monday](day).", "[Friday](day) is near."]
TEXT = "They left Bergen on Tuesday."


@pytest.fixture(scope="module")
def tagger():
    return spanshot.learn(EXAMPLES, labels={"city": "name of a | town"})


@pytest.fixture(scope="module")
def hub():
    server = HubServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def run(hub, tmp_path_factory):
    """Run a program as a user would, with the stand-in as the hub; return what it prints."""
    home = tmp_path_factory.mktemp("home")

    def call(program: str, *, fails: bool = False) -> str:
        environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_TOKEN": "hf_secret"}
        environment |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        environment["PYTHONPATH"] = str(Path(spanshot.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", f"import spanshot\n{program}"],
            capture_output=True,
            text=True,
            env=environment,
            cwd=home,
        )
        assert (done.returncode != 0) is fails, done.stderr
        return done.stderr.strip().splitlines()[-1] if fails else done.stdout.strip()

    return call


SHOW = "print([(e.text, e.label, round(e.score, 6)) for e in tagger({TEXT!r})])".replace("{TEXT!r}", repr(TEXT))


def test_a_tagger_is_pushed_and_loaded_by_name_and_by_revision(hub, run, tagger):
    wanted = str([(e.text, e.label, round(e.score, 6)) for e in tagger(TEXT)])
    commit = run(
        f"tagger = spanshot.learn({EXAMPLES!r}, labels={{'city': 'name of a | town'}})\n"
        "print(tagger.push_to_hub('user/cities'))"
    )
    files = hub.files("user/cities")
    assert set(files) == {"README.md", "checkpoint.json", "head.safetensors", "tagger.json"}
    assert run(f"tagger = spanshot.load('user/cities')\n{SHOW}") == wanted

    second = run(
        "tagger = spanshot.load('user/cities').add(['[Bergen](port) and [Kiel](port)'])\n"
        "print(tagger.push_to_hub('user/cities', examples=False))"
    )
    assert second != commit
    assert b"Bergen" not in b"".join(hub.files("user/cities").values())  # the examples stayed at home
    assert run("print(spanshot.load('user/cities').labels)") == "('city', 'day', 'port')"
    for pinned in (f"'user/cities', revision={commit!r}", f"'user/cities@{commit}'"):
        assert run(f"tagger = spanshot.load({pinned})\n{SHOW}") == wanted


def test_a_model_is_pushed_and_loaded(hub, run):
    program = (
        "from spanshot.integrations.hub import push_folder\n"
        "from spanshot.checkpoint import packaged_folder\n"
        "print(push_folder(packaged_folder(), 'user/model', revision='v1'))\n"
        "model = spanshot.load_model('user/model', revision='v1')\n"
        f"print(model.learn({EXAMPLES!r}).labels)"
    )
    assert run(program).endswith("('city', 'day')")
    assert not [name for name in hub.files("user/model", "v1") if Path(name).suffix in {".py", ".pkl", ".bin"}]


def test_a_repository_is_data_and_nothing_else_is_downloaded(hub, run, tmp_path, tagger):
    tagger.save(tmp_path / "own")
    files = {path.name: path.read_bytes() for path in (tmp_path / "own").iterdir()}
    hub.commit("evil/extra", "main", {**files, "evil.py": b"raise SystemExit('run')", "weights.pkl": b"cos\nsystem"})
    hub.requests.clear()
    assert "Bergen" in run(f"tagger = spanshot.load('evil/extra')\n{SHOW}")
    assert not [request for request in hub.requests if "evil.py" in request or "pkl" in request]

    manifest = json.loads(files["checkpoint.json"])
    manifest["files"]["head.safetensors"]["file"] = "head.pkl"
    hub.commit("evil/pickle", "main", {**files, "checkpoint.json": json.dumps(manifest).encode(), "head.pkl": b"c"})
    assert "'head.pkl' is not a file of a checkpoint" in run("spanshot.load('evil/pickle')", fails=True)

    hub.commit("evil/damaged", "main", {**files, "head.safetensors": files["head.safetensors"][:-1] + b"x"})
    assert "its digest differs" in run("spanshot.load('evil/damaged')", fails=True)
    hub.commit("evil/larger", "main", {**files, "head.safetensors": files["head.safetensors"] + b"x"})
    assert "head.safetensors has" in run("spanshot.load('evil/larger')", fails=True)


def test_errors_are_one_line_that_says_what_to_do(run, tmp_path):
    assert "cannot be loaded from the hub" in run("spanshot.load('user/nothing')", fails=True)
    with pytest.raises(CheckpointError, match="no such checkpoint folder"):
        spanshot.load(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="only repositories of the hub"):
        spanshot.load(tmp_path, revision="v1")
    with pytest.raises(ConfigError, match="give one revision"):
        spanshot.load("user/cities@v1", revision="v2")


def test_a_folder_is_never_taken_for_a_repository(tmp_path, monkeypatch, tagger):
    monkeypatch.chdir(tmp_path)
    tagger.save("user/cities")
    assert not is_hub_name("user/cities")
    assert spanshot.load("user/cities").labels == ("city", "day")
    for name in ("cities", "a/b/c", "../cities", "/tmp/cities", "a/b@", "-a/b", "a\\b", Path("user/other")):
        assert not is_hub_name(name)


def test_the_card_describes_the_tagger_without_letting_labels_change_it(tagger):
    card = tagger_card(tagger, "user/cities")
    assert card.startswith("---\nlibrary_name: spanshot\n")
    assert "| city | name of a \\| town | 2 |" in card
    assert 'spanshot.load("user/cities")' in card
    assert "3 examples are part of the repository" in card
    odd = spanshot.learn(labels={"a": "x\n---\n<script>"})
    assert "<script>" not in tagger_card(odd, "user/odd")
    assert tagger_card(odd, "user/odd").count("\n---\n") == 1
