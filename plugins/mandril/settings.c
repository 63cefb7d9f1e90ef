// SPDX-License-Identifier: Apache-2.0
#include "mandril.h"

#include <errno.h>

/* ── matching ── */

static struct mk_str get_header(const struct conditions_subject *subject, struct mk_str name)
{
    return subject->req ? mk_request_header_by_name(subject->req, name) : mk_explain_header(subject->explained, name);
}

/* Returns the host in a URI without its port; empty for what is no URI with a host. */
static struct mk_str find_uri_host(struct mk_str uri)
{
    const char *host = uri.len ? memmem(uri.p, uri.len, "://", 3) : NULL;
    if (!host)
        return MK_STR("");
    struct mk_str rest = mk_str_until(mk_str_after(uri, (size_t)(host - uri.p) + 3), "/?#\\");
    size_t end = rest.len;
    const char *at = end ? memrchr(rest.p, '@', end) : NULL; /* after user information */
    size_t start = at ? (size_t)(at - rest.p) + 1 : 0;
    bool bracketed = start < end && rest.p[start] == '[';
    const char *port = memchr(rest.p + start, bracketed ? ']' : ':', end - start);
    size_t len = port ? (size_t)(port - rest.p) + bracketed - start : end - start;
    return mk_str(rest.p + start, len);
}

/* Returns whether the request comes from a page of another host. Requests without Referer do not. */
static bool has_foreign_referer(const struct conditions_subject *subject)
{
    struct mk_request *req = subject->req;
    struct mk_str referer = req ? mk_request_header(req, MK_HEADER_REFERER) : get_header(subject, MK_STR("Referer"));
    if (!referer.len)
        return false;
    struct mk_str host = find_uri_host(referer);
    const struct mk_host *own = req ? mk_request_host_conf(req) : subject->host;
    struct mk_str asked = req ? mk_request_host(req) : subject->explained->name;
    return !host.len || (!mk_host_has_name(own, host) && !mk_str_ieq(host, asked));
}

static struct mk_str find_header(void *ctx, struct mk_str name)
{
    return get_header(ctx, name);
}

int conditions_match(const struct conditions *c, const struct conditions_subject *subject)
{
    int found = c->match.text.p ? mk_pattern_match(&c->match, subject->path) : 1;
    if (found <= 0)
        return found;
    if (c->foreign_referer && !has_foreign_referer(subject))
        return 0;
    struct conditions_subject own = *subject;
    struct mk_str query = own.req ? mk_request_query(own.req) : own.explained->query;
    return mk_when_holds(&c->when, &(struct mk_when_request){own.method, query, find_header, &own});
}

bool conditions_cover(const struct conditions *c, const struct conditions *later)
{
    if (c->match.text.p && (!later->match.text.p || !mk_pattern_covers(&c->match, &later->match)))
        return false;
    return (!c->foreign_referer || later->foreign_referer) && mk_when_covers(&c->when, &later->when);
}

enum { DELAY_MS_MAX = 30000, SEND_RATE_MIN = 1024, NAME_BYTES_MAX = 64 };

/* ── Action ── */

static int parse_status(struct mk_str word, struct rule_action *action, struct mk_buf *error)
{
    static const uint16_t with_fields[] = {401, 405, 407, 426}; /* RFC 9110 demands a header with each of them */
    uint64_t n;
    if (!mk_str_u64(word, 599, &n) || n < 400)
        return mk_conf_fail(error, "the status of deny is from 400 to 599");
    for (unsigned i = 0; i < MK_COUNT_OF(with_fields); i++)
        if (n == with_fields[i]) {
            mk_buf_addf(error, "%u needs a header that only a login or a handler knows; write 403 or 404", (unsigned)n);
            return -EINVAL;
        }
    action->status = (uint16_t)n;
    return 0;
}

/* Parses 500ms, 2s or 2. */
static int parse_delay(struct mk_str word, struct rule_action *action, struct mk_buf *error)
{
    struct mk_str digits = word;
    uint64_t n, unit = 1000;
    if (word.len > 2 && mk_str_ends(word, MK_STR("ms"))) {
        unit = 1;
        digits.len -= 2;
    } else if (word.len > 1 && word.p[word.len - 1] == 's') {
        digits.len -= 1;
    }
    if (mk_str_u64(digits, DELAY_MS_MAX, &n) && n > 0 && n * unit <= DELAY_MS_MAX) {
        action->delay_ms = (uint32_t)(n * unit);
        return 0;
    }
    return mk_conf_fail(error, "a delay is from 1ms to 30s, such as delay 500ms");
}

