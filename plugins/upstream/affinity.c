// SPDX-License-Identifier: Apache-2.0
/*
 * Which server a request has by what it brings: by the hash of HashBy, or by the cookie of Balance Sticky.
 */
#include "conf.h"
#include "process.h"

#include <monkey/base/siphash.h>
#include <monkey/kit/cookie.h>
#include <monkey/log.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ── HashBy ── */

static const struct {
    const char *word;
    bool takes_name;
} hash_by_kinds[HASH_BY_KINDS] = {
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
        if (!mk_str_ieq(value->words[0], mk_str_c(hash_by_kinds[i].word)) ||
            value->n != (hash_by_kinds[i].takes_name ? 2 : 1))
            continue;
        if (hash_by_kinds[i].takes_name && !is_name(value->words[1], i))
            return mk_conf_fault(value, 1, 0, error, "no request can have such a name");
        by->kind = i;
        by->name = hash_by_kinds[i].takes_name ? mk_arena_dup(arena, value->words[1]) : MK_STR("");
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

static struct mk_str find_hashed(const struct hash_by *by, struct mk_request *req)
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
    struct mk_str value = find_hashed(by, req), query = mk_request_query(req);
    *ret = hash_bytes(value.p, value.len);
    if (by->kind == HASH_BY_URL && query.p)
        *ret += hash_bytes(query.p, query.len);
    return value.len > 0;
}

/* ── StickyCookie ── */

static const struct {
    const char *word;
    size_t offset;
} flags[] = {{"HttpOnly", offsetof(struct mk_cookie, http_only)}, {"Secure", offsetof(struct mk_cookie, secure)}};

static const char *const same_sites[] = {
    [MK_SAME_SITE_LAX] = "Lax", [MK_SAME_SITE_STRICT] = "Strict", [MK_SAME_SITE_NONE] = "None"};

/* Returns what stands after `name=`; `.p` NULL: another word. */
static struct mk_str find_value(struct mk_str word, struct mk_str name)
{
    bool has_name = mk_str_istarts(word, name) && word.len > name.len;
    return has_name ? mk_str_after(word, name.len) : MK_STR_NONE;
}

static bool parse_same_site(struct mk_str text, struct mk_cookie *cookie)
{
    for (unsigned i = MK_SAME_SITE_LAX; i < MK_COUNT_OF(same_sites); i++)
        if (mk_str_ieq(text, mk_str_c(same_sites[i]))) {
            cookie->same_site = (enum mk_same_site)i;
            return true;
        }
    return false;
}

static bool parse_attribute(struct mk_str word, struct mk_cookie *cookie, struct mk_arena *arena)
{
    struct mk_str path = find_value(word, MK_STR("Path=")), age = find_value(word, MK_STR("Max-Age="));
    struct mk_str site = find_value(word, MK_STR("SameSite="));
    uint64_t seconds = 0;
    for (size_t i = 0; i < MK_COUNT_OF(flags); i++)
        if (mk_str_ieq(word, mk_str_c(flags[i].word))) {
            *(bool *)((char *)cookie + flags[i].offset) = true;
            return true;
        }
    if (path.p)
        cookie->path = mk_arena_dup(arena, path);
    else if (age.p && mk_str_u64(age, INT32_MAX, &seconds) && seconds)
        cookie->max_age_s = (int64_t)seconds;
    else
        return site.p && parse_same_site(site, cookie);
    return true;
}

int sticky_parse_cookie(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_cookie *cookie = field;
    *cookie = (struct mk_cookie){.name = mk_arena_dup(arena, value->words[0]), .value = MK_STR("x")};
    if (!cookie->name.p)
        return -ENOMEM;
    for (uint32_t i = 1; i < value->n; i++)
        if (!parse_attribute(value->words[i], cookie, arena)) {
            mk_buf_addf(error,
                        "behind the name may stand Path=/PATH, Max-Age=SECONDS, HttpOnly, Secure and "
                        "SameSite=Lax, Strict or None, not \"%.*s\"",
                        MK_STR_ARG(value->words[i]));
            return -EINVAL;
        }
    MK_BUF_ON_STACK(header, MK_COOKIE_BYTES_MAX);
    if (mk_cookie_write(&header, cookie) == 0)
        return 0;
    return mk_conf_fail(error,
                        "a cookie like that cannot be set: its name is a token, its path begins with a slash, and "
                        "SameSite=None, __Secure- and __Host- need Secure");
}

/* ── keys ── */

void sticky_derive_key(struct mk_str secret, uint64_t key[2])
{
    static const uint64_t salts[2][2] = {{1, 0}, {2, 0}};
    for (unsigned i = 0; i < 2; i++)
        key[i] = mk_siphash(salts[i], secret.p, secret.len);
}

int sticky_read_key(const char *path, uint64_t key[2])
{
    char secret[STICKY_SECRET_BYTES_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, secret, sizeof(secret));
    int err = n < 0 ? -errno : 0;
    close(fd);
    if (err < 0)
        return err;
    if (n < STICKY_SECRET_BYTES_MIN || n > STICKY_SECRET_BYTES_MAX)
        return -EINVAL;
    sticky_derive_key(mk_str(secret, (size_t)n), key);
    explicit_bzero(secret, sizeof(secret));
    return 0;
}

int sticky_get_own_key(uint64_t key[2])
{
    struct sticky_key *own = &upstream_process.sticky;
    lock_take(&own->lock);
    int r = own->is_made ? 0 : mk_siphash_key(own->key);
    r = !own->is_made && r == 0 ? 1 : r;
    own->is_made |= r > 0;
    memcpy(key, own->key, sizeof(own->key));
    lock_release(&own->lock);
    return r;
}

/* ── tokens ── */

void sticky_make_token(const uint64_t key[2], struct mk_str group, struct mk_str server, char ret[STICKY_TOKEN_BYTES])
{
    char text[STICKY_TOKEN_BYTES + 1];
    uint64_t own[2] = {key[0], key[1] ^ mk_siphash(key, group.p, group.len)};
    uint64_t high = mk_siphash(own, server.p, server.len);
    own[0] = ~own[0];
    snprintf(text, sizeof(text), "%016llx%016llx", (unsigned long long)high,
             (unsigned long long)mk_siphash(own, server.p, server.len));
    memcpy(ret, text, STICKY_TOKEN_BYTES);
}

bool sticky_is_token(const char token[STICKY_TOKEN_BYTES], struct mk_str value)
{
    unsigned char difference = 0;
    if (value.len != STICKY_TOKEN_BYTES)
        return false;
    for (size_t i = 0; i < STICKY_TOKEN_BYTES; i++)
        difference |= (unsigned char)(token[i] ^ value.p[i]);
    return !difference;
}
