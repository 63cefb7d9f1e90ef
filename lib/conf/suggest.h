// SPDX-License-Identifier: Apache-2.0
/*
 * "Did you mean": the nearest of the names that are offered, if any is near enough to be a slip.
 */
#ifndef MK_CONF_SUGGEST_H
#define MK_CONF_SUGGEST_H

#include <monkey/str.h>

/* How each message with a suggestion ends: the phrase, the name in quotes or brackets, a question mark. */
#define MK__SUGGEST_PHRASE "; did you mean "

struct mk__suggestion {
    struct mk_str word;
    const char *name; /* the best so far, NULL = none */
    unsigned distance;
};

static inline struct mk__suggestion mk__suggest_init(struct mk_str word)
{
    return (struct mk__suggestion){.word = word};
}

/* "warning" for "warn", and the other way round. */
static inline bool mk__suggest_is_prefix(struct mk_str word, struct mk_str name)
{
    size_t n = word.len < name.len ? word.len : name.len;
    return n >= 4 && mk_str_ieq(mk_str(word.p, n), mk_str(name.p, n));
}

/*
 * A third of the letters may be wrong, in a short word one. Else one may be the beginning of the other. The first of
 * equals wins.
 */
static inline void mk__suggest_add(struct mk__suggestion *n, const char *name)
{
    unsigned distance = mk_str_distance(n->word, mk_str_c(name));
    size_t limit = n->word.len < 6 ? 1 : n->word.len / 3;
    if (distance > limit || distance >= n->word.len) {
        if (!mk__suggest_is_prefix(n->word, mk_str_c(name)))
            return;
        distance = (unsigned)n->word.len + 1;
    }
    if (n->name && distance >= n->distance)
        return;
    n->name = name;
    n->distance = distance;
}

#endif
