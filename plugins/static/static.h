// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin knows of a host, and what it finds there. The files that look for something stand on each other:
 *
 *     beneath ◄─ links ◄─ names ◄─ variants ◄─ lookup ◄─ tryfiles ◄─ site ◄─ alias, userdir, recent
 *     openat2    Inside   a name    F.br ...    a path     $path ...    a path, at one moment
 *
 * An alias and a user's directory are sites of their own; a request's place tells which one it is about.
 * Workers and disk threads look into one site at the same time, and one of them may swap its root (root.c).
 */
#ifndef STATIC_STATIC_H
#define STATIC_STATIC_H

#include <monkey/conf.h>
#include <monkey/pattern.h>
#include <monkey/request.h>
#include <monkey/str.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

enum symlink_mode { SYMLINKS_OFF, SYMLINKS_INSIDE, SYMLINKS_ON };

enum { STATIC_NAME_BYTES = 4096 };

struct static_settings {
    struct mk_conf_list index;
    int symlinks; /* enum symlink_mode */
    bool ranges, dotfiles;
};

struct static_patterns {
    struct mk_pattern *items;
    uint32_t n;
};

struct static_host {
    struct mk_str root, user_dir;
    struct mk_conf_list precompressed, try_files;
    struct static_patterns precompressed_match;
    struct mk_conf_list index;        /* this and the next three as in static_settings, */
    int symlinks, ranges, dotfiles;   /* but 0: as the server, otherwise the value plus one */
    uint8_t codings[MK_CODING_COUNT]; /* what `precompressed` names */
    unsigned n_codings;
    unsigned n_tries; /* the names of `try_files` */
    int last_status;  /* what it ends with; 0 when it ends with a name */
};

struct error_page;
struct alias;

struct static_site {
    struct error_page *errors;
    struct alias *aliases;
    struct mk_str prefix; /* of the paths that lead here, without a last slash; empty for a document root */
    struct static_settings own_settings; /* where the host does not do as the server says */
    const struct static_settings *settings;
    const struct static_host *host;
    _Atomic bool in_memory;    /* no disk behind the root's file system */
    int root_fd;               /* O_PATH; the number stays, what it means may be swapped */
    _Atomic unsigned swap_seq; /* odd while the root is being swapped */

    _Atomic uint64_t next_check_ms; /* when the root is looked at again; ROOT_CHECKING while somebody does */
    dev_t device;                   /* of the root, for who has taken it */
    ino_t inode;

    pthread_mutex_t lock;          /* of the path, and of a swap */
    struct mk_str path;            /* of the root, without links and without a last slash; ends with a NUL */
    struct mk_str configured_path; /* the same as the configuration names it */
};

/* Where a request leads. */
struct static_location {
    struct static_site *site;
    struct mk_str path; /* below its root, as find_path wants it; empty: the root without its slash */
    struct mk_str user; /* `.p` NULL unless it is a user's directory: `site` is the host's then */
};

enum find_kind { FOUND_FILE, FOUND_DIRECTORY, FOUND_NOTHING };

struct find_result {
    enum find_kind kind;
    int err;               /* of FOUND_NOTHING: the errno */
    int status;            /* of FOUND_NOTHING: what TryFiles wants to be answered, or 0 */
    int fd;                /* of FOUND_FILE: a regular file */
    struct mk_str content; /* its bytes instead, where they are known already */
    bool in_memory;
    bool varies;           /* other requests may get another variant of it */
    enum mk_coding coding; /* of the file's bytes */
    uint64_t bytes;
    struct timespec mtime;
    struct mk_str name; /* what its type is told by; lives as long as the path or the settings */
};

#endif
