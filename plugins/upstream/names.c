// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps the addresses of names, and says in the log when they change or name servers do not answer.
 */
#include "groups.h"
#include "servers.h"

#include <monkey/base/arena.h>
#include <monkey/base/log_limit.h>
#include <monkey/log.h>

#include <errno.h>
#include <string.h>

enum {
    ARENA_BYTES_MAX = 4096,
    TTL_MS_MIN = 1000, /* unless Resolve is less */
    RETRY_MS = 1000,   /* after a failure; twice as long after each one that follows, up to Resolve */
    RETRY_DOUBLINGS = 6,
    RUNNING_MAX = 16,   /* lookups at the same time: each has a channel of 80 KB */
    TURN_MS_MAX = 1000, /* a name that another thread has added is noticed after that */
    LOGGED_ADDRESSES = 8,
};

struct name {
    struct mk_list node, watches;
    struct mk_arena arena; /* of the strings */
    struct name_conf conf;
    struct lookup_query query;
    struct lookup *lookup; /* NULL: none is under way */
    struct names *runner;  /* whose loop has it; NULL: names_resolve() */
    struct lookup_address *addresses;
    unsigned n, failures; /* in a row */
    bool is_tried, is_announced, has_more;
    bool is_noted;   /* all watches have the addresses */
    const char *why; /* of the last failure; NULL: there is an answer */
    uint64_t due_ms; /* of the next lookup, by the clock of loops; 0: `wait_ms` from now on */
    uint32_t wait_ms;
    uint64_t logged_ms; /* when the log had its addresses; 0: never */
    unsigned unlogged;  /* changes since then */
};

void names_lock(void)
{
    lock_take(&upstream_process.names_lock);
}

void names_unlock(void)
{
    lock_release(&upstream_process.names_lock);
}

/* ── the log ── */

static void print_addresses(const struct name *name, struct mk_buf *out)
{
    for (unsigned i = 0; i < name->n && i < LOGGED_ADDRESSES; i++) {
        mk_buf_adds(out, i ? MK_STR(", ") : MK_STR(""));
        lookup_print(&name->addresses[i].address, out);
    }
    if (name->n > LOGGED_ADDRESSES)
        mk_buf_addf(out, " and %u more", name->n - LOGGED_ADDRESSES);
    if (name->unlogged > 1)
        mk_buf_addf(out, "; these are change %u since the line before", name->unlogged);
}

/* Says in the log which addresses there are, if they have changed and the line before is old enough. */
static void log_addresses(struct name *name, uint64_t now)
{
    if (!name->unlogged || !name->is_announced || (name->logged_ms && now - name->logged_ms < MK_LOG_LIMIT_MS))
        return;
    MK_BUF_ON_STACK(text, 512);
    print_addresses(name, &text);
    mk_log_info("upstream %.*s: %.*s has %u address%s: %.*s", MK_STR_ARG(name->conf.group), MK_STR_ARG(name->conf.host),
                name->n, name->n == 1 ? "" : "es", MK_STR_ARG(mk_buf_str(&text)));
    if (name->has_more)
        mk_log_warn("upstream %.*s: %.*s has more than %d addresses; the others are not used",
                    MK_STR_ARG(name->conf.group), MK_STR_ARG(name->conf.host), LOOKUP_ADDRESSES_MAX);
    name->logged_ms = now;
    name->unlogged = 0;
}

static void log_failure(const struct name *name)
{
    const char *effect = name->n             ? "its addresses stay"
                         : name->conf.is_srv ? "it has no servers"
                                             : "it is looked up for each connection";
    mk_log_warn("upstream %.*s: %.*s: %s; %s", MK_STR_ARG(name->conf.group), MK_STR_ARG(name->conf.host), name->why,
                effect);
}

/* ── results ── */

static uint32_t clamp_wait(const struct name *name, uint64_t ms)
{
    return (uint32_t)(ms < name->conf.ttl_ms_max ? ms : name->conf.ttl_ms_max);
}

/* Adds the former addresses of a family about which no name server has answered. */
static void add_former(const struct name *name, struct lookup_result *r, int family)
{
    for (unsigned i = 0; i < name->n && r->n < LOOKUP_ADDRESSES_MAX; i++)
        if (name->addresses[i].address.family == family)
            lookup_add(r, &name->addresses[i]);
}

