// SPDX-License-Identifier: Apache-2.0
/*
 * The credentials of hosts: what the table finds again and what not, what a connection has after them, and that a load
 * takes those of a host with the same files.
 */
#include "folder.h"

#include "fixture.h"
#include "plugins/tls/tls.h"

#include <openssl/pem.h>

#include <pthread.h>
#include <time.h>

enum { NOW = 1000000000, THREADS = 4, ROUNDS = 20000 };

/* ── a clock: of the plugin and libcrypto ── */

static time_t ahead;

time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += ahead;
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}

/* ── the table ── */

static struct credentials_stamp make_stamp(char first)
{
    struct credentials_stamp stamp = {.changed = NOW - 60};
    memset(stamp.digest, first, sizeof(stamp.digest));
    return stamp;
}

/* Returns some that were offered to the table, with one reference. */
static struct tls_credentials *keep_some(const struct credentials_stamp *before, const struct credentials_stamp *after)
{
    struct tls_credentials *own = credentials_new(0);
    assert_non_null(own);
    credentials_keep(own, before, after, NOW);
    return own;
}

/* Finds and releases. */
static bool is_found(const struct tls_credentials *own, const struct credentials_stamp *stamp, int64_t now)
{
    struct tls_credentials *found = credentials_find(stamp, now);
    assert_true(!found || found == own);
    credentials_put(found);
    return found;
}

TEST(found_as_long_as_held)
{
    struct credentials_stamp one = make_stamp('1'), two = make_stamp('2');
    struct tls_credentials *own = keep_some(&one, &one);
    assert_true(is_found(own, &one, NOW));
    assert_false(is_found(own, &two, NOW));
    struct tls_credentials *other = keep_some(&two, &two);
    assert_true(is_found(own, &one, NOW) && is_found(other, &two, NOW));
    struct tls_credentials *again = credentials_find(&one, NOW);
    credentials_put(own);
    assert_true(is_found(again, &one, NOW));
    credentials_put(again);
    assert_null(credentials_find(&one, NOW));
    credentials_put(other);
}

TEST(the_last_load_is_found)
{
    struct credentials_stamp stamp = make_stamp('1');
    struct tls_credentials *former = keep_some(&stamp, &stamp), *last = keep_some(&stamp, &stamp);
    assert_true(is_found(last, &stamp, NOW));
    credentials_put(former);
    assert_true(is_found(last, &stamp, NOW));
    credentials_put(last);
}

TEST(not_kept)
{
    struct credentials_stamp stamp = make_stamp('1'), other = make_stamp('2'), recent = stamp;
    recent.changed = NOW - 2; /* a change in the same tick of a coarse clock would not be seen */
    struct tls_credentials *changed = keep_some(&stamp, &other), *settling = keep_some(&recent, &recent);
    struct tls_credentials *warned = credentials_new(0);
    warned->warned = true; /* so that a reload says it again */
    credentials_keep(warned, &stamp, &stamp, NOW);
    assert_null(credentials_find(&stamp, NOW));
    assert_null(credentials_find(&other, NOW));
    credentials_put(changed);
    credentials_put(settling);
    credentials_put(warned);
}

TEST(not_found_when_a_load_would_warn)
{
    struct credentials_stamp stamp = make_stamp('1');
    struct tls_credentials *own = keep_some(&stamp, &stamp);
    own->quiet_from = NOW - 5;
    own->quiet_until = NOW + 5;
    assert_false(is_found(own, &stamp, NOW - 6));
    assert_true(is_found(own, &stamp, NOW - 5) && is_found(own, &stamp, NOW + 4));
    assert_false(is_found(own, &stamp, NOW + 5));
    credentials_put(own);
}

static void *find_often(void *ctx)
{
    const struct credentials_stamp *stamp = ctx;
    for (int i = 0; i < ROUNDS; i++)
        credentials_put(credentials_find(stamp, NOW));
    return NULL;
}

