from __future__ import annotations

import torch

from spanshot.research.nn.encoder import WordVectors
from spanshot.research.nn.tag_head import TagHead


def vectors(words: int, size: int = 4) -> WordVectors:
    values = torch.arange(words * size, dtype=torch.float32).reshape(words, size)
    return WordVectors(values, values, (words - 1, 1))


def test_a_head_begins_without_a_preference():
    scores = TagHead(4, "bio", ["city", "day"])(vectors(3))
    assert [own.logits.shape for own in scores] == [(2, 5), (1, 5)]
    assert scores[0].tags == ("O", "B-city", "I-city", "B-day", "I-day")
    assert not any(own.logits.any() for own in scores)


def test_a_trained_head_is_loaded_into_one_that_is_given_its_labels():
    trained, fresh = TagHead(4, "io", ["city", "Zürich"]), TagHead(4, "io")
    torch.nn.init.normal_(trained.linear.weight)
    fresh.know(trained.labels)
    fresh.load_state_dict(trained.state_dict())
    assert trained.state_dict().keys() == {"linear.weight", "linear.bias"}
    assert torch.equal(fresh(vectors(2))[0].logits, trained(vectors(2))[0].logits)


def test_loading_the_same_labels_keeps_the_weights_that_an_optimiser_holds():
    head, other = TagHead(4, "io", ["city"]), TagHead(4, "io", ["city"])
    held = head.linear.weight
    torch.nn.init.ones_(other.linear.weight)
    head.load_state_dict(other.state_dict())
    assert head.linear.weight is held
    assert held.sum() == held.numel()
