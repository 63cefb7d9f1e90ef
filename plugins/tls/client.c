// SPDX-License-Identifier: Apache-2.0
#include "tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ── sessions: a stack, with a lock that is held for a few assignments ── */

struct sessions {
    pthread_mutex_t lock;
    unsigned n;
    SSL_SESSION *items[CLIENT_SESSIONS_MAX]; /* the newest one last */
};

static pthread_once_t index_made = PTHREAD_ONCE_INIT;
static int sessions_index = -1;

static void free_sessions(void *parent, void *data, CRYPTO_EX_DATA *all, int index, long number, void *pointer)
{
    struct sessions *sessions = data;
    (void)parent, (void)all, (void)index, (void)number, (void)pointer;
    if (!sessions)
        return;
    for (unsigned i = 0; i < sessions->n; i++)
        SSL_SESSION_free(sessions->items[i]);
    pthread_mutex_destroy(&sessions->lock);
    OPENSSL_free(sessions);
}

static void make_index(void)
{
    sessions_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_sessions);
}

static struct sessions *get_sessions(const SSL *ssl)
{
    return SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), sessions_index);
}

/* Adds a copy: libssl changes the session of a connection, which may be in another thread than the next user. */
static void push_session(struct sessions *sessions, const SSL_SESSION *session)
{
    SSL_SESSION *dropped = NULL, *copy = SSL_SESSION_dup(session);
    if (!copy) {
        ERR_clear_error();
        return;
    }
    pthread_mutex_lock(&sessions->lock);
    assert(sessions->n <= CLIENT_SESSIONS_MAX);
    if (sessions->n == CLIENT_SESSIONS_MAX) {
        dropped = sessions->items[0];
        memmove(sessions->items, sessions->items + 1, --sessions->n * sizeof(sessions->items[0]));
    }
    sessions->items[sessions->n++] = copy;
    pthread_mutex_unlock(&sessions->lock);
    SSL_SESSION_free(dropped);
}

/* The callback for a new session: with TLS 1.3 for each ticket. Returns 0: keeps no reference. */
static int save_session(SSL *ssl, SSL_SESSION *session)
{
    if (SSL_SESSION_is_resumable(session))
        push_session(get_sessions(ssl), session);
    return 0;
}

/* Adds the sessions to an SSL_CTX, which frees them. Returns 0 or -ENOMEM. */
static int add_sessions(SSL_CTX *ctx)
{
    struct sessions *sessions = OPENSSL_zalloc(sizeof(*sessions));
    pthread_once(&index_made, make_index);
    if (!sessions || SSL_CTX_set_ex_data(ctx, sessions_index, sessions) != 1) {
        OPENSSL_free(sessions);
        return -ENOMEM;
    }
    pthread_mutex_init(&sessions->lock, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, save_session);
    return 0;
}

/*
 * A resumed handshake does not verify the certificate again: one that is not valid any more needs a full handshake,
 * else renewed tickets would keep it valid forever.
 */
static bool is_usable(const SSL_SESSION *session)
{
    const X509 *server = SSL_SESSION_get0_peer((SSL_SESSION *)(uintptr_t)session);
    return server && X509_cmp_timeframe(NULL, X509_get0_notBefore(server), X509_get0_notAfter(server)) == 0;
}

/* Resumes the newest session on a new connection, if there is one. Each is used once, for the sake of TLS 1.3. */
static void resume_session(SSL *ssl)
{
    struct sessions *sessions = get_sessions(ssl);
    pthread_mutex_lock(&sessions->lock);
    SSL_SESSION *session = sessions->n ? sessions->items[--sessions->n] : NULL;
    pthread_mutex_unlock(&sessions->lock);
    if (session && is_usable(session) && SSL_set_session(ssl, session) != 1)
        ERR_clear_error(); /* a full handshake follows */
    SSL_SESSION_free(session);
}

void client_sessions_keep(SSL *ssl)
{
    if (SSL_session_reused(ssl) == 1 && SSL_version(ssl) < TLS1_3_VERSION)
        push_session(get_sessions(ssl), SSL_get0_session(ssl));
}

