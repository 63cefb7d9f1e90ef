// SPDX-License-Identifier: Apache-2.0
/*
 * Values of keys, for tests of their parsers. What a parser reports is in `reason` and `fault`.
 */
#ifndef MK_UNIT_CONF_VALUE_H
#define MK_UNIT_CONF_VALUE_H

#include "arena.h"

#include <monkey/conf.h>

enum { MK_TEST_WORDS_MAX = 16 };

static char reason[512];
static size_t fault;

/* Parses a value whose words are separated by single spaces. */
static inline int mk_test_parse_value(mk_conf_parse_fn fn, void *field, const char *text)
{
    struct mk_str words[MK_TEST_WORDS_MAX], rest = mk_str_c(text);
    struct mk_buf error;
    uint32_t n = 0;
    while (rest.len) {
        const char *blank = memchr(rest.p, ' ', rest.len);
        size_t len = blank ? (size_t)(blank - rest.p) : rest.len;
        assert_true(n < MK_TEST_WORDS_MAX);
        words[n++] = mk_str(rest.p, len);
        rest = mk_str(rest.p + len + (blank != NULL), rest.len - len - (blank != NULL));
    }
    struct mk_conf_value value = {.text = mk_str_c(text), .words = words, .n = n, .fault = &fault};
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    fault = SIZE_MAX;
    int err = fn(&value, field, &arena, &error);
    mk_buf_cstr(&error);
    return err;
}

#endif