static const struct {
    struct mk_str name;
    uint8_t kind, words_min, words_max;
} actions[] = {
    {MK_STR_INIT("allow"), ACTION_ALLOW, 1, 1},
    {MK_STR_INIT("deny"), ACTION_DENY, 1, 2},
    {MK_STR_INIT("drop"), ACTION_DROP, 1, 1},
    {MK_STR_INIT("delay"), ACTION_DELAY, 2, 2},
};

static int set_action(struct rule_action *action, const struct mk_conf_value *value, struct mk_buf *error)
{
    unsigned i = 0;
    while (i < MK_COUNT_OF(actions) && !(value->n && mk_str_ieq(value->words[0], actions[i].name)))
        i++;
    if (i == MK_COUNT_OF(actions) || value->n < actions[i].words_min || value->n > actions[i].words_max)
        return mk_conf_fail(error, "an action is allow, deny, deny STATUS, drop or delay TIME");
    action->kind = actions[i].kind;
    action->status = 403;
    if (action->kind == ACTION_DELAY)
        return parse_delay(value->words[1], action, error);
    return value->n > 1 ? parse_status(value->words[1], action, error) : 0;
}

int settings_parse_action(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct rule_action *action = field;
    int err = set_action(action, value, error);
    if (err < 0) {
        action->kind = ACTION_NONE;
        return err;
    }
    action->text = action->kind == ACTION_DENY && value->n == 1 ? MK_STR("deny 403") : mk_arena_dup(arena, value->text);
    return action->text.p ? 0 : -ENOMEM;
}

/* ── Rate ── */

