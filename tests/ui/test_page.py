"""The page in a real browser: what users do with the mouse and the keyboard."""

import json
import threading

from spanshot.ui.project import read_history


def test_the_first_mark_leads_to_suggestions_and_corrections_count(serve, tab):
    served = serve()
    page = tab(served.url)
    page.label(1, "Oslo", "city")
    page.wait_for_tags(2, 2)  # Rome and Milan
    assert page.page.locator('[data-row="2"] .segment.suggested').count() == 2
    assert page.page.locator('[data-row="2"] .segment.marked').count() == 0

    page.click(2, "Rome")
    page.press("a")  # accepts, and goes on to the next suggestion
    page.wait_for(lambda: served.marks(2) == {("Rome", "city")})
    page.wait_for_tags(2, 1, "mark")
    served.settle()
    page.wait_for_tags(2, 1)  # a decision does not make the other suggestion vanish
    page.press("r")
    page.wait_for(lambda: len(served.text(2).rejected) == 1)
    served.settle()
    page.wait_for_tags(2, 0)

    page.press("u", "u")
    page.wait_for(lambda: not served.text(2).touched)
    page.press("Control+Shift+Z")
    page.wait_for(lambda: served.marks(2) == {("Rome", "city")})
    page.page.reload()
    page.wait_for_tags(2, 1, "mark")
    page.wait_for_tags(1, 1, "mark")
    page.press("Shift+U")
    page.wait_for(lambda: len(served.text(2).rejected) == 1)


def test_spans_are_marked_everywhere_resized_relabelled_and_deleted_with_the_mouse(serve, tab):
    served = serve()
    page = tab(served.url)
    page.label(3, "Nairobi", "city")
    page.press("m")
    page.wait_for(lambda: len(served.text(3).marks) == 2)
    page.page.wait_for_selector("text=Marked 1 more")

    page.drag(1, "Maria", "flies")  # snaps to whole words
    page.page.keyboard.type("person")
    page.press("Enter")
    page.wait_for(lambda: served.marks(1) == {("Maria flies", "person")})
    page.page.wait_for_selector('[data-row="1"] .handle.end')
    x, y = page.place(1, "Maria", "middle")
    handle = page.page.locator('[data-row="1"] .handle.end').bounding_box()
    page.page.mouse.move(handle["x"], handle["y"] + 5)
    page.page.mouse.down()
    page.page.mouse.move(x, y, steps=5)
    page.page.mouse.up()
    page.wait_for(lambda: served.marks(1) == {("Maria", "person")})

    page.press("1")  # the focused span takes the first label
    page.wait_for(lambda: served.marks(1) == {("Maria", "city")})
    page.page.hover('[data-row="1"] .tag.mark')
    page.page.click('[data-row="1"] .tag .delete')
    page.wait_for(lambda: served.marks(1) == set())


def test_everything_can_be_done_with_the_keyboard_alone(serve, tab):
    served = serve()
    page = tab(served.url)
    page.page.locator(".list").focus()
    page.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "Enter")  # the fourth word
    page.page.keyboard.type("city")
    page.press("Enter")
    page.wait_for(lambda: served.marks(1) == {("Oslo", "city")})
    page.press("Shift+ArrowRight", "Shift+ArrowRight")  # moves the end of the span
    page.wait_for(lambda: served.marks(1) == {("Oslo on Friday", "city")})
    page.press("Shift+Alt+ArrowRight")
    page.wait_for(lambda: served.marks(1) == {("on Friday", "city")})
    page.press("u", "u", "u")
    page.wait_for(lambda: served.marks(1) == {("Oslo", "city")})
    served.settle()

    page.press("d", "ArrowDown")
    page.wait_for(lambda: served.text(1).reviewed is not None)
    page.page.wait_for_selector('[data-row="2"].current')
    served.settle()
    page.page.wait_for_selector('[data-row="2"] .tag.suggestion')
    page.press(" ")  # accepts the text and goes on
    page.wait_for(lambda: served.text(2).reviewed is not None)
    assert set() < served.marks(2) <= {("Rome", "city"), ("Milan", "city")}  # those shown when the key was pressed
    page.page.wait_for_selector('[data-row="3"].current')
    page.press("Escape", "ArrowRight", "ArrowRight", "ArrowRight", "Shift+ArrowRight")
    page.page.keyboard.type("guest")
    page.press("Enter")
    page.wait_for(lambda: ("Ahmed in", "guest") in served.marks(3))
    page.page.wait_for_selector('[data-row="3"] .tag.mark[data-label=guest]')
    page.press("Tab", "Shift+Tab", "Delete")  # to a suggestion and back to the new mark
    page.wait_for(lambda: ("Ahmed in", "guest") not in served.marks(3))
    assert page.focused() == "list"
    served.settle()
    page.press("n")
    page.page.wait_for_selector(".row.current:not([data-row='3'])")
    page.press("?")
    page.page.wait_for_selector("dialog >> text=Accept the whole text")
    page.press("Escape")
    page.page.wait_for_selector("dialog", state="hidden")
    page.press("/")
    page.page.keyboard.type("ferry")
    page.page.wait_for_selector("text=1 text found")


