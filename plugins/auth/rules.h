// SPDX-License-Identifier: Apache-2.0
#ifndef AUTH_RULES_H
#define AUTH_RULES_H

#include "passwords.h"
#include "token.h"

#include <monkey/base/str.h>
#include <monkey/base/thread_pool.h>
#include <monkey/conf.h>
#include <monkey/counters.h>
#include <monkey/kit/backend_stats.h>
#include <monkey/kit/client_table.h>
#include <monkey/kit/http_client.h>
#include <monkey/kit/target.h>
#include <monkey/kit/watched.h>
#include <monkey/plugin.h>
#include <monkey/request.h>
#include <monkey/upstreams.h>

/*
 * The directives of `Type Forward`: the server that is asked about each request, and what its answer changes.
 */
enum { FORWARD_HEADERS_MAX = 16 };

/* Names of headers, of which no two are the same when `_` is read as `-`. */
struct forward_names {
    struct mk_str items[FORWARD_HEADERS_MAX];
    uint32_t n;
};

/* The keys of a section; constant once the configuration is loaded. */
struct forward_conf {
    struct mk_target to; /* the path begins with a slash, and may have a query */
    struct forward_names copy, cache_by;
    struct mk_str user_header; /* empty: not set */
    uint32_t timeout_ms, cache_ms;
    bool set_cookie;
    bool tls_verify;
    struct mk_str tls_name, tls_ca; /* empty: not set */
};

