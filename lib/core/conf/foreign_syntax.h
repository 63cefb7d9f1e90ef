// SPDX-License-Identifier: Apache-2.0
/*
 * Recognizes the syntax of other servers' configurations (comments, blocks, separators, paths), so that a message can
 * say how the same is written here. All functions are pure.
 */
#ifndef MK_CONF_FOREIGN_SYNTAX_H
#define MK_CONF_FOREIGN_SYNTAX_H

#include "conf/scan.h"

/*
 * Checks a line that is not a section's. Reports a comment that does not begin with a `#` and the first line of a
 * block, and skips the lines of both. Returns whether the line was reported (MK__SCAN_ERROR) or skipped.
 */
MK_COLD bool mk__foreign_syntax_scan(struct mk__scan *s, struct mk__scan_line *line, struct mk_str text, size_t indent);

/* A key that a sign separates from its value, as in "Key = value", "Key=value" and "Key: value". */
struct mk__foreign_key {
    struct mk_str name, value;
    char sign;
    bool within;  /* the sign is within the first word, not at its end or after it */
    uint32_t col; /* of the sign */
};

/* Returns whether a line of a key has such a sign. */
MK_COLD bool mk__foreign_syntax_split_key(const struct mk__scan_line *line, struct mk__foreign_key *ret);

/* Returns whether a word is such a sign, "=" for example. */
bool mk__foreign_syntax_is_sign(struct mk_str word);

/* Returns whether a word begins a comment in other servers' files: "//" or "/" and "*". */
bool mk__foreign_syntax_is_comment(struct mk_str word);

/* Returns what to write in place of a path that a shell or a browser would understand; NULL: nothing is known. */
MK_COLD const char *mk__foreign_syntax_check_path(struct mk_str path);

#endif
