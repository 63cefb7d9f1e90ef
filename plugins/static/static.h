// SPDX-License-Identifier: Apache-2.0
#ifndef STATIC_STATIC_H
#define STATIC_STATIC_H

#include <monkey/base/list.h>
#include <monkey/base/pattern.h>
#include <monkey/base/str.h>
#include <monkey/conf.h>
#include <monkey/counters.h>
#include <monkey/file_cache.h>
#include <monkey/inspect.h>
#include <monkey/plugin.h>
#include <monkey/request.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

extern const struct mk_plugin mk_plugin_static;

/*
 * A site is a folder that is served: the document root of a host, an alias, or the folder of a user. Workers and disk
 * threads search a site at the same time, and one of them may replace its root (root.c).
 *
 * The structs here are shared by the plugin's files. Each file uses those to its left only:
 *
 *     open ◄─ find ◄─ small_file_cache, userdir, alias ◄─ disk_lookup, errors, settings ◄─ host ◄─ static
 *     open ◄─ root ◄─ alias ◄─ other_programs ◄─ host
 */
enum symlink_mode { SYMLINKS_OFF, SYMLINKS_INSIDE, SYMLINKS_ON };

enum { STATIC_NAME_BYTES = 4096 };

/* How files that are programs are recognized. */
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
    struct static_site *of_host;         /* that of the host; NULL: this one is */
    const struct static_site *elsewhere; /* the sites of aliases that are folders; of one of these: the next */
    bool hints_at_listing;               /* in one-shot mode */
    _Atomic bool has_old_variants;       /* of a host: a precompressed variant was older than its file */
    bool has_files;                      /* a root, aliases or folders of users */
    bool decides_access;                 /* of a host: access also goes by the path of the file that is sent */
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
    bool is_index;         /* of a folder: `name` is the name in it */
    uint32_t tried;        /* the word of TryFiles that has led here, from 1; 0: the path itself */
    enum mk_coding coding; /* of the file's bytes */
    uint64_t bytes;
    struct timespec mtime;
    uint64_t version;   /* as in struct mk_file */
    struct mk_str name; /* for its media type; lives as long as the path or the settings */
};

/* ── files that are programs of other plugins, and copies of them: they are never sent (mk_host_is_source()) ── */

/* Sets how the sources of the site's host are recognized. In generation_check. */
void mk__static_sources_init(struct static_site *site);
/* Return whether the path of the host, or a name below the root, is that of a source; links are not followed. */
bool mk__static_sources_find_path(const struct static_site *site, struct mk_str path);
bool mk__static_sources_find_name(struct static_site *site, const char *name);
/* Returns whether a name below the root is that of a source whose path gets to the plugin that runs it. */
bool mk__static_sources_run_name(const struct static_site *site, const char *name);
/*
 * Returns `fd`, or closes it and returns -ENOENT if it is a source. For SOURCES_BY_FILE; `fd` may be -errno. A cache
 * of names cannot be used then, because what a link leads to is not known before it is opened.
 */
int mk__static_sources_check(const struct static_site *site, int fd);

/* The same for hosts that may have none. */
static inline bool sources_have_path(const struct static_site *at, struct mk_str path)
{
    return MK_UNLIKELY(at->sources != SOURCES_NONE) && mk__static_sources_find_path(at, path);
}

static inline bool sources_have_name(struct static_site *at, const char *name)
{
    return MK_UNLIKELY(at->sources != SOURCES_NONE) && mk__static_sources_find_name(at, name);
}

static inline bool sources_run_name(const struct static_site *at, const char *name)
{
    return MK_UNLIKELY(at->sources != SOURCES_NONE) && mk__static_sources_run_name(at, name);
}

static inline int sources_check(const struct static_site *at, int fd)
{
    return MK_UNLIKELY(at->sources == SOURCES_BY_FILE) ? mk__static_sources_check(at, fd) : fd;
}

/* ── single names below a root, and which are hidden ── */

/* Opens a file below a folder for reading, through links that stay there. Returns a descriptor or -errno. */
int mk__static_open_beneath(int root_fd, const char *path);
/*
 * Opens `name`, below the root and without a slash before it. With `cached` it does not wait for a disk, but may return
 * -EAGAIN.
 * Returns a descriptor or -errno.
 */
