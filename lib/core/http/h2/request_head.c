// SPDX-License-Identifier: Apache-2.0
/*
 * Checks and stores the head of http/h2/request_head.h. Nothing is stored that could be read as another field or line:
 * names and values are checked before, by the classes of bytes that the HTTP/1 parser has.
 */
#include "http/h2/request_head.h"

#include <assert.h>

/* ── the bytes ── */

/* Adds `len` bytes to the head. Returns their place, or NULL if they do not fit: spans describe UINT16_MAX at most. */
static char *add_bytes(struct mk__h2_request_head *h, size_t len)
{
    const uint32_t end = h->pseudo_at < UINT16_MAX ? h->pseudo_at : UINT16_MAX;
    assert(h->len <= end && h->pseudo_at <= h->size);
    if (len > end - h->len) {
        h->too_large = true;
        return NULL;
    }
    h->len += (uint32_t)len;
    return h->data + h->len - len;
}

static inline char *write_str(char *to, struct mk_str s)
{
    return s.len ? mempcpy(to, s.p, s.len) : to;
}

/* Copies a value to the end of the buffer, where it stays until the head is complete. */
static struct mk_str keep_value(struct mk__h2_request_head *h, struct mk_str s)
{
    if (s.len > h->pseudo_at - h->len) {
        h->too_large = true;
        return MK_STR("");
    }
    h->pseudo_at -= (uint32_t)s.len;
    write_str(h->data + h->pseudo_at, s);
    return mk_str(h->data + h->pseudo_at, s.len);
}

static struct mk_span span_of(size_t at, size_t len)
{
    return (struct mk_span){(uint16_t)at, (uint16_t)len};
}

static void put_field(struct mk__h2_request_head *h, uint8_t id, struct mk_str name, struct mk_str value)
{
    struct mk_head_parser *p = &h->parse;
    size_t at = h->len;
    h->too_many |= p->n_fields + h->joined >= h->limits.fields_max;
    if (h->too_many)
        return;
    char *to = add_bytes(h, name.len + strlen(": ") + value.len + strlen("\r\n"));
    if (!to)
        return;
    to = write_str(to, name);
    to = write_str(to, MK_STR(": "));
    to = write_str(to, value);
    write_str(to, MK_STR("\r\n"));
    h->fields[p->n_fields++] =
        (struct mk_field){span_of(at, name.len), span_of(at + name.len + strlen(": "), value.len), id};
    p->seen |= 1u << id;
}

/* The line is limited as that of HTTP/1, and -431 is due to fields. */
static void put_request_line(struct mk__h2_request_head *h, struct mk_str method, struct mk_str target)
{
    static const struct mk_str rest = MK_STR_INIT(" HTTP/1.1\r\n");
    const size_t len = method.len + strlen(" ") + target.len + rest.len;
    char *to = add_bytes(h, len);
    h->too_large |= len - strlen("\r\n") > h->limits.line_bytes_max;
    h->line_too_large = h->too_large;
    if (!to)
        return;
    to = write_str(to, method);
    to = write_str(to, MK_STR(" "));
    to = write_str(to, target);
    write_str(to, rest);
    h->parse.minor = 1;
    h->parse.method_name = span_of(0, method.len);
    h->parse.target = span_of(method.len + 1, target.len);
}

static void begin_head(struct mk__h2_request_head *h)
{
    bool extended = h->protocol.len != 0, connect = h->parse.method == MK_CONNECT && !extended;
    assert(!h->begun);
    h->begun = true;
    if (extended)
        h->parse.method = MK_GET;
    put_request_line(h, extended ? MK_STR("GET") : h->method, connect ? h->authority : h->path);
    if (h->authority.len)
        put_field(h, MK_HEADER_HOST, MK_STR("host"), h->authority);
    if (extended) {
        put_field(h, MK_HEADER_CONNECTION, MK_STR("connection"), MK_STR("upgrade"));
        put_field(h, MK_HEADER_UPGRADE, MK_STR("upgrade"), h->protocol);
    }
}

