// SPDX-License-Identifier: Apache-2.0
/*
 * Between a plugin that serves files and a plugin that caches what their names mean (`cache`).
 *
 * The cache takes the place of opening a name below a root, not of answering a request: which names are tried for a
 * path, and what is sent, the plugin that serves files decides for each request. It finds the cache with
 * mk_generation_file_cache(), and opens its names through it:
 *
 *     path ─► names ─► open() of the cache ─► known: from memory, or ─► open() of struct mk_file_root
 *
 * All functions run in the thread of the request's worker, unless they say otherwise.
 */
#ifndef MONKEY_FILE_CACHE_H
#define MONKEY_FILE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin.h"

MK_C_BEGIN

/* How a name is opened. */
enum mk_file_open {
    MK_FILE_OPEN_CACHED = 1,   /* do not wait for a disk: -EAGAIN instead */
    MK_FILE_OPEN_PATH = 2,     /* only to see what the name is (O_PATH), with the same policy for links */
    MK_FILE_OPEN_NO_LINKS = 4, /* -ELOOP if a component is a link, whatever the policy is */
};

/* A folder below which names are opened. Valid as long as the worker is held (mk_worker_get()). */
struct mk_file_root {
    /*
     * Opens a name below the root. `context` is that of struct mk_file_name. Any thread; may block without
     * MK_FILE_OPEN_CACHED. Returns a descriptor or -errno.
     */
    int (*open)(void *context, const char *name, uint32_t flags);
    /*
     * Returns a number that changes when another folder takes the root's place; an odd one while that happens. What was
     * opened between two equal even numbers was opened below one folder. Any thread.
     */
    uint32_t (*version)(void *context);
    /*
     * When the folder was opened, in milliseconds of CLOCK_MONOTONIC: entries that were revalidated before are
     * revalidated again, since another folder may have got the same numbers. Changes with the version.
     */
    uint64_t (*opened_ms)(void *context);
    /* The path of the folder, as it is configured; ends with a NUL. NULL: the next two are not used. */
    const char *path;
    /*
     * Looks whether the path still leads to the folder, without waiting for a disk. Returns 0, or -EAGAIN: it may not,
     * and open() of the cache returns that; the plugin that serves files opens what the path leads to before it opens
     * the name on a disk thread.
     */
    int (*confirm)(void *context);
    /* For the cache, which changes them atomically; 0 at first. They last as long as the folder. */
    uint64_t *notes; /* MK_FILE_ROOT_NOTES of them */
};

enum { MK_FILE_ROOT_NOTES = 2 };

/* A name below a root, and all that decides what a client gets for it. */
struct mk_file_name {
    const struct mk_file_root *root;
    void *context;           /* for root->open() */
    uint64_t device, inode;  /* of the root's folder: another folder is another root */
    uint64_t mount;          /* through which the folder was opened: others may have other mounts below it */
    uint32_t version;        /* root->version(), read before these three */
    struct mk_str name;      /* ends with a NUL; no slash before it, at most 4,095 bytes */
    struct mk_str type_name; /* the name whose extension decides the media type; empty: `name` */
    uint8_t policy;          /* of links; 0 to 255, as the plugin numbers them */
    uint8_t coding;          /* enum mk_coding of a variant of the file `type_name`, else MK_CODING_IDENTITY */
    bool no_ranges;          /* Range is ignored */
    bool no_version;         /* mk_file.version is 0 */
    bool is_local;           /* the root's file system is of this machine and one of those that report all changes */
};

enum mk_file_kind { MK_FILE_REGULAR, MK_FILE_FOLDER, MK_FILE_NONE };

/* What a name is. */
struct mk_named_file {
    enum mk_file_kind kind;
    /*
     * NONE: the errno, EAGAIN with the meaning of MK_FILE_OPEN_CACHED. EMFILE and ENFILE: the cache gives its
     * descriptors back, so that opening the name may succeed in a later turn.
     */
    int err;
    /*
     * REGULAR: the file for mk_response_file(). `type` is empty unless there is a block. With an owner it is kept, and
     * nothing is to be closed; without one it was only opened, and the caller owns `fd`.
     */
    struct mk_file file;
};

