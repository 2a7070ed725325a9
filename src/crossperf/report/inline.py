"""Drawings as part of a page: one SVG that follows the page's colours and keeps its names to itself."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_REFERRED_TO = re.compile(r"""(?:href=["']|url\()#([^"')]+)""")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_FONT = re.compile(r"\s*font-family:[^;]*;?")  # the page has fonts of its own
_UNTURNED = re.compile(r"rotate\(-?0 [^)]*\)")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")

ET.register_namespace("", _SVG)
ET.register_namespace("xlink", _XLINK)


def inline(svg: str, prefix: str, inks: Mapping[str, str], keep: tuple[str, ...] = ()) -> str:
    """Return a drawing to be put into a page.

    Parameters
    ----------
    prefix
        Goes before every id, so that drawings on one page never refer to each other's parts.
    inks
        Neutral colours (``#rrggbb``) and what stands for each on the page, such as ``var(--ink)``.
    keep
        How the ids begin that the page's script looks for; others go unless the drawing itself refers to them.

    >>> inline('<svg width="9" viewBox="0 0 9 9"><g id="a"><path style="stroke: #262626"/></g></svg>', "f-",
    ...        {"#262626": "var(--ink)"})
    '<svg viewBox="0 0 9 9"><g><path style="stroke: var(--ink)" /></g></svg>'
    """
    # The text comes from our own drawing a moment ago, never from a file.
    root = ET.fromstring(svg)  # noqa: S314
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    for parent in list(root.iter()):  # the drawing's date and maker, and rules that would reach the whole page
        for child in [*parent.findall(f"{{{_SVG}}}metadata"), *parent.findall(f"{{{_SVG}}}style")]:
            parent.remove(child)
    referred_to = set(_REFERRED_TO.findall(svg))
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            unused = name == "id" and value not in referred_to and not value.startswith(keep)
            if unused or (name == "transform" and _UNTURNED.fullmatch(value)):
                del element.attrib[name]
            else:
                element.set(name, _rewritten(name, value, prefix, inks))
    _tidy(root)
    return ET.tostring(root, encoding="unicode")


def _tidy(element: ET.Element) -> None:
    """Take out blank text between elements, and groups that hold nothing."""
    for child in list(element):
        _tidy(child)
        if child.tag == f"{{{_SVG}}}g" and not len(child) and not child.attrib:
            element.remove(child)
        elif not (child.tail or "").strip():
            child.tail = None
    if len(element) and not (element.text or "").strip():
        element.text = None


def _rewritten(name: str, value: str, prefix: str, inks: Mapping[str, str]) -> str:
    if name == "id":
        return prefix + value
    if name.endswith("href"):
        return f"#{prefix}{value[1:]}" if value.startswith("#") else value
    if name in ("d", "x", "y"):
        return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", value)
    value = _FONT.sub("", value).strip() if name == "style" else value
    value = _REFERENCE.sub(lambda match: f"url(#{prefix}{match[1]})", value)
    return _COLOUR.sub(lambda colour: inks.get(colour[0].lower(), colour[0]), value)
