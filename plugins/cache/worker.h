// SPDX-License-Identifier: Apache-2.0
#ifndef CACHE_WORKER_H
#define CACHE_WORKER_H

#include "entry.h"
#include "notify.h"

#include <monkey/base/log_limit.h>
#include <monkey/counters.h>
#include <monkey/kit/event_stream.h>
#include <monkey/kit/store.h>
#include <monkey/plugin.h>

/*
 * What the cache counts.
 */
enum cache_count {
    COUNT_HITS,        /* answered from an entry */
    COUNT_MISSES,      /* no entry, or one that was not valid any more */
    COUNT_REVALIDATED, /* entries that were revalidated and had not changed */
    COUNT_WAITS,       /* lookups that had to wait for a disk */
    COUNT_EVICTED,     /* and after it, of each kind of entry; the same for the next two */
    COUNT_ENTRIES = COUNT_EVICTED + ENTRY_KINDS,
    COUNT_BYTES = COUNT_ENTRIES + ENTRY_KINDS,
    COUNT_FOLDERS = COUNT_BYTES + ENTRY_KINDS, /* that are watched */
    COUNT_OVERFLOWS,                           /* of the queue of their changes */
    CACHE_COUNTS,
};

/* In the state of the process: a plugin without static variables needs a page less. */
struct cache_counters {
    const struct mk_counter *counters[CACHE_COUNTS];
};

/* Opens the counters; opening them again changes nothing. */
void cache_counters_open(struct cache_counters *c);
/* Counts one event. In the thread of the worker. */
void cache_counters_add(const struct cache_counters *c, enum cache_count count, const struct mk_worker *worker);

struct cache_notify_counts {
    uint64_t folders, overflows;
};

/* Adds what has changed since `last`, which it updates. One thread at a time. */
void cache_counters_add_notify(const struct cache_counters *c, const struct notify *notify,
                               struct cache_notify_counts *last);
/* Adds what has changed in the store since `last`, which it updates. One thread at a time. */
void cache_counters_add_store(const struct cache_counters *c, struct mk_store *store, struct mk_store_stats *last);

/*
 * The directives of [CACHE]: memory in monkey.conf, and what is cached by hosts.
 */
/* How soon a change of a file is seen. */
enum files_mode { FILES_UNSET, FILES_OFF, FILES_EACH_CYCLE, FILES_REVALIDATE, FILES_NOTIFY, FILES_IMMUTABLE };

struct files_policy {
    uint8_t mode;         /* enum files_mode */
    uint32_t interval_ms; /* FILES_REVALIDATE and FILES_NOTIFY */
};

/* What is loaded ahead: a folder of the host, or a file with a list of paths. */
struct warm_item {
    struct mk_str text; /* the path of a folder of the host, with a slash at its end, or that of the file */
    bool is_folder;
};

struct warm_list {
    struct warm_item *items;
    uint32_t n;
};

/* A section [CACHE] of a host. One that has `Admin` or `Warm`, but not `Files`, says nothing about files. */
struct cache_rule {
    struct mk_pattern match; /* matches nothing in a section that says nothing about files */
    struct files_policy files;
    struct mk_str admin;
    struct warm_list warm;
};

/* The section [CACHE] of the server. */
struct cache_conf {
    uint64_t bytes_max, body_bytes_max;
    int64_t descriptors_max, missing_max;
    uint32_t warm_timeout_ms;
};

/* The sections for struct mk_plugin. */
enum { DIRECTIVES_SERVER, DIRECTIVES_RULES };
extern const struct mk_conf_section directives_sections[];

/* Parses the value of `Files` into a struct files_policy; an mk_conf_parse_fn. */
int directives_parse_files(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                           struct mk_buf *error);
/* Returns whether a section says something about files. */
bool directives_is_about_files(const struct cache_rule *rule);
/* Returns the name of a mode. */
const char *directives_mode_name(enum files_mode mode);

/* What paths have that no section matches, and those for which a regular expression fails. */
extern const struct files_policy directives_default_policy, directives_off;

/* Returns the policy of a path; `ret_rule`: the section that it comes from, or NULL. Any thread. */
static inline const struct files_policy *directives_find_policy(const struct mk_host *host, struct mk_str path,
                                                                const void **ret_rule)
{
    *ret_rule = NULL;
    int r = mk_host_conf_match(host, &directives_sections[DIRECTIVES_RULES], offsetof(struct cache_rule, match), path,
                               ret_rule);
    const struct cache_rule *rule = *ret_rule;
    return r < 0 ? &directives_off : rule ? &rule->files : &directives_default_policy;
}

