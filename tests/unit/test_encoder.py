from __future__ import annotations

import json
import re

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from spanshot.engine.pieces import MAX_PIECES_PER_WORD, Pieces
from spanshot.errors import ConfigError
from spanshot.research.nn.architectures import build_transformer, describe_transformer
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.pretrained import load_pretrained, set_dropout
from spanshot.types import Sentence
from spanshot.words import batches
from strategies_sentences import words as any_words
from tiny import write_tiny_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module", params=["torch", "oneDNN"])
def encoder(folder, request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spanshot.research.nn.onednn._is_faster", lambda: request.param == "oneDNN")
        yield load_pretrained(str(folder)).eval()


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # the variable is read only once


@torch.no_grad()
def encode(encoder: Encoder, *sentences: str | Sentence) -> WordVectors:
    return encoder([Sentence(tuple(s.split())) if isinstance(s, str) else s for s in sentences])


def ids_of(encoder: Encoder, *pieces: str) -> list[int]:
    return [encoder.pieces.tokenizer.token_to_id(piece) for piece in pieces]


@torch.no_grad()
def hidden(encoder: Encoder, *pieces: str) -> torch.Tensor:
    """What the transformer itself says of the pieces, read alone. [pieces, size]"""
    ids = torch.tensor([ids_of(encoder, *pieces)])
    return encoder.transformer(input_ids=ids).last_hidden_state[0]


def close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    return found.shape == wanted.shape and torch.allclose(found, wanted, atol=1e-5)


# Words and pieces


def test_a_words_vectors_are_those_of_its_first_and_its_last_piece(encoder):
    found = encode(encoder, "Oslo soupx rome")
    wanted = hidden(encoder, "[CLS]", "oslo", "soup", "##x", "rome", "[SEP]")
    assert close(found.first, wanted[[1, 2, 4]])
    assert close(found.last, wanted[[1, 3, 4]])
    assert found.lengths == (3,)


def test_sentences_stand_one_after_another_in_the_order_given(encoder):
    found = encode(encoder, "rome", "soupx in oslo", "ada")
    parts = [encode(encoder, text) for text in ("rome", "soupx in oslo", "ada")]
    assert found.lengths == (1, 3, 1)
    assert close(found.first, torch.cat([part.first for part in parts]))
    assert close(found.last, torch.cat([part.last for part in parts]))


def test_vectors_split_after_so_many_sentences(encoder):
    whole = encode(encoder, "rome", "soupx in oslo", "ada")
    before, after = whole.split(2)
    assert (before.lengths, after.lengths) == ((1, 3), (1,))
    assert torch.equal(torch.cat([before.first, after.first]), whole.first)
    assert torch.equal(torch.cat([before.last, after.last]), whole.last)
    assert len(before.first) == len(before.last) == 4


@pytest.mark.parametrize("odd", ["\x00", "\u200b", "\x07\x08", "", " ", "\ufffd", "\u0301", chr(0xD800)])
def test_a_word_without_a_piece_is_the_unknown_piece(encoder, odd):
    found = encode(encoder, Sentence(("rome", odd, "ada")))
    wanted = hidden(encoder, "[CLS]", "rome", "[UNK]", "ada", "[SEP]")
    assert close(found.first, wanted[1:4])
    assert close(found.last, wanted[1:4])


def test_words_are_cut_one_by_one_so_that_a_neighbour_changes_no_piece(encoder):
    rows = encoder.pieces.rows([("new", "##york", "a-b", "x y")])
    assert rows[0].words == (0, 1, 2, 3)
    alone = [encoder.pieces.rows([(word,)])[0].ids[1:-1] for word in ("new", "##york", "a-b", "x y")]
    assert rows[0].ids[1:-1] == sum(alone, ())


def test_of_an_endless_word_the_last_piece_is_kept(encoder):
    wide = Pieces(encoder.pieces.tokenizer, 512, "[UNK]", 0)
    row = wide.rows([("a-" * 80 + "z", "b")])[0]
    assert row.last[0] - row.first[0] + 1 == MAX_PIECES_PER_WORD
    assert row.ids[row.last[0]] == ids_of(encoder, "z")[0]
    assert row.ids[row.first[1]] == ids_of(encoder, "b")[0]


@given(st.lists(st.lists(any_words, min_size=1, max_size=12), min_size=1, max_size=3))
def test_whatever_the_words_each_has_its_own_pieces_in_order(encoder, sentences):
    rows = encoder.pieces.rows(sentences)
    for number, words in enumerate(sentences):
        own = [row for row in rows if row.sentence == number]
        assert [word for row in own for word in row.words] == list(range(len(words)))
        for row in own:
            assert len(row.words) == len(row.first) == len(row.last)
            assert all(0 < a <= b < len(row.ids) - 1 for a, b in zip(row.first, row.last, strict=True))
            assert all(b < a for b, a in zip(row.last, row.first[1:], strict=False))


# Windows


def letters_only(longest: int, *more: str) -> Pieces:
    """A tokenizer that has a piece for every letter, and one each before and after a sentence."""
    vocabulary = {piece: number for number, piece in enumerate(["[UNK]", "<", ">", *"abcdefgh", *more])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.post_processor = processors.BertProcessing((">", 2), ("<", 1))
    return Pieces(tokenizer, longest, "[UNK]", 0)


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=60), st.integers(4, 20))
def test_windows_cover_every_word_exactly_once_and_never_exceed_the_room(words, longest):
    pieces = letters_only(longest)
    rows = pieces.rows([words])
    assert [word for row in rows for word in row.words] == list(range(len(words)))
    for row in rows:
        assert len(row.ids) <= longest
        assert (row.ids[0], row.ids[-1]) == (1, 2)
        for word, first, last in zip(row.words, row.first, row.last, strict=True):
            assert pieces.tokenizer.id_to_token(row.ids[first]) == words[word][0]
            assert pieces.tokenizer.id_to_token(row.ids[last]) == words[word][-1]
            if len(words[word]) <= longest - 2:
                assert row.ids[first : last + 1] == tuple(3 + "abcdefgh".index(letter) for letter in words[word])


