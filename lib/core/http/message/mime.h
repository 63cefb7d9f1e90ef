// SPDX-License-Identifier: Apache-2.0
/*
 * Media types by file name extension: a built-in table, and an overlay from the configuration. The types are complete
 * values of Content-Type.
 */
#ifndef MK_HTTP_MESSAGE_MIME_H
#define MK_HTTP_MESSAGE_MIME_H

#include <monkey/base/arena.h>
#include <monkey/base/str.h>

/*
 * Returns the built-in type of the extension after the last dot of the last segment of the path, in any case; empty
 * (`p` NULL) if there is none. A constant, followed by a NUL.
 */
struct mk_str mk__mime_find_builtin(struct mk_str path);

struct mk__mime_pair {
    struct mk_str extension, type; /* the extension without its dot */
};

/* Lives as long as its arena. */
struct mk__mime {
    const struct mk__mime_pair *pairs; /* sorted, in lower case */
    unsigned n;
    struct mk_str fallback;
    uint64_t id; /* of pairs and fallback: tables with the same id are taken for the same */
};

/*
 * Initializes an overlay with copies of `n` pairs and of the type of unknown extensions, which may be empty. Of two
 * pairs with the same extension the later one counts. Returns 0 or -ENOMEM; the overlay has no pairs then.
 */
int mk__mime_overlay_init(struct mk__mime *m, struct mk_arena *arena, const struct mk__mime_pair *pairs, unsigned n,
                          struct mk_str fallback);

/* Returns the type for a path: from the overlay, else the built-in one, else the fallback. Any thread. */
struct mk_str mk__mime_find(const struct mk__mime *m, struct mk_str path);

#endif
