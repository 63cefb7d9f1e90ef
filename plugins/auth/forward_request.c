// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the question about a request (forward_request.h).
 */
#include "forward_request.h"

#include <monkey/http_client.h>
#include <monkey/target.h>
#include <monkey/via.h>

enum { ADDRESS_BYTES = 64 };

/* ── lines ── */

static void write_field(struct mk_buf *out, struct mk_str name, struct mk_str value)
{
    mk_buf_adds(out, name);
    mk_buf_adds(out, MK_STR(": "));
    mk_buf_adds(out, value);
    mk_buf_adds(out, MK_STR("\r\n"));
}

static bool starts_with(struct mk_str name, struct mk_str prefix)
{
    return name.len >= prefix.len && mk_header_same_name(mk_str(name.p, prefix.len), prefix);
}

/*
 * Tells whether a header of the client is not passed on: of its connection, of the body, which stays here, of
 * conditions and codings, which are about another response, and what this server says itself.
 */
static bool is_dropped(struct mk_str name)
{
    static const struct mk_str names[] = {
        MK_STR_INIT("range"),
        MK_STR_INIT("if-range"),
        MK_STR_INIT("if-match"),
        MK_STR_INIT("if-none-match"),
        MK_STR_INIT("if-modified-since"),
        MK_STR_INIT("if-unmodified-since"),
        MK_STR_INIT("via"),
        MK_STR_INIT("proxy"),
        MK_STR_INIT("proxy-authorization"),
        MK_STR_INIT("forwarded"),
        MK_STR_INIT("x-real-ip"),
        MK_STR_INIT("x-request-id"),
        MK_STR_INIT("x-rewrite-url"),
        MK_STR_INIT("accept-encoding"),
        MK_STR_INIT("content-encoding"),
    };
    if (mk_request_header_reserved(name) || starts_with(name, MK_STR("x-forwarded-")) ||
        starts_with(name, MK_STR("x-original-")))
        return true;
    size_t i = 0;
    while (i < MK_COUNT_OF(names) && !mk_header_same_name(names[i], name))
        i++;
    return i < MK_COUNT_OF(names);
}

/* ── the subject ── */

/* The URI as the client has sent it, before any rewrite. */
static void write_uri(struct mk_buf *out, struct mk_request *req, struct mk_str path)
{
    struct mk_str target = mk_request_target(req);
    if (path.len) {
        mk_target_write_path(out, path, false);
        return;
    }
    mk_target_write_path(out, mk_request_original_path(req), mk_request_has_encoded_slash(req));
    const char *query = target.len ? memchr(target.p, '?', target.len) : NULL;
    if (query)
        mk_buf_adds(out, mk_str(query, (size_t)(target.p + target.len - query)));
}

/* Returns an address as text; empty if it is not one of IP. */
static struct mk_str print_address(char to[ADDRESS_BYTES], const struct mk_address *address)
{
    struct mk_buf text;
    mk_buf_init_fixed(&text, to, ADDRESS_BYTES);
    if (address->family == AF_INET || address->family == AF_INET6)
        mk_address_print(address, &text);
    return mk_buf_str(&text);
}

/* Returns the value of a header if the peer is trusted. */
static struct mk_str get_trusted(struct mk_request *req, bool is_trusted, struct mk_str name)
{
    return is_trusted ? mk_request_header_by_name(req, name) : MK_STR_NONE;
}

/* Writes X-Forwarded-For: the list of a trusted peer, and the peer after it; and the client that this server knows. */
static void write_addresses(struct mk_buf *out, struct mk_request *req, const struct mk_address *peer, bool is_trusted)
{
    char text[ADDRESS_BYTES];
    struct mk_address client = mk_request_client(req);
    struct mk_str former = get_trusted(req, is_trusted, MK_STR("X-Forwarded-For")), last = print_address(text, peer);
    mk_buf_adds(out, MK_STR("X-Forwarded-For: "));
    mk_buf_adds(out, former);
    mk_buf_adds(out, former.len ? MK_STR(", ") : MK_STR(""));
    mk_buf_adds(out, last.len ? last : MK_STR("unknown"));
    mk_buf_adds(out, MK_STR("\r\n"));
    struct mk_str real = print_address(text, &client);
    if (real.len)
        write_field(out, MK_STR("X-Real-IP"), real);
}

