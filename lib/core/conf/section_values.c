// SPDX-License-Identifier: Apache-2.0
/*
 * The values of a configuration: a set holds the instances of the sections of one scope. Creates, finds and checks
 * them.
 */
#include "conf/internal.h"

#include <assert.h>
#include <errno.h>

struct mk_conf_check {
    struct mk__conf *conf;
    const struct mk__conf_set *set;
    struct mk__conf_values *values;
};

static struct mk__conf_values *new_values(struct mk__conf *conf, const struct mk__conf_registration *registration)
{
    assert(!registration->absent);
    const struct mk_conf_section *section = registration->section;
    size_t size = section->keys ? section->size : sizeof(struct mk_conf_pairs);
    /* never 0 bytes: structs are distinguished by their addresses */
    struct mk__conf_values *values = mk_arena_zalloc(&conf->arena, sizeof(*values) + (size ? size : 1));

    if (!values)
        return NULL;
    values->data = values->bytes;
    values->registration = registration;
    values->last = &values->settings;
    mk__bind_defaults(conf, values);
    return values;
}

static struct mk__conf_group *find_group(const struct mk__conf_set *set, const struct mk__conf_section_type *type)
{
    struct mk__conf_group *group = set->groups;
    while (group && group->first->type != type)
        group = group->next;
    return group;
}

static struct mk__conf_section *find_section(const struct mk__conf_set *set, const struct mk__conf_section_type *type)
{
    const struct mk__conf_group *group = find_group(set, type);
    return group ? group->first : NULL;
}

/* Links the struct of each owner to the struct of the same owner in the next instance of the section. */
static void link_instances(struct mk__conf_section *sec, const struct mk__conf_section *next)
{
    assert(sec->type == next->type);
    for (struct mk__conf_values *from = sec->values; from; from = from->next)
        for (struct mk__conf_values *to = next->values; to; to = to->next)
            if (to->registration == from->registration)
                from->next_instance = to;
}

static int add_group(struct mk__conf *conf, struct mk__conf_set *set, struct mk__conf_section *sec)
{
    struct mk__conf_group *group = mk_arena_alloc(&conf->arena, sizeof(*group)), **last = &set->groups;
    if (!group)
        return -ENOMEM;
    *group = (struct mk__conf_group){.first = sec, .last = sec};
    while (*last)
        last = &(*last)->next;
    *last = group;
    return 0;
}

static struct mk__conf_section *add_section(struct mk__conf *conf, struct mk__conf_set *set,
                                            const struct mk__conf_section_type *type)
{
    struct mk__conf_section *sec = mk_arena_zalloc(&conf->arena, sizeof(*sec));
    if (!sec)
        goto out_of_memory;
    sec->type = type;
    struct mk__conf_values **last = &sec->values;
    for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next) {
        if (reg->absent)
            continue;
        if (!(*last = new_values(conf, reg)))
            goto out_of_memory;
        (*last)->set = set;
        (*last)->section = sec;
        last = &(*last)->next;
    }
    struct mk__conf_group *group = find_group(set, type);
    if (group) {
        link_instances(group->last, sec);
        group->last = sec;
    } else if (add_group(conf, set, sec) < 0) {
        goto out_of_memory;
    }
    *set->last = sec;
    set->last = &sec->next;
    return sec;
out_of_memory:
    mk__conf_out_of_memory(conf);
    return NULL;
}

struct mk__conf_set *mk__conf_set_new(struct mk__conf *conf, enum mk_conf_scope scope)
{
    struct mk__conf_set *set = mk_arena_zalloc(&conf->arena, sizeof(*set));
    if (!set) {
        mk__conf_out_of_memory(conf);
        return NULL;
    }
    set->scope = scope;
    set->last = &set->sections;
    for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next) {
        bool single = !(type->flags & MK_CONF_REPEAT) && !mk__schema_is_absent(type);
        if (type->scope == scope && single && !add_section(conf, set, type))
            return NULL;
    }
    return set;
}

