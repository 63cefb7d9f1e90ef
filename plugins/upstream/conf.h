// SPDX-License-Identifier: Apache-2.0
#ifndef UPSTREAM_CONF_H
#define UPSTREAM_CONF_H

#include <monkey/base/address.h>
#include <monkey/base/dial.h>
#include <monkey/conf.h>
#include <monkey/kit/cookie.h>
#include <monkey/kit/status_set.h>
#include <monkey/loop.h>
#include <monkey/plugin.h>
#include <monkey/request.h>
#include <monkey/upstreams.h>

#include <stdatomic.h>

/*
 * What counts as a failure of a server: EjectOn and EjectSlower. Pure.
 */
struct eject_on {
    bool refused, timeout, reset;
    struct mk_status_set statuses;
};

/* Parses `Refused Timeout Reset 502-504` into a struct eject_on; mk_conf_parse_fn. */
int eject_parse(const struct mk_conf_value *value, void *eject_on, struct mk_arena *arena, struct mk_buf *error);

/* `slower_ms`: a response whose head takes longer is a failure; 0: none is for that. */
bool eject_is_failure(const struct eject_on *on, uint32_t slower_ms, const struct mk_upstream_outcome *outcome);
/* Appends why it is one: "status 503", "connection refused". */
void eject_write_reason(const struct mk_upstream_outcome *outcome, struct mk_buf *out);

/*
 * What decides about the server of a request with `Balance Hash`: the value of HashBy.
 */
enum hash_by_kind {
    HASH_BY_CLIENT,
    HASH_BY_PATH,
    HASH_BY_URL,
    HASH_BY_HEADER,
    HASH_BY_COOKIE,
    HASH_BY_QUERY,
    HASH_BY_KINDS,
};

struct hash_by {
    uint8_t kind;       /* enum hash_by_kind */
    struct mk_str name; /* of the header, cookie or parameter */
};

/* Parses a value (mk_conf_parse_fn). */
int hash_by_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/* Gets the hash of what the request has there; returns false if it has nothing. */
bool hash_by_get(const struct hash_by *by, struct mk_request *req, uint64_t *ret);

/* Finds a parameter in a query, neither of them decoded; `.p` NULL: there is none. Pure. */
struct mk_str hash_by_find_parameter(struct mk_str query, struct mk_str name);

/*
 * A lookup of a name through c-ares: of its addresses, or of its SRV records and the addresses of their targets.
 *
 *     lookup_new ─► lookup_start ─► /etc/hosts, or questions to name servers ─► fn(lookup) ─► lookup_free
 *              └──► lookups_wait, which blocks
 *
 * Each lookup has its own channel of c-ares: it reads the names of the system's name servers again and asks from new
 * ports. It ends within LOOKUP_MS_MAX.
 */
enum {
    LOOKUP_ADDRESSES_MAX = 256, /* further ones are left out */
    LOOKUP_SERVERS_MAX = 8,
    LOOKUP_MS_MAX = 5000,
};

enum lookup_family { LOOKUP_ANY, LOOKUP_IPV4, LOOKUP_IPV6 };

struct lookup_servers {
    struct mk_address *items;
    uint32_t n;
};

/* What is looked up, and where. Must stay as long as the lookup. */
struct lookup_query {
    const char *host;
    bool is_srv;
    uint16_t port;                 /* of the addresses, unless SRV records have it */
    int family;                    /* enum lookup_family */
    struct lookup_servers servers; /* none: those of the system */
};

struct lookup_address {
    struct mk_address address;
    uint16_t priority, weight; /* of the SRV record */
};

enum lookup_status {
    LOOKUP_OK,
    LOOKUP_NO_ADDRESS, /* that is the answer */
    LOOKUP_FAILED,     /* there is no answer */
};

struct lookup_result {
    enum lookup_status status;
    const char *why;               /* a phrase for people, unless it is LOOKUP_OK */
    bool failed_ipv4, failed_ipv6; /* some addresses of the family may be missing, also with LOOKUP_OK */
    bool has_more;                 /* than LOOKUP_ADDRESSES_MAX */
    uint32_t ttl_s;
    unsigned n;
    struct lookup_address addresses[LOOKUP_ADDRESSES_MAX]; /* by their priority, and in one order for the same ones */
};

