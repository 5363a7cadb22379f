import json
import shutil
import subprocess
import sys

import pytest

import spanshot as library
from spanshot.formats.columns import write_columns
from spanshot.formats.inline import parse_inline
from spanshot.research.cli.train import default_run
from spanshot.research.corpora.episode_files import read_episodes, write_episodes
from spanshot.research.methods import METHODS
from spanshot.research.training import run as run_module
from tiny import toy_episodes


def test_train_then_evaluate(spanshot, lab, tmp_path):
    run = tmp_path / "run"
    trained = spanshot("train", lab / "toy.toml", "train.steps=3", "--run", run)
    assert trained.code == 0, trained.err
    assert "train 1/3  loss " in trained.out
    assert "step 2: dev F1 " in trained.out
    assert "Best dev F1 " in trained.out
    assert f"Next: spanshot evaluate {run}" in trained.out
    assert "\x1b" not in trained.out
    assert {path.name for path in run.iterdir()} == {"config.toml", "metrics.jsonl", "best", "result.json"}

    measured = spanshot("evaluate", run)
    assert measured.code == 0, measured.err
    for words in (
        "micro F1 over all episodes *",
        "mean F1 over episodes",
        "FP-Span",
        "FP-Type",
        "without O bias",
        "person",
    ):
        assert words in measured.out
    noted = json.loads((run / "evaluation_test.json").read_text())
    assert noted["split"] == "test"
    assert noted["episodes"] == 4


def test_json_is_all_that_is_printed(spanshot, trained, tmp_path):
    result = spanshot("evaluate", trained, "--json", "--split", "dev")
    assert result.code == 0
    assert result.err == ""
    document = json.loads(result.out)
    assert document.keys() == {"runs", "over_runs"}
    (own,) = document["runs"]
    assert {"run", "split", "metric", "micro_f1", "mean_f1", "precision", "recall", "fp_span", "fp_type"} <= own.keys()
    assert {"o_bias", "without_o_bias", "confidence", "labels", "method", "data", "seed", "step"} <= own.keys()
    assert own["metric"] == "micro_f1"
    assert own["micro_f1"] == pytest.approx(own["dev_f1"])
    assert own["labels"].keys() == {"city", "person"}


def test_a_checkpoint_folder_can_be_evaluated_too(spanshot, trained, tmp_path):
    shutil.copytree(trained / "best", tmp_path / "model")
    result = spanshot("evaluate", tmp_path / "model", "--json")
    assert result.code == 0
    assert (tmp_path / "model" / "evaluation_test.json").is_file()


def test_several_runs_give_mean_and_deviation(spanshot, trained, lab, tmp_path):
    other = tmp_path / "other"
    assert spanshot("train", lab / "toy.toml", "seed=2", "train.steps=2", "--run", other, "--quiet").code == 0
    document = json.loads(spanshot("evaluate", trained, other, "--json").out)
    first, second = (own["micro_f1"] for own in document["runs"])
    over = document["over_runs"]["micro_f1"]
    assert over["mean"] == pytest.approx((first + second) / 2)
    assert over["deviation"] == pytest.approx(abs(first - second) / 2**0.5)
    assert "2 runs" in (shown := spanshot("evaluate", trained, other).out)
    assert " ± " in shown


def test_a_run_whose_data_was_moved_is_told_where_it_is_now(spanshot, trained, lab, tmp_path):
    write_episodes(tmp_path / "moved.jsonl", toy_episodes(2, seed=9))
    result = spanshot("evaluate", trained, f"data.test={tmp_path / 'moved.jsonl'}", "--json", "--episodes", 1)
    assert json.loads(result.out)["runs"][0]["episodes"] == 1


def test_how_a_trained_method_decides_can_be_varied_without_a_note_in_the_run(spanshot, lab, trained, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "evaluation_test.json").unlink(missing_ok=True)
    result = spanshot("evaluate", run, "method.refine=greedy", "--json")
    assert json.loads(result.out)["runs"][0]["method"]["refine"] == "greedy"
    assert not (run / "evaluation_test.json").exists()
    refused = spanshot("evaluate", run, "method.size=17")
    assert refused.code == 2
    assert "train it again" in refused.err


