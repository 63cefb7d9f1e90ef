// SPDX-License-Identifier: Apache-2.0
/*
 * Configuration files of services: whatever the bytes are, a file is read or refused with the number of a line. What
 * was read must be found again, and be read in the same way from a file that is written from it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "duda/core/service/conf_file.h"

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static void check_value(struct mk_str value)
{
    struct mk_str rest = value, word;
    size_t words = 0;
    long number;
    bool is_on;
    CHECK(value.len && !value.p[value.len]);
    while ((word = mk_str_next_word(&rest)).len) {
        CHECK(word.len && word.p >= value.p && word.p + word.len <= value.p + value.len);
        words++;
    }
    CHECK(words > 0);
    CHECK(!conf_file_get_number(value, &number) || words == 1);
    CHECK(!conf_file_get_bool(value, &is_on) || words == 1);
}

static void check_section(struct duda_config_section *first, struct duda_config_section *s, struct mk_buf *out)
{
    CHECK(s->name.len && s->name.len <= CONF_NAME_BYTES_MAX && conf_file_find(first, s->name));
    mk_buf_addf(out, "[%.*s]\n", MK_STR_ARG(s->name));
    for (const struct conf_key *key = s->first; key; key = key->next) {
        const struct conf_key *found = conf_file_find_key(s, key->name);
        CHECK(key->name.len && key->name.len <= CONF_NAME_BYTES_MAX && found && mk_str_ieq(found->name, key->name));
        check_value(key->value);
        mk_buf_addf(out, " %.*s %.*s\n", MK_STR_ARG(key->name), MK_STR_ARG(key->value));
    }
}

/* Returns false for a file that is refused. Writes what was read to `out`. */
static bool parse(struct mk_str text, struct mk_buf *out)
{
    struct duda_config_section *first;
    struct mk_arena arena;
    struct mk_buf error;
    char storage[128];
    unsigned line;
    mk_arena_init(&arena, NULL, 64 << 20, NULL, 0);
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = conf_file_parse(text, &arena, &first, &error);
    CHECK(!error.err && (err == 0) == !error.len);
    CHECK(err == 0 || sscanf(mk_buf_cstr(&error), "%u: ", &line) == 1);
    for (struct duda_config_section *s = first; s && err == 0; s = s->next)
        check_section(first, s, out);
    mk_arena_release(&arena);
    return err == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_buf once, twice;
    mk_buf_init(&once, 4 << 20);
    mk_buf_init(&twice, 4 << 20);
    if (parse(mk_str((const char *)data, size), &once)) {
        CHECK(!once.err && parse(mk_buf_str(&once), &twice) && !twice.err);
        CHECK(mk_str_eq(mk_buf_str(&once), mk_buf_str(&twice)));
    }
    mk_buf_release(&once);
    mk_buf_release(&twice);
    return 0;
}