/* Once for the process. The first returns 0 or -ENOMEM. */
int lookups_init(void);
void lookups_release(void);

struct lookup;
typedef void (*lookup_fn)(struct lookup *lookup, void *ctx);

/* Makes a lookup, which does nothing yet. Returns NULL without memory. */
struct lookup *lookup_new(const struct lookup_query *query);
/* Starts it. Calls `fn` in the loop's thread once it has ended, never from within this call. */
void lookup_start(struct lookup *l, struct mk_loop *loop, lookup_fn fn, void *ctx);
/* Makes `n` lookups at the same time, and returns when all have ended, or failed since `ms` are over. */
void lookups_wait(struct lookup *const *lookups, unsigned n, uint32_t ms);
/* Once it has ended; the caller may change it. */
struct lookup_result *lookup_get_result(struct lookup *l);
/* Adds an address, at its place, unless it is there. */
void lookup_add(struct lookup_result *r, const struct lookup_address *address);
/* Frees it, also before its end. */
void lookup_free(struct lookup *l);

/* Prints an address as a line `Server` has it: 192.0.2.1:80, [2001:db8::1]:80. */
void lookup_print(const struct mk_address *address, struct mk_buf *out);

/*
 * When a request goes to another server: the value of Retry, and the budget of a group. Pure, but for the clock that is
 * given.
 */
enum retry_kind { RETRY_CONNECT, RETRY_IDEMPOTENT, RETRY_OFF };

struct retry {
    uint8_t kind; /* enum retry_kind */
    struct mk_status_set statuses;
};

/* Parses `Off`, or `Connect` or `Idempotent` and statuses, into a struct retry; mk_conf_parse_fn. */
int retry_parse(const struct mk_conf_value *value, void *retry, struct mk_arena *arena, struct mk_buf *error);

/* Tells whether a server is among the tries. */
bool retry_has_tried(const struct mk_upstream_tries *tries, const struct mk_upstream_server *server);

/* Tells whether the last try failed in a way that another one may follow. */
bool retry_allows(const struct retry *retry, const struct mk_upstream_tries *tries);

enum { RETRY_WINDOW_S = 10, RETRY_SLOTS = 16, RETRIES_LEAST = 3 };

/*
 * The requests and retries of the last ten seconds. Threads share it without a lock: where a second begins some may not
 * be counted.
 */
struct retry_budget {
    struct retry_second {
        _Atomic uint64_t second;
        _Atomic uint32_t requests, retries;
    } slots[RETRY_SLOTS];
};

void retry_budget_note_request(struct retry_budget *budget, uint64_t now_ms);
void retry_budget_note_retry(struct retry_budget *budget, uint64_t now_ms);
/* Tells whether there were fewer retries than RETRIES_LEAST, or than `percent` of the requests. */
bool retry_budget_allows(struct retry_budget *budget, uint64_t now_ms, uint64_t percent);

/*
 * Balance Sticky: a cookie names the server that a client had before. Its value is made of a secret and the server's
 * name, so that it neither shows an address nor can be made up for another server.
 */
enum { STICKY_TOKEN_BYTES = 32, STICKY_SECRET_BYTES_MIN = 16, STICKY_SECRET_BYTES_MAX = 4096 };

/* Parses `NAME [Path=P] [Max-Age=SECONDS] [HttpOnly] [Secure] [SameSite=S]` into a struct mk_cookie; mk_conf_parse_fn.
 */
int sticky_parse_cookie(const struct mk_conf_value *value, void *cookie, struct mk_arena *arena, struct mk_buf *error);

/* Makes a key of the bytes of a secret. Pure. */
void sticky_derive_key(struct mk_str secret, uint64_t key[2]);
/* Reads a secret from a file. Returns 0, -EINVAL (it has too few or too many bytes) or -errno. Blocks. */
int sticky_read_key(const char *path, uint64_t key[2]);
/* Gets the key of groups without a secret, which the process makes once. Returns 0, 1 (it was made now) or -errno. */
int sticky_get_own_key(uint64_t key[2]);

/* Writes the value of the cookie for a server. Pure. */
void sticky_make_token(const uint64_t key[2], struct mk_str group, struct mk_str server, char ret[STICKY_TOKEN_BYTES]);
/* Tells whether a value is that of a server, in a time that does not depend on the bytes. Pure. */
bool sticky_is_token(const char token[STICKY_TOKEN_BYTES], struct mk_str value);

