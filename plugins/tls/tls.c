// SPDX-License-Identifier: Apache-2.0
/*
 * tls: encrypted connections with OpenSSL. This file has the hooks: start and stop, and responses that depend on the
 * connection of a request. transport.c and io.c handle connections.
 */
#include "tls.h"

#include <monkey/base/escape.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <errno.h>
#include <netinet/in.h>

extern const struct mk_plugin mk_plugin_tls;

enum { TEXT_BYTES = 512 };

/* ── the process ── */

/* What belongs to the process is no state of the start: connections may outlive the stop, if a reload removes tls. */
static int start_tls(void **ret_state)
{
    (void)ret_state;
    tls_counters_open();
    int err = socket_bio_start();
    return err == 0 ? handshake_init() : err;
}

static void stop_tls(void *state)
{
    (void)state;
    handshake_cleanup();
    credentials_stop();
    selfsigned_stop();
    authorities_stop();
}

static void describe_tls(struct mk_buf *out)
{
    mk_buf_addf(out, "%s; the kernel %s (kTLS)", OpenSSL_version(OPENSSL_VERSION),
                ktls_option(true) ? "encrypts what is sent" : "cannot encrypt");
}

/* ── generations ── */

static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct tls_generation *t = mk_account_alloc(NULL, sizeof(*t));
    if (!t)
        return -ENOMEM;
    *t = (struct tls_generation){.g = g,
                                 .plugin = &mk_plugin_tls,
                                 .conf = settings_get_server(g),
                                 .port = mk_generation_port(g, &mk_plugin_tls)};
    t->keys_pending = t->conf->ticket_keys.len;
    t->h2 = mk_generation_supports_alpn(g, MK_STR("h2"));
    t->ctx = ssl_context_new(t);
    if (t->ctx) {
        *ret_state = t;
        return 0;
    }
    mk_account_free(NULL, t, sizeof(*t));
    return -ENOMEM;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    struct tls_generation *t = state;
    assert(t->g == g);
    (void)g;
    if (t->keys) {
        ticket_keys_wipe(t->keys);
        mk_account_free(NULL, t->keys, sizeof(*t->keys));
    }
    SSL_CTX_free(t->ctx);
    mk_account_free(NULL, t, sizeof(*t));
}

/* Reads TicketKeys when the first host is prepared, through which errors can be reported. */
static int read_ticket_keys(struct tls_generation *t, struct mk_host *host)
{
    struct pem_file file;
    struct mk_str path = t->conf->ticket_keys;
    if (!t->keys_pending)
        return 0;
    MK_BUF_ON_STACK(fault, TEXT_BYTES);
    t->keys = t->keys ? t->keys : mk_account_alloc(NULL, sizeof(*t->keys));
    if (!t->keys)
        return -ENOMEM;
    *t->keys = (struct ticket_keys){0};
    if (pem_read_file(&file, path.p, true, &fault)) {
        t->keys_pending = !ticket_keys_parse(t->keys, mk_str(file.bytes.data, file.bytes.len), &fault);
        pem_free_file(&file);
    }
    if (!t->keys_pending)
        return 0;
    mk_host_error(host, t->conf, offsetof(struct tls_server_conf, ticket_keys), 0, "the file of ticket keys %.*s %s",
                  MK_STR_ARG(path), mk_buf_cstr(&fault));
    return -EINVAL;
}

/* Returns the first name of the host that is not a wildcard; `.p` NULL if there is none. */
static struct mk_str find_plain_name(const struct mk_host *host)
{
    struct mk_str name;
    for (unsigned n = 0; (name = mk_host_name(host, n)).p; n++)
        if (!memchr(name.p, '*', name.len))
            return name;
    return MK_STR_NONE;
}

/*
 * Warns if redirect_host() would have no name for a Host of another host, and if redirects can only lead to a proxy
 * that speaks TLS and sends each request here again, without a sign that it came over TLS.
 */
