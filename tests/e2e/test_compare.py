"""`spanshot compare`: several methods, one table; whatever is done is not done again."""

import json
import shutil
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from spanshot.research import methods
from spanshot.research.corpora.episode_files import write_episodes
from spanshot.research.experiments import measure as measure_module
from spanshot.research.methods import Method
from spanshot.research.methods.esd import EsdSettings
from spanshot.research.training import run as run_module
from spanshot.settings import to_toml
from tiny import toy_episodes


@pytest.fixture(scope="session")
def configs(lab):
    """The config of the lab, and the same without intra span attention."""
    table = tomllib.loads((lab / "toy.toml").read_text())
    table["train"]["steps"] = 2
    for name, isa in (("isa", True), ("no-isa", False)):
        table["method"]["isa"] = isa
        (lab / f"{name}.toml").write_text(to_toml(table), encoding="utf-8")
    return lab / "isa.toml", lab / "no-isa.toml"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs"


def times(folder):
    """When each file of the runs was last written."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "comparison.json"]
    return {path: path.stat().st_mtime_ns for path in files}


def test_one_table_of_all_and_again_without_any_work(spanshot, configs, folder):
    result = spanshot("compare", *configs, "--folder", folder)
    assert result.code == 0, result.err
    for words in (
        f"Run 1 of 2, isa with seed 1: training in {folder / 'isa-seed1'}",
        f"Run 2 of 2, no-isa with seed 1: training in {folder / 'no-isa-seed1'}",
        "train 2/2  loss ",
        "Run 2 of 2, no-isa with seed 1: trained for ",
        "Run 1 of 2, isa with seed 1: evaluating on 4 episodes",
    ):
        assert words in result.err
    assert "micro F1" in result.out
    assert [line.split()[0] for line in result.out.splitlines() if "isa " in line][:2] == ["isa", "no-isa"]
    assert " \u2212 " in result.out.splitlines()[-1]
    assert result.out.count("(esd)") == 2
    assert max(map(len, result.out.splitlines())) <= 120
    assert "On 4 test episodes" in result.out
    assert {path.name for path in folder.iterdir()} == {"isa-seed1", "no-isa-seed1", "comparison.json"}

    before = times(folder)
    again = spanshot("compare", *configs, "--folder", folder)
    assert again.out == result.out
    assert again.err == ""
    assert times(folder) == before


def test_json_and_markdown(spanshot, configs, folder):
    result = spanshot("compare", *configs, "--folder", folder, "--json", "--quiet")
    assert result.code == 0, result.err
    assert result.err == ""
    document = json.loads(result.out)
    assert document == json.loads((folder / "comparison.json").read_text())
    assert {"split": "test", "metric": "micro_f1", "episodes": 4, "first": 0}.items() <= document.items()
    assert [own["method"] for own in document["configs"]] == ["esd", "esd"]
    runs = [own["runs"][0] for own in document["configs"]]
    for run in runs:
        assert run["seconds_per_sentence"] > 0
        assert run["seconds_to_learn"] > 0
        assert run["training_seconds"] > 0
        assert run["step"] in {1, 2}
        assert run["interval"][0] <= run["f1"] <= run["interval"][1]
    assert runs[0]["parameters"] > runs[1]["parameters"]

    evaluated = json.loads(spanshot("evaluate", folder / "isa-seed1", "--json").out)["runs"][0]
    assert runs[0]["f1"] == evaluated["micro_f1"]
    assert runs[0]["without_o_bias"]["micro_f1"] == evaluated["without_o_bias"]["micro_f1"]

    table = spanshot("compare", *configs, "--folder", folder, "--markdown").out.splitlines()
    assert table[1] == "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    assert table[3].startswith("| no-isa (esd) | ")
    assert f"{runs[1]['parameters']:,}" in table[3]


def test_a_stopped_comparison_goes_on(spanshot, configs, folder, monkeypatch):
    save = run_module._Run._save

    def stop(self, module, stage):
        save(self, module, stage)
        if self.folder.name.startswith("no-") and stage.done == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run_module._Run, "_save", stop)
        stopped = spanshot("compare", *configs, "--folder", folder)
    assert stopped.code == 130
    assert stopped.err.endswith("\nspanshot: interrupted; run the same command again to continue the comparison\n")
    assert stopped.out == ""
    trained = times(folder / "isa-seed1")
    assert folder / "isa-seed1" / "result.json" in trained

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(measure_module, "evaluate_variants", interrupted)
        stopped = spanshot("compare", *configs, "--folder", folder)
    assert stopped.code == 130
    assert f"Run 2 of 2, no-isa with seed 1: continuing {folder / 'no-isa-seed1'}" in stopped.err
    assert "train 2/2" in stopped.err
    assert "train 1/2" not in stopped.err
    assert "Run 1 of 2" not in stopped.err
    assert times(folder / "isa-seed1") == trained

    ended = spanshot("compare", *configs, "--folder", folder)
    assert ended.code == 0, ended.err
    assert "train " not in ended.err
    assert ended.err.count("evaluating") == 2
    assert times(folder / "isa-seed1").items() >= trained.items()


def test_seeds_first_episodes_and_overrides(spanshot, configs, folder):
    arguments = ("compare", configs[0], "train.steps=1", "--folder", folder, "--seeds", "1,2", "--quiet")
    result = spanshot(*arguments, "--episodes", 2, "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    (own,) = document["configs"]
    assert [run["seed"] for run in own["runs"]] == [1, 2]
    assert own["over_seeds"]["f1"]["mean"] == pytest.approx(sum(run["f1"] for run in own["runs"]) / 2)
    assert [run["step"] for run in own["runs"]] == [1, 1]
    assert document["episodes"] == document["first"] == 2
    assert not (folder / "isa-seed1" / "evaluation_test.json").exists()

    before = times(folder)
    whole = spanshot(*arguments)
    assert "On 4 test episodes; ± is the standard deviation over 2 seeds" in whole.out
    assert {path: at for path, at in times(folder).items() if path in before} == before


def test_an_evaluation_by_hand_is_taken_over_unless_it_is_of_other_data(spanshot, configs, lab, folder):
    arguments = ("compare", configs[0], "--folder", folder)
    assert spanshot(*arguments, "--split", "dev", "--quiet").code == 0
    assert spanshot("evaluate", folder / "isa-seed1").code == 0
    before = times(folder)
    assert spanshot(*arguments).err == ""
    assert times(folder) == before
    assert spanshot("evaluate", folder / "isa-seed1", f"data.test={lab / 'dev.jsonl'}").code == 0
    assert "evaluating on 4 episodes" in spanshot(*arguments).err


def test_a_method_without_an_o_bias_stands_beside_one_with_it(spanshot, configs, lab, folder, monkeypatch):
    class Silent(Method):
        """Finds nothing."""

        name, Settings = "silent", EsdSettings

        def episode_loss(self, episode):
            return self.encoder(episode.query).first.mean()

        def fit(self, support):
            return lambda sentences: [[] for _ in sentences]

    monkeypatch.setitem(methods._CLASSES, "silent", "Silent")
    monkeypatch.setitem(sys.modules, f"{methods.__name__}.silent", SimpleNamespace(Silent=Silent))
    table = tomllib.loads(configs[0].read_text())
    table["method"]["name"] = "silent"
    silent = folder.parent / "silent.toml"
    silent.write_text(to_toml(table), encoding="utf-8")
    result = spanshot("compare", configs[0], silent, "--folder", folder, "--quiet")
    assert result.code == 0, result.err
    (row,) = [line for line in result.out.splitlines() if line.startswith("silent")]
    assert row.split()[1:3] == ["0.00", "none"]


# What is refused, in one line and before anything is trained


@pytest.fixture
def refused(spanshot, folder):
    def run(*arguments):
        result = spanshot("compare", *arguments, "--folder", folder)
        assert result.code == 2, result
        assert result.out == ""
        assert result.err.startswith("spanshot: error: ")
        assert result.err.count("\n") == 1
        assert not (folder / "comparison.json").exists()
        assert not list(folder.rglob("metrics.jsonl"))
        return result.err.removeprefix("spanshot: error: ").strip()

    return run


def test_other_episodes(refused, configs, lab, tmp_path):
    shutil.copy(lab / "dev.jsonl", tmp_path / "other.jsonl")
    table = tomllib.loads(configs[1].read_text())
    table["data"]["test"] = str(tmp_path / "other.jsonl")
    (tmp_path / "other.toml").write_text(to_toml(table), encoding="utf-8")
    message = refused(configs[0], tmp_path / "other.toml")
    assert "use different episodes: data.test is " in message
    assert "data.dev" not in message


def test_the_same_config_twice(refused, configs):
    assert refused(configs[0], configs[0]) == f"{configs[0]} is given twice; give each config once"


def test_configs_that_come_to_the_same(refused, configs):
    assert "have the same settings" in refused(*configs, "method.isa=false")


def test_a_folder_with_another_run(spanshot, configs, folder):
    assert spanshot("compare", configs[0], "--folder", folder, "--quiet").code == 0
    before = times(folder)
    result = spanshot("compare", *configs, "train.steps=3", "--folder", folder)
    assert result.code == 2
    assert f"{folder / 'isa-seed1'} contains a run with other settings" in result.err
    assert times(folder) == before


def test_a_missing_config_behind_a_good_one(refused, configs, tmp_path):
    assert refused(configs[0], tmp_path / "none.toml").startswith(f"{tmp_path / 'none.toml'}: no such config file")


def test_a_bad_setting_of_the_second_config(refused, configs, tmp_path):
    table = tomllib.loads(configs[1].read_text())
    table["method"]["refine"] = "gready"
    (tmp_path / "bad.toml").write_text(to_toml(table), encoding="utf-8")
    message = refused(configs[0], tmp_path / "bad.toml")
    assert str(tmp_path / "bad.toml") in message
    assert "refine must be one of" in message


def test_an_encoder_that_the_second_config_lacks(refused, configs, tmp_path):
    table = tomllib.loads(configs[1].read_text())
    table["encoder"]["name"] = str(tmp_path / "none")
    (tmp_path / "bad.toml").write_text(to_toml(table), encoding="utf-8")
    assert "could not be loaded" in refused(configs[0], tmp_path / "bad.toml")


def test_test_episodes_that_are_missing_or_bad(refused, configs, tmp_path):
    assert refused(*configs, "data.test=no.jsonl") == "no.jsonl: no such file; check the path"
    (tmp_path / "bad.jsonl").write_text("{not json\n", encoding="utf-8")
    assert "bad.jsonl:1: " in refused(*configs, f"data.test={tmp_path / 'bad.jsonl'}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "tset"], "split must be one of train, dev, test; found 'tset'; did you mean 'test'?"),
        (["--seeds", "1,b"], "--seeds must look like 1,2,3; found '1,b'"),
        (["--seeds", "1,1"], "--seeds must name each seed once; found '1,1'"),
        (["--seeds", "1", "seed=2"], "seeds are given twice; give either --seeds or seed=..."),
    ],
)
def test_options_that_cannot_be(refused, configs, arguments, message):
    assert refused(configs[0], *arguments) == message


def test_usage_errors(spanshot, configs, folder):
    for arguments in (["train.steps=1"], [configs[0], "--json", "--markdown"], []):
        result = spanshot("compare", *arguments, "--folder", folder)
        assert result.code == 2, arguments
        assert "Traceback" not in result.err
    assert not folder.exists()


def test_data_that_changed_between_two_evaluations_is_not_compared(spanshot, configs, folder, tmp_path):
    path = tmp_path / "test.jsonl"
    for seed, config in enumerate(configs):
        write_episodes(path, toy_episodes(4, seed=seed))
        assert spanshot("compare", config, f"data.test={path}", "--folder", folder, "--quiet").code == 0
    result = spanshot("compare", *configs, f"data.test={path}", "--folder", folder)
    assert result.code == 2
    assert "are about different episodes, although their settings are equal" in result.err


def test_a_comparison_reads_each_file_of_its_corpus_once(spanshot, configs, folder, lab, tmp_path, monkeypatch):
    files = {}
    for name in ("train", "dev", "test"):
        files[name] = shutil.copy(lab / f"{name}.jsonl", tmp_path / f"copy-{name}.jsonl")
    read = Counter()
    unwatched = Path.open

    def watched(path, mode="r", **options):
        read[path.name] += path.name.startswith("copy-")
        return unwatched(path, mode, **options)

    monkeypatch.setattr(Path, "open", watched)
    overrides = [f"data.{name}={path}" for name, path in files.items()]
    result = spanshot("compare", *configs, *overrides, "--folder", folder, "--quiet")
    assert result.code == 0, result.err
    assert +read == {f"copy-{name}.jsonl": 1 for name in files}
