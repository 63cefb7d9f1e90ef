// SPDX-License-Identifier: Apache-2.0
/*
 * Reads answers.
 *
 *     header (12 bytes) │ question: name, type, class │ records: name, type, class, TTL, length, data │ ...
 */
#include "dns_answer.h"

#include <errno.h>
#include <stdbool.h>

enum { HEADER_BYTES = 12, FLAG_RESPONSE = 0x8000, POINTER = 0xc0, LABEL_BYTES_MAX = 63, ALIASES_MAX = 16 };

struct reader {
    const uint8_t *p;
    size_t len, at;
};

/* In lower case, without the dot of the root at its end. */
struct name {
    size_t len;
    char text[DNS_NAME_BYTES_MAX];
};

struct record {
    struct name owner;
    uint16_t type, class;
    uint32_t ttl_s;
    size_t data, end; /* of its data */
};

static bool has_bytes(const struct reader *r, size_t n)
{
    return r->len - r->at >= n;
}

/* The caller has checked that the bytes are there. */
static uint16_t read_u16(struct reader *r)
{
    uint16_t value = (uint16_t)(r->p[r->at] << 8 | r->p[r->at + 1]);
    r->at += 2;
    return value;
}

/* ── names ── */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static int add_label(struct name *name, const uint8_t *label, size_t len)
{
    if (len > LABEL_BYTES_MAX || name->len + (name->len > 0) + len > sizeof(name->text))
        return -EBADMSG;
    if (name->len)
        name->text[name->len++] = '.';
    for (size_t i = 0; i < len; i++) {
        char c = mk_lower((char)label[i]);
        if (!is_name_byte(c))
            return -EBADMSG;
        name->text[name->len++] = c;
    }
    return 0;
}

/* Reads a name, whose end may stand before it: each pointer leads to a place before the part that it ends. */
static int read_name(struct reader *r, struct name *ret)
{
    size_t at = r->at, start = at, end = 0; /* after the name; 0: not known yet */
    ret->len = 0;
    for (;;) {
        if (at >= r->len)
            return -EBADMSG;
        uint8_t length = r->p[at++];
        if (length >= POINTER) {
            if (at >= r->len)
                return -EBADMSG;
            size_t target = (size_t)(length - POINTER) << 8 | r->p[at++];
            end = end ? end : at;
            if (target >= start)
                return -EBADMSG;
            at = start = target;
        } else if (length) {
            if (r->len - at < length || add_label(ret, &r->p[at], length) < 0)
                return -EBADMSG;
            at += length;
        } else {
            r->at = end ? end : at;
            return 0;
        }
    }
}

static bool is_equal(const struct name *a, const struct name *b)
{
    return mk_str_eq(mk_str(a->text, a->len), mk_str(b->text, b->len));
}

/* ── records ── */

static int read_record(struct reader *r, struct record *ret)
{
    if (read_name(r, &ret->owner) < 0 || !has_bytes(r, 10))
        return -EBADMSG;
    ret->type = read_u16(r);
    ret->class = read_u16(r);
    ret->ttl_s = (uint32_t)read_u16(r) << 16;
    ret->ttl_s |= read_u16(r);
    if (ret->ttl_s > INT32_MAX) /* RFC 2181 section 8 */
        ret->ttl_s = 0;
    size_t bytes = read_u16(r);
    if (!has_bytes(r, bytes))
        return -EBADMSG;
    ret->data = r->at;
    ret->end = r->at += bytes;
    return 0;
}

/* Reads a name in the data of a record, which ends with it. */
static int read_name_data(const struct reader *r, size_t at, size_t end, struct name *ret)
{
    struct reader data = {r->p, end, at};
    return read_name(&data, ret) < 0 || data.at != end ? -EBADMSG : 0;
}

static int read_srv(const struct reader *r, const struct record *record, struct name *target, struct dns_record *ret)
{
    struct reader data = {r->p, record->end, record->data};
    if (!has_bytes(&data, 6))
        return -EBADMSG;
    ret->priority = read_u16(&data);
    ret->weight = read_u16(&data);
    ret->port = read_u16(&data);
    if (read_name_data(r, data.at, record->end, target) < 0)
        return -EBADMSG;
    ret->target = mk_str(target->text, target->len);
    return 0;
}

static int pass_record(const struct reader *r, const struct record *record, struct dns_record *to, dns_record_fn fn,
                       void *ctx)
{
    struct name target;
    to->address = r->p + record->data;
    if (record->type == DNS_SRV && read_srv(r, record, &target, to) < 0)
        return -EBADMSG;
    if (record->type != DNS_SRV && record->end - record->data != (record->type == DNS_A ? 4 : 16))
        return -EBADMSG;
    fn(to, ctx);
    return 0;
}

/* ── messages ── */

/* An answer whose records begin at `first`. */
struct answer {
    struct reader first;
    unsigned n;
    struct name name; /* of which records are searched */
    uint32_t ttl_s;   /* of the aliases that led there */
};

static int read_head(struct answer *a)
{
    struct reader *r = &a->first;
    if (!has_bytes(r, HEADER_BYTES))
        return -EBADMSG;
    r->at = 2;
    unsigned flags = read_u16(r), questions = read_u16(r);
    a->n = read_u16(r);
    r->at = HEADER_BYTES;
    if (!(flags & FLAG_RESPONSE) || questions != 1 || read_name(r, &a->name) < 0 || !has_bytes(r, 4))
        return -EBADMSG;
    r->at += 4;
    return 0;
}

static bool is_of_name(const struct answer *a, const struct record *record, uint16_t type)
{
    return record->type == type && record->class == DNS_CLASS_IN && is_equal(&record->owner, &a->name);
}

/* Replaces the name, if it is an alias, by the one that it means. Returns 1 if it was one, 0 or -EBADMSG. */
static int follow_alias(struct answer *a)
{
    struct reader r = a->first;
    struct record record;
    for (unsigned i = 0; i < a->n; i++) {
        if (read_record(&r, &record) < 0)
            return -EBADMSG;
        if (!is_of_name(a, &record, DNS_CNAME))
            continue;
        a->ttl_s = record.ttl_s < a->ttl_s ? record.ttl_s : a->ttl_s;
        return read_name_data(&r, record.data, record.end, &a->name) < 0 ? -EBADMSG : 1;
    }
    return 0;
}

static int pass_records(const struct answer *a, uint16_t type, dns_record_fn fn, void *ctx)
{
    struct reader r = a->first;
    struct record record;
    int n = 0;
    for (unsigned i = 0; i < a->n; i++) {
        if (read_record(&r, &record) < 0)
            return -EBADMSG;
        if (!is_of_name(a, &record, type))
            continue;
        struct dns_record to = {.ttl_s = record.ttl_s < a->ttl_s ? record.ttl_s : a->ttl_s};
        if (pass_record(&r, &record, &to, fn, ctx) < 0)
            return -EBADMSG;
        n++;
    }
    return n;
}

int dns_answer_each(struct mk_str message, uint16_t type, dns_record_fn fn, void *ctx)
{
    struct answer a = {.first = {(const uint8_t *)message.p, message.len, 0}, .ttl_s = INT32_MAX};
    if (read_head(&a) < 0)
        return -EBADMSG;
    for (unsigned i = 0; i <= ALIASES_MAX; i++) {
        int found = follow_alias(&a);
        if (found < 0)
            return found;
        if (found == 0)
            return pass_records(&a, type, fn, ctx);
    }
    return -EBADMSG;
}
