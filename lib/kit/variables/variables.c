// SPDX-License-Identifier: Apache-2.0
/*
 * The variables of a request (<monkey/kit/variables.h>).
 */
#include <monkey/base/buf.h>
#include <monkey/kit/variables.h>
#include <monkey/plugin.h>
#include <monkey/transport.h>

#include <errno.h>

/* ── variables of other servers, and the ones to write here ── */

struct foreign_name {
    struct mk_str name;
    const char *here; /* NULL: there is none */
};

static const struct foreign_name foreign_variables[] = {
    {MK_STR("remote_addr"), "client"},
    {MK_STR("remote_host"), "client"},
    {MK_STR("binary_remote_addr"), "client"},
    {MK_STR("realip_remote_addr"), "peer"},
    {MK_STR("remote_user"), "user"},
    {MK_STR("time_local"), "time_clf"},
    {MK_STR("msec"), "time_unix_ms"},
    {MK_STR("request_method"), "method"},
    {MK_STR("request_uri"), "target"},
    {MK_STR("uri"), "path"},
    {MK_STR("document_uri"), "path"},
    {MK_STR("args"), "query"},
    {MK_STR("query_string"), "query"},
    {MK_STR("server_name"), "host"},
    {MK_STR("http_host"), "host"},
    {MK_STR("server_protocol"), "protocol"},
    {MK_STR("body_bytes_sent"), "body_bytes_out"},
    {MK_STR("bytes_sent"), "bytes_out"},
    {MK_STR("request_length"), "bytes_in"},
    {MK_STR("http_referer"), "referer"},
    {MK_STR("http_user_agent"), "agent"},
    {MK_STR("request_time"), "request_time_us"},
    {MK_STR("upstream_response_time"), "first_byte_us"},
    {MK_STR("ssl_protocol"), "tls_version"},
    {MK_STR("ssl_cipher"), "tls_cipher"},
    {MK_STR("ssl_server_name"), "tls_server_name"},
    {MK_STR("ssl_client_s_dn"), "tls_client"},
    {MK_STR("http_x_forwarded_for"), "header_x_forwarded_for"},
    {MK_STR("hostport"), "host"},
    {MK_STR("url.authority"), "host"},
    {MK_STR("url.path"), "path"},
    {MK_STR("url.query"), "query"},
    {MK_STR("qsa"), "query"},
    {MK_STR("http.request.host"), "host"},
    {MK_STR("http.request.method"), "method"},
    {MK_STR("http.request.uri"), "target"},
    {MK_STR("http.request.orig_uri"), "target"},
    {MK_STR("http.request.uri.path"), "path"},
    {MK_STR("http.request.uri.query"), "query"},
    {MK_STR("http.request.remote.host"), "client"},
    {MK_STR("http.auth.user.id"), "user"},
    {MK_STR("unique_id"), "request_id"},
};

/* Names in texts that mean nothing here, or the beginnings of names. */
static const struct foreign_name foreign_others[] = {
    {MK_STR("scheme"), NULL},        {MK_STR("request_scheme"), NULL},
    {MK_STR("https"), NULL},         {MK_STR("server_port"), NULL},
    {MK_STR("port"), NULL},          {MK_STR("remote"), NULL},
    {MK_STR("remote_port"), NULL},   {MK_STR("hostname"), NULL},
    {MK_STR("document_root"), NULL}, {MK_STR("request_filename"), NULL},
    {MK_STR("realpath_root"), NULL}, {MK_STR("is_args"), NULL},
    {MK_STR("proxy_host"), NULL},    {MK_STR("proxy_add_x_forwarded_for"), NULL},
    {MK_STR("time_now"), NULL},
};
static const struct foreign_name foreign_prefixes[] = {
    {MK_STR("http.request.header."), "header_NAME"},
    {MK_STR("header."), "header_NAME"},
    {MK_STR("http_"), "header_NAME"},
    {MK_STR("http.request."), NULL},
    {MK_STR("url."), NULL},
    {MK_STR("arg_"), NULL},
    {MK_STR("cookie_"), NULL},
    {MK_STR("cookie."), NULL},
    {MK_STR("sent_http_"), NULL},
    {MK_STR("upstream_"), NULL},
    {MK_STR("ssl_"), NULL},
    {MK_STR("tls_"), NULL},
    {MK_STR("env."), NULL},
    {MK_STR("re."), NULL},
    {MK_STR("labels."), NULL},
};

const char *mk_variable_find_foreign(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(foreign_variables); i++)
        if (mk_str_ieq(name, foreign_variables[i].name))
            return foreign_variables[i].here;
    return NULL;
}

