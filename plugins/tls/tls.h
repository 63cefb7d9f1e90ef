// SPDX-License-Identifier: Apache-2.0
#ifndef TLS_TLS_H
#define TLS_TLS_H

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/base/file.h>
#include <monkey/base/list.h>
#include <monkey/base/str.h>
#include <monkey/counters.h>
#include <monkey/kit/hash_table.h>
#include <monkey/kit/watched.h>
#include <monkey/plugin.h>
#include <monkey/transport.h>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* ── settings.c: the directives of [TLS], of the server and of each host; as long as the generation ── */

/* The files of a key that repeats, in the order of its lines. */
struct tls_paths {
    struct mk_str *items;
    uint32_t n;
};

struct tls_server_conf {
    struct mk_str ticket_keys;   /* a file; empty: the random keys of the process */
    uint32_t ticket_lifetime_ms; /* of sessions; a random key is used as long */
    bool ktls;                   /* use kTLS if the kernel supports it */
    bool self_signed;            /* make a certificate for the default host */
    /* for hosts that do not set them: */
    int profile;  /* enum tls_profile */
    int redirect; /* enum tls_redirect */
    struct mk_str hsts;
};

enum tls_profile { TLS_INTERMEDIATE, TLS_MODERN };
enum tls_client { TLS_CLIENT_OFF, TLS_CLIENT_OPTIONAL, TLS_CLIENT_REQUIRED };
enum tls_redirect { TLS_REDIRECT_OFF, TLS_REDIRECT_HTTPS };

struct tls_host_conf {
    struct tls_paths certificates, keys, chains, ocsp_files;
    int profile;   /* 0: that of the server; else enum tls_profile plus 1 */
    int client;    /* enum tls_client */
    int redirect;  /* 0: that of the server; else enum tls_redirect plus 1 */
    int64_t depth; /* of the chain of a client's certificate */
    struct mk_str client_ca;
    struct mk_str hsts; /* the value of Strict-Transport-Security; empty: none; `.p` NULL: that of the server */
};

/* The sections for struct mk_plugin. */
extern const struct mk_conf_section tls_sections[];

const struct tls_server_conf *settings_get_server(const struct mk_generation *g);
const struct tls_host_conf *settings_get_host(const struct mk_host *host);

/* What holds for a host: its own keys, else those of the server. */
enum tls_profile settings_profile(const struct tls_server_conf *server, const struct tls_host_conf *host);
enum tls_redirect settings_redirect(const struct tls_server_conf *server, const struct tls_host_conf *host);
struct mk_str settings_hsts(const struct tls_server_conf *server, const struct tls_host_conf *host);