def test_keys_stay_with_a_text_whose_suggestions_vanish(serve, tab):
    served = serve()
    page = tab(served.url)
    page.label(1, "Oslo", "city")
    served.settle()
    page.wait_for_tags(2, 2)
    page.page.locator(".list").focus()
    page.press("ArrowDown")
    page.page.wait_for_selector('[data-row="2"] .tag.suggestion.focused')
    served.session.act(lambda project: project.set_label("city", threshold=0.98))
    page.wait_for_tags(2, 0)
    page.press("Tab")  # meant the second suggestion
    assert page.focused() == "list"
    page.press(" ")  # reviews the text instead of pressing a button
    page.wait_for(lambda: served.text(2).reviewed is not None)
    page.page.wait_for_selector('[data-row="3"].current')

    served.session.act(lambda project: project.set_label("city", threshold=None))
    served.settle()
    page.page.wait_for_selector('[data-row="3"] .tag.suggestion')
    page.press("Tab")
    page.page.wait_for_selector('[data-row="3"] .tag.suggestion.focused')
    for _ in served.session.suggested(3):
        page.press("Tab")
    assert page.focused() != "list"  # nothing has changed, so the key leaves the text


def test_labels_have_thresholds_results_and_reasons(serve, tab):
    served = serve()
    page = tab(served.url)
    page.label(1, "Oslo", "city")
    page.label(3, "Nairobi", "city")
    served.settle()
    page.wait_for_tags(2, 2)
    page.press("Escape")
    page.page.click("[aria-label='Settings of city']")
    slider = page.page.locator(".slider input")
    slider.focus()
    slider.press("End")  # the highest threshold
    page.wait_for_tags(2, 0)
    page.wait_for(lambda: served.session.project.state.labels["city"].threshold == 0.98)
    page.page.click("text=Use the default")
    page.wait_for_tags(2, 2)
    page.page.wait_for_selector("text=Leave-one-out on 2 spans")
    page.page.mouse.move(*page.place(2, "Rome"))
    page.page.wait_for_selector(".why >> text=like Oslo")
    page.page.click(".why button >> nth=0")
    page.page.wait_for_selector('[data-row="1"].current, [data-row="3"].current')
    page.page.click("text=Show its texts")
    page.page.wait_for_selector(".filters .chip >> text=city")
    page.wait_for(lambda: page.page.locator('[data-row="5"]').count() == 0)


def test_fine_tuning_shows_its_progress_and_changes_the_suggestions(serve, tab, model, monkeypatch):
    half, go = threading.Event(), threading.Event()
    supports = []

    def finetuned(support, progress):
        supports.append(support)
        progress(1, 2)
        half.set()
        assert go.wait(30)
        progress(2, 2)
        return model.method

    monkeypatch.setattr(model.method, "finetuned", finetuned)
    served = serve()
    page = tab(served.url)
    page.label(1, "Oslo", "city")
    page.wait_for_tags(2, 2)
    page.press("Escape")
    page.page.click("text=Fine-tune")
    assert half.wait(30)
    page.page.wait_for_selector(".finetune:disabled >> text=Fine-tuning: 50 %")
    assert page.page.locator(".model .bar i").evaluate("bar => bar.style.width") == "50%"
    page.click(3, "Nairobi")
    page.press("a")  # annotation goes on meanwhile
    page.wait_for(lambda: served.marks(3) == {("Nairobi", "city")})
    go.set()
    page.page.wait_for_selector(".model >> text=Suggestions come from the fine-tuned model")
    page.page.wait_for_selector(".finetune:enabled >> text=Fine-tune again")
    served.settle()
    page.wait_for_tags(2, 2)
    assert [len(support.sentences) for support in supports] == [1]
    assert served.session.learn().tuned is model.method


def test_two_tabs_show_the_same(serve, tab):
    served = serve()
    first, second = tab(served.url), tab(served.url)
    first.label(1, "Oslo", "city")
    second.wait_for_tags(1, 1, "mark")
    second.wait_for_tags(2, 2)
    second.click(1, "Maria")
    second.page.keyboard.type("person")
    second.press("Enter")
    first.wait_for_tags(1, 2, "mark")
    first.press("Escape", "u")  # one history for all tabs
    second.wait_for_tags(1, 1, "mark")
    assert served.marks(1) == {("Oslo", "city")}


def test_annotations_are_exported_and_commands_copied(serve, tab):
    served = serve()
    page = tab(served.url, permissions=["clipboard-read", "clipboard-write"])
    page.label(1, "Oslo", "city")
    page.press("Escape", "e")
    page.page.wait_for_selector("[aria-label='Copy the shell command']")  # the dialog has its full height
    with page.page.expect_download() as download:
        page.page.click("dialog >> text=JSON lines")
    record = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert download.value.suggested_filename == "trips.jsonl"
    assert record["entities"] == [{"start": 15, "end": 19, "label": "city"}]
    page.page.click("[aria-label='Copy the shell command']")
    copied = page.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("spanshot learn --examples")
    page.page.click("dialog >> text=Save tagger")
    page.page.wait_for_selector("dialog >> text=Saved in")
    assert (served.path.parent / "trips-tagger").is_dir()


