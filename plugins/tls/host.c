// SPDX-License-Identifier: Apache-2.0
/*
 * The state of the plugin for a host and for a worker: finds hosts, compares certificates with names, and keeps the
 * references of workers. load.c makes the credentials of a host.
 */
#include "tls.h"

#include <openssl/x509v3.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { NAME_BYTES = 256 };

void tls_host_release(struct tls_host *tls_host)
{
    mk_watched_close(tls_host->watched);
    credentials_put(tls_host->itself);
}

/* ── hosts ── */

bool tls_host_has_certificate(const struct tls_host *tls_host)
{
    return tls_host->watched || tls_host->itself;
}

struct tls_host *tls_host_find(const struct tls_generation *t, const struct mk_host *host, const void *listener)
{
    struct tls_host *tls_host = mk_host_state(host, t->plugin);
    if (tls_host && tls_host_has_certificate(tls_host))
        return tls_host;
    struct mk_host *standard = mk_generation_host(t->g, listener, MK_STR(""));
    tls_host = standard ? mk_host_state(standard, t->plugin) : NULL;
    return tls_host && tls_host_has_certificate(tls_host) ? tls_host : NULL;
}

struct tls_host *tls_host_by_name(const struct tls_generation *t, const void *listener, struct mk_str name)
{
    const struct mk_host *host = mk_generation_host(t->g, listener, name);
    return host ? tls_host_find(t, host, listener) : NULL;
}

/* ── names ── */

/* Returns true if the characters are those of an address and not of a name. */
static bool is_address(struct mk_str name)
{
    bool is = name.len;
    for (size_t i = 0; i < name.len; i++) {
        if (name.p[i] == ':')
            return true;
        is &= (name.p[i] >= '0' && name.p[i] <= '9') || name.p[i] == '.';
    }
    return is;
}

bool tls_host_covers(X509 *leaf, struct mk_str name)
{
    char text[NAME_BYTES];
    bool bracketed = name.len > 2 && name.p[0] == '[' && name.p[name.len - 1] == ']';
    if (bracketed)
        name = mk_str(name.p + 1, name.len - 2);
    if (name.len && name.p[name.len - 1] == '.')
        name.len--;
    if (memchr(name.p, '\0', name.len))
        return false;
    bool wild = name.len > 2 && name.p[0] == '*' && name.p[1] == '.';
    int n = snprintf(text, sizeof(text), "%s%.*s", wild ? "any" : "", (int)name.len - wild, name.p + wild);
    if (n <= 0 || n >= (int)sizeof(text))
        return false;
    if (is_address(mk_str(text, (size_t)n)))
        return X509_check_ip_asc(leaf, text, 0) == 1;
    return X509_check_host(leaf, text, (size_t)n, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1;
}

/* ── the write buffer ── */

struct write_buffer *write_buffer_new(struct mk_account *account)
{
    struct write_buffer *buffer = mk_account_alloc(account, sizeof(*buffer));
    if (!buffer)
        return NULL;
    buffer->account = account;
    buffer->refs = 1;
    buffer->len = 0;
    buffer->owner = NULL;
    buffer->file = NULL;
    return buffer;
}

struct write_buffer *write_buffer_get(struct write_buffer *buffer)
{
    assert(buffer->refs > 0);
    buffer->refs++;
    return buffer;
}

void write_buffer_put(struct write_buffer *buffer)
{
    assert(buffer->refs > 0);
    if (--buffer->refs)
        return;
    assert(buffer->len == 0); /* each connection has sent or dropped its records */
    if (buffer->file)
        mk_account_free(buffer->account, buffer->file, WRITE_BUFFER_FILE_BYTES);
    mk_account_free(buffer->account, buffer, sizeof(*buffer));
}

ssize_t write_buffer_read_file(struct write_buffer *buffer, int file_fd, uint64_t offset, size_t size)
{
    assert(size > 0);
    if (!buffer->file)
        buffer->file = mk_account_alloc(buffer->account, WRITE_BUFFER_FILE_BYTES);
    if (!buffer->file)
        return -ENOMEM;
    ssize_t n =
        pread(file_fd, buffer->file, size < WRITE_BUFFER_FILE_BYTES ? size : WRITE_BUFFER_FILE_BYTES, (off_t)offset);
    return n < 0 ? -errno : n;
}

/* ── workers ── */

static size_t get_size(unsigned n)
{
    return sizeof(struct tls_worker) + n * sizeof(struct mk_watched_ref);
}

static void take_references(struct tls_worker *own, const struct tls_generation *t)
{
    for (struct mk_host *host = mk_generation_first_host(t->g); host; host = mk_host_next(host)) {
        const struct tls_host *tls_host = mk_host_state(host, t->plugin);
        if (!tls_host || !tls_host->watched)
            continue;
        assert(tls_host->index < own->n);
        mk_watched_ref_init(&own->refs[tls_host->index], tls_host->watched);
    }
}

struct tls_worker *tls_worker_new(struct mk_worker *worker, const struct tls_generation *t)
{
    struct write_buffer *buffer = write_buffer_new(mk_worker_account(worker));
    struct tls_worker *own = buffer ? mk_account_zalloc(NULL, get_size(t->n_hosts)) : NULL;
    if (!own) {
        if (buffer)
            write_buffer_put(buffer);
        return NULL;
    }
    own->write_buffer = buffer;
    own->n = t->n_hosts;
    take_references(own, t);
    return own;
}

void tls_worker_free(struct tls_worker *own)
{
    for (unsigned i = 0; i < own->n; i++)
        mk_watched_ref_release(&own->refs[i]);
    write_buffer_put(own->write_buffer);
    mk_account_free(NULL, own, get_size(own->n));
}

struct tls_credentials *tls_worker_credentials(const struct mk_worker *worker, const struct tls_host *tls_host)
{
    if (!tls_host->watched)
        return tls_host->itself;
    struct tls_worker *own = mk_worker_state(worker, tls_host->generation->plugin);
    assert(tls_host->index < own->n);
    return mk_watched_ref_get(&own->refs[tls_host->index]);
}
