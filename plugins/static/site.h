// SPDX-License-Identifier: Apache-2.0
/*
 * A host's document root, and how a path below it becomes an open file. Pure file system: no requests here.
 */
#ifndef STATIC_SITE_H
#define STATIC_SITE_H

#include <monkey/conf.h>
#include <monkey/str.h>

#include <sys/stat.h>

enum symlinks { SYMLINKS_OFF, SYMLINKS_INSIDE, SYMLINKS_ON };

struct static_settings {
    struct mk_conf_list index;
    int symlinks; /* enum symlinks */
    bool ranges, dotfiles;
};

struct site {
    const struct static_settings *settings;
    bool in_memory;        /* no disk behind the root's file system */
    int root_fd;           /* O_PATH */
    struct mk_str path;    /* of the root, without links */
    struct mk_str written; /* the same as the configuration names it */
};

enum found_kind { FOUND_FILE, FOUND_DIRECTORY, FOUND_NOTHING };

struct found {
    enum found_kind kind;
    int err; /* of FOUND_NOTHING: the errno */
    int fd;  /* of FOUND_FILE: a regular file */
    bool in_memory;
    struct stat st;
    struct mk_str name; /* what its type is told by; lives as long as the path or the settings */
};

/*
 * Finds what `path` (decoded, normalized, NUL-terminated, with a leading slash) names: a file, the index of a
 * directory, or a directory that was asked for without its slash. With `cached` only what the kernel can say
 * without waiting for a disk; then the errno may be EAGAIN: call again without it, on a thread that may
 * wait. `path` must not change while it is used.
 */
struct found site_find(const struct site *site, struct mk_str path, bool cached);

/* Does the kernel (or what confines this process) know openat2(2), and what lies below? 0, or -1 with its errno. */
int site_probe(struct site *site);

/*
 * The same as opening `path` below the root, for SymLink Inside: links are followed by hand where the kernel
 * refuses them, since an absolute link may well lead to a place inside. Waits for the disk. -errno.
 */
int site_open_inside(const struct site *site, const char *path);

#endif
