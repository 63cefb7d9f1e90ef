// SPDX-License-Identifier: Apache-2.0
#include "conf.h"

#include <errno.h>

enum { PATH_BYTES_MAX = 2048, HEADER_BYTES_MAX = 1024 };

static int MK_PRINTF(2, 3) refuse_value(struct mk_buf *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mk_buf_vaddf(error, format, args);
    va_end(args);
    return -EINVAL;
}

static int copy_text(struct mk_arena *arena, struct mk_str from, struct mk_str *to)
{
    *to = mk_arena_dup(arena, from);
    return to->p ? 0 : -ENOMEM;
}

/* ── Check ── */

static bool is_path(struct mk_str s)
{
    return mk_str_starts(s, MK_STR("/")) && mk_str_is_visible(s, "#");
}

/* Finds what one word says, or two. */
static uint8_t find_kind(const struct mk_conf_value *value)
{
    struct mk_str word = value->words[0];
    if (value->n == 2)
        return mk_str_ieq(word, MK_STR("FastCGI")) && is_path(value->words[1]) ? CHECK_FASTCGI : CHECK_NONE;
    if (value->n != 1)
        return CHECK_NONE;
    return is_path(word)                     ? CHECK_HTTP
           : mk_str_ieq(word, MK_STR("Tcp")) ? CHECK_TCP
           : mk_str_ieq(word, MK_STR("Off")) ? CHECK_OFF
                                             : CHECK_NONE;
}

static int parse_what(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct check_what *what = field;
    what->kind = find_kind(value);
    if (what->kind == CHECK_NONE)
        return refuse_value(
            error,
            "\"%.*s\" is no check: it is Tcp, Off, the path of a request, as /health, or FastCGI and a path, "
            "as FastCGI /ping",
            MK_STR_ARG(value->text));
    if (what->kind < CHECK_HTTP)
        return 0;
    struct mk_str path = value->words[value->n - 1];
    if (path.len > PATH_BYTES_MAX)
        return refuse_value(error, "the path of a check has at most %d bytes", PATH_BYTES_MAX);
    return copy_text(arena, path, &what->path);
}

/* ── CheckMethod, CheckHost, CheckHeader ── */

static int parse_method(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    bool is_method = mk_str_is_token(value->text) && value->text.len <= 32;
    for (size_t i = 0; i < value->text.len; i++)
        is_method &= value->text.p[i] < 'a' || value->text.p[i] > 'z';
    if (!is_method || mk_str_eq(value->text, MK_STR("CONNECT")))
        return refuse_value(error, "a method is a word such as GET, HEAD or OPTIONS");
    return copy_text(arena, value->text, field);
}

static int parse_host(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    if (!value->text.len || value->text.len > 255 || !mk_str_is_visible(value->text, "/@?#"))
        return refuse_value(error, "it is a name or an address, and may have a port: app.internal:8080");
    return copy_text(arena, value->text, field);
}

