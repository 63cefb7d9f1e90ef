// SPDX-License-Identifier: Apache-2.0
/*
 * The stores of sessions (session_store.h).
 */
#include "session/session_store.h"

#include "common/heap.h"

#include <errno.h>
#include <time.h>

/* ── the stores of a process ── */

static char *dup_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = heap_zalloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

static void free_text(char *text)
{
    heap_free(text, text ? strlen(text) + 1 : 0);
}

static void free_record(struct session_record *r)
{
    heap_free((char *)(uintptr_t)r->values.p, r->values.len);
    heap_free(r, sizeof(*r));
}

static void free_store(struct session_store *store)
{
    MK_LIST_EACH_ITEM(&store->by_use, struct session_record, node, r)
        free_record(r);
    mk_hash_release(&store->table, NULL);
    free_text(store->host);
    free_text(store->service);
    free_text(store->folder);
    for (unsigned i = 0; i < SESSION_STRIPES; i++)
        pthread_mutex_destroy(&store->stripes[i]);
    pthread_mutex_destroy(&store->count_lock);
    pthread_mutex_destroy(&store->lock);
    heap_free(store, sizeof(*store));
}

/* Two digests: a name ends where its digest does. */
static void set_owner(struct session_store *store)
{
    struct session_key names[2];
    if (!store->host || !store->service)
        return;
    mk_sha1(names[0].bytes, store->host, strlen(store->host));
    mk_sha1(names[1].bytes, store->service, strlen(store->service));
    mk_sha1(store->owner.bytes, names, sizeof(names));
}

static struct session_store *new_store(const char *host, const char *service, const char *folder)
{
    struct session_store *store = heap_zalloc(sizeof(*store));
    if (!store)
        return NULL;
    pthread_mutex_init(&store->lock, NULL);
    pthread_mutex_init(&store->count_lock, NULL);
    for (unsigned i = 0; i < SESSION_STRIPES; i++)
        pthread_mutex_init(&store->stripes[i], NULL);
    mk_list_init(&store->by_use);
    store->refs = 1;
    store->files = -1;
    store->host = dup_text(host);
    store->service = dup_text(service);
    store->folder = folder ? dup_text(folder) : NULL;
    set_owner(store);
    if (store->host && store->service && (store->folder || !folder))
        return store;
    free_store(store);
    return NULL;
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct session_store *find_store(struct mk_list *stores, const char *host, const char *service,
                                        const char *folder)
{
    MK_LIST_EACH_ITEM(stores, struct session_store, node, store) {
        if (is_same_text(store->host, host) && is_same_text(store->service, service) &&
            is_same_text(store->folder, folder))
            return store;
    }
    return NULL;
}

struct session_store *session_store_get(struct mk_list *stores, const char *host, const char *service,
                                        const char *folder, unsigned *ret_version)
{
    struct session_store *store = find_store(stores, host, service, folder);
    if (!store && (store = new_store(host, service, folder)))
        mk_list_add(stores, &store->node);
    if (!store)
        return NULL;
    store->users++;
    *ret_version = ++store->versions;
    return store;
}

void session_store_adopt(struct session_store *store, unsigned version, const struct session_limits *limits)
{
    if (MK_LIKELY(version <= atomic_load_explicit(&store->version, memory_order_relaxed)))
        return;
    pthread_mutex_lock(&store->lock);
    if (version > atomic_load_explicit(&store->version, memory_order_relaxed)) {
        store->limits = *limits;
        atomic_store_explicit(&store->version, version, memory_order_relaxed);
    }
    pthread_mutex_unlock(&store->lock);
}

void session_store_unref(struct session_store *store)
{
    if (atomic_fetch_sub(&store->refs, 1) == 1)
        free_store(store);
}

void session_store_drop(struct session_store *store)
{
    assert(store->users > 0);
    if (--store->users > 0)
        return;
    mk_list_del(&store->node);
    session_store_unref(store);
}

struct session_limits session_store_limits(struct session_store *store)
{
    pthread_mutex_lock(&store->lock);
    struct session_limits limits = store->limits;
    pthread_mutex_unlock(&store->lock);
    return limits;
}

int64_t session_store_now(const struct session_store *store)
{
    struct timespec now;
    clock_gettime(store->folder ? CLOCK_REALTIME : CLOCK_BOOTTIME, &now);
    return now.tv_sec;
}

/* ── in memory; store->lock is held ── */

static size_t get_record_bytes(const struct session_record *r)
{
    return sizeof(*r) + r->values.len;
}

static uint64_t hash_key(const struct session_key *key)
{
    uint64_t hash;
    memcpy(&hash, key->bytes, sizeof(hash)); /* of a digest: even, and not for a client to choose */
    return hash;
}

static struct session_record *find_key(const struct session_store *store, const struct session_key *key)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&store->table, hash_key(key), n) {
        struct session_record *r = MK_CONTAINER_OF(n, struct session_record, by_key);
        if (memcmp(&r->key, key, sizeof(*key)) == 0)
            return r;
    }
    return NULL;
}