/*
 * The directives of [UPSTREAM].
 */
enum { UPSTREAM_SERVERS_MAX = 64, UPSTREAM_WEIGHT_MAX = 256, UPSTREAM_PORT = 80 };

/* The name of the cookie of Balance Sticky, without StickyCookie. */
#define UPSTREAM_COOKIE "server"

enum upstream_balance {
    UPSTREAM_LEAST_LOADED,
    UPSTREAM_ROUND_ROBIN,
    UPSTREAM_HASH,
    UPSTREAM_STICKY,
    UPSTREAM_FIRST,
};

/* A line `Server`. */
struct server_line {
    struct mk_str name;                  /* the address, as it was written */
    const struct mk_dial_target *target; /* with is_srv: the name of the service */
    uint32_t weight;
    bool has_weight, is_backup, is_down, is_draining, is_srv;
};

struct server_lines {
    struct server_line *items;
    uint32_t n;
};

/* A section; constant once the configuration is loaded. */
struct upstream_conf {
    struct mk_str name;
    struct server_lines servers;
    int balance; /* enum upstream_balance */
    struct hash_by hash_by;
    struct mk_cookie sticky_cookie; /* without a value */
    struct mk_str sticky_secret;    /* a file; empty: none */
    int64_t max_connections, queue; /* 0: no limit; none waits */
    uint32_t queue_timeout_ms, hold_ms;
    struct retry retry;
    int64_t retry_most, retry_budget;
    uint32_t retry_time_ms;
    struct eject_on eject_on;
    int64_t eject_after, eject_most;
    uint32_t eject_slower_ms, eject_time_ms, slow_start_ms;
    uint32_t resolve_ms; /* the longest that addresses of names count; 0: names are looked up for each connection */
    struct lookup_servers name_servers;
    int family; /* enum lookup_family */
};

/* Tells whether the addresses of a line are looked up: it has a name, neither an address nor a path. */
static inline bool server_line_is_name(const struct upstream_conf *conf, const struct server_line *line)
{
    return conf->resolve_ms && !line->target->addr;
}

/*
 * The directives of [UPSTREAM] about checks: a second struct for each section, next to struct upstream_conf.
 */
enum { CHECK_HEADERS_MAX = 16, CHECK_BODY_BYTES_MAX = 65536 };

enum check_kind { CHECK_NONE, CHECK_OFF, CHECK_TCP, CHECK_HTTP, CHECK_FASTCGI }; /* none: `Check` is not set */

/* What `Check` says. */
struct check_what {
    uint8_t kind; /* enum check_kind */
    struct mk_str path;
};

/* Lines of a head, each with its CRLF. */
struct check_headers {
    struct mk_str lines[CHECK_HEADERS_MAX];
    uint32_t n;
};

/* The keys of a section; constant once the configuration is loaded. */
struct check_conf {
    struct check_what what;
    struct mk_str method, host, text; /* empty: not set */
    struct check_headers headers;
    struct mk_status_set statuses;
    bool is_tls, tls_verify;
    struct mk_str tls_name, tls_ca;
    int64_t port; /* 0: that of the line `Server` */
    uint32_t timeout_ms, interval_ms;
    int64_t down, up;
};

extern const struct mk_conf_key check_keys[];

/* Tells whether checks use TLS, which FastCGI does not have. */
static inline bool check_conf_has_tls(const struct check_conf *c)
{
    return c->is_tls && c->what.kind != CHECK_FASTCGI;
}

/* Tells whether the servers are checked. */
static inline bool check_conf_is_on(const struct check_conf *c)
{
    return c->what.kind > CHECK_OFF;
}

/* Tells whether a check sends a request. */
static inline bool check_conf_asks(const struct check_conf *c)
{
    return c->what.kind > CHECK_TCP;
}

/* Checks a section (mk_conf_section.check). */
void check_conf_check(const struct mk_conf_check *check, void *section);

/* Two tables for each section: struct upstream_conf and struct check_conf. */
enum { UPSTREAM_SECTION, CHECK_SECTION };
extern const struct mk_conf_section upstream_sections[];

#endif
