// SPDX-License-Identifier: Apache-2.0
/*
 * Indexes of rules: of the sections of one kind in a set that have a key `Match`. A few are compared one by one, which
 * is faster; a site that was moved has thousands.
 */
#include "base/pattern_index.h"
#include "conf/internal.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

struct mk__rule_index {
    size_t pattern; /* offset of the struct mk_pattern */
    uint32_t n;
    struct mk__conf_values **items;
    const struct mk_pattern_index *patterns;
};

const struct mk_conf_key *mk__rule_index_match_key(const struct mk_conf_section *section)
{
    const struct mk_conf_key *key = section->keys;
    while (key && key->name && (strcmp(key->name, "Match") != 0 || key->size != sizeof(struct mk_pattern)))
        key++;
    return key && key->name ? key : NULL;
}

static uint32_t count_instances(const struct mk__conf_group *group)
{
    uint32_t n = 0;
    for (const struct mk__conf_section *sec = group->first; sec; sec = sec->next)
        n += sec->type == group->first->type;
    return n;
}

static const struct mk_pattern *get_pattern(const void *ctx, uint32_t number)
{
    const struct mk__rule_index *index = ctx;
    return mk__conf_pattern(index->items[number]->data, index->pattern);
}

/* Indexes the instances that begin with these values. */
static int index_values(struct mk__conf *conf, struct mk__conf_values *first, size_t pattern, uint32_t n)
{
    struct mk__rule_index *index = mk_arena_zalloc(&conf->arena, sizeof(*index));
    struct mk__conf_values **items = mk_arena_alloc(&conf->arena, n * sizeof(*items)), *values = first;
    if (!index || !items)
        return -ENOMEM;
    *index = (struct mk__rule_index){.pattern = pattern, .n = n, .items = items};
    for (uint32_t i = 0; i < n; i++, values = values->next_instance) {
        assert(values && values->registration == first->registration);
        items[i] = values;
        values->rules = index;
        values->nth = i;
    }
    index->patterns = mk_pattern_index_new(get_pattern, index, n, &conf->arena);
    return index->patterns ? 0 : -ENOMEM;
}

MK_COLD int mk__rule_index_make(struct mk__conf *conf, struct mk__conf_set *set)
{
    int err = 0;
    for (const struct mk__conf_group *group = set->groups; group && err == 0; group = group->next) {
        uint32_t n = group->first == group->last ? 1 : count_instances(group);
        for (struct mk__conf_values *values = group->first->values; n >= MK__PATTERN_INDEX_MIN && values && err == 0;
             values = values->next) {
            const struct mk_conf_key *key = mk__rule_index_match_key(values->registration->section);
            err = key ? index_values(conf, values, key->offset, n) : 0;
        }
    }
    return err;
}

const void *mk__rule_index_next_cover(const struct mk__conf_set *set, const struct mk_conf_section *section,
                                      size_t pattern, const struct mk_pattern *later, const void *data)
{
    return mk__rule_index_next(set, section, pattern, mk__pattern_index_cover_head(later), data);
}

const void *mk__rule_index_next(const struct mk__conf_set *set, const struct mk_conf_section *section, size_t pattern,
                                struct mk_str path, const void *data)
{
    data = mk__conf_next(set, section, data);
    while (data) {
        const struct mk__conf_values *values = mk__conf_values_of(data);
        const struct mk__rule_index *index = values->rules;
        if (!index || index->pattern != pattern)
            break;
        uint32_t next = mk_pattern_index_next(index->patterns, path, values->nth);
        if (next < index->n)
            return index->items[next]->data;
        data = mk__conf_next(set, section, index->items[index->n - 1]->data); /* of the other set */
    }
    return data;
}
