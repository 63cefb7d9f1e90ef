// SPDX-License-Identifier: Apache-2.0
#ifndef CACHE_CALLS_H
#define CACHE_CALLS_H

#include "entry.h"
#include "worker.h"

#include <monkey/base/buf.h>
#include <monkey/file_cache.h>
#include <monkey/kit/command.h>
#include <monkey/request.h>

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Reads what clients and files say about paths: pairs of a query or form, lists of paths, and sitemaps. Pure.
 */
enum { PATH_BYTES = 4096 };

/* ── queries and forms (application/x-www-form-urlencoded) ── */

struct path_list_pair {
    struct mk_str name; /* not decoded */
    struct mk_str value;
};

/* Cuts the next pair off `rest`; empty ones are left out. Returns false after the last one. */
bool path_list_next_pair(struct mk_str *rest, struct path_list_pair *ret);
/* Decodes a value: percent-escapes, and "+" for a blank. Returns its length, -EINVAL or -ENAMETOOLONG. */
ssize_t path_list_decode(struct mk_str value, char *out, size_t size);

/* ── lists ── */

/* Cuts the next line off `rest`, without blanks at its ends, empty lines and comments ("#"). Returns false at the end.
 */
bool path_list_next_line(struct mk_str *rest, struct mk_str *ret);
/* Cuts the next <loc> of a sitemap (sitemaps.org) off `rest`, as it stands there. Returns false at the end. */
bool path_list_next_location(struct mk_str *rest, struct mk_str *ret);

/* A URL of a list, in parts. */
struct path_list_url {
    struct mk_str host;                                 /* without a port; empty: the entry is a path alone */
    char storage[PATH_BYTES + sizeof("http://") + 256]; /* of the host */
    char path[PATH_BYTES];                              /* decoded and normalized, with a NUL after it */
    size_t path_len;
};

/*
 * Reads an entry: a path or an http or https URL, percent-encoded; what follows "?" or "#" is left out. `is_xml`: the
 * five entities of XML are resolved first. Returns 0, -EINVAL (neither), -ENOENT (an encoded slash) or -ENAMETOOLONG.
 */
int path_list_read(struct mk_str entry, bool is_xml, struct path_list_url *ret);

/* Returns a sentence for an error of path_list_read(). */
const char *path_list_error(int err);

/*
 * The folders of a host, by which entries are found that are its own, and their paths there. Any thread.
 */
struct places {
    const struct mk_host *host;
    const struct mk_file_server *server;
    struct mk_file_place *items;
    unsigned n, size;
};

/* Reads the folders as they are now. Returns 0, -ENOENT (no plugin serves files) or -ENOMEM; release them even so. */
int places_read(struct places *places, const struct mk_host *host);
void places_release(struct places *places);

/*
 * Writes a path of an entry in the host, with a NUL after it: that of the place `*at`, from 0, or a later one; sets
 * `*at` after it. Several aliases may lead to one folder. Returns its length; 0: it has no more that is not hidden.
 */
size_t places_find_path(const struct places *places, const struct entry_key_bytes *key, unsigned *at,
                        char out[PATH_BYTES]);

/*
 * Walks through a folder of a host and those below it, and returns the paths of what may be files. Folders behind links
 * are left out, so that there are no circles. On disk threads.
 */
enum { FOLDER_WALK_DEPTH_MAX = 32 };

struct folder_walk {
    const struct mk_host *host;
    const struct mk_file_server *server;
    unsigned depth;
    struct {
        DIR *dir;
        size_t path_len; /* of the folder, with its slash */
    } levels[FOLDER_WALK_DEPTH_MAX];
    char path[PATH_BYTES];
};

/* Opens the folder of a path with a slash at its end. Returns 0, -ENOENT and similar, or another -errno. */
int folder_walk_open(struct folder_walk *w, const struct mk_host *host, const struct mk_file_server *server,
                     struct mk_str path);
void folder_walk_close(struct folder_walk *w);
/*
 * Finds the next path, which has a NUL after it and is valid until the next call. Returns false at the end. `*ret`
 * without bytes: there was an entry that is left out; call it again.
 */
bool folder_walk_next(struct folder_walk *w, struct mk_str *ret);

/*
 * Loads paths of a host into the cache: those of a list, of a sitemap, or of a folder with all below it. On disk
 * threads, in slices. A path gets what a request for it would get: hidden names, programs and links that are not
 * followed are not loaded.
 *
 *     preload_init() ─► preload_add_...() ─► preload_slice() until it returns false ─► preload_release()
 */
enum {
    PRELOAD_LIST_BYTES_MAX = 16 * 1024 * 1024, /* of a file */
    PRELOAD_PATHS_MAX = 100 * 1000,
    PRELOAD_ERRORS_MAX = 1000, /* that are listed */
};

