// SPDX-License-Identifier: Apache-2.0
/*
 * Reads what clients and files say about paths: pairs of a query or form, lists of paths, and sitemaps. Pure.
 */
#ifndef CACHE_PATH_LIST_H
#define CACHE_PATH_LIST_H

#include <monkey/buf.h>

#include <stdbool.h>
#include <sys/types.h>

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

#endif
