// SPDX-License-Identifier: Apache-2.0
/*
 * Finds suggestions for "did you mean": the most similar of the given names, if it is similar enough.
 */
#ifndef MK_CONF_SUGGEST_H
#define MK_CONF_SUGGEST_H

#include <monkey/base/str.h>

/* Introduces the suggestion at the end of a message; the name, in quotes or brackets, and a question mark follow. */
#define MK__SUGGEST_PHRASE "; did you mean "

struct mk__suggestion {
    struct mk_str word;
    const char *name; /* the best one so far; NULL: none */
    unsigned distance;
};

static inline struct mk__suggestion mk__suggest_init(struct mk_str word)
{
    return (struct mk__suggestion){.word = word};
}

/* Returns whether one is the beginning of the other, as with "warning" and "warn". */
static inline bool mk__suggest_is_prefix(struct mk_str word, struct mk_str name)
{
    size_t n = word.len < name.len ? word.len : name.len;
    return n >= 4 && mk_str_ieq(mk_str(word.p, n), mk_str(name.p, n));
}

/*
 * Considers a name: a third of the letters may differ, one in a short word, or one name may begin with the other. The
 * first of equal candidates wins.
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
