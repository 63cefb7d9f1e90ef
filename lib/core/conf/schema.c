// SPDX-License-Identifier: Apache-2.0
/*
 * Registers the declared sections, and finds sections and keys in them.
 */
#include "conf/internal.h"

#include <assert.h>
#include <errno.h>

static const struct mk_conf_key *find_key(const struct mk_conf_section *section, struct mk_str name)
{
    for (const struct mk_conf_key *key = section->keys; key && key->name; key++)
        if (mk_str_ieq(mk_str_c(key->name), name))
            return key;
    return NULL;
}

struct mk__conf_section_type *mk__schema_find_type(const struct mk__conf *conf, struct mk_str name,
                                                   enum mk_conf_scope scope)
{
    for (struct mk__conf_section_type *type = conf->section_types; type; type = type->next)
        if (type->scope == scope && mk_str_ieq(type->name, name))
            return type;
    return NULL;
}

struct mk__conf_key_ref mk__schema_find_key(const struct mk__conf_section_type *type, struct mk_str name)
{
    assert(type->registrations);
    struct mk__conf_key_ref ref = {NULL, NULL};
    for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next) {
        const struct mk_conf_key *key = find_key(reg->section, name);
        if (key && (!ref.key || ref.registration->absent))
            ref = (struct mk__conf_key_ref){reg, key};
    }
    return ref;
}

bool mk__schema_is_absent(const struct mk__conf_section_type *type)
{
    for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next)
        if (!reg->absent)
            return false;
    return true;
}

bool mk__schema_is_for_server(const struct mk_conf_section *section)
{
    bool repeats = (section->flags & (MK_CONF_REPEAT | MK_CONF_HOST_ONLY)) == MK_CONF_REPEAT;
    return section->scope == MK_CONF_SCOPE_SERVER || repeats;
}

const struct mk__conf_section_type *mk__schema_find_default(const struct mk__conf *conf, struct mk_str name)
{
    const struct mk__conf_section_type *type = mk__schema_find_type(conf, name, MK_CONF_SCOPE_HOST);
    bool found = type && !mk__schema_is_absent(type) && mk__schema_is_for_server(type->registrations->section);
    return found ? type : NULL;
}

static bool has_loaded_key(const struct mk__conf_section_type *type, struct mk_str name)
{
    struct mk__conf_key_ref ref = mk__schema_find_key(type, name);
    return ref.key && !ref.registration->absent;
}

const struct mk__conf_section_type *mk__schema_find_default_key(const struct mk__conf *conf,
                                                                const struct mk__conf_section_type *type,
                                                                struct mk_str key)
{
    if (type->scope != MK_CONF_SCOPE_SERVER || has_loaded_key(type, key))
        return NULL;
    const struct mk__conf_section_type *hosts = mk__schema_find_default(conf, type->name);
    return hosts && has_loaded_key(hosts, key) ? hosts : NULL;
}

/* ── short forms ── */

bool mk__schema_has_short_forms(const struct mk__conf_section_type *type)
{
    return type->scope == MK_CONF_SCOPE_HOST && mk_str_ieq(type->name, MK_STR("HOST"));
}

const struct mk_conf_short_value *mk__schema_find_short_value(const struct mk_conf_short_form *form,
                                                              struct mk_str value)
{
    for (const struct mk_conf_short_value *v = form->values; v && v->word; v++)
        if (mk_str_ieq(mk_str_c(v->word), value))
            return v;
    return NULL;
}

static const struct mk__conf_registration *find_short_form(const struct mk__conf *conf, struct mk_str name, bool absent)
{
    for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next)
        for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next) {
            const struct mk_conf_short_form *form = reg->section->short_form;
            if (form && reg->absent == absent && mk_str_ieq(mk_str_c(form->name), name))
                return reg;
        }
    return NULL;
}

const struct mk__conf_registration *mk__schema_find_short_form(const struct mk__conf *conf,
                                                               const struct mk__conf_section_type *type,
                                                               struct mk_str name, struct mk_str value)
{
    const struct mk__conf_registration *reg =
        mk__schema_has_short_forms(type) ? find_short_form(conf, name, false) : NULL;
    if (!reg || !reg->section->short_form->values || mk__schema_find_short_value(reg->section->short_form, value))
        return reg;
    return has_loaded_key(type, name) ? NULL : reg;
}

const struct mk__conf_registration *mk__schema_find_absent_form(const struct mk__conf *conf,
                                                                const struct mk__conf_section_type *type,
                                                                struct mk_str name)
{
    return mk__schema_has_short_forms(type) ? find_short_form(conf, name, true) : NULL;
}

