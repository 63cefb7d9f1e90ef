// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies of multipart/form-data: the parts do not depend on the pieces in which a body arrives, and names of files have
 * no folders. The first line of the input is Content-Type.
 */
#include "duda/core/request/multipart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

enum { TEXT_MAX = 8192 };

struct report {
    char text[4 * TEXT_MAX];
    size_t len;
    bool is_open;
};

static void add(struct report *r, struct mk_str s)
{
    CHECK(s.len <= sizeof(r->text) - r->len);
    if (s.len)
        memcpy(r->text + r->len, s.p, s.len);
    r->len += s.len;
}

static int begin(const struct multipart_part *part, void *ctx)
{
    struct report *r = ctx;
    CHECK(!r->is_open && part->name.p && part->name.len <= MULTIPART_HEAD_MAX);
    CHECK(!memchr(part->file_name.p, '/', part->file_name.len) &&
          !memchr(part->file_name.p, '\\', part->file_name.len));
    CHECK(!memchr(part->name.p, '\0', part->name.len) && (part->is_file || !part->file_name.len));
    r->is_open = true;
    add(r, MK_STR("["));
    add(r, part->name);
    add(r, part->file_name);
    if (part->type.p)
        add(r, part->type);
    return 0;
}

static int data(struct mk_str piece, void *ctx)
{
    struct report *r = ctx;
    CHECK(r->is_open && piece.len);
    add(r, piece);
    return 0;
}

static int end(void *ctx)
{
    struct report *r = ctx;
    CHECK(r->is_open);
    r->is_open = false;
    add(r, MK_STR("]"));
    return 0;
}

/* Returns false if it is no body of this type. `step`: the length of the pieces, which changes by one each time. */
static bool parse(struct mk_str type, struct mk_str body, size_t step, struct report *r, int *ret_err)
{
    static const struct multipart_events events = {begin, data, end};
    static struct multipart m;
    r->len = 0;
    r->is_open = false;
    if (multipart_init(&m, type) < 0)
        return false;
    *ret_err = 0;
    while (body.len && *ret_err == 0) {
        size_t n = step < body.len ? step : body.len;
        char *piece = malloc(n); /* its end is found by the sanitizer */
        CHECK(piece);
        memcpy(piece, body.p, n);
        *ret_err = multipart_feed(&m, mk_str(piece, n), &events, r);
        free(piece);
        body = mk_str(body.p + n, body.len - n);
        step = step % 97 + 1;
    }
    CHECK(*ret_err == 0 || *ret_err == -EBADMSG || *ret_err == -EMSGSIZE);
    if (*ret_err == 0 && !multipart_is_complete(&m))
        *ret_err = -EPIPE;
    CHECK(*ret_err || !r->is_open);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct report whole, pieces;
    static const size_t steps[] = {1, 2, 40};
    const char *text = (const char *)bytes, *line = size && size <= TEXT_MAX ? memchr(text, '\n', size) : NULL;
    int err, same;
    if (!line)
        return 0;
    struct mk_str type = mk_str(text, (size_t)(line - text));
    struct mk_str body = mk_str(line + 1, size - type.len - 1);
    if (!parse(type, body, SIZE_MAX, &whole, &err))
        return 0;
    for (size_t i = 0; i < MK_COUNT_OF(steps); i++) {
        CHECK(parse(type, body, steps[i], &pieces, &same));
        CHECK(same == err && pieces.len == whole.len && memcmp(pieces.text, whole.text, whole.len) == 0);
    }
    return 0;
}
