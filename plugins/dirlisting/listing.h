// SPDX-License-Identifier: Apache-2.0
#ifndef DIRLISTING_LISTING_H
#define DIRLISTING_LISTING_H

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/base/pattern.h>
#include <monkey/conf.h>
#include <monkey/counters.h>
#include <monkey/loop.h>
#include <monkey/plugin.h>

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * A listing of a folder: its entries, and how they are written as a page or as JSON.
 *
 * A disk thread reads and sorts the entries. The worker drops those that the client may not have and sends
 * the rest in a format: page.c or json.c. A folder that does not fit into MaxListing is sent in batches, in
 * the order of the file system.
 *
 * Each file of the plugin uses those to its left only:
 *
 *     listing ◄─ order ◄─ query, accept, rules ◄─ folder ◄─ page, json ◄─ send, tar ◄─ walk ◄─ archive ◄─ dirlisting
 *
 * Besides, send and walk use `turn`, send and archive `conditions`, and archive `archive_slots`, which uses rules.
 */
enum listing_sort { LISTING_BY_NAME, LISTING_BY_SIZE, LISTING_BY_DATE };

struct listing_entry {
    uint64_t bytes; /* of a file; 0 for a folder */
    int64_t mtime_seconds;
    uint16_t name_len;
    bool is_dir, is_link; /* of a link: what it leads to */
    char name[];          /* any bytes but "/" and NUL, also invalid UTF-8; with a NUL after them */
};

/* The entries of a folder, or a batch of them; in one piece of memory. For one thread at a time. */
struct listing {
    struct mk_arena arena;
    struct listing_entry **entries;
    uint32_t n;
    bool more;       /* there are further entries, for the next batch */
    size_t reserved; /* of the memory of all listings */
};

struct listing_rule;
struct listing_host;

/* What a format writes about. Valid until the exchange ends. */
struct listing_view {
    struct mk_request *req; /* for mk_request_mime() */
    struct mk_str path;     /* of the folder: decoded, with a slash at both ends */
    enum listing_sort sort;
    bool descending;
    bool is_complete;          /* all entries are there, sorted; else they follow in the order of the file system */
    uint32_t files, folders;   /* if it is complete */
    uint64_t bytes;            /* likewise: of all files */
    struct mk_str readme_name; /* `.p` NULL: none */
    struct mk_str readme;      /* any bytes, at most LISTING_README_BYTES */
    const struct listing_rule *rule;
    const struct listing_host *host;
};

enum { LISTING_README_BYTES = 64 * 1024, LISTING_TEXT_BYTES = 1024 * 1024 };

/*
 * A format of listings. The functions append to a buffer of at most LISTING_TEXT_BYTES, whose sticky error aborts the
 * response. They run in the worker's thread, as the client takes the bytes: begin, entry for each entry (folders come
 * first in a complete listing), end.
 */
struct listing_format {
    struct mk_str type; /* Content-Type */
    /* Adds further response headers. May be NULL. Returns 0 or -errno. */
    int (*add_headers)(struct mk_request *req, const struct listing_view *view);
    void (*begin)(struct mk_buf *out, const struct listing_view *view);
    void (*entry)(struct mk_buf *out, const struct listing_view *view, const struct listing_entry *entry, uint32_t n);
    void (*end)(struct mk_buf *out, const struct listing_view *view);
};

/* The plugin's state of a host that has a section [DIRLISTING]. */
struct listing_host {
    const struct mk_host *host;
    uint64_t loaded_ns; /* when it was prepared; part of ETag, because themes may have changed */
    void *pages;        /* of page.c; of the generation */
};

/*
 * The directives of the sections [DIRLISTING].
 */
enum archive_kind { ARCHIVE_NONE, ARCHIVE_TAR, ARCHIVE_TAR_GZ, ARCHIVE_TAR_ZST, ARCHIVE_KINDS };

/* A section [DIRLISTING] of a host. */
struct listing_rule {
    struct mk_pattern match;
    bool enabled;
    int sort; /* enum listing_sort */
    int order;
    uint64_t bytes_max;
    struct mk_str theme; /* a name, or an absolute path */
    struct mk_str theme_url;
    struct mk_conf_list readme;
    struct mk_patterns hidden;
    struct mk_conf_list archive_names;
    uint64_t archive_bytes_max;
    int64_t archive_entries_max, archive_depth_max;
    bool archive_indexed;
    /* set by the section's check: */
    bool archives[ARCHIVE_KINDS];
};

/* The section [DIRLISTING_LIMITS] of the server, for all hosts together. */
struct listing_limits {
    uint64_t memory;
    int64_t archives, archives_per_client;
};

enum { RULES_LIMITS, RULES_RULE };
extern const struct mk_conf_section rules_sections[];

/* Returns the first section of the host that matches the path; NULL: none, or it is unknown whether it matches. */
const struct listing_rule *rules_find(const struct mk_host *host, struct mk_str path);
const struct listing_limits *rules_limits(const struct mk_host *host);

/* Returns true if Hidden hides this path (or if that cannot be told). */
bool rules_is_hidden(const struct listing_rule *rule, struct mk_str path);

/* Returns the kind of a name as Archives has it ("tar.gz"); ARCHIVE_NONE: there is none of that name. */
enum archive_kind rules_archive_kind(struct mk_str name);
/* Returns that name; a literal. */
struct mk_str rules_archive_name(enum archive_kind kind);

/*
 * The order of entries: folders first; then by name, size or date; equal ones by name. Names are compared as people
 * read them: without regard to the case of ASCII letters, and numbers by their values ("file2" before "file10").
 */
