from __future__ import annotations

import dataclasses
import doctest
import importlib
import pkgutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

import spanshot
from spanshot.errors import ConfigError
from spanshot.research.corpora.registry import SOURCES
from spanshot.research.methods import METHODS
from spanshot.research.model_settings import EncoderSettings, ModelSettings
from spanshot.research.training.settings import (
    PretrainSettings,
    RunSettings,
    StageSettings,
    TrainSettings,
)
from spanshot.settings import build, field_help, override, read_table, to_table, to_toml

CONFIGS = sorted((Path(__file__).parents[2] / "configs").rglob("*.toml"))
CONFIG_NAMES = [f"{path.parent.name}/{path.name}" for path in CONFIGS]
SECTIONS = [EncoderSettings, StageSettings, TrainSettings, PretrainSettings, *SOURCES.values()]
SECTIONS += [method.Settings for method in METHODS.values()]
LEAST = {"method": {"name": "esd"}, "data": {"kind": "snips", "folder": "data"}}
MODULES = [found.name for found in pkgutil.walk_packages(spanshot.__path__, "spanshot.")]


def test_a_model_needs_only_its_method_and_encoder_and_imports_no_corpus():
    settings = ModelSettings.of({"method": {"name": "esd"}})
    assert ModelSettings.of(settings.to_table()) == settings
    with pytest.raises(ConfigError, match="unknown section or setting 'train'"):
        ModelSettings.of({"method": {"name": "esd"}, "train": {"steps": 3}})
    code = "import sys, spanshot.research.model_settings as m; m.ModelSettings.of({'method': {'name': 'esd'}}); "
    code += "assert not [name for name in sys.modules if name.startswith('spanshot.research.' + sys.argv[1])]"
    for part in ("corpora", "training"):
        subprocess.run([sys.executable, "-c", code, part], check=True)


@dataclass(frozen=True)
class Cake:
    layers: int
    """How many layers."""
    sugar: float = 0.5
    """Part of sugar,
    by weight."""
    fruit: tuple[str, ...] = ()
    """What is in it."""
    iced: bool = False
    """Whether it is iced."""

    def __post_init__(self) -> None:
        if self.layers < 1:
            raise ConfigError(f"layers must be at least 1; found {self.layers}")


def problem(table: dict[str, object]) -> str:
    with pytest.raises(ConfigError) as error:
        RunSettings.of(table)
    return str(error.value)


# Shipped configs


@pytest.mark.parametrize("corpus", ["snips", "fewnerd"])
def test_every_method_has_a_config_for_either_corpus(corpus):
    found = {RunSettings.read(path).model.method_name for path in CONFIGS if path.parent.name == corpus}
    assert found == set(METHODS)


@pytest.mark.parametrize("path", CONFIGS, ids=CONFIG_NAMES)
def test_every_shipped_config_is_read_and_survives_being_written(path):
    settings = RunSettings.read(path)
    assert RunSettings.of(tomllib.loads(to_toml(settings.to_table()))) == settings


@pytest.mark.parametrize("path", CONFIGS, ids=CONFIG_NAMES)
def test_every_shipped_config_says_in_its_header_how_to_run_it(path):
    header = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert any("spanshot train" in line and f"configs/{path.parent.name}/{path.name}" in line for line in header)


@pytest.mark.parametrize("path", CONFIGS, ids=CONFIG_NAMES)
def test_the_overrides_that_a_shipped_config_names_are_accepted(path):
    words = path.read_text(encoding="utf-8").replace("(", " ").replace(")", " ").split()
    named = [w.rstrip(".,") for w in words if "=" in w and "." in w.split("=")[0]]
    RunSettings.read(path, named)


# In and out


def test_a_resolved_table_names_every_setting():
    table = RunSettings.of(LEAST).to_table()
    assert set(table) == {"seed", "method", "data", "encoder", "train", "pretrain"}
    assert table["train"].keys() == {field.name for field in dataclasses.fields(TrainSettings)}
    assert table["method"]["name"] == "esd"
    assert table["data"]["kind"] == "snips"


def test_tuples_are_lists_in_toml_and_tuples_again_when_read():
    cake = Cake(2, fruit=("plum", "pear"))
    assert to_table(cake)["fruit"] == ["plum", "pear"]
    assert build(Cake, tomllib.loads(to_toml(to_table(cake)))) == cake


def test_whole_numbers_do_for_floats_but_nothing_else_is_converted():
    assert build(Cake, {"layers": 1, "sugar": 1}).sugar == 1.0
    for wrong in ({"layers": 1.0}, {"layers": "1"}, {"layers": True}, {"layers": 1, "iced": 1}):
        with pytest.raises(ConfigError, match="must be of type"):
            build(Cake, wrong)
    with pytest.raises(ConfigError, match="'fruit' must be a list"):
        build(Cake, {"layers": 1, "fruit": "plum"})
    with pytest.raises(ConfigError, match="'fruit' must be of type str; found 3"):
        build(Cake, {"layers": 1, "fruit": ["plum", 3]})


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such config file"), (b"a = ", "not valid TOML"), (b"a = '\xff'", "not valid TOML")],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, content, message):
    path = tmp_path / "some.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        read_table(path)
    assert str(error.value).startswith(f"{path}: {message}")


def test_a_config_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "some.toml").write_bytes(b"\xef\xbb\xbf[train]\r\nsteps = 5\r\n")
    assert read_table(tmp_path / "some.toml") == {"train": {"steps": 5}}


@pytest.mark.parametrize(
    ("table", "kind"), [({"layers": 1, "sugar": 16**6000}, "float"), ({"layers": [16**6000]}, "int")]
)
def test_a_number_of_thousands_of_digits_is_an_error_of_one_line(table, kind):
    with pytest.raises(ConfigError, match=f"must be of type {kind}") as error:
        build(Cake, table)
    assert len(str(error.value)) < 400


