"""The plugin in a real kernel."""

from __future__ import annotations

from toolkeel.testing import check_plugin, kernel_with

from toolkeel_glossary.plugin import Glossary

TERMS = {"plugins": {"glossary": {"terms": {"keel": "what everything else is bolted to"}}}}


async def test_a_known_word_is_explained_whatever_its_case() -> None:
    async with kernel_with(Glossary, settings=TERMS) as kit:
        answer = await kit.call("glossary_lookup", term="Keel")
        assert answer.text == "what everything else is bolted to"


async def test_a_misspelt_word_gets_the_nearest_ones() -> None:
    async with kernel_with(Glossary, settings=TERMS) as kit:
        answer = await kit.call("glossary_lookup", term="keal")
        assert answer.status == "failed"
        assert "Near it are: keel" in answer.text


async def test_without_terms_there_is_no_tool_to_distract_a_model() -> None:
    async with kernel_with(Glossary) as kit:
        assert kit.offer.tools == ()


async def test_it_keeps_what_every_plugin_promises() -> None:
    assert await check_plugin(Glossary, settings=TERMS) == []
