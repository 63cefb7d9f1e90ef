// SPDX-License-Identifier: Apache-2.0
/*
 * The values of rules and limits, and files of networks: the first byte chooses. A set of networks finds what a
 * comparison with each network finds.
 */
#include <stdlib.h>

#include <monkey/base/arena.h>

#include "../../plugins/mandril/mandril.h"
#include "../../plugins/mandril/networks.h"

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

enum { WORDS_MAX = 16, LINES_MAX = 64 };

static void parse_value(mk_conf_parse_fn fn, struct mk_str text, void *field)
{
    struct mk_str words[WORDS_MAX];
    struct mk_conf_value value = {.text = text, .words = words};
    struct mk_arena arena;
    struct mk_buf error;
    for (size_t at = 0; at < text.len && value.n < WORDS_MAX;) {
        const char *blank = memchr(text.p + at, ' ', text.len - at);
        size_t len = blank ? (size_t)(blank - text.p) - at : text.len - at;
        words[value.n++] = mk_str(text.p + at, len);
        at += len + 1;
    }
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    mk_buf_init(&error, 1 << 16);
    int err = fn(&value, field, &arena, &error);
    CHECK(err == 0 || error.len > 0);
    mk_buf_release(&error);
    mk_arena_release(&arena);
}

/* Reads the same lines one by one. */
static void compare_set(const struct network_set *set, struct mk_str text)
{
    struct mk_network items[LINES_MAX];
    struct mk_networks plain = {items, 0};
    struct mk_buf error;
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.p + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.p) - at : text.len - at;
        const char *hash = memchr(text.p + at, '#', len);
        struct mk_str line = mk_str(text.p + at, hash ? (size_t)(hash - text.p) - at : len);
        at += len + 1;
        while (line.len && memchr(" \t\r", line.p[line.len - 1], 3))
            line.len--;
        while (line.len && memchr(" \t\r", line.p[0], 3))
            line = mk_str(line.p + 1, line.len - 1);
        if (!line.len)
            continue;
        if (plain.n == LINES_MAX)
            return;
        mk_buf_init(&error, 1 << 16);
        CHECK(mk_network_parse(line, &items[plain.n++], &error) == 0);
        mk_buf_release(&error);
    }
    for (uint32_t i = 0; i < plain.n; i++)
        for (unsigned bit = 0; bit <= 128; bit++) {
            struct mk_address a = items[i].address;
            if (bit < 128 && (a.family == AF_INET6 || (a.family == AF_INET && bit < 32)))
                a.bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
            CHECK(networks_contain(set, &a) == mk_networks_contain(&plain, &a));
        }
    CHECK(networks_cover(set, set) && networks_count(set) <= plain.n);
}

static void read_networks(struct mk_str text)
{
    struct network_set *set;
    struct mk_buf message;
    mk_buf_init(&message, 1 << 16);
    int err = networks_read(text, MK_STR("nets"), &set, &message);
    CHECK((err == 0) == (set != NULL) && (err == 0) == (message.len == 0));
    if (set)
        compare_set(set, text);
    networks_free(set);
    mk_buf_release(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct mk_str text = mk_str((const char *)data + 1, size - 1);
    struct rule_action action = {0};
    struct request_rate rate = {0};
    struct mk_when when = {0};
    switch (data[0] % 4) {
    case 0:
        parse_value(settings_parse_action, text, &action);
        CHECK(action.kind != ACTION_DENY || (action.status >= 400 && action.status <= 599));
        break;
    case 1:
        parse_value(settings_parse_rate, text, &rate);
        CHECK(!rate.n || (rate.n <= BUCKET_REQUESTS_MAX && rate.period_s));
        break;
    case 2:
        parse_value(mk_when_parse, text, &when);
        break;
    default:
        read_networks(text);
    }
    return 0;
}