/* The functions of a plugin that caches files: mk_plugin_interfaces.file_cache. */
struct mk_file_cache {
    /*
     * Opens a name for a request, without waiting for a disk. The result is valid in this turn of the loop; a file with
     * an owner for longer if it is held.
     */
    struct mk_named_file (*open)(struct mk_request *req, const struct mk_file_name *name);
    /* The request may have changed files: those that are revalidated in each turn are revalidated again. */
    void (*forget_turn)(struct mk_request *req);
    /*
     * Returns whether files of the generation's hosts may be kept, once they are loaded; NULL: they may. Where none is,
     * the plugin that serves files opens them itself. Any thread.
     */
    bool (*is_used)(const struct mk_generation *g);
};

/* Keeps names in a cache without a request; a plugin embeds it in a struct with its results. */
struct mk_file_loader {
    /*
     * Opens a name, waits for a disk if it must, and keeps what the name is. In the thread that has called load_path().
     * Returns what it is: `kind`, `err`, and the times of a file, without a descriptor and without content.
     */
    struct mk_named_file (*load)(struct mk_file_loader *loader, const struct mk_file_name *name);
};

/* A folder of a host, as its names are known to the cache. */
struct mk_file_place {
    uint64_t device, inode, mount; /* as in struct mk_file_name */
    struct mk_str url;             /* of its files: after it a slash and the name; empty: all paths */
    struct mk_str name;            /* the only name that is served from there, at `url` itself; `.p` NULL: all are */
};

typedef void (*mk_file_place_fn)(const struct mk_file_place *place, void *ctx);

/* What GET and HEAD are answered with before they are forwarded (TryFiles). */
enum mk_tries {
    MK_TRIES_NOTHING,
    MK_TRIES_SOME, /* a file, if there is one */
    MK_TRIES_ALL,  /* a file or status for each path, by a last name without $path, or a last status */
};

/* The functions of a plugin that serves files: mk_plugin_interfaces.file_server. Any thread, from worker_start on. */
struct mk_file_server {
    /*
     * Passes each name to `loader` that GET of a path of the host opens: those of TryFiles and of the index, the file
     * and its variants. `path` is decoded and normalized, and ends with a NUL. May block.
     * Returns 0 (there is a file), -ENOENT and similar (nothing is there, it is hidden, or a program), -EISDIR (a
     * folder, and the path has no slash), -ENOTSUP (the files there are never cached) or another -errno.
     */
    int (*load_path)(const struct mk_host *host, struct mk_str path, struct mk_file_loader *loader);
    /* Calls `fn` for each folder of the host, as it is now; the strings are valid as long as the generation. */
    void (*each_place)(const struct mk_host *host, mk_file_place_fn fn, void *ctx);
    /* Returns whether the path is hidden from clients (DotFiles). */
    bool (*hides)(const struct mk_host *host, struct mk_str path);
    /*
     * Returns what comes before a request of the host is forwarded. A plugin that forwards requests declines GET and
     * HEAD in on_content then, and takes them in on_fallback; but with MK_TRIES_ALL, where none would get there, those
     * for a section whose paths do not include "/" are forwarded at once. From generation_check on.
     */
    enum mk_tries (*tries)(const struct mk_host *host);
    /*
     * Appends the path of the file that GET of a folder sends or, if it is a program, runs: its index, or a name of
     * TryFiles. `path` is decoded and normalized, and ends with a slash and a NUL. May block.
     * Returns 0, -ENOENT (there is none) or another -errno.
     */
    int (*find_index)(const struct mk_host *host, struct mk_str path, struct mk_buf *out);
    /* Returns the pattern of the [ALIAS] that has the path; NULL: none has it. From generation_check on. */
    const struct mk_pattern *(*find_alias)(const struct mk_host *host, struct mk_str path);
};

/* Returns the functions of the generation's plugin that serves files; NULL: none is loaded. Any thread. */
MK_API const struct mk_file_server *mk_generation_file_server(const struct mk_generation *g);
/* Return for a host what mk_request_mime() and mk_request_mime_id() return for its requests. Any thread. */
MK_API struct mk_str mk_host_mime(const struct mk_host *host, struct mk_str path);
MK_API uint64_t mk_host_mime_id(const struct mk_host *host);

/* Returns the functions of the generation's plugin that caches files; NULL: none is loaded, or used. Any thread. */
MK_API const struct mk_file_cache *mk_generation_file_cache(const struct mk_generation *g);

MK_C_END

#endif