struct preload {
    struct mk_file_loader base;
    struct cache *cache;
    const struct mk_host *host;
    const struct mk_file_server *server;
    bool refresh; /* entries are loaded anew, and others may be displaced */
    uint64_t paths_max;
    const _Atomic bool *cancelled; /* NULL: never */
    /* of a slice */
    uint64_t now_ms;
    int64_t wall_seconds;
    /* what is to be loaded */
    struct mk_buf list;
    size_t list_at;
    bool is_sitemap;
    struct folder_walk *walk; /* NULL: none */
    /* of the path that is loaded */
    const struct files_policy *policy;
    bool has_result;
    enum load_result result;
    /* results */
    uint64_t asked, kept, present, failed, kept_bytes;
    bool is_full, has_more; /* the cache has no more room; there were more paths than `paths_max` */
    struct mk_buf errors;   /* members of a JSON array, up to PRELOAD_ERRORS_MAX */
    char first_error[256];  /* a path and its error */
};

/* Prepares a run without paths. Returns 0 or -ENOENT (no plugin serves files). */
int preload_init(struct preload *p, struct cache *cache, const struct mk_host *host);
void preload_release(struct preload *p);

/* Reads a file with a list of paths. May wait for a disk. Returns 0, -EFBIG or another -errno. */
int preload_read_list(struct preload *p, int fd);
/* Begins with a folder of the host, whose path ends with a slash. Returns 0 or -errno. */
int preload_start_folder(struct preload *p, struct mk_str path);
/*
 * Loads paths for a moment. `now_ms`, `wall_seconds`: the time at which the caller's turn began, or an earlier one.
 * Returns whether some are left.
 */
bool preload_slice(struct preload *p, uint64_t now_ms, int64_t wall_seconds);
/* Writes members of an object: counts and errors. */
void preload_write(const struct preload *p, struct mk_buf *out);

/*
 * Loads what `Warm` of the hosts names, once for each generation: on a disk thread. The first requests of a process
 * wait for it, WarmTimeout at most; what is left then, and all of it after a reload, is loaded while the workers serve.
 */
/* The run of a generation. */
struct warm {
    struct cache *cache;
    struct mk_generation *generation;
    bool is_needed; /* a host has Warm */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_started, has_ended; /* under the lock */
    _Atomic bool is_awaited;     /* workers wait: it does not pause */
    _Atomic bool cancelled;
    struct mk_job job;
    struct mk_worker *worker; /* held while it runs */
    uint64_t now_ms;
    int64_t wall_seconds;
    /* where it is */
    const struct mk_host *host;
    const struct cache_rule *rule;
    uint32_t item;
    bool has_preload, has_item;
    struct preload preload; /* of the host */
};

void warm_init(struct warm *warm, struct cache *cache, struct mk_generation *g);
void warm_release(struct warm *warm);
/* Looks for hosts with `Warm`. In generation_check. */
void warm_find_hosts(struct warm *warm);

/*
 * Checks the lists of a section, which must be readable and not too long. Reports what is wrong. Returns 0 or -EINVAL.
 */
int warm_check_rule(struct mk_host *host, const struct cache_rule *rule);

/*
 * Starts the run, in the first worker that serves. `wait_ms`: how long this worker waits for its end. In worker_serve.
 */
void warm_serve(struct warm *warm, struct mk_worker *worker, uint32_t wait_ms);
/* Ends the run; what it loads now is still kept. */
void warm_cancel(struct warm *warm);

/*
 * Looks at all entries of a host: a page of them in an order, and removing those of a path. On a disk thread; the store
 * is locked part by part, so that workers never wait for long. A page takes memory for its rows only.
 */
enum scan_sort { SCAN_HITS, SCAN_BYTES, SCAN_AGE, SCAN_NAME, SCAN_SORTS };
extern const char *const scan_sorts[SCAN_SORTS + 1]; /* their names; ends with NULL */

enum { SCAN_ROWS_MAX = 1000, SCAN_AGES = 5 };

/* Where a page begins: after the row with this position. */
struct scan_cursor {
    bool is_set;
    uint64_t value, hash;
    char path[PATH_BYTES]; /* for SCAN_NAME, in place of `value` */
    size_t path_len;
};

struct scan_query {
    struct mk_str prefix; /* of the paths; empty: all */
    enum scan_sort sort;
    unsigned limit; /* 1 to SCAN_ROWS_MAX */
    struct scan_cursor after;
    uint64_t now_ms;
};

/*
 * Parses a cursor: "VALUE:HASH", or for SCAN_NAME "PATH:HASH" with a percent-encoded path; the hash has 16 hexadecimal
 * digits. Returns whether it is one.
 */