struct mk__conf_section *mk__section_values_add_section(struct mk__conf *conf, struct mk__conf_set *set,
                                                        const struct mk__conf_section_type *type,
                                                        struct mk__conf_origin origin)
{
    assert(type->flags & MK_CONF_REPEAT);
    struct mk__conf_section *sec = add_section(conf, set, type);
    if (sec)
        sec->origin = origin;
    return sec;
}

void mk__conf_set_defaults(const struct mk__conf *conf, struct mk__conf_set *set, const struct mk__conf_set *defaults)
{
    assert(set->scope == MK_CONF_SCOPE_HOST && !set->defaults);
    set->defaults = defaults;
    for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next) {
        if (type->scope != MK_CONF_SCOPE_HOST)
            continue;
        struct mk__conf_group *group = find_group(set, type);
        const struct mk__conf_section *next = find_section(defaults, type);
        if (group && next)
            link_instances(group->last, next);
    }
}

/*
 * Reports an unknown section. If it was probably meant to be another one, that section counts as incomplete: its keys
 * are about to be skipped.
 */
static void report_section(struct mk__conf *conf, const struct mk__conf_set *set, struct mk_str name,
                           struct mk__conf_origin origin)
{
    const char *meant = mk__unknown_key_report_section(conf, set, name, origin);
    const struct mk__conf_section_type *type = meant ? mk__schema_find_type(conf, mk_str_c(meant), set->scope) : NULL;
    struct mk__conf_section *sec = type ? find_section(set, type) : NULL;
    if (sec)
        sec->incomplete = true;
}

struct mk__conf_section *mk__section_values_enter_section(struct mk__conf *conf, struct mk__conf_set *set,
                                                          struct mk_str name, struct mk__conf_origin origin)
{
    assert(origin.source);
    const struct mk__conf_section_type *type = mk__schema_find_type(conf, name, set->scope);
    if (set->scope == MK_CONF_SCOPE_SERVER && (!type || mk__schema_is_absent(type)))
        type = mk__schema_find_default(conf, name);
    if (!type || mk__schema_is_absent(type)) {
        report_section(conf, set, name, origin);
        return NULL;
    }
    struct mk__conf_section *sec =
        type->flags & MK_CONF_REPEAT ? add_section(conf, set, type) : find_section(set, type);
    if (sec && !sec->origin.source)
        sec->origin = origin;
    return sec;
}

struct mk__conf_origin mk__section_values_find(const struct mk__conf *conf, const struct mk__conf_set *set,
                                               struct mk_str name)
{
    const struct mk__conf_section_type *type = mk__schema_find_type(conf, name, set->scope);
    const struct mk__conf_section *sec = type ? find_section(set, type) : NULL;
    return sec ? sec->origin : (struct mk__conf_origin){0};
}

/* Returns the values that this struct is part of; NULL: there is no struct, or it is of another set. */
static const struct mk__conf_values *find_values(const struct mk__conf_set *set, const void *data)
{
    return data && mk__conf_is_of(set, data) ? mk__conf_values_of(data) : NULL;
}

/* Requests look for sections by this: it must not search all of their instances. */
static const struct mk__conf_values *find_first_values(const struct mk__conf_set *set,
                                                       const struct mk_conf_section *section)
{
    for (const struct mk__conf_group *group = set->groups; group; group = group->next)
        for (const struct mk__conf_values *values = group->first->values; values; values = values->next)
            if (values->registration->section == section)
                return values;
    return set->defaults ? find_first_values(set->defaults, section) : NULL;
}

const void *mk__conf_get(const struct mk__conf_set *set, const struct mk_conf_section *section)
{
    const struct mk__conf_values *values = find_first_values(set, section);
    return values ? values->data : NULL;
}

/* Requests iterate over rules with this function: it must not search for `data` from the start. */
const void *mk__conf_next(const struct mk__conf_set *set, const struct mk_conf_section *section, const void *data)
{
    if (!data)
        return mk__conf_get(set, section);
    const struct mk__conf_values *next = mk__conf_values_of(data)->next_instance;
    return next ? next->data : NULL;
}

bool mk__conf_is_of(const struct mk__conf_set *set, const void *data)
{
    return mk__conf_values_of(data)->set == set;
}

static bool is_of_field(const struct mk__conf_setting *setting, size_t offset)
{
    if (setting->key)
        return setting->key->offset == offset;
    return offset < sizeof(struct mk_conf_pairs);
}

