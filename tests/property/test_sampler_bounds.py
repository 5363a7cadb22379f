import random
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanshot.errors import EpisodeError
from spanshot.research.corpora.sampling import FewNerdSampler, MinimumIncludingSampler
from spanshot.types import Sentence, Span
from strategies_sentences import corpora


def spans_of(sentences):
    return Counter(span.label for sentence in sentences for span in sentence.spans)


def made_up(*label_lists, copies=1):
    """Sentences of distinct words, a one-word span for each label."""
    return [
        Sentence(
            (*(f"{label}." for label in labels), f"{copy}.{number}"),
            tuple(Span(position, position + 1, label) for position, label in enumerate(labels)),
        )
        for copy in range(copies)
        for number, labels in enumerate(label_lists)
    ]


@given(corpora(), st.integers(1, 2), st.integers(1, 3), st.integers(0, 99))
def test_fewnerd_episodes_keep_to_the_rule(corpus, k, query_k, seed):
    episode = FewNerdSampler(corpus, 2, k, query_k).sample(random.Random(seed))
    chosen = set(episode.support.labels)
    assert len(chosen) == 2
    for sentences, least in ((episode.support.sentences, k), (episode.query, query_k)):
        counts = spans_of(sentences)
        assert set(counts) == chosen
        assert all(least <= count <= 2 * least for count in counts.values())
        so_far: Counter[str] = Counter()
        for sentence in sentences:
            assert any(so_far[span.label] < least for span in sentence.spans), "a sentence that helped nobody"
            so_far += spans_of([sentence])
    assert all(sentence in corpus for sentence in (*episode.support.sentences, *episode.query))