static uint32_t find_period(struct mk_str unit)
{
    static const struct {
        char letter;
        uint32_t seconds;
    } periods[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    for (unsigned i = 0; i < MK_COUNT_OF(periods); i++)
        if (unit.len == 1 && unit.p[0] == periods[i].letter)
            return periods[i].seconds;
    return 0;
}

int settings_parse_rate(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    (void)arena;
    struct request_rate *rate = field;
    struct mk_str unit = value->text, number = mk_str_split(&unit, '/');
    uint32_t period = find_period(unit);
    uint64_t n;
    if (!period || !mk_str_u64(number, BUCKET_REQUESTS_MAX, &n) || n == 0) {
        mk_buf_addf(error,
                    "a rate is a number from 1 to 1000000 for a second, minute, hour or day, such as 10/s or 300/m");
        return -EINVAL;
    }
    *rate = (struct request_rate){(uint32_t)n, period};
    return 0;
}

/* ── checks ── */

/* The name of a limit is sent to clients in quotes. */
static void check_name(const struct mk_conf_check *check, struct mk_str name, size_t offset)
{
    if (name.len > NAME_BYTES_MAX || (name.len && !mk_str_is_name(name, "-._")))
        mk_conf_error(check, offset, "a name is up to %d letters, digits, dashes, dots and underscores",
                      NAME_BYTES_MAX);
}

static void check_rule(const struct mk_conf_check *check, void *section)
{
    const struct rule_conf *rule = section;
    check_name(check, rule->name, offsetof(struct rule_conf, name));
    mk_conf_warn_one_level(check, offsetof(struct rule_conf, when.match), &rule->when.match);
}

static void check_limit(const struct mk_conf_check *check, void *section)
{
    struct limit_conf *limit = section;
    check_name(check, limit->name, offsetof(struct limit_conf, name));
    if (limit->burst && !limit->rate.n && !mk_conf_is_wrong(check, offsetof(struct limit_conf, rate)))
        mk_conf_error(check, offsetof(struct limit_conf, burst), "Burst needs a Rate");
    if (!limit->burst)
        limit->burst = limit->rate.n;
    if (limit->send_rate && limit->send_rate < SEND_RATE_MIN)
        mk_conf_error(check, offsetof(struct limit_conf, send_rate), "SendRate is 1K at least, or 0");
}

static void check_connections(const struct mk_conf_check *check, void *section)
{
    const struct connection_conf *c = section;
    check_name(check, c->name, offsetof(struct connection_conf, name));
    if (c->action == CONNECTION_DROP && c->connections_max)
        mk_conf_error(check, offsetof(struct connection_conf, connections_max),
                      "MaxConnections has no meaning with Action drop");
}

/* ── tables ── */

#define CONDITION_KEYS(type) \
    MK_CONF_KEY_PATTERN(type, when.match, "Match", NULL, \
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.php`, or a " \
                        "regular expression such as `~^/item/`. It is compared with the path after decoding and " \
                        "normalization. Without it: all."), \
        MK_CONF_KEY_NETWORKS(type, when.networks, "Network", NULL, \
                             "Which clients: addresses or networks such as `10.0.0.0/8`, `2001:db8::/32` or `unix`. " \
                             "Without it and `File`: all.", \
                             .flags = MK_CONF_REPEAT), \
        MK_CONF_KEY_PATH(type, when.file, "File", NULL, \
                         "A file of further networks, one in a line; `#` begins a comment. It is read again when it " \
                         "changes; one that has a mistake then is logged, and the networks stay."), \
        MK_WHEN_KEY(type, when.when), \
        MK_CONF_KEY_BOOL(type, when.foreign_referer, "ForeignReferer", "Off", \
                         "Only requests that come from pages of other hosts, as `Referer` says: links to images of " \
                         "this host in other sites. Requests without `Referer` do not count.")

#define NAME_KEY(type) \
    MK_CONF_KEY_STRING(type, name, "Name", NULL, \
                       "The name in log lines. Counters and clients are kept under it over a reload; without it the " \
                       "position of the section among those of its kind in the file is the name.")
#define DRY_RUN_KEY(type) \
    MK_CONF_KEY_BOOL(type, dry_run, "DryRun", "Off", "Only logs what would be done, and ignores the section otherwise.")
#define MAX_CLIENTS_KEY(type) \
    MK_CONF_KEY_INT( \
        type, clients_max, "MaxClients", "16384", \
        "How many clients are remembered. Above it the least recently seen one is forgotten, and logged. A " \
        "client is an IPv4 address or the /64 network of an IPv6 address. A client takes about 100 bytes. " \
        "A changed number forgets all clients.", \
        .min = 16, .max = 16777216)

static const struct mk_conf_key rule_keys[] = {
    CONDITION_KEYS(struct rule_conf),
    MK_CONF_KEY_CUSTOM(struct rule_conf, action, "Action", NULL,
                       "What happens: `allow`; `deny`, with 403 or another status from 400 to 599 except 401, 405, 407 "
                       "and 426; `drop`, which closes "
                       "the connection (HTTP/2: resets the stream) without a response; `delay` with a time up to 30s, "
                       "after which the request continues.",
                       .flags = MK_CONF_REQUIRED, .unit = "action", .parse = settings_parse_action),
    NAME_KEY(struct rule_conf),
    DRY_RUN_KEY(struct rule_conf),
    {0},
};

static const char *const send_rate_names[] = {"connection", "client", NULL};

static const struct mk_conf_key limit_keys[] = {
    CONDITION_KEYS(struct limit_conf),
    MK_CONF_KEY_CUSTOM(struct limit_conf, rate, "Rate", NULL,
                       "How many requests a client may send in a second (`10/s`), minute (`300/m`), hour (`h`) or day "
                       "(`d`). Others get 429 with `Retry-After`.",
                       .unit = "rate", .parse = settings_parse_rate),
    MK_CONF_KEY_INT(struct limit_conf, burst, "Burst", "0",
                    "How many requests may come at once; they are filled up again at `Rate`. 0: the number of `Rate`.",
                    .min = 0, .max = BUCKET_REQUESTS_MAX),
    MK_CONF_KEY_INT(struct limit_conf, requests_max, "MaxRequests", "0",
                    "How many requests of a client may be under way at the same time. Others get 429. 0: no limit.",
                    .min = 0, .max = 1000000),
    MK_CONF_KEY_SIZE(struct limit_conf, send_rate, "SendRate", "0",
                     "How many bytes of response bodies are sent in a second: 1K at least. 0: no limit.",
                     .max = INT64_C(1) << 40),
    MK_CONF_KEY_ENUM(struct limit_conf, send_rate_for, "SendRateFor", "connection",
                     "Whether each connection may use `SendRate`, or all connections of a client together.",
                     .names = send_rate_names),
    MAX_CLIENTS_KEY(struct limit_conf),
    NAME_KEY(struct limit_conf),
    DRY_RUN_KEY(struct limit_conf),
    {0},
};

static const char *const connection_actions[] = {"allow", "drop", NULL};

static const struct mk_conf_key connection_keys[] = {
    MK_CONF_KEY_NETWORKS(struct connection_conf, networks, "Network", NULL,
                         "Which clients: addresses or networks such as `10.0.0.0/8`, `2001:db8::/32` or `unix`. "
                         "Without it and `File`: all.",
                         .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_PATH(struct connection_conf, file, "File", NULL, "A file of further networks, as that of `[RULES]`."),
    MK_CONF_KEY_ENUM(struct connection_conf, action, "Action", "allow",
                     "`drop` closes connections before a byte is read.", .names = connection_actions),
    MK_CONF_KEY_INT(
        struct connection_conf, connections_max, "MaxConnections", "0",
        "How many connections a client may have, also behind a `Listen` with `proxy`; for clients that a proxy "
        "names in `RealIPHeader`, how many requests under way. Others are closed. 0: no limit.",
        .min = 0, .max = 1000000),
    MAX_CLIENTS_KEY(struct connection_conf),
    NAME_KEY(struct connection_conf),
    DRY_RUN_KEY(struct connection_conf),
    {0},
};

static const struct mk_conf_foreign foreign_rules[] = {
    {"IP", "write Network and Action, here or, for whole connections, in [CONNECTIONS] of monkey.conf"},
    {"URL", "write Match and Action deny"},
    {"deny_hotlink", "write Match, ForeignReferer On and Action deny"},
    {"Allow", "write Network and Action allow"},
    {"Deny", "write Network and Action deny"},
    {"Status", "write Action deny with the status"},
    {"Rate", "rates are in [CLIENT_LIMITS]"},
    {"Method", "write When method GET"},
    {"Header", "write When header NAME =text or ~expression, or When !header NAME"},
    {0},
};

static const struct mk_conf_foreign foreign_limits[] = {
    {"MaxConnections", "connections are in [CONNECTIONS] of monkey.conf"},
    {"Action", "actions are in [RULES]"},
    {"Method", "write When method GET"},
    {"Header", "write When header NAME =text or ~expression, or When !header NAME"},
    {0},
};

const struct mk_conf_section mandril_sections[] = {
    [SECTION_RULES] = {.name = "RULES",
                       .scope = MK_CONF_SCOPE_HOST,
                       .flags = MK_CONF_REPEAT,
                       .size = sizeof(struct rule_conf),
                       .keys = rule_keys,
                       .foreign = foreign_rules,
                       .check = check_rule,
                       .doc = MK_CONF_DOC("A rule that allows or refuses requests. The rules of the host come first, "
                                          "then those of monkey.conf; the first one whose conditions all hold "
                                          "decides. Without one a request is allowed. A pattern that takes too much "
                                          "time for a path denies.")},
    [SECTION_LIMITS] = {.name = "CLIENT_LIMITS",
                        .scope = MK_CONF_SCOPE_HOST,
                        .flags = MK_CONF_REPEAT,
                        .size = sizeof(struct limit_conf),
                        .keys = limit_keys,
                        .foreign = foreign_limits,
                        .check = check_limit,
                        .doc =
                            MK_CONF_DOC("Limits for each client. The first section whose conditions all hold is "
                                        "used, as a whole, those of the host before those of monkey.conf; one "
                                        "without limits exempts. The counts are exact over all workers. A section "
                                        "of a host counts for that host, one of monkey.conf for all hosts together.")},
    [SECTION_CONNECTIONS] = {.name = "CONNECTIONS",
                             .scope = MK_CONF_SCOPE_SERVER,
                             .flags = MK_CONF_REPEAT,
                             .size = sizeof(struct connection_conf),
                             .keys = connection_keys,
                             .check = check_connections,
                             .doc = MK_CONF_DOC("Which clients may connect, and how often at once. The first section "
                                                "that has the client's network is used. The client is the one that a "
                                                "PROXY header names, if there is one. Where a trusted proxy names "
                                                "clients in `RealIPHeader`, this is checked for each request "
                                                "instead.")},
    {0},
};
