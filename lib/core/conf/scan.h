// SPDX-License-Identifier: Apache-2.0
/*
 * Scans the indented syntax of configuration files: bytes in, spans out. All functions are pure.
 *
 *     # a comment                    [SECTION] and @directives start at column 1
 *     @SET root=/srv/www             a key is indented as deep as the first key of its file
 *     [HOST]
 *         DocumentRoot "${root}/a b" # a comment begins at the start of a word
 *
 * A word is bare or as a whole in double quotes. `\"`, `\#` and `\${` mean the character itself, in quotes also
 * `\\`; any other backslash stays. `${...}` is part of its word, whatever it contains.
 */
#ifndef MK_CONF_SCAN_H
#define MK_CONF_SCAN_H

#include <monkey/base/str.h>

enum mk__scan_kind { MK__SCAN_END, MK__SCAN_ERROR, MK__SCAN_SECTION, MK__SCAN_KEY, MK__SCAN_INCLUDE, MK__SCAN_SET };

enum { MK__SCAN_LINE_MAX = 4096 };

struct mk__scan_line;

struct mk__scan {
    struct mk_str rest;   /* the lines to come */
    uint32_t line;        /* number of the line read last */
    struct mk_str indent; /* of the first key; empty before it */
    uint32_t indent_line; /* line of that key */
    uint32_t blocks;      /* number of open blocks of another server's syntax, whose lines are skipped */
    bool had_blocks;      /* there was such a block */
    /* Gets each line that is not a section's, from `indent` on, first. Returns whether it was reported or skipped. */
    bool (*foreign)(struct mk__scan *s, struct mk__scan_line *line, struct mk_str text, size_t indent);
    struct mk_str comment_end; /* of another server's comment, whose lines are skipped; empty: none is open */
};

struct mk__scan_line {
    enum mk__scan_kind kind;
    struct mk_str name;  /* of the key or variable; of a section all that its brackets hold, without blanks around */
    struct mk_str value; /* from the first word to the last, with quotes; empty: none */
    uint32_t col, value_col; /* from 1, in bytes; column of an error; value_col of a section: that of its name */
    bool section;            /* with an error: the line is that of a section */
    char error[320];
};

struct mk__scan_word {
    struct mk_str raw; /* without its quotes */
    bool quoted;
};

/* Starts a scan; skips a byte order mark. The spans point into `text`. */
MK_COLD void mk__scan_init(struct mk__scan *s, struct mk_str text);

/*
 * Reads the next line that is not blank. After the last one, `kind` is MK__SCAN_END. After an error the scan can
 * continue.
 */
void mk__scan_next(struct mk__scan *s, struct mk__scan_line *line);

/*
 * Scans what stands behind the first `at` bytes of a section's name as a value: sets `kind` to MK__SCAN_KEY or, after a
 * mistake, MK__SCAN_ERROR.
 */
MK_COLD void mk__scan_names(const struct mk__scan_line *section, size_t at, struct mk__scan_line *ret);

/*
 * Cuts the next word off `rest`.
 * Returns 1, 0 (the end or a comment) or -EINVAL with a phrase in `*ret_error`; `rest` then begins at the mistake.
 */
MK_COLD int mk__scan_word(struct mk_str *rest, struct mk__scan_word *word, const char **ret_error);

/* Returns whether `s` begins with a backslash that escapes the next character. */
bool mk__scan_is_escape(struct mk_str s, bool quoted);

/* Returns the length of the `${...}` that `s` begins with; 0 if there is none, or its brace is not closed. */
MK_COLD size_t mk__scan_variable(struct mk_str s);

#endif
