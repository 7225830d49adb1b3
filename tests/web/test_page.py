"""The page: well-formed, alone, and not to be broken by what a capture says."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import asdict, replace

import pytest

from tests.web.pages import Page, empty, full
from zenwire.web.report import render
from zenwire.web.report.markup import foreign, h
from zenwire.web.report.model import Losses, Malformeds, MessageCount, Sessions, Top
from zenwire.web.report.verdict import verdict

HOSTILE = [
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "'><svg/onload=window.hacked=1>",
    "<!--<script>",
    "]]>&lt;b&gt;&amp;",
    "javascript:window.hacked=1",
    "a\u202eb\u200bc\x00\x1b[31m\u2028\ue000",
    "\ud800 lone",
    "{{7*7}}${7*7}`x`",
]


@pytest.mark.parametrize("text", ["demo/key", *HOSTILE])
def test_a_page_is_well_formed_and_has_one_script_and_one_style(text: str) -> None:
    html = render(full(text))
    html.encode("utf-8")
    page = Page(html)
    assert [attrs.get("type") for tag, attrs in page.elements if tag == "script"] == [
        "application/json",
        None,
    ]
    assert sum(tag == "style" for tag, _ in page.elements) == 1
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "iframe", "object", "embed", "base", "form", "link", "use", "image"}
    for _, attrs in page.elements:
        assert not [name for name in attrs if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_data_says_exactly_what_the_summary_says(text: str) -> None:
    summary = full(text)
    page = Page(render(summary))
    assert json.loads(page.scripts[0]) == json.loads(json.dumps(asdict(summary)))
    assert "<" not in page.scripts[0]


def test_nothing_is_loaded_from_anywhere() -> None:
    html = render(full("demo/key"))
    assert "://" not in html
    assert "@import" not in html
    assert "url(" not in html
    for _, attrs in Page(html).elements:
        assert "src" not in attrs
        assert (attrs.get("href") or "#").startswith("#")


def test_the_policy_allows_this_script_and_this_style_alone() -> None:
    page = Page(render(full("demo/key")))
    (policy,) = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for content in (page.scripts[1], page.styles[0]):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_links_lead_to_places_of_the_page_and_ids_are_unique() -> None:
    page = Page(render(full("demo/key")))
    assert len(page.ids) == len(set(page.ids))
    targets = {a["href"] for t, a in page.elements if t == "a"}
    assert targets <= {f"#{id_}" for id_ in page.ids}
    assert {"#loss-1", "#malformed-1"} <= targets


def test_what_is_cut_is_said_with_its_count() -> None:
    text = Page(render(full("demo/key"))).text
    for cut in ("999 more keys", "887 more sessions", "554 later ones", "443 later ones",
                "331 more lives", "221 more key expressions", "76 more key expressions",
                "6 more captures", "65 more sessions have losses"):  # fmt: skip
        assert cut in text, cut
    assert "(65,000 characters)" in text


def test_invisible_characters_are_shown_as_escapes() -> None:
    assert foreign("a\u202eb") == '<bdi class="key">a\\u{202e}b</bdi>'
    assert "\u202e" not in render(full("a\u202eb"))
    assert foreign("a b") == '<bdi class="key">a b</bdi>'
    assert foreign("é/日本") == '<bdi class="key">é/日本</bdi>'


def test_text_is_escaped_in_elements_and_attributes() -> None:
    assert h("p", "<b>&", title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;&amp;</p>'


def test_an_empty_capture_says_so_in_every_part() -> None:
    text = Page(render(empty())).text
    for told in ("No Zenoh traffic was found.", "No sessions in this capture.",
                 "No messages in this capture.", "No samples in this capture.",
                 "No queries in this capture.", "Nothing was lost:", "Everything decoded.",
                 "No liveliness tokens in this capture.",
                 "Nothing was declared in this capture."):  # fmt: skip
        assert told in text, told


def test_a_table_that_is_not_there_is_named() -> None:
    parts = ("captures", "messages", "sessions", "keys", "queries", "losses", "malformed",
             "tokens", "declarations", "declared")  # fmt: skip
    text = Page(render(empty(source="tables", **dict.fromkeys(parts)))).text
    for name in ("messages", "sessions", "queries", "losses", "malformed", "declarations"):
        assert f"The table {name} is not in this directory." in text


def test_the_faulty_byte_is_marked() -> None:
    html = render(full("demo/key"))
    # Byte 20 of the batch is the fifth of those that begin at 16.
    assert len(re.findall("<mark>", html)) == 1
    assert "<mark>72</mark>" in html


def test_the_verdict() -> None:
    counts = [MessageCount("network", "PUSH", "PUT", "samples", 9, 90)]
    sessions = Sessions(1, 2, Top([], 1), Top([], 1))
    whole, decoded = Losses({}, Top([], 0), Top([], 0)), Malformeds([], Top([], 0))
    assert verdict(counts, sessions, whole, decoded).level == "good"
    assert verdict([], None, whole, decoded).headline == "No Zenoh traffic was found"
    assert verdict(counts, sessions, None, decoded).level == "note"
    assert verdict(None, None, None, None).headline == "Whether something was lost is not known"
    sums = {"gaps": 3, "count": 120, "missing": 0, "skipped": 0}
    lost = replace(whole, by_kind={"sequence": sums})
    found = verdict(counts, sessions, lost, decoded)
    assert found.level == "bad"
    assert "3 gaps in sequence numbers: 120 frames missing" in found.points[0][0]


def test_gaps_that_are_no_losses_are_told_and_change_no_verdict() -> None:
    none = Losses({}, Top([], 0), Top([], 0), not_sent=2, not_sent_samples=40)
    counts = [MessageCount("network", "PUSH", "PUT", "samples", 9, 90)]
    assert verdict(counts, None, none, Malformeds([], Top([], 0))).level == "good"
    text = Page(render(empty(losses=none))).text
    assert "Nothing was lost:" in text
    assert "No losses: 2 gaps in publishers' numbers (40 samples) fell into times" in text