static void check_redirect(struct mk_host *host, const struct tls_generation *t, const struct tls_host_conf *conf)
{
    bool own = conf->redirect;
    const void *where = own ? (const void *)conf : t->conf;
    size_t offset = own ? offsetof(struct tls_host_conf, redirect) : offsetof(struct tls_server_conf, redirect);
    if (settings_redirect(t->conf, conf) == TLS_REDIRECT_OFF)
        return;
    if (t->port == -ENOENT && !mk_generation_trusts_proxies(t->g))
        mk_host_warn(host, where, offset, 0,
                     "\"Redirect https\" never ends: no Listen line has tls, and behind a proxy that speaks TLS all "
                     "requests are redirected again, unless TrustedProxies names it");
    if (!find_plain_name(host).p)
        mk_host_warn(host, where, offset, 0,
                     "\"Redirect https\" needs a ServerName without a star: requests for a Host that is neither the "
                     "address of the connection nor covered by a wildcard get 400");
}

static int start_host(struct mk_host *host, void **ret_state)
{
    struct tls_generation *t = mk_generation_state(mk_host_generation(host), &mk_plugin_tls);
    int keys = read_ticket_keys(t, host);
    struct tls_host *tls_host = keys != -ENOMEM ? mk_account_alloc(NULL, sizeof(*tls_host)) : NULL;
    if (!tls_host)
        return -ENOMEM;
    *tls_host = (struct tls_host){.conf = settings_get_host(host), .host = host, .generation = t};
    int err = load_open_host(tls_host);
    err = err == 0 ? keys : err;
    ERR_clear_error();
    if (err == 0) {
        check_redirect(host, t, tls_host->conf);
        *ret_state = tls_host;
        return 0;
    }
    tls_host_release(tls_host);
    mk_account_free(NULL, tls_host, sizeof(*tls_host));
    return err;
}

static void stop_host(struct mk_host *host, void *state)
{
    struct tls_host *tls_host = state;
    (void)host;
    expiry_release(tls_host);
    tls_host_release(tls_host);
    mk_account_free(NULL, tls_host, sizeof(*tls_host));
}

/* Makes a certificate for the default host, if SelfSigned is On and it has none. */
static int make_self_signed(struct tls_generation *t)
{
    struct mk_host *host = mk_generation_host(t->g, NULL, MK_STR(""));
    struct tls_host *tls_host = host ? mk_host_state(host, &mk_plugin_tls) : NULL;
    X509 *leaf;
    EVP_PKEY *key;
    if (!t->conf->self_signed || !tls_host || tls_host_has_certificate(tls_host))
        return 0;
    int err = selfsigned_get(&leaf, &key);
    t->self_signed = err == 0;
    return err == 0 ? load_self_signed(tls_host, leaf, key) : err;
}

static int check_generation(struct mk_generation *g, void *state)
{
    struct tls_generation *t = state;
    int err = make_self_signed(t);
    if (err < 0 || t->port < 0 || t->n_hosts || t->self_signed)
        return err;
    mk_generation_listen_error(g, &mk_plugin_tls,
                               "no host has a certificate for this listener: one in sites/ needs a section [TLS] with "
                               "Certificate and CertificateKey");
    return -EINVAL;
}

/* ── workers ── */

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct tls_generation *t = mk_generation_state(mk_worker_generation(worker), &mk_plugin_tls);
    *ret_state = tls_worker_new(worker, t);
    if (!*ret_state)
        return -ENOMEM;
    if (mk_worker_index(worker) != 0)
        return 0;
    expiry_hold(t, worker);
    client_watch_all();
    if (t->self_signed)
        selfsigned_announce();
    mk_log_debug("tls: the kernel %s", ktls_option(true) ? "encrypts what is sent" : "cannot encrypt");
    return 0;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    (void)worker;
    tls_worker_free(state);
}

/* ── requests ── */