/* The last reference is released by any of the threads, while others look. */
TEST(threads)
{
    struct credentials_stamp stamp = make_stamp('1');
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_often, &stamp), 0);
    for (int i = 0; i < ROUNDS; i++)
        credentials_put(keep_some(&stamp, &stamp));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_null(credentials_find(&stamp, NOW));
}

/* ── files ── */

static struct credentials_stamp identify(const char *name, const char *settings)
{
    struct credentials_stamp stamp;
    struct mk_str path = mk_str_c(mk_test_path(name));
    assert_true(credentials_identify(&path, 1, mk_str_c(settings), &stamp));
    return stamp;
}

static bool is_same(struct credentials_stamp a, struct credentials_stamp b)
{
    return memcmp(a.digest, b.digest, sizeof(a.digest)) == 0;
}

TEST(what_identifies_files)
{
    struct credentials_stamp stamp;
    mk_test_write("one", MK_STR("content"));
    struct credentials_stamp first = identify("one", "settings");
    assert_true(is_same(first, identify("one", "settings")));
    assert_in_range(first.changed, time(NULL) - 60, time(NULL) + 1);
    assert_false(is_same(first, identify("one", "others")));
    assert_int_equal(chmod(mk_test_path("one"), 0600), 0);
    struct credentials_stamp closed = identify("one", "settings");
    assert_false(is_same(first, closed));
    mk_test_write("one", MK_STR("another"));
    assert_false(is_same(closed, identify("one", "settings")));
    char name[512];
    snprintf(name, sizeof(name), "%s", mk_test_path("one"));
    assert_int_equal(link(name, mk_test_path("two")), 0);
    assert_false(is_same(identify("one", "settings"), identify("two", "settings")));
    struct mk_str missing = mk_str_c(mk_test_path("missing"));
    assert_false(credentials_identify(&missing, 1, MK_STR("settings"), &stamp));
}

/* ── hosts ── */

static char cert_path[512], key_path[512], ca_path[512];
static struct mk_str cert_item, key_item;

/* Writes the self-signed certificate and its key, and the certificate as an authority. */
static int open_all(void **state)
{
    X509 *leaf;
    EVP_PKEY *key;
    mk_test_folder_make(state);
    tls_fixture_open();
    assert_int_equal(selfsigned_get(&leaf, &key), 0);
    snprintf(cert_path, sizeof(cert_path), "%s", mk_test_path("cert"));
    snprintf(key_path, sizeof(key_path), "%s", mk_test_path("key"));
    snprintf(ca_path, sizeof(ca_path), "%s", mk_test_path("ca"));
    FILE *file = fopen(cert_path, "w"), *secret = fopen(key_path, "w"), *ca = fopen(ca_path, "w");
    assert_true(file && secret && ca);
    assert_int_equal(PEM_write_X509(file, leaf), 1);
    assert_int_equal(PEM_write_X509(ca, leaf), 1);
    assert_int_equal(PEM_write_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    fclose(secret);
    fclose(ca);
    assert_int_equal(chmod(key_path, 0600), 0);
    cert_item = mk_str_c(cert_path);
    key_item = mk_str_c(key_path);
    ahead = 60; /* the files have settled */
    return 0;
}

static int close_all(void **state)
{
    tls_fixture_close();
    credentials_stop();
    return mk_test_folder_remove(state);
}

static struct tls_host_conf get_conf(void)
{
    return (struct tls_host_conf){.certificates = {&cert_item, 1}, .keys = {&key_item, 1}};
}

/* A host of a generation of its own: the same but for `conf`. */
static struct tls_host open_host(const struct tls_host_conf *conf)
{
    struct tls_host one = {.conf = conf, .host = &tls_fixture.host, .generation = &tls_fixture.tls};
    assert_int_equal(load_open_host(&one), 0);
    assert_non_null(one.watched);
    return one;
}

static const struct tls_credentials *get_credentials(const struct tls_host *one)
{
    struct mk_watched_ref ref;
    mk_watched_ref_peek(&ref, one->watched);
    const struct tls_credentials *own = mk_watched_ref_get(&ref);
    mk_watched_ref_release(&ref);
    return own;
}

/* Opens a host, and returns whether it has those of `first`. */
static bool shares(const struct tls_host *first, const struct tls_host_conf *conf)
{
    struct tls_host one = open_host(conf);
    bool same = get_credentials(&one) == get_credentials(first);
    tls_host_release(&one);
    return same;
}

static void touch(const char *path)
{
    assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0);
}

