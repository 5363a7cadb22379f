"""`spanshot reproduce` on generated data: all experiments, resumed after kills, in several processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import killable_reproduce
from fork_server import PROCESSES
from spanshot.cli.main import main
from spanshot.research.experiments.reproduce.catalogue import EXPERIMENTS

FORMATS = ("results.md", "results.html", "results.json")


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """The results of all experiments with the small budget; not to be changed."""
    folder = tmp_path_factory.mktemp("reproduce") / "out"
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "all", "--out", str(folder), "--quiet"])
    assert not ended.value.code
    return folder


def tables(out: Path, name: str) -> list[object]:
    """All tables of an experiment but those of times."""
    record = json.loads((out / name / "results.json").read_text(encoding="utf-8"))
    return [table for table in record["tables"] if not table["timed"]] + [record["charts"], record["remarks"]]


def times(out: Path) -> dict[Path, int]:
    """When each file of the runs was last written."""
    return {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_fills_its_table(out, name):
    assert all((out / name / file).is_file() for file in FORMATS)
    record = json.loads((out / name / "results.json").read_text(encoding="utf-8"))
    assert not [remark for remark in record["remarks"] if "runs are finished" in remark]
    for table in record["tables"]:
        assert table["rows"], table["title"]
        for row in table["rows"].values():
            assert any(cell["ours"] if isinstance(cell, dict) else cell for cell in row.values()), table["title"]
    for chart in record["charts"]:
        assert (out / name / f"{chart['name']}.svg").is_file()


def test_the_charts_of_the_paper_are_drawn(out):
    drawn = {path.stem for path in out.glob("*/*.svg")}
    assert {"snips", "fewnerd-intra", "fewnerd-inter", "ablation", "nested", "noise", "search"} <= drawn


def test_one_page_has_all_experiments(out):
    page = (out / "index.html").read_text(encoding="utf-8")
    assert all(f'<h2 id="{name}">' in page for name in EXPERIMENTS)


def test_finished_runs_are_not_repeated(spanshot, out):
    before = times(out)
    result = spanshot("reproduce", "all", "--out", out)
    assert result.code == 0, result.err
    total = len([path for path in (out / "runs").iterdir() if path.is_dir()])
    assert f"{total} of {total} runs are finished\n" in result.err
    assert times(out) == before


def test_json_on_standard_output_is_that_of_the_file(spanshot, out):
    result = spanshot("reproduce", "errors", "--out", out, "--tables", "--json", "--quiet")
    assert result.code == 0, result.err
    assert json.loads(result.out) == [json.loads((out / "errors" / "results.json").read_text(encoding="utf-8"))]
    assert result.err == ""


def test_tables_without_training_say_how_many_runs_are_missing(spanshot, tmp_path):
    result = spanshot("reproduce", "errors", "--out", tmp_path / "out", "--tables")
    assert result.code == 0, result.err
    assert "0 of 3 runs are finished; missing: " in (tmp_path / "out" / "errors" / "results.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["errors", "search"])
def test_killed_and_resumed_gives_the_same_tables(out, tmp_path, name):
    kills = 0
    for count in (1, 2, 4, 9, 14, 2, 3, 1000):
        process = PROCESSES.Process(target=killable_reproduce.run, args=([name], str(tmp_path / "out"), count))
        process.start()
        process.join()
        assert process.exitcode in {0, -signal.SIGKILL}
        if process.exitcode == 0:
            break
        kills += 1
    assert process.exitcode == 0
    assert kills >= 3
    assert tables(tmp_path / "out", name) == tables(out, name)


def test_two_processes_give_the_same_tables_as_one(spanshot, out, tmp_path):
    result = spanshot("reproduce", "errors", "--out", tmp_path / "out", "--jobs", "2")
    assert result.code == 0, result.err
    assert tables(tmp_path / "out", "errors") == tables(out, "errors")


def test_no_process_outlives_a_killed_command(tmp_path):
    command = [sys.executable, "-m", "spanshot", "reproduce", "errors", "--out", str(tmp_path / "out"), "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert any("train" in line for line in process.stderr)
        process.kill()
        process.communicate(timeout=60)  # until the last process that can write to standard error has ended


def test_records_give_the_same_tables_elsewhere_without_training(spanshot, out, tmp_path):
    records, elsewhere = tmp_path / "records.jsonl", tmp_path / "elsewhere"
    assert spanshot("reproduce", "all", "--out", out, "--tables", "--records", records).code == 0
    assert str(out) not in records.read_text(encoding="utf-8")
    result = spanshot("reproduce", "all", "--out", elsewhere, "--tables", "--records", records)
    assert result.code == 0, result.err
    for name in EXPERIMENTS:
        first, second = (json.loads((at / name / "results.json").read_text("utf-8")) for at in (out, elsewhere))
        assert first == second
    assert not list((elsewhere / "runs").rglob("*.safetensors"))


def test_a_killed_command_has_recorded_the_runs_that_it_finished(out, tmp_path):
    records = tmp_path / "records.jsonl"
    arguments = (["errors"], str(tmp_path / "out"), str(records))
    process = PROCESSES.Process(target=killable_reproduce.run_one_job, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (record,) = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    assert (out / "runs" / record["run"]).is_dir()
    assert record["measurements"]


def test_a_recorded_run_that_lacks_a_measurement_is_trained_again(spanshot, out, tmp_path):
    records, elsewhere = tmp_path / "records.jsonl", tmp_path / "elsewhere"
    assert spanshot("reproduce", "errors", "--out", out, "--tables", "--records", records).code == 0
    complete = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    changed = complete[1] | {"measurements": {}}
    lines = [json.dumps(record) + "\n" for record in [complete[0], changed, *complete[2:]]]
    records.write_text("".join(lines), encoding="utf-8")
    result = spanshot("reproduce", "errors", "--out", elsewhere, "--records", records)
    assert result.code == 0, result.err
    assert tables(elsewhere, "errors") == tables(out, "errors")
    assert [path.parent.name for path in elsewhere.glob("runs/*/best")] == [changed["run"]]


def test_timings_train_recorded_runs_again_only_if_they_need_their_weights(spanshot, out, tmp_path):
    records = tmp_path / "records.jsonl"
    assert spanshot("reproduce", "efficiency", "snips", "--out", out, "--tables", "--records", records).code == 0
    lines = records.read_text(encoding="utf-8").splitlines(keepends=True)
    untimed = tmp_path / "untimed.jsonl"
    untimed.write_text("".join(line for line in lines if '"efficiency-5shot"' not in line), encoding="utf-8")
    trained = {}
    for source in (records, untimed):
        folder = tmp_path / f"out-{source.stem}"
        assert spanshot("reproduce", "efficiency", "snips", "--out", folder, "--records", source).code == 0
        trained[source] = {path.parent.name for path in folder.glob("runs/*/best")}
        assert tables(folder, "snips") == tables(out, "snips")
    assert trained[records] == set()
    assert trained[untimed] == {f"snips-{name}-We-5shot-seed1" for name in ("esd", "proto", "tapnet_cdt")}


def test_a_record_from_before_a_setting_existed_has_its_default(spanshot, out, tmp_path):
    records, elsewhere = tmp_path / "records.jsonl", tmp_path / "elsewhere"
    assert spanshot("reproduce", "errors", "--out", out, "--tables", "--records", records).code == 0
    first, second, *others = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    del first["settings"]["method"]["bias_by_shots"]
    second["settings"]["train"]["steps"] += 1
    lines = [json.dumps(record) + "\n" for record in [first, second, *others]]
    records.write_text("".join(lines), encoding="utf-8")
    result = spanshot("reproduce", "errors", "--out", elsewhere, "--tables", "--records", records)
    assert result.code == 0, result.err
    text = (elsewhere / "errors" / "results.md").read_text("utf-8")
    assert f"2 of 3 runs are finished; missing: {second['run']}." in text


def test_damaged_records_are_refused_in_one_line(spanshot, tmp_path):
    records = tmp_path / "records.jsonl"
    records.write_text('{"run": "a"}\n{"settings": {}}\n', encoding="utf-8")
    result = spanshot("reproduce", "errors", "--out", tmp_path / "out", "--tables", "--records", records)
    assert (result.code, result.err) == (2, f"spanshot: error: {records}:2: field 'run' is missing\n")


def test_wrong_arguments_are_refused_in_one_line(spanshot, tmp_path):
    result = spanshot("reproduce", "errors", "--data", tmp_path)
    assert (result.code, result.err) == (
        2,
        "spanshot: error: --budget small generates its own data; leave --data out\n",
    )
    result = spanshot("reproduce", "snips", "--budget", "laptop", "--data", tmp_path, "--out", tmp_path / "out")
    assert result.code == 2
    assert "no SNIPS file for fold 1" in result.err
