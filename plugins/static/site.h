// SPDX-License-Identifier: Apache-2.0
/*
 * A site is a folder that is served: the document root of a host, an alias, or the folder of a user. Workers and disk
 * threads search a site at the same time, and one of them may replace its root (root.c).
 *
 * The structs here are shared by the plugin's files. Each file uses those to its left only:
 *
 *     sources ◄─ open ◄─ precompressed ◄─ find ◄─ small_file_cache, userdir, alias ◄─ disk_lookup, host_path, settings
 *     open ◄─ errors, listing_hint, root ◄─ alias ◄─ reasons                                   ◄─ host ◄─ static
 */
#ifndef STATIC_SITE_H
#define STATIC_SITE_H

#include <monkey/base/pattern.h>
#include <monkey/base/str.h>
#include <monkey/conf.h>
#include <monkey/file_cache.h>
#include <monkey/request.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

enum symlink_mode { SYMLINKS_OFF, SYMLINKS_INSIDE, SYMLINKS_ON };

enum { STATIC_NAME_BYTES = 4096 };

/* How files that are programs are recognized (sources.h). */
enum static_sources {
    SOURCES_NONE,    /* the host has none */
    SOURCES_BY_NAME, /* no links are followed: before a file is opened */
    SOURCES_BY_FILE, /* by the name, and again once a file is open */
};

/* What entity tags of files are made of: ETag. */
enum static_tags { STATIC_TAGS_EXACT, STATIC_TAGS_PORTABLE };

struct static_settings {
    struct mk_conf_list index;
    int symlinks; /* enum symlink_mode */
    bool ranges, dotfiles;
    int tags; /* enum static_tags */
};

struct static_host {
    struct mk_str root, user_dir;
    struct mk_conf_list precompressed, try_files;
    struct mk_patterns precompressed_match;
    struct mk_conf_list index;            /* this and the next three override static_settings: */
    int symlinks, ranges, tags, dotfiles; /* 0: as the server, otherwise the value plus one */
    uint8_t codings[MK_CODING_COUNT];     /* those that `precompressed` names */
    unsigned n_codings;
    unsigned n_tries; /* the names in `try_files` */
    int last_status;  /* the status at its end; 0: it ends with a name */
};

struct error_pages;
struct alias;

struct static_site {
    struct error_pages *errors; /* a list */
    struct alias *aliases;
    const struct static_site *of_host;   /* that of the host; NULL: this one is */
    const struct static_site *elsewhere; /* the sites of aliases that are folders; of one of these: the next */
    bool hints_at_listing;               /* in one-shot mode */
    _Atomic bool has_old_variants;       /* of a host: a precompressed variant was older than its file */
    bool has_files;                      /* a root, aliases or folders of users */
    uint8_t sources;                     /* enum static_sources */
    struct mk_str prefix; /* of the paths of an alias or user, without a last slash; empty for a document root */
    struct static_settings own_settings; /* those of the server with what the host overrides */
    const struct static_settings *settings;
    const struct static_host *host;
    const struct mk_host *owner; /* for the log; NULL: not known */
    _Atomic bool in_memory;      /* the root's file system has no disk */
    _Atomic bool is_local;       /* as in struct mk_file_name */
    int root_fd;                 /* O_PATH; a swap keeps the number and changes the folder; -1: there is none */
    _Atomic unsigned swap_seq;   /* odd during a swap */

    _Atomic uint64_t next_check_ms; /* when the root is checked again; ROOT_CHECKING: a thread checks it */
    _Atomic bool may_be_replaced;   /* that check is left to a disk thread: no request uses the root meanwhile */
    _Atomic uint64_t device, inode; /* of the root's folder; consistent if `swap_seq` has not changed meanwhile */
    _Atomic uint64_t mount;         /* through which it was opened, likewise */
    _Atomic uint64_t opened_ms;     /* when this folder became the root */
    struct mk_file_root root;       /* the root as the cache sees it, and what the cache notes about it */
    uint64_t root_notes[MK_FILE_ROOT_NOTES];

    pthread_mutex_t lock;          /* guards `path`, and is held during a swap */
    struct mk_str path;            /* of the root, without links and without a last slash; ends with a NUL */
    struct mk_str configured_path; /* as the configuration has it */
};

/* The site of a request, and its path there. */
struct static_location {
    struct static_site *site;
    struct mk_str path; /* below the site's root, for find_path(); empty: the root without its slash */
    struct mk_str user; /* `.p` NULL: not the folder of a user, else `site` is the host's */
};

/* How a path is looked up. */
struct find_mode {
    const struct mk_accept *accept;    /* NULL: no variants */
    bool cached;                       /* only what the kernel has in memory, else EAGAIN */
    bool sources;                      /* sources as well */
    const struct mk_file_cache *cache; /* NULL: without one */
    struct mk_request *req;            /* for the cache */
    struct mk_file_loader *loader;     /* keeps the names in a cache without a request; NULL: they are opened */
};

enum find_kind {
    FOUND_FILE,
    FOUND_DIRECTORY,
    FOUND_PROGRAM, /* the index of a folder, which another plugin runs; `name` is that in the folder */
    FOUND_NOTHING
};

struct find_result {
    enum find_kind kind;
    int err;                               /* FOUND_NOTHING: the errno */
    int status;                            /* FOUND_NOTHING: the status at the end of TryFiles, or 0 */
    int fd;                                /* FOUND_FILE: a regular file; mk__static_open_release() closes it */
    struct mk_str content;                 /* FOUND_FILE: its bytes instead of `fd`, if they were read already */
    const struct mk_response_block *block; /* this and the next two as in struct mk_file */
    const struct mk_owner *owner;
    void *owned;
    bool in_memory;
    bool varies;           /* other requests may get another variant */
    enum mk_coding coding; /* of the file's bytes */
    uint64_t bytes;
    struct timespec mtime;
    uint64_t version;   /* as in struct mk_file */
    struct mk_str name; /* for its media type; lives as long as the path or the settings */
};

#endif