TEST(a_reload_finds_them)
{
    struct tls_host_conf conf = get_conf();
    struct tls_host first = open_host(&conf);
    assert_true(shares(&first, &conf));
    touch(cert_path);
    assert_false(shares(&first, &conf));
    assert_false(shares(&first, &conf));
    tls_host_release(&first);
}

TEST(another_mode)
{
    struct tls_host_conf conf = get_conf();
    struct tls_host first = open_host(&conf);
    assert_int_equal(chmod(key_path, 0640), 0);
    assert_false(shares(&first, &conf));
    assert_int_equal(chmod(key_path, 0600), 0);
    tls_host_release(&first);
}

TEST(files_that_have_just_changed)
{
    struct tls_host_conf conf = get_conf();
    ahead = 0;
    touch(key_path);
    struct tls_host first = open_host(&conf);
    assert_false(shares(&first, &conf));
    ahead = 60;
    struct tls_host second = open_host(&conf);
    assert_true(get_credentials(&second) != get_credentials(&first));
    assert_true(shares(&second, &conf));
    tls_host_release(&first);
    tls_host_release(&second);
}

TEST(another_policy)
{
    struct tls_host_conf conf = get_conf(), modern = conf, asks = conf, deeper, optional;
    static struct mk_str names[] = {MK_STR("localhost"), MK_STR("127.0.0.1")}; /* the certificate covers both */
    modern.profile = TLS_MODERN + 1;
    asks.client = TLS_CLIENT_REQUIRED;
    asks.client_ca = mk_str_c(ca_path);
    asks.depth = 1;
    deeper = optional = asks;
    deeper.depth = 2;
    optional.client = TLS_CLIENT_OPTIONAL;
    struct tls_host first = open_host(&conf), strict = open_host(&asks);
    assert_true(shares(&first, &conf) && shares(&strict, &asks));
    assert_false(shares(&first, &modern));
    assert_false(shares(&first, &asks));
    assert_false(shares(&strict, &deeper));
    assert_false(shares(&strict, &optional));
    tls_fixture.host_settings.names.items = names;
    tls_fixture.host_settings.names.n = 2;
    assert_false(shares(&first, &conf));
    tls_fixture.host_settings.names.n = 0;
    touch(ca_path);
    assert_true(shares(&first, &conf));
    assert_false(shares(&strict, &asks));
    tls_host_release(&first);
    tls_host_release(&strict);
}

TEST(a_certificate_that_has_expired_meanwhile)
{
    struct tls_host_conf conf = get_conf();
    struct tls_host first = open_host(&conf);
    const struct tls_credentials *own = get_credentials(&first);
    struct credentials_stamp stamp = {.changed = 0};
    memcpy(stamp.digest, own->key, sizeof(stamp.digest));
    int64_t expiry = own->certs[0].expiry;
    assert_true(expiry > time(NULL));
    assert_true(is_found(own, &stamp, expiry - 1));
    assert_false(is_found(own, &stamp, expiry));
    tls_host_release(&first);
}

/* ── connections ── */