int mk__static_open_name(struct static_site *site, const char *name, bool cached);
/*
 * Looks a name up as mk__static_open_name() and mk__static_open_stat(), or in the cache. `shown` is the name for the
 * media type; `coding` is that of a variant.
 */
struct find_result mk__static_open_file(struct static_site *site, const struct find_mode *mode, const char *name,
                                        struct mk_str shown, enum mk_coding coding);
/* Returns the coding of a file's bytes, by the name for its media type; `variant`: unless that tells. */
enum mk_coding mk__static_open_coding(struct mk_str name, enum mk_coding variant);
/* Returns the root of a site as other plugins know it, with all of its names. */
struct mk_file_place mk__static_open_place(const struct static_site *site);
/* Sets what the cache needs to know of a root, in `site->root`. */
void mk__static_open_init_root(struct static_site *site);
/*
 * Opens a directory below `fd` that may be searched, with links as SymLink of the site says. May wait for a disk.
 * Returns a descriptor (O_PATH) or -errno.
 */
int mk__static_open_dir(const struct static_site *site, int fd, const char *name);
/* Makes a result of `fd` (or -errno): a regular file or a directory. Takes `fd` over. */
struct find_result mk__static_open_stat(int fd, struct mk_str name);
/* Closes the file of a result, if there is one to close; it must not be used then. */
void mk__static_open_release(struct find_result *f);
/* Returns true if this errno means that there is nothing to serve: 404. */
bool mk__static_open_is_missing(int err);
/* Returns true if DotFiles hides the path: a segment begins with a dot. /.well-known is not hidden (RFC 8615). */
bool mk__static_open_is_hidden(const struct static_site *site, struct mk_str path);

/*
 * Counts files by how they were sent, and lookups that had to wait for a disk. The counters are those of the process.
 */

/* Opens the counters. In the start of the plugin; opening them again changes nothing. */
void mk__static_file_counters_open(void);
/*
 * Counts a file whose response was begun, by its status; others than 200, 206 and 304 are not counted. `precompressed`:
 * it is a variant of the file that was asked for. In the thread of the request's worker.
 */
void mk__static_file_counters_add(const struct mk_request *req, bool precompressed);
/* Counts a lookup on a disk thread. In the thread of the request's worker. */
void mk__static_file_counters_add_disk_lookup(const struct mk_request *req);
/* Counts a variant that is older than its file. Any thread. */
void mk__static_file_counters_add_old_variant(void);

/* ── precompressed variants of a file: F.br, F.zst and F.gz next to F ── */

/* Parses the words of Precompressed into `codings`, and reports errors. */
void mk__static_precompressed_check(const struct mk_conf_check *check, struct static_host *host);

/*
 * Finds the file of a path in a site. Only the file system: no requests here.
 */

/*
 * Finds the file of `path` (decoded, normalized, NUL-terminated, with a leading slash): the file itself, the index of a
 * directory, or FOUND_DIRECTORY for a directory without its slash. With `accept`, finds the best precompressed variant.
 * With `cached`, `err` may be EAGAIN: then call it again without `cached` on a thread that may wait. All names that are
 * tried belong to one root, even if it is swapped meanwhile. `path` must not change during the call, and the result may
 * point into it.
 */
struct find_result mk__static_find_path_with(struct static_site *site, struct mk_str path,
                                             const struct find_mode *mode);
/* The same without a cache. */
static inline struct find_result find_path(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                                           bool cached)
{
    return mk__static_find_path_with(site, path, &(struct find_mode){.accept = accept, .cached = cached});
}

/* Returns the last name of TryFiles if it is one for all paths, else MK_STR_NONE. */
struct mk_str mk__static_find_get_last_name(const struct static_host *host);

/*
 * Writes the path of the host whose file was found for `path`, a path of the host in the site: another one if it is the
 * index of a folder, or a name of TryFiles. Returns its length; 0: it is too long.
 */
size_t mk__static_find_write_path(const struct static_site *site, const struct find_result *found, struct mk_str path,
                                  char ret[STATIC_NAME_BYTES]);

/*
 * Opens a directory, whose path ends with a slash, for reading; without its index and TryFiles. May wait for a disk.
 * Returns FOUND_DIRECTORY with a descriptor, or FOUND_NOTHING.
 */
