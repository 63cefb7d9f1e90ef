// SPDX-License-Identifier: Apache-2.0
/*
 * A request of a shell is one line: a command and its arguments.
 *
 *     connections state=idle            words; "..." and '...' keep blanks, a backslash the byte after it
 *     ["connections", "state=idle"]     or a JSON array of strings
 */
#ifndef CHEETAH_WORDS_H
#define CHEETAH_WORDS_H

#include <monkey/buf.h>
#include <monkey/str.h>

enum { WORDS_MAX = 64, WORDS_LINE_BYTES = 16 * 1024 };

struct words {
    unsigned n;
    struct mk_str items[WORDS_MAX]; /* in the bytes of the line, which were changed; without a NUL */
};

/*
 * Splits a line without its end; the words take the place of the line. Returns NULL, or a sentence that says what is
 * wrong.
 */
const char *words_split(char *line, size_t len, struct words *ret);

#endif