@given(corpora(), st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_minimum_including_supports_are_large_enough_and_minimal(corpus, k, query_size, seed):
    sampler = MinimumIncludingSampler(corpus, k, query_size)
    episode = sampler.sample(random.Random(seed))
    support = episode.support.sentences
    assert episode.support.labels == sampler.labels
    assert all(spans_of(support)[label] >= k for label in sampler.labels)
    for left_out in support:
        rest = spans_of(sentence for sentence in support if sentence is not left_out)
        assert any(rest[label] < k for label in sampler.labels)
    assert len(episode.query) == query_size


@given(corpora(), st.booleans(), st.integers(0, 99))
def test_no_two_sentences_of_an_episode_have_the_same_words(corpus, minimum, seed):
    sampler = MinimumIncludingSampler(corpus, 1, 9) if minimum else FewNerdSampler(corpus, 4, 2)
    episode = sampler.sample(random.Random(seed))
    texts = [sentence.words for sentence in (*episode.support.sentences, *episode.query)]
    assert len(set(texts)) == len(texts)


@given(corpora(shots=0), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(0, 99))
def test_every_request_ends_in_an_episode_or_an_error(corpus, n, k, query_k, seed):
    for make in (
        lambda: FewNerdSampler(corpus, n, k, query_k),
        lambda: MinimumIncludingSampler(corpus, k, query_k),
    ):
        with suppress(EpisodeError):
            make().sample(random.Random(seed))


@pytest.mark.parametrize("make", [lambda c: FewNerdSampler(c, 2, 1), lambda c: MinimumIncludingSampler(c, 1, 3)])
def test_one_seed_gives_one_episode_and_another_seed_another(make):
    sampler = make(made_up(["a"], ["b"], ["a", "b"], copies=20))
    draws = [sampler.sample(random.Random(seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_sampling_leaves_the_global_generator_alone():
    sampler = FewNerdSampler(made_up(["a"], ["b"], copies=9), 2, 1)
    random.seed(5)
    before = random.getstate()
    sampler.sample(random.Random(0))
    assert random.getstate() == before


def test_every_candidate_is_drawn_equally_often():
    sampler = FewNerdSampler(made_up(["a"], copies=5), 1, 1)
    rng = random.Random(0)
    drawn = Counter(sampler.sample(rng).support.sentences[0].words for _ in range(5000))
    assert len(drawn) == 5
    assert all(850 < times < 1150 for times in drawn.values())  # more than five deviations around 1,000


def test_sentences_with_a_label_from_outside_the_episode_are_never_drawn():
    sampler = FewNerdSampler(made_up(["a"], ["b"], ["a", "c"], ["c"], copies=6), 2, 2)
    rng = random.Random(3)
    for _ in range(50):
        episode = sampler.sample(rng, labels=["b", "a"])
        assert episode.support.labels == ("a", "b")
        assert all(len(s.spans) == 1 for s in (*episode.support.sentences, *episode.query))


def test_a_sentence_that_would_pass_twice_k_is_not_drawn():
    corpus = made_up(["a"] * 3, ["a"], copies=8)
    rng = random.Random(0)
    for _ in range(50):
        episode = FewNerdSampler(corpus, 1, 1).sample(rng)
        assert [len(s.spans) for s in (*episode.support.sentences, *episode.query)] == [1, 1]


def test_the_query_may_be_larger_than_the_support():
    episode = FewNerdSampler(made_up(["a"], ["b"], copies=20), 2, 1, query_k=5).sample(random.Random(0))
    assert spans_of(episode.support.sentences) == {"a": 1, "b": 1}
    assert spans_of(episode.query) == {"a": 5, "b": 5}


def test_labels_that_are_too_rare_are_left_out_and_told_of():
    sampler = FewNerdSampler([*made_up(["a"], ["b"], copies=4), *made_up(["rare", "b"])], 2, 2)
    assert sampler.labels == ("a", "b")
    assert sampler.left_out == {"rare": 1}
    with pytest.raises(EpisodeError, match=r"'rare' has 1 usable spans; .* needs 4"):
        sampler.sample(random.Random(0), labels=["a", "rare"])


def test_too_few_labels_are_refused_at_once_with_the_counts():
    with pytest.raises(EpisodeError, match=r"need 2 labels with at least 4 spans .* found 1 such; 'b' has 3"):
        FewNerdSampler([*made_up(["a"], copies=4), *made_up(["b"], ["b"], ["b"])], 2, 2)


def test_labels_that_only_come_together_end_in_an_error_not_in_a_loop():
    sampler = FewNerdSampler(made_up(["a", "b"], copies=9), 1, 1)
    with pytest.raises(EpisodeError, match=r"needs 1 spans of '[ab]' for the support, and the last draw reached 0"):
        sampler.sample(random.Random(0))


def test_a_query_that_cannot_be_filled_is_named():
    sampler = FewNerdSampler([*made_up(["a", "a"]), *made_up(["b", "a"], copies=5)], 1, 1)
    with pytest.raises(EpisodeError, match="1 spans of 'a' for the query"):
        sampler.sample(random.Random(0), labels=["a"])


def test_minimum_including_refuses_a_label_with_too_few_spans():
    with pytest.raises(EpisodeError, match="label 'b' has 1 spans; a 2-shot support needs 2"):
        MinimumIncludingSampler([*made_up(["a"], copies=5), *made_up(["a", "b"])], 2, 1)


def test_minimum_including_refuses_a_query_that_is_too_large():
    with pytest.raises(EpisodeError, match="needs 5 sentences; 2 are left beside a support of 1"):
        MinimumIncludingSampler(made_up(["a"], copies=3), 1, 5).sample(random.Random(0))


def test_minimum_including_refuses_a_label_that_never_stands_alone():
    sampler = MinimumIncludingSampler(made_up(["a", "b"], copies=5), 1, 1)
    with pytest.raises(EpisodeError, match="'a' has 0 spans in sentences without labels from outside"):
        sampler.sample(random.Random(0), labels=["a"])


def test_minimum_including_says_which_domain_it_drew_from():
    sampler = MinimumIncludingSampler(made_up(["a"], [], copies=5), 1, 2, domain="GetWeather")
    assert sampler.sample(random.Random(0)).domain == "GetWeather"


def test_sentences_without_spans_are_no_support():
    with pytest.raises(EpisodeError, match="no sentence has a labelled span"):
        MinimumIncludingSampler(made_up([], copies=5), 1, 1)


@pytest.mark.parametrize(("n", "k", "query_k"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, -1, None)])
def test_sizes_below_one_are_refused(n, k, query_k):
    with pytest.raises(EpisodeError, match="must be at least 1; found"):
        FewNerdSampler(made_up(["a"], copies=9), n, k, query_k)
