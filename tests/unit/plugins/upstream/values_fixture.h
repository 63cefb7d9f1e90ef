// SPDX-License-Identifier: Apache-2.0
/*
 * Gives a parser of a directive the words of a line.
 */
#ifndef MK_UNIT_UPSTREAM_VALUES_FIXTURE_H
#define MK_UNIT_UPSTREAM_VALUES_FIXTURE_H

#include "testing.h"

#include <monkey/conf.h>

#include <errno.h>

static char parse_error[512]; /* the sentence about a value that is refused */

/* Parses the words of `text`, which blanks separate. A value that is refused has a sentence. */
static inline int parse_words(mk_conf_parse_fn parse, const char *text, void *field, struct mk_arena *arena)
{
    struct mk_buf error;
    struct mk_str words[8], rest = mk_str_c(text);
    struct mk_conf_value value = {.text = rest, .words = words};
    while (rest.len) {
        const char *end = memchr(rest.p, ' ', rest.len);
        size_t n = end ? (size_t)(end - rest.p) : rest.len;
        assert_true(value.n < COUNT(words));
        words[value.n++] = mk_str(rest.p, n);
        rest = mk_str(rest.p + n + (end != NULL), rest.len - n - (end != NULL));
    }
    mk_buf_init_fixed(&error, parse_error, sizeof(parse_error));
    int err = parse(&value, field, arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    (void)mk_buf_cstr(&error);
    return err;
}

#endif
