// SPDX-License-Identifier: Apache-2.0
/*
 * Sessions: the first line of the input is the value of a cookie, the rest are the bytes of a session's file behind its
 * head, as an attacker with write access would choose them. An id has one spelling; what is changed and written can
 * be read again, and has what a map with the same changes would have.
 */
#include "duda/core/common/heap.h"
#include "duda/core/session/session.h"

#include <stdlib.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

enum { BYTES_MAX = 2000 };

static void check_id(struct mk_str text, bool is_old)
{
    char printed[2 * SESSION_ID_BYTES + 2];
    struct session_id id;
    struct mk_buf out;
    mk_buf_init_fixed(&out, printed, sizeof(printed));
    if (!session_id_parse(text, is_old, &id))
        return;
    session_id_print(&id, is_old, &out);
    CHECK(mk_str_eq(mk_buf_str(&out), text));
}

/* Makes a change of each pair of the values: `data` chooses which are removed. Returns the first. */
static struct session_change *make_changes(struct mk_str values, unsigned char data, struct session_change *to,
                                           unsigned room)
{
    struct session_change *first = NULL;
    struct mk_str key, value;
    for (unsigned n = 0; n < room && session_values_next(&values, &key, &value); n++) {
        if (session_values_find_change(first, key))
            continue;
        to[n] = (struct session_change){.next = first, .key = key, .value = value, .removes = data >> n % 8 & 1};
        first = &to[n];
    }
    return first;
}

static void check_changed(struct mk_str before, const struct session_change *changes, struct mk_str after)
{
    struct mk_str rest = before, key, value, found;
    CHECK(session_values_check(after) && after.len <= BYTES_MAX);
    for (const struct session_change *c = changes; c; c = c->next) {
        CHECK(session_values_find(after, c->key, &found) != c->removes);
        CHECK(c->removes || mk_str_eq(found, c->value));
    }
    while (session_values_next(&rest, &key, &value)) {
        if (!session_values_find_change(changes, key))
            CHECK(session_values_find(after, key, &found));
    }
}

static void check_values(struct mk_str values, struct mk_str more, unsigned char data)
{
    struct session_change changes[16], *first = make_changes(more, data, changes, 16);
    struct mk_str after;
    int err = session_values_apply(values, first, BYTES_MAX, &after);
    CHECK(err == 0 || !after.p);
    if (err == 0)
        check_changed(values, first, after);
    heap_free((char *)(uintptr_t)after.p, after.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = size ? memchr(text, '\n', size) : NULL;
    if (!end)
        return 0;
    struct mk_str cookie = mk_str(text, (size_t)(end - text));
    struct mk_str values = mk_str(end + 1, size - cookie.len - 1);
    struct mk_str first = mk_str(values.p, values.len / 2);
    struct mk_str second = mk_str(values.p + first.len, values.len - first.len);
    check_id(cookie, false);
    check_id(cookie, true);
    session_values_check(values);
    check_values(values, values, size & 0xff);
    check_values(first, second, size & 0xff);
    return 0;
}