static int replace_addresses(struct name *name, const struct lookup_result *r)
{
    struct lookup_address *copy = mk_account_alloc(NULL, r->n * sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    memcpy(copy, r->addresses, r->n * sizeof(*copy));
    mk_account_free(NULL, name->addresses, name->n * sizeof(*copy));
    name->addresses = copy;
    name->n = r->n;
    name->has_more = r->has_more;
    return 0;
}

static void note_failure(struct name *name, const char *why)
{
    bool is_first = !name->why;
    unsigned doublings = name->failures < RETRY_DOUBLINGS ? name->failures : RETRY_DOUBLINGS;
    name->failures++;
    name->why = why;
    name->wait_ms = clamp_wait(name, (uint64_t)RETRY_MS << doublings);
    if (is_first && name->is_announced)
        log_failure(name);
}

static void note_answer(struct name *name, uint32_t ttl_s)
{
    uint64_t ms = (uint64_t)ttl_s * 1000;
    name->wait_ms = clamp_wait(name, ms > TTL_MS_MIN ? ms : TTL_MS_MIN);
    if (name->why && name->is_announced)
        mk_log_info("upstream %.*s: %.*s: name servers answer again", MK_STR_ARG(name->conf.group),
                    MK_STR_ARG(name->conf.host));
    name->why = NULL;
    name->failures = 0;
}

static void notify_watches(struct name *name)
{
    name->is_noted = true;
    MK_LIST_EACH_ITEM(&name->watches, struct name_watch, name_node, watch) {
        name->is_noted &= watch->changed(watch) == 0;
    }
}

/* Under the lock. */
static void take_result(struct name *name, struct lookup_result *r)
{
    name->is_tried = true;
    if (r->status != LOOKUP_OK) {
        note_failure(name, r->why);
        return;
    }
    if (r->failed_ipv4)
        add_former(name, r, AF_INET);
    if (r->failed_ipv6)
        add_former(name, r, AF_INET6);
    bool is_changed = name->n != r->n || memcmp(name->addresses, r->addresses, r->n * sizeof(*r->addresses)) != 0;
    if (is_changed && replace_addresses(name, r) < 0) {
        note_failure(name, "out of memory");
        return;
    }
    note_answer(name, r->ttl_s);
    name->unlogged += is_changed;
    if (is_changed || !name->is_noted)
        notify_watches(name);
}

/* ── names ── */

static bool is_for(const struct name *name, const struct name_conf *conf)
{
    const struct name_conf *own = &name->conf;
    return mk_str_eq(own->group, conf->group) && mk_str_eq(own->line, conf->line) && own->family == conf->family &&
           own->ttl_ms_max == conf->ttl_ms_max && own->servers.n == conf->servers.n &&
           (!own->servers.n ||
            memcmp(own->servers.items, conf->servers.items, own->servers.n * sizeof(*own->servers.items)) == 0);
}

static struct name *find_name(const struct name_conf *conf)
{
    MK_LIST_EACH_ITEM(&upstream_process.names, struct name, node, name)
        if (is_for(name, conf))
            return name;
    return NULL;
}

static void free_name(struct name *name)
{
    mk_list_del(&name->node);
    mk_account_free(NULL, name->addresses, name->n * sizeof(*name->addresses));
    mk_arena_release(&name->arena);
    mk_account_free(NULL, name, sizeof(*name));
}

/* Returns 0 or -ENOMEM. */
static int init_name(struct name *name, const struct name_conf *conf)
{
    size_t bytes = conf->servers.n * sizeof(*conf->servers.items);
    struct name_conf *own = &name->conf;
    *own = *conf;
    own->group = mk_arena_dup(&name->arena, conf->group);
    own->line = mk_arena_dup(&name->arena, conf->line);
    own->host = mk_arena_dup(&name->arena, conf->host);
    own->servers.items = bytes ? mk_arena_alloc(&name->arena, bytes) : NULL;
    if (!own->group.p || !own->line.p || !own->host.p || (bytes && !own->servers.items))
        return -ENOMEM;
    if (bytes)
        memcpy(own->servers.items, conf->servers.items, bytes);
    name->query = (struct lookup_query){own->host.p, own->is_srv, own->port, own->family, own->servers};
    return 0;
}

static struct name *make_name(const struct name_conf *conf)
{
    struct name *name = mk_account_alloc(NULL, sizeof(*name));
    if (!name)
        return NULL;
    *name = (struct name){.wait_ms = 0};
    mk_list_init(&name->node);
    mk_list_init(&name->watches);
    mk_arena_init(&name->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    if (init_name(name, conf) < 0) {
        free_name(name);
        return NULL;
    }
    mk_list_add(&upstream_process.names, &name->node);
    return name;
}

int names_watch(struct names *names, struct name_watch *watch, const struct name_conf *conf)
{
    struct name *name = find_name(conf);
    if (!name)
        name = make_name(conf);
    if (!name)
        return -ENOMEM;
    watch->names = names;
    watch->name = name;
    mk_list_init(&watch->node);
    mk_list_init(&watch->name_node);
    mk_list_add(&names->watches, &watch->node);
    mk_list_add(&name->watches, &watch->name_node);
    return 0;
}

void names_unwatch(struct name_watch *watch)
{
    struct name *name = watch->name;
    if (!name)
        return;
    mk_list_del(&watch->node);
    mk_list_del(&watch->name_node);
    watch->name = NULL;
    if (mk_list_empty(&name->watches))
        free_name(name);
}

const struct lookup_address *names_get(const struct name_watch *watch, unsigned *ret_n)
{
    *ret_n = watch->name->n;
    return watch->name->addresses;
}

const char *names_get_failure(const struct name_watch *watch)
{
    return watch->name ? watch->name->why : NULL;
}

void names_init(struct names *names)
{
    *names = (struct names){.loop = NULL};
    mk_list_init(&names->watches);
}

/* ── lookups that block ── */

static void end_lookup(struct name *name)
{
    if (name->runner)
        name->runner->running--;
    lookup_free(name->lookup);
    name->lookup = NULL;
    name->runner = NULL;
}

/* Makes lookups for the names that have never been looked up. Returns how many. */
static unsigned make_lookups(struct names *names, struct lookup **ret, struct name **ret_names, unsigned max)
{
    unsigned count = 0;
    names_lock();
    MK_LIST_EACH_ITEM(&names->watches, struct name_watch, node, watch) {
        struct name *name = watch->name;
        if (count == max || name->is_tried || name->lookup)
            continue;
        name->lookup = lookup_new(&name->query);
        if (!name->lookup)
            continue;
        ret[count] = name->lookup;
        ret_names[count++] = name;
    }
    names_unlock();
    return count;
}

/* Those for which there is no room here are looked up by the loop. */
void names_resolve(struct names *names, uint32_t ms)
{
    enum { LOOKUPS_MAX = 256 };
    struct lookup *lookups[LOOKUPS_MAX];
    struct name *found[LOOKUPS_MAX];
    unsigned n = make_lookups(names, lookups, found, LOOKUPS_MAX);
    if (!n)
        return;
    lookups_wait(lookups, n, ms);
    names_lock();
    for (unsigned i = 0; i < n; i++) {
        take_result(found[i], lookup_get_result(lookups[i]));
        end_lookup(found[i]);
    }
    names_unlock();
}

/* ── lookups in a loop ── */

static void run_turn(struct names *names);

static void on_result(struct lookup *lookup, void *ctx)
{
    struct name *name = ctx;
    struct names *names = name->runner;
    uint64_t now = mk_loop_now_ms(names->loop);
    names_lock();
    take_result(name, lookup_get_result(lookup));
    name->due_ms = now + name->wait_ms;
    end_lookup(name);
    names_unlock();
    run_turn(names);
}

static void begin_lookup(struct names *names, struct name *name, uint64_t now)
{
    name->lookup = lookup_new(&name->query);
    name->due_ms = now + clamp_wait(name, RETRY_MS); /* if there is no memory for it */
    if (!name->lookup)
        return;
    name->runner = names;
    names->running++;
    lookup_start(name->lookup, names->loop, on_result, name);
}

/* Starts what is due, and logs what has changed. */
static void run_turn(struct names *names)
{
    uint64_t now = mk_loop_now_ms(names->loop), next = now + TURN_MS_MAX;
    mk_epoch_reclaim(servers_retired()); /* addresses that have gone in a turn before */
    names_lock();
    MK_LIST_EACH_ITEM(&names->watches, struct name_watch, node, watch) {
        struct name *name = watch->name;
        log_addresses(name, now);
        if (!name->due_ms)
            name->due_ms = now + name->wait_ms;
        if (!name->lookup && name->due_ms <= now && names->running < RUNNING_MAX)
            begin_lookup(names, name, now);
        if (name->due_ms > now && name->due_ms < next) /* one that is due waits for the end of another lookup */
            next = name->due_ms;
    }
    names_unlock();
    mk_timer_arm(names->loop, &names->timer, (uint32_t)(next - now));
}

static void on_timer(struct mk_timer *timer)
{
    run_turn(MK_CONTAINER_OF(timer, struct names, timer));
}

/*
 * The log has what changes from now on. The first lookup may have been made for a configuration that was refused, and
 * the check of the configuration has warned if it has failed.
 */
static void announce_change(struct names *names)
{
    names_lock();
    MK_LIST_EACH_ITEM(&names->watches, struct name_watch, node, watch)
        watch->name->is_announced = true;
    names_unlock();
}

void names_start(struct names *names, struct mk_loop *loop)
{
    if (mk_list_empty(&names->watches))
        return;
    names->loop = loop;
    mk_timer_init(&names->timer, on_timer);
    announce_change(names);
    run_turn(names);
}

void names_stop(struct names *names)
{
    if (!names->loop)
        return;
    mk_timer_cancel(&names->timer);
    names_lock();
    MK_LIST_EACH_ITEM(&names->watches, struct name_watch, node, watch) {
        struct name *name = watch->name;
        if (name->lookup && name->runner == names)
            end_lookup(name);
    }
    names_unlock();
    names->loop = NULL;
}
