// SPDX-License-Identifier: Apache-2.0
/*
 * The headers that are not just passed on (headers.h).
 */
#include "headers.h"

#include <monkey/request.h>

struct row {
    struct mk_str name;
    uint8_t request, response; /* enum header_rule */
};

#define ROW(text, request, response) \
    { \
        MK_STR_INIT(text), request, response \
    }

/* Sorted by length, so that a lookup compares few. */
static const struct row rows[] = {
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

enum { ROWS = MK_COUNT_OF(rows), NAME_BYTES_MAX = 19 };

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
        if (is_same(name, rows[i].name, ret_has_underscore))
            return &rows[i];
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