/* Parses "365d includeSubDomains preload", or "Off", into the value of Strict-Transport-Security: mk_conf_parse_fn. */
int settings_parse_hsts(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/* ── handshake.c: ticket keys ── */

/*
 * Keys of session tickets. The process has random ones, which rotate and outlive reloads; a generation may have those
 * of a file. No locks here: the caller serializes the calls.
 */
enum { TICKET_NAME_BYTES = 16, TICKET_SECRET_BYTES = 32, TICKET_KEYS_MAX = 8 };

/* The format of a file: 80 bytes for each. */
struct ticket_key {
    unsigned char name[TICKET_NAME_BYTES];
    unsigned char mac[TICKET_SECRET_BYTES];
    unsigned char cipher[TICKET_SECRET_BYTES];
};

/* The first key encrypts tickets, all keys decrypt them. */
struct ticket_keys {
    struct ticket_key items[TICKET_KEYS_MAX];
    unsigned n;
    uint64_t created_ms; /* when items[0] was made; random keys only */
};

/*
 * Makes a new random key if the current one is older than `lifetime_ms`; keeps one for the time before, and wipes older
 * ones.
 * Returns 0, or -EIO (no randomness; the keys stay as they were).
 */
int ticket_keys_rotate(struct ticket_keys *keys, uint64_t now_ms, uint64_t lifetime_ms);

/* Reads keys from the bytes of a file. Returns false, and says in `fault` what is wrong. */
bool ticket_keys_parse(struct ticket_keys *keys, struct mk_str bytes, struct mk_buf *fault);

/* Returns the key of that name; NULL if there is none. */
const struct ticket_key *ticket_keys_find(const struct ticket_keys *keys, const unsigned char *name);

void ticket_keys_wipe(struct ticket_keys *keys);

/* ── credentials.c: what a host shows to clients and asks of them ── */

enum { CREDENTIALS_DIGEST_BYTES = 32, CREDENTIALS_CERTS_MAX = 8 };

/* A certificate with its key and chain, and its OCSP response. */
struct tls_cert {
    X509 *leaf;
    EVP_PKEY *key;
    STACK_OF(X509) * chain; /* without the leaf */
    int64_t expiry;         /* seconds since 1970: the first end of validity in the chain */
    unsigned char *ocsp;    /* NULL: none */
    size_t ocsp_len;
    int64_t ocsp_this_update, ocsp_next_update; /* as of struct ocsp_response */
};

/*
 * All that distinguishes a connection of one host from that of another. Constant once a load has made it. Workers,
 * connections and the hosts of several generations hold references: any thread.
 *
 * Loads for the same configuration and the same files find those of an earlier load in a table of the process, as long
 * as something holds them. Weak: the table has no reference.
 */
struct tls_credentials {
    atomic_uint refs;
    int verify_mode, verify_depth;                  /* as SSL_set_verify() and SSL_set_verify_depth() take them */
    int min_version;                                /* TLS1_2_VERSION or TLS1_3_VERSION */
    unsigned char policy[CREDENTIALS_DIGEST_BYTES]; /* of what the host requires of client certificates */
    unsigned char session_context[CREDENTIALS_DIGEST_BYTES]; /* of the host's names and policy */
    X509_STORE *authorities;                                 /* of client certificates; NULL: none are asked for */
    STACK_OF(X509_NAME) * authority_names;                   /* and their subjects, for clients to choose by */
    bool warned;                     /* the load has given a warning: another one has to give it again */
    int64_t quiet_from, quiet_until; /* a load in between gives no warning about dates; seconds since 1970 */
    bool kept;                       /* it is in the table: */
    struct mk_hash_node node;
    unsigned char key[CREDENTIALS_DIGEST_BYTES];
    unsigned n_certs, certs_max;
    struct tls_cert certs[];
};

/* Returns empty ones with one reference, for so many certificates; NULL without memory. */
struct tls_credentials *credentials_new(unsigned certs_max);
struct tls_credentials *credentials_get(struct tls_credentials *own);
/* Frees them with the last reference. NULL: does nothing. */
void credentials_put(struct tls_credentials *own);

/*
 * Gives a connection the rules of its host, before a session is resumed; and the certificates, if none is. Both replace
 * what it has: a second ClientHello may have another name. The SSL holds what it needs of them. Return 0 or -ENOMEM:
 * the handshake must not continue.
 */
int credentials_apply(const struct tls_credentials *own, SSL *ssl);
int credentials_show(const struct tls_credentials *own, SSL *ssl);

/* What files are: it changes when they do. */
struct credentials_stamp {
    unsigned char digest[CREDENTIALS_DIGEST_BYTES]; /* of them, and of the `settings` */
    int64_t changed;                                /* the last change of one of them, in seconds since 1970 */
};

/*
 * Identifies files and the settings under which they are read. Returns false if that is not possible: one cannot be
 * found.
 */
bool credentials_identify(const struct mk_str *files, unsigned n, struct mk_str settings,
                          struct credentials_stamp *ret);
/* Returns a reference to what a load would make now, without a warning; NULL: load it. `now`: time(2). */
struct tls_credentials *credentials_find(const struct credentials_stamp *stamp, int64_t now);
/*
 * Lets loads find these ones, if they may: `before` and `after` are the stamps before and after the files were read,
 * which was at `now`.
 */
void credentials_keep(struct tls_credentials *own, const struct credentials_stamp *before,
                      const struct credentials_stamp *after, int64_t now);
/* Frees the table, if it is empty. */
void credentials_stop(void);

/* ── host.c: generations, hosts and workers ── */

/*
 * The state of the plugin for a generation and for each of its hosts. The main thread makes it, all workers read it. A
 * connection does not use it after the handshake: it holds the credentials, and its SSL the SSL_CTX.
 *
 *     tls_generation ─► SSL_CTX                      without certificates
 *     tls_host ─► watched ─► credentials             made again when the files change; each worker has a reference
 */

/* The state of a host. */
struct tls_host {
    const struct tls_host_conf *conf;
    struct mk_host *host;
    struct tls_generation *generation;
    struct mk_watched *watched;     /* the credentials that its files make; NULL: it has no files */
    unsigned index;                 /* of the reference to `watched` in each worker */
    struct tls_credentials *itself; /* those with the self-signed certificate; NULL: none */
};

struct tls_generation {
    struct mk_generation *g;
    const struct mk_plugin *plugin; /* this one, to find the states of hosts and workers */
    const struct tls_server_conf *conf;
    struct ticket_keys *keys; /* of TicketKeys; NULL: those of the process */
    SSL_CTX *ctx;             /* of all connections that begin under it; select_host() adds a host's credentials */
    int port;                 /* of the first listener, for redirects; -ENOENT */
    bool keys_pending;        /* TicketKeys was not read yet */
    unsigned n_hosts;         /* hosts with their own certificates */
    bool expiries_held;       /* expiry_hold() was called */
    bool h2;
    bool self_signed; /* the default host has the self-signed certificate */
};

/* Releases the credentials. No worker may use the host any more. */
void tls_host_release(struct tls_host *tls_host);

/* Returns true if the host has its own certificate, or the self-signed one. */
bool tls_host_has_certificate(const struct tls_host *tls_host);

/*
 * Returns the tls_host for a name at the `listener` of a struct mk_io: of its host, else of the default host there;
 * NULL if neither has a certificate.
 */
struct tls_host *tls_host_by_name(const struct tls_generation *t, const void *listener, struct mk_str name);
/* Returns the tls_host for a host, in the same way. */
struct tls_host *tls_host_find(const struct tls_generation *t, const struct mk_host *host, const void *listener);

/* Returns true if the certificate covers this name, or address with or without brackets. */
bool tls_host_covers(X509 *leaf, struct mk_str name);

/*
 * A buffer that the connections of a worker use one after the other: a batch of records for a socket, and bytes of
 * files. Both are empty after a connection's turn. It is counted by reference: a connection that outlives the worker's
 * generation keeps it.
 */
enum {
    WRITE_BUFFER_FILE_BYTES = 64 * 1024,
    WRITE_BUFFER_RECORD_BYTES = 16384 + 256,                       /* with header and tag */
    WRITE_BUFFER_BATCH_BYTES = WRITE_BUFFER_FILE_BYTES + 4 * 1024, /* the records for these bytes, of any size */
};

struct tls_conn;

struct write_buffer {
    struct mk_account *account;
    unsigned refs;
    size_t len;             /* bytes in `batch` */
    struct tls_conn *owner; /* whose records they are */
    char *file;             /* NULL until the first file */
    char batch[WRITE_BUFFER_BATCH_BYTES];
};

/* Returns a buffer with one reference; NULL without memory. */
struct write_buffer *write_buffer_new(struct mk_account *account);
struct write_buffer *write_buffer_get(struct write_buffer *buffer);
void write_buffer_put(struct write_buffer *buffer);
/* Reads bytes of a file, WRITE_BUFFER_FILE_BYTES at most, into buffer->file. Returns their count, 0 (the end) or
 * -errno. */
ssize_t write_buffer_read_file(struct write_buffer *buffer, int file_fd, uint64_t offset, size_t size);

/*
 * The state of the plugin in a worker under a generation: a write buffer, and a reference to the current credentials of
 * each host with files.
 */
struct tls_worker {
    struct write_buffer *write_buffer;
    unsigned n;
    struct mk_watched_ref refs[]; /* by the hosts' indexes */
};

/* Makes the state, in the worker's thread. Returns NULL without memory. */
struct tls_worker *tls_worker_new(struct mk_worker *worker, const struct tls_generation *t);
void tls_worker_free(struct tls_worker *own);

/* Returns the current credentials of a host that has a certificate. Valid until the next call for the same host. */
struct tls_credentials *tls_worker_credentials(const struct mk_worker *worker, const struct tls_host *tls_host);

/* ── io.c: the size of the next record ── */

/*
 * The size of the next record. A client cannot use a record before it has received all of it. So a connection that is
 * new or was idle, whose congestion window is small, gets records of one segment; a busy one gets the largest, which
 * cost the least.
 */
enum {
    RECORD_SMALL_BYTES = 1300,       /* fits a segment of 1,400 bytes with header and tag */
    RECORD_LARGE_BYTES = 16384,      /* the maximum of TLS */
    RECORD_WARMUP_BYTES = 16 * 1024, /* after these the window is large enough */
    RECORD_IDLE_MS = 1000,           /* after this pause it may be small again */
};

/* Begins zeroed. */
struct record_size {
    uint64_t last_ms;
    uint32_t sent; /* since the beginning or the last pause, no more than RECORD_WARMUP_BYTES */
};

/* Returns the bytes of the next record, `want` at most. */
static inline size_t record_size_next(struct record_size *state, uint64_t now_ms, size_t want)
{
    assert(want > 0);
    if (now_ms - state->last_ms >= RECORD_IDLE_MS)
        state->sent = 0;
    size_t max = state->sent < RECORD_WARMUP_BYTES ? RECORD_SMALL_BYTES : RECORD_LARGE_BYTES;
    size_t n = want < max ? want : max;
    state->last_ms = now_ms;
    state->sent += state->sent < RECORD_WARMUP_BYTES ? (uint32_t)n : 0;
    return n;
}

/* ── socket_bio.c: connections ── */

/*
 * One encrypted connection, accepted or opened: libssl between a socket and the calls of a transport.
 *
 *     write ──► records ──► the worker's batch ──► one send ──► socket
 *                                  └─ what the socket does not take ─► held, counted as written
 *     socket ──► records ──► read
 *
 * During the handshake a connection that was accepted holds its worker, and so the generation. Afterwards, and from the
 * beginning if it was opened, it holds only the write buffer, and the credentials that it was accepted with.
 */
struct tls_conn {
    SSL *ssl;                            /* NULL: the client speaks plain HTTP */
    struct mk_worker *worker;            /* set during the handshake of an accepted connection only */
    struct tls_generation *generation;   /* set during the handshake only */
    struct tls_credentials *credentials; /* of the host that the handshake has chosen; NULL: none yet, or is_client */
    const void *listener;                /* of struct mk_io */
    struct mk_account *account;
    struct mk_loop *loop;
    struct write_buffer *write_buffer;
    char *unsent; /* records that the socket did not take */
    uint32_t unsent_len, unsent_pos;
    char *plaintext; /* the first bytes, if the client speaks plain HTTP */
    uint32_t plaintext_len, plaintext_pos;
    uint32_t no_data_bytes; /* bytes received since the last application data */
    uint32_t key_updates;   /* KeyUpdates that the client has sent */
    struct record_size record_size;
    X509 *shown;  /* the certificate that was sent, which `ssl` holds; NULL: a session was resumed */
    char *client; /* the subject of a certificate that was verified */
    int fd;
    uint16_t client_len;
    uint8_t name_len;
    bool is_client;        /* connect() has opened it */
    bool established;      /* the handshake is done */
    bool name_refused;     /* no host has a certificate for `name`, or it is none */
    bool saw_first_byte;   /* the first byte was received */
    bool may_have_pending; /* the handshake may have read application data */
    bool socket_empty;     /* the last read was short: the socket is empty */
    bool peer_closed;      /* the peer has ended its side */
    bool was_reset;        /* the socket has failed */
    bool broken;           /* libssl must not be called any more */
    bool ktls;             /* libssl uses the socket itself, and the kernel may encrypt */
    bool shutdown_pending; /* shut the socket down when nothing is held any more */
    uint8_t alert;         /* the fatal one that was received */
    bool has_alert;
    int error;        /* what tls_conn_error() has returned when it became broken; 0: it has not */
    int error_reason; /* and the reason of libssl; 0: none */
    char name[256];   /* the client has asked for (SNI); of the server, if is_client */
};

/* Sets the name that the client has sent, 255 bytes at most. */
void tls_conn_set_name(struct tls_conn *conn, struct mk_str name);
/* Sets the credentials of a connection during the handshake. Returns 0 or -ENOMEM: it must not continue. */
int tls_conn_set_credentials(struct tls_conn *conn, struct tls_credentials *own);

/*
 * Returns true if the certificate that was sent covers this name; of a resumed session, which has sent none, if all
 * certificates of the connection's host do.
 */
bool tls_conn_covers(const struct tls_conn *conn, struct mk_str name);

/*
 * Returns what a failed call of libssl means: -EAGAIN, 0 (the peer has ended its side), -EPROTO (the connection is
 * broken) or, if is_client, -ECONNRESET (it has ended without close_notify). Does not use libssl's error queue to
 * decide, because all connections of the thread share it; empties it if the connection is broken.
 */
int tls_conn_error(struct tls_conn *conn);

/* ── counters.c: they belong to the process, since connections may outlive a generation ── */

/* Why a connection was not served, or was closed. */
enum tls_count {
    TLS_COUNT_PLAINTEXT,          /* the client speaks plain HTTP */
    TLS_COUNT_CLIENT_CLOSED,      /* it closed the connection during the handshake */
    TLS_COUNT_NAME,               /* no certificate for the name */
    TLS_COUNT_CLIENT_CERTIFICATE, /* none, or one that was refused */
    TLS_COUNT_CLIENT_ALERT,       /* the client has refused */
    TLS_COUNT_PROTOCOL,           /* no common protocol (ALPN) */
    TLS_COUNT_VERSION,            /* no common version */
    TLS_COUNT_CIPHER,             /* no common cipher, group or signature */
    TLS_COUNT_FAILED,             /* a malformed message, or another reason */
    TLS_COUNT_NO_DATA,            /* too many bytes without application data */
    TLS_COUNT_KEY_UPDATES,        /* too many KeyUpdates */
    TLS_COUNTS,
};

/* Opens the counters, in the plugin's start. */
void tls_counters_open(void);
/* Counts a handshake that is complete, in the worker's thread, while the connection holds its worker. */
void tls_counters_add_handshake(const struct tls_conn *conn);
/* Counts something else; in the worker's thread. `worker` may be NULL. */
void tls_counters_add(enum tls_count count, const struct mk_worker *worker);

/*
 * The ends of validity of the hosts' certificates, as counters: what alerts are made of. They are those of the files
 * that are in use, not of a configuration that is only checked or refused.
 */

/* Counts the certificates of a generation that begins to serve, in the thread of its first worker. */
void expiry_hold(struct tls_generation *t, const struct mk_worker *worker);
/* Ends that for a host, when it is stopped. Any thread; does nothing if its generation has not served. */
void expiry_release(const struct tls_host *tls_host);

/* Sets what the files of a host have now. Any thread; does nothing if no generation holds its certificates. */
void expiry_update(const struct tls_host *tls_host, const struct tls_credentials *credentials);

/* ── errors.c ── */

/*
 * Reports a handshake that has failed with -errno `err`: a counter by reason, and a line in the log for each reason,
 * once in ten seconds. While the connection holds its worker.
 */
void errors_report_handshake(const struct tls_conn *conn, int err);

/* Describes why a connection to a server has failed, for people and for Proxy-Status: describe_error() of mk_transport.
 */
const char *errors_describe_client(const struct mk_io *io, int err, struct mk_buf *out);

/* ── pem.c ── */

/*
 * Reads files of certificates and keys. On an error, `fault` gets a phrase for the end of a sentence about the file
 * ("... cannot be read: Permission denied").
 */
enum { PEM_BYTES_MAX = 4 * 1024 * 1024 };

/* The bytes of a file; free them with pem_free_file(). */
struct pem_file {
    struct mk_arena arena;
    struct mk_file_bytes bytes;
};

/* Reads a file. `secret`: its mode must allow only owner and group to read it. Returns false on an error. */
bool pem_read_file(struct pem_file *file, const char *path, bool secret, struct mk_buf *fault);
/* Wipes and frees it. */
void pem_free_file(struct pem_file *file);

/* Adds a colon and the last error text of libcrypto to `fault`; empties the error queue. */
void pem_add_reason(struct mk_buf *fault);

/* Reads all certificates of a PEM file. Returns NULL on an error. */
STACK_OF(X509) * pem_read_certificates(const char *path, struct mk_buf *fault);
/* Reads a private key, without a passphrase, from a PEM file. Returns NULL on an error. */
EVP_PKEY *pem_read_key(const char *path, struct mk_buf *fault);

/* Returns the system's file of authorities, which connections to servers trust; NULL: there is none. Static. */
const char *authorities_find_system_file(void);
/*
 * Reads a PEM file. Stores of one file are shared, as long as it does not change: that of the system has 1 MB. Returns
 * NULL on an error, with a phrase about the file in `fault`. Any thread.
 */
X509_STORE *authorities_read(const char *path, struct mk_buf *fault);
/* Forgets the file that was read last; the SSL_CTXs keep their stores. */
void authorities_stop(void);

/* ── ocsp.c: OCSP responses (RFC 6960) about a certificate; keeps no state ── */

enum ocsp_warning {
    OCSP_WARN_REVOKED,
    OCSP_WARN_UNKNOWN,
    OCSP_WARN_UNSIGNED,
    OCSP_WARN_NOT_YET_VALID,
    OCSP_WARN_EXPIRED,
    OCSP_WARNINGS
};

struct ocsp_response {
    int64_t this_update; /* in seconds since 1970 */
    int64_t next_update; /* it is valid until then; INT64_MAX: it does not say */
    unsigned warnings;   /* 1 << enum ocsp_warning of each */
};

/* Texts that follow "the OCSP response FILE". */
extern const char *const ocsp_warnings[OCSP_WARNINGS];

/*
 * Parses a response in DER about `leaf`. Looks for its issuer in `chain` (which may be NULL) and in the response.
 * Without the issuer, only its name and the serial number are compared, and the signature is not checked. Returns NULL,
 * or a phrase that follows "the file FILE" if the response cannot be used for this certificate.
 */
const char *ocsp_parse(struct ocsp_response *ret, struct mk_str der, X509 *leaf, STACK_OF(X509) * chain);

/* Returns true if clients may get it, from this_update to next_update. */
bool ocsp_is_usable(const struct ocsp_response *ocsp);

/* ── certificates.c: a host's files: certificates with keys, chains and OCSP responses, and client authorities ── */

/* A load of a host's files. */
struct tls_load {
    const struct tls_host *tls_host;
    struct tls_credentials *credentials; /* what it makes */
    SSL *trial;                          /* a connection, to check that libssl takes them */
    struct mk_buf *message; /* for errors, if the server runs, and warnings are logged; NULL: at the start, when both
                               are reported with the lines of the configuration */
};

/* Reads all certificates of the host. Returns 0, -EINVAL (errors were reported) or -ENOMEM. */
int certificates_read(const struct tls_load *load);
/* Reads ClientCA, and adds the digests of its certificates to `ret_bytes`. Returns as certificates_read(). */
int certificates_read_authorities(const struct tls_load *load, struct mk_buf *ret_bytes);

/* ── ssl_context.c ── */

/*
 * Gets a self-signed certificate for trials and its key, which the first call makes in memory, for the process. No
 * client trusts it, and the key is never written to a file. They belong to this file, until selfsigned_stop(). Main
 * thread.
 * Returns 0 or -EIO.
 */
int selfsigned_get(X509 **ret_leaf, EVP_PKEY **ret_key);
void selfsigned_stop(void);

/* Logs its names and SHA-256 fingerprint, once. */
void selfsigned_announce(void);

/* Makes SSL_CTXs: those of generations, and those for connections to servers. */

/* Returns an SSL_CTX with the settings that all hosts share, and no certificate; NULL without memory. */
SSL_CTX *ssl_context_new(const struct tls_generation *t);
/* Returns an SSL_CTX for connections to a server, which verifies nothing yet; NULL without memory. */
SSL_CTX *ssl_context_new_client(void);

/* ── load.c: the credentials of hosts; in the main thread, and again in the thread that watches files ── */

/*
 * Makes the host's credentials from its files, and again when they change; does nothing if it has no certificate.
 * Returns 0, -EINVAL (errors were reported) or -ENOMEM. Call tls_host_release() in any case.
 */
int load_open_host(struct tls_host *tls_host);
/* Makes the credentials of a host that has no certificate, with this one. Returns 0, -EINVAL or -ENOMEM. */
int load_self_signed(struct tls_host *tls_host, X509 *leaf, EVP_PKEY *key);

/* ── handshake.c ── */

/*
 * Sets the callbacks of an SSL_CTX, which choose host, protocol, ticket key and OCSP response in a handshake. The
 * generation outlives all handshakes that began under it. Returns 0 or -ENOMEM.
 */
int handshake_set_callbacks(SSL_CTX *ctx, const struct tls_generation *t);

/* Prepares the process before the first SSL_CTX; cleans up after the last one. Returns 0 or -ENOMEM. */
int handshake_init(void);
void handshake_cleanup(void);

/* ── client.c ── */

/*
 * The sessions of an SSL_CTX for connections to a server, which later connections resume, in all threads. They live as
 * long as the SSL_CTX. When the files of a client change, it gets another SSL_CTX: a session is resumed only under the
 * authorities that it was verified with. The oldest one is dropped for a newer one.
 */
enum { CLIENT_SESSIONS_MAX = 16 };
/* Keeps the session of a connection whose handshake is done, if that has resumed one of TLS 1.2. */
void client_sessions_keep(SSL *ssl);

/*
 * The settings of connections to a server: struct mk_transport_client. Opened and closed when configurations are loaded
 * and freed; used by all workers.
 *
 *     mk_transport_client ─► watched ─► SSL_CTX ─► client_sessions      made again when the files change
 *                                          ▲
 *                                         SSL of each connection, which outlives the client
 */
struct mk_transport_client {
    struct mk_transport_client_conf conf; /* its strings are in `arena` */
    struct mk_arena arena;
    struct mk_str protocols;    /* as ALPN sends them (RFC 7301 section 3.1) */
    struct mk_watched *watched; /* the SSL_CTX that its files make; NULL: it has no files */
    SSL_CTX *ctx;               /* the SSL_CTX without files */
    size_t fault;               /* the offset of the field that a load has found wrong */
    struct mk_list node;        /* in the list of all clients */
};

/* As the functions of mk_transport. */
int client_open(const struct mk_transport_client_conf *conf, struct mk_transport_client **ret, size_t *ret_field,
                struct mk_buf *error);
void client_close(struct mk_transport_client *client);

/* Returns true for an IPv4 or IPv6 address without brackets, which is verified as such and never sent as SNI. */
bool client_is_address(const char *name);

/* Begins to watch the files of all clients. In a worker's thread: a process may go to the background before. */
void client_watch_all(void);

/* Returns the current SSL_CTX, to make an SSL of it. Valid until `ref` is released. Any thread. */
SSL_CTX *client_get_context(const struct mk_transport_client *client, struct mk_watched_ref *ref);
/* Sets name and session of a new connection. Returns 0 or -ENOMEM. */
int client_prepare(const struct mk_transport_client *client, struct tls_conn *conn);

/* ── socket_bio.c ── */

/*
 * A BIO between libssl and the socket: it collects the records in the batch of the write buffer, so that one system
 * call sends several.
 */

/* Makes the method of these BIOs, once for the process. Returns 0 or -ENOMEM. */
int socket_bio_start(void);
/* Returns a BIO for a connection; NULL without memory. */
BIO *socket_bio_new(struct tls_conn *conn);

/*
 * Sends what is held, then the batch, which is empty afterwards. `flags`: MK_IO_MORE.
 * Returns 0, -EAGAIN (the rest is held) or another -errno (the connection has failed).
 */
int socket_bio_flush(struct tls_conn *conn, unsigned flags);
/* Assigns the batch to this connection. Call it before libssl. */
void socket_bio_claim(struct tls_conn *conn);
/* Returns true if the batch has records of this connection. */
bool socket_bio_is_pending(const struct tls_conn *conn);
/* Returns true if a client that sends this byte first speaks HTTP: a method begins with a letter, a TLS record does
 * not. */
bool socket_bio_is_http(char first);
/* Frees the held records. */
void socket_bio_free_unsent(struct tls_conn *conn);

/* ── io.c ── */

/* Asks the kernel for encryption by the kernel (kTLS), for which libssl uses the socket itself. Returns 0 or an errno.
 */
int ktls_probe(void);
/* Returns true if that result of ktls_probe() means that kTLS is supported. */
bool ktls_is_supported(int answer);
/* Returns the option for SSL_CTX_set_options(); 0 if kTLS is not wanted or not supported. Any thread. */
uint64_t ktls_option(bool wanted);

/*
 * Reads and writes application data for mk_transport: in records, or plain if the client speaks plain HTTP. After the
 * handshake, in the thread of the connection's worker.
 */

/* These return as the functions of mk_transport. */
ssize_t io_read(struct mk_io *io, void *to, size_t size);
/* Bytes that are counted as written may be held; flush() of the transport sends them. */
ssize_t io_write(struct mk_io *io, const struct iovec *vec, int n, unsigned flags);
ssize_t io_send_file(struct mk_io *io, int file_fd, uint64_t offset, size_t size);

/* ── transport.c: the functions of mk_transport, in the thread of the connection's worker ── */

extern const struct mk_transport tls_transport;

/* Returns the state of a connection; NULL if another transport carries it. */
const struct tls_conn *transport_conn_of(const struct mk_io *io);

#endif
