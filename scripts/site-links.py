"""For MkDocs (mkdocs.yml): a link to a file outside docs becomes its text and the place of the file."""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """What MkDocs makes the page of."""
    folder = posixpath.dirname(page.file.src_uri)

    def instead(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(folder, link[2]))
        if not place.startswith("../"):
            return link[0]
        place = place.removeprefix("../")
        return f"`{place}`" if link[1].strip("`") == place else f"{link[1]} (`{place}`)"

    return LINK.sub(instead, markdown)