static void remove_record(struct session_store *store, struct session_record *r)
{
    assert(store->bytes >= get_record_bytes(r));
    mk_hash_remove(&store->table, &r->by_key);
    mk_list_del(&r->node);
    store->bytes -= get_record_bytes(r);
    free_record(r);
}

/* Returns 0 or -ENOMEM. */
static int add_record(struct session_store *store, struct session_record *r)
{
    if (mk_hash_insert(&store->table, NULL, &r->by_key, hash_key(&r->key)) < 0)
        return -ENOMEM;
    mk_list_add(&store->by_use, &r->node);
    store->bytes += get_record_bytes(r);
    return 0;
}

static bool is_expired(const struct session_store *store, const struct session_record *r, int64_t now)
{
    return now >= r->ends || now - r->used >= store->limits.idle_s;
}

static struct session_record *get_first(const struct session_store *store)
{
    return mk_list_empty(&store->by_use) ? NULL : MK_CONTAINER_OF(store->by_use.next, struct session_record, node);
}

/* Ends what has expired, the longest unused first: a few at a time, so that no request waits for many. */
static void remove_expired(struct session_store *store, int64_t now)
{
    struct session_record *first;
    for (unsigned i = 0; i < 32 && (first = get_first(store)) && is_expired(store, first, now); i++)
        remove_record(store, first);
}

/* Ends sessions until the limits hold; the last one, which was just written, stays. */
static void evict_sessions(struct session_store *store)
{
    while (store->table.n > 1 &&
           (store->table.n > store->limits.sessions_max || store->bytes > store->limits.bytes_max))
        remove_record(store, get_first(store));
}

static struct session_record *find_record(struct session_store *store, const struct session_key *key, int64_t now)
{
    struct session_record *r = find_key(store, key);
    if (!r || !is_expired(store, r, now))
        return r;
    remove_record(store, r);
    return NULL;
}

static void use_record(struct session_store *store, struct session_record *r, int64_t now)
{
    r->used = now;
    mk_list_del(&r->node);
    mk_list_add(&store->by_use, &r->node);
}

static int copy_values(struct mk_str values, struct mk_str *ret)
{
    char *copy = values.len ? heap_zalloc(values.len) : NULL;
    *ret = MK_STR_NONE;
    if (!values.len)
        return 0;
    if (!copy)
        return -ENOMEM;
    memcpy(copy, values.p, values.len);
    *ret = mk_str(copy, values.len);
    return 0;
}

int session_memory_load(struct session_store *store, const struct session_key *key, int64_t now, struct mk_str *ret)
{
    int err = -ENOENT;
    *ret = MK_STR_NONE;
    pthread_mutex_lock(&store->lock);
    struct session_record *r = find_record(store, key, now);
    if (r) {
        use_record(store, r, now);
        err = copy_values(r->values, ret);
    }
    remove_expired(store, now);
    pthread_mutex_unlock(&store->lock);
    return err;
}

/* Replaces `old`, which may be NULL, by a session with the commit's new key. Takes the values. */
static int replace_record(struct session_store *store, struct session_record *old, const struct session_commit *commit,
                          struct mk_str values, int64_t now)
{
    struct session_record *r = heap_zalloc(sizeof(*r));
    if (r)
        *r = (struct session_record){.key = commit->to, .values = values, .used = now, .ends = commit->ends};
    if (!r || add_record(store, r) < 0) {
        heap_free((char *)(uintptr_t)values.p, values.len);
        heap_free(r, sizeof(*r));
        return -ENOMEM;
    }
    if (old)
        remove_record(store, old);
    return 0;
}

static void set_values(struct session_store *store, struct session_record *r, struct mk_str values)
{
    store->bytes -= get_record_bytes(r);
    heap_free((char *)(uintptr_t)r->values.p, r->values.len);
    r->values = values;
    store->bytes += get_record_bytes(r);
}

static int write_record(struct session_store *store, struct session_record *from, const struct session_commit *commit,
                        int64_t now)
{
    struct mk_str values, before = from && !commit->drops ? from->values : MK_STR_NONE;
    int err = session_values_apply(before, commit->changes, store->limits.session_bytes, &values);
    if (err < 0)
        return err;
    if (session_commit_has_new_key(commit))
        return replace_record(store, from, commit, values, now);
    assert(from);
    set_values(store, from, values);
    use_record(store, from, now);
    return 0;
}

int session_memory_commit(struct session_store *store, const struct session_commit *commit, int64_t now)
{
    int err = 0;
    pthread_mutex_lock(&store->lock);
    struct session_record *from = commit->has_from ? find_record(store, &commit->from, now) : NULL;
    if (commit->has_from && !from && !commit->drops)
        err = -ESTALE;
    else if (commit->has_to)
        err = write_record(store, from, commit, now);
    else if (from)
        remove_record(store, from);
    remove_expired(store, now);
    evict_sessions(store);
    pthread_mutex_unlock(&store->lock);
    return err;
}
