"""Processes for tests that kill trainings: forked from a server that has imported the slow packages once."""

from __future__ import annotations

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "killable_reproduce",
        "spanshot.research.training.run",
        "transformers.models.bert.modeling_bert",
        "transformers.models.auto.modeling_auto",
        "transformers.models.auto.tokenization_auto",
    ]
)
