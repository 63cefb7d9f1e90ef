// SPDX-License-Identifier: Apache-2.0
/*
 * Conditions of sections against requests. Lines up to an empty one are conditions of two sections, "a" or "b" and what
 * it is: m MATCH, w CONDITION (of When), r (ForeignReferer); the head of a request follows. If the first section is
 * said to cover the second, then it holds for all requests for which the second holds.
 */
#include "../../plugins/mandril/mandril.h"

#include <errno.h>
#include <stdlib.h>

#include "http/client_addr.h"
#include "http/request.h"
#include "server/worker/thread.h"

enum { FIELDS = 32, WORDS_MAX = 8, ARENA_BYTES = 1 << 20 };

/* Parses a condition of at most WORDS_MAX words. */
static int read_when(struct conditions *c, struct mk_str text, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str words[WORDS_MAX];
    uint32_t n = 0;
    for (size_t at = 0, len; at < text.len && n < WORDS_MAX; at += len + 1) {
        const char *blank = memchr(text.p + at, ' ', text.len - at);
        len = (blank ? (size_t)(blank - text.p) : text.len) - at;
        words[n++] = mk_str(text.p + at, len);
    }
    struct mk_conf_value value = {.text = text, .words = words, .n = n};
    return mk_when_parse(&value, &c->when, arena, error);
}

/* Returns 0, or -errno: the line has a mistake. */
static int read_condition(struct conditions *c, char kind, struct mk_str text, struct mk_arena *arena,
                          struct mk_buf *error)
{
    switch (kind) {
    case 'm':
        return c->match.text.p ? -EEXIST : mk_pattern_parse(&c->match, text, arena, error);
    case 'r':
        c->foreign_referer = true;
        return 0;
    default:
        return read_when(c, text, arena, error);
    }
}

/* Reads the conditions up to an empty line, which is removed from `*text`, too. Returns 0 or -errno. */
static int read_sections(struct conditions s[2], struct mk_str *text, struct mk_arena *arena, struct mk_buf *error)
{
    int err = 0;
    for (;;) {
        const char *end = text->len ? memchr(text->p, '\n', text->len) : NULL;
        if (!end)
            return -EINVAL;
        struct mk_str line = mk_str(text->p, (size_t)(end - text->p));
        *text = mk_str(end + 1, text->len - line.len - 1);
        if (!line.len)
            return err;
        if (line.len > 2 && err == 0)
            err = read_condition(&s[line.p[0] == 'b'], line.p[1], mk_str(line.p + 2, line.len - 2), arena, error);
    }
}

static void check(const struct conditions s[2], struct mk_request *req)
{
    struct mk_str path = mk_request_path(req);
    struct conditions_subject subject = {.req = req,
                                         .path = path.len && path.p[0] == '/' ? path : MK_STR("/"),
                                         .method = mk_request_method_name(req)};
    int first = conditions_match(&s[0], &subject), second = conditions_match(&s[1], &subject);
    if (first > 1 || second > 1)
        abort();
    if (conditions_cover(&s[0], &s[1]) && second == 1 && first == 0)
        abort();
}

static struct mk_generation generation;
static struct mk_host host = {.generation = &generation};

/* A host with a name, which a Referer may have. */
static void prepare_host(struct mk_arena *arena)
{
    static const struct mk__settings settings;
    const char *reason;
    const struct mk__vhost *first;
    generation.settings = &settings;
    if (mk__vhost_init(&generation.vhosts, arena, 1) < 0 ||
        mk__vhost_add(&generation.vhosts, MK_STR("example.org"), &host, 0, &reason, &first) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mk__parse_limits limits = {8192, 16384, FIELDS};
    static struct mk_worker worker = {.generation = &generation};
    struct mk_request req = {.worker = &worker, .app_data = &host};
    struct mk_field fields[FIELDS];
    struct conditions sections[2] = {0};
    struct mk_arena arena;
    struct mk_buf error;
    struct mk_str text = mk_str((const char *)data, size);
    if (size > 16384)
        return 0;
    mk_arena_init(&arena, NULL, ARENA_BYTES, NULL, 0);
    mk_arena_init(&req.arena, NULL, ARENA_BYTES, NULL, 0);
    mk_buf_init(&error, 1 << 16);
    prepare_host(&arena);
    int err = read_sections(sections, &text, &arena, &error);
    req.base = text.p;
    req.fields = fields;
    if (err == 0 && mk__parse_head(&req.parse, fields, &limits, text) == 0 &&
        mk__request_head_read(&req.parse, fields, text.p, NULL, &req.head) == 0 && mk__request_decode_path(&req) == 0)
        check(sections, &req);
    mk_buf_release(&error);
    mk_arena_release(&arena);
    mk_arena_release(&req.arena);
    return 0;
}
