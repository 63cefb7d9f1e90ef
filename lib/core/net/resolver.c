// SPDX-License-Identifier: Apache-2.0
/*
 * The table of names and the threads that look them up (net/resolver.h). All data belongs to the loop's thread, with
 * two exceptions: the result of a running lookup belongs to its thread until its message arrives, and some fields are
 * guarded by the lock.
 */
#include "net/resolver.h"

#include <monkey/base/thread_start.h>

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 256 * 1024 };

struct mk__resolver {
    mk__resolver_fn look_up;
    unsigned n, running;
    struct mk_list table;
    pthread_mutex_t lock; /* guards the two fields below */
    struct mk_loop *loop; /* NULL: closed */
    unsigned refs;        /* one of the loop, and one of each lookup whose result has not arrived */
};

/* ── the system's resolver ── */

static int map_gai_error(int code)
{
    switch (code) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return -ENXIO;
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return errno ? -errno : -EIO;
    default:
        return -EIO;
    }
}

int mk__resolver_getaddrinfo(const char *host, struct mk__addr *ret, unsigned max)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    unsigned n = 0;
    int code = getaddrinfo(host, NULL, &hints, &list);
    if (code)
        return map_gai_error(code);
    for (const struct addrinfo *one = list; one && n < max; one = one->ai_next) {
        if (one->ai_family != AF_INET && one->ai_family != AF_INET6)
            continue;
        ret[n] = (struct mk__addr){.len = one->ai_addrlen};
        memcpy(&ret[n++].in6, one->ai_addr, one->ai_addrlen);
    }
    freeaddrinfo(list);
    return n ? (int)n : -ENXIO;
}

/* ── the thread of a lookup ── */

/* Makes IPv6 and IPv4 alternate; each family keeps the resolver's order (RFC 8305 section 4). */
static void interleave_families(struct mk__addr *a, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        unsigned from = i;
        while (from < n && a[from].sa.sa_family == a[i - 1].sa.sa_family)
            from++;
        if (from == n)
            return;
        struct mk__addr moved = a[from];
        memmove(&a[i + 1], &a[i], (from - i) * sizeof(*a));
        a[i] = moved;
    }
}

static void put_resolver(struct mk__resolver *resolver)
{
    pthread_mutex_lock(&resolver->lock);
    assert(resolver->refs);
    bool last = --resolver->refs == 0;
    pthread_mutex_unlock(&resolver->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&resolver->lock);
    mk_account_free(NULL, resolver, 0);
}

/* The end of a lookup whose table was closed: frees the entry, or leaves that to mk__resolver_put(). Any thread. */
static void end_closed_lookup(struct mk__resolver_entry *name)
{
    struct mk__resolver *resolver = name->resolver;
    pthread_mutex_lock(&resolver->lock);
    bool held = name->users;
    name->state = MK__RESOLVER_RESOLVED;
    pthread_mutex_unlock(&resolver->lock);
    if (held)
        return;
    mk_account_free(NULL, name, 0);
    put_resolver(resolver);
}

static void *run_lookup(void *ctx)
{
    struct mk__resolver_entry *name = ctx;
    struct mk__resolver *resolver = name->resolver;
    prctl(PR_SET_NAME, "monkey: names");
    int n = resolver->look_up(name->text, name->addrs, MK_DIAL_ADDRESSES_MAX);
    name->err = n > 0 ? 0 : n ? n : -ENXIO;
    name->n = n > 0 ? (unsigned)n : 0;
    interleave_families(name->addrs, name->n);
    pthread_mutex_lock(&resolver->lock);
    bool open = resolver->loop;
    if (open)
        mk_post(resolver->loop, &name->message); /* under the lock, so that the loop cannot end meanwhile */
    pthread_mutex_unlock(&resolver->lock);
    if (!open)
        end_closed_lookup(name);
    return NULL;
}

/* ── the table ── */

static void drop_entry(struct mk__resolver_entry *name)
{
    assert(name->state != MK__RESOLVER_RUNNING && name->resolver->n);
    mk_list_del(&name->node);
    name->resolver->n--;
    if (!name->users)
        mk_account_free(NULL, name, 0);
}

static void finish_lookup(struct mk_loop *loop, struct mk__resolver_entry *name, uint32_t ttl_ms)
{
    name->state = MK__RESOLVER_RESOLVED;
    name->expires_ms = mk_loop_now_ms(loop) + ttl_ms;
    while (!mk_list_empty(&name->waiting)) {
        struct mk_task *task = MK_LIST_FIRST(&name->waiting, struct mk_task, node);
        mk_list_del(&task->node);
        mk_task_schedule(loop, task);
    }
}

static void start_lookup(struct mk__resolver *resolver, struct mk__resolver_entry *name)
{
    assert(name->state == MK__RESOLVER_QUEUED);
    pthread_mutex_lock(&resolver->lock);
    resolver->refs++;
    pthread_mutex_unlock(&resolver->lock);
    resolver->running++;
    name->state = MK__RESOLVER_RUNNING;
    int err = mk_thread_start(NULL, STACK_BYTES, run_lookup, name);
    if (err == 0)
        return; /* from here on the result belongs to the thread */
    name->err = err;
    resolver->running--;
    put_resolver(resolver);
    finish_lookup(resolver->loop, name, 0);
}

static void start_lookups(struct mk__resolver *resolver)
{
    MK_LIST_EACH_ITEM(&resolver->table, struct mk__resolver_entry, node, name) {
        if (resolver->running == MK__RESOLVER_RUNNING_MAX)
            return;
        if (name->state == MK__RESOLVER_QUEUED)
            start_lookup(resolver, name);
    }
}