def test_a_stopped_run_goes_on_and_ends_as_if_never_stopped(spanshot, lab, trained, tmp_path, monkeypatch):
    run = tmp_path / "run"
    save = run_module._Run._save

    def stop(self, module, stage):
        save(self, module, stage)
        if stage.done == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run_module._Run, "_save", stop)
        stopped = spanshot("train", lab / "toy.toml", "--run", run)
    assert stopped.code == 130
    assert stopped.err == f"spanshot: interrupted; run the same command again to continue {run}\n"
    assert "Traceback" not in stopped.err

    resumed = spanshot("train", lab / "toy.toml", "--run", run)
    assert resumed.code == 0
    assert f"Continuing the run in {run}" in resumed.out
    assert "train 4/4" in resumed.out
    assert "train 3/4" not in resumed.out
    results = [json.loads((folder / "result.json").read_text()) for folder in (run, trained)]
    assert results[0]["best_f1"] == results[1]["best_f1"]


def test_sample_then_train_on_what_was_drawn(spanshot, lab, tmp_path):
    sentences = [s for e in toy_episodes(20, labels=("city", "person", "dish", "day")) for s in e.query]
    write_columns(tmp_path / "corpus.txt", sentences)
    for split, seed in (("train", 1), ("dev", 2)):
        result = spanshot(
            "sample", tmp_path / "corpus.txt", "--ways", 2, "--shots", 1, "--count", 5, "--seed", seed,
            "--output", tmp_path / f"{split}.jsonl",
        )  # fmt: skip
        assert result.code == 0, result.err
        assert "5 episodes over" in result.out
    files = [f"data.{split}={tmp_path / f'{split}.jsonl'}" for split in ("train", "dev")]
    run = spanshot("train", lab / "toy.toml", *files, "train.steps=1", "--run", tmp_path / "run", "--quiet")
    assert run.code == 0, run.err


def test_sample_is_a_function_of_its_seed_and_tells_what_it_left_out(spanshot, tmp_path):
    marked = ["[Oslo](city) met [Ada](person)", "[Rome](city) met [Alan](person)", "[soup](dish) again"]
    write_columns(tmp_path / "corpus.txt", map(parse_inline, marked))
    drawn = []
    for name in ("a", "b"):
        result = spanshot(
            "sample", tmp_path / "corpus.txt", "--ways", 2, "--count", 3, "--output", tmp_path / f"{name}.jsonl"
        )
        assert "Skipped labels with too few spans: dish (1)" in result.out
        drawn.append(read_episodes(tmp_path / f"{name}.jsonl"))
    assert drawn[0] == drawn[1]