/* ── declarations ── */

/* Returns whether a row has what its type needs, lies within the struct, and has its own name. */
static bool is_valid_key(const struct mk_conf_section *section, const struct mk_conf_key *key)
{
    bool can_repeat = key->type == MK_CONF_LIST || key->type == MK_CONF_CUSTOM;
    bool unique = find_key(section, mk_str_c(key->name)) == key;
    return unique && key->type <= MK_CONF_CUSTOM && key->offset + key->size <= section->size &&
           (can_repeat || !(key->flags & MK_CONF_REPEAT)) && (key->type != MK_CONF_ENUM || key->names) &&
           (key->type != MK_CONF_CUSTOM || key->parse);
}

/* Checks a table of the program or of a plugin. Returns 0 or -EINVAL. */
static int check_section(const struct mk_conf_section *section)
{
    bool has_pairs = section->flags & MK_CONF_PAIRS, has_keys = section->keys;

    if (!section->name || !*section->name || (!has_pairs && !has_keys))
        return -EINVAL;
    if (has_pairs && has_keys && section->size < sizeof(struct mk_conf_pairs))
        return -EINVAL;
    for (const struct mk_conf_key *key = section->keys; key && key->name; key++)
        if (!is_valid_key(section, key))
            return -EINVAL;
    return 0;
}

/* Returns a key of the section that a loaded plugin has registered for this type; NULL: there is none. */
static const struct mk_conf_key *find_declared_key(const struct mk__conf_section_type *type,
                                                   const struct mk_conf_section *section)
{
    for (const struct mk_conf_key *key = section->keys; key && key->name; key++)
        if (has_loaded_key(type, mk_str_c(key->name)))
            return key;
    return NULL;
}

/*
 * Checks that a section does not conflict with those of the same name that loaded plugins have registered.
 * Returns 0, -EINVAL (only one of them can repeat, or has pairs) or -EEXIST (a key of it is registered).
 */
static int check_conflict(const struct mk__conf_section_type *type, const struct mk_conf_section *section)
{
    if (mk__schema_is_absent(type))
        return 0;
    if ((type->flags ^ section->flags) & (MK_CONF_REPEAT | MK_CONF_PAIRS | MK_CONF_HOST_ONLY))
        return -EINVAL;
    if (section->flags & MK_CONF_PAIRS) /* one owner gets all of them */
        return -EEXIST;
    return find_declared_key(type, section) ? -EEXIST : 0;
}

/* Returns whether a key of the section would be ambiguous in monkey.conf, where one section may have both. */
static bool is_ambiguous(const struct mk__conf *conf, const struct mk_conf_section *section)
{
    bool server = section->scope == MK_CONF_SCOPE_SERVER;
    struct mk_str name = mk_str_c(section->name);
    const struct mk__conf_section_type *other = server ? mk__schema_find_default(conf, name)
                                                : mk__schema_is_for_server(section)
                                                    ? mk__schema_find_type(conf, name, MK_CONF_SCOPE_SERVER)
                                                    : NULL;
    return other && find_declared_key(other, section);
}

static struct mk__conf_section_type *add_section_type(struct mk__conf *conf, const struct mk_conf_section *section)
{
    struct mk__conf_section_type **last = &conf->section_types, *type = mk_arena_zalloc(&conf->arena, sizeof(*type));
    if (!type)
        return NULL;
    while (*last)
        last = &(*last)->next;
    type->name = mk_str_c(section->name);
    type->scope = section->scope;
    return *last = type;
}

static int register_section(struct mk__conf *conf, const struct mk_conf_section *section, const char *owner,
                            bool absent)
{
    assert(section);
    int r = check_section(section);
    if (r < 0)
        return r;
    struct mk__conf_section_type *type = mk__schema_find_type(conf, mk_str_c(section->name), section->scope);
    if (type && !absent && (r = check_conflict(type, section)) < 0)
        return r;
    if (!absent && is_ambiguous(conf, section))
        return -EEXIST;
    /* allocated before the section type, which must not be without a registration if memory runs out */
    struct mk__conf_registration *reg = mk_arena_alloc(&conf->arena, sizeof(*reg));
    if (!reg || (!type && !(type = add_section_type(conf, section))))
        return mk__conf_out_of_memory(conf);
    struct mk__conf_registration **last = &type->registrations;
    while (*last)
        last = &(*last)->next;
    if (!absent)
        type->flags |= section->flags;
    *last = reg;
    *reg = (struct mk__conf_registration){.section = section, .owner = owner, .absent = absent};
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