bool scan_read_cursor(struct mk_str text, enum scan_sort sort, struct scan_cursor *ret);

/* Writes members of an object: `total` of the matching entries, their `ages`, `entries`, and `next` if there are more.
 */
int scan_write_entries(struct cache *cache, const struct places *places, const struct scan_query *query,
                       struct mk_buf *out);

/* An entry of a page. */
struct scan_row {
    uint64_t value, hash; /* its position */
    char *path;           /* of the heap */
    size_t path_len;
    uint64_t file_bytes, memory_bytes, age_ms, checked_ms;
    uint32_t hits;
    uint8_t kind, coding;
};

/* Writes the members of an object for a row. */
void scan_write_row(const struct scan_row *row, struct mk_buf *out);

typedef void (*scan_row_fn)(const struct scan_row *row, void *ctx);
/* Calls `fn` for the rows of a page in their order. Returns 0 or -ENOMEM. */
int scan_each(struct cache *cache, const struct places *places, const struct scan_query *query, scan_row_fn fn,
              void *ctx);

/* What is removed: a path with its variants, what begins with a prefix, or all of the host. */
struct scan_target {
    struct mk_str path, prefix; /* one of them; both empty: all */
};

/* Removes entries. Returns how many. */
uint64_t scan_remove(struct cache *cache, const struct places *places, const struct scan_target *target);

/*
 * Calls of the API that look at all entries or wait for a disk: each is a job on disk threads, in slices, that outlives
 * its request if the client leaves.
 */
enum {
    CALLS_MAX = 4 /* of the process at the same time */,
    CALL_WAIT_MS = 600000,
    CALL_TEXT_BYTES_MAX = 16 * 1024 * 1024
};

struct call;

/*
 * Works for a moment, and writes members of the answer. On a disk thread. Returns 1 (call it again), 0 (it is done) or
 * -errno, with a sentence in `error`.
 */
typedef int (*call_fn)(struct call *c);

struct call {
    struct mk_job job;
    struct call **owner;    /* in the request's arena: points to this struct while the call runs */
    struct mk_request *req; /* NULL: it has ended, or there was none */
    struct mk_worker *worker;
    struct cache *cache;
    const struct mk_host *host;
    const char *by; /* for the log: "the API"; a literal */
    call_fn work;
    int result;             /* of `work` */
    _Atomic bool cancelled; /* the client has left */
    uint64_t now_ms;
    int64_t wall_seconds;
    struct mk_buf out;
    const char *error;
    /* arguments, of which a call uses some */
    bool has_preload;
    struct preload preload;
    struct scan_query query;
    struct scan_target target;
    char path[PATH_BYTES], sitemap[PATH_BYTES], folder[PATH_BYTES]; /* with a NUL; empty: not given */
};

/*
 * Makes a call for a request, which owns it until call_start(). Returns NULL, and has responded: there are too many
 * calls, or there is no memory.
 */
struct call *call_new(struct mk_request *req, struct cache_worker *w);
/* The same without a request, for `host`. Returns NULL if there are too many, or without memory. */
struct call *call_new_for(struct cache_worker *w, const struct mk_host *host);
/* Frees a call that was not started. */
void call_free(struct call *c);
/* Starts the job, which responds at its end. Responds with 503 if it cannot be started. Returns 0 or -errno. */
int call_start(struct call *c, call_fn work);

/* The calls. */
int call_list_entries(struct call *c);
int call_reset(struct call *c);
int call_add(struct call *c);

/*
 * Responses of the API, which no cache keeps.
 */
/* Responds with a document in JSON, which is copied. */
void answer_json(struct mk_request *req, int status, const struct mk_buf *document);
/* Responds with {"error": "sentence"}. */
void answer_error(struct mk_request *req, int status, const char *sentence);

/*
 * The page of the cache and its API, below the path of `Admin`:
 *
 *     GET  /cache/            the page, and its files
 *     GET  /cache/stats       figures of the process; with Accept: text/event-stream one event each second
 *     GET  /cache/entries     ?prefix= &sort=hits|bytes|age|name &limit= &after=: the entries of the host, in pages
 *     POST /cache/reset       path=, prefix= or all=1; also /cache/reset/PATH
 *     POST /cache/add         path= (several), sitemap=, directory=, or a list of paths; also /cache/add/PATH
 */
/* Returns as on_content: 0, or MK_DECLINED if the path is not below `Admin`, or the client may not see it. */
int api_answer(struct mk_request *req, struct cache_worker *w, const struct cache_rule *rule);

/* Returns whether the path is one of the page or its API. */
bool api_has_path(struct mk_str path, const struct cache_rule *rule);

/*
 * What the plugin adds to `monkey shell`: the command `cache`.
 */
/* Ends with a row without a name. */
extern const struct mk_command cache_commands[];

#endif
