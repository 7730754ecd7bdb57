"""The tool that looks words of the house up."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from toolkeel import Tool, ToolError, tool


def lookup_tool(terms: Mapping[str, str]) -> Tool:
    """Make the tool for one set of terms."""

    @tool(effect="read", inline=True)
    def glossary_lookup(term: str) -> str:
        """Look up what a word of this company means. Use it before explaining a word that is not common English.

        Args:
            term: the word, as it was written.
        """
        known = {name.casefold(): meaning for name, meaning in terms.items()}
        meaning = known.get(term.casefold())
        if meaning is None:
            near = difflib.get_close_matches(term.casefold(), known, n=3)
            remedy = f"Near it are: {', '.join(near)}" if near else "Ask the person what it means"
            raise ToolError(f"the glossary has no {term!r}", remedy=remedy)
        return meaning

    return glossary_lookup