/*
 * What the files of the plugin share: the cache of the process, and its state in a worker. Each file uses those to its
 * left only:
 *
 *     directives, entry ◄─ notify, counters ◄─ parents ◄─ sweep ◄─ load ◄─ check, root_name ◄─── cache
 *     path_list ◄─ places ◄─ scan ◄─────────────── load ◄─ preload ◄─ warm ◄────────────────── cache
 *                  folder_walk ◄──────────────────────────  preload, scan ◄─ call ◄─ api, commands
 *     answer, stats, access ◄─ api ◄─ cache
 */
/* The cache of the process: it outlives generations. */
struct cache {
    struct mk_store *store;
    _Atomic uint64_t next_sweep_ms; /* of the descriptors, by any worker */
    _Atomic uint64_t bytes_max, body_bytes_max, descriptors_max, missing_max;
    _Atomic uint64_t descriptors_wanted; /* by the configuration */
    _Atomic int fd_alarm; /* from this descriptor on the process is short of them: files are not kept open */
    uint64_t generations; /* that were loaded; by one thread at a time */
    pthread_mutex_t limits_lock;
    uint64_t limits_number; /* of the generation whose limits are in force; under the lock */
    pthread_mutex_t stats_lock;
    struct mk_store_stats counted[ENTRY_KINDS]; /* what the counters have of the store; under the lock */
    struct cache_notify_counts notify_counted;  /* likewise */
    _Atomic unsigned calls;                     /* of the API, now */
    unsigned streams;                           /* the same; changed atomically (<monkey/kit/event_stream.h>) */
    _Atomic uint64_t first_served;              /* the number of the first generation that served; 0: none yet */
    struct notify notify;
    struct cache_counters counters;
};

/* A name that a worker has opened and not kept lately, though it was asked for before. */
struct not_kept {
    uint64_t hash;     /* of its key */
    uint64_t until_ms; /* how long that is remembered */
};

enum { NOT_KEPT_NAMES = 64 }; /* that a worker remembers */

/* The state of a worker. */
struct cache_worker {
    struct cache *cache;
    struct mk_worker *worker;
    struct mk_loop *loop;
    struct mk_timer sweep;
    bool has_rules;                  /* a host of the generation has sections about files */
    bool has_limits;                 /* the limits of its generation were set, or later ones are in force */
    const struct mk_item *last_item; /* EachCycle: was revalidated at `last_turn` */
    uint64_t last_turn;
    uint64_t notified;                    /* Notify: changes were read at this arrival of requests, */
    const struct mk_file_root *confirmed; /* and this root is that of its path; or NULL */
    struct parents *parents;              /* NULL: none yet */
    uint64_t sample;                      /* which hits of hot entries are counted */
    struct not_kept not_kept[NOT_KEPT_NAMES];
    struct mk_event_streams streams; /* of figures */
    struct mk_log_limit_row denied;  /* clients that were not shown the page */
};

/* A name that is looked up for a request, or loaded on a disk thread. */
struct cache_lookup {
    struct cache *cache;
    struct cache_worker *worker; /* this and the next are NULL on a disk thread */
    struct mk_request *req;
    const struct mk_host *host;
    const struct mk_file_name *name;
    const struct files_policy *policy;
    struct entry_key key;
    uint64_t now_ms;
    uint64_t turn;        /* of the loop */
    int64_t wall_seconds; /* set before a name is loaded */
};

/* Returns whether the root's folder is still that of the key: what was opened since then is below it. */
static inline bool lookup_is_in_root(const struct cache_lookup *l)
{
    return l->name->version % 2 == 0 && l->name->root->version(l->name->context) == l->name->version;
}

/*
 * Which requests may use the page of the cache and its API.
 */

/* Warns if the host can be reached from other machines, but no rule and no login lets a client there see the page. */
void access_check_host(struct mk_host *host, const struct cache_rule *rule);

/*
 * Folders that a worker keeps open for a moment, to revalidate the files in them: the folder is opened as a request
 * would open it, once in a turn of the loop or in a part of the interval, and each name in it is then one fstatat(2).
 * With `Files Notify` the folders on the way are watched, too.
 */
/* What a name is now. */
struct name_state {
    int err; /* 0: it could be opened */
    bool is_folder, is_file;
    struct file_identity id;
    uint64_t since_ms; /* the state is not older than this */
    uint32_t place;    /* where its changes are counted (notify.h); NOTIFY_UNKNOWN: that of the entry stays */
    uint64_t number;   /* that of the place before the name was looked at */
};

/* A path and the name after its last slash; both belong to the path. */
struct split_name {
    struct mk_str folder; /* without the slash; empty: there is none, or nothing before it */
    struct mk_str last;
};

