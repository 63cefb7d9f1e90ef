// SPDX-License-Identifier: Apache-2.0
/*
 * A set: the instances of the sections of one scope. Makes them, finds them, and checks them as a whole.
 */
#include "conf/model.h"

#include <errno.h>

struct mk_conf_check {
    struct mk__conf *conf;
    const struct mk__conf_set *set;
    struct mk__conf_part *part;
};

static struct mk__conf_part *add_part(struct mk__conf *conf, const struct mk__conf_decl *decl)
{
    const struct mk_conf_section *section = decl->section;
    size_t size = section->flags & MK_CONF_PAIRS ? sizeof(struct mk_conf_pairs) : section->size;
    struct mk__conf_part *part = mk_arena_zalloc(&conf->arena, sizeof(*part) + (size ? size : 1));

    if (!part)
        return NULL;
    part->data = part->bytes;
    part->decl = decl;
    part->last = &part->records;
    mk__bind_defaults(conf, part);
    return part;
}

static void link_parts(struct mk__conf_part *before, struct mk__conf_part *parts)
{
    for (; before; before = before->next)
        for (struct mk__conf_part *p = parts; p; p = p->next)
            if (p->decl == before->decl)
                before->again = p;
}

static struct mk__conf_block *add_block(struct mk__conf *conf, struct mk__conf_set *set,
                                        const struct mk__conf_family *family)
{
    struct mk__conf_block *block = mk_arena_zalloc(&conf->arena, sizeof(*block));
    if (!block)
        goto starved;
    block->family = family;
    struct mk__conf_part **last = &block->parts;
    for (const struct mk__conf_decl *d = family->decls; d; d = d->next) {
        if (d->absent)
            continue;
        if (!(*last = add_part(conf, d)))
            goto starved;
        last = &(*last)->next;
    }
    struct mk__conf_block *before = NULL;
    for (struct mk__conf_block *b = set->blocks; b; b = b->next)
        before = b->family == family ? b : before;
    if (before)
        link_parts(before->parts, block->parts);
    *set->last = block;
    set->last = &block->next;
    return block;
starved:
    mk__conf_starve(conf);
    return NULL;
}

struct mk__conf_set *mk__conf_set_new(struct mk__conf *conf, enum mk_conf_scope scope)
{
    struct mk__conf_set *set = mk_arena_zalloc(&conf->arena, sizeof(*set));
    if (!set) {
        mk__conf_starve(conf);
        return NULL;
    }
    set->scope = scope;
    set->last = &set->blocks;
    for (const struct mk__conf_family *f = conf->families; f; f = f->next) {
        bool single = !(f->flags & MK_CONF_REPEAT) && !mk__declare_is_absent(f);
        if (f->scope == scope && single && !add_block(conf, set, f))
            return NULL;
    }
    return set;
}

static struct mk__conf_block *find_block(const struct mk__conf_set *set, const struct mk__conf_family *family)
{
    for (struct mk__conf_block *b = set->blocks; b; b = b->next)
        if (b->family == family)
            return b;
    return NULL;
}

struct mk__conf_block *mk__set_enter(struct mk__conf *conf, struct mk__conf_set *set, struct mk_str name,
                                     struct mk__conf_origin origin)
{
    const struct mk__conf_family *f = mk__declare_family(conf, name, set->scope);
    if (!f || mk__declare_is_absent(f)) {
        const char *meant = mk__explain_section(conf, set->scope, name, origin);
        f = meant ? mk__declare_family(conf, mk_str_c(meant), set->scope) : NULL;
        struct mk__conf_block *other = f ? find_block(set, f) : NULL;
        if (other)
            other->incomplete = true;
        return NULL;
    }
    struct mk__conf_block *block = f->flags & MK_CONF_REPEAT ? add_block(conf, set, f) : find_block(set, f);
    if (block && !block->origin.source)
        block->origin = origin;
    return block;
}

/* The part of `data` (NULL: the first) among those of a section (NULL: of any). */
static const struct mk__conf_part *find_part(const struct mk__conf_set *set, const struct mk_conf_section *section,
                                             const void *data, const struct mk__conf_block **ret_block)
{
    for (const struct mk__conf_block *b = set->blocks; b; b = b->next)
        for (const struct mk__conf_part *p = b->parts; p; p = p->next)
            if ((!section || p->decl->section == section) && (!data || p->data == data)) {
                *ret_block = b;
                return p;
            }
    return NULL;
}

const void *mk__conf_get(const struct mk__conf_set *set, const struct mk_conf_section *section)
{
    const struct mk__conf_block *block;
    const struct mk__conf_part *part = find_part(set, section, NULL, &block);
    return part ? part->data : NULL;
}

/* Requests walk through rules with this: it must not look for `data` from the beginning. */
const void *mk__conf_next(const struct mk__conf_set *set, const struct mk_conf_section *section, const void *data)
{
    if (!data)
        return mk__conf_get(set, section);
    const struct mk__conf_part *part = (const void *)((const char *)data - offsetof(struct mk__conf_part, bytes));
    return part->again ? part->again->data : NULL;
}

