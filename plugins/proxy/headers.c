// SPDX-License-Identifier: Apache-2.0
#include "proxy.h"

#include <monkey/base/buf.h>

#include <errno.h>

/* ── headers that are not just passed on ── */

struct row {
    struct mk_str name;
    uint8_t request, response; /* enum header_rule */
};

#define ROW(text, request, response) \
    { \
        MK_STR_INIT(text), request, response \
    }

/* Sorted by length, so that a lookup compares few. */
static const struct row rules[] = {
    ROW("if", HEADER_IF, HEADER_PASS),
    ROW("te", HEADER_DROP, HEADER_DROP),
    ROW("via", HEADER_SET, HEADER_PASS),
    ROW("date", HEADER_PASS, HEADER_DATE),
    ROW("host", HEADER_SET, HEADER_PASS),
    ROW("link", HEADER_PASS, HEADER_LINK),
    ROW("proxy", HEADER_DROP, HEADER_PASS), /* httpoxy: HTTP_PROXY of CGI */
    ROW("cookie", HEADER_PASS, HEADER_PASS),
    ROW("expect", HEADER_DROP, HEADER_DROP),
    ROW("server", HEADER_PASS, HEADER_DROP),
    ROW("refresh", HEADER_PASS, HEADER_REFRESH),
    ROW("trailer", HEADER_DROP, HEADER_PASS), /* of a request: trailers_announce() */
    ROW("upgrade", HEADER_DROP, HEADER_DROP),
    ROW("location", HEADER_PASS, HEADER_LOCATION),
    ROW("forwarded", HEADER_SET, HEADER_PASS),
    ROW("x-real-ip", HEADER_SET, HEADER_PASS),
    ROW("connection", HEADER_DROP, HEADER_DROP),
    ROW("keep-alive", HEADER_DROP, HEADER_DROP),
    ROW("set-cookie", HEADER_PASS, HEADER_COOKIE),
    ROW("x-sendfile", HEADER_PASS, HEADER_DROP),
    ROW("destination", HEADER_DESTINATION, HEADER_PASS),
    ROW("max-forwards", HEADER_MAX_FORWARDS, HEADER_PASS),
    ROW("x-request-id", HEADER_SET, HEADER_PASS),
    ROW("authorization", HEADER_PASS, HEADER_PASS),
    ROW("content-range", HEADER_PASS, HEADER_PASS),
    ROW("content-length", HEADER_DROP, HEADER_LENGTH),
    ROW("http2-settings", HEADER_DROP, HEADER_DROP),
    ROW("x-forwarded-for", HEADER_SET, HEADER_PASS),
    ROW("content-encoding", HEADER_PASS, HEADER_PASS),
    ROW("content-location", HEADER_PASS, HEADER_LOCATION),
    ROW("proxy-connection", HEADER_DROP, HEADER_DROP),
    ROW("x-accel-redirect", HEADER_PASS, HEADER_DROP),
    ROW("x-forwarded-host", HEADER_SET, HEADER_PASS),
    ROW("x-forwarded-port", HEADER_SET, HEADER_PASS),
    ROW("transfer-encoding", HEADER_DROP, HEADER_DROP),
    ROW("x-forwarded-proto", HEADER_SET, HEADER_PASS),
    ROW("proxy-authenticate", HEADER_PASS, HEADER_DROP),
    ROW("proxy-authorization", HEADER_DROP, HEADER_PASS),
};

enum { ROWS = MK_COUNT_OF(rules), NAME_BYTES_MAX = 19 };

/* The first row whose name has this length. */
static const uint8_t first_of_length[NAME_BYTES_MAX + 2] = {
    [0 ... 2] = 0, [3] = 2,   [4] = 3,   [5] = 6,   [6] = 7,   [7] = 10,  [8] = 13,  [9] = 14,  [10] = 16,   [11] = 20,
    [12] = 21,     [13] = 23, [14] = 25, [15] = 27, [16] = 28, [17] = 34, [18] = 36, [19] = 37, [20] = ROWS,
};

/*
 * Compares a token with the name of a row, which has the same length. Bit 5 of letters is their case; hyphens and
 * digits have it, and no other byte of a token becomes one of them with it.
 */
static bool is_equal(const char *name, const char *lower, size_t len)
{
    while (len && (*name | 0x20) == *lower) {
        name++;
        lower++;
        len--;
    }
    return !len;
}

/* Compares a name with that of a row, in any case of letters and with `_` as `-`. */
static bool is_same(struct mk_str name, struct mk_str lower, bool *ret_has_underscore)
{
    if ((name.p[0] | 0x20) != lower.p[0]) /* all names begin with a letter */
        return false;
    if (is_equal(name.p, lower.p, name.len))
        return true;
    return *ret_has_underscore = mk_header_same_name(name, lower);
}

static const struct row *find_row(struct mk_str name, bool *ret_has_underscore)
{
    *ret_has_underscore = false;
    if (name.len > NAME_BYTES_MAX)
        return NULL;
    for (unsigned i = first_of_length[name.len]; i < first_of_length[name.len + 1]; i++)
        if (is_same(name, rules[i].name, ret_has_underscore))
            return &rules[i];
    return NULL;
}

