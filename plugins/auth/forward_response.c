// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of servers with `Type Forward` (forward_response.h).
 */
#include "forward_response.h"

#include <errno.h>

/* What a client gets of a refusal; without a body of the server's only the rows before CONTENT. */
static const struct mk_str passed[] = {
    MK_STR_INIT("WWW-Authenticate"), MK_STR_INIT("Set-Cookie"),       MK_STR_INIT("Location"),
    MK_STR_INIT("Retry-After"),      MK_STR_INIT("Cache-Control"),    MK_STR_INIT("Content-Type"),
    MK_STR_INIT("Content-Encoding"), MK_STR_INIT("Content-Language"),
};

enum { COOKIE = 1, CONTENT = 5 };

enum forward_decision forward_decide(unsigned status)
{
    if (status >= 200 && status < 300)
        return FORWARD_PASS;
    bool is_redirect = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
    return is_redirect || (status >= 400 && status < 500) ? FORWARD_REFUSE : FORWARD_INVALID;
}

static struct mk_str get_name(const struct mk_http_response *r, unsigned n)
{
    return mk_span_str(r->head.p, r->fields[n].name);
}

static struct mk_str get_value(const struct mk_http_response *r, unsigned n)
{
    return mk_span_str(r->head.p, r->fields[n].value);
}

/* Returns the next line of a name from `n` on; the number of lines if there is none. */
static unsigned find_line(const struct mk_http_response *r, unsigned n, struct mk_str name)
{
    while (n < r->n_fields && !mk_str_ieq(get_name(r, n), name))
        n++;
    return n;
}

/* ── into the request ── */

/* Joins the lines from `first` on. Returns 0 or -ENOMEM. */
static int join_lines(struct mk_str *ret, const struct mk_http_response *r, unsigned first, struct mk_str name,
                      struct mk_arena *arena)
{
    size_t size = 0;
    for (unsigned n = first; n < r->n_fields; n = find_line(r, n + 1, name))
        size += get_value(r, n).len + 2;
    char *storage = mk_arena_alloc(arena, size);
    struct mk_buf text;
    if (!storage)
        return -ENOMEM;
    mk_buf_init_fixed(&text, storage, size);
    for (unsigned n = first; n < r->n_fields; n = find_line(r, n + 1, name)) {
        mk_buf_adds(&text, n > first ? MK_STR(", ") : MK_STR(""));
        mk_buf_adds(&text, get_value(r, n));
    }
    *ret = mk_buf_str(&text);
    return 0;
}

static int read_value(struct mk_str *ret, const struct mk_http_response *r, struct mk_str name, struct mk_arena *arena)
{
    unsigned first = find_line(r, 0, name);
    *ret = first < r->n_fields ? get_value(r, first) : MK_STR_NONE;
    return find_line(r, first + 1, name) < r->n_fields ? join_lines(ret, r, first, name, arena) : 0;
}

int forward_read_answer(struct forward_answer *ret, const struct forward_conf *conf,
                        const struct mk_http_response *response, struct mk_arena *arena)
{
    *ret = (struct forward_answer){.n = conf->copy.n};
    int err = conf->user_header.len ? read_value(&ret->user, response, conf->user_header, arena) : 0;
    for (uint32_t i = 0; i < conf->copy.n && err == 0; i++)
        err = read_value(&ret->values[i], response, conf->copy.items[i], arena);
    return err;
}

/* ── to the client ── */

/* Adds all lines of a header, up to FORWARD_COOKIES_MAX. Returns 0 or -ENOMEM. */
static int pass_lines(struct mk_request *req, const struct mk_http_response *r, struct mk_str name)
{
    unsigned passed_lines = 0;
    for (unsigned n = find_line(r, 0, name); n < r->n_fields; n = find_line(r, n + 1, name))
        if (passed_lines++ < FORWARD_COOKIES_MAX && mk_response_header(req, name, get_value(r, n)) == -ENOMEM)
            return -ENOMEM;
    return 0;
}

int forward_pass_cookies(struct mk_request *req, const struct mk_http_response *response)
{
    return pass_lines(req, response, passed[COOKIE]);
}

void forward_send_refusal(struct mk_request *req, const struct mk_http_response *response)
{
    bool has_body = response->is_whole && response->body.len;
    int err = 0;
    if (!has_body)
        mk_response_error(req, (int)response->status);
    else
        mk_response_set_status(req, (int)response->status);
    for (unsigned i = 0; i < (has_body ? MK_COUNT_OF(passed) : (size_t)CONTENT) && err == 0; i++)
        err = pass_lines(req, response, passed[i]);
    if (has_body && err == 0)
        err = mk_response_write(req, response->body);
    if (err < 0)
        mk_response_error(req, 503);
    else if (has_body)
        mk_response_end(req);
}
