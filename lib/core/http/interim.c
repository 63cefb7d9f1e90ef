// SPDX-License-Identifier: Apache-2.0
/*
 * Interim responses (RFC 9110 section 15.2): checks and queues them. The protocol sends them before the final head.
 */
#include "http/request_extra.h"

#include <assert.h>
#include <errno.h>

static struct mk__interim *alloc_interim(struct mk_request *req, size_t len)
{
    struct mk__interim *interim = mk_account_alloc(req->http->account, sizeof(*interim) + len);
    if (interim)
        *interim = (struct mk__interim){.len = len};
    return interim;
}

static void write_lines(struct mk__interim *interim, const struct mk_header_field *fields, unsigned n)
{
    struct mk_buf lines;
    mk_buf_init_fixed(&lines, interim->lines, interim->len);
    for (unsigned i = 0; i < n; i++) {
        mk_buf_adds(&lines, fields[i].name);
        mk_buf_adds(&lines, MK_STR(": "));
        mk_buf_adds(&lines, fields[i].value);
        mk_buf_adds(&lines, MK_STR("\r\n"));
    }
    assert(!lines.err && lines.len == interim->len);
}

int mk__interim_add(struct mk_request *req, int status, const struct mk_header_field *fields, unsigned n)
{
    size_t len = mk__request_count_line_bytes(fields, n), bytes = sizeof(struct mk__interim) + len;
    struct mk__extra *extra = mk__extra_get(req);
    if (!extra)
        return -ENOMEM;
    if (n > MK_INTERIM_FIELDS_MAX || bytes > MK_INTERIM_BYTES_MAX - extra->interim_bytes)
        return -ENOBUFS;
    struct mk__interim *interim = alloc_interim(req, len);
    if (!interim)
        return -ENOMEM;
    interim->status = (uint16_t)status;
    write_lines(interim, fields, n);
    if (extra->first_interim)
        extra->last_interim->next = interim;
    else
        extra->first_interim = interim;
    extra->last_interim = interim;
    extra->interim_bytes += bytes;
    return 0;
}

void mk__interim_drop_first(struct mk_request *req)
{
    struct mk__extra *extra = req->extra;
    struct mk__interim *interim = extra->first_interim;
    size_t bytes = sizeof(*interim) + interim->len;
    assert(bytes <= extra->interim_bytes);
    extra->first_interim = interim->next;
    extra->interim_bytes -= bytes;
    mk_account_free(req->http->account, interim, bytes);
}

static bool are_valid(const struct mk_header_field *fields, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!mk__response_is_valid_field(fields[i].name, fields[i].value))
            return false;
    return true;
}

/* A client gets a 100 if it waits for one, and only one; HTTP/1.0 knows no interim responses. */
static bool is_wanted(const struct mk_request *req, int status)
{
    if (req->ops->major == 1 && req->parse.minor == 0)
        return false;
    return status != 100 || (mk__request_expects_continue(req) && req->body_state < MK__BODY_STATE_DISCARDING);
}

int mk_response_interim(struct mk_request *req, int status, const struct mk_header_field *fields, unsigned n)
{
    if (status < 100 || status > 199 || status == 101 || !are_valid(fields, n))
        return -EINVAL;
    if (req->output_state >= MK__OUTPUT_HOOKED || req->response_state != MK__RESPONSE_OPEN)
        return -EALREADY;
    if (!is_wanted(req, status))
        return 0;
    int err = mk__interim_add(req, status, fields, n);
    if (err < 0)
        return err;
    req->continue_sent |= status == 100;
    req->ops->wake(req);
    return 0;
}

bool mk_request_expects_continue(const struct mk_request *req)
{
    return mk__request_expects_continue(req);
}

void mk_request_hold_continue(struct mk_request *req)
{
    req->continue_held = true;
}
