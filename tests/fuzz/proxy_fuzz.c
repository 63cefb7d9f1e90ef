// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin proxy makes of hostile texts. The first byte picks the section; the rest is the head of a request,
 * and a value of Location or Set-Cookie. The head for the backend is one, with one Host, no framing but ours, and ends
 * where it should; a cookie keeps its name, its value and the number of its attributes.
 */
#include "../../plugins/proxy/proxy.h"

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>

#include <stdlib.h>

#include "http/client_addr.h"
#include "http/context.h"
#include "http/request.h"
#include "server/worker/thread.h"

enum { FIELDS = 64, HEAD_BYTES = 65536 };

static const struct mk__parse_limits limits = {16384, 32768, FIELDS};

static const struct mk_io *io_of(const struct mk_request *req)
{
    static struct mk__listener listening = {.name = {MK_STR("x")}};
    static const struct mk_transport transport = {.name = "fuzz"};
    static const struct mk_io io = {.transport = &transport, .listener = &listening};
    (void)req;
    return &io;
}

static struct mk_connection *conn_of(const struct mk_request *req)
{
    static struct mk_connection conn;
    (void)req;
    return &conn;
}

static void set_field(struct proxy_conf *conf, struct mk_str name, struct mk_str value, struct mk_arena *arena)
{
    char text[64], storage[256];
    struct mk_buf line, error;
    mk_buf_init_fixed(&line, text, sizeof(text));
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    mk_buf_addf(&line, "%.*s %.*s", MK_STR_ARG(name), MK_STR_ARG(value));
    const struct mk_str words[] = {name, value};
    const struct mk_conf_value given = {.text = mk_buf_str(&line), .words = words, .n = 2};
    if (fields_parse_set(&given, &conf->request.set, arena, &error) < 0)
        abort();
}

static struct proxy_conf make_conf(unsigned choice, struct mk_arena *arena)
{
    static const struct mk_str hosts[] = {MK_STR_INIT("Client"), MK_STR_INIT("Backend"), MK_STR_INIT("app.example:8")};
    struct proxy_conf conf = {
        .gateway = {.match = {.kind = MK_PATTERN_PREFIX, .text = choice & 1 ? MK_STR("/a") : MK_STR("/")},
                    .to = {.authority = MK_STR("back.example:81"), .path = choice & 2 ? MK_STR("/v") : MK_STR_NONE},
                    .keep_alive = 1},
        .strip_prefix = choice & 4,
        .path = choice & 8 ? PROXY_PATH_RAW : PROXY_PATH_NORMALIZED,
        .forwarded = choice >> 4 & 3,
        .host_header = hosts[(choice >> 6) % 3],
    };
    set_field(&conf, MK_STR("X-Own"), MK_STR("$path-$query"), arena);
    set_field(&conf, MK_STR("X-Agent"), MK_STR("$agent"), arena);
    return conf;
}

/* ── heads ── */

/* Returns whether a request without content says so: its method means that there may be one. */
static bool says_zero(struct mk_str head)
{
    return mk_str_starts(head, MK_STR("POST ")) || mk_str_starts(head, MK_STR("PUT ")) ||
           mk_str_starts(head, MK_STR("PATCH "));
}

static void check_head(struct mk_str head, enum mk_gateway_body_kind body)
{
    struct mk_head_parser parser = {0};
    struct mk_field fields[4 * FIELDS];
    const struct mk__parse_limits all = {HEAD_BYTES, HEAD_BYTES - 1, 4 * FIELDS};
    unsigned hosts = 0, lengths = 0, codings = 0, own = 0;
    if (mk__parse_head(&parser, fields, &all, head) != 0 || parser.head_len != head.len)
        abort();
    for (unsigned i = 0; i < parser.n_fields; i++) {
        struct mk_str name = mk_span_str(head.p, fields[i].name);
        hosts += mk_str_ieq(name, MK_STR("Host"));
        lengths += mk_str_ieq(name, MK_STR("Content-Length"));
        codings += mk_str_ieq(name, MK_STR("Transfer-Encoding"));
        own += mk_str_ieq(name, MK_STR("X-Own"));
    }
    bool has_length = body == MK_GATEWAY_BODY_LENGTH || (body == MK_GATEWAY_BODY_NONE && says_zero(head));
    if (hosts != 1 || own > 1 || lengths != has_length || codings != (body == MK_GATEWAY_BODY_CHUNKED))
        abort();
}

