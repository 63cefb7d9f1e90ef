// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [UPSTREAM], and what may stand in a line `Server`.
 */
#include "conf.h"

#include <monkey/upstreams.h>

#include <errno.h>

/* ── Name ── */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static int parse_name(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *name = field;
    bool is_name = value->text.len > 0 && value->text.len <= 63;
    for (size_t i = 0; i < value->text.len; i++)
        is_name &= is_name_byte(value->text.p[i]);
    if (!is_name) {
        mk_buf_addf(error, "a group has a name of letters, digits, - and _, which `To http://NAME` uses");
        return -EINVAL;
    }
    *name = mk_arena_dup(arena, value->text);
    return name->p ? 0 : -ENOMEM;
}

/* ── Server ── */

static int parse_weight(struct mk_str text, uint32_t *ret, struct mk_buf *error)
{
    uint64_t weight;
    if (!mk_str_u64(text, UPSTREAM_WEIGHT_MAX, &weight)) {
        mk_buf_addf(error, "a weight is a number from 0 to %d, and \"%.*s\" is not", UPSTREAM_WEIGHT_MAX,
                    MK_STR_ARG(text));
        return -EINVAL;
    }
    *ret = (uint32_t)weight;
    return 0;
}

static int parse_option(struct server_line *line, struct mk_str word, struct mk_buf *error)
{
    struct mk_str weight = MK_STR("weight=");
    if (word.len >= weight.len && mk_str_ieq(mk_str(word.p, weight.len), weight))
        return parse_weight(mk_str(word.p + weight.len, word.len - weight.len), &line->weight, error);
    if (mk_str_ieq(word, MK_STR("backup"))) {
        line->is_backup = true;
    } else if (mk_str_ieq(word, MK_STR("down"))) {
        line->is_down = true;
    } else {
        mk_buf_addf(error, "behind the address may stand weight=N, backup and down, not \"%.*s\"", MK_STR_ARG(word));
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

static int parse_server(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct server_lines *lines = field;
    const char *why;
    if (lines->n == UPSTREAM_SERVERS_MAX) {
        mk_buf_addf(error, "a group has at most %d servers", UPSTREAM_SERVERS_MAX);
        return -EINVAL;
    }
    struct server_line *line = add_line(lines, arena);
    if (!line)
        return -ENOMEM;
    *line = (struct server_line){.name = mk_arena_dup(arena, value->words[0]), .weight = 1};
    int err = line->name.p ? mk_dial_target_parse(arena, line->name, UPSTREAM_PORT, &line->target, &why) : -ENOMEM;
    if (err == -EINVAL)
        mk_buf_addf(error, "\"%.*s\" is no address of a server: %s", MK_STR_ARG(value->words[0]), why);
    for (uint32_t i = 1; i < value->n && err == 0; i++)
        err = parse_option(line, value->words[i], error);
    lines->n += err == 0;
    return err;
}

/* ── the section ── */

static const char *const balance_names[] = {"LeastLoaded", "RoundRobin", "Hash", "First", NULL};
static const char *const retry_names[] = {"Connect", "Idempotent", "Off", NULL};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_CUSTOM(struct upstream_conf, name, "Name", NULL,
                       "The name of the group: `To http://app` of `[PROXY]` means the group `app`, if there is one.",
                       .flags = MK_CONF_REQUIRED, .unit = "name", .parse = parse_name),
    MK_CONF_KEY_CUSTOM(
        struct upstream_conf, servers, "Server", NULL,
        "A server of the group: `10.0.0.1:8080`, `app.internal:8080` (port 80 without one) or "
        "`unix:/run/app.sock`. Behind it may stand `weight=N` (1; a server of weight 2 gets twice as "
        "many requests, one of weight 0 none), `backup` (only if no other server can be used) and `down` "
        "(never).",
        .flags = MK_CONF_REQUIRED | MK_CONF_REPEAT, .unit = "address [option ...]", .parse = parse_server),
    MK_CONF_KEY_ENUM(
        struct upstream_conf, balance, "Balance", "LeastLoaded",
        "Which server a request gets: of two at random the one with fewer requests under way "
        "(`LeastLoaded`), one after the other (`RoundRobin`), always the same for what `HashBy` names (`Hash`), all "
        "by weight, or the first one that can be used, in the order of the lines (`First`).",
        .names = balance_names),
    MK_CONF_KEY_CUSTOM(struct upstream_conf, hash_by, "HashBy", "Client",
                       "What decides with `Balance Hash`: the address of the client, the path (`Path`), the path with "
                       "the query (`Url`), or `Header NAME`, `Cookie NAME` or `Query NAME`. A request without that is "
                       "balanced as by `LeastLoaded`.",
                       .unit = "part of the request", .parse = hash_by_parse),
    MK_CONF_KEY_ENUM(struct upstream_conf, retry, "Retry", "Connect",
                     "When a request goes to another server: if no connection could be made (`Connect`), also if a "
                     "connection ends or takes too long before a response has begun, for a request whose method is "
                     "idempotent and whose body was kept or is none (`Idempotent`), or never (`Off`).",
                     .names = retry_names),
    MK_CONF_KEY_INT(struct upstream_conf, retry_most, "RetryMost", "2", "How many other servers a request may get.",
                    .min = 1, .max = MK_UPSTREAM_TRIES_MAX - 1),
    MK_CONF_KEY_INT(struct upstream_conf, eject_after, "EjectAfter", "5",
                    "After how many failures in a row a server gets no requests for `EjectTime`: connections that are "
                    "refused, reset or take too long, and responses 502, 503 and 504. 0: it always gets some.",
                    .min = 0, .max = 1000000),
    MK_CONF_KEY_DURATION(struct upstream_conf, eject_time_ms, "EjectTime", "10s",
                         "How long it gets none; twice as long each time that follows, up to 5 minutes.", .min = 1,
                         .max = 300000, .unit = "s"),
    MK_CONF_KEY_INT(
        struct upstream_conf, eject_most, "EjectMost", "50",
        "Which share of the servers may be without requests at a time, in percent. If more have failed, all "
        "are tried again.",
        .min = 0, .max = 100),
    {0},
};

static void check_section(const struct mk_conf_check *check, void *section)
{
    const struct server_lines *lines = &((const struct upstream_conf *)section)->servers;
    size_t key = offsetof(struct upstream_conf, servers);
    uint64_t weights = 0;
    for (uint32_t i = 0; i < lines->n; i++) {
        weights += lines->items[i].weight;
        for (uint32_t k = 0; k < i; k++)
            if (mk_str_ieq(lines->items[i].name, lines->items[k].name))
                mk_conf_error_nth(check, key, i, "the server %.*s is in this group already",
                                  MK_STR_ARG(lines->items[i].name));
    }
    if (lines->n && !weights)
        mk_conf_error(check, key, "all servers have the weight 0: none would get a request");
}

static const struct mk_conf_foreign foreign[] = {
    {"least_conn", "that is `Balance LeastLoaded`"},
    {"max_fails", "that is `EjectAfter`"},
    {"fail_timeout", "that is `EjectTime`"},
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
    {0},
};