/* ── settings ── */

enum {
    ARENA_BYTES_MAX = 64 * 1024,
    NAME_BYTES_MAX = 255,
    PROTOCOLS_BYTES_MAX = 1024,
    FAULT_BYTES = 400,
    FILES_MAX = 3
};

/* Those that are open, to watch their files when workers run. */
static struct {
    pthread_mutex_t lock;
    struct mk_list all;
} clients = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = {&clients.all, &clients.all}};

#define FIELD(name) offsetof(struct mk_transport_client_conf, name)

/* Reports that a field is wrong. Returns -EINVAL. */
static int MK_PRINTF(4, 5)
    report_error(struct mk_transport_client *client, size_t field, struct mk_buf *error, const char *format, ...)
{
    va_list args;
    client->fault = field;
    va_start(args, format);
    mk_buf_vaddf(error, format, args);
    va_end(args);
    return -EINVAL;
}

static int report_file(struct mk_transport_client *client, size_t field, struct mk_buf *error, const char *what,
                       struct mk_str path, struct mk_buf *fault)
{
    return report_error(client, field, error, "%s %.*s %s", what, MK_STR_ARG(path), mk_buf_cstr(fault));
}

/* ── the SSL_CTX ── */

/* Sets what the certificate of the server must cover (RFC 9525: names of the subject do not count). */
static int set_name(SSL_CTX *ctx, const char *name)
{
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    /* an intermediate authority in the file is trusted as it is */
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
    int set = client_is_address(name) ? X509_VERIFY_PARAM_set1_ip_asc(param, name)
                                      : X509_VERIFY_PARAM_set1_host(param, name, strlen(name));
    return set == 1 ? 0 : -ENOMEM;
}

static int set_verification(struct mk_transport_client *client, SSL_CTX *ctx, struct mk_buf *error)
{
    if (client->conf.skip_verify)
        return 0;
    MK_BUF_ON_STACK(fault, FAULT_BYTES);
    X509_STORE *store = authorities_read(client->conf.ca_file.p, &fault);
    if (!store)
        return report_file(client, FIELD(ca_file), error, "the file of authorities", client->conf.ca_file, &fault);
    SSL_CTX_set_cert_store(ctx, store); /* takes it over */
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    return set_name(ctx, client->conf.server_name.p);
}

/* Sets the own certificate, if both are there. */
static int use_certificate(struct mk_transport_client *client, SSL_CTX *ctx, STACK_OF(X509) * chain, EVP_PKEY *key,
                           struct mk_buf *error)
{
    const struct mk_transport_client_conf *conf = &client->conf;
    X509 *leaf = sk_X509_shift(chain);
    MK_BUF_ON_STACK(fault, FAULT_BYTES);
    int err = 0;
    if (X509_check_private_key(leaf, key) != 1)
        err = report_error(client, FIELD(key), error, "the private key %.*s does not belong to the certificate %.*s",
                           MK_STR_ARG(conf->key), MK_STR_ARG(conf->certificate));
    else if (SSL_CTX_use_cert_and_key(ctx, leaf, key, chain, 1) != 1) {
        mk_buf_addf(&fault, "cannot be used");
        pem_add_reason(&fault);
        err = report_file(client, FIELD(certificate), error, "the certificate", conf->certificate, &fault);
    }
    X509_free(leaf);
    return err;
}

static int set_certificate(struct mk_transport_client *client, SSL_CTX *ctx, struct mk_buf *error)
{
    const struct mk_transport_client_conf *conf = &client->conf;
    if (!conf->certificate.len)
        return 0;
    MK_BUF_ON_STACK(fault, FAULT_BYTES);
    STACK_OF(X509) *chain = pem_read_certificates(conf->certificate.p, &fault);
    if (!chain)
        return report_file(client, FIELD(certificate), error, "the certificate", conf->certificate, &fault);
    EVP_PKEY *key = pem_read_key(conf->key.p, &fault);
    int err = key ? use_certificate(client, ctx, chain, key, error)
                  : report_file(client, FIELD(key), error, "the private key", conf->key, &fault);
    EVP_PKEY_free(key);
    sk_X509_pop_free(chain, X509_free);
    return err;
}

