// SPDX-License-Identifier: Apache-2.0
/*
 * A listing of a folder: its entries, and how they are written as a page or as JSON.
 *
 * A disk thread reads and sorts the entries (folder.h). The worker drops those that the client may not have and sends
 * the rest (send.h) in a format: page.h or json.h. A folder that does not fit into MaxListing is sent in batches, in
 * the order of the file system.
 *
 * Each file of the plugin uses those to its left only:
 *
 *     listing ◄─ order ◄─ query, accept, rules ◄─ folder ◄─ page, json ◄─ send, tar ◄─ walk ◄─ archive ◄─ dirlisting
 *
 * Besides, send and walk use `turn`, send and archive `conditions`, and archive `archive_slots`, which uses rules.
 */
#ifndef DIRLISTING_LISTING_H
#define DIRLISTING_LISTING_H

#include <monkey/arena.h>
#include <monkey/buf.h>
#include <monkey/plugin.h>

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

struct listing_rule; /* rules.h */
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
    void *pages;        /* of page.h; of the generation */
};

#endif
