// SPDX-License-Identifier: Apache-2.0
/*
 * Reports names that are not valid where they stand: they belong elsewhere, or to a plugin that is not loaded, or are
 * misspelt.
 */
#include "conf/internal.h"
#include "conf/suggest.h"

static const char *const file_names[] = {
    [MK_CONF_SCOPE_SERVER] = "monkey.conf",
    [MK_CONF_SCOPE_HOST] = "a file of sites/",
};

static const char *report_unknown_section(struct mk__conf *conf, enum mk_conf_scope scope, struct mk_str name,
                                          struct mk__conf_origin origin)
{
    struct mk__suggestion suggestion = mk__suggest_init(name);

    for (const struct mk__conf_section_set *f = conf->section_sets; f; f = f->next)
        if (f->scope == scope)
            mk__suggest_add(&suggestion, f->registrations->section->name);
    if (!suggestion.name && conf->plugins_missing)
        mk__conf_suppress(conf);
    else if (suggestion.name)
        mk__conf_error(conf, origin, "unknown section [%.*s]" MK__SUGGEST_PHRASE "[%s]?", MK_STR_ARG(name),
                       suggestion.name);
    else
        mk__conf_error(conf, origin, "unknown section [%.*s]", MK_STR_ARG(name));
    return suggestion.name;
}

void mk__conf_on_unknown(struct mk__conf *conf, mk__conf_unknown_fn fn, void *ctx)
{
    conf->on_unknown = fn;
    conf->unknown_ctx = ctx;
}

void mk__conf_set_plugins_missing(struct mk__conf *conf)
{
    conf->plugins_missing = true;
}

static void call_on_unknown(struct mk__conf *conf)
{
    mk__conf_unknown_fn fn = conf->on_unknown;
    conf->on_unknown = NULL;
    if (fn)
        fn(conf, conf->unknown_ctx);
}

const char *mk__unknown_key_report_section(struct mk__conf *conf, enum mk_conf_scope scope, struct mk_str name,
                                           struct mk__conf_origin origin)
{
    call_on_unknown(conf);
    const struct mk__conf_section_set *here = mk__schema_find_section(conf, name, scope);
    const struct mk__conf_section_set *there = mk__schema_find_section(conf, name, !scope);

    if (here && conf->plugins_missing)
        mk__conf_suppress(conf);
    else if (here)
        mk__conf_error(conf, origin,
                       "[%.*s] belongs to the plugin \"%s\", which is not loaded: add \"Load %s\" to plugins.load",
                       MK_STR_ARG(here->name), here->registrations->owner, here->registrations->owner);
    else if (there)
        mk__conf_error(conf, origin, "[%.*s] belongs in %s, not here", MK_STR_ARG(there->name), file_names[!scope]);
    else
        return report_unknown_section(conf, scope, name, origin);
    return NULL;
}

static const struct mk__conf_section_set *find_owner(const struct mk__conf *conf, struct mk_str key)
{
    for (const struct mk__conf_section_set *f = conf->section_sets; f; f = f->next)
        if (mk__schema_find_key(f, key).key)
            return f;
    return NULL;
}

static const char *suggest_key(const struct mk__conf_section_set *section_set, struct mk_str name)
{
    struct mk__suggestion suggestion = mk__suggest_init(name);

    for (const struct mk__conf_registration *d = section_set->registrations; d; d = d->next)
        for (const struct mk_conf_key *key = d->section->keys; !d->absent && key && key->name; key++)
            mk__suggest_add(&suggestion, key->name);
    return suggestion.name;
}

static const char *find_foreign(const struct mk__conf_section_set *section_set, struct mk_str name)
{
    for (const struct mk__conf_registration *d = section_set->registrations; d; d = d->next)
        for (const struct mk_conf_foreign *f = d->section->foreign; f && f->name; f++)
            if (mk_str_ieq(mk_str_c(f->name), name))
                return f->instead;
    return NULL;
}

const char *mk__unknown_key_report(struct mk__conf *conf, const struct mk__conf_section_set *section_set,
                                   struct mk_str name, struct mk__conf_origin origin)
{
    call_on_unknown(conf);
    struct mk__conf_key_ref ref = mk__schema_find_key(section_set, name);
    const struct mk__conf_section_set *there = find_owner(conf, name);
    const char *suggestion = suggest_key(section_set, name);
    const char *instead = find_foreign(section_set, name);
    struct mk_str section = section_set->name;

    if (conf->plugins_missing && (ref.key || (!instead && !suggestion && !there)))
        mk__conf_suppress(conf);
    else if (ref.key)
        mk__conf_error(conf, origin,
                       "\"%s\" belongs to the plugin \"%s\", which is not loaded: add \"Load %s\" to plugins.load",
                       ref.key->name, ref.registration->owner, ref.registration->owner);
    else if (instead)
        mk__conf_error(conf, origin, "\"%.*s\" is not a key of [%.*s] here; %s", MK_STR_ARG(name), MK_STR_ARG(section),
                       instead);
    else if (suggestion)
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]" MK__SUGGEST_PHRASE "\"%s\"?", MK_STR_ARG(name),
                       MK_STR_ARG(section), suggestion);
    else if (there)
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]; it belongs in [%.*s], in %s", MK_STR_ARG(name),
                       MK_STR_ARG(section), MK_STR_ARG(there->name), file_names[there->scope]);
    else
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]", MK_STR_ARG(name), MK_STR_ARG(section));
    return ref.key || instead ? NULL : suggestion;
}
