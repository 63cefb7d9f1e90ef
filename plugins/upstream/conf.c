// SPDX-License-Identifier: Apache-2.0
#include "conf.h"

#include <monkey/upstreams.h>

#include <errno.h>

enum { NAME_SERVER_PORT = 53, ANY_PORT = 1 };

/* Parses a line `NameServer` into struct lookup_servers (mk_conf_parse_fn). */
static int parse_name_server(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                             struct mk_buf *error)
{
    struct lookup_servers *servers = field;
    struct mk_address address;
    if (mk_address_parse(value->text, &address) < 0)
        return mk_conf_fail(error, "a name server is an address with or without a port: 192.0.2.53, 127.0.0.1:5353 or "
                                   "[2001:db8::53]:53");
    if (servers->n == LOOKUP_SERVERS_MAX) {
        mk_buf_addf(error, "a group has at most %d name servers", LOOKUP_SERVERS_MAX);
        return -EINVAL;
    }
    address.port = address.port ? address.port : NAME_SERVER_PORT;
    struct mk_address *items = mk_arena_grow(arena, servers->items, servers->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    items[servers->n++] = address;
    servers->items = items;
    return 0;
}

/*
 * Parses the name of a line `Server srv:NAME`, of which `text` is the part after the colon. Returns 0, -ENOMEM, or
 * -EINVAL with a sentence in `error`.
 */
static int parse_srv(struct mk_str text, const struct mk_dial_target **ret, struct mk_arena *arena,
                     struct mk_buf *error)
{
    const char *why;
    int err =
        text.len && memchr(text.p, ':', text.len) ? -EINVAL : mk_dial_target_parse(arena, text, ANY_PORT, ret, &why);
    if (err == -EINVAL || (err == 0 && (*ret)->addr))
        return mk_conf_fail(error, "behind srv: stands a name without a port, such as srv:_http._tcp.app.internal");
    return err;
}

/*
 * Checks a section [UPSTREAM] as a whole: servers that stand twice or of which none can be used, and keys without
 * effect.
 */
/* ── servers ── */

static bool is_same_server(const struct server_line *a, const struct server_line *b)
{
    const struct mk_dial_target *x = a->target, *y = b->target;
    bool is_path = !x->port && !y->port;
    return a->is_srv == b->is_srv && x->port == y->port &&
           (is_path ? mk_str_eq(x->host, y->host) : mk_str_ieq(x->host, y->host));
}

static void report_duplicate_servers(const struct mk_conf_check *check, const struct server_lines *lines, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (is_same_server(&lines->items[i], &lines->items[k]))
            mk_conf_error_nth(
                check, offsetof(struct upstream_conf, servers), i,
                "the server %.*s is in this group already: write one line, with `weight=2` for a larger share",
                MK_STR_ARG(lines->items[i].name));
}

/* A line `Server srv:...`. */
static void check_service(const struct mk_conf_check *check, const struct upstream_conf *conf, uint32_t i)
{
    size_t key = offsetof(struct upstream_conf, servers);
    if (!conf->servers.items[i].is_srv)
        return;
    if (!conf->resolve_ms)
        mk_conf_error_nth(check, key, i, "SRV records need Resolve: a connection has no time to look them up");
    if (conf->servers.items[i].weight != 1)
        mk_conf_error_nth(check, key, i, "the SRV records have the weights");
}

static void check_servers(const struct mk_conf_check *check, const struct upstream_conf *conf)
{
    size_t key = offsetof(struct upstream_conf, servers);
    uint64_t weights = 0;
    bool is_usable = false;
    for (uint32_t i = 0; i < conf->servers.n; i++) {
        const struct server_line *line = &conf->servers.items[i];
        weights += line->weight;
        is_usable |= !line->is_down && !line->is_draining && line->weight;
        report_duplicate_servers(check, &conf->servers, i);
        check_service(check, conf, i);
    }
    if (conf->servers.n && !weights)
        mk_conf_error(check, key,
                      "all servers have the weight 0: none would get a request; leave out `weight=0` of one");
    else if (conf->servers.n && !is_usable)
        mk_conf_warn(check, key,
                     "all servers are down, drain or have the weight 0: requests get 503 until the shell sets one up");
}

/* ── keys without effect ── */

/* What a key needs to have an effect. */
enum { NEEDS_HASH = 1, NEEDS_STICKY = 2, NEEDS_QUEUE = 4, NEEDS_RETRIES = 8, NEEDS_EJECTIONS = 16 };

static const struct {
    unsigned need;
    const char *phrase;
} needs[] = {
    {NEEDS_HASH, "without Balance Hash"},
    {NEEDS_STICKY, "without Balance Sticky"},
    {NEEDS_QUEUE, "without MaxConnections and Queue: no request waits"},
    {NEEDS_RETRIES, "with Retry Off"},
    {NEEDS_EJECTIONS, "with EjectAfter 0"},
};

#define ROW(name, field, usual, need) \
    { \
        name, offsetof(struct upstream_conf, field), sizeof(((struct upstream_conf *)0)->field), usual, need \
    }

/* Numbers that are not as without the key: one that says the same as the default does no harm. */
static const struct {
    const char *name;
    size_t offset, size;
    int64_t usual;
    unsigned needs;
} rows[] = {
    ROW("HashBy", hash_by.kind, HASH_BY_CLIENT, NEEDS_HASH), ROW("QueueTimeout", queue_timeout_ms, 5000, NEEDS_QUEUE),
    ROW("RetryMost", retry_most, 2, NEEDS_RETRIES),          ROW("RetryTime", retry_time_ms, 10000, NEEDS_RETRIES),
    ROW("RetryBudget", retry_budget, 20, NEEDS_RETRIES),     ROW("EjectSlower", eject_slower_ms, 0, NEEDS_EJECTIONS),
    ROW("EjectTime", eject_time_ms, 10000, NEEDS_EJECTIONS), ROW("EjectMost", eject_most, 50, NEEDS_EJECTIONS),
};

static int64_t get_number(const struct upstream_conf *conf, size_t offset, size_t size)
{
    const char *field = (const char *)conf + offset;
    if (size == sizeof(uint8_t))
        return *(const uint8_t *)field;
    return size == sizeof(uint32_t) ? *(const uint32_t *)field : *(const int64_t *)field;
}

static unsigned get_lacks(const struct upstream_conf *conf)
{
    return (conf->balance != UPSTREAM_HASH ? NEEDS_HASH : 0) | (conf->balance != UPSTREAM_STICKY ? NEEDS_STICKY : 0) |
           (!conf->max_connections || !conf->queue ? NEEDS_QUEUE : 0) |
           (conf->retry.kind == RETRY_OFF ? NEEDS_RETRIES : 0) | (!conf->eject_after ? NEEDS_EJECTIONS : 0);
}

static void warn_of_unused(const struct mk_conf_check *check, const char *name, size_t offset, unsigned lack)
{
    for (size_t i = 0; i < MK_COUNT_OF(needs); i++)
        if (needs[i].need == lack)
            mk_conf_warn(check, offset, "%s has no effect %s", name, needs[i].phrase);
}

static void check_effects(const struct mk_conf_check *check, const struct upstream_conf *conf)
{
    size_t cookie = offsetof(struct upstream_conf, sticky_cookie);
    unsigned lacks = get_lacks(conf);
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (lacks & rows[i].needs && get_number(conf, rows[i].offset, rows[i].size) != rows[i].usual)
            warn_of_unused(check, rows[i].name, rows[i].offset, rows[i].needs);
    if (lacks & NEEDS_STICKY && !mk_str_eq(conf->sticky_cookie.name, MK_STR(UPSTREAM_COOKIE)))
        warn_of_unused(check, "StickyCookie", cookie, NEEDS_STICKY);
}

/* Keys that would be taken for a protection which is not there. */
static void check_pairs(const struct mk_conf_check *check, const struct upstream_conf *conf)
{
    if (conf->queue && !conf->max_connections &&
        !mk_conf_is_wrong(check, offsetof(struct upstream_conf, max_connections)))
        mk_conf_error(check, offsetof(struct upstream_conf, queue),
                      "no request waits without MaxConnections: say how many a server may have");
    if (conf->sticky_secret.len && conf->balance != UPSTREAM_STICKY)
        mk_conf_error(check, offsetof(struct upstream_conf, sticky_secret), "it is for Balance Sticky");
}

/* Checks a section as a whole; `section` is a struct upstream_conf. */
static void check_section(const struct mk_conf_check *check, void *section)
{
    check_servers(check, section);
    check_pairs(check, section);
    check_effects(check, section);
}

/* ── Name ── */

static int parse_name(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *name = field;
    if (value->text.len > 63 || !mk_str_is_name(value->text, "-_"))
        return mk_conf_fail(error, "a group has a name of letters, digits, - and _, which `To http://NAME` uses");
    *name = mk_arena_dup(arena, value->text);
    return name->p ? 0 : -ENOMEM;
}

/* ── Server ── */

static int parse_weight(struct mk_str text, struct server_line *line, struct mk_buf *error)
{
    uint64_t weight;
    if (line->has_weight)
        return mk_conf_fail(error, "a server has one weight");
    if (!mk_str_u64(text, UPSTREAM_WEIGHT_MAX, &weight)) {
        mk_buf_addf(error, "a weight is a number from 0 to %d, and \"%.*s\" is not", UPSTREAM_WEIGHT_MAX,
                    MK_STR_ARG(text));
        return -EINVAL;
    }
    line->weight = (uint32_t)weight;
    line->has_weight = true;
    return 0;
}

static int parse_option(struct server_line *line, struct mk_str word, struct mk_buf *error)
{
    struct mk_str weight = MK_STR("weight=");
    if (mk_str_istarts(word, weight))
        return parse_weight(mk_str_after(word, weight.len), line, error);
    if (mk_str_ieq(word, MK_STR("backup"))) {
        line->is_backup = true;
    } else if (mk_str_ieq(word, MK_STR("down"))) {
        line->is_down = true;
    } else if (mk_str_ieq(word, MK_STR("drain"))) {
        line->is_draining = true;
    } else {
        if (memchr(word.p, ':', word.len)) {
            mk_buf_addf(error, "a line has one address, and no name before it: write a line for each server");
            return -EINVAL;
        }
        mk_buf_addf(error, "behind the address may stand weight=N, backup, drain and down, not \"%.*s\"",
                    MK_STR_ARG(word));
        return -EINVAL;
    }
    return 0;
}

/* Returns room for another line; NULL without memory. */
static struct server_line *add_line(struct server_lines *lines, struct mk_arena *arena)
{
    if (!lines->items)
        lines->items = mk_arena_alloc(arena, UPSTREAM_SERVERS_MAX * sizeof(*lines->items));
    return lines->items ? &lines->items[lines->n] : NULL;
}

/* Parses the first word of a line. */
static int parse_target(struct server_line *line, struct mk_str word, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str srv = MK_STR("srv:");
    const char *why;
    line->name = mk_arena_dup(arena, word);
    if (!line->name.p)
        return -ENOMEM;
    line->is_srv = mk_str_starts(word, srv);
    if (line->is_srv)
        return parse_srv(mk_str(word.p + srv.len, word.len - srv.len), &line->target, arena, error);
    int err = mk_dial_target_parse(arena, word, UPSTREAM_PORT, &line->target, &why);
    if (err == -EINVAL)
        mk_buf_addf(error, "\"%.*s\" is no address of a server: %s", MK_STR_ARG(word),
                    memmem(word.p, word.len, "://", 3) ? "write it without http://, which To says"
                    : memchr(word.p, ',', word.len)    ? "write a line for each server"
                                                       : why);
    return err;
}

static int parse_server(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct server_lines *lines = field;
    if (lines->n == UPSTREAM_SERVERS_MAX) {
        mk_buf_addf(error, "a group has at most %d servers", UPSTREAM_SERVERS_MAX);
        return -EINVAL;
    }
    struct server_line *line = add_line(lines, arena);
    if (!line)
        return -ENOMEM;
    *line = (struct server_line){.weight = 1};
    int err = parse_target(line, value->words[0], arena, error);
    for (uint32_t i = 1; i < value->n && err == 0; i++)
        err = parse_option(line, value->words[i], error);
    lines->n += err == 0;
    return err;
}

/* ── the section ── */

static const char *const balance_names[] = {"LeastLoaded", "RoundRobin", "Hash", "Sticky", "First", NULL};
static const char *const family_names[] = {"Any", "IPv4", "IPv6", NULL}; /* enum lookup_family */

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_CUSTOM(struct upstream_conf, name, "Name", NULL,
                       "The name of the group: `To http://app` of `[PROXY]` means the group `app`, if there is one.",
                       .flags = MK_CONF_REQUIRED, .unit = "name", .parse = parse_name),
    MK_CONF_KEY_CUSTOM(
        struct upstream_conf, servers, "Server", NULL,
        "A server of the group: `10.0.0.1:8080`, `app.internal:8080` (port 80 without one), "
        "`srv:_http._tcp.app.internal` or `unix:/run/app.sock`. Each address of a name is a server; SRV records have "
        "ports, priorities and weights. Behind it may stand `weight=N` (1; a server of weight 2 gets twice as "
        "many requests, one of weight 0 none), `backup` (only if no other server can be used), `drain` (only "
        "requests whose cookie names it, with `Sticky`) and `down` (none).",
        .flags = MK_CONF_REQUIRED | MK_CONF_REPEAT, .unit = "address [option ...]", .parse = parse_server),
    MK_CONF_KEY_ENUM(
        struct upstream_conf, balance, "Balance", "LeastLoaded",
        "Which server a request gets: of two at random the one with fewer requests under way "
        "(`LeastLoaded`), one after the other (`RoundRobin`), always the same for what `HashBy` names (`Hash`) or "
        "for a browser (`Sticky`, by a cookie), all by weight, or the first one that can be used, in the order of the "
        "lines (`First`).",
        .names = balance_names),
    MK_CONF_KEY_CUSTOM(struct upstream_conf, hash_by, "HashBy", "Client",
                       "What decides with `Balance Hash`: the address of the client, the path (`Path`), the path with "
                       "the query (`Url`), or `Header NAME`, `Cookie NAME` or `Query NAME`. A request without that is "
                       "balanced as by `LeastLoaded`.",
                       .unit = "part of the request", .parse = hash_by_parse),
    MK_CONF_KEY_CUSTOM(struct upstream_conf, sticky_cookie, "StickyCookie", UPSTREAM_COOKIE " HttpOnly SameSite=Lax",
                       "The cookie of `Balance Sticky`. Behind its name may stand `Path=/PATH`, `Max-Age=SECONDS` "
                       "(without it the cookie lasts until the browser ends), `HttpOnly`, `Secure` and "
                       "`SameSite=Lax`, `Strict` or `None`.",
                       .unit = "name [attribute ...]", .parse = sticky_parse_cookie),
    MK_CONF_KEY_PATH(
        struct upstream_conf, sticky_secret, "StickySecret", NULL,
        "A file with 16 bytes to 4 KB, of which the values of these cookies are made. Without one the server "
        "makes a secret, which lasts until it ends and which no other server knows."),
    MK_CONF_KEY_INT(
        struct upstream_conf, max_connections, "MaxConnections", "0",
        "How many requests a server of the group may have at a time, over all workers: each has a connection "
        "to itself, an open WebSocket included. Connections that are kept idle (`KeepAlive` of `[PROXY]`) are "
        "not counted. 0: no limit.",
        .min = 0, .max = 1000000),
    MK_CONF_KEY_INT(
        struct upstream_conf, queue, "Queue", "0",
        "How many requests of the group may wait while all its servers have `MaxConnections`, in the order in "
        "which they come; further ones get 503. As many may wait for each server that their cookies name.",
        .min = 0, .max = 1000000),
    MK_CONF_KEY_DURATION(struct upstream_conf, queue_timeout_ms, "QueueTimeout", "5s",
                         "How long a request waits there; then the response is 503.", .min = 1, .max = 3600000,
                         .unit = "s"),
    MK_CONF_KEY_DURATION(struct upstream_conf, hold_ms, "Hold", "0",
                         "How long a request waits while no server of the group can be used or reached, instead of "
                         "getting 502 or 503 at once.",
                         .min = 0, .max = 3600000, .unit = "s"),
    MK_CONF_KEY_CUSTOM(
        struct upstream_conf, retry, "Retry", "Connect",
        "When a request goes to another server: if no connection could be made (`Connect`), also if a "
        "connection ends or takes too long before a response has begun (`Idempotent`), or never (`Off`). Statuses "
        "such as `502 503 429` may follow: a response with one of them is dropped, and the request goes to another "
        "server; 508 (a loop) is never one of them. What a server may have got is only repeated if the method is "
        "idempotent, and the body was kept or is none.",
        .unit = "kind [status ...]", .parse = retry_parse),
    MK_CONF_KEY_INT(struct upstream_conf, retry_most, "RetryMost", "2", "How many other servers a request may get.",
                    .min = 1, .max = MK_UPSTREAM_TRIES_MAX - 1),
    MK_CONF_KEY_DURATION(struct upstream_conf, retry_time_ms, "RetryTime", "10s",
                         "How long after its first server a request may go to another one.", .min = 1, .max = 3600000,
                         .unit = "s"),
    MK_CONF_KEY_INT(
        struct upstream_conf, retry_budget, "RetryBudget", "20",
        "How many requests of the group may be repeated, in percent of those of the last ten seconds, so that "
        "retries do not add to an overload; three in ten seconds always may. A connection that cannot be made "
        "does not count.",
        .min = 0, .max = 100),
    MK_CONF_KEY_INT(
        struct upstream_conf, eject_after, "EjectAfter", "5",
        "After how many failures in a row a server gets no requests for `EjectTime`. 0: it always gets some.", .min = 0,
        .max = 1000000),
    MK_CONF_KEY_CUSTOM(struct upstream_conf, eject_on, "EjectOn", "Refused Timeout Reset 502-504",
                       "What is a failure: no connection can be made (`Refused`), it or a response takes too long "
                       "(`Timeout`), a connection ends without a right response (`Reset`), and these statuses.",
                       .unit = "kind or status ...", .parse = eject_parse),
    MK_CONF_KEY_DURATION(struct upstream_conf, eject_slower_ms, "EjectSlower", "0",
                         "A response whose head takes longer is a failure as well. 0: none is for its time.", .min = 0,
                         .max = 3600000, .unit = "s"),
    MK_CONF_KEY_DURATION(struct upstream_conf, eject_time_ms, "EjectTime", "10s",
                         "How long it gets none; twice as long each time that follows, up to 5 minutes.", .min = 1,
                         .max = 300000, .unit = "s"),
    MK_CONF_KEY_INT(
        struct upstream_conf, eject_most, "EjectMost", "50",
        "Which share of the servers may be without requests at a time, in percent. If more have failed, all "
        "are tried again.",
        .min = 0, .max = 100),
    MK_CONF_KEY_DURATION(struct upstream_conf, slow_start_ms, "SlowStart", "0",
                         "How long a server that is in use again gets fewer requests than its weight says: a tenth at "
                         "first, then more and more. Not with `Balance Hash`.",
                         .min = 0, .max = 3600000, .unit = "s"),
    MK_CONF_KEY_DURATION(struct upstream_conf, resolve_ms, "Resolve", "10s",
                         "How long the addresses of a name count at most; their time to live if that is shorter, but a "
                         "second at least, unless this is less. 0: names are looked up for each connection, and a name "
                         "is one server.",
                         .min = 0, .max = 86400000, .unit = "s"),
    MK_CONF_KEY_CUSTOM(struct upstream_conf, name_servers, "NameServer", NULL,
                       "A name server that is asked for the addresses of names, in place of those of the system: an "
                       "address, with a port or without. The next one is asked if it does not answer.",
                       .flags = MK_CONF_REPEAT, .unit = "address", .parse = parse_name_server),
    MK_CONF_KEY_ENUM(struct upstream_conf, family, "Family", "Any",
                     "Which addresses of names are used: all (`Any`), `IPv4` or `IPv6`.", .names = family_names),
    {0},
};

static const struct mk_conf_foreign foreign[] = {
    {"least_conn", "that is `Balance LeastLoaded`"},
    {"max_fails", "that is `EjectAfter`"},
    {"fail_timeout", "that is `EjectTime`"},
    {"resolver", "that is `NameServer`"},
    {"ip_hash", "that is `Balance Hash`"},
    {"max_conns", "that is `MaxConnections`"},
    {"maxconn", "that is `MaxConnections`"},
    {"maxqueue", "that is `Queue`"},
    {"slowstart", "that is `SlowStart`"},
    {"health_check", "that is `Check`"},
    {0},
};

const struct mk_conf_section upstream_sections[] = {
    {.name = "UPSTREAM",
     .scope = MK_CONF_SCOPE_SERVER,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct upstream_conf),
     .keys = keys,
     .check = check_section,
     .foreign = foreign,
     .doc = MK_CONF_DOC("A group of servers with one name, to which `[PROXY]` passes requests.")},
    {.name = "UPSTREAM",
     .scope = MK_CONF_SCOPE_SERVER,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct check_conf),
     .keys = check_keys,
     .check = check_conf_check},
    {0},
};