/* Makes the SSL_CTX from the files, for struct mk_watched_type. */
static int load_client(void *data, void **ret_value, struct mk_buf *message)
{
    struct mk_transport_client *client = data;
    SSL_CTX *ctx = ssl_context_new_client();
    int err = ctx ? add_sessions(ctx) : -ENOMEM;
    if (err == 0 && client->protocols.len &&
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)client->protocols.p, (unsigned)client->protocols.len) != 0)
        err = -ENOMEM;
    if (err == 0)
        err = set_verification(client, ctx, message);
    if (err == 0)
        err = set_certificate(client, ctx, message);
    ERR_clear_error();
    if (err < 0)
        SSL_CTX_free(ctx);
    else
        *ret_value = ctx;
    return err;
}

static void free_context(void *value)
{
    SSL_CTX_free(value);
}

/* ── open and close ── */

bool client_is_address(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* Removes brackets around an address, and the dot after a name. */
static struct mk_str trim_name(struct mk_str name)
{
    if (name.len > 2 && name.p[0] == '[' && name.p[name.len - 1] == ']')
        return mk_str(name.p + 1, name.len - 2);
    name.len -= name.len > 1 && name.p[name.len - 1] == '.';
    return name;
}

static int check_name(struct mk_transport_client *client, struct mk_buf *error)
{
    struct mk_str name = client->conf.server_name;
    if (!name.len && !client->conf.skip_verify)
        return report_error(client, FIELD(server_name), error,
                            "the name that the certificate of the server must have is missing");
    if (!mk_str_is_visible(name, "${}") && mk_str_is_visible(name, ""))
        return report_error(client, FIELD(server_name), error,
                            "the name of the server has no variables: it is the same for all requests");
    if (name.len > NAME_BYTES_MAX || !mk_str_is_visible(name, ""))
        return report_error(client, FIELD(server_name), error,
                            "the name of the server must be a DNS name or an IP address");
    return 0;
}

/* Checks what can be wrong without a look at files, and finds the system's authorities. */
static int check_client(struct mk_transport_client *client, struct mk_buf *error)
{
    struct mk_transport_client_conf *conf = &client->conf;
    const char *system = conf->ca_file.len || conf->skip_verify ? NULL : authorities_find_system_file();
    if (conf->certificate.len && !conf->key.len)
        return report_error(client, FIELD(certificate), error, "there is no key for this certificate");
    if (conf->key.len && !conf->certificate.len)
        return report_error(client, FIELD(key), error, "there is no certificate for this key");
    if (!conf->ca_file.len && !conf->skip_verify && !system)
        return report_error(
            client, FIELD(ca_file), error,
            "the system has no file of certificate authorities (package ca-certificates): one must be set");
    if (system)
        conf->ca_file = mk_str_c(system);
    return check_name(client, error);
}

/* Writes the names as ALPN sends them: each after its length. */
static int copy_protocols(struct mk_transport_client *client, const struct mk_transport_client_conf *conf,
                          struct mk_buf *error)
{
    MK_BUF_ON_STACK(all, PROTOCOLS_BYTES_MAX);
    for (unsigned i = 0; i < conf->n_protocols; i++) {
        struct mk_str name = conf->protocols[i];
        if (!name.len || name.len > UINT8_MAX)
            return report_error(client, FIELD(protocols), error, "a protocol must have 1 to 255 bytes");
        mk_buf_addc(&all, (char)name.len);
        mk_buf_adds(&all, name);
    }
    if (all.err)
        return report_error(client, FIELD(protocols), error, "there are too many protocols");
    client->protocols = mk_arena_dup(&client->arena, mk_buf_str(&all));
    return client->protocols.p ? 0 : -ENOMEM;
}

static int copy_conf(struct mk_transport_client *client, const struct mk_transport_client_conf *conf,
                     struct mk_buf *error)
{
    struct mk_transport_client_conf *own = &client->conf;
    *own = (struct mk_transport_client_conf){
        .server_name = mk_arena_dup(&client->arena, trim_name(conf->server_name)),
        .ca_file = mk_arena_dup(&client->arena, conf->skip_verify ? MK_STR("") : conf->ca_file),
        .certificate = mk_arena_dup(&client->arena, conf->certificate),
        .key = mk_arena_dup(&client->arena, conf->key),
        .skip_verify = conf->skip_verify,
    };
    if (!own->server_name.p || !own->ca_file.p || !own->certificate.p || !own->key.p)
        return -ENOMEM;
    return copy_protocols(client, conf, error);
}

/* Makes the SSL_CTX, or opens the files that it is made of. */
static int open_files(struct mk_transport_client *client, struct mk_buf *error)
{
    static const struct mk_watched_type type = {.load = load_client, .free = free_context};
    const struct mk_str all[FILES_MAX] = {client->conf.ca_file, client->conf.certificate, client->conf.key};
    struct mk_str files[FILES_MAX];
    char name[NAME_BYTES_MAX + 64];
    unsigned n = 0;
    void *ctx;
    for (unsigned i = 0; i < FILES_MAX; i++)
        if (all[i].len)
            files[n++] = all[i];
    if (n) {
        snprintf(name, sizeof(name), "tls: the files for connections to %s",
                 client->conf.server_name.len ? client->conf.server_name.p : "a server");
        return mk_watched_open(&(struct mk_watched_source){&type, client, mk_str_c(name), files, n}, error,
                               &client->watched);
    }
    int err = load_client(client, &ctx, error);
    if (err == 0)
        client->ctx = ctx;
    return err;
}

static void free_client(struct mk_transport_client *client)
{
    mk_watched_close(client->watched);
    SSL_CTX_free(client->ctx);
    mk_arena_release(&client->arena);
    mk_account_free(NULL, client, sizeof(*client));
}

int client_open(const struct mk_transport_client_conf *conf, struct mk_transport_client **ret, size_t *ret_field,
                struct mk_buf *error)
{
    struct mk_transport_client *client = mk_account_alloc(NULL, sizeof(*client));
    if (!client)
        return -ENOMEM;
    *client = (struct mk_transport_client){.fault = FIELD(server_name)};
    mk_arena_init(&client->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    int err = copy_conf(client, conf, error);
    if (err == 0)
        err = check_client(client, error);
    if (err == 0)
        err = open_files(client, error);
    if (err < 0) {
        *ret_field = client->fault;
        free_client(client);
        return err;
    }
    pthread_mutex_lock(&clients.lock);
    mk_list_add(&clients.all, &client->node);
    pthread_mutex_unlock(&clients.lock);
    *ret = client;
    return 0;
}

void client_close(struct mk_transport_client *client)
{
    if (!client)
        return;
    pthread_mutex_lock(&clients.lock);
    mk_list_del(&client->node);
    pthread_mutex_unlock(&clients.lock);
    free_client(client);
}

/* ── workers ── */

void client_watch_all(void)
{
    pthread_mutex_lock(&clients.lock);
    MK_LIST_EACH_ITEM(&clients.all, const struct mk_transport_client, node, client) {
        struct mk_watched_ref ref = {0};
        if (client->watched)
            mk_watched_ref_init(&ref, client->watched); /* starts the thread */
        mk_watched_ref_release(&ref);
    }
    pthread_mutex_unlock(&clients.lock);
}

SSL_CTX *client_get_context(const struct mk_transport_client *client, struct mk_watched_ref *ref)
{
    *ref = (struct mk_watched_ref){0};
    if (!client->watched)
        return client->ctx;
    mk_watched_ref_init(ref, client->watched);
    return mk_watched_ref_get(ref);
}

int client_prepare(const struct mk_transport_client *client, struct tls_conn *conn)
{
    struct mk_str name = client->conf.server_name;
    char *text = (char *)(uintptr_t)name.p; /* the macro of OpenSSL drops the const */
    tls_conn_set_name(conn, name);
    if (name.len && !client_is_address(name.p) && SSL_set_tlsext_host_name(conn->ssl, text) != 1)
        return -ENOMEM;
    resume_session(conn->ssl);
    return 0;
}