bool mk__conf_is_part(const struct mk__conf_set *set)
{
    return set->is_part;
}

struct mk__conf_origin mk__conf_origin_file(const struct mk__conf_set *set)
{
    return (struct mk__conf_origin){.source = set->source};
}

struct mk_str mk__conf_file_name(const struct mk__conf_set *set)
{
    const struct mk__conf_source *source = set->source;
    return source && source->dir.len && !set->is_part ? mk_str_c(source->name + source->dir.len) : MK_STR("");
}

struct mk__conf_origin mk__conf_origin(const struct mk__conf_set *set, const void *data, size_t offset, unsigned nth)
{
    const struct mk__conf_values *values = find_values(set, data);

    if (!values)
        return (struct mk__conf_origin){NULL, 0, 0};
    if (offset == MK__CONF_SECTION)
        return values->section->origin;
    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next)
        if (setting->state == MK__SETTING_SET && is_of_field(setting, offset) && nth-- == 0)
            return setting->origin;
    return (struct mk__conf_origin){NULL, 0, 0};
}

bool mk__conf_is_consequence(const struct mk__conf_set *set, const void *data, size_t offset, unsigned nth)
{
    const struct mk__conf_values *values = find_values(set, data);

    if (!values || offset == MK__CONF_SECTION || mk__conf_origin(set, data, offset, nth).source)
        return false;
    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next)
        if (setting->state != MK__SETTING_SET && setting->key->offset == offset)
            return true;
    return values->section->incomplete || set->incomplete;
}

static bool has_errors(const struct mk__conf_values *values)
{
    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next)
        if (setting->state != MK__SETTING_SET)
            return true;
    return values->failed;
}

bool mk__conf_has_errors(const struct mk__conf_set *set, const struct mk_conf_section *section)
{
    for (const struct mk__conf_section *sec = set->sections; sec; sec = sec->next)
        for (const struct mk__conf_values *values = sec->values; values; values = values->next)
            if (values->registration->section == section && (sec->incomplete || has_errors(values)))
                return true;
    return set->incomplete;
}

/* Returns the best place for a message: the item or line of the key, else the section, else the file. */
static struct mk__conf_origin find_origin(const struct mk_conf_check *c, size_t offset, unsigned nth)
{
    struct mk__conf_origin origin = mk__conf_origin(c->set, c->values->data, offset, nth);
    if (!origin.source)
        origin = mk__conf_origin(c->set, c->values->data, MK__CONF_SECTION, 0);
    if (!origin.source)
        origin.source = c->set->source;
    return origin;
}

static void report_problem(const struct mk_conf_check *c, bool warning, size_t offset, unsigned nth, const char *format,
                           va_list args)
{
    c->values->failed |= !warning;
    if (mk__conf_is_consequence(c->set, c->values->data, offset, nth))
        mk__conf_suppress(c->conf);
    else
        mk__conf_report(c->conf, warning, find_origin(c, offset, nth), format, args);
}

bool mk_conf_is_wrong(const struct mk_conf_check *check, size_t offset)
{
    return mk__conf_is_consequence(check->set, check->values->data, offset, 0);
}

bool mk_conf_is_given(const struct mk_conf_check *check)
{
    return mk__conf_origin(check->set, check->values->data, MK__CONF_SECTION, 0).source;
}

void mk_conf_error(const struct mk_conf_check *check, size_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_problem(check, false, offset, 0, format, args);
    va_end(args);
}

void mk_conf_error_nth(const struct mk_conf_check *check, size_t offset, unsigned nth, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_problem(check, false, offset, nth, format, args);
    va_end(args);
}

void mk_conf_warn(const struct mk_conf_check *check, size_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_problem(check, true, offset, 0, format, args);
    va_end(args);
}

MK_COLD void mk_conf_warn_nth(const struct mk_conf_check *check, size_t offset, unsigned nth, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_problem(check, true, offset, nth, format, args);
    va_end(args);
}