/* The signs before a name and behind it, the longer ones first. No end: it ends with another byte. */
static const struct {
    struct mk_str start, end;
    bool always; /* whatever the name is */
} forms[] = {
    {MK_STR("%{"), MK_STR("}"), true}, {MK_STR("%["), MK_STR("]"), true}, {MK_STR("${"), MK_STR("}"), false},
    {MK_STR("{"), MK_STR("}"), false}, {MK_STR("$"), MK_STR(""), false},
};

/* Returns the length of a name; those in brackets may have dots and what names a header. */
static size_t count_name_bytes(struct mk_str text, bool bracketed)
{
    size_t n = 0;
    while (n < text.len && mk_is_name_byte(text.p[n], bracketed ? "_.-:()" : "_"))
        n++;
    return n;
}

static bool is_known(struct mk_str name, const char **ret_here)
{
    const struct mk_variable *own = mk_variable_find(name);
    *ret_here = own && !own->arg ? own->name : mk_variable_find_foreign(name);
    if (own || *ret_here)
        return true;
    for (size_t i = 0; i < MK_COUNT_OF(foreign_others); i++)
        if (mk_str_ieq(name, foreign_others[i].name))
            return true;
    for (size_t i = 0; i < MK_COUNT_OF(foreign_prefixes); i++) {
        *ret_here = foreign_prefixes[i].here;
        if (mk_str_istarts(name, foreign_prefixes[i].name) && name.len > foreign_prefixes[i].name.len)
            return true;
    }
    *ret_here = NULL;
    return false;
}

/* Tells whether a text begins with a variable. */
static bool begins_variable(struct mk_str text, struct mk_variable_found *ret)
{
    for (size_t i = 0; i < MK_COUNT_OF(forms); i++) {
        struct mk_str start = forms[i].start, end = forms[i].end;
        if (!mk_str_starts(text, start))
            continue;
        struct mk_str rest = mk_str_after(text, start.len);
        struct mk_str name = mk_str(rest.p, count_name_bytes(rest, end.len));
        bool closed = mk_str_starts(mk_str_after(rest, name.len), end);
        ret->text = mk_str(text.p, start.len + name.len + end.len);
        return name.len && closed && (is_known(name, &ret->here) || forms[i].always);
    }
    return false;
}

bool mk_variable_find_in(struct mk_str text, struct mk_variable_found *ret)
{
    for (; text.len; text = mk_str_after(text, 1))
        if (begins_variable(text, ret))
            return true;
    return false;
}

bool mk_variable_find_in_literal(struct mk_str text, struct mk_variable_found *ret)
{
    bool is_found;
    while ((is_found = mk_variable_find_in(text, ret)) && ret->text.p[0] == '$')
        text = mk_str_after(text, (size_t)(ret->text.p - text.p) + 1);
    return is_found;
}

/* ── the variables of a request ── */

enum { ADDRESS_BYTES = 48 /* of IPv6, 45 at most */ };

static struct mk_str mark_empty_absent(struct mk_str s)
{
    return s.len ? s : MK_STR_NONE;
}

/* Returns the address as text in the request's arena; NONE if it is not known. */
static struct mk_str get_address_text(struct mk_request *req, struct mk_address address)
{
    struct mk_buf text;
    if (address.family == AF_UNSPEC)
        return MK_STR_NONE;
    char *storage = mk_arena_alloc(mk_request_arena(req), ADDRESS_BYTES);
    if (!storage)
        return MK_STR_NONE;
    mk_buf_init_fixed(&text, storage, ADDRESS_BYTES);
    mk_address_print(&address, &text);
    return mk_buf_str(&text);
}

/* ── the request ── */

/* The version is unknown if the head could not be read up to the target. */
struct mk_str mk_request_protocol(const struct mk_request *req)
{
    if (!mk_request_target(req).len)
        return MK_STR_NONE;
    if (mk_request_major(req) == 2)
        return MK_STR("HTTP/2.0");
    return mk_request_minor(req) ? MK_STR("HTTP/1.1") : MK_STR("HTTP/1.0");
}

/* That of a trace which a plugin has begun, or the client's. */
static struct mk_str get_traceparent(struct mk_request *req, struct mk_str arg)
{
    struct mk_str name = MK_STR("traceparent"), begun = mk_request_get_note(req, name);
    (void)arg;
    return begun.len ? begun : mk_request_header_by_name(req, name);
}

static struct mk_str get_note(struct mk_request *req, struct mk_str arg)
{
    return mk_request_get_note(req, arg);
}

/* ── the connection ── */

/* Returns an empty struct for connections without TLS. */
static struct mk_tls_info get_tls_info(const struct mk_request *req)
{
    struct mk_tls_info found;
    mk_request_tls_info(req, &found);
    return found;
}

/* ── the table ── */

/* Defines a function of a variable without an argument. */
#define VARIABLE(name, value) \
    static struct mk_str get_##name(struct mk_request *req, struct mk_str arg) \
    { \
        (void)arg; \
        return value; \
    }