/* Returns false for paths that have no last component, or "." or "..". */
bool parents_split(struct mk_str path, struct split_name *ret);

/* Returns the state that stat(2) shows. */
struct name_state parents_describe(const struct stat *st);

/*
 * Finds out what the name of an entry is. Returns false if it is to be opened for that; `place` and `number` are set in
 * any case, for a name that is no link. In the worker's thread; a sweep must follow.
 */
bool parents_stat(struct cache_lookup *l, const struct mk_item *item, struct name_state *ret);

/* Each folder is opened again before it is used. */
void parents_forget(struct cache_worker *w);
/* Closes the folders that were not used since the last call. Returns whether others are open. */
bool parents_sweep(struct cache_worker *w);
void parents_release(struct cache_worker *w);

/*
 * Opens a name, and keeps what it is as an entry if that pays.
 */
/* Opens the name of a lookup, for which there is no entry. With `keep`, an entry is made if the store admits it. */
struct mk_named_file load_name(struct cache_lookup *l, bool keep);
/* Returns whether load_name() has not kept the name in the last second: it was changed lately, or there is no room. */
bool load_was_not_kept(const struct cache_lookup *l);

enum load_result {
    LOAD_NONE, /* it is no file */
    LOAD_KEPT,
    LOAD_PRESENT, /* there was an entry, and it was not to be loaded again */
    LOAD_CHANGED, /* it was changed a moment ago, and may change again */
    LOAD_NO_ROOM, /* it would displace others, is too large, or there is no memory */
};

/*
 * Opens the name of a lookup on a disk thread, and keeps what it is, whether or not it was asked for before. `refresh`:
 * also if there is an entry, or if that displaces others. Returns what it is, without a descriptor.
 */
struct mk_named_file load_and_wait(struct cache_lookup *l, bool refresh, enum load_result *ret);

/*
 * Opens the name of a lookup (enum mk_file_open). Without descriptors those of the cache are given back, and it is
 * tried again: those that were given back in an earlier turn are closed then. Returns a descriptor or -errno.
 */
int load_open(const struct cache_lookup *l, uint32_t flags);

/* Returns what the entry of an item says, for the lookup of its name. */
struct mk_named_file load_describe(const struct cache_lookup *l, struct mk_item *item);

/*
 * Closes descriptors that are not used, or whose file has no name any more, and keeps the counters of entries. A timer
 * of a worker does it once a second, while there are descriptors or entries have changed.
 */
void sweep_init(struct cache_worker *w);
/* Makes sure that a sweep follows. In the worker's thread. */
void sweep_schedule(struct cache_worker *w);
/* Continues with what the worker of a former generation had to do: an empty cache needs no sweep. */
void sweep_resume(struct cache_worker *w);
void sweep_cancel(struct cache_worker *w);

/* Sets the limits of descriptors by what was configured and by RLIMIT_NOFILE, which may change at any time. */
void sweep_limit_descriptors(struct cache *cache);
/*
 * Gives half of the descriptors back; all of them if the process has none left. They are closed when no loop can see
 * their entries any more: not in this turn. Any thread; does not block.
 */
void sweep_evict_descriptors(struct cache *cache);

/*
 * Decides whether an entry may be served, and revalidates it if that is due.
 */
enum check_result {
    CHECK_VALID,
    CHECK_CHANGED, /* the entry was removed */
    CHECK_WAITS,   /* only a disk can tell: the name is to be opened by a thread that may wait */
    CHECK_SHORT,   /* there are no descriptors now: the name is to be opened in another turn */
};

/* Checks the entry of a lookup by the policy of its path. */
enum check_result check_entry(struct cache_lookup *l, struct mk_item *item);

/*
 * The name of a root in the folder above it, which `Files Notify` watches: a link that is replaced there, or a folder
 * that is moved, makes another folder the root. Links before the last component of the path, and after it, are left to
 * the plugin that serves files, which looks at the path once in a second.
 */
/*
 * Returns whether the root of a lookup is that to which its path leads, as far as the kernel has reported changes
 * until notify_read() was called; true, too, if the name is not watched. False: the lookup ends with EAGAIN.
 */
bool root_name_is_confirmed(const struct cache_lookup *l);
/* Returns whether the name of the root, which is watched, was a link when it was looked at; true, too, before that. */
bool root_name_is_link(const struct cache_lookup *l);

/*
 * The figures of the cache, of the whole process.
 */
/* Writes members of an object. Any thread. */
void stats_write(struct cache *cache, struct mk_buf *out);
/* The same in one object without others in it, as the shell shows them. */
void stats_write_flat(struct cache *cache, struct mk_buf *out);

/* Makes the events of cache_worker.streams. */
extern const struct mk_event_maker stats_events;

#endif