MK_COLD void mk_conf_warn_one_level(const struct mk_conf_check *check, size_t offset, const struct mk_pattern *match)
{
    if (!mk_pattern_is_one_level(match))
        return;
    struct mk_str folder = mk_str(match->text.p, match->text.len - 1);
    mk_conf_warn(check, offset,
                 "paths further below do not match, such as %.*sa/b: write %.*s or %.*s**, or an expression "
                 "(~^%.*s[^/]*$) if that is meant",
                 MK_STR_ARG(folder), MK_STR_ARG(folder), MK_STR_ARG(folder), MK_STR_ARG(folder));
}

/* Returns whether a line has the key, even if its value was wrong. */
static bool has_setting(const struct mk__conf_values *values, const struct mk_conf_key *key)
{
    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next)
        if (setting->key == key)
            return true;
    return false;
}

/* Returns whether a key of the section, which may have one for each of its owners, answers requests. */
static bool has_serving_key(const struct mk__conf_section *sec)
{
    for (const struct mk__conf_values *values = sec->values; values; values = values->next)
        for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next)
            if (setting->key && setting->key->flags & MK_CONF_SERVES)
                return true;
    return false;
}

/* Returns whether requests of the host are answered by a section or key other than that of its files. */
static bool is_served(const struct mk__conf_set *set)
{
    for (const struct mk__conf_section *sec = set->sections; sec; sec = sec->next)
        if (sec->type->flags & MK_CONF_SERVES || has_serving_key(sec))
            return true;
    return set->defaults && is_served(set->defaults);
}

static bool is_missing(const struct mk_conf_check *check, const struct mk_conf_key *key)
{
    return key->flags & MK_CONF_REQUIRED && !has_setting(check->values, key) &&
           !(key->flags & MK_CONF_FILES && is_served(check->set));
}

/* Checks one struct. `complete`: its section was read as a whole, so that a key that was not found is missing. */
static void check_values(const struct mk_conf_check *check, bool complete)
{
    struct mk__conf_values *values = check->values;
    const struct mk_conf_section *section = values->registration->section;

    for (const struct mk_conf_key *key = section->keys; complete && key && key->name; key++)
        if (is_missing(check, key))
            mk_conf_error(check, MK__CONF_SECTION, "[%s] lacks \"%s\", which must be set", section->name, key->name);
    if (section->check)
        section->check(check, values->data);
}

/* Returns where a section is missed: at the first one of the set, or the first line of its file. */
static struct mk__conf_origin find_first_line(const struct mk__conf_set *set)
{
    const struct mk__conf_section *sec = set->sections;
    while (sec && sec->origin.source != set->source)
        sec = sec->next;
    return sec ? sec->origin : (struct mk__conf_origin){set->source, set->source ? 1 : 0, set->source ? 1 : 0};
}

/* Reports required sections that are missing. Returns whether there are any. */
static bool check_required(struct mk__conf *conf, const struct mk__conf_set *set)
{
    bool missing = false;
    for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next) {
        if (type->scope != set->scope || !(type->flags & MK_CONF_REQUIRED) || set->incomplete)
            continue;
        const struct mk__conf_section *sec = find_section(set, type);
        if (sec && (sec->origin.source || sec->incomplete))
            continue;
        mk__conf_error(conf, find_first_line(set), "the section [%.*s] is missing%s", MK_STR_ARG(type->name),
                       set->scope == MK_CONF_SCOPE_HOST
                           ? ": each file of sites/ is a host, and has it; move other files to another folder"
                           : "");
        missing = true;
    }
    return missing;
}

int mk__conf_check(struct mk__conf *conf, struct mk__conf_set *set)
{
    unsigned before = conf->errors;

    bool missing = check_required(conf, set);
    for (const struct mk__conf_section *sec = set->sections; sec; sec = sec->next) {
        bool complete = sec->origin.source && !sec->incomplete && !set->incomplete;
        for (struct mk__conf_values *values = sec->values; values; values = values->next)
            check_values(&(struct mk_conf_check){conf, set, values}, complete);
    }
    set->incomplete |= missing; /* only now: the other sections were checked as usual */
    if (conf->out_of_memory || mk__rule_index_make(conf, set) < 0)
        return -ENOMEM;
    return conf->errors > before ? -EINVAL : 0;
}