def test_a_first_run_starts_with_an_example_or_pasted_text(serve, tab):
    served = serve([])
    page = tab(served.url)
    page.page.click("text=Try it with a small example")
    page.page.wait_for_selector('[data-row="1"] .segment')
    assert len(served.session.project.state.texts) == 10
    page.press("i")
    page.page.fill("dialog textarea", "[Bergen](city) is wet\nso is Seattle")
    page.page.click("dialog >> text=Add text >> nth=-1")
    page.wait_for(lambda: len(served.session.project.state.texts) == 12)
    page.page.wait_for_selector('[data-row="11"] .tag.mark')


def test_the_page_works_at_phone_width_by_touch(serve, tab):
    served = serve()
    page = tab(served.url, viewport={"width": 390, "height": 760}, has_touch=True, is_mobile=True)
    page.page.touchscreen.tap(*page.place(1, "Oslo"))
    page.page.fill(".popover input", "city")
    page.page.locator(".popover .chip").tap()
    page.wait_for(lambda: served.marks(1) == {("Oslo", "city")})
    page.wait_for_tags(2, 2)
    page.page.touchscreen.tap(*page.place(2, "Rome"))
    page.page.locator(".popover >> text=Accept").tap()
    page.wait_for(lambda: served.marks(2) == {("Rome", "city")})
    page.page.locator("[aria-label=Labels].menu").tap()
    page.page.wait_for_selector(".panel >> text=city")
    width = page.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


def test_emoji_and_right_to_left_text_keep_their_offsets(serve, tab):
    served = serve(["🎉👩‍👩‍👧 Kofi in Lima 🇵🇪 now", "גרנו ברומא היום", "👍 سافرت إلى عمان أمس"])
    page = tab(served.url)
    page.label(1, "Lima", "city")
    page.wait_for(lambda: served.marks(1) == {("Lima", "city")})
    assert page.page.locator('[data-row="1"] .segment.marked').inner_text() == "Lima"
    page.label(2, "ברומא", "city")
    page.wait_for(lambda: served.marks(2) == {("ברומא", "city")})
    page.press("Shift+ArrowLeft")  # the end of a span is on the left
    page.wait_for(lambda: served.marks(2) == {("ברומא היום", "city")})
    assert read_history(served.path).state.texts[1].text.startswith("🎉")


def test_ten_thousand_texts_are_shown_with_few_rows(serve, tab):
    served = serve([f"Text number {number} of many." for number in range(1, 10_001)])
    page = tab(served.url)
    assert page.page.locator(".row").count() < 60
    page.page.evaluate("document.querySelector('.list').scrollTop = 1e9")
    page.page.wait_for_selector("text=Text number 10000 of many")
    assert page.page.locator(".row").count() < 60
    page.press("PageUp")
    page.page.fill("#search", "number 7777 ")
    page.page.wait_for_selector('[data-row="7777"]')


def test_keys_lead_to_a_text_behind_many_long_ones(serve, tab):
    served = serve([f"Text {number}: " + "more words in a long line " * 40 for number in range(1, 61)])
    page = tab(served.url)
    page.page.locator(".list").focus()
    page.press(*["j"] * 39)
    row = page.page.locator('[data-row="40"].current')
    row.wait_for()
    page.page.wait_for_function(
        "() => { const box = document.querySelector('.row.current')?.getBoundingClientRect();"  # it may be drawn anew
        " return box && box.top > 0 && box.bottom < innerHeight; }"
    )


def test_hostile_texts_labels_and_file_names_do_not_run(serve, tab):
    attack = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
    texts = [
        f"x {attack} y",
        "{{constructor.constructor('window.hit=1')()}} `${window.hit=1}`",
        "\u202ereversed\u202c end",
    ]
    served = serve(texts, name="<b>;$(x)'.spanshot.jsonl")
    page = tab(served.url)
    page.label(1, "y", '"><script>window.hit=1</script>')
    page.label(3, "end", "javascript:window.hit=1")
    served.settle()
    page.press("Escape", "e")
    page.page.wait_for_selector("dialog pre")
    page.press("Escape", "?", "Escape")
    page.page.reload()
    page.wait_for_tags(1, 1, "mark")
    assert page.page.evaluate("window.hit") is None
    assert page.page.locator('[data-row="1"] .text img').count() == 0
    assert page.page.locator('[data-row="1"] .tag.mark').inner_text().startswith('"><script>')


def test_overlapping_spans_have_lines_of_their_own(serve, tab):
    served = serve()
    page = tab(served.url)
    page.drag(1, "flies", "Friday")
    page.page.keyboard.type("trip")
    page.press("Enter")
    page.wait_for_tags(1, 1, "mark")
    page.press("Escape")
    page.drag(1, "Oslo", "Oslo")
    page.page.keyboard.type("city")
    page.press("Enter")
    page.wait_for_tags(1, 2, "mark")
    lines = page.page.locator('[data-row="1"] .segment.marked >> text="Oslo"').evaluate("e => e.style.backgroundImage")
    assert lines.count("linear-gradient") == 2
    assert len(served.marks(1)) == 2
