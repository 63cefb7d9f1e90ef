// SPDX-License-Identifier: Apache-2.0
/*
 * The HTTP context of a thread: buffers for other settings, and the Server and Date lines, formatted once a second.
 */
#include "http/context.h"

#include "http/message/date.h"

#include <assert.h>
#include <errno.h>

void mk__context_free_buffers(struct mk__context_buffers *b)
{
    mk_account_free(NULL, b->in, b->in_bytes);
    mk_account_free(NULL, b->fields, b->fields_max * sizeof(*b->fields));
    *b = (struct mk__context_buffers){0};
}

/* Buffers never shrink: input that connections have saved must still fit. */
int mk__context_alloc_buffers(const struct mk__context *http, const struct mk__http_settings *settings,
                              struct mk__context_buffers *ret)
{
    size_t in_bytes = settings->head.head_bytes_max + MK__READ_BYTES;
    uint32_t fields_max = settings->head.fields_max;
    *ret = (struct mk__context_buffers){0};
    if (in_bytes > http->in.size) {
        ret->in = mk_account_alloc(NULL, in_bytes);
        ret->in_bytes = in_bytes;
    }
    if (fields_max > http->fields_max) {
        ret->fields = mk_account_alloc(NULL, fields_max * sizeof(*ret->fields));
        ret->fields_max = fields_max;
    }
    if ((ret->in_bytes && !ret->in) || (ret->fields_max && !ret->fields)) {
        mk__context_free_buffers(ret);
        return -ENOMEM;
    }
    return 0;
}

static MK_NOINLINE void format_lines(struct mk__context *http, int64_t now)
{
    struct mk_buf b;
    char date[MK__DATE_BYTES + 1];
    size_t n = mk__date_format(now, date);
    mk_buf_init_fixed(&b, http->ok_lines, sizeof(http->ok_lines));
    mk_buf_adds(&b, MK_STR(MK__OK_LINE));
    mk_buf_adds(&b, http->settings->server_line);
    mk_buf_adds(&b, MK_STR("Date: "));
    mk_buf_add(&b, date, n);
    mk_buf_adds(&b, MK_STR("\r\n"));
    assert(b.err == 0 && b.len <= UINT8_MAX);
    http->ok_lines_len = (uint8_t)b.len;
    http->date_seconds = now;
}

/* Formats the lines once a second. */
static void update_lines(struct mk__context *http)
{
    int64_t now = mk_loop_wall_seconds(http->loop);
    if (http->date_seconds != now)
        format_lines(http, now);
}

struct mk_str mk__context_date_lines(struct mk__context *http)
{
    enum { STATUS_BYTES = sizeof(MK__OK_LINE) - 1 };
    update_lines(http);
    return mk_str(http->ok_lines + STATUS_BYTES, http->ok_lines_len - STATUS_BYTES);
}

struct mk_str mk__context_date(struct mk__context *http)
{
    struct mk_str lines = mk__context_ok_lines(http);
    return mk_str(lines.p + lines.len - strlen("\r\n") - MK__DATE_BYTES, MK__DATE_BYTES);
}

struct mk_str mk__context_ok_lines(struct mk__context *http)
{
    update_lines(http);
    return mk_str(http->ok_lines, http->ok_lines_len);
}
