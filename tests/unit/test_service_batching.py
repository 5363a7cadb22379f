"""The batcher: fair shares, a bounded queue, errors and cancelled requests. And taggers on disk."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

import spanshot
from spanshot.errors import SpanshotError
from spanshot.service.batching import Batcher, Work, tag_together
from spanshot.service.errors import ServiceError
from spanshot.service.store import TaggerStore
from spanshot.tagger import Tagger

TEXTS = ["Is Bergen rainy?", "Ann Lee left Acme Corp. " * 60, "", "x"]


@pytest.fixture(scope="module")
def taggers():
    return [
        spanshot.learn(["[Oslo](city) is cold.", "They left [Rome](city)."]),
        spanshot.learn(["[Ann Lee](person) works at [Acme](org).", "[Bo](person) left."], nested=True),
        spanshot.learn(labels=["city"], threshold=0.1),
    ]


@pytest.fixture
def batcher():
    batcher = Batcher(batch_words=64)
    yield batcher
    batcher.close()


def test_texts_of_several_taggers_get_the_entities_of_each_tagger_alone(taggers, batcher):
    async def tag():
        return await asyncio.gather(*(batcher.tag(tagger, TEXTS, 60) for tagger in taggers))

    for tagger, results in zip(taggers, asyncio.run(tag()), strict=True):
        for entities, alone in zip(results, tagger.pipe(TEXTS), strict=True):
            assert [(e.text, e.label, e.start) for e in entities] == [(e.text, e.label, e.start) for e in alone]
            assert [e.score for e in entities] == pytest.approx([e.score for e in alone], abs=1e-4)


def test_a_tagger_of_another_kind_is_called_by_itself(taggers):
    class Other:
        def __call__(self, sentences):
            return [["spans"] for _ in sentences]

    other = replace(taggers[0], sentence_tagger=Other())
    sentences = list(taggers[0].read("Is Bergen rainy?").sentences())
    by_other, by_first, by_none = tag_together([(other, sentences), (taggers[0], sentences), (other, [])])
    assert by_other == [["spans"]]
    assert by_first == taggers[0].sentence_tagger(sentences)
    assert by_none == []


class Held:
    """A tagger that waits when it reads a text, until it is let go."""

    def __init__(self, tagger, problem: Exception | None = None) -> None:
        self._tagger, self._problem = tagger, problem
        self.reading, self.go = threading.Event(), threading.Event()
        self.sentence_tagger = tagger.sentence_tagger
        self.entities = tagger.entities

    def read(self, text):
        self.reading.set()
        assert self.go.wait(30)
        if self._problem:
            raise self._problem
        return self._tagger.read(text)


async def refusal(batcher: Batcher, tagger: Tagger, seconds: float) -> ServiceError:
    """Send a text while another one is being read, and return the error of that request."""
    held = Held(tagger)
    first = asyncio.ensure_future(batcher.tag(held, ["Is Bergen rainy?"], 60))
    await asyncio.to_thread(held.reading.wait, 30)
    with pytest.raises(ServiceError) as refused:
        await batcher.tag(tagger, ["Is Bergen rainy?"], seconds)
    held.go.set()
    await first
    return refused.value


def test_a_full_queue_refuses_with_the_seconds_to_wait_and_recovers(taggers):
    batcher = Batcher(queue=30)

    async def run():
        return await refusal(batcher, taggers[0], 60), await batcher.tag(taggers[0], ["Is Bergen rainy?"], 60)

    refused, results = asyncio.run(run())
    assert (refused.status, refused.code) == (429, "overloaded")
    assert int(refused.headers["Retry-After"]) >= 1
    assert [entity.text for entity in results[0]] == ["Bergen"]
    assert batcher.queued == 0
    batcher.close()


def test_a_request_that_waited_too_long_is_refused_and_leaves_the_queue(taggers, batcher):
    async def run():
        refused = await refusal(batcher, taggers[0], 0.01)
        await batcher.tag(taggers[0], ["b"], 60)
        return refused

    assert asyncio.run(run()).status == 429
    assert batcher.queued == 0


def test_an_error_concerns_its_own_request_only(taggers, batcher):
    bad = Held(taggers[0], SpanshotError("unreadable"))
    bad.go.set()
    worse = replace(taggers[0], sentence_tagger=lambda sentences: 1 / 0)

    async def run():
        works = [batcher.tag(tagger, ["Is Bergen rainy?"], 60) for tagger in (bad, taggers[0], worse, taggers[1])]
        return await asyncio.gather(*works, return_exceptions=True)

    results = asyncio.run(run())
    assert isinstance(results[0], SpanshotError)
    assert [entity.text for entity in results[1][0]] == ["Bergen"]
    assert isinstance(results[2], ZeroDivisionError)
    assert isinstance(results[3], list)
    assert batcher.queued == 0


def test_a_long_text_gets_its_share_of_a_batch_only(taggers):
    work = Work(taggers[0], ["One two three. " * 200], None, 1)
    work.start()
    taken = work.take(100)
    assert 1 <= len(taken) < len(work.sentences)
    assert len(taken) == 1 or sum(map(len, taken)) <= 100


def test_closing_finishes_what_is_queued(taggers):
    batcher = Batcher()

    async def run():
        work = asyncio.ensure_future(batcher.tag(taggers[0], ["Is Bergen rainy?"] * 50, 60))
        await asyncio.sleep(0)
        await asyncio.to_thread(batcher.close)
        with pytest.raises(ServiceError, match="shutting down"):
            await batcher.tag(taggers[0], ["a"], 1)
        return await work

    assert len(asyncio.run(run())) == 50


def test_two_stores_of_one_folder_see_the_same_taggers(taggers, tmp_path):
    first, second = TaggerStore(tmp_path), TaggerStore(tmp_path)
    with first.changing("a"):
        first.save("a", taggers[0])
    with second.changing("a"):
        second.save("a", taggers[1])
    assert first.names() == ["a"]
    assert first.versions("a") == [1, 2]
    model = taggers[0].model
    assert first.load(first.find("a"), model) == taggers[1]
    assert first.load(first.find("a", 1), model) == taggers[0]
    assert spanshot.load(first.find("a", 1).folder) == taggers[0]
    second.delete("a")
    assert first.names() == []
    with pytest.raises(ServiceError, match="no tagger"):
        first.find("a")


def test_leftovers_of_killed_processes_are_no_taggers(taggers, tmp_path):
    store = TaggerStore(tmp_path)
    (tmp_path / "taggers" / "t-begun").mkdir()
    (tmp_path / "taggers" / ".deleted-0123456789abcdef").mkdir()
    assert store.names() == []
    with pytest.raises(ServiceError, match="no tagger"):
        store.find("begun")
    TaggerStore(tmp_path)
    assert not (tmp_path / "taggers" / ".deleted-0123456789abcdef").exists()
    with store.changing("begun"):
        assert store.save("begun", taggers[0]).version == 1