void mk__h2_request_head_init(struct mk__h2_request_head *h, char *data, uint32_t size, struct mk_field *fields,
                              const struct mk__parse_limits *limits)
{
    *h = (struct mk__h2_request_head){
        .fields = fields, .limits = *limits, .data = data, .size = size, .pseudo_at = size, .length = -1};
}

/* ── pseudo-header fields ── */

/* What a field is by itself, wherever it is: noted in the decoder's table, so that each field is checked once there. */
enum field_kind {
    KIND_UNKNOWN,
    KIND_MALFORMED,
    KIND_PSEUDO = 8,      /* + the row of `pseudo` */
    KIND_BAD_TARGET = 16, /* + the row: has bytes that no target has, and is answered as that of HTTP/1 */
    KIND_REGULAR = 32,    /* + enum mk_header_id */
};

enum { METHOD = 1, SCHEME = 2, PATH = 4, AUTHORITY = 8, PROTOCOL = 16 };

static const struct {
    struct mk_str name;
    size_t offset;
    uint8_t bit;
    bool (*is_valid)(struct mk_str value);
} pseudo[] = {
    {MK_STR(":authority"), offsetof(struct mk__h2_request_head, authority), AUTHORITY, mk__parse_is_target},
    {MK_STR(":method"), offsetof(struct mk__h2_request_head, method), METHOD, mk__parse_is_token},
    {MK_STR(":path"), offsetof(struct mk__h2_request_head, path), PATH, mk__parse_is_target},
    {MK_STR(":scheme"), offsetof(struct mk__h2_request_head, scheme), SCHEME, mk__parse_is_target},
    {MK_STR(":protocol"), offsetof(struct mk__h2_request_head, protocol), PROTOCOL, mk__parse_is_token},
};

/* The rows of `pseudo` by the index of the name in the static table of HPACK, which begins with them. */
static const uint8_t pseudo_by_index[] = {[1] = 0, [2 ... 3] = 1, [4 ... 5] = 2, [6 ... 7] = 3};

static_assert(MK_COUNT_OF(pseudo) <= KIND_PSEUDO, "a kind has room for the row");

static bool is_pseudo(const struct mk__hpack_row *row)
{
    return row->name.len && row->name.p[0] == ':';
}

static unsigned find_pseudo(const struct mk__hpack_row *row)
{
    unsigned i = 0;
    if (row->name_index && row->name_index < sizeof(pseudo_by_index))
        return pseudo_by_index[row->name_index];
    while (i < MK_COUNT_OF(pseudo) && !mk_str_eq(row->name, pseudo[i].name))
        i++;
    return i;
}

/* Only :authority may be empty. */
static bool is_valid_pseudo(unsigned i, struct mk_str value)
{
    return pseudo[i].is_valid(value) || (!value.len && pseudo[i].bit == AUTHORITY);
}

static bool is_bad_target(unsigned i, struct mk_str value)
{
    return pseudo[i].bit & (PATH | AUTHORITY) && value.len && mk__parse_is_value(value);
}

/* The rows of the static table need no check. */
static unsigned classify_pseudo(const struct mk__hpack_row *row)
{
    unsigned i = find_pseudo(row);
    if (i == MK_COUNT_OF(pseudo))
        return KIND_MALFORMED;
    if (row->static_index || is_valid_pseudo(i, row->value))
        return KIND_PSEUDO + i;
    return is_bad_target(i, row->value) ? KIND_BAD_TARGET + i : KIND_MALFORMED;
}

static bool is_http(struct mk_str scheme)
{
    return mk_str_ieq(scheme, MK_STR("http")) || mk_str_ieq(scheme, MK_STR("https"));
}

