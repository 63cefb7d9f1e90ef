// SPDX-License-Identifier: Apache-2.0
/*
 * Media types by file name extension: a built-in table, and what a configuration lays over it. The types
 * are complete values of Content-Type.
 */
#ifndef MK_HTTP_MESSAGE_MIME_H
#define MK_HTTP_MESSAGE_MIME_H

#include <monkey/arena.h>
#include <monkey/str.h>

/*
 * The built-in type of the extension behind the last dot of the path's last segment, whatever its case;
 * empty (`p` NULL) without one. A constant with a NUL behind it.
 */
struct mk_str mk__mime_find_builtin(struct mk_str path);

struct mk__mime_pair {
    struct mk_str extension, type; /* the extension without its dot */
};

/* Lives as long as the arena that it was made in. */
struct mk__mime {
    const struct mk__mime_pair *pairs; /* sorted, in lower case */
    unsigned n;
    struct mk_str fallback;
};

/*
 * Makes an overlay from `n` pairs (copied; of two with the same extension the later one counts) and the
 * type of everything unknown (copied; may be empty). -ENOMEM leaves an overlay without pairs.
 */
int mk__mime_overlay_init(struct mk__mime *m, struct mk_arena *arena, const struct mk__mime_pair *pairs, unsigned n,
                          struct mk_str fallback);

/* The type for a path: of the overlay, else the built-in one, else the fallback. Any thread. */
struct mk_str mk__mime_find(const struct mk__mime *m, struct mk_str path);

#endif