/* Parse the values of the keys (mk_conf_parse_fn): a target, the names of headers, the name of one. */
int forward_parse_to(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int forward_parse_names(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int forward_parse_name(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/* Returns true if a name is in a list, with `_` as `-`. */
bool forward_names_have(const struct forward_names *names, struct mk_str name);

/*
 * The sections of the plugin: [AUTH] of hosts, of which the first that matches a path is used, and [AUTH_LIMITS] of the
 * server. Structs and strings live as long as the generation.
 */
extern const struct mk_plugin mk_plugin_auth;

enum auth_type { AUTH_OFF, AUTH_BASIC, AUTH_BEARER, AUTH_FORWARD };
enum auth_satisfy { AUTH_ALL, AUTH_ANY };
enum auth_require_kind { AUTH_REQUIRE_VALID, AUTH_REQUIRE_USER, AUTH_REQUIRE_GROUP };

/* A line `Require user ada bob`: one of them. */
struct auth_require {
    struct auth_require *next;
    enum auth_require_kind kind;
    struct mk_conf_list names;
};

/* Lines of `Keys` or `Secret`, of `Claim`. */
struct auth_key_files {
    struct keys_file *items;
    uint32_t n;
};

struct auth_claims {
    struct claims_need *items;
    uint32_t n;
};

struct auth_conf {
    struct mk_pattern match;
    int type, satisfy; /* enum auth_type, enum auth_satisfy */
    struct mk_str realm, users, groups;
    struct auth_require *require; /* NULL: valid */
    bool client_certificate, allow_preflight;
    struct auth_key_files keys, secrets;
    struct mk_conf_list issuers, audiences, scopes;
    struct auth_claims claims;
    uint32_t leeway_ms;
    bool expiry_required;
    struct forward_conf forward;
};

struct auth_limits {
    int64_t threads, queue, failures, questions;
    uint32_t cache_ms, delay_ms, failures_ms;
};

extern const struct mk_conf_section auth_sections[];

/* Return the first [AUTH] of the host, and the next one; NULL: there is none. */
const struct auth_conf *settings_first(const struct mk_host *host);
const struct auth_conf *settings_next(const struct mk_host *host, const struct auth_conf *conf);
const struct auth_limits *settings_limits(const struct mk_generation *g);

/* Checks that no section of the host is covered by one before it. Returns 0 or -errno, reported. */
int settings_check_order(struct mk_host *host);

/*
 * Remembers for a short time which credentials were right, so that not each request costs a hash. An entry is only the
 * HMAC-SHA-256, with a random key of the process, of the stored hash, the name and the password: no password can be
 * read or computed from it, and an entry is useless once the user's line in the file has changed. One cache for the
 * process, with room for a fixed number of entries. Any thread.
 */
struct cache;

enum { CACHE_KEY_BYTES = 32, CACHE_ENTRIES = 8192 };

struct cache_key {
    uint8_t bytes[CACHE_KEY_BYTES];
};

/* Returns an empty cache with a new key, or NULL without memory or random bytes. */
struct cache *cache_new(void);
/* Wipes and frees it; NULL is allowed. */
void cache_free(struct cache *c);

/* Makes the key of an entry. Returns false if libcrypto fails: then nothing is cached. */
bool cache_make_key(const struct cache *c, struct mk_str stored, struct mk_str user, struct mk_str password,
                    struct cache_key *ret);

/* Returns true if the entry is there and not older than its time. Compares in constant time. */
bool cache_has(struct cache *c, const struct cache_key *key, uint64_t now_ms);
/* Adds an entry for `ms`; it may take the place of an older one. */
void cache_add(struct cache *c, const struct cache_key *key, uint64_t now_ms, uint32_t ms);
/* Returns true if two keys are the same, in constant time. */
bool cache_is_same(const struct cache_key *a, const struct cache_key *b);

/* Returns a number from 0 to `n` - 1 for a name: always the same in this process, and unknown to others. */
uint32_t cache_pick(const struct cache *c, struct mk_str name, uint32_t n);

/*
 * Counts failed logins of each client network (an IPv4 address, an IPv6 /64), and those that are being checked, over
 * all workers and reloads, with bounded memory (<monkey/kit/client_table.h>). Clients of Unix sockets are not counted:
 * they are one address. Any thread.
 */
enum { FAILURES_CLIENTS = 65536, FAILURES_EVICTIONS_MS = 60000 };

/* What is known of the clients that were evicted from a full table; zeroed at the start. */
struct failures_evictions {
    _Atomic uint64_t checked_ms, count;
};

struct failures_limits {
    uint32_t max;     /* failures of a client within the window; 0: no limit */
    uint32_t time_ms; /* the window, which begins with the first failure */
    uint32_t running; /* attempts of a client that are checked at once */
};

/* Returns an empty table, which mk_client_table_free() frees; NULL without memory. */
struct mk_client_table *failures_new(void);

/* Returns 0, or how many milliseconds the client has to wait because it has failed too often. */
uint32_t failures_wait_ms(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                          const struct failures_limits *limits);

/*
 * Begins an attempt. Returns false if the client has too many already, or as many as may still fail; else
 * failures_end() must follow.
 */
bool failures_begin(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                    const struct failures_limits *limits);
/*
 * Ends an attempt, which has failed or not (it was right, or not decided); `limits` may then be NULL. Returns true if
 * this failure was the last one that is allowed.
 */
bool failures_end(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                  const struct failures_limits *limits, bool failed);

/* Counts a failure that no attempt of failures_begin() had. Returns as failures_end(). */
bool failures_add(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                  const struct failures_limits *limits);

/* Returns how many clients were evicted since the last answer, but 0 within FAILURES_EVICTIONS_MS after that. */
uint64_t failures_take_evictions(struct failures_evictions *e, struct mk_client_table *t, uint64_t now_ms);

/*
 * Counts what has become of logins, by their type and result. The counters are those of the process.
 */
enum login_type { LOGIN_PASSWORD, LOGIN_TOKEN, LOGIN_CERTIFICATE, LOGIN_FORWARD, LOGIN_TYPES };

enum login_result {
    LOGIN_ACCEPTED,
    LOGIN_MISSING,   /* the request has no login, or it cannot be read: 401, a redirect, or 403 without a certificate */
    LOGIN_WRONG,     /* the name, password or token; another 4xx of the server that was asked */
    LOGIN_FORBIDDEN, /* it is right, but not that of a user, or with a scope, that the rule wants: 403 */
    LOGIN_BLOCKED,   /* after too many failures of the client: 429 */
    LOGIN_BUSY,      /* not checked: no memory, too many wait, or no answer: 503 */
    LOGIN_RESULTS,
};

/* Opens the counters. In the start of the plugin. */
void login_counters_open(void);
/* Counts the result of a login. In the thread of the worker. */
void login_counters_add(enum login_type type, enum login_result result, const struct mk_worker *worker);

/*
 * A section with `Type Forward`, ready for requests: how connections to its server carry their bytes, the group of
 * servers, if it names one, and what is counted.
 */
struct forward {
    const struct forward_conf *conf;
    uint64_t via_mark; /* of all questions (<monkey/kit/via.h>) */
    const struct mk_transport *transport;
    struct mk_transport_client *settings; /* of the transport; NULL: it has none */
    const struct mk_upstreams *upstreams;
    const struct mk_upstream_group *group; /* NULL: `To` names a server */
    struct mk_stats_registry *registry;    /* of the process */
    struct mk_target_stats stats;
};

/*
 * Opens what a section needs, and reports mistakes at its keys; in host_start. Returns 0, -EINVAL or -ENOMEM.
 * `registry` is that of the process.
 */
int forward_open(struct forward *f, struct mk_host *host, const struct auth_conf *conf,
                 struct mk_stats_registry *registry);
/* Closes it, also after a forward_open() that has failed. Questions under way must have ended. */
void forward_close(struct forward *f);

/*
 * The question about a request: what a server with `Type Forward` gets, and by what an answer is kept.
 *
 *     GET /verify HTTP/1.1
 *     Host: auth.internal
 *     Cookie: session=...                       the headers of the client, without those of its connection and body
 *     X-Forwarded-Method: POST                  the subject: what the client asks for, and from where
 *     X-Forwarded-Proto: https
 *     X-Forwarded-Host: example.org
 *     X-Forwarded-Uri: /app/new?x=1
 *     X-Forwarded-For: 192.0.2.7
 */
enum { FORWARD_SUBJECT_BYTES_MAX = 128 * 1024, FORWARD_HEAD_BYTES_MAX = 256 * 1024 };

/*
 * Writes the lines about the subject: those of the request or, if `path` (decoded) is not empty, those of a GET of that
 * path of the same host by the same client. What the client has sent in their names is not passed on, unless the peer
 * is in TrustedProxies. The URI is that of the client, decoded, normalized and encoded again; after an internal
 * redirect it has the path and the query that are run.
 */
void forward_write_subject(struct mk_buf *out, struct mk_request *req, struct mk_str path);

/* The lines that a client has sent in the names of CopyHeaders, which the request has no more. */
struct forward_replaced {
    struct forward_replaced *next;
    const struct forward_names *names;
    unsigned n;
    struct mk_header_field lines[];
};

/*
 * Keeps the lines of the client before headers of these names are replaced: a question after that has what the client
 * has sent, as the one before. Returns 0 or -ENOMEM.
 */
int forward_keep_lines(struct mk_request *req, const struct forward_names *names);

/*
 * Writes the head of the question. Of the headers that answers set, it has only those that decide (ForwardCacheBy),
 * such as Authorization. `via_mark` tells that a question has come back (<monkey/kit/via.h>).
 */
void forward_write_head(struct mk_buf *out, struct mk_request *req, const struct forward_conf *conf,
                        struct mk_str subject, uint64_t via_mark);

/* Writes the headers of the request that decide, for the key of an answer. No two lists of values have the same text.
 */
void forward_write_deciding(struct mk_buf *out, struct mk_request *req, const struct forward_conf *conf);

/*
 * Returns false if Connection or Trailer names a header that decides or that an answer sets: the header would be
 * missing in the question, a proxy after this plugin would remove it, or it would come after the body.
 */
bool forward_is_connection_valid(struct mk_request *req, const struct forward_conf *conf);

/* Tells whether the credentials of the client log the connection of the question in: no other may use it. */
bool forward_binds_connection(struct mk_request *req);

/*
 * The answer of a server with `Type Forward`: what it decides, and what of it goes into the request or to the client.
 */
enum { FORWARD_BODY_BYTES_MAX = 65536, FORWARD_VALUES_BYTES_MAX = 65536, FORWARD_COOKIES_MAX = 16 };

enum forward_decision {
    FORWARD_PASS,    /* 2xx */
    FORWARD_REFUSE,  /* a redirect or 4xx, which the client gets */
    FORWARD_INVALID, /* another status, which decides nothing */
};

enum forward_decision forward_decide(unsigned status);

/* What a server has answered: the user, and the values of CopyHeaders, in their order. `.p` NULL: it sent none. */
struct forward_answer {
    union {
        struct {
            struct mk_str user, values[FORWARD_HEADERS_MAX];
        };
        struct mk_str texts[1 + FORWARD_HEADERS_MAX];
    };
    uint32_t n; /* of the values */
};

/*
 * Reads the headers that the section wants; several lines of one are joined by ", ". The strings are in `arena`, or in
 * the response. Returns 0 or -ENOMEM.
 */
int forward_read_answer(struct forward_answer *ret, const struct forward_conf *conf,
                        const struct mk_http_response *response, struct mk_arena *arena);

/* Adds the lines Set-Cookie of a response to that of the request, FORWARD_COOKIES_MAX at most. Returns 0 or -ENOMEM. */
int forward_pass_cookies(struct mk_request *req, const struct mk_http_response *response);

/*
 * Sends status, body and the headers that a client needs for a login. In place of a body that is empty, or longer than
 * FORWARD_BODY_BYTES_MAX, it gets the page of the status.
 */
void forward_send_refusal(struct mk_request *req, const struct mk_http_response *response);

/*
 * What is made of the sections: rules with their files, and the state of the plugin for each lifetime.
 *
 *     process     auth_process: threads for hashes, cache, failures; kept by a reload
 *     generation  auth_generation: limits, and each file once ──► mk_watched
 *     host        auth_host: the rules, in the order of the sections
 *     worker      auth_worker: a reference to the value of each file, and the hashes that are computed
 *     exchange    auth_exchange: the rule that has admitted the request
 */
struct auth_process {
    struct mk_thread_pool pool; /* computes hashes, so that neither workers nor disk threads wait for them */
    _Atomic uint64_t hashes;    /* that it has computed */
    struct cache *cache;
    struct mk_client_table *failures;
    struct failures_evictions evictions; /* of that table */
    struct mk_stats_registry registry;   /* of the servers of Type Forward */
};

enum auth_file_kind { AUTH_FILE_USERS, AUTH_FILE_GROUPS, AUTH_FILE_KEYS };

/* A file of users or groups, which several rules may name, or the files of keys of one rule. */
struct auth_file {
    struct auth_file *next;
    enum auth_file_kind kind;
    struct mk_str path;           /* of users or groups */
    const struct keys_file *keys; /* of AUTH_FILE_KEYS, and their number */
    unsigned n_keys;
    struct mk_watched *watched;
    unsigned index; /* in auth_worker */
};

struct auth_generation {
    struct auth_process *process;
    const struct auth_limits *limits;
    struct auth_file *files;
    unsigned n_files;
    bool keeps_answers; /* a section has ForwardCache */
};

struct auth_rule {
    const struct auth_conf *conf;
    const struct auth_file *users, *groups, *keys; /* NULL: the section has none */
    struct mk_str challenge;                       /* the value of WWW-Authenticate */
    struct claims_rules *claims;                   /* of tokens; NULL for other types */
    struct forward *forward;                       /* of Type Forward; NULL for other types */
};

struct auth_host {
    struct mk_arena arena; /* of the rules */
    unsigned n;
    struct auth_rule *rules;
    const struct mk_pattern_index *index; /* of the patterns of the rules */
};

struct auth_worker {
    struct mk_list jobs;        /* of login_job.c: those that requests wait for */
    struct text_cache *tokens;  /* NULL: no rule has tokens, or there is no memory */
    struct text_cache *answers; /* NULL: no rule keeps answers, or there is no memory */
    int64_t n_questions;        /* of forward_login.c: those under way */
    struct mk_http_idle idle;   /* connections to the servers that they ask */
    unsigned n;
    struct mk_watched_ref refs[];
};

/* What is known of an exchange; in its arena. */
struct auth_exchange {
    const struct auth_rule *admitted;  /* the last rule that a login has passed; NULL: none */
    struct token_refusal *refusals;    /* of token_login.c */
    struct forward_replaced *replaced; /* headers of the client, for a question about a second path */
};

/* Makes the rules of a host, and opens their files. Returns 0 (`*ret` is NULL without any section) or -errno, reported.
 */
int rules_make(struct mk_host *host, struct auth_generation *g, struct auth_host **ret);
/* Frees the rules; the files belong to the generation. */
void rules_free(struct auth_host *h);
/* Closes the files of a generation, to which no worker refers any more. */
void rules_close_files(struct auth_generation *g);

/*
 * Finds the first rule that matches a path; NULL: none does.
 * Returns 0, or -errno: it is not known whether a rule matches.
 */
int rules_find(const struct auth_host *h, struct mk_str path, const struct auth_rule **ret);

/* Returns true if the rule asks for a login or a certificate. */
bool rules_protects(const struct auth_rule *rule);

/* Return the users, groups and keys that are in use now; valid until the callback returns. NULL: the rule has none. */
const struct users *rules_users(struct mk_request *req, const struct auth_rule *rule);
const struct key_set *rules_keys(struct mk_request *req, const struct auth_rule *rule);

/* Return the state of the process and the limits of a request's generation. */
struct auth_process *rules_process(const struct mk_request *req);
const struct auth_limits *rules_limits(const struct mk_request *req);

/* Counts what has become of a request's login. */
void rules_count_login(const struct mk_request *req, enum login_type type, enum login_result result);

/* Returns the users of a rule as rules_users(), for a worker that is held. */
const struct users *rules_worker_users(struct auth_worker *worker, const struct auth_rule *rule);

/* Returns true if a user that has logged in is one of those that `Require` names. */
bool rules_admits(struct mk_request *req, const struct auth_rule *rule, struct mk_str user);

/* Returns the state of an exchange, which is made if there is none; NULL without memory. */
struct auth_exchange *rules_get_exchange(struct mk_request *req);
/*
 * Keeps that a login has passed the rule, and sets its user (`.p` NULL: it names none).
 * Returns MK_DECLINED: the request passes; or -ENOMEM.
 */
int rules_keep_login(struct mk_request *req, const struct auth_rule *rule, struct mk_str user);
/* Returns whether the last login of the request has passed this rule. */
bool rules_has_login(const struct mk_request *req, const struct auth_rule *rule);

/*
 * Checks of a host's rules against their files and against settings of other sections, when a configuration is loaded.
 */
/*
 * Checks the rules of a host: errors are certificates that the handshake does not ask for, and a FailureDelay that is
 * not shorter than HandlerTimeout; warnings are users and groups that no line of the files has. In generation_check.
 * Returns 0, or -EINVAL, reported.
 */
int rule_check(struct mk_host *host, const struct auth_host *h);

#endif