/* They come before all other fields, each of them once. A row of the static table lasts, others are copied. */
static void add_pseudo(struct mk__h2_request_head *h, const struct mk__hpack_row *row, unsigned kind)
{
    const unsigned i = kind % KIND_PSEUDO;
    struct mk_str *value = (void *)((char *)h + pseudo[i].offset);
    h->malformed |= h->seen & pseudo[i].bit || h->begun;
    if (h->malformed)
        return;
    h->seen |= pseudo[i].bit;
    if (kind >= KIND_BAD_TARGET)
        h->bad_target = true;
    else
        *value = row->static_index ? row->value : keep_value(h, row->value);
    if (pseudo[i].bit == METHOD)
        h->parse.method = (uint8_t)mk__parse_method(row->value);
    else if (pseudo[i].bit == SCHEME)
        h->is_http = is_http(row->value);
}

/* ── other fields ── */

bool mk__h2_request_head_is_of_connection(struct mk_str name)
{
    static const struct mk_str names[] = {MK_STR("upgrade"), MK_STR("connection"), MK_STR("keep-alive"),
                                          MK_STR("proxy-connection"), MK_STR("transfer-encoding")};
    static const uint32_t lengths = 1u << 7 | 1u << 10 | 1u << 16 | 1u << 17; /* of these names */
    if (name.len >= 32 || !(lengths >> name.len & 1))
        return false;
    return mk_str_is_any(name, names, MK_COUNT_OF(names));
}

static bool is_valid_field(const struct mk__hpack_row *row, unsigned id)
{
    if (!row->name_index && !mk__parse_is_lower_token(row->name)) /* names of the static table are tokens */
        return false;
    if (!mk__parse_is_value(row->value) || mk__h2_request_head_is_of_connection(row->name))
        return false;
    return id != MK_HEADER_TE || mk_str_ieq(row->value, MK_STR("trailers"));
}

bool mk__h2_request_head_is_valid_field(const struct mk__hpack_row *row)
{
    return !is_pseudo(row) && is_valid_field(row, mk__parse_header_id(row->name));
}

static bool is_connect(const struct mk__h2_request_head *h)
{
    return mk_str_eq(h->method, MK_STR("CONNECT"));
}

/* Reads Content-Length, which may come once. What follows a CONNECT is no body. */
static void read_length(struct mk__h2_request_head *h, struct mk_str value)
{
    uint64_t length = 0;
    h->malformed |= h->length >= 0 || !mk_str_u64(value, INT64_MAX, &length);
    h->length = is_connect(h) ? -1 : (int64_t)length;
}

/*
 * Joins a cookie field to the first one: HTTP/1 has only one, and some backends read only one (section 8.2.3). It still
 * counts as a field, which limits how often the bytes after the first one are moved.
 */
static void join_cookie(struct mk__h2_request_head *h, struct mk_str value)
{
    static const struct mk_str separator = MK_STR_INIT("; ");
    struct mk_field *f = h->fields, *end = h->fields + h->parse.n_fields;
    const size_t len = separator.len + value.len, old_len = h->len;
    h->too_many |= h->parse.n_fields + h->joined >= h->limits.fields_max;
    if (h->too_many)
        return;
    h->joined++;
    if (!add_bytes(h, len))
        return;
    while (f->id != MK_HEADER_COOKIE)
        f++;
    char *at = h->data + f->value.at + f->value.len;
    memmove(at + len, at, (size_t)(h->data + old_len - at));
    write_str(write_str(at, separator), value);
    f->value.len = (uint16_t)(f->value.len + len);
    while (++f < end) {
        f->name.at = (uint16_t)(f->name.at + len);
        f->value.at = (uint16_t)(f->value.at + len);
    }
}

static void add_field(struct mk__h2_request_head *h, const struct mk__hpack_row *row, uint8_t id)
{
    if (id == MK_HEADER_CONTENT_LENGTH)
        read_length(h, row->value);
    if (h->malformed)
        return;
    if (!h->begun)
        begin_head(h);
    /* Host repeats the authority (RFC 9113 section 8.3.1); if it differs, the two hosts are refused. */
    if (id == MK_HEADER_HOST && h->authority.len && mk_str_ieq(row->value, h->authority))
        return;
    h->has_priority |= id == MK_HEADER_OTHER && mk_str_eq(row->name, MK_STR("priority"));
    if (id == MK_HEADER_COOKIE && h->parse.seen & 1u << id)
        join_cookie(h, row->value);
    else
        put_field(h, id, row->name, row->value);
}