static struct mk_str get_host(struct mk_request *req, bool is_trusted)
{
    struct mk_str former = get_trusted(req, is_trusted, MK_STR("X-Forwarded-Host"));
    struct mk_str host = mk_request_header(req, MK_HEADER_HOST), target = mk_request_target(req);
    bool has_authority = target.len && target.p[0] != '/' && target.p[0] != '*'; /* which counts, and not Host */
    return former.len ? former : host.len && !has_authority ? host : mk_request_host(req);
}

void forward_write_subject(struct mk_buf *out, struct mk_request *req, struct mk_str path)
{
    struct mk_address peer = mk_connection_client(mk_request_connection(req));
    bool is_trusted = mk_generation_trusts(mk_worker_generation(mk_request_worker(req)), &peer);
    struct mk_str method = path.len ? MK_STR("GET") : mk_request_method_name(req);
    struct mk_str scheme = mk_request_scheme(req), host = get_host(req, is_trusted);
    write_field(out, MK_STR("X-Forwarded-Method"), method);
    write_field(out, MK_STR("X-Forwarded-Proto"), scheme);
    write_field(out, MK_STR("X-Forwarded-Host"), host);
    mk_buf_adds(out, MK_STR("X-Forwarded-Uri: "));
    write_uri(out, req, path);
    mk_buf_adds(out, MK_STR("\r\n"));
    write_addresses(out, req, &peer, is_trusted);
    write_field(out, MK_STR("X-Original-Method"), method);
    mk_buf_addf(out, "X-Original-URL: %.*s://%.*s", MK_STR_ARG(scheme), MK_STR_ARG(host));
    write_uri(out, req, path);
    mk_buf_adds(out, MK_STR("\r\n"));
}

/* ── the head ── */

/* A server that repeats in its answer what it was asked must not repeat what a client says of its user. */
static bool is_forged(const struct forward_conf *conf, struct mk_str name)
{
    return forward_names_have(&conf->copy, name) && !forward_names_have(&conf->cache_by, name);
}

bool forward_binds_connection(struct mk_request *req)
{
    struct mk_str name, value;
    bool binds = false;
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++)
        binds |= mk_header_same_name(name, MK_STR("authorization")) && mk_http_login_binds_connection(value);
    return binds;
}

void forward_write_head(struct mk_buf *out, struct mk_request *req, const struct forward_conf *conf,
                        struct mk_str subject, uint64_t via_mark)
{
    struct mk_str name, value, connection = mk_request_header(req, MK_HEADER_CONNECTION), id = mk_request_id(req);
    mk_buf_addf(out, "GET %.*s HTTP/1.1\r\n", MK_STR_ARG(conf->to.path));
    write_field(out, MK_STR("Host"), conf->to.authority);
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++)
        if (!is_dropped(name) && !is_forged(conf, name) && !(connection.len && mk_str_list_has(connection, name)))
            write_field(out, name, value);
    mk_buf_adds(out, subject);
    mk_via_write(out, req, via_mark);
    if (id.len)
        write_field(out, MK_STR("X-Request-Id"), id);
    if (forward_binds_connection(req))
        write_field(out, MK_STR("Connection"), MK_STR("close"));
    mk_buf_adds(out, MK_STR("\r\n"));
}

/* ── what decides ── */

void forward_write_deciding(struct mk_buf *out, struct mk_request *req, const struct forward_conf *conf)
{
    struct mk_str name, value;
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++)
        if (forward_names_have(&conf->cache_by, name))
            write_field(out, name, value);
}

static bool names_header(const struct forward_conf *conf, struct mk_str list)
{
    struct mk_str name;
    while (list.len && mk_str_next(&list, &name))
        if (forward_names_have(&conf->copy, name) || forward_names_have(&conf->cache_by, name))
            return true;
    return false;
}

bool forward_is_connection_valid(struct mk_request *req, const struct forward_conf *conf)
{
    return !names_header(conf, mk_request_header(req, MK_HEADER_CONNECTION)) &&
           !names_header(conf, mk_request_header_by_name(req, MK_STR("Trailer")));
}