def test_the_minimum_rule_takes_each_file_as_a_domain(spanshot, tmp_path):
    for number, name in enumerate(("one", "two")):
        write_columns(tmp_path / f"{name}.txt", [s for e in toy_episodes(10, seed=number) for s in e.query])
    output = tmp_path / "episodes.jsonl"
    result = spanshot(
        "sample", tmp_path / "one.txt", tmp_path / "two.txt", "--rule", "minimum", "--query-size", 4, "--count", 4,
        "--output", output,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert [episode.domain for episode in read_episodes(output)] == ["one", "two", "one", "two"]
    assert all(len(episode.query) == 4 for episode in read_episodes(output))


def test_genia_is_told_by_its_content(spanshot, tmp_path):
    lines = [
        {"id": n, "tokens": ["the", f"protein{n}"], "entities": [{"start": 1, "end": 2, "type": "protein"}]}
        for n in range(4)
    ]
    (tmp_path / "genia.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    result = spanshot("sample", tmp_path / "genia.jsonl", "--ways", 1, "--count", 2, "--output", tmp_path / "out.jsonl")
    assert result.out.startswith(f"{tmp_path / 'out.jsonl'}: 2 episodes over 1 labels")


def test_tensorboard_files_are_written_if_asked_for(spanshot, lab, tmp_path):
    result = spanshot("train", lab / "toy.toml", "train.steps=1", "--run", tmp_path / "run", "--tensorboard", "--quiet")
    assert result.code == 0, result.err
    assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_methods_and_settings_are_listed(spanshot):
    lines = spanshot("methods").out.splitlines()
    assert [line.split()[0] for line in lines] == list(METHODS)
    assert lines[0].startswith("esd         ESD: query spans")
    listed = spanshot("settings", "esd").out
    assert '[method] name = "esd"' in listed
    assert "beam = 5  (int)\n    Beam width (b)" in listed
    assert '[data] kind = "fewnerd"\nfolder (str, required)' in listed
    assert "o_biases = [-2.0, " in listed
    assert listed.count("Peak learning rate of the encoder.") == 2  # also where it is inherited
    wrong = spanshot("settings", "ezd")
    assert wrong.code == 2
    assert "did you mean 'esd'?" in wrong.err


def test_version_and_help_need_no_torch():
    helps = [[name, "--help"] for name in ("train", "evaluate", "compare", "sample", "tag", "check")]
    for arguments in (["--version"], ["--help"], *helps):
        program = (
            "import sys\nfrom spanshot.cli.main import main\n"
            f"try:\n    main({arguments!r})\n"
            "except SystemExit as ended:\n    sys.exit(ended.code or ('torch' in sys.modules and 'torch was imported'))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_python_runs_the_package_as_the_command():
    done = subprocess.run([sys.executable, "-m", "spanshot", "methods"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("esd ")


def test_help_shows_markup_as_it_is_to_be_typed(spanshot):
    assert "[Apple](ORG)" in spanshot("tag", "--help").out


def test_importing_the_library_imports_no_torch_and_still_offers_load():
    program = "import sys, spanshot\nassert 'torch' not in sys.modules\nassert 'load' in spanshot.__all__"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
    assert library.load.__module__ == "spanshot.model"
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        library.lode  # noqa: B018


def test_a_default_run_folder_names_corpus_config_and_seed(tmp_path):
    assert str(default_run(tmp_path / "configs" / "snips" / "esd.toml", 3)) == "runs/snips-esd-seed3"
    assert str(default_run(tmp_path / "mine.toml", 1)) == "runs/mine-seed1"


def test_a_path_may_begin_with_the_home_folder(spanshot, trained, lab, monkeypatch):
    monkeypatch.setenv("HOME", str(lab))
    result = spanshot("evaluate", trained, "data.test=~/dev.jsonl", "--json", "--episodes", 1)
    assert result.code == 0, result.err
    assert json.loads(result.out)["runs"][0]["data"]["test"] == str(lab / "dev.jsonl")


def test_a_run_is_measured_on_episodes_of_a_file(spanshot, trained, tmp_path):
    write_episodes(tmp_path / "other.jsonl", toy_episodes(3, labels=("day", "dish"), seed=9))
    before = sorted(path.name for path in trained.iterdir())
    document = json.loads(spanshot("evaluate", trained, "--on", tmp_path / "other.jsonl", "--json").out)
    assert document["runs"][0]["episodes"] == 3
    assert set(document["runs"][0]["labels"]) <= {"day", "dish"}
    assert sorted(path.name for path in trained.iterdir()) == before


def test_episodes_are_drawn_from_columns_that_begin_with_the_tag(spanshot, tmp_path):
    text = "\n".join(f"O\tin\nB-city\tw{number}\n" for number in range(6))
    (tmp_path / "movie.bio").write_text(text, encoding="utf-8")
    result = spanshot(
        "sample", tmp_path / "movie.bio", "--output", tmp_path / "out.jsonl", "--ways", 1, "--count", 2,
        "--label-column", "first",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert {e.support.labels for e in read_episodes(tmp_path / "out.jsonl")} == {("city",)}
    wrong = spanshot("sample", tmp_path / "movie.bio", "--output", tmp_path / "x.jsonl", "--label-column", "middle")
    assert wrong.code == 2
    assert "'first' or 'last'" in wrong.err


def test_a_run_can_be_measured_with_fine_tuning_on_each_support_set(spanshot, trained):
    before = sorted(path.name for path in trained.iterdir())
    document = json.loads(spanshot("evaluate", trained, "--finetune", "--json").out)
    assert document["runs"][0]["episodes"] == 4
    assert sorted(path.name for path in trained.iterdir()) == before
