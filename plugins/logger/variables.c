// SPDX-License-Identifier: Apache-2.0
#include "logger.h"

#include <monkey/base/time.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <stdio.h>

/* Returns 0 (never escaped), 1 (a blank) or 2 (always escaped). */
static uint8_t get_char_class(unsigned char c)
{
    if (c == ' ')
        return 1;
    return c < 0x20 || c >= 0x7f || c == '"' || c == '\\' ? 2 : 0;
}

static char *put_escape(char *at, const char *prefix, size_t len, unsigned char c)
{
    memcpy(at, prefix, len);
    at[len] = "0123456789abcdef"[c >> 4];
    at[len + 1] = "0123456789abcdef"[c & 15];
    return at + len + 2;
}

void line_put_value(struct line *l, struct mk_str s, enum line_form form)
{
    assert(line_length(l) + l->left <= LINE_BYTES_MAX);
    const char *prefix = form == LINE_JSON ? "\\u00" : "\\x";
    size_t prefix_len = form == LINE_JSON ? 4 : 2;
    uint8_t class_max = form == LINE_WORD ? 0 : 1;
    char *at = l->at, *stop = at + (l->left > l->kept ? l->left - l->kept : 0);
    size_t i = 0;
    for (; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (MK_LIKELY(get_char_class(c) <= class_max)) {
            if (at == stop)
                break;
            *at++ = (char)c;
            continue;
        }
        if ((size_t)(stop - at) < prefix_len + 2)
            break;
        at = put_escape(at, prefix, prefix_len, c);
    }
    l->cut = l->cut || i < s.len;
    l->left -= (size_t)(at - l->at);
    l->at = at;
}

void line_put_number(struct line *l, uint64_t value)
{
    char digits[20];
    size_t n = sizeof(digits);
    do
        digits[--n] = (char)('0' + value % 10);
    while (value /= 10);
    line_put(l, mk_str(digits + n, sizeof(digits) - n));
}

static_assert(sizeof(((struct line *)0)->clf) <= LINE_VARIABLE_FIXED, "a time is a field of fixed size");

void line_set_time(struct line *l, int64_t second, uint32_t ms)
{
    assert(ms < 1000);
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    l->ms = ms;
    if (l->second == second && l->clf[0])
        return;
    l->second = second;
    if (!mk_time_iso(second, l->iso))
        mk_time_iso(0, l->iso);
    unsigned month = (unsigned)(l->iso[5] - '0') * 10 + (unsigned)(l->iso[6] - '0');
    snprintf(l->clf, sizeof(l->clf), "%.2s/%s/%.4s:%.8s +0000", l->iso + 8, months[(month - 1) % 12], l->iso,
             l->iso + 11);
}

void line_put_iso(struct line *l)
{
    char ms[] = {'.', (char)('0' + l->ms / 100 % 10), (char)('0' + l->ms / 10 % 10), (char)('0' + l->ms % 10), 'Z'};
    line_put(l, mk_str_c(l->iso));
    line_put(l, mk_str(ms, sizeof(ms)));
}

/* ── times ── */

static void put_quote(struct line *l, const struct log_op *op)
{
    if (op->form == LINE_JSON)
        line_put_char(l, '"');
}

static void put_clf(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    (void)e;
    put_quote(l, op);
    line_put(l, mk_str_c(l->clf));
    put_quote(l, op);
}

static void put_iso(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    (void)e;
    put_quote(l, op);
    line_put_iso(l);
    put_quote(l, op);
}

static void put_unix(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    (void)e;
    (void)op;
    line_put_number(l, (uint64_t)l->second);
}

static void put_unix_ms(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    (void)e;
    (void)op;
    line_put_number(l, (uint64_t)l->second * 1000 + l->ms);
}

static bool get_request_time(const struct log_entry *e, uint64_t *ret)
{
    uint64_t began = mk_request_began_us(e->req);
    if (began)
        *ret = mk_loop_now_us(mk_request_loop(e->req)) - began;
    return began;
}

static bool get_first_byte(const struct log_entry *e, uint64_t *ret)
{
    uint64_t began = mk_request_began_us(e->req), answered = mk_response_began_us(e->req);
    if (began && answered)
        *ret = answered - began;
    return began && answered;
}

/* ── the request ── */

static void put_request(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    struct mk_str parts[] = {mk_request_method_name(e->req), mk_request_target(e->req), mk_request_protocol(e->req)};
    put_quote(l, op);
    if (!parts[0].len)
        line_put_char(l, '-');
    for (unsigned i = 0; i < MK_COUNT_OF(parts) && parts[i].len; i++) {
        if (i)
            line_put_value(l, MK_STR(" "), op->form);
        line_put_value(l, parts[i], op->form);
    }
    put_quote(l, op);
}

static struct mk_str get_own_note(const struct log_entry *e, const struct log_op *op)
{
    return mk_request_get_note(e->req, mk_str_c(op->variable->name));
}