/* Returns why a header cannot be set; NULL: it can. */
static const char *refuse_header(struct mk_str name)
{
    static const struct {
        struct mk_str name;
        const char *sentence;
    } rows[] = {
        {MK_STR_INIT("Host"), "CheckHost sets this header"},
        {MK_STR_INIT("Connection"), "each check has its own connection, and sends `Connection: close`"},
        {MK_STR_INIT("Upgrade"), "a check does not change the protocol"},
        {MK_STR_INIT("Expect"), "a check has no body"},
        {MK_STR_INIT("Content-Length"), "a check has no body"},
        {MK_STR_INIT("Transfer-Encoding"), "a check has no body"},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (mk_str_ieq(name, rows[i].name))
            return rows[i].sentence;
    return NULL;
}

static int parse_header(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct check_headers *headers = field;
    struct mk_buf line;
    const char *colon = memchr(value->text.p, ':', value->text.len);
    struct mk_str name = mk_str(value->text.p, colon ? (size_t)(colon - value->text.p) : 0);
    if (!mk_str_is_token(name))
        return refuse_value(error, "a header is written as NAME: VALUE");
    struct mk_str content = mk_str_trim(mk_str(colon + 1, value->text.len - name.len - 1));
    if (mk_str_has_control(content))
        return refuse_value(error, "the value of a header has no control characters");
    if (refuse_header(name))
        return refuse_value(error, "%s", refuse_header(name));
    if (value->text.len > HEADER_BYTES_MAX)
        return refuse_value(error, "a header of a check has at most %d bytes", HEADER_BYTES_MAX);
    if (headers->n == CHECK_HEADERS_MAX)
        return refuse_value(error, "a check has at most %d headers", CHECK_HEADERS_MAX);
    mk_buf_init(&line, value->text.len + 8);
    mk_buf_addf(&line, "%.*s: %.*s\r\n", MK_STR_ARG(name), MK_STR_ARG(content));
    int err = line.err ? -ENOMEM : copy_text(arena, mk_buf_str(&line), &headers->lines[headers->n]);
    mk_buf_release(&line);
    headers->n += err == 0;
    return err;
}

/* ── CheckStatus ── */

static int parse_statuses(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    (void)arena;
    for (uint32_t i = 0; i < value->n; i++)
        if (mk_status_set_add(field, value->words[i]) < 0)
            return refuse_value(error,
                                "it takes statuses from %d to %d and ranges, as 200-399, and \"%.*s\" is neither",
                                MK_STATUS_SET_FIRST, MK_STATUS_SET_LAST, MK_STR_ARG(value->words[i]));
    return 0;
}

/* ── the section ── */

const struct mk_conf_key check_keys[] = {
    MK_CONF_KEY_CUSTOM(
        struct check_conf, what, "Check", NULL,
        "How the servers are checked, so that one that fails gets no requests: by a connection (`Tcp`), or by a "
        "request for a path, as `/health`, to which it responds as `CheckStatus` and `CheckText` say. With `FastCGI "
        "/ping` that is a FastCGI request, as for `ping.path` of php-fpm. Not at all without this key, or with `Off`.",
        .unit = "Tcp, Off, path or FastCGI path", .parse = parse_what),
    MK_CONF_KEY_CUSTOM(struct check_conf, method, "CheckMethod", "GET", "The method of the request.", .unit = "method",
                       .parse = parse_method),
    MK_CONF_KEY_CUSTOM(struct check_conf, host, "CheckHost", NULL,
                       "The Host of the request. Without this key it is the address of the server, and `localhost` for "
                       "a Unix socket.",
                       .unit = "name", .parse = parse_host),
    MK_CONF_KEY_CUSTOM(struct check_conf, headers, "CheckHeader", NULL, "A header of the request: `NAME: VALUE`.",
                       .flags = MK_CONF_REPEAT, .unit = "header", .parse = parse_header),
    MK_CONF_KEY_CUSTOM(struct check_conf, statuses, "CheckStatus", "200-399",
                       "The statuses that a server which is up responds with: numbers and ranges.",
                       .unit = "status ...", .parse = parse_statuses),
    MK_CONF_KEY_STRING(struct check_conf, text, "CheckText", NULL,
                       "A text that must be in the first 64 KB of the body, in the same case of letters."),
    MK_CONF_KEY_BOOL(struct check_conf, is_tls, "CheckTls", "Off", "Whether the servers are checked over TLS."),
    MK_CONF_KEY_STRING(struct check_conf, tls_name, "CheckTlsName", NULL,
                       "The name that the certificate must cover, which is asked for (SNI). Without this key the name "
                       "of the group."),
    MK_CONF_KEY_BOOL(
        struct check_conf, tls_verify, "CheckTlsVerify", "On",
        "Whether the certificate is verified. A check says that a server works: with `Off` it does not say "
        "that it is the right one."),
    MK_CONF_KEY_PATH(struct check_conf, tls_ca, "CheckTlsCA", NULL,
                     "The authorities that may have signed the certificate: a PEM file. Without this key those of the "
                     "system."),
    MK_CONF_KEY_INT(struct check_conf, port, "CheckPort", NULL,
                    "The port that is checked. Without this key that of the line `Server`.", .min = 1, .max = 65535),
    MK_CONF_KEY_DURATION(struct check_conf, timeout_ms, "CheckTimeout", "2s",
                         "How long a check may take, from the connection to the end of the response.", .min = 1,
                         .max = 300000, .unit = "s"),
    MK_CONF_KEY_DURATION(
        struct check_conf, interval_ms, "CheckInterval", "5s",
        "How long to wait from the end of a check to the next one, less 10 to 25 % at random. While the last "
        "results contradict the state of the server, a fifth of it is enough, but not less than 100 ms.",
        .min = 100, .max = 3600000, .unit = "s"),
    MK_CONF_KEY_INT(struct check_conf, down, "CheckDown", "3",
                    "After how many failed checks in a row a server gets no requests. The first check of a server "
                    "decides at once; before it the server is used.",
                    .min = 1, .max = 1000),
    MK_CONF_KEY_INT(struct check_conf, up, "CheckUp", "2", "After how many successful ones it gets requests again.",
                    .min = 1, .max = 1000),
    {0},
};

/* Values of keys that are not set. */
static const struct check_conf untouched = {
    .statuses = {{0, ~UINT64_C(0) << 36, ~UINT64_C(0), ~UINT64_C(0), (UINT64_C(1) << 44) - 1}},
    .tls_verify = true,
    .timeout_ms = 2000,
    .interval_ms = 5000,
    .down = 3,
    .up = 2,
};

#define ROW(field, kinds) offsetof(struct check_conf, field), sizeof(untouched.field), kinds
enum { OF_HTTP = 1, OF_TLS = 2, OF_ANY = 4, OF_STREAM = 8 };

/* Keys, and which checks use them. The method is not here: its text is not in `untouched`. */
static const struct {
    size_t offset, size;
    unsigned use;
    const char *name;
} rows[] = {
    {ROW(host, OF_HTTP), "CheckHost"},
    {ROW(headers, OF_HTTP), "CheckHeader"},
    {ROW(statuses, OF_HTTP), "CheckStatus"},
    {ROW(text, OF_HTTP), "CheckText"},
    {ROW(is_tls, OF_STREAM), "CheckTls"},
    {ROW(tls_name, OF_TLS), "CheckTlsName"},
    {ROW(tls_verify, OF_TLS), "CheckTlsVerify"},
    {ROW(tls_ca, OF_TLS), "CheckTlsCA"},
    {ROW(port, OF_ANY), "CheckPort"},
    {ROW(timeout_ms, OF_ANY), "CheckTimeout"},
    {ROW(interval_ms, OF_ANY), "CheckInterval"},
    {ROW(down, OF_ANY), "CheckDown"},
    {ROW(up, OF_ANY), "CheckUp"},
};

/* Which keys a kind of check uses. */
static unsigned find_use(const struct check_conf *c)
{
    static const unsigned uses[] = {
        [CHECK_TCP] = OF_STREAM | OF_ANY,
        [CHECK_HTTP] = OF_HTTP | OF_STREAM | OF_ANY,
        [CHECK_FASTCGI] = OF_HTTP | OF_ANY,
        [CHECK_OFF] = 0,
    };
    unsigned use = uses[c->what.kind];
    return c->is_tls && use & OF_STREAM ? use | OF_TLS : use;
}

/* Returns what a key of `use` needs. */
static const char *find_need(const struct check_conf *c, unsigned use)
{
    if (c->what.kind == CHECK_NONE)
        return "Check, which says how the servers are checked";
    if (use == OF_STREAM || c->what.kind == CHECK_FASTCGI)
        return "a Check of HTTP or Tcp: FastCGI has no TLS";
    return use == OF_TLS ? "CheckTls On" : "a path in Check, as /health";
}

/* Warns of keys that have no effect. */
static void warn_of_unused(const struct mk_conf_check *check, const struct check_conf *c)
{
    unsigned use = find_use(c);
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        bool is_set =
            memcmp((const char *)c + rows[i].offset, (const char *)&untouched + rows[i].offset, rows[i].size) != 0;
        if (is_set && !(use & rows[i].use))
            mk_conf_warn(check, rows[i].offset, "%s has no effect without %s", rows[i].name, find_need(c, rows[i].use));
    }
}

void check_conf_check(const struct mk_conf_check *check, void *section)
{
    const struct check_conf *c = section;
    if (c->what.kind != CHECK_OFF && !mk_conf_is_wrong(check, offsetof(struct check_conf, what)))
        warn_of_unused(check, c);
    if (c->text.len && mk_str_eq(c->method, MK_STR("HEAD")))
        mk_conf_error(check, offsetof(struct check_conf, text),
                      "a response to HEAD has no body, in which this text could be: use another CheckMethod");
}
