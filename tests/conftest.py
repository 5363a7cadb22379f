"""Tests use tiny encoders: one thread each is fastest, and leaves the other core to a second worker."""

import os
import sys

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"


def _seed() -> None:
    if torch := sys.modules.get("torch"):  # tests that do without it are not made to import it
        torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="module")
def _same_weights_in_every_module():
    """Random weights that a module's fixtures make are the same in every run, whatever ran before."""
    _seed()


@pytest.fixture(autouse=True)
def _same_weights_in_every_test():
    _seed()
