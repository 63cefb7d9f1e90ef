// SPDX-License-Identifier: Apache-2.0
/*
 * Rules of [REWRITE] and requests. Six lines: Match, To, When, the raw path, the query and a header of the request.
 * Whatever a client sends, the new path is one of the host, captures change neither the number of the query's
 * parameters nor begin a query, and a condition and its negation are never both true.
 */
#include "../../plugins/redirect/redirect.h"

#include <errno.h>
#include <stdlib.h>

#include "conf/scan.h"
#include "http/message/uri.h"
#include "http/request.h"
#include "server/generation/generation.h"
#include "server/worker/worker.h"

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

enum { WORDS_MAX = 16, BYTES_MAX = 16384 };

static struct mk_arena arena;

static struct mk_str cut_line(struct mk_str *rest)
{
    const char *end = rest->len ? memchr(rest->p, '\n', rest->len) : NULL;
    struct mk_str line = mk_str(rest->p, end ? (size_t)(end - rest->p) : rest->len);
    size_t used = line.len + (end != NULL);
    *rest = mk_str(rest->p + used, rest->len - used);
    return line;
}

/* Parses a value as the configuration would; its words are separated by single blanks. */
static bool parse(mk_conf_parse_fn fn, struct mk_str text, void *field)
{
    struct mk_str words[WORDS_MAX], rest = text;
    char storage[MK__SCAN_LINE_MAX + 1024]; /* as conf/bind.c: a sentence may quote the line */
    struct mk_buf error;
    size_t fault = 0;
    uint32_t n = 0;
    while (rest.len && n < WORDS_MAX) {
        const char *blank = memchr(rest.p, ' ', rest.len);
        size_t len = blank ? (size_t)(blank - rest.p) : rest.len;
        words[n++] = mk_str(rest.p, len);
        rest = mk_str(rest.p + len + (blank != NULL), rest.len - len - (blank != NULL));
    }
    struct mk_conf_value value = {.text = text, .words = words, .n = n, .fault = &fault};
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = fn(&value, field, &arena, &error);
    CHECK(err == 0 || err == -ENOMEM || (err == -EINVAL && error.len && fault <= text.len));
    return err == 0;
}

static bool is_query(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || s.p[i] == '#')
            return false;
    return true;
}

static unsigned count_bytes(struct mk_str s, char c)
{
    unsigned n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.p[i] == c;
    return n;
}

static void check_path(struct mk_str path)
{
    CHECK(path.len && path.p[0] == '/' && !path.p[path.len] && !memchr(path.p, '\0', path.len));
    CHECK(!memmem(path.p, path.len, "//", 2) && !memmem(path.p, path.len, "/../", 4));
    CHECK(path.len < 3 || memcmp(path.p + path.len - 3, "/..", 3) != 0);
}

/* Applies the rule to the request, and checks what comes out. */
static void check_rewrite(const struct rewrite_rule *rule, struct mk_str path, struct mk_str query,
                          const struct mk_str *groups)
{
    static char path_storage[MK_REWRITE_BYTES_MAX], query_storage[MK_REWRITE_BYTES_MAX];
    static struct mk_generation generation = {.n_plugins = 1};
    static struct mk_worker worker = {.generation = &generation};
    struct mk_request req = {.worker = &worker, .path = path};
    struct mk_buf out_path, out_query;
    bool has_query;
    mk_arena_init(&req.arena, NULL, 1 << 20, NULL, 0);
    mk_buf_init_fixed(&out_path, path_storage, sizeof(path_storage));
    mk_buf_init_fixed(&out_query, query_storage, sizeof(query_storage));
    rewrite_build(rule, path, query, &(struct target_captures){groups, false}, &out_path, &out_query, &has_query);
    const char *mark = memchr(rule->base.to.text.p, '?', rule->base.to.text.len);
    if (!out_path.err && !out_query.err) {
        struct mk_str built = mk_buf_str(&out_query);
        int err = mk_request_rewrite(&req, mk_buf_str(&out_path), has_query ? built : MK_STR_NONE);
        CHECK(err == 0 || err == -EINVAL || err == -ENAMETOOLONG);
        CHECK(is_query(built) && !memchr(out_path.data, '?', out_path.len));
        if (!mark && !rule->keep_query)
            CHECK(!has_query);
        if (mark && !rule->keep_query) {
            struct mk_str wanted = mk_str(mark, rule->base.to.text.len - (size_t)(mark - rule->base.to.text.p));
            CHECK(count_bytes(built, '&') == count_bytes(wanted, '&'));
            CHECK(count_bytes(built, '=') == count_bytes(wanted, '='));
        }
        if (err == 0)
            check_path(mk_request_path(&req));
    }
    mk_arena_release(&req.arena);
}

static struct mk_str get_header(void *ctx, struct mk_str name)
{
    const struct mk_str *value = ctx;
    return name.len % 2 ? *value : MK_STR_NONE;
}

static void check_condition(struct mk_when *when, struct mk_str query, struct mk_str header)
{
    struct mk_when_request request = {MK_STR("GET"), query, get_header, &header};
    int r = mk_when_holds(when, &request);
    when->items[0].negated = !when->items[0].negated;
    int negated = mk_when_holds(when, &request);
    CHECK(r < 0 ? negated < 0 : negated == !r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_str rest = mk_str((const char *)data, size);
    struct mk_str match = cut_line(&rest), to = cut_line(&rest), condition = cut_line(&rest);
    struct mk_str raw = cut_line(&rest), query = cut_line(&rest), header = rest;
    struct mk_str groups[MK_PATTERN_GROUPS];
    struct rewrite_rule rule = {.base.keep_path = true, .keep_query = size % 2};
    static char path[BYTES_MAX + 2];
    if (size > BYTES_MAX)
        return 0;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    bool is_rule = parse(mk_conf_pattern, match, &rule.base.match) && parse(target_parse_path, to, &rule.base.to);
    if (parse(mk_when_parse, condition, &rule.base.when))
        check_condition(&rule.base.when, query, header);
    ssize_t n = mk__uri_decode_path(raw, path, sizeof(path));
    if (is_rule && n > 0 && is_query(query) &&
        mk_pattern_capture(&rule.base.match, mk_str(path, (size_t)n), groups) > 0 &&
        target_count_captured_bytes(rule.base.to.text, groups) <= TARGET_CAPTURED_BYTES_MAX)
        check_rewrite(&rule, mk_str(path, (size_t)n), query.len ? query : MK_STR_NONE, groups);
    mk_arena_release(&arena);
    return 0;
}
