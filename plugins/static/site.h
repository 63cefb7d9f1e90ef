// SPDX-License-Identifier: Apache-2.0
/*
 * A host's document root, and how a path below it becomes an open file. Pure file system: no requests here.
 *
 *     site_find ─► names of TryFiles ─► a file, or the index of a directory ─► its variant
 *     (site.c)     (tryfiles.c)         (site.c, links.c)                      (variants.c)
 *
 * Workers and disk threads look into one site at the same time, and one of them may swap its root (root.c).
 */
#ifndef STATIC_SITE_H
#define STATIC_SITE_H

#include <monkey/conf.h>
#include <monkey/request.h>
#include <monkey/str.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

enum symlinks { SYMLINKS_OFF, SYMLINKS_INSIDE, SYMLINKS_ON };

enum { SITE_NAME_BYTES = 4096 };

struct static_settings {
    struct mk_conf_list index;
    int symlinks; /* enum symlinks */
    bool ranges, dotfiles;
};

struct static_host {
    struct mk_str root;
    struct mk_conf_list precompressed, try_files;
    uint8_t codings[MK_CODING_COUNT]; /* what `precompressed` names */
    unsigned n_codings;
    unsigned n_tries; /* the names of `try_files` */
    int last_status;  /* what it ends with; 0 when it ends with a name */
};

struct error_page;

struct site {
    struct error_page *errors;
    const struct static_settings *settings;
    const struct static_host *host;
    _Atomic bool in_memory; /* no disk behind the root's file system */
    int root_fd;            /* O_PATH; the number stays, what it means may be swapped */
    _Atomic unsigned swaps; /* odd while the root is being swapped */

    _Atomic uint64_t due_ms; /* when the root is looked at again; ROOT_TAKEN while somebody does */
    dev_t device;            /* of the root, for who has taken it */
    ino_t inode;

    pthread_mutex_t lock;  /* of the path, and of a swap */
    struct mk_str path;    /* of the root, without links and without a last slash; ends with a NUL */
    struct mk_str written; /* the same as the configuration names it */
};

enum found_kind { FOUND_FILE, FOUND_DIRECTORY, FOUND_NOTHING };

struct found {
    enum found_kind kind;
    int err;    /* of FOUND_NOTHING: the errno */
    int status; /* of FOUND_NOTHING: what TryFiles wants to be answered, or 0 */
    int fd;     /* of FOUND_FILE: a regular file */
    bool in_memory;
    bool varies;           /* other requests may get another variant of it */
    enum mk_coding coding; /* of the file's bytes */
    uint64_t bytes;
    struct timespec mtime;
    struct mk_str name; /* what its type is told by; lives as long as the path or the settings */
};

/*
 * Finds what `path` (decoded, normalized, NUL-terminated, with a leading slash) names: a file, the index of a
 * directory, or a directory that was asked for without its slash. With `accept`, a variant that is welcome is
 * preferred. With `cached` only what the kernel can say without waiting for a disk; then the errno may be
 * EAGAIN: call again without it, on a thread that may wait. `path` must not change while it is used.
 */
struct found site_find(struct site *site, struct mk_str path, const struct mk_accept *accept, bool cached);

/* One name, NUL-terminated: a file, the index of a directory, or a directory without its slash. */
struct found site_find_name(struct site *site, struct mk_str path, const struct mk_accept *accept, bool cached);

/* A descriptor of what is called `name` (below the root, without a slash before it), or -errno. */
int site_open(struct site *site, const char *name, bool cached);
/* What `fd` (or -errno) is; it is taken. */
struct found site_look_at(int fd, struct mk_str name);
/* Is this errno one of those that say that there is nothing for us? */
bool site_is_missing(int err);
/* Does a segment begin with a dot? What lies below /.well-known does not count (RFC 8615). */
bool site_is_hidden(const struct site *site, struct mk_str path);

/* openat2(2) with our flags. A descriptor or -errno. */
int site_open_beneath(int root_fd, const char *path, uint64_t resolve);

/*
 * The same as opening `path` below the root, for SymLink Inside: links are followed by hand where the kernel
 * refuses them, since an absolute link may well lead to a place inside. Waits for the disk. -errno.
 */
int site_open_inside(struct site *site, const char *path);

#endif