VARIABLE(peer, get_address_text(req, mk_request_peer(req)))
VARIABLE(client, get_address_text(req, mk_request_client(req)))
VARIABLE(user, mk_request_user(req))
VARIABLE(method, mark_empty_absent(mk_request_method_name(req)))
VARIABLE(target, mark_empty_absent(mk_request_target(req)))
VARIABLE(path, mark_empty_absent(mk_request_path(req)))
VARIABLE(query, mk_request_query(req))
VARIABLE(host, mark_empty_absent(mk_request_host(req)))
VARIABLE(protocol, mk_request_protocol(req))
VARIABLE(referer, mk_request_header(req, MK_HEADER_REFERER))
VARIABLE(agent, mk_request_header(req, MK_HEADER_USER_AGENT))
VARIABLE(request_id, mk_request_id(req))
VARIABLE(listener, mk_request_listener(req))
VARIABLE(tls_version, get_tls_info(req).version)
VARIABLE(tls_cipher, get_tls_info(req).cipher)
VARIABLE(tls_server_name, mark_empty_absent(get_tls_info(req).server_name))
VARIABLE(tls_client, mark_empty_absent(get_tls_info(req).client))

static const struct mk_variable variables[] = {
    {"peer", get_peer, "the address at the other end of the connection", MK_VARIABLE_ARG_NONE},
    {"client", get_client, "the address of the client", MK_VARIABLE_ARG_NONE},
    {"user", get_user, "the authenticated user", MK_VARIABLE_ARG_NONE},
    {"method", get_method, "the method", MK_VARIABLE_ARG_NONE},
    {"target", get_target, "the target as the client sent it", MK_VARIABLE_ARG_NONE},
    {"path", get_path, "the decoded path", MK_VARIABLE_ARG_NONE},
    {"query", get_query, "what follows the question mark", MK_VARIABLE_ARG_NONE},
    {"host", get_host, "the requested host, without a port", MK_VARIABLE_ARG_NONE},
    {"protocol", get_protocol, "HTTP/1.0, HTTP/1.1 or HTTP/2.0", MK_VARIABLE_ARG_NONE},
    {"referer", get_referer, "the Referer field", MK_VARIABLE_ARG_NONE},
    {"agent", get_agent, "the User-Agent field", MK_VARIABLE_ARG_NONE},
    {"listener", get_listener, "the address of the Listen line", MK_VARIABLE_ARG_NONE},
    {"tls_version", get_tls_version, "the version of TLS", MK_VARIABLE_ARG_NONE},
    {"tls_cipher", get_tls_cipher, "the cipher suite of TLS", MK_VARIABLE_ARG_NONE},
    {"tls_server_name", get_tls_server_name, "the host that the client sent by TLS (SNI)", MK_VARIABLE_ARG_NONE},
    {"tls_client", get_tls_client, "the subject of a verified client certificate", MK_VARIABLE_ARG_NONE},
    {"request_id", get_request_id, "the request ID, as in X-Request-Id", MK_VARIABLE_ARG_NONE},
    {"traceparent", get_traceparent, "the field of W3C Trace Context", MK_VARIABLE_ARG_NONE},
    {"header_", mk_request_header_by_name, "any header of the request: $header_accept", MK_VARIABLE_ARG_HEADER},
    {"note_", get_note, "any note of a plugin", MK_VARIABLE_ARG_NOTE},
};

const struct mk_variable *mk_variable_at(unsigned n)
{
    return n < MK_COUNT_OF(variables) ? &variables[n] : NULL;
}

bool mk_variable_is_named(const char *own, enum mk_variable_arg arg, struct mk_str name)
{
    struct mk_str prefix = mk_str_c(own);
    return arg ? name.len > prefix.len && mk_str_starts(name, prefix) : mk_str_eq(name, prefix);
}

const struct mk_variable *mk_variable_find(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(variables); i++)
        if (mk_variable_is_named(variables[i].name, variables[i].arg, name))
            return &variables[i];
    return NULL;
}

void mk_variable_prefer_nearer(struct mk_str name, const char *own, const char **best)
{
    unsigned least = name.len < 6 ? 2 : (unsigned)name.len / 3 + 1;
    if (mk_str_distance(name, mk_str_c(own)) < (*best ? mk_str_distance(name, mk_str_c(*best)) : least))
        *best = own;
}

const char *mk_variable_find_nearest(struct mk_str name)
{
    const char *best = NULL;
    for (size_t i = 0; i < MK_COUNT_OF(variables); i++)
        if (!variables[i].arg)
            mk_variable_prefer_nearer(name, variables[i].name, &best);
    return best;
}

/* ── texts ── */

static bool is_name_char(char c)
{
    return mk_is_name_byte(c, "_");
}