/* The words for an enum listing_sort, and for ascending (0) and descending (1). They end with NULL. */
extern const char *const order_sorts[];
extern const char *const order_directions[];

/* Compares two names. Returns a negative number, 0 (the same bytes) or a positive number. */
int order_compare_names(struct mk_str a, struct mk_str b);

/* Sorts the entries. Any thread; may allocate, and works in place without memory. */
void order_sort(struct listing *listing, enum listing_sort sort, bool descending);

/*
 * The query of a request for a listing: ?sort=name|size|date &order=asc|desc &archive=tar|tar.gz|tar.zst. Other names
 * and values are ignored; of several of one name the first counts.
 */
struct query {
    int sort, order;       /* -1: not given */
    struct mk_str archive; /* as it was sent; `.p` NULL: not given */
};

/* Reads a query (`.p` NULL: none). Any bytes. */
struct query query_parse(struct mk_str text);

/*
 * Reads the entries of a folder in batches: those that GET of their paths could send. Left out are special files, files
 * that cannot be read, names and links that the plugin that serves files hides, and those of Hidden. What other plugins
 * refuse to a client (mk_request_allows_path()) is the worker's business.
 *
 * For a disk thread, one at a time.
 */
enum { FOLDER_BATCH_BYTES = 64 * 1024, FOLDER_PATH_BYTES = 4096 };

struct folder_entry;

struct folder {
    DIR *dir;
    const struct mk_host *host;
    const struct listing_rule *rule;
    const _Atomic bool *cancelled;     /* ends folder_read() early */
    char unread[256];                  /* the name that did not fit into the last batch */
    bool reading;                      /* folder_read() has returned MK_AGAIN: */
    struct folder_entry *first, *last; /* what it has read so far */
    size_t path_len;
    char path[FOLDER_PATH_BYTES]; /* of the folder, decoded, with a slash at both ends; after it names of entries */
};

/*
 * Opens the folder of a path of the host. `host`, `rule` and `cancelled` must outlive it.
 * Returns 0, -ENOENT, -ENAMETOOLONG or another -errno of mk_host_open_path(); nothing is to be closed then.
 */
int folder_open(struct folder *f, const struct mk_host *host, const struct listing_rule *rule, struct mk_str path,
                const _Atomic bool *cancelled);
void folder_close(struct folder *f);

/*
 * Reads the next entries into `listing`, as many as `bytes_max` bytes hold; `listing->more` tells whether that was all.
 * Of the memory of all listings (`memory_max`) only what is left is used, but at least FOLDER_BATCH_BYTES. Begins with
 * folder_release() or zeroes. Reads at most `*names` names, also those that are left out, so that others get the disk
 * thread in between, and subtracts what it has read.
 * Returns 0, MK_AGAIN (call it again with the same limits to complete the batch), -ECANCELED or another -errno.
 */
int folder_read(struct folder *f, struct listing *listing, size_t bytes_max, uint64_t memory_max, unsigned *names);
/* Frees the entries. Any thread. */
void folder_release(struct listing *listing);

/*
 * Reads the file `name` of the folder, LISTING_README_BYTES of it at most, into `to`, which must have that room.
 * Returns the count or -errno.
 */
ssize_t folder_read_file(struct folder *f, struct mk_str name, char *to);

/* Returns true if GET of the folder's path sends an index. May block. */
bool folder_has_index(const struct mk_host *host, struct mk_str path);

/*
 * Puts the path of an entry, with a slash at the end for a folder and a NUL, after that of the folder. Returns it;
 * `.p` is NULL if it is too long. Valid until the next call.
 */
struct mk_str folder_entry_path(struct folder *f, struct mk_str name, bool is_dir);

/*
 * The listing as JSON (RFC 8259):
 *
 *     {"path":"/pub/","sort":"name","order":"asc","sorted":true,"entries":[
 *     {"name":"a b.txt","type":"file","bytes":12,"mtime":"2026-11-21T13:10:23Z","url":"/pub/a%20b.txt"},
 *     {"name":"c","type":"folder","bytes":null,"mtime":"2026-11-21T13:10:23Z","url":"/pub/c/"}]}
 *
 * `name` is text: bytes that are not UTF-8 are replaced by U+FFFD. `url` is exact. With "sorted":false the folder does
 * not fit into MaxListing, and the entries come in the order of the file system.
 */
extern const struct listing_format json_format;

/*
 * Counts listings and archives. The counters are those of the process.
 */
enum listing_count {
    LISTING_COUNT_PAGES,              /* listings, in all formats */
    LISTING_COUNT_ARCHIVES,           /* archives that were begun */
    LISTING_COUNT_ARCHIVES_BUSY,      /* 503, because all archives are in use */
    LISTING_COUNT_ARCHIVES_OWN,       /* 429, because the client has as many as it may */
    LISTING_COUNT_ARCHIVES_TRUNCATED, /* that ended before their end */
    LISTING_COUNT_ARCHIVE_BYTES,
    LISTING_COUNTS,
};

/* Adds to a counter. In the thread of the request's worker. */
void listing_counters_add(enum listing_count count, const struct mk_request *req, size_t n);

/*
 * Bounds the time that a worker checks entries without doing anything else.
 */
enum { TURN_ENTRIES_MAX = 128, TURN_US_MAX = 2000 };

/* What a turn of the worker may still check. */
struct turn {
    const struct mk_loop *loop;
    uint64_t end_us;
    unsigned entries; /* so far */
};

/* Begins the checks of a turn. */
struct turn turn_begin(const struct mk_loop *loop);

/*
 * Call it before each entry. Returns true for the first one; then until TURN_ENTRIES_MAX or TURN_US_MAX is reached.
 */
bool turn_allows_entry(struct turn *turn);

#endif
