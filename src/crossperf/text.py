"""Text from elsewhere made safe to show: names, arguments and files may hold what a terminal obeys."""

from __future__ import annotations

import re

# What moves the cursor, rings, renames the window or turns the order of letters: the control characters C0 and C1 with
# DEL, marks of direction, separators of lines and paragraphs, the byte order mark, and halves of surrogate pairs.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def safe(text: object) -> str:
    r"""Return a text as one line that a terminal only shows; what it would obey is written out, such as ``\x1b``.

    >>> safe("evil\x1b]0;title\x07 name"), safe("two\nlines"), safe("Grüße, 世界")
    ('evil\\x1b]0;title\\x07 name', 'two\\nlines', 'Grüße, 世界')
    """
    return _UNSAFE.sub(lambda match: _written_out(match[0]), str(text))


def _written_out(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # how Python holds a byte that is no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def is_safe(text: str) -> bool:
    r"""Tell whether a text is one line that a terminal only shows.

    >>> is_safe("epyc-2"), is_safe("epyc\x1b[2J")
    (True, False)
    """
    return _UNSAFE.search(text) is None


def as_utf8(text: str) -> str:
    r"""Return a text that every file of ours can hold: bytes that are no UTF-8, as in an argument, are written out.

    >>> as_utf8("caf\udce9"), as_utf8("café")
    ('caf\\xe9', 'café')
    """
    return _SURROGATE.sub(lambda match: _written_out(match[0]), text)