/* With another key, and asking for certificates of an authority. */
static struct tls_credentials *make_asking(X509 *ca)
{
    struct tls_credentials *own = credentials_new(1);
    EVP_PKEY *key = EVP_RSA_gen(2048);
    X509 *leaf = X509_new();
    assert_true(own && key && leaf);
    X509_gmtime_adj(X509_getm_notBefore(leaf), 0);
    X509_gmtime_adj(X509_getm_notAfter(leaf), 3600);
    assert_int_equal(X509_set_pubkey(leaf, key), 1);
    assert_true(X509_sign(leaf, key, EVP_sha256()) > 0);
    own->certs[own->n_certs++] = (struct tls_cert){.leaf = leaf, .key = key};
    own->authorities = X509_STORE_new();
    own->authority_names = sk_X509_NAME_new_null();
    assert_int_equal(X509_STORE_add_cert(own->authorities, ca), 1);
    assert_true(sk_X509_NAME_push(own->authority_names, X509_NAME_dup(X509_get_subject_name(ca))) > 0);
    own->verify_mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    own->verify_depth = 3;
    own->min_version = TLS1_3_VERSION;
    memset(own->session_context, 'x', sizeof(own->session_context));
    return own;
}

static X509_STORE *get_store(SSL *ssl)
{
    X509_STORE *store = NULL;
    assert_int_equal(SSL_get0_verify_cert_store(ssl, &store), 1);
    return store;
}

/* The second ClientHello of a connection may have another name: nothing is left of the host of the first one. */
TEST(nothing_is_left_of_another_host)
{
    X509 *leaf;
    EVP_PKEY *key;
    assert_int_equal(selfsigned_get(&leaf, &key), 0);
    struct tls_credentials *asking = make_asking(leaf), *own = tls_fixture.tls_host.itself;
    SSL *ssl = SSL_new(tls_fixture.tls.ctx);
    assert_non_null(ssl);
    assert_int_equal(credentials_apply(asking, ssl), 0);
    assert_int_equal(credentials_show(asking, ssl), 0);
    assert_ptr_equal(SSL_get_certificate(ssl), asking->certs[0].leaf);
    assert_ptr_equal(get_store(ssl), asking->authorities);
    assert_int_equal(SSL_get_verify_mode(ssl), asking->verify_mode);
    assert_int_equal(SSL_get_verify_depth(ssl), 3);
    assert_int_equal(sk_X509_NAME_num(SSL_get_client_CA_list(ssl)), 1);
    assert_int_equal(SSL_get_min_proto_version(ssl), TLS1_3_VERSION);
    assert_true(X509_VERIFY_PARAM_get_flags(SSL_get0_param(ssl)) & X509_V_FLAG_PARTIAL_CHAIN);

    assert_int_equal(credentials_apply(own, ssl), 0);
    assert_int_equal(credentials_show(own, ssl), 0);
    assert_int_equal(SSL_set_current_cert(ssl, SSL_CERT_SET_FIRST), 1);
    assert_ptr_equal(SSL_get_certificate(ssl), leaf);
    assert_int_equal(SSL_set_current_cert(ssl, SSL_CERT_SET_NEXT), 0);
    assert_null(get_store(ssl));
    assert_int_equal(SSL_get_verify_mode(ssl), SSL_VERIFY_NONE);
    assert_true(sk_X509_NAME_num(SSL_get_client_CA_list(ssl)) <= 0);
    assert_int_equal(SSL_get_min_proto_version(ssl), TLS1_2_VERSION);
    credentials_put(asking);
    SSL_free(ssl);
}

/* It holds what its requests need. */
TEST(a_connection_outlives_its_host)
{
    int fd;
    struct mk_io io = tls_fixture_connect(&fd);
    SSL *client = tls_fixture_client(fd);
    assert_int_equal(tls_fixture_handshake(&io, client), 0);
    struct tls_credentials *own = tls_fixture.tls_host.itself;
    assert_int_equal(atomic_load(&own->refs), 2);
    assert_true(tls_conn_covers(io.state, MK_STR("localhost")));
    tls_transport.close(&io);
    assert_int_equal(atomic_load(&own->refs), 1);
    SSL_free(client);
    close(fd);
}

TEST_FILE(open_all, close_all)