struct mk__conf_origin mk__conf_origin(const struct mk__conf_set *set, const void *data, size_t offset, unsigned nth)
{
    const struct mk__conf_block *block;
    const struct mk__conf_part *part = data ? find_part(set, NULL, data, &block) : NULL;

    if (!part)
        return (struct mk__conf_origin){NULL, 0, 0};
    if (offset == MK__CONF_SECTION)
        return block->origin;
    for (const struct mk__conf_record *r = part->records; r; r = r->next)
        if (r->state == MK__RECORD_SET && (!r->key || r->key->offset == offset) && nth-- == 0)
            return r->origin;
    return (struct mk__conf_origin){NULL, 0, 0};
}

bool mk__conf_follows(const struct mk__conf_set *set, const void *data, size_t offset, unsigned nth)
{
    const struct mk__conf_block *block = NULL;
    const struct mk__conf_part *part = set && data ? find_part(set, NULL, data, &block) : NULL;

    if (!part || offset == MK__CONF_SECTION || mk__conf_origin(set, data, offset, nth).source)
        return false;
    for (const struct mk__conf_record *r = part->records; r; r = r->next)
        if (r->state != MK__RECORD_SET && r->key->offset == offset)
            return true;
    return block->incomplete || set->incomplete;
}

static bool has_faults(const struct mk__conf_part *part)
{
    for (const struct mk__conf_record *r = part->records; r; r = r->next)
        if (r->state != MK__RECORD_SET)
            return true;
    return part->failed;
}

bool mk__conf_has_faults(const struct mk__conf_set *set, const struct mk_conf_section *section)
{
    for (const struct mk__conf_block *b = set->blocks; b; b = b->next)
        for (const struct mk__conf_part *p = b->parts; p; p = p->next)
            if (p->decl->section == section && (b->incomplete || has_faults(p)))
                return true;
    return set->incomplete;
}

/* The best place for a complaint: the item or line of the key, else the section, else the file. */
static struct mk__conf_origin find_place(const struct mk_conf_check *c, size_t offset, unsigned nth)
{
    struct mk__conf_origin origin = mk__conf_origin(c->set, c->part->data, offset, nth);
    if (!origin.source)
        origin = mk__conf_origin(c->set, c->part->data, MK__CONF_SECTION, 0);
    if (!origin.source)
        origin.source = c->set->source;
    return origin;
}

static void report(const struct mk_conf_check *c, bool warning, size_t offset, unsigned nth, const char *format,
                   va_list args)
{
    c->part->failed |= !warning;
    if (mk__conf_follows(c->set, c->part->data, offset, nth))
        mk__conf_suppress(c->conf);
    else
        mk__conf_report(c->conf, warning, find_place(c, offset, nth), format, args);
}

bool mk_conf_is_wrong(const struct mk_conf_check *check, size_t offset)
{
    return mk__conf_follows(check->set, check->part->data, offset, 0);
}

void mk_conf_error(const struct mk_conf_check *check, size_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(check, false, offset, 0, format, args);
    va_end(args);
}

void mk_conf_error_nth(const struct mk_conf_check *check, size_t offset, unsigned nth, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(check, false, offset, nth, format, args);
    va_end(args);
}

void mk_conf_warn(const struct mk_conf_check *check, size_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(check, true, offset, 0, format, args);
    va_end(args);
}

static bool was_set(const struct mk__conf_part *part, const struct mk_conf_key *key)
{
    for (const struct mk__conf_record *r = part->records; r; r = r->next)
        if (r->key == key)
            return true;
    return false;
}

static void check_part(const struct mk_conf_check *check, bool complete)
{
    struct mk__conf_part *part = check->part;
    const struct mk_conf_section *section = part->decl->section;

    for (const struct mk_conf_key *key = section->keys; complete && key && key->name; key++)
        if ((key->flags & MK_CONF_REQUIRED) && !was_set(part, key))
            mk_conf_error(check, MK__CONF_SECTION, "[%s] lacks \"%s\", which must be set", section->name, key->name);
    if (section->check)
        section->check(check, part->data);
}

/* Returns whether a section is missing, which was reported. */
static bool check_required(struct mk__conf *conf, const struct mk__conf_set *set)
{
    bool missing = false;
    for (const struct mk__conf_family *f = conf->families; f; f = f->next) {
        if (f->scope != set->scope || !(f->flags & MK_CONF_REQUIRED) || set->incomplete)
            continue;
        const struct mk__conf_block *block = find_block(set, f);
        if (block && (block->origin.source || block->incomplete))
            continue;
        mk__conf_error(conf, (struct mk__conf_origin){set->source, 0, 0}, "the section [%.*s] is missing",
                       MK_STR_ARG(f->name));
        missing = true;
    }
    return missing;
}

int mk__conf_check(struct mk__conf *conf, struct mk__conf_set *set)
{
    unsigned before = conf->errors;

    bool missing = check_required(conf, set);
    for (const struct mk__conf_block *b = set->blocks; b; b = b->next)
        for (struct mk__conf_part *p = b->parts; p; p = p->next)
            check_part(&(struct mk_conf_check){conf, set, p}, b->origin.source && !b->incomplete && !set->incomplete);
    set->incomplete |= missing;
    if (conf->starved)
        return -ENOMEM;
    return conf->errors > before ? -EINVAL : 0;
}
