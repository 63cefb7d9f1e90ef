// SPDX-License-Identifier: Apache-2.0
/*
 * Heads that services print (raw_head.h).
 */
#include "request/raw_head.h"

#include "request/header.h"
#include "request/request.h"

#include <errno.h>

enum { HEAD_BYTES_MAX = 16 * 1024 };

struct raw_head {
    struct mk_buf text;
};

/* ── pure functions ── */

bool raw_head_next_line(struct mk_str *rest, struct mk_str *ret_line)
{
    if (!rest->len || !memchr(rest->p, '\n', rest->len))
        return false;
    *ret_line = mk_str_split_line(rest);
    return true;
}

size_t raw_head_length(struct mk_str text)
{
    struct mk_str rest = text, line;
    while (raw_head_next_line(&rest, &line))
        if (line.len == 0)
            return text.len - rest.len;
    return 0;
}

int raw_head_status(struct mk_str line)
{
    uint64_t status, major, minor;
    struct mk_str http = MK_STR("HTTP/1.1 ");
    if (!mk_str_starts(line, MK_STR("HTTP/")) || line.len < http.len + 3 || line.p[6] != '.' || line.p[8] != ' ')
        return -EINVAL;
    bool ends = line.len == http.len + 3 || line.p[http.len + 3] == ' ';
    bool has_version = mk_str_u64(mk_str(line.p + 5, 1), 9, &major) && mk_str_u64(mk_str(line.p + 7, 1), 9, &minor);
    return ends && has_version && mk_str_u64(mk_str(line.p + http.len, 3), 599, &status) ? (int)status : -EINVAL;
}

/* ── gathering ── */

int raw_head_begin(struct duda_request *dr)
{
    assert(!dr->raw);
    dr->raw = mk_arena_zalloc(mk_request_arena(dr->req), sizeof(*dr->raw));
    if (!dr->raw)
        return -ENOMEM;
    mk_buf_init(&dr->raw->text, HEAD_BYTES_MAX);
    request_use(dr, FEATURE_RAW_HEAD);
    return 0;
}

void raw_head_free(struct duda_request *dr)
{
    if (dr->raw)
        mk_buf_release(&dr->raw->text);
    dr->raw = NULL;
}

static int apply_head(struct duda_request *dr, struct mk_str head)
{
    struct mk_str line;
    int status = raw_head_next_line(&head, &line) ? raw_head_status(line) : -EINVAL;
    int err = status < 0 ? status : mk_response_set_status(dr->req, status);
    while (err == 0 && raw_head_next_line(&head, &line) && line.len)
        err = header_add_row(dr, line);
    return err;
}

int raw_head_add(struct duda_request *dr, struct mk_str data, struct mk_str *ret_rest)
{
    struct mk_buf *text = &dr->raw->text;
    size_t before = text->len, taken = data.len < HEAD_BYTES_MAX - before ? data.len : HEAD_BYTES_MAX - before;
    assert(before < HEAD_BYTES_MAX);
    *ret_rest = MK_STR_NONE;
    mk_buf_add(text, data.p, taken);
    if (text->err < 0)
        return text->err;
    size_t head_len = raw_head_length(mk_buf_str(text));
    if (head_len == 0)
        return text->len < HEAD_BYTES_MAX ? 0 : -EMSGSIZE;
    int err = apply_head(dr, mk_str(text->data, head_len));
    *ret_rest = mk_str(data.p + (head_len - before), data.len - (head_len - before));
    raw_head_free(dr);
    return err;
}