struct find_result mk__static_find_folder(struct static_site *site, struct mk_str path);

/* Checks the words of TryFiles, parses a last "=CODE", and reports errors. */
void mk__static_find_check_tryfiles(const struct mk_conf_check *check, struct static_host *host);
/* As tries() of struct mk_file_server. */
enum mk_tries mk__static_find_get_tries(const struct static_host *host);

/*
 * Requests for the same small file in one turn of the loop share one read of it, unless the file cache keeps it: the
 * second one reads the file and formats the lines of its head, those after it get the same bytes and lines. The cache
 * is valid for that turn only, so that no request gets a file that was replaced before the turn began. A request that
 * may have changed files empties it. Responses that take longer hold the file.
 */
enum { SMALL_FILE_BYTES_MAX = 4096, SMALL_FILE_PATH_BYTES_MAX = 256 };

struct small_file;

/* The last path of a worker; its state under one generation. */
struct small_file_cache {
    struct mk_account *account;
    uint64_t turn; /* of the loop; 0: empty */
    const struct static_site *site;
    size_t path_len;
    bool is_read; /* `found` is in `file`; its name is NULL if it is the path */
    struct find_result found;
    struct small_file *file; /* its memory is used again unless a response holds it; NULL: there is none */
    char path[SMALL_FILE_PATH_BYTES_MAX];
};

void mk__static_small_file_cache_init(struct small_file_cache *cache, struct mk_account *account);
void mk__static_small_file_cache_clear(struct small_file_cache *cache);
void mk__static_small_file_cache_release(struct small_file_cache *cache);

/* As mk__static_find_path_with(). A file from this cache has an owner, `content`, and a block once it got its lines. */
struct find_result mk__static_small_file_cache_find(struct small_file_cache *cache, uint64_t turn,
                                                    const struct static_location *at, const struct find_mode *mode);
/* Formats the lines of a file's head for later requests, if it is from the cache and has none. */
void mk__static_small_file_cache_add_lines(const struct mk_file *file);

/*
 * The root of a site, which may be replaced while the server runs: the link `current -> releases/42` is renamed, or the
 * folder is moved and another one takes its place. A request checks that, once a second at most.
 */
enum { ROOT_CHECK_MS = 1000 };
#define ROOT_CHECKING UINT64_MAX

/* Opens `configured_path`. Returns 0 or -errno. */
int mk__static_root_open(struct static_site *site, struct mk_str configured_path);
void mk__static_root_close(struct static_site *site);

/*
 * Returns whether the path leads to another folder; true, too, if the kernel cannot tell without waiting. While the
 * path does not exist, the root stays.
 */
bool mk__static_root_has_changed(const struct static_site *site);
/*
 * Checks the root, if a second has passed since the last time (three system calls). Returns true if the root was
 * replaced, or if that cannot be told without waiting for a disk: then the caller calls mk__static_root_check() on a
 * thread that may wait, or mk__static_root_end_check() if that cannot be done. Until then no other thread checks the
 * root, and `may_be_replaced` is set: requests leave their lookups to such threads, too.
 */
bool mk__static_root_begin_check(struct static_site *site, uint64_t now_ms);
/* Opens the new root and swaps it in, if it was replaced. May wait for a disk. */
void mk__static_root_update(struct static_site *site);
/* Does so and ends the check. */
void mk__static_root_check(struct static_site *site, uint64_t now_ms);
void mk__static_root_end_check(struct static_site *site, uint64_t now_ms);
/* Checks the root likewise, on a thread that may wait for a disk. */
void mk__static_root_refresh(struct static_site *site);

/*
 * [ALIAS]: paths that are served from a folder next to the document root, or from one file. Each is a separate site
 * with the settings of its host, but without TryFiles. Folders that other plugins add are aliases too, with TryFiles.
 */

/* A section [ALIAS]. */
struct alias_rule {
    struct mk_pattern match; /* a prefix or an exact path */
    struct mk_str to;
};

extern const struct mk_conf_key mk__static_alias_keys[]; /* of struct alias_rule */

/*
 * Opens the aliases of the host, in the order of their sections. Call mk__static_alias_free() in any case.
 * Returns 0, -EINVAL (errors were reported) or -ENOMEM.
 */