int mk_variable_parse_arg(const char *own, enum mk_variable_arg arg, struct mk_str name, struct mk_arena *arena,
                          struct mk_str *ret, struct mk_buf *error)
{
    size_t prefix = arg ? strlen(own) : name.len;
    char *copy = mk_arena_alloc(arena, name.len - prefix + 1);
    if (!copy)
        return -ENOMEM;
    for (size_t i = prefix; i < name.len; i++) {
        if (!is_name_char(name.p[i]) && name.p[i] != '-') {
            mk_buf_addf(error, "\"%.*s\" is not the name of a %s", MK_STR_ARG(name),
                        arg == MK_VARIABLE_ARG_NOTE ? "note" : "header");
            return -EINVAL;
        }
        copy[i - prefix] = name.p[i] == '_' && arg == MK_VARIABLE_ARG_HEADER ? '-' : name.p[i];
    }
    *ret = mk_str(copy, name.len - prefix);
    return 0;
}

/* Parses the name after a dollar, alone or in brackets. Returns the length with the dollar; 0 if there is none. */
static size_t parse_name(struct mk_str s, struct mk_str *ret_name)
{
    const char *close = s.len > 1 && s.p[1] == '{' ? "}" : s.len > 1 && s.p[1] == '(' ? ")" : NULL;
    size_t from = close ? 2 : 1, end = from;
    while (end < s.len && (close ? s.p[end] != *close : is_name_char(s.p[end])))
        end++;
    *ret_name = mk_str(s.p + from, end - from);
    if (end == from || (close && end == s.len))
        return 0;
    return end + (close ? 1 : 0);
}

int mk_variable_next(struct mk_str *text, struct mk_str *ret_literal, struct mk_str *ret_name, struct mk_buf *error)
{
    const char *dollar = text->len ? memchr(text->p, '$', text->len) : NULL;
    size_t at = dollar ? (size_t)(dollar - text->p) : text->len;
    struct mk_str rest = mk_str_after(*text, at);
    bool is_escaped = rest.len > 1 && rest.p[1] == '$';
    size_t n = is_escaped ? 2 : 0;
    if (!text->len)
        return 0;
    *ret_literal = mk_str(text->p, at + is_escaped);
    *ret_name = MK_STR_NONE;
    if (dollar && !is_escaped)
        n = parse_name(rest, ret_name);
    *text = mk_str_after(rest, n);
    if (!dollar || n)
        return 1;
    mk_buf_addf(error, "a dollar needs the name of a variable behind it, $user or \\${user}; $$ is a dollar");
    return -EINVAL;
}

/* ── texts with variables, split when the configuration is loaded ── */

static int report_variable(struct mk_str name, struct mk_buf *error)
{
    const char *meant = mk_variable_find_foreign(name);
    if (!meant || !mk_variable_find(mk_str_c(meant)))
        meant = mk_variable_find_nearest(name);
    mk_buf_addf(error, "requests have no variable \"%.*s\"", MK_STR_ARG(name));
    if (meant)
        mk_buf_addf(error, "; did you mean \"%s\"?", meant);
    return -EINVAL;
}

static int parse_piece(struct mk_text_piece *piece, struct mk_str literal, struct mk_str name, struct mk_arena *arena,
                       struct mk_buf *error)
{
    piece->literal = mk_arena_dup(arena, literal);
    if (!piece->literal.p)
        return -ENOMEM;
    if (mk_str_has_control(literal)) {
        mk_buf_addf(error, "a value has no control bytes");
        return -EINVAL;
    }
    if (!name.p)
        return 0;
    piece->variable = mk_variable_find(name);
    if (!piece->variable || name.len > MK_VARIABLE_NAME_BYTES_MAX)
        return report_variable(name, error);
    return mk_variable_parse_arg(piece->variable->name, piece->variable->arg, name, arena, &piece->arg, error);
}

int mk_text_parse(struct mk_str text, const struct mk_text_piece **ret, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_text_piece *previous = NULL;
    struct mk_str literal, name;
    int r;
    *ret = NULL;
    while ((r = mk_variable_next(&text, &literal, &name, error)) > 0) {
        struct mk_text_piece *piece = mk_arena_zalloc(arena, sizeof(*piece));
        int err = piece ? parse_piece(piece, literal, name, arena, error) : -ENOMEM;
        if (err < 0)
            return err;
        if (previous)
            previous->next = piece;
        else
            *ret = piece;
        previous = piece;
    }
    return r;
}

int mk_text_write(const struct mk_text_piece *text, struct mk_request *req, struct mk_buf *out)
{
    size_t start = out->len;
    for (; text; text = text->next) {
        mk_buf_adds(out, text->literal);
        if (text->variable)
            mk_buf_adds(out, text->variable->get(req, text->arg));
    }
    return mk_str_has_control(mk_str(out->data + start, out->len - start)) ? -EINVAL : 0;
}
