// SPDX-License-Identifier: Apache-2.0
/*
 * The lines of logs: whatever a head holds, each is one line of printable ASCII that fits its buffer; a JSON line is an
 * object, by the grammar of RFC 8259. The first line of the input is the format, the rest the head.
 */
#include "../../plugins/logger/logger.h"

#include <monkey/base/escape.h>

#include <stdlib.h>

#include "http/client_addr.h"
#include "http/request.h"
#include "server/worker/thread.h"

enum { FIELDS = 32 };

static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++) {
        if (*p != '\\')
            continue;
        if (end - p < 6 || p[1] != 'u')
            return NULL;
        for (int i = 2; i < 6; i++)
            if (mk_hex_value(p[i]) < 0)
                return NULL;
        p += 5;
    }
    return p < end ? p + 1 : NULL;
}

static const char *skip_value(const char *p, const char *end)
{
    static const struct mk_str words[] = {MK_STR("null"), MK_STR("true"), MK_STR("false")};
    if (p < end && *p == '"')
        return skip_string(p, end);
    for (unsigned i = 0; i < 3; i++)
        if (mk_str_starts(mk_str(p, (size_t)(end - p)), words[i]))
            return p + words[i].len;
    const char *first = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > first && (*first != '0' || p == first + 1) ? p : NULL;
}

static bool is_object(const char *p, const char *end)
{
    if (end - p < 2 || *p != '{' || end[-1] != '}')
        return false;
    for (p++, end--; p && p < end;) {
        p = *p == '"' ? skip_string(p, end) : NULL;
        p = p && p < end && *p == ':' ? skip_value(p + 1, end) : NULL;
        if (p == end)
            return true;
        p = p && *p == ',' ? p + 1 : NULL;
    }
    return p == end;
}

/* Operators may write what they like between the fields. */
static bool is_plain(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] < 0x20 || s.p[i] >= 0x7f)
            return false;
    return true;
}

static void check_line(const struct format *f, struct mk_request *req)
{
    struct line l = {0};
    struct log_entry e = {req, 0};
    char *room = malloc(LINE_BYTES_MAX); /* of exactly this size, for the sanitizer */
    if (!room)
        return;
    line_set_time(&l, 1700000000, 1);
    line_begin(&l, room, f->fixed);
    format_put(f, &l, &e);
    line_put_char(&l, '\n');
    if (!is_plain(mk_str(room, line_length(&l) - 1)) || (f->json && !is_object(room, l.at - 1)))
        abort();
    free(room);
}

/* What a client says of itself in a certificate and in its handshake is the text of the case. */
static int secured(const struct mk_io *io, struct mk_tls_info *ret)
{
    const struct mk_str *text = io->state;
    ret->version = ret->cipher = MK_STR("x");
    ret->server_name = ret->client = *text;
    return 0;
}

static struct mk_str said;

static const struct mk_io *io_of(const struct mk_request *req)
{
    static const struct mk_transport transport = {.name = "fuzz", .tls_info = secured};
    static struct mk__listener listening = {.name = {MK_STR("x")}};
    static const struct mk_io io = {.transport = &transport, .state = &said, .listener = &listening};
    (void)req;
    return &io;
}

static struct mk_connection *conn_of(const struct mk_request *req)
{
    static struct mk_connection conn;
    (void)req;
    return &conn;
}

static void read_head(struct mk_request *req, struct mk_field *fields, struct mk_str text)
{
    static const struct mk__parse_limits limits = {8192, 16384, FIELDS};
    req->base = text.p;
    req->fields = fields;
    if (mk__parse_head(&req->parse, fields, &limits, text) == 0 &&
        mk__request_head_read(&req->parse, fields, text.p, NULL, &req->head) == 0)
        mk__request_decode_path(req);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_str all = mk_str((const char *)data, size), form, text;
    const char *end = size ? memchr(all.p, '\n', size) : NULL;
    static const struct mk__request_ops request_ops = {.major = 1, .io = io_of, .conn = conn_of};
    static const struct mk__settings settings;
    static struct mk_generation generation = {.settings = &settings};
    static struct mk_worker worker = {.generation = &generation};
    struct mk_request req = {.worker = &worker,
                             .ops = &request_ops,
                             .status = 200,
                             .path = MK_STR(""),
                             .id = MK_STR("id"),
                             .client_known = true};
    struct mk_field fields[FIELDS];
    struct mk_arena arena;
    struct format f;
    char storage[512];
    struct mk_buf error;
    if (!end || size > 16384)
        return 0;
    form = mk_str(all.p, (size_t)(end - all.p));
    text = mk_str(end + 1, size - form.len - 1);
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    mk_arena_init(&req.arena, NULL, 1 << 20, NULL, 0);
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    struct mk_conf_value value = {.text = form, .words = &form, .n = 1};
    said = text;
    read_head(&req, fields, text);
    if (is_plain(form) && format_parse(&value, &f, &arena, &error) == 0)
        check_line(&f, &req);
    mk_arena_release(&arena);
    mk_arena_release(&req.arena);
    return 0;
}