enum header_rule header_of_request(struct mk_str name)
{
    bool has_underscore;
    const struct row *row = find_row(name, &has_underscore);
    if (!row)
        return HEADER_PASS;
    return has_underscore && row->request != HEADER_PASS ? HEADER_AMBIGUOUS : row->request;
}

enum header_rule header_of_response(struct mk_str name)
{
    bool has_underscore;
    const struct row *row = find_row(name, &has_underscore);
    return row && !has_underscore ? row->response : HEADER_PASS;
}

bool header_may_be_trailer(struct mk_str name)
{
    bool has_underscore;
    return !find_row(name, &has_underscore);
}

/* ── headers of requests by configuration ── */

/* ── names ── */

static const struct field *find_name(const struct field_list *list, struct mk_str name)
{
    const struct field *f = list->first;
    while (f && !mk_header_same_name(f->name, name))
        f = f->next;
    return f;
}

bool fields_set(const struct field_changes *changes, struct mk_str name)
{
    return find_name(&changes->set, name);
}

bool fields_replace(const struct field_changes *changes, struct mk_str name)
{
    return find_name(&changes->set, name) || find_name(&changes->remove, name);
}

bool fields_are_ambiguous(const struct field_changes *changes, struct mk_str name)
{
    const struct field *f = find_name(&changes->set, name);
    return f && !mk_str_ieq(f->name, name);
}

/* Returns why a name cannot be used; NULL: it can. */
static const char *refuse_name(struct mk_str name)
{
    static const struct {
        struct mk_str prefix;
        const char *sentence;
    } rows[] = {
        {MK_STR_INIT("host"), "HostHeader chooses the Host that the backend gets"},
        {MK_STR_INIT("x-forwarded-"), "this header tells the backend of the client: Forwarded chooses it"},
        {MK_STR_INIT("forwarded"), "this header tells the backend of the client: Forwarded chooses it"},
        {MK_STR_INIT("x-real-ip"), "this header tells the backend of the client: Forwarded chooses it"},
    };
    if (!mk_header_is_plain(name))
        return "the name of a header has letters, digits and dashes only";
    if (mk_str_istarts(name, MK_STR("sec-websocket-")))
        return "this header belongs to the handshake of WebSocket";
    if (header_is_passed(header_of_request(name)))
        return NULL;
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (mk_str_istarts(name, rows[i].prefix))
            return rows[i].sentence;
    return "the proxy itself decides about this header";
}

/* Appends a header to a list. Returns 0, -ENOMEM, or -EINVAL with a sentence in `error`. */
static int add_field(struct field_list *list, struct mk_str name, struct mk_arena *arena, struct field **ret,
                     struct mk_buf *error)
{
    const char *refusal = refuse_name(name);
    if (refusal)
        return mk_conf_fail(error, refusal);
    if (find_name(list, name))
        return mk_conf_fail(error, "a line before this one has the same name");
    struct field *f = mk_arena_zalloc(arena, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->name = mk_arena_dup(arena, name);
    if (!list->last)
        list->last = &list->first;
    *list->last = f;
    list->last = &f->next;
    *ret = f;
    return f->name.p ? 0 : -ENOMEM;
}

/* ── lines ── */

int fields_parse_set(const struct mk_conf_value *value, void *list, struct mk_arena *arena, struct mk_buf *error)
{
    struct field *f;
    if (value->n < 2)
        return mk_conf_fail(error, "a header needs a name and a value; RequestRemove removes one");
    struct mk_str name = value->words[0];
    int err = add_field(list, name, arena, &f, error);
    struct mk_str text = mk_str_trim(mk_str(value->text.p + name.len, value->text.len - name.len));
    return err == 0 ? mk_text_parse(text, &f->value, arena, error) : err;
}

int fields_parse_remove(const struct mk_conf_value *value, void *list, struct mk_arena *arena, struct mk_buf *error)
{
    struct field *f;
    if (value->n != 1)
        return mk_conf_fail(error, "it takes the name of one header");
    return add_field(list, value->words[0], arena, &f, error);
}

/* ── requests ── */

/* Writes a line, unless the value is empty. */
static int write_field(const struct field *f, struct mk_request *req, struct mk_buf *out)
{
    size_t start = out->len;
    mk_buf_adds(out, f->name);
    mk_buf_adds(out, MK_STR(": "));
    size_t value = out->len;
    int err = mk_text_write(f->value, req, out);
    if (err < 0)
        return err;
    struct mk_str written = mk_str(out->data + value, out->len - value);
    if (mk_str_trim(written).len)
        mk_buf_adds(out, MK_STR("\r\n"));
    else
        out->len = start;
    return 0;
}

int fields_write(const struct field_changes *changes, struct mk_request *req, struct mk_buf *out)
{
    int err = 0;
    for (const struct field *f = changes->set.first; f && err == 0; f = f->next)
        err = write_field(f, req, out);
    return err;
}
