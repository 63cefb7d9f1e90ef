# SPDX-License-Identifier: Apache-2.0
"""Which level of the API sources are written for: 3 is <duda/duda.h>, 0 to 2 are those of "webservice.h"."""

import re

NEW_LEVEL = 3
OLD_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<](?:duda/)?webservice\.h[">]', re.M)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
# The newest level whose marks are in the sources.
MARKS = ((2, r"\brouter\s*->|\bdthread\s*->|\bevent\s*->\s*loop_"),)
DEFAULT_OLD_LEVEL = 1


def detect_level(texts: list) -> int:
    """`texts` are those of all sources of a service."""
    if not any(OLD_HEADER.search(text) for text in texts):
        return NEW_LEVEL
    code = "\n".join(COMMENT_OR_TEXT.sub(" ", text) for text in texts)
    return next((level for level, pattern in MARKS if re.search(pattern, code)), DEFAULT_OLD_LEVEL)
