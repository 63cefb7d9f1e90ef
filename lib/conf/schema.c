// SPDX-License-Identifier: Apache-2.0
/*
 * Registers the declared sections, and finds sections and keys in them.
 */
#include "conf/internal.h"

#include <errno.h>

static bool is_key(const struct mk_conf_key *key, struct mk_str name)
{
    return mk_str_ieq(mk_str_c(key->name), name);
}

static const struct mk_conf_key *find_key(const struct mk_conf_section *section, struct mk_str name)
{
    for (const struct mk_conf_key *key = section->keys; key && key->name; key++)
        if (is_key(key, name))
            return key;
    return NULL;
}

struct mk__conf_section_set *mk__schema_find_section(const struct mk__conf *conf, struct mk_str name,
                                                     enum mk_conf_scope scope)
{
    for (struct mk__conf_section_set *f = conf->section_sets; f; f = f->next)
        if (f->scope == scope && mk_str_ieq(f->name, name))
            return f;
    return NULL;
}

struct mk__conf_key_ref mk__schema_find_key(const struct mk__conf_section_set *section_set, struct mk_str name)
{
    struct mk__conf_key_ref ref = {NULL, NULL};
    for (const struct mk__conf_registration *d = section_set->registrations; d; d = d->next) {
        const struct mk_conf_key *key = find_key(d->section, name);
        if (key && (!ref.key || ref.registration->absent))
            ref = (struct mk__conf_key_ref){d, key};
    }
    return ref;
}

bool mk__schema_is_absent(const struct mk__conf_section_set *section_set)
{
    for (const struct mk__conf_registration *d = section_set->registrations; d; d = d->next)
        if (!d->absent)
            return false;
    return true;
}

/* Returns whether a row is consistent with its type; if not, the table is wrong. */
static bool is_valid_key(const struct mk_conf_section *section, const struct mk_conf_key *key)
{
    bool many = key->type == MK_CONF_LIST || key->type == MK_CONF_CUSTOM;
    return key->type <= MK_CONF_CUSTOM && key->offset + key->size <= section->size &&
           (many || !(key->flags & MK_CONF_REPEAT)) && (key->type != MK_CONF_ENUM || key->names) &&
           (key->type != MK_CONF_CUSTOM || key->parse) && find_key(section, mk_str_c(key->name)) == key;
}

static int check_section(const struct mk_conf_section *section)
{
    bool pairs = section->flags & MK_CONF_PAIRS;

    if (!section->name || !*section->name || pairs == (section->keys != NULL))
        return -EINVAL;
    for (const struct mk_conf_key *key = section->keys; key && key->name; key++)
        if (!is_valid_key(section, key))
            return -EINVAL;
    return 0;
}

/*
 * Checks that a section does not conflict with those of loaded plugins; absent ones do not count.
 * Returns 0, -EINVAL or -EEXIST.
 */
static int check_conflict(const struct mk__conf_section_set *section_set, const struct mk_conf_section *section)
{
    if (mk__schema_is_absent(section_set))
        return 0;
    if ((section_set->flags ^ section->flags) & (MK_CONF_REPEAT | MK_CONF_PAIRS))
        return -EINVAL;
    if (section->flags & MK_CONF_PAIRS)
        return -EEXIST;
    for (const struct mk_conf_key *key = section->keys; key->name; key++) {
        struct mk__conf_key_ref ref = mk__schema_find_key(section_set, mk_str_c(key->name));
        if (ref.key && !ref.registration->absent)
            return -EEXIST;
    }
    return 0;
}

static struct mk__conf_section_set *add_section_set(struct mk__conf *conf, const struct mk_conf_section *section)
{
    struct mk__conf_section_set **last = &conf->section_sets, *f = mk_arena_zalloc(&conf->arena, sizeof(*f));
    if (!f)
        return NULL;
    while (*last)
        last = &(*last)->next;
    f->name = mk_str_c(section->name);
    f->scope = section->scope;
    return *last = f;
}

static int register_section(struct mk__conf *conf, const struct mk_conf_section *section, const char *owner,
                            bool absent)
{
    int r = check_section(section);
    if (r < 0)
        return r;
    struct mk__conf_section_set *f = mk__schema_find_section(conf, mk_str_c(section->name), section->scope);
    if (f && !absent && (r = check_conflict(f, section)) < 0)
        return r;
    /* allocated before the section set, which must not be without a registration */
    struct mk__conf_registration *d = mk_arena_alloc(&conf->arena, sizeof(*d));
    if (!d || (!f && !(f = add_section_set(conf, section))))
        return mk__conf_out_of_memory(conf);
    struct mk__conf_registration **last = &f->registrations;
    while (*last)
        last = &(*last)->next;
    if (!absent)
        f->flags |= section->flags;
    *last = d;
    *d = (struct mk__conf_registration){.section = section, .owner = owner, .absent = absent};
    return 0;
}

int mk__conf_declare(struct mk__conf *conf, const struct mk_conf_section *section, const char *owner)
{
    return register_section(conf, section, owner, false);
}

int mk__conf_declare_absent(struct mk__conf *conf, const struct mk_conf_section *section, const char *owner)
{
    return register_section(conf, section, owner, true);
}