static void on_result(struct mk_message *message)
{
    struct mk__resolver_entry *name = MK_CONTAINER_OF(message, struct mk__resolver_entry, message);
    struct mk__resolver *resolver = name->resolver;
    if (resolver->loop) {
        resolver->running--;
        finish_lookup(resolver->loop, name, name->err ? MK__RESOLVER_NEGATIVE_TTL_MS : MK__RESOLVER_TTL_MS);
        start_lookups(resolver);
        put_resolver(resolver);
    } else { /* the table was closed while the message was in flight */
        end_closed_lookup(name);
    }
}

static struct mk__resolver_entry *find_entry(struct mk__resolver *resolver, struct mk_str host)
{
    MK_LIST_EACH_ITEM(&resolver->table, struct mk__resolver_entry, node, entry)
        if (mk_str_ieq(entry->host, host))
            return entry;
    return NULL;
}

/* Makes room for a name: removes the least recently used one that is resolved. Returns 0 or -EBUSY. */
static int evict_entry(struct mk__resolver *resolver)
{
    if (resolver->n < MK__RESOLVER_ENTRIES_MAX)
        return 0;
    MK_LIST_EACH_ITEM(&resolver->table, struct mk__resolver_entry, node, name) {
        if (name->state == MK__RESOLVER_RESOLVED) {
            drop_entry(name);
            return 0;
        }
    }
    return -EBUSY;
}

static int add_entry(struct mk__resolver *resolver, struct mk_str host, struct mk__resolver_entry **ret_name)
{
    assert(host.len);
    int err = evict_entry(resolver);
    if (err < 0)
        return err;
    struct mk__resolver_entry *name = mk_account_alloc(NULL, sizeof(*name) + host.len + 1);
    if (!name)
        return -ENOMEM;
    *name = (struct mk__resolver_entry){.message.fn = on_result, .resolver = resolver, .host = {name->text, host.len}};
    memcpy(name->text, host.p, host.len);
    name->text[host.len] = '\0';
    mk_list_init(&name->waiting);
    mk_list_add(&resolver->table, &name->node);
    resolver->n++;
    *ret_name = name;
    return 0;
}

int mk__resolver_get(struct mk_loop *loop, struct mk_str host, struct mk_task *task,
                     struct mk__resolver_entry **ret_name)
{
    assert(mk__loop_is_owner(loop) && task);
    int err = loop->resolver ? 0 : mk__resolver_open(loop, mk__resolver_getaddrinfo);
    if (err < 0)
        return err;
    struct mk__resolver *resolver = loop->resolver;
    struct mk__resolver_entry *name = find_entry(resolver, host);
    if (name && name->state == MK__RESOLVER_RESOLVED && name->expires_ms <= mk_loop_now_ms(loop)) {
        drop_entry(name);
        name = NULL;
    }
    if (!name) {
        err = add_entry(resolver, host, &name);
        if (err < 0)
            return err;
        start_lookups(resolver);
    } else if (name->state == MK__RESOLVER_RESOLVED) {
        mk_list_del(&name->node); /* names that are not resolved keep their order: the table is their queue */
        mk_list_add(&resolver->table, &name->node);
    }
    name->users++;
    *ret_name = name;
    if (name->state == MK__RESOLVER_RESOLVED)
        return 0;
    mk_list_add(&name->waiting, &task->node);
    return MK_AGAIN;
}

/* The table was closed while the lookup ran: its thread reads `users`, too, unless it has ended. */
static void put_closed(struct mk__resolver_entry *name)
{
    struct mk__resolver *resolver = name->resolver;
    pthread_mutex_lock(&resolver->lock);
    bool last = --name->users == 0, ended = name->state == MK__RESOLVER_RESOLVED;
    pthread_mutex_unlock(&resolver->lock);
    if (!last || !ended)
        return;
    mk_account_free(NULL, name, 0);
    put_resolver(resolver);
}

void mk__resolver_put(struct mk__resolver_entry *name)
{
    assert(name->users);
    if (name->resolver && !name->resolver->loop) {
        put_closed(name);
        return;
    }
    if (--name->users)
        return;
    if (name->state == MK__RESOLVER_QUEUED)
        drop_entry(name); /* no dial needs it any more */
    else if (mk_list_empty(&name->node))
        mk_account_free(NULL, name, 0); /* it is no longer in the table */
}

/* ── opening and closing ── */

int mk__resolver_open(struct mk_loop *loop, mk__resolver_fn look_up)
{
    assert(!loop->resolver && look_up);
    struct mk__resolver *resolver = mk_account_alloc(NULL, sizeof(*resolver));
    if (!resolver)
        return -ENOMEM;
    *resolver = (struct mk__resolver){.look_up = look_up, .loop = loop, .refs = 1};
    mk_list_init(&resolver->table);
    pthread_mutex_init(&resolver->lock, NULL);
    loop->resolver = resolver;
    return 0;
}

/* Frees an entry without a thread, or leaves that to mk__resolver_put(), which then needs no table. */
static void close_entry(struct mk__resolver_entry *name)
{
    bool held = name->users;
    drop_entry(name);
    if (!held)
        return;
    name->state = MK__RESOLVER_RESOLVED;
    name->resolver = NULL;
}

void mk__resolver_close(struct mk_loop *loop)
{
    struct mk__resolver *resolver = loop->resolver;
    if (!resolver)
        return;
    loop->resolver = NULL;
    MK_LIST_EACH_ITEM(&resolver->table, struct mk__resolver_entry, node, name) {
        if (name->state != MK__RESOLVER_RUNNING)
            close_entry(name);
    }
    pthread_mutex_lock(&resolver->lock);
    resolver->loop = NULL;
    pthread_mutex_unlock(&resolver->lock);
    put_resolver(resolver);
}
