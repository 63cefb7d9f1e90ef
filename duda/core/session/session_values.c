// SPDX-License-Identifier: Apache-2.0
/*
 * The keys and values of a session (session_values.h).
 */
#include "session/session_values.h"

#include "common/heap.h"

#include <duda/session.h>

#include <errno.h>

enum { HEAD_BYTES = 3 };

static size_t get_pair_bytes(struct mk_str key, struct mk_str value)
{
    return SESSION_PAIR_BYTES + key.len + value.len;
}

bool session_values_next(struct mk_str *rest, struct mk_str *ret_key, struct mk_str *ret_value)
{
    const unsigned char *p = (const unsigned char *)rest->p;
    if (rest->len < SESSION_PAIR_BYTES)
        return false;
    struct mk_str key = mk_str(rest->p + HEAD_BYTES, p[0]);
    struct mk_str value = mk_str(rest->p + HEAD_BYTES + key.len + 1, (size_t)p[1] | (size_t)p[2] << 8);
    size_t bytes = get_pair_bytes(key, value);
    if (!key.len || key.len > DUDA_SESSION_KEY_BYTES || bytes > rest->len || key.p[key.len] || value.p[value.len])
        return false;
    *ret_key = key;
    *ret_value = value;
    *rest = mk_str_after(*rest, bytes);
    return true;
}

bool session_values_check(struct mk_str values)
{
    struct mk_str key, value;
    while (session_values_next(&values, &key, &value))
        ;
    return values.len == 0;
}

bool session_values_find(struct mk_str values, struct mk_str key, struct mk_str *ret_value)
{
    struct mk_str found;
    while (session_values_next(&values, &found, ret_value)) {
        if (mk_str_eq(found, key))
            return true;
    }
    return false;
}

const struct session_change *session_values_find_change(const struct session_change *first, struct mk_str key)
{
    while (first && !mk_str_eq(first->key, key))
        first = first->next;
    return first;
}

/* ── changes ── */

static char *write_pair(char *to, struct mk_str key, struct mk_str value)
{
    assert(key.len && key.len <= DUDA_SESSION_KEY_BYTES && value.len <= DUDA_SESSION_BYTES_MAX);
    to[0] = (char)key.len;
    to[1] = (char)(value.len & 0xff);
    to[2] = (char)(value.len >> 8);
    to += HEAD_BYTES;
    memcpy(to, key.p, key.len);
    to[key.len] = '\0';
    to += key.len + 1;
    if (value.len)
        memcpy(to, value.p, value.len);
    to[value.len] = '\0';
    return to + value.len + 1;
}

/* Writes what the values are after the changes, or only measures them if `to` is NULL. */
static size_t write_changed(char *to, struct mk_str values, const struct session_change *changes, unsigned *ret_keys)
{
    struct mk_str key, value;
    size_t bytes = 0;
    *ret_keys = 0;
    while (session_values_next(&values, &key, &value)) {
        if (session_values_find_change(changes, key))
            continue;
        ++*ret_keys;
        bytes += get_pair_bytes(key, value);
        to = to ? write_pair(to, key, value) : NULL;
    }
    for (const struct session_change *c = changes; c; c = c->next) {
        if (c->removes)
            continue;
        ++*ret_keys;
        bytes += get_pair_bytes(c->key, c->value);
        to = to ? write_pair(to, c->key, c->value) : NULL;
    }
    return bytes;
}

int session_values_apply(struct mk_str values, const struct session_change *changes, size_t bytes_max,
                         struct mk_str *ret)
{
    unsigned keys;
    size_t bytes = write_changed(NULL, values, changes, &keys);
    *ret = MK_STR_NONE;
    if (bytes > bytes_max || keys > DUDA_SESSION_KEYS_MAX)
        return -ENOSPC;
    if (!bytes)
        return 0;
    char *p = heap_zalloc(bytes);
    if (!p)
        return -ENOMEM;
    write_changed(p, values, changes, &keys);
    *ret = mk_str(p, bytes);
    return 0;
}