/* ── all fields ── */

static unsigned classify_field(const struct mk__hpack_row *row)
{
    if (is_pseudo(row))
        return classify_pseudo(row);
    uint8_t id = mk__parse_header_id(row->name);
    return is_valid_field(row, id) ? KIND_REGULAR + id : KIND_MALFORMED;
}

/* Returns the kind of a field, which it notes in its entry of the table. */
static unsigned find_kind(const struct mk__hpack_row *row)
{
    if (row->note && *row->note)
        return *row->note;
    unsigned kind = classify_field(row);
    if (row->note)
        *row->note = (uint8_t)kind;
    return kind;
}

/* A field without its end: the head is too large. It is not the request line, if that is complete. */
static void add_truncated_field(struct mk__h2_request_head *h, const struct mk__hpack_row *row)
{
    if (!is_pseudo(row) && !h->begun)
        begin_head(h);
    h->too_large = true;
}

void mk__h2_request_head_add(struct mk__h2_request_head *h, const struct mk__hpack_field *field)
{
    if (h->too_large || h->malformed)
        return;
    if (field->cut) {
        add_truncated_field(h, &field->row);
        return;
    }
    unsigned kind = find_kind(&field->row);
    if (kind >= KIND_REGULAR)
        add_field(h, &field->row, (uint8_t)(kind - KIND_REGULAR));
    else if (kind == KIND_MALFORMED)
        h->malformed = true;
    else
        add_pseudo(h, &field->row, kind);
}

/* ── the whole head ── */

static bool is_asterisk(const struct mk__h2_request_head *h)
{
    return h->parse.method == MK_OPTIONS && mk_str_eq(h->path, MK_STR("*"));
}

bool mk__h2_request_head_is_well_formed(const struct mk__h2_request_head *h)
{
    const uint8_t needed = METHOD | SCHEME | PATH;
    bool extended = h->seen & PROTOCOL;
    if (h->malformed || h->too_large || h->bad_target)
        return !h->malformed;
    if (is_connect(h) && !extended)
        return h->seen == (METHOD | AUTHORITY);
    if (extended && (!is_connect(h) || !h->authority.len))
        return false;
    if ((h->seen & needed) != needed || !(h->authority.len || h->parse.seen & 1u << MK_HEADER_HOST))
        return false;
    return !h->is_http || is_asterisk(h) || mk_str_starts(h->path, MK_STR("/"));
}

/* Returns whether the target is a path or `*` (OPTIONS), with a scheme that is served. CONNECT has neither. */
static bool is_valid_target(const struct mk__h2_request_head *h)
{
    if (is_connect(h) && !h->protocol.len)
        return true;
    return h->is_http && (is_asterisk(h) || mk_str_starts(h->path, MK_STR("/")));
}

int mk__h2_request_head_end(struct mk__h2_request_head *h, bool body)
{
    if (h->bad_target)
        return -400;
    if (!h->begun)
        begin_head(h);
    if (body && h->length < 0 && !is_connect(h)) /* a tunnel has no body */
        put_field(h, MK_HEADER_TRANSFER_ENCODING, MK_STR("transfer-encoding"), MK_STR("chunked"));
    char *to = add_bytes(h, strlen("\r\n"));
    if (to)
        write_str(to, MK_STR("\r\n"));
    h->too_large |= h->len > h->limits.head_bytes_max;
    if (h->too_large)
        return h->line_too_large ? -414 : -431;
    h->parse.phase = MK__PARSE_DONE;
    h->parse.head_len = (uint16_t)h->len;
    if (h->too_many)
        return -431;
    return is_valid_target(h) ? 0 : -400;
}
