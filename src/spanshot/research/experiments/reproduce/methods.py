"""The methods of the paper's tables: their names there, their configs, and the settings for evaluation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A method of a table."""

    config: str
    """Name of the config, such as ``esd`` of ``snips/esd-minilm``."""
    assignments: tuple[str, ...] = ()
    """Settings to change for evaluation."""


METHODS = {
    "ESD": Entry("esd"),
    "ProtoBERT": Entry("proto"),
    "StructShot": Entry("structshot"),
    "NNShot": Entry("structshot", ("method.tau=0",)),
    "L-TapNet+CDT": Entry("tapnet_cdt"),
    "Retriever": Entry("retriever"),
    "MN+BERT": Entry("matching"),
    "TransferBERT": Entry("transfer"),
    "Ma2021": Entry("mrc"),
    "ConVEx": Entry("convex"),
}
MAIN = ("ESD", "ProtoBERT", "StructShot", "NNShot")
"""The methods that every experiment compares. NNShot has StructShot's weights, with its transitions switched off."""
