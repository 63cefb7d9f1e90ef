// SPDX-License-Identifier: Apache-2.0
/*
 * Hashes a part of a request (hash_by.h).
 */
#include "hash_by.h"

#include <monkey/cookie.h>
#include <monkey/siphash.h>

#include <errno.h>

static const struct {
    const char *word;
    bool takes_name;
} kinds[HASH_BY_KINDS] = {
    [HASH_BY_CLIENT] = {"Client", false}, [HASH_BY_PATH] = {"Path", false},    [HASH_BY_URL] = {"Url", false},
    [HASH_BY_HEADER] = {"Header", true},  [HASH_BY_COOKIE] = {"Cookie", true}, [HASH_BY_QUERY] = {"Query", true},
};

/* Tells whether a header, a cookie or a parameter may have a name, which is compared as the request has it. */
static bool is_name(struct mk_str s, uint8_t kind)
{
    static const char *const others[HASH_BY_KINDS] = {
        [HASH_BY_HEADER] = "\"(),/:;<=>?@[\\]{}", [HASH_BY_COOKIE] = "=;,", [HASH_BY_QUERY] = "=&#"};
    return s.len && mk_str_is_visible(s, others[kind]);
}

int hash_by_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct hash_by *by = field;
    for (uint8_t i = 0; i < HASH_BY_KINDS; i++) {
        if (!mk_str_ieq(value->words[0], mk_str_c(kinds[i].word)) || value->n != (kinds[i].takes_name ? 2 : 1))
            continue;
        if (kinds[i].takes_name && !is_name(value->words[1], i))
            return mk_conf_fault(value, 1, 0, error, "no request can have such a name");
        by->kind = i;
        by->name = kinds[i].takes_name ? mk_arena_dup(arena, value->words[1]) : MK_STR("");
        return by->name.p ? 0 : -ENOMEM;
    }
    return mk_conf_fail(error, "it takes Client, Path, Url, Header NAME, Cookie NAME or Query NAME");
}

struct mk_str hash_by_find_parameter(struct mk_str query, struct mk_str name)
{
    while (query.len) {
        struct mk_str pair = mk_str_split(&query, '&');
        if (pair.len > name.len && pair.p[name.len] == '=' && memcmp(pair.p, name.p, name.len) == 0)
            return mk_str(pair.p + name.len + 1, pair.len - name.len - 1);
    }
    return MK_STR_NONE;
}

static struct mk_str find_value(const struct hash_by *by, struct mk_request *req)
{
    switch (by->kind) {
    case HASH_BY_HEADER:
        return mk_request_header_by_name(req, by->name);
    case HASH_BY_COOKIE:
        return mk_request_cookie(req, by->name);
    case HASH_BY_QUERY:
        return hash_by_find_parameter(mk_request_query(req), by->name);
    default:
        return mk_request_path(req);
    }
}

/* The same on each machine and after each start, so that all of them choose alike. */
static uint64_t hash_bytes(const void *data, size_t len)
{
    static const uint64_t key[2] = {0};
    return mk_siphash(key, data, len);
}

bool hash_by_get(const struct hash_by *by, struct mk_request *req, uint64_t *ret)
{
    if (by->kind == HASH_BY_CLIENT) {
        struct mk_address client = mk_request_client(req);
        *ret = hash_bytes(client.bytes, sizeof(client.bytes));
        return client.family == AF_INET || client.family == AF_INET6;
    }
    struct mk_str value = find_value(by, req), query = mk_request_query(req);
    *ret = hash_bytes(value.p, value.len);
    if (by->kind == HASH_BY_URL && query.p)
        *ret += hash_bytes(query.p, query.len);
    return value.len > 0;
}