/* Responds to plain HTTP at a port for TLS. */
static int reject_plaintext(struct mk_request *req)
{
    static const struct mk_str page = MK_STR(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>400 Bad Request</title></head>\n"
        "<body><h1>400 Bad Request</h1>\n<p>This port is for HTTPS, but the request is plain HTTP. Use the same "
        "address with https:// in front.</p></body></html>\n");
    mk_response_set_status(req, 400);
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8"));
    mk_response_close_connection(req);
    mk_response_write_ref(req, page);
    mk_response_end(req);
    return 0;
}

/*
 * Returns true if the host of a request has other rules than those under which its connection was opened, or a higher
 * minimum version. Without a name (SNI) the client could not choose the rules: a host that asks for no certificate
 * serves it under any.
 */
static bool has_other_policy(const struct tls_host *tls_host, const struct tls_credentials *own,
                             const struct tls_conn *conn)
{
    bool asks = conn->name_len || tls_host->conf->client != TLS_CLIENT_OFF;
    return (asks && memcmp(own->policy, conn->credentials->policy, sizeof(own->policy)) != 0) ||
           SSL_version(conn->ssl) < own->min_version;
}

/*
 * Returns true for 421 (RFC 9110 section 15.5.20): another connection, for the request's host, could have a better
 * certificate or the policy of that host. Without a name (SNI) it would have the same certificate, and so it would for
 * the same name.
 */
static bool is_misdirected(const struct mk_request *req, const struct tls_conn *conn)
{
    struct mk_str name = mk_request_host(req), sni = mk_str(conn->name, conn->name_len);
    const struct mk_host *host = mk_request_host_conf(req);
    const struct tls_generation *t = mk_generation_state(mk_host_generation(host), &mk_plugin_tls);
    const struct tls_host *tls_host = tls_host_find(t, host, mk_request_io(req)->listener);
    const struct tls_credentials *own = tls_host ? tls_worker_credentials(mk_request_worker(req), tls_host) : NULL;
    if (own && has_other_policy(tls_host, own, conn))
        return true;
    bool is_sni = mk_str_ieq(mk_str_strip_end(name, "."), mk_str_strip_end(sni, "."));
    return name.len && sni.len && !is_sni && !tls_conn_covers(conn, name);
}

/* Returns true if `host` is the local address of the connection: devices are often used by address. */
static bool is_local_address(const struct mk_request *req, struct mk_str host)
{
    struct sockaddr_storage local;
    socklen_t len = sizeof(local);
    struct mk_address named, own;
    if (mk_address_parse(host, &named) < 0 || named.port ||
        getsockname(mk_request_io(req)->fd, (struct sockaddr *)&local, &len) < 0)
        return false;
    if (local.ss_family == AF_INET)
        mk_address_set(&own, AF_INET, &((struct sockaddr_in *)&local)->sin_addr, 0);
    else if (local.ss_family == AF_INET6)
        mk_address_set(&own, AF_INET6, &((struct sockaddr_in6 *)&local)->sin6_addr, 0);
    else
        return false;
    return mk_address_equal(&named, &own);
}

/*
 * Returns the host for a redirect: the client's Host, if that is a name of the host or the address of the connection,
 * else the host's first name. Another Host may be forged, and a cache may store the response for all clients. A
 * wildcard covers any label, but bytes that no name has could mean another host.
 */
static struct mk_str redirect_host(const struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_conf(req);
    struct mk_str asked = mk_request_host(req);
    bool is_own = (mk_str_is_name(asked, "-._") && mk_host_has_name(host, asked)) || is_local_address(req, asked);
    return is_own ? asked : find_plain_name(host);
}