int mk__static_alias_load(struct mk_host *host, struct static_site *site, const struct mk_conf_section *section);
void mk__static_alias_free(struct static_site *site);
/* Sets how sources are recognized below each alias. In generation_check. */
void mk__static_alias_init_sources(struct static_site *site);

/* Opens a folder of mk_host_folders() as an alias after the others. Returns 0, -EINVAL (reported) or -ENOMEM. */
int mk__static_alias_add_folder(struct mk_host *host, struct static_site *site, const struct mk_host_folder *folder);

/* Passes the folder of each alias to `fn`. */
void mk__static_alias_each_place(const struct static_site *site, mk_file_place_fn fn, void *ctx);

/*
 * Calls `fn` for each [ALIAS] that could be opened. `name`: of an exact one the file in the folder, as "/a"; else
 * empty.
 */
typedef void (*alias_section_fn)(struct static_site *alias, const struct alias_rule *section, struct mk_str name,
                                 void *ctx);
void mk__static_alias_each_section(struct static_site *site, alias_section_fn fn, void *ctx);

/* Returns the pattern of the first [ALIAS] that has the path; NULL: none has it. */
const struct mk_pattern *mk__static_alias_find_pattern(const struct mk_host *host, struct mk_str path);
/* Finds the first alias of `at->site` that matches `at->path`; sets `at` to its site. Returns false if none does. */
bool mk__static_alias_find(struct static_location *at);

/* Returns true if the path is the root of an alias or user without its slash. */
static inline bool alias_needs_slash(const struct static_location *at)
{
    return at->path.len == 0;
}

/*
 * UserDir: /~name/ is a folder in the home of that user. Each request looks the user up in the system, on a disk thread
 * because it may take long; nothing is cached.
 */
enum { USERDIR_NAME_BYTES = 32 }; /* as useradd(8) */

/* Parses UserDir, a folder of the home; an mk_conf_parse_fn. */
int mk__static_userdir_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                             struct mk_buf *error);

/*
 * If the host has UserDir and the path begins with "/~", sets `at` to the user and the path below, and returns true.
 * The user is empty if the name is not a valid one.
 */
bool mk__static_userdir_match(struct static_location *at);

static inline bool userdir_is_matched(const struct static_location *at)
{
    return at->user.p != NULL;
}

/*
 * Finds a file of the user, as mk__static_find_path_with(), on a thread that may wait. `at->user` ends with a NUL. A
 * user that does not exist, may not have a folder here, or has none that can be read gets ENOENT, so that clients
 * cannot tell which.
 */
struct find_result mk__static_userdir_find(const struct static_location *at, const struct find_mode *mode);
/* Opens a directory of the user, as mk__static_find_folder(). */
struct find_result mk__static_userdir_find_folder(const struct static_location *at);

/*
 * A host's own error pages. They are read when the host starts, so that an error never waits for a disk.
 */

struct error_page {
    struct error_page *next;
    int status;
    struct mk_str name; /* of the file, for its media type; `.p` NULL: a text of the configuration */
    struct mk_str body;
    size_t bytes; /* of this struct and `file` */
    char file[];
};

/* A section [ERROR_PAGES]. */
struct error_pages_conf {
    struct mk_conf_pairs pairs; /* status and page */
    struct mk_pattern match;
};

extern const struct mk_conf_key mk__static_error_pages_keys[]; /* of struct error_pages_conf */

/* The pages of a section. */
struct error_pages {
    struct error_pages *next;
    const struct error_pages_conf *conf;
    struct error_page *pages;
};

/*
 * Reads the pages of the host's sections; files are below the site's root. Call mk__static_errors_free() in any case.
 * Returns 0, -EINVAL (errors were reported) or -ENOMEM.
 */
int mk__static_errors_load(struct mk_host *host, struct static_site *site, const struct mk_conf_section *section);
void mk__static_errors_free(struct static_site *site);
/* Reports pages that are programs of another plugin, in generation_check. Returns 0 or -EINVAL. */
int mk__static_errors_check(struct mk_host *host, struct static_site *site);

/* Replaces the server's error page by that of the first section that matches the path, if it has one for the status. */
void mk__static_errors_apply(struct mk_request *req, const struct static_site *site,
                             const struct mk_conf_section *section);

/* ── why no file is sent: for the log, which says what to write, and for `$reason` ── */

