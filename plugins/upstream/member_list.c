// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the list of a group's servers (member_list.h).
 */
#include "member_list.h"

#include <monkey/siphash.h>

#include <errno.h>

enum { ADDRESS_TEXT_BYTES = 64 };

static const uint64_t no_key[2]; /* servers have the same hash on each machine */

/* The addresses of a line; none: the line itself is a server. */
struct line_addresses {
    const struct lookup_address *items;
    unsigned n;
};

static struct line_addresses get_addresses(const struct name_watch *watch)
{
    struct line_addresses found = {0};
    if (watch->name)
        found.items = names_get(watch, &found.n);
    return found;
}

/* A service whose records are not known has no server. */
static unsigned count_servers(const struct server_line *line, unsigned addresses)
{
    return addresses ? addresses : !line->is_srv;
}

static unsigned count_members(const struct upstream_conf *conf, const struct name_watch *watches)
{
    unsigned n = 0;
    for (unsigned i = 0; i < conf->servers.n; i++)
        n += count_servers(&conf->servers.items[i], get_addresses(&watches[i]).n);
    return n < GROUP_MEMBERS_MAX ? n : GROUP_MEMBERS_MAX;
}

/* ── weights ── */

/*
 * Returns the weight of an SRV record (RFC 2782) among those of its priority: as it is, if all are within the range of
 * lines. Otherwise, or if one is 0, which means a small share, by the largest one.
 */
static uint32_t scale_weight(const struct line_addresses *addresses, const struct lookup_address *one)
{
    uint32_t most = 0;
    bool has_zero = false;
    for (unsigned i = 0; i < addresses->n; i++) {
        const struct lookup_address *other = &addresses->items[i];
        if (other->priority != one->priority)
            continue;
        most = other->weight > most ? other->weight : most;
        has_zero |= !other->weight;
    }
    if (!most)
        return 1;
    uint32_t weight =
        most <= UPSTREAM_WEIGHT_MAX && !has_zero ? one->weight : (uint32_t)one->weight * UPSTREAM_WEIGHT_MAX / most;
    return weight ? weight : 1;
}

/* ── lists ── */

/* Returns 0 or -ENOMEM. */
static int add_member(struct members *members, struct pool *pool, const struct server_line *line, struct mk_str address)
{
    struct member *m = &members->items[members->n];
    struct mk_str hashed = address.len ? address : line->name;
    *m = (struct member){.line = line};
    m->hash = mk_siphash(no_key, hashed.p, hashed.len);
    m->server = servers_hold(pool, line->name, address);
    if (!m->server)
        return -ENOMEM;
    members->n++;
    return 0;
}

static int add_addresses(struct members *members, struct pool *pool, const struct server_line *line,
                         const struct line_addresses *addresses)
{
    for (unsigned i = 0; i < addresses->n && members->n < GROUP_MEMBERS_MAX; i++) {
        const struct lookup_address *one = &addresses->items[i];
        MK_BUF_ON_STACK(text, ADDRESS_TEXT_BYTES);
        lookup_print(&one->address, &text);
        if (add_member(members, pool, line, mk_buf_str(&text)) < 0)
            return -ENOMEM;
        members->items[members->n - 1].priority = one->priority;
        if (line->is_srv)
            members->items[members->n - 1].weight = scale_weight(addresses, one);
    }
    return 0;
}

static int add_line(struct members *members, struct pool *pool, const struct server_line *line,
                    const struct line_addresses *addresses)
{
    if (addresses->n)
        return add_addresses(members, pool, line, addresses);
    bool has_room = members->n < GROUP_MEMBERS_MAX;
    return count_servers(line, 0) && has_room ? add_member(members, pool, line, MK_STR("")) : 0;
}

struct members *members_make(const struct upstream_conf *conf, struct pool *pool, const struct name_watch *watches)
{
    unsigned n = count_members(conf, watches);
    struct members *members = mk_account_alloc(NULL, sizeof(*members) + n * sizeof(*members->items));
    if (!members)
        return NULL;
    members->n = 0;
    for (unsigned i = 0; i < conf->servers.n; i++) {
        struct line_addresses addresses = get_addresses(&watches[i]);
        if (add_line(members, pool, &conf->servers.items[i], &addresses) == 0)
            continue;
        members_free(members);
        return NULL;
    }
    return members;
}

void members_free(struct members *members)
{
    for (unsigned i = 0; i < members->n; i++)
        server_release(members->items[i].server);
    mk_account_free(NULL, members, 0);
}

static void free_retired(struct mk_retired *retired)
{
    members_free(MK_CONTAINER_OF(retired, struct members, retired));
}

void members_retire(struct members *members)
{
    mk_epoch_retire(servers_retired(), &members->retired, free_retired);
    mk_epoch_reclaim(servers_retired());
}

const struct member *members_find(const struct members *members, const struct mk_upstream_server *server, unsigned from)
{
    for (unsigned i = 0; i < members->n; i++) {
        const struct member *m = &members->items[(from + i) % members->n];
        if (&m->server->base == server)
            return m;
    }
    return NULL;
}

/* A server that stays is mostly after the one that was found last. */
void members_take_turns(struct members *members, const struct members *former)
{
    unsigned next = 0;
    for (unsigned i = 0; i < members->n; i++) {
        const struct member *same = members_find(former, &members->items[i].server->base, next);
        if (!same)
            continue;
        members->items[i].turn = same->turn;
        next = (unsigned)(same - former->items) + 1;
    }
}

void members_make_tokens(struct members *members, const uint64_t key[2])
{
    for (unsigned i = 0; i < members->n; i++) {
        const struct mk_upstream_server *server = &members->items[i].server->base;
        sticky_make_token(key, server->group, server->key, members->items[i].token);
    }
}