static void write_head(const struct proxy_conf *conf, struct mk_str text)
{
    static const struct mk__request_ops ops = {.major = 1, .io = io_of, .conn = conn_of};
    static const struct mk__settings settings;
    static struct mk_generation generation = {.settings = &settings};
    static mk__cell *cells;
    static struct mk_worker worker = {.generation = &generation, .cells = &cells};
    static struct mk_loop loop;
    static struct mk__context http = {.loop = &loop};
    static char storage[HEAD_BYTES];
    struct upgrade upgrade = {.token = MK_STR("")};
    struct mk_field fields[FIELDS];
    struct mk_buf head;
    struct mk_request req = {.worker = &worker,
                             .http = &http,
                             .ops = &ops,
                             .status = 200,
                             .path = MK_STR(""),
                             .id = MK_STR("0123456789abcdef0123456789abcdef"),
                             .client_known = true,
                             .base = text.p,
                             .fields = fields};
    mk_arena_init(&req.arena, NULL, 1 << 20, NULL, 0);
    if (mk__parse_head(&req.parse, fields, &limits, text) == 0 &&
        mk__request_head_read(&req.parse, fields, text.p, NULL, &req.head) == 0 && mk__request_decode_path(&req) == 0 &&
        req.path.len && req.path.p[0] == '/') {
        mk_buf_init_fixed(&head, storage, sizeof(storage));
        struct mk_gateway_body body = {.kind = MK_GATEWAY_BODY_CHUNKED};
        if (mk_request_body_length(&req, &body.bytes))
            body.kind = body.bytes ? MK_GATEWAY_BODY_LENGTH : MK_GATEWAY_BODY_NONE;
        const struct mk_gateway_call call = {.req = &req, .conf = &conf->gateway, .state = &upgrade};
        if (request_write_head(&call, &body, &head) == 0)
            check_head(mk_buf_str(&head), body.kind);
    }
    mk_arena_release(&req.arena);
}

/* ── values ── */

static size_t count(struct mk_str s, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.p[i] == c;
    return n;
}

static void rewrite(const struct proxy_conf *conf, struct mk_str value, struct mk_arena *arena)
{
    struct mk_str host = MK_STR("site.example"), prefix = conf->strip_prefix ? MK_STR("/a") : MK_STR("");
    struct mapping m = {
        .client = {.scheme = MK_STR("http"), .authorities = {host}, .prefix = prefix},
        .backend = {.scheme = MK_STR("http"),
                    .authorities = {MK_STR("app.example:8"), conf->gateway.to.authority},
                    .prefix = conf->gateway.to.path},
        .host = host,
    };
    struct mk_str location = rewrite_location(&m, value, arena), refresh = rewrite_refresh(&m, value, arena),
                  link = rewrite_link(&m, value, arena), cookie = rewrite_cookie(&m, value, arena);
    const char *end = value.len ? memchr(value.p, ';', value.len) : NULL;
    size_t kept = end ? (size_t)(end - value.p) : value.len;
    if (location.len > value.len + 8 || refresh.len > value.len + 8 || (value.len && !location.len))
        abort();
    if (count(link, '<') != count(value, '<') || count(link, '>') != count(value, '>'))
        abort();
    if (cookie.len < kept || (kept && memcmp(cookie.p, value.p, kept) != 0) || count(cookie, ';') != count(value, ';'))
        abort();
    if (cookie.len > value.len + conf->gateway.match.text.len + host.len)
        abort();
}

static bool is_field_value(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return false;
    return true;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    ambiguous_open();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_arena arena;
    if (!size || size > 16384)
        return 0;
    struct mk_str text = mk_str((const char *)data + 1, size - 1);
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    struct proxy_conf conf = make_conf(data[0], &arena);
    if (is_field_value(text))
        rewrite(&conf, text, &arena);
    else
        write_head(&conf, text);
    mk_arena_release(&arena);
    return 0;
}