/* Redirects to the URI that the client has sent, with https. */
static int redirect_to_https(struct mk_request *req, const struct tls_generation *t)
{
    struct mk_str host = redirect_host(req), path = mk_request_raw_path(req), target = mk_request_target(req);
    struct mk_str query = mk_str_until(mk_str_after(target, mk_str_until(target, "?").len), "#");
    enum mk_method method = mk_request_method(req);
    struct mk_buf location;
    size_t size = host.len + path.len * 3 + query.len + sizeof("https://:65535");
    char *storage = mk_arena_alloc(mk_request_arena(req), size);
    if (!storage || !host.len || !path.len || path.p[0] != '/') {
        mk_response_error(req, storage ? 400 : 503);
        return 0;
    }
    mk_buf_init_fixed(&location, storage, size);
    mk_buf_addf(&location, "https://%.*s", MK_STR_ARG(host));
    if (t->port > 0 && t->port != 443)
        mk_buf_addf(&location, ":%d", t->port);
    mk_path_encode_raw(&location, path);
    mk_buf_adds(&location, query);
    assert(!location.err); /* `size` is enough */
    mk_response_redirect(req, method == MK_GET || method == MK_HEAD ? 301 : 308, mk_buf_str(&location));
    return 0;
}

static int check_request(struct mk_request *req)
{
    const struct tls_conn *conn = transport_conn_of(mk_request_io(req));
    const struct tls_host *tls_host = mk_request_host_state(req, &mk_plugin_tls);
    if (conn && !conn->ssl)
        return reject_plaintext(req);
    if (conn && is_misdirected(req, conn)) {
        mk_response_error(req, 421);
        return 0;
    }
    if (conn || !tls_host || settings_redirect(tls_host->generation->conf, tls_host->conf) == TLS_REDIRECT_OFF ||
        mk_str_eq(mk_request_scheme(req), MK_STR("https")) || mk_request_is_claimed(req))
        return MK_DECLINED;
    return redirect_to_https(req, mk_generation_state(mk_worker_generation(mk_request_worker(req)), &mk_plugin_tls));
}

static void explain_redirect(const struct mk_host *host, struct mk_explain *e)
{
    const struct tls_host *tls_host = mk_host_state(host, &mk_plugin_tls);
    if (e->phase != MK_EXPLAIN_REQUEST || e->claimed || mk_str_eq(e->scheme, MK_STR("https")) || !tls_host)
        return;
    const struct tls_server_conf *server = tls_host->generation->conf;
    bool own = tls_host->conf->redirect,
         get = mk_str_eq(e->method, MK_STR("GET")) || mk_str_eq(e->method, MK_STR("HEAD"));
    if (settings_redirect(server, tls_host->conf) != TLS_REDIRECT_OFF)
        mk_explain_add(e, host, own ? (const void *)tls_host->conf : server,
                       e->scheme.len ? MK_EXPLAIN_ANSWERS : MK_EXPLAIN_MAYBE,
                       "Redirect https: %d to the same URI with https", get ? 301 : 308);
}

static void add_hsts_header(struct mk_request *req)
{
    const struct tls_host *tls_host = mk_request_host_state(req, &mk_plugin_tls);
    struct mk_str hsts = tls_host ? settings_hsts(tls_host->generation->conf, tls_host->conf) : MK_STR_NONE;
    struct mk_tls_info known;
    if (!hsts.len)
        return;
    if (mk_request_tls_info(req, &known) == 0 || mk_str_eq(mk_request_scheme(req), MK_STR("https")))
        mk_response_header_ref(req, MK_STR("Strict-Transport-Security"), hsts);
}

static const struct mk_inspect_hooks inspect_hooks = {
    .about = describe_tls,
    .explain = explain_redirect,
};

static const struct mk_plugin_interfaces interfaces = {.transport = &tls_transport};

MK_PLUGIN(tls) = {
    MK_PLUGIN_HEAD("tls", "2.0.0", "encrypted connections: TLS 1.2 and 1.3"),
    .flags = MK_PLUGIN_CHECKS_ALL,
    .sections = tls_sections,
    .start = start_tls,
    .stop = stop_tls,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .generation_check = check_generation,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_request = check_request,
    .on_response = add_hsts_header,
    .inspection = &inspect_hooks,
    .interfaces = &interfaces,
};