def test_a_folder_is_not_a_config(tmp_path):
    with pytest.raises(ConfigError, match="is a folder"):
        read_table(tmp_path)


# Overrides


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("5e-6", 5e-6),
        ("true", True),
        ("[0.0, 1.5]", [0.0, 1.5]),
        ('"7"', "7"),
        ("bert-base-uncased", "bert-base-uncased"),
        ("some/folder", "some/folder"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_an_override_has_the_type_that_toml_gives_it(text, value):
    found = override({}, [f"part.name={text}"])["part"]["name"]
    assert found == value
    assert type(found) is type(value)


def test_overrides_leave_the_given_table_as_it_was():
    table = {"train": {"steps": 5}, "seed": 1}
    assert override(table, ["train.steps=6", "seed=2", "train.batch=3"]) == {
        "train": {"steps": 6, "batch": 3},
        "seed": 2,
    }
    assert table == {"train": {"steps": 5}, "seed": 1}


@pytest.mark.parametrize("wrong", ["train.steps", "=5", "train.steps 5"])
def test_an_override_without_key_or_value_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"must look like train\.steps=100"):
        override({}, [wrong])


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 50_000])
def test_an_override_with_a_value_that_is_too_long_is_refused(value):
    with pytest.raises(ConfigError, match="too long or nested too deeply") as error:
        override({}, [f"train.steps={value}"])
    assert len(str(error.value)) < 200


def test_an_override_below_a_value_is_refused():
    with pytest.raises(ConfigError, match="'seed' is a value"):
        override({"seed": 1}, ["seed.of=3"])


def test_overrides_reach_the_settings_and_are_checked_like_them():
    path = CONFIGS[0]
    settings = RunSettings.read(path, ["train.steps=3", "encoder.name=minilm", "seed=9"])
    assert (settings.train.steps, settings.model.encoder.name, settings.seed) == (3, "minilm", 9)
    with pytest.raises(ConfigError) as error:
        RunSettings.read(path, ["train.stepps=3"])
    assert str(error.value) == f"{path}: unknown setting 'train.stepps'; did you mean 'steps'?"


# Problems


def test_all_problems_are_told_in_one_error():
    message = problem(
        {
            "sed": 3,
            "method": {"name": "esd", "longst": 4, "size": "big"},
            "data": {"kind": "snips", "fold": 1.5},
            "train": {"batch": 0},
            "encoder": 7,
            "seed": "one",
        }
    )
    for part in (
        "unknown section or setting 'sed'; did you mean 'seed'?",
        "unknown setting 'method.longst'; did you mean 'longest'?",
        "setting 'method.size' must be of type int; found 'big'",
        "setting 'data.fold' must be of type int; found 1.5",
        "setting 'data.folder' is missing: Folder of the released",
        "[train] batch must be at least 1; found 0",
        "[encoder] must be a section; found 7",
        "setting 'seed' must be of type int; found 'one'",
    ):
        assert part in message


def test_a_missing_section_says_what_it_needs():
    message = problem({})
    assert "section [method] is missing; it needs name = one of esd" in message
    assert "section [data] is missing; it needs kind = one of snips, fewnerd, episodes" in message


def test_an_unknown_method_or_source_gets_a_hint():
    message = problem({"method": {"name": "ESDs"}, "data": {"kind": "snip"}})
    assert "method.name must be one of esd" in message
    assert "found 'snip'; did you mean 'snips'?" in message
    assert "method.name must be one of esd" in problem({**LEAST, "method": {}})


@pytest.mark.parametrize(
    "assignment",
    [
        "train.batch=0",
        "train.accumulate=0",
        "train.steps=-1",
        "train.warmup=1.0",
        "train.warmup=nan",
        "train.evaluate_every=0",
        "train.save_every=0",
        "train.o_biases=[1.0]",
        "train.encoder_rate=-1e-5",
        "train.head_rate=nan",
        "train.weight_decay=-0.1",
        "train.clip=-1.0",
        "train.patience=-1",
        "train.keep=first",
        "train.dev_episodes=-1",
        "pretrain.batch=0",
        "encoder.dropout=1.5",
        "encoder.dropout=-0.1",
        "encoder.attention_dropout=nan",
        "method.size=0",
        "method.longest=0",
        "method.dropout=1.0",
        "method.o_spans=-1",
        "method.refine=bsnsm",
        "method.beam=0",
        "method.threshold=1.0",
    ],
)
def test_an_impossible_value_is_refused_when_it_is_read(assignment):
    key = assignment.partition("=")[0]
    section, name = key.split(".")
    message = problem(override(LEAST, [assignment]))
    assert f"[{section}]" in message
    assert {"method.beam": "width"}.get(key, name) in message


# Help


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_every_setting_is_explained_and_every_section_too(kind):
    helped = field_help(kind)
    assert list(helped) == [field.name for field in dataclasses.fields(kind)]
    assert not [name for name, text in helped.items() if not text]
    assert kind.__doc__


def test_help_of_several_lines_is_joined_into_one():
    assert field_help(Cake)["sugar"] == "Part of sugar, by weight."


def test_a_setting_explained_anew_by_a_subclass_has_the_new_help():
    assert field_help(StageSettings)["steps"] == "Number of optimizer steps."
    assert field_help(PretrainSettings)["steps"] == "Number of optimizer steps (0: no pretraining)."
    assert field_help(PretrainSettings)["clip"] == field_help(StageSettings)["clip"]


# Examples in docstrings


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_a_modules_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