/* Notes why a lookup has found nothing; another plugin may respond yet. */
void mk__static_reasons_note(struct mk_request *req, const struct static_site *site, int err);
/*
 * Writes a line to the error log about a refused request, of each reason one in ten seconds, in on_response. `site` is
 * that of the host, or NULL.
 */
void mk__static_reasons_log(struct mk_request *req, struct static_site *site);

/*
 * In one-shot mode: a log line, once, that says how folders without an index are listed. The client gets the 404 alone.
 */

/* Logs the line if the request was answered with 404 for a folder. Does not wait for a disk. */
void mk__static_listing_hint_give(struct mk_request *req, struct static_site *site);

/*
 * Lookups that may wait for a disk, on a disk thread. However many requests of a worker wait for one path, one lookup
 * runs for them.
 */

/* The lookups of a worker under one generation. */
struct disk_lookups {
    struct mk_list running;
};

static inline void disk_lookups_init(struct disk_lookups *all)
{
    mk_list_init(&all->running);
}

/* What follows a lookup, in the worker's thread. */
struct disk_lookup_functions {
    /* Responds with the result, or lets another plugin do it. */
    void (*respond)(struct mk_request *req, const struct static_site *site, const struct find_result *found);
    /*
     * Serves a request again that has waited for another one's lookup; if it needs a disk thread still, it has a lookup
     * of its own. Returns 0 or MK_DECLINED.
     */
    int (*serve_again)(struct mk_request *req, const struct static_location *at);
};

/*
 * Looks a path up on a disk thread, or waits for a lookup of it that runs. `root_check_ms`: when
 * mk__static_root_begin_check() returned true, else 0. `all`: NULL for a separate lookup.
 * Returns 0 or -errno.
 */
int mk__static_disk_lookup_start(struct disk_lookups *all, struct mk_request *req, const struct static_location *at,
                                 const struct mk_accept *accept, uint64_t root_check_ms,
                                 const struct disk_lookup_functions *functions);

/* ── requests that are served once more, a moment later ── */

/*
 * Has `serve` called for the request in a later turn of the loop, unless it ends before. It returns 0, or MK_DECLINED,
 * which is done for it. Returns 0 or -ENOMEM.
 */
int mk__static_retry_arm(struct mk_request *req, const struct static_location *at,
                         int (*serve)(struct mk_request *req, const struct static_location *at));

/* ── the directives of [SERVER], [HOST], [ERROR_PAGES] and [ALIAS] ── */

/* The sections for struct mk_plugin. */
enum { SETTINGS_SERVER, SETTINGS_HOST, SETTINGS_ERROR_PAGES, SETTINGS_ALIAS };
extern const struct mk_conf_section mk__static_settings_sections[];

/* Returns the settings of a site whose `host` is set: the host's, else the server's. They live as long as the site. */
const struct static_settings *mk__static_settings_merge(struct static_site *site, const struct static_settings *server);

/* ── what a path of a host names, for other plugins: the hook open_path ── */

/*
 * As mk_host_open_path(), for a path of the host whose site is `site`. A file that TryFiles would send in place of the
 * path does not count: -ENOENT.
 */
int mk__static_host_path_open(struct static_site *site, struct mk_str path, uint32_t flags);

/* ── programs whose source a host sends, because only another host runs them, or none does ── */

/* Warns for all hosts of the generation, whose sites are open. In generation_check. */
void mk__static_other_programs_check(struct mk_generation *g);

/*
 * The hooks of the plugin that concern hosts, each with the contract of its member of struct mk_plugin. A host's state
 * is its struct static_site.
 */

/* host_start and host_stop. */
int mk__static_host_start(struct mk_host *host, void **ret_state);
void mk__static_host_stop(struct mk_host *host, void *state);
/* generation_check: opens what plugins before this one have added, and learns which files are programs of others. */
int mk__static_host_check_all(struct mk_generation *g, void *state);

/* open_path, file_server and explain */
int mk__static_host_open_path(const struct mk_host *host, struct mk_str path, uint32_t flags);
extern const struct mk_file_server mk__static_host_file_server;
bool mk__static_host_explain_path(const struct mk_host *host, struct mk_str path, struct mk_buf *out,
                                  struct mk_buf *decided);
void mk__static_host_explain(const struct mk_host *host, struct mk_explain *e);

#endif
