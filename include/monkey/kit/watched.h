// SPDX-License-Identifier: Apache-2.0
/*
 * A value that is made from files, and made again when they change, without a reload of the server: certificates,
 * lists of networks, password files. In the kit: plugins link -lmonkey-kit.
 *
 *     struct mk_watched       the files and the current value, opened and closed by host_start and host_stop
 *     struct mk_watched_ref   what one worker holds of it, in the state of the worker
 *
 *     static const struct mk_watched_type type = {.load = read_users, .free = free_users};
 *
 *     host_start     mk_watched_open(&source, &message, &watched): loads at once
 *     worker_start   mk_watched_ref_init(&ref, watched)
 *     on_request     users = mk_watched_ref_get(&ref)
 *     worker_stop    mk_watched_ref_release(&ref)
 *     host_stop      mk_watched_close(watched)
 *
 * One thread watches the files of all values of a plugin. It starts with the first reference, so that it exists neither
 * in a check of the configuration nor before the program has gone to the background, and ends with the last close. The
 * files, their folders and those of all links on the way to them are watched (inotify(7)): a rename, a switched link
 * (`..data` of a Kubernetes volume, `current -> releases/42`), a new file and a write in place, also by a hard link or
 * to a file that is mounted there, are noticed about 100 ms after the last of several changes. Where the kernel cannot
 * report changes (its limits, a folder that may not be read, NFS, FUSE), files are looked at every 2 s.
 *
 * If a load succeeds, the new value replaces the former one in all workers, and the log says so. If it fails, it is
 * repeated twice within about a second, because files that belong together are often replaced one after the other; then
 * the log has the reason, once for each change, and the former value stays.
 *
 * Files are read again with the privileges that the process has then: what only root may read is not loaded again once
 * the server runs as `User`. This holds for a reload of the server, too. The log says so at the start.
 *
 * A generation that a reload makes opens its files anew: nothing is shared with the generation before it, unless `load`
 * and `free` of a type share their values by a count of references of their own.
 */
#ifndef MONKEY_WATCHED_H
#define MONKEY_WATCHED_H

#include "../base/buf.h"
#include "../base/str.h"

MK_C_BEGIN

struct mk_watched;
struct mk_watched_value; /* a loaded value and the number of its references */

enum { MK_WATCHED_FILES_MAX = 64 };

struct mk_watched_type {
    /*
     * Makes a value from the files. Called by mk_watched_open() in its thread, then in the watching thread, never twice
     * at once for one `ctx`; may block; must not call mk_watched_close(). What it reads of `ctx` must not change while
     * the value is open. It should read each file once, and refuse those that are not regular or too large.
     * Returns 0, or -errno with a sentence in `message`, without a full stop. A message with 0 is a warning. `message`
     * is that of mk_watched_open() first, which may be NULL.
     */
    int (*load)(void *ctx, void **ret_value, struct mk_buf *message);
    /* Frees a value that nothing refers to; in the watching thread or within mk_watched_close(), never in a worker. */
    void (*free)(void *value);
};

struct mk_watched_source {
    const struct mk_watched_type *type;
    void *ctx;                  /* for load; as long as the value is open */
    struct mk_str name;         /* for the log: "tls: the certificates of host example.org"; copied */
    const struct mk_str *paths; /* absolute paths of the files that load reads, 1 to MK_WATCHED_FILES_MAX; copied */
    unsigned n;
};

/*
 * Loads the value and prepares to watch its files. Logs nothing: `message` has what load has to say; load gets it as it
 * is, NULL too. Any thread.
 * Returns 0, the error of load, -EINVAL (a path is not absolute or too long, or there are too many) or -ENOMEM.
 */
MK_API int mk_watched_open(const struct mk_watched_source *source, struct mk_buf *message, struct mk_watched **ret);
/*
 * Waits for a load that is running, and frees the values. All references must have been released. The last close ends
 * the thread. `w` may be NULL. Any thread, but not within load or free.
 */
MK_API void mk_watched_close(struct mk_watched *w);

/* A reference to the value, for one thread at a time. */
struct mk_watched_ref {
    struct mk_watched *watched;
    struct mk_watched_value *value;
};

/*
 * Takes a reference to the current value; starts the thread. Call it in a worker's thread or later: a process that goes
 * to the background with fork() would lose the thread. If no thread can be started, the log says so, and the value
 * stays. Any thread.
 */
MK_API void mk_watched_ref_init(struct mk_watched_ref *ref, struct mk_watched *w);
/* Takes a reference in the same way, but starts no thread: for checks of the value before a worker has one. */
MK_API void mk_watched_ref_peek(struct mk_watched_ref *ref, struct mk_watched *w);
/*
 * Returns the current value. It is valid until this is called again for the same reference, or it is released: work in
 * another thread, or one that continues later, needs its own reference. Takes no lock unless the value has changed.
 */
MK_API void *mk_watched_ref_get(struct mk_watched_ref *ref);
/* Releases a reference; does nothing if it is zeroed or was released. */
MK_API void mk_watched_ref_release(struct mk_watched_ref *ref);

MK_C_END

#endif
