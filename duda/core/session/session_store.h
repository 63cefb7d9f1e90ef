// SPDX-License-Identifier: Apache-2.0
/*
 * Where sessions are kept. A store belongs to a host and a service by their names, so that it stays while a new version
 * of the service takes the place of the old one, and has the limits of the newest that has served.
 *
 *     service_set ─► session_store ◄─ services (`users`), jobs on disk threads (`refs`)
 *
 * Sessions are found by a digest of their id: no comparison and no file name tells anything about an id.
 */
#ifndef DUDA_CORE_SESSION_SESSION_STORE_H
#define DUDA_CORE_SESSION_SESSION_STORE_H

#include "session/session_values.h"

#include <monkey/base/list.h>
#include <monkey/base/sha1.h>
#include <monkey/kit/hash_table.h>

#include <pthread.h>
#include <stdatomic.h>

enum { SESSION_STRIPES = 16 };

struct session_key {
    unsigned char bytes[MK_SHA1_BYTES];
};

struct session_limits {
    int64_t idle_s;
    uint64_t bytes_max; /* of all sessions in memory */
    uint32_t sessions_max, session_bytes;
};

/* One session in memory; its values are after it on the heap. */
struct session_record {
    struct mk_list node;        /* in session_store.by_use */
    struct mk_hash_node by_key; /* in session_store.table */
    struct session_key key;
    struct mk_str values;
    int64_t used, ends; /* seconds */
};

struct session_store {
    struct mk_list node;   /* in service_set.session_stores; it and `users` are for the hooks of the configuration */
    unsigned users;        /* services */
    unsigned versions;     /* so many services have taken it; of these three, too */
    _Atomic unsigned refs; /* one for all services, and one for each job */
    char *host, *service, *folder; /* `folder` is NULL: in memory */
    struct session_key owner;      /* digest of host and service */
    _Atomic unsigned version;      /* of the service whose limits hold */

    pthread_mutex_t lock; /* of the next fields */
    struct session_limits limits;
    struct mk_hash_table table;
    uint64_t bytes;
    struct mk_list by_use; /* the one whose last use is the longest ago comes first */

    /* session_file.c */
    pthread_mutex_t stripes[SESSION_STRIPES]; /* of sessions by their keys, in this process */
    pthread_mutex_t count_lock;               /* of cleaning; before a stripe */
    _Atomic int64_t files;                    /* of sessions, as far as this process knows; -1: not counted yet */
    _Atomic int64_t clean_at;                 /* when to look for expired files, in seconds */
    _Atomic int64_t logged_at;
};

/*
 * What a request does to a session.
 *
 *     create   to             update   from, to are the same      destroy   from, drops
 *     renew    from, to       destroy and create anew   from, to, drops
 */
struct session_commit {
    bool has_from, has_to;
    bool drops; /* the values of `from`, which may be gone */
    struct session_key from, to;
    const struct session_change *changes;
    int64_t ends; /* of a session with a new key */
};

static inline bool session_commit_has_new_key(const struct session_commit *c)
{
    return !c->has_from || memcmp(&c->from, &c->to, sizeof(c->to)) != 0;
}

/* ── the stores of a process; for the hooks of the configuration ── */

/*
 * Returns the store of a service, with one user more, and a higher `*ret_version` than that of the services before.
 * `host` must tell the host apart from all others. `folder` is NULL for a store in memory. Returns NULL without memory.
 */
struct session_store *session_store_get(struct mk_list *stores, const char *host, const char *service,
                                        const char *folder, unsigned *ret_version);
/* Drops a user; after the last one, and the last job, the store is freed. */
void session_store_drop(struct session_store *store);

/* For jobs: in any thread. */
static inline void session_store_ref(struct session_store *store)
{
    atomic_fetch_add(&store->refs, 1);
}
void session_store_unref(struct session_store *store);

/*
 * Has the limits of a service hold, unless those of a newer version do. To be called when it serves a request: a
 * service whose configuration is refused sets no limits, and one that is about to end sets them no more. Any thread.
 */
void session_store_adopt(struct session_store *store, unsigned version, const struct session_limits *limits);
struct session_limits session_store_limits(struct session_store *store);
/* Returns the time that the store goes by, in seconds: since the start of the system, or since 1970 for files. */
int64_t session_store_now(const struct session_store *store);

/* ── in memory; any thread ── */

/*
 * Copies the values of a session, for heap_free(), and counts it as used. `now` in seconds. Returns 0, -ENOENT or
 * -ENOMEM.
 */
int session_memory_load(struct session_store *store, const struct session_key *key, int64_t now, struct mk_str *ret);
/* Returns 0, -ESTALE (`from` is gone), -ENOSPC (too large) or -ENOMEM. */
int session_memory_commit(struct session_store *store, const struct session_commit *commit, int64_t now);

#endif