/* A note with the name of the variable that is a number. */
static void put_own_number(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    uint64_t value;
    if (mk_str_u64(get_own_note(e, op), UINT64_MAX, &value))
        line_put_number(l, value);
    else
        line_put(l, op->form == LINE_JSON ? MK_STR("null") : MK_STR("-"));
}

static bool get_bytes_in(const struct log_entry *e, uint64_t *ret)
{
    *ret = mk_request_bytes_received(e->req);
    return true;
}

static bool get_body_bytes_in(const struct log_entry *e, uint64_t *ret)
{
    *ret = mk_request_bytes_received(e->req) - mk_request_head_bytes(e->req);
    return true;
}

/* ── the response ── */

static bool get_status(const struct log_entry *e, uint64_t *ret)
{
    *ret = (uint64_t)mk_response_get_status(e->req);
    return true;
}

static bool get_bytes_out(const struct log_entry *e, uint64_t *ret)
{
    *ret = mk_response_head_bytes(e->req) + mk_request_bytes_sent(e->req);
    return true;
}

static bool get_body_bytes_out(const struct log_entry *e, uint64_t *ret)
{
    *ret = mk_request_bytes_sent(e->req);
    return true;
}

static struct mk_str get_response_header(const struct log_entry *e, const struct log_op *op)
{
    return mk_response_get_header(e->req, op->arg);
}

static struct mk_str get_reason(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mk_str_c(mk_reason_info(mk_request_reason(e->req))->name);
}

static void put_aborted(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    bool is = mk_request_aborted(e->req);
    if (op->form == LINE_JSON)
        line_put(l, is ? MK_STR("true") : MK_STR("false"));
    else
        line_put(l, is ? MK_STR("aborted") : MK_STR("-"));
}

static bool get_worker(const struct log_entry *e, uint64_t *ret)
{
    *ret = e->worker;
    return true;
}

const struct log_variable log_variables[] = {
    {.name = "time_clf", .put = put_clf, .doc = "when the exchange ended, as 20/Nov/2026:03:36:14 +0000"},
    {.name = "time_iso8601", .put = put_iso, .doc = "as 2026-11-20T03:36:14.123Z"},
    {.name = "time_unix", .put = put_unix, .doc = "in seconds since 1970"},
    {.name = "time_unix_ms", .put = put_unix_ms, .doc = "in milliseconds since 1970"},
    {.name = "request", .put = put_request, .doc = "method, target and protocol"},
    {.name = "status", .number = get_status, .doc = "the status of the response"},
    {.name = "reason", .text = get_reason, .doc = "why a file was not sent, or a body refused"},
    {.name = "bytes_in", .number = get_bytes_in, .doc = "bytes of the request"},
    {.name = "body_bytes_in", .number = get_body_bytes_in, .doc = "bytes of its body"},
    {.name = "bytes_out", .number = get_bytes_out, .doc = "bytes of the response"},
    {.name = "body_bytes_out", .number = get_body_bytes_out, .doc = "bytes of its body"},
    {.name = "request_time_us",
     .number = get_request_time,
     .doc = "from the first byte of the request to the end, in µs"},
    {.name = "first_byte_us", .number = get_first_byte, .doc = "until the first byte of the response was ready, in µs"},
    {.name = "aborted", .put = put_aborted, .doc = "whether the exchange ended before the response was complete"},
    {.name = "worker", .number = get_worker, .doc = "the number of the worker, from 0"},
    {.name = "upstream", .text = get_own_note, .doc = "the server that a request was forwarded to"},
    {.name = "upstream_status", .text = get_own_note, .doc = "the status of its response, or the type of its error"},
    {.name = "upstream_connect_us", .put = put_own_number, .doc = "how long connecting to it took, in µs"},
    {.name = "upstream_head_us", .put = put_own_number, .doc = "until the head of its response, in µs"},
    {.name = "upstream_us", .put = put_own_number, .doc = "until the end of its response, in µs"},
    {.name = "retries", .put = put_own_number, .doc = "how often the request was forwarded again"},
    {.name = "response_",
     .text = get_response_header,
     .arg = MK_VARIABLE_ARG_HEADER,
     .doc = "any header of the response"},
    {0},
};

static void put_text(struct line *l, struct mk_str text, enum line_form form)
{
    if (form != LINE_JSON) {
        if (text.len)
            line_put_value(l, text, form);
        else
            line_put_char(l, '-');
        return;
    }
    if (!text.p) {
        line_put(l, MK_STR("null"));
        return;
    }
    line_put_char(l, '"');
    line_put_value(l, text, form);
    line_put_char(l, '"');
}

void variables_put(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    const struct log_variable *variable = op->variable;
    uint64_t value;
    assert(op->request_variable || variable->put || variable->text || variable->number);
    if (op->request_variable)
        put_text(l, op->request_variable->get(e->req, op->arg), op->form);
    else if (variable->put)
        variable->put(l, e, op);
    else if (variable->text)
        put_text(l, variable->text(e, op), op->form);
    else if (variable->number(e, &value))
        line_put_number(l, value);
    else
        line_put(l, op->form == LINE_JSON ? MK_STR("null") : MK_STR("-"));
}
