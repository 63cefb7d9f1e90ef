// SPDX-License-Identifier: Apache-2.0
/*
 * What to say about a name that cannot be used where it stands: it belongs elsewhere, to a plugin that is
 * not loaded, or is a slip of the keyboard.
 */
#include "conf/model.h"
#include "conf/near.h"

static const char *const places[] = {
    [MK_CONF_SCOPE_SERVER] = "monkey.conf",
    [MK_CONF_SCOPE_HOST] = "a file of sites/",
};

static const char *explain_near_section(struct mk__conf *conf, enum mk_conf_scope scope, struct mk_str name,
                                        struct mk__conf_origin origin)
{
    struct mk__near near = mk__near_to(name);

    for (const struct mk__conf_family *f = conf->families; f; f = f->next)
        if (f->scope == scope)
            mk__near_offer(&near, f->decls->section->name);
    if (!near.name && conf->lacks_plugins)
        mk__conf_suppress(conf);
    else if (near.name)
        mk__conf_error(conf, origin, "unknown section [%.*s]" MK__NEAR_PHRASE "[%s]?", MK_STR_ARG(name), near.name);
    else
        mk__conf_error(conf, origin, "unknown section [%.*s]", MK_STR_ARG(name));
    return near.name;
}

void mk__conf_on_unknown(struct mk__conf *conf, mk__conf_unknown_fn fn, void *ctx)
{
    conf->on_unknown = fn;
    conf->unknown_ctx = ctx;
}

void mk__conf_lack_plugins(struct mk__conf *conf)
{
    conf->lacks_plugins = true;
}

static void learn_more(struct mk__conf *conf)
{
    mk__conf_unknown_fn fn = conf->on_unknown;
    conf->on_unknown = NULL;
    if (fn)
        fn(conf, conf->unknown_ctx);
}

const char *mk__explain_section(struct mk__conf *conf, enum mk_conf_scope scope, struct mk_str name,
                                struct mk__conf_origin origin)
{
    learn_more(conf);
    const struct mk__conf_family *here = mk__declare_family(conf, name, scope);
    const struct mk__conf_family *there = mk__declare_family(conf, name, !scope);

    if (here && conf->lacks_plugins)
        mk__conf_suppress(conf);
    else if (here)
        mk__conf_error(conf, origin,
                       "[%.*s] belongs to the plugin \"%s\", which is not loaded: add \"Load %s\" to plugins.load",
                       MK_STR_ARG(here->name), here->decls->owner, here->decls->owner);
    else if (there)
        mk__conf_error(conf, origin, "[%.*s] belongs in %s, not here", MK_STR_ARG(there->name), places[!scope]);
    else
        return explain_near_section(conf, scope, name, origin);
    return NULL;
}

static const struct mk__conf_family *find_owner(const struct mk__conf *conf, struct mk_str key)
{
    for (const struct mk__conf_family *f = conf->families; f; f = f->next)
        if (mk__declare_row(f, key).key)
            return f;
    return NULL;
}

static const char *nearest_key(const struct mk__conf_family *family, struct mk_str name)
{
    struct mk__near near = mk__near_to(name);

    for (const struct mk__conf_decl *d = family->decls; d; d = d->next)
        for (const struct mk_conf_key *key = d->section->keys; !d->absent && key && key->name; key++)
            mk__near_offer(&near, key->name);
    return near.name;
}

static const char *known_elsewhere(const struct mk__conf_family *family, struct mk_str name)
{
    for (const struct mk__conf_decl *d = family->decls; d; d = d->next)
        for (const struct mk_conf_foreign *f = d->section->foreign; f && f->name; f++)
            if (mk_str_ieq(mk_str_c(f->name), name))
                return f->instead;
    return NULL;
}

const char *mk__explain_key(struct mk__conf *conf, const struct mk__conf_family *family, struct mk_str name,
                            struct mk__conf_origin origin)
{
    learn_more(conf);
    struct mk__conf_row row = mk__declare_row(family, name);
    const struct mk__conf_family *there = find_owner(conf, name);
    const char *near = nearest_key(family, name);
    const char *instead = known_elsewhere(family, name);
    struct mk_str section = family->name;

    if (conf->lacks_plugins && (row.key || (!instead && !near && !there)))
        mk__conf_suppress(conf);
    else if (row.key)
        mk__conf_error(conf, origin,
                       "\"%s\" belongs to the plugin \"%s\", which is not loaded: add \"Load %s\" to plugins.load",
                       row.key->name, row.decl->owner, row.decl->owner);
    else if (instead)
        mk__conf_error(conf, origin, "\"%.*s\" is not a key of [%.*s] here; %s", MK_STR_ARG(name), MK_STR_ARG(section),
                       instead);
    else if (near)
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]" MK__NEAR_PHRASE "\"%s\"?", MK_STR_ARG(name),
                       MK_STR_ARG(section), near);
    else if (there)
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]; it belongs in [%.*s], in %s", MK_STR_ARG(name),
                       MK_STR_ARG(section), MK_STR_ARG(there->name), places[there->scope]);
    else
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]", MK_STR_ARG(name), MK_STR_ARG(section));
    return row.key || instead ? NULL : near;
}