@given(st.integers(1, 200), st.integers(6, 40))
def test_a_word_away_from_the_ends_sees_words_on_both_its_sides(count, longest):
    room = longest - 2
    for row in letters_only(longest).rows([["a"] * count]):
        for word, first in zip(row.words, row.first, strict=True):
            before, after = first - 1, len(row.ids) - 2 - first
            assert before >= min(word, room // 4 - 1)
            assert after >= min(count - 1 - word, room // 4 - 1)


def test_a_sentence_that_just_fits_is_read_at_once_and_one_word_more_is_not():
    pieces = letters_only(10)
    assert len(pieces.rows([["a"] * 8])) == 1
    assert len(pieces.rows([["a"] * 9])) == 2


def test_the_words_of_a_long_sentence_keep_their_places(encoder):
    words = ["rome", "ada", "soupx", "lima", "in"] * 40
    found = encode(encoder, Sentence(tuple(words)), "ada")
    assert found.lengths == (200, 1)
    assert len(found.first) == len(found.last) == 201
    assert close(found.first[:10], encode(encoder, " ".join(_window(encoder, words, first=True))).first[:10])
    assert close(found.first[190:200], encode(encoder, " ".join(_window(encoder, words, first=False))).first[-10:])
    assert close(found.first[200:], encode(encoder, "ada").first)


def _window(encoder: Encoder, words: list[str], *, first: bool) -> list[str]:
    """The words of the first or last window: as many as fit from the front, or from where the last one starts."""
    rows = encoder.pieces.rows([words])
    one = encoder.pieces.rows([[word] for word in words])
    sizes = [len(row.ids) - 2 for row in one]
    left, chosen = len(rows[0 if first else -1].ids) - 2, []
    for word, size in zip(words, sizes, strict=True) if first else zip(words[::-1], sizes[::-1], strict=True):
        if size > left:
            break
        left -= size
        chosen.append(word)
    return chosen if first else chosen[::-1]


# Reading in groups


def test_grouping_by_length_changes_no_vector(encoder, monkeypatch):
    texts = ["ada", "rome is not soup", "we saw " * 9, "oslo", "nobody knows why " * 6, "a b c d e f g h"]
    together = encode(encoder, *texts)
    alone = [encode(encoder, text) for text in texts]
    assert close(together.first, torch.cat([one.first for one in alone]))
    monkeypatch.setattr(encoder, "max_batch_pieces", 30)
    apart = encode(encoder, *texts)
    assert close(together.first, apart.first)
    assert close(together.last, apart.last)


@given(st.permutations(range(5)))
def test_the_order_of_sentences_changes_no_vector(encoder, order):
    texts = ["ada", "rome is not soup", "we saw ada and rome", "oslo today", "x y z"]
    straight = encode(encoder, *texts).first.split([len(text.split()) for text in texts])
    turned = encode(encoder, *(texts[i] for i in order)).first
    assert close(turned, torch.cat([straight[i] for i in order]))


@given(st.lists(st.integers(1, 100), min_size=1), st.integers(1, 500))
def test_batches_hold_every_row_once_and_no_more_than_allowed_unless_one_row_alone_does(lengths, allowed):
    groups = list(batches(lengths, allowed))
    assert sorted(number for group in groups for number in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[number] for number in group) <= allowed


@given(st.lists(st.integers(1, 30), min_size=1), st.integers(1, 100))
def test_batches_of_vectors_are_those_of_their_sentences(lengths, allowed):
    place = torch.arange(sum(lengths)).unsqueeze(1).float()
    apart = place.split(lengths)
    for numbers, own in WordVectors(place, -place, tuple(lengths)).batches(allowed):
        assert own.lengths == tuple(lengths[number] for number in numbers)
        assert torch.equal(own.first, torch.cat([apart[number] for number in numbers]))
        assert torch.equal(own.last, -own.first)


# Dropout and frozen weights


@pytest.mark.parametrize(
    ("hidden_rate", "attention_rate", "same"), [(0.0, 0.0, True), (0.5, 0.0, False), (0.0, 0.5, False)]
)
def test_dropout_is_what_it_is_set_to(folder, hidden_rate, attention_rate, same):
    own = load_pretrained(str(folder)).train()
    set_dropout(own, hidden_rate, attention_rate)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        once, again = encode(own, "rome is not soup"), encode(own, "rome is not soup")
    assert torch.equal(once.first, again.first) is same
    quiet = own.eval()
    assert torch.equal(encode(quiet, "rome is not soup").first, encode(quiet, "rome is not soup").first)


def test_a_hidden_word_is_masked_whole_and_only_while_training(folder):
    own = load_pretrained(str(folder))
    set_dropout(own, 0.0, 0.0, words=1.0 - 1e-9)
    found = encode(own.train(), "Oslo soupx rome")
    wanted = hidden(own, "[CLS]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "[SEP]")  # which it has in place of a mask
    assert close(found.first, wanted[[1, 2, 4]])
    assert close(found.last, wanted[[1, 3, 4]])
    assert close(
        encode(own.eval(), "Oslo soupx rome").first,
        encode(load_pretrained(str(folder)).eval(), "Oslo soupx rome").first,
    )


@pytest.mark.parametrize("packed", [True, False])
def test_words_are_hidden_at_the_rate_asked_for_and_nothing_else_is_touched(folder, monkeypatch, packed):
    own = load_pretrained(str(folder)).train()
    set_dropout(own, 0.0, 0.0, words=0.25)
    monkeypatch.setattr("spanshot.research.nn.encoder.can_be_packed", lambda _: packed)
    seen = []
    embeddings = own.transformer.embeddings.word_embeddings
    embeddings.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torch.manual_seed(0)
    encode(own, *["rome soupx ada in oslo"] * 300, *["rome soupx in"] * 100)
    masked = sum(int((ids == own.pieces.mask_id).sum()) for ids in seen)
    assert 0.2 < masked / (300 * 6 + 100 * 4) < 0.3
    starts, ends = ids_of(own, "[CLS]", "[SEP]")
    assert sum(int((ids == starts).sum()) for ids in seen) == sum(int((ids == ends).sum()) for ids in seen) == 400
    for ids in seen:
        soup, x = (ids == own.pieces.tokenizer.token_to_id(piece) for piece in ("soup", "##x"))
        assert torch.equal(soup[..., :-1], x[..., 1:])  # a word's pieces are hidden together


@torch.no_grad()
@pytest.mark.usefixtures("without_onednn")
def test_training_without_padding_gives_the_vectors_of_tagging(folder):
    own = load_pretrained(str(folder))
    set_dropout(own, 0.0, 0.0)
    sentences = [Sentence(tuple(text.split())) for text in ("oslo rome lima in soupx", "x", " ".join(["ada"] * 90))]
    pairs = list(zip(sentences, sentences[::-1], strict=True))
    trained = [own.train()(sentences), own.pairs(pairs), own.pairs(pairs, segment_ids=False)]
    tagged = [own.eval()(sentences), own.pairs(pairs), own.pairs(pairs, segment_ids=False)]
    for training, tagging in zip(trained, tagged, strict=True):
        assert training.lengths == tagging.lengths
        assert close(training.first, tagging.first)
        assert close(training.last, tagging.last)


@pytest.mark.parametrize(("names", "wanted"), [((), 0), (("[MASK]",), 11), (("<mask>",), 11)])
def test_words_are_hidden_by_the_mask_piece_or_else_by_the_unknown_one(names, wanted):
    assert letters_only(9, *names).mask_id == wanted


def test_frozen_embeddings_are_those_of_the_pieces_only(folder):
    own = load_pretrained(str(folder), freeze_embeddings=True)
    frozen = [name for name, weight in own.named_parameters() if not weight.requires_grad]
    assert frozen == ["transformer.embeddings.word_embeddings.weight"]
    assert all(weight.requires_grad for weight in load_pretrained(str(folder)).parameters())


# Loading


def test_an_encoder_saved_with_a_pooler_loads_without_a_word_and_without_the_pooler(folder, tmp_path, capfd):
    config = transformers.BertConfig.from_pretrained(folder)
    transformers.BertModel(config, add_pooling_layer=True).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    capfd.readouterr()
    own = load_pretrained(str(tmp_path))
    assert capfd.readouterr() == ("", "")
    assert not [name for name, _ in own.named_parameters() if "pooler" in name]


def test_an_encoder_saved_for_a_task_loads_without_a_word(folder, tmp_path, capfd):
    config = transformers.BertConfig.from_pretrained(folder)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    capfd.readouterr()
    load_pretrained(str(tmp_path))
    assert capfd.readouterr() == ("", "")


def test_loading_leaves_the_verbosity_of_transformers_as_it_was(folder):
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_info()
    try:
        load_pretrained(str(folder))
        assert transformers.logging.get_verbosity() == transformers.logging.INFO
    finally:
        transformers.logging.set_verbosity(before)


@pytest.mark.parametrize("name", ["no/such/folder", "nobody/has-this-encoder", "no-such-encoder"])
def test_a_missing_encoder_is_named_with_what_to_give_instead(name):
    with pytest.raises(ConfigError) as error:
        load_pretrained(name)
    message = str(error.value)
    assert repr(name) in message
    for part in ("minilm", "config.json", "model.safetensors", "tokenizer.json", "hub id"):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize("lost", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_refused_with_the_list_of_files(tmp_path, lost):
    write_tiny_encoder(tmp_path)
    (tmp_path / lost).unlink()
    with pytest.raises(ConfigError, match=r"config\.json, model\.safetensors and tokenizer\.json"):
        load_pretrained(str(tmp_path))


@pytest.mark.parametrize("damaged", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_with_a_damaged_file_is_refused_and_not_crashed_on(tmp_path, damaged):
    write_tiny_encoder(tmp_path)
    whole = (tmp_path / damaged).read_bytes()
    (tmp_path / damaged).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match=re.escape(str(tmp_path / damaged))):
        load_pretrained(str(tmp_path))


def test_a_described_encoder_is_rebuilt_and_reads_the_same(encoder, folder):
    described = describe_transformer(encoder.transformer)
    again = Encoder(build_transformer(described), encoder.pieces).eval()
    again.load_state_dict(encoder.state_dict())
    text = "rome soupx \x00 " + "ada in oslo " * 40
    assert torch.equal(encode(again, text).first, encode(encoder, text).first)
    assert torch.equal(encode(again, text).last, encode(encoder, text).last)
    assert describe_transformer(again.transformer) == described
    assert str(folder) not in json.dumps(described)


# Pairs


@torch.no_grad()
def test_a_pair_is_read_as_the_tokenizer_frames_pairs(encoder):
    pieces = encoder.pieces
    (row,) = pieces.rows([["oslo", "rome", "lima"]], breaks=[1])
    framed = pieces.tokenizer.encode(["oslo"], ["rome", "lima"], is_pretokenized=True).ids
    assert list(row.ids) == framed
    assert row.words == (0, 1, 2)
    assert [row.ids[at] for at in row.first] == [pieces.tokenizer.token_to_id(w) for w in ("oslo", "rome", "lima")]


@torch.no_grad()
@pytest.mark.usefixtures("without_onednn")
def test_the_second_sentence_of_a_pair_has_segment_id_one_as_the_tokenizer_says(folder):
    encoder = load_pretrained(str(folder)).eval()
    given = {}
    handle = encoder.transformer.register_forward_pre_hook(lambda _, __, own: given.update(own), with_kwargs=True)
    try:
        pairs = [
            (Sentence(("oslo",)), Sentence(("rome", "lima"))),
            (Sentence(("oslo", "oslo", "x")), Sentence(("rome",))),
        ]
        marked = encoder.pairs(pairs)
        ids = given.pop("token_type_ids").tolist()
        encoder.pairs(pairs, segment_ids=False)
        encoder([first for first, _ in pairs])
    finally:
        handle.remove()
    assert "token_type_ids" not in given
    frame = encoder.pieces.tokenizer.encode
    wanted = [frame(list(a.words), list(b.words), is_pretokenized=True).type_ids for a, b in pairs]
    width = max(map(len, wanted))
    assert sorted(ids) == sorted(own + [0] * (width - len(own)) for own in wanted)
    assert (marked.first - encoder.pairs(pairs, segment_ids=False).first).abs().max() > 1e-4


@torch.no_grad()
def test_windows_of_a_long_pair_have_segment_id_one_from_the_second_sentence_on(encoder):
    rows = encoder.pieces.rows([["oslo"] * 90 + ["rome"] * 90], breaks=[90])
    assert len(rows) > 2
    separator, rome = ids_of(encoder, "[SEP]", "rome")
    for row in rows:
        own = row.ids[row.second :]
        assert set(own) <= {rome, separator}
        assert rome not in row.ids[: row.second]
    assert {row.second == len(row.ids) for row in rows} == {True, False}


@torch.no_grad()
def test_an_encoder_without_segment_embeddings_reads_pairs_all_the_same(encoder):
    encoder.segments, segments = 1, encoder.segments
    pair = (Sentence(("oslo",)), Sentence(("rome",)))
    try:
        found = encoder.pairs([pair]).first
    finally:
        encoder.segments = segments
    assert close(found, encoder.pairs([pair], segment_ids=False).first)


@torch.no_grad()
def test_what_a_sentence_is_paired_with_changes_its_vectors_and_what_else_is_read_does_not(encoder):
    first, second, other = Sentence(("we", "saw", "Oslo")), Sentence(("Rome", "again")), Sentence(("x",) * 30)
    alone = encoder.pairs([(first, second)])
    among = encoder.pairs([(other, other), (first, second), (second, first)])
    assert alone.lengths == (5,)
    assert among.lengths == (60, 5, 5)
    torch.testing.assert_close(among.first[60:65], alone.first, atol=1e-5, rtol=1e-5)
    apart = encoder([first, second]).first
    assert (apart - alone.first).abs().max() > 1e-3


@torch.no_grad()
def test_a_pair_too_long_to_be_read_at_once_is_not_cut(encoder):
    long = Sentence(("Oslo", "again") * 60)
    words = encoder.pairs([(long, long)])
    assert words.lengths == (240,)
    assert torch.isfinite(words.first).all()
