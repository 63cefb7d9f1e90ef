// SPDX-License-Identifier: Apache-2.0
/*
 * Begins traces.
 */
#include "proxy.h"

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/base/escape.h>
#include <monkey/base/random.h>

#include <inttypes.h>
#include <stdio.h>

enum {
    TRACE_DIGITS = 32,
    SPAN_DIGITS = 16,
    UUID_BYTES = 36,
    /* version-trace-span-flags */
    TRACE_AT = 3,
    SPAN_AT = TRACE_AT + TRACE_DIGITS + 1,
    FLAGS_AT = SPAN_AT + SPAN_DIGITS + 1,
    VALUE_BYTES = FLAGS_AT + 2,
    RANDOM_DIGITS = 14, /* of the ID, at its end */
    DECIDING_DIGITS = 10,
};

/* ── TraceSample ── */

/* Reads digits and up to four decimals. Returns millionths of a percentage, or -1. */
static int32_t read_share(struct mk_str text)
{
    enum { DECIMALS = 4 };
    struct mk_str whole = mk_str_split(&text, '.');
    uint64_t percent, decimals = 0;
    if (!mk_str_u64(whole, 100, &percent) || text.len > DECIMALS || (text.len && !mk_str_u64(text, 9999, &decimals)))
        return -1;
    for (size_t i = text.len; i < DECIMALS; i++)
        decimals *= 10;
    uint64_t share = percent * (TRACE_ALL / 100) + decimals;
    return share <= TRACE_ALL ? (int32_t)share : -1;
}

int trace_parse_share(const struct mk_conf_value *value, void *share, struct mk_arena *arena, struct mk_buf *error)
{
    int32_t *to = share, read = value->n == 1 ? read_share(mk_str_strip_end(value->text, "%")) : -1;
    bool is_off = mk_conf_is_off(value);
    (void)arena;
    if (read < 0 && !is_off)
        return mk_conf_fail(error,
                            "it takes a percentage from 0 to 100 with up to four decimals, such as 0.5%, or Off");
    *to = is_off ? TRACE_OFF : read;
    return 0;
}

/* ── values ── */

/* Tells whether a text has hexadecimal digits in lower case only, and not only zeros. */
static bool is_id(struct mk_str s)
{
    bool is_hex = true, is_zero = true;
    for (size_t i = 0; i < s.len; i++) {
        is_hex &= (uint8_t)(s.p[i] - '0') < 10 || (uint8_t)(s.p[i] - 'a') < 6;
        is_zero &= s.p[i] == '0';
    }
    return is_hex && !is_zero;
}

static bool is_byte(const char *p)
{
    return mk_str_visible_len(mk_str(p, 2), "ABCDEF") == 2 && mk_hex_value(p[0]) >= 0 && mk_hex_value(p[1]) >= 0;
}

bool trace_is_valid(struct mk_str v)
{
    if (v.len < VALUE_BYTES || v.p[TRACE_AT - 1] != '-' || v.p[SPAN_AT - 1] != '-' || v.p[FLAGS_AT - 1] != '-' ||
        !is_byte(v.p) || !is_byte(v.p + FLAGS_AT) || !is_id(mk_str(v.p + TRACE_AT, TRACE_DIGITS)) ||
        !is_id(mk_str(v.p + SPAN_AT, SPAN_DIGITS)) || memcmp(v.p, "ff", 2) == 0)
        return false;
    bool is_first_version = memcmp(v.p, "00", 2) == 0;
    return v.len == VALUE_BYTES || (!is_first_version && v.p[VALUE_BYTES] == '-');
}

bool trace_is_sampled(struct mk_str id, int32_t share)
{
    size_t first = id.len - RANDOM_DIGITS;
    uint64_t value = 0;
    for (size_t i = first; i < first + DECIDING_DIGITS; i++)
        value = value << 4 | (uint64_t)mk_hex_value(id.p[i]);
    return value * TRACE_ALL < (uint64_t)share << (4 * DECIDING_DIGITS);
}

bool trace_replaces(struct mk_str name)
{
    return mk_str_ieq(name, MK_STR("traceparent")) || mk_str_ieq(name, MK_STR("tracestate"));
}

/* ── requests ── */

/* Tells whether the client has sent one line of traceparent, and that is valid. */
static bool has_valid_trace(struct mk_request *req)
{
    struct mk_str name, value, found = MK_STR("");
    unsigned n = 0;
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++) {
        if (!mk_str_ieq(name, MK_STR("traceparent")))
            continue;
        found = value;
        n++;
    }
    return n == 1 && trace_is_valid(found);
}

static bool is_trace_id(struct mk_str id)
{
    return id.len == TRACE_DIGITS && is_id(id) && is_id(mk_str_after(id, SPAN_DIGITS)); /* which is the span */
}

/*
 * Writes the ID of a trace: that of the request if it can be one, or its digits if it is a UUID, so that both are found
 * with one search; else a random one. Returns false if the system has no random bytes.
 */
static bool make_trace_id(struct mk_str id, char to[TRACE_DIGITS + 1])
{
    uint64_t random[2];
    size_t n = 0;
    for (size_t i = 0; i < id.len && n < TRACE_DIGITS; i++)
        if (id.len != UUID_BYTES || id.p[i] != '-')
            to[n++] = id.len == UUID_BYTES ? mk_lower(id.p[i]) : id.p[i];
    if ((id.len == UUID_BYTES || id.len == TRACE_DIGITS) && is_trace_id(mk_str(to, n)))
        return true;
    if (mk_random(random, sizeof(random)) < 0)
        return false;
    snprintf(to, TRACE_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, random[0], random[1] | 1);
    return true;
}

static struct mk_str make_trace(struct mk_request *req, int32_t share)
{
    char id[TRACE_DIGITS + 1];
    MK_BUF_ON_STACK(value, VALUE_BYTES + 1);
    if (!make_trace_id(mk_request_id(req), id))
        return MK_STR("");
    bool is_sampled = trace_is_sampled(mk_str(id, TRACE_DIGITS), share);
    mk_buf_addf(&value, "00-%.*s-%.*s-%s", TRACE_DIGITS, id, SPAN_DIGITS, id + TRACE_DIGITS - SPAN_DIGITS,
                is_sampled ? "01" : "00");
    return mk_arena_dup(mk_request_arena(req), mk_buf_str(&value));
}

struct mk_str trace_begin(struct mk_request *req, int32_t share, const struct field_changes *changes)
{
    static const struct mk_str name = MK_STR_INIT("traceparent");
    struct mk_str noted = share == TRACE_OFF ? MK_STR("") : mk_request_get_note(req, name);
    if (share == TRACE_OFF || noted.len || fields_set(changes, name))
        return noted;
    if (!fields_replace(changes, name) && has_valid_trace(req))
        return MK_STR("");
    struct mk_str made = make_trace(req, share);
    mk_request_note(req, name, made); /* without memory the log does without it */
    return made;
}
