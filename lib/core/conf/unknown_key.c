// SPDX-License-Identifier: Apache-2.0
/*
 * Reports names that are not valid where they stand: they belong elsewhere, or to a plugin that is not loaded, or are
 * misspelt.
 */
#include "conf/foreign_words.h"
#include "conf/internal.h"
#include "conf/suggest.h"

#include <assert.h>

enum { PLACE_BYTES = 100, LINES_BYTES = 200 };

static const char *const file_names[] = {
    [MK_CONF_SCOPE_SERVER] = "monkey.conf",
    [MK_CONF_SCOPE_HOST] = "a file of sites/",
};

void mk__conf_on_unknown(struct mk__conf *conf, mk__conf_unknown_fn fn, void *ctx)
{
    assert(fn);
    conf->on_unknown = fn;
    conf->unknown_ctx = ctx;
}

void mk__conf_on_absent(struct mk__conf *conf, mk__conf_absent_fn fn)
{
    conf->on_absent = fn;
}

void mk__conf_set_plugins_missing(struct mk__conf *conf)
{
    conf->plugins_missing = true;
}

/* Lets the callback declare the sections of plugins that are not loaded; a name that was unknown may be one of these.
 */
static void declare_absent_plugins(struct mk__conf *conf)
{
    mk__conf_unknown_fn fn = conf->on_unknown;
    conf->on_unknown = NULL;
    if (fn)
        fn(conf, conf->unknown_ctx);
}

/* Returns the place of the line that would load the plugin, as the end of a message. */
static const char *describe_place(const struct mk__conf *conf, const char *owner, char *text, size_t size)
{
    struct mk_buf out;
    if (!conf->on_absent)
        return "";
    mk_buf_init_fixed(&out, text, size);
    conf->on_absent(owner, &out, conf->unknown_ctx);
    return mk_buf_cstr(&out);
}

/* ── sections ── */

static const char *suggest_section(const struct mk__conf *conf, enum mk_conf_scope scope, struct mk_str name)
{
    struct mk__suggestion suggestion = mk__suggest_init(name);

    for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next)
        if (type->scope == scope ||
            (scope == MK_CONF_SCOPE_SERVER && mk__schema_is_for_server(type->registrations->section)))
            mk__suggest_add(&suggestion, type->registrations->section->name);
    return suggestion.name;
}

/* ── words of other servers ── */

/* Returns the section of that name, of hosts if there is one; NULL: its plugin is not installed. */
static const struct mk__conf_section_type *find_any_type(const struct mk__conf *conf, const char *name)
{
    const struct mk__conf_section_type *type = mk__schema_find_type(conf, mk_str_c(name), MK_CONF_SCOPE_HOST);
    return type ? type : mk__schema_find_type(conf, mk_str_c(name), MK_CONF_SCOPE_SERVER);
}

/*
 * Reports a section that has another name here, or none. Returns that name if the section may stand here, else NULL.
 */
static const char *report_foreign_section(struct mk__conf *conf, enum mk_conf_scope scope, struct mk_str name,
                                          const struct mk__foreign_word *word, struct mk__conf_origin origin)
{
    const struct mk__conf_section_type *type = word->section[0] ? find_any_type(conf, word->section) : NULL;
    bool here = type && (type->scope == scope || mk__schema_find_type(conf, type->name, scope));

    if (here)
        mk__conf_error(conf, origin, "unknown section [%.*s]" MK__SUGGEST_PHRASE "[%s]?", MK_STR_ARG(name),
                       word->section);
    else if (type)
        mk__conf_error(conf, origin, "unknown section [%.*s]; it is called [%s] here, and belongs in %s",
                       MK_STR_ARG(name), word->section, file_names[type->scope]);
    else if (word->section[0])
        mk__conf_error(conf, origin, "unknown section [%.*s]; it is called [%s] here", MK_STR_ARG(name), word->section);
    else
        mk__conf_error(conf, origin, "unknown section [%.*s]; %s", MK_STR_ARG(name), word->here);
    return here ? word->section : NULL;
}

/* Writes the lines that are meant, and where they belong if that is another section (`there`, if it is installed). */
static const char *write_lines(const struct mk__foreign_word *word, const struct mk__conf_section_type *there,
                               bool elsewhere, char *text, size_t size)
{
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, size);
    mk_buf_addf(&out, "write \"%s\"", word->here);
    if (word->also[0])
        mk_buf_addf(&out, " and \"%s\"", word->also);
    if (elsewhere)
        mk_buf_addf(&out, " in [%s]", word->section);
    if (elsewhere && there)
        mk_buf_addf(&out, ", in %s", file_names[there->scope]);
    return mk_buf_cstr(&out);
}

/* Reports a key of another server. Returns the key that was meant if it belongs in this section, else NULL. */
static const char *report_foreign_key(struct mk__conf *conf, const struct mk__conf_section_type *type,
                                      struct mk_str name, const struct mk__foreign_word *word,
                                      struct mk__conf_origin origin)
{
    char text[LINES_BYTES];
    const struct mk__conf_section_type *there = word->section[0] ? find_any_type(conf, word->section) : NULL;
    const struct mk_conf_key *key =
        word->section[0] ? mk__schema_find_key(type, mk__foreign_words_key(word)).key : NULL;

    if (!word->section[0])
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]; %s", MK_STR_ARG(name), MK_STR_ARG(type->name),
                       word->here);
    else if (key && !word->also[0])
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]" MK__SUGGEST_PHRASE "\"%s\"?", MK_STR_ARG(name),
                       MK_STR_ARG(type->name), key->name);
    else
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]; %s", MK_STR_ARG(name), MK_STR_ARG(type->name),
                       write_lines(word, there, there != type, text, sizeof(text)));
    return key ? key->name : NULL;
}

const char *mk__unknown_key_report_section(struct mk__conf *conf, const struct mk__conf_set *set, struct mk_str name,
                                           struct mk__conf_origin origin)
{
    enum mk_conf_scope scope = set->scope;
    char place[PLACE_BYTES];
    declare_absent_plugins(conf);
    enum mk_conf_scope other = scope == MK_CONF_SCOPE_SERVER ? MK_CONF_SCOPE_HOST : MK_CONF_SCOPE_SERVER;
    const struct mk__conf_section_type *here = mk__schema_find_type(conf, name, scope);
    const struct mk__conf_section_type *there = mk__schema_find_type(conf, name, other);
    if (!here && there && mk__schema_is_for_server(there->registrations->section))
        here = there->scope == MK_CONF_SCOPE_HOST ? there : NULL; /* of a plugin that is not loaded */
    struct mk__foreign_word word;
    bool foreign = !here && !there && mk__foreign_words_find_section(name, &word);
    const char *suggestion = here || there || foreign ? NULL : suggest_section(conf, scope, name);

    if (foreign && !conf->plugins_missing)
        return report_foreign_section(conf, scope, name, &word, origin);
    if (conf->plugins_missing && (here || (!there && !suggestion)))
        mk__conf_suppress(conf); /* it may belong to a plugin whose failure was reported */
    else if (here)
        mk__conf_error(conf, origin,
                       "[%.*s] belongs to the plugin \"%s\", which is not loaded: add \"Load %s\" to plugins.load%s",
                       MK_STR_ARG(here->name), here->registrations->owner, here->registrations->owner,
                       describe_place(conf, here->registrations->owner, place, sizeof(place)));
    else if (there && set->is_part)
        mk__conf_error(conf, origin, "[%.*s] is of the server: write it in monkey.conf, above the first [%s]",
                       MK_STR_ARG(there->name), conf->hosts.section);
    else if (there)
        mk__conf_error(conf, origin, "[%.*s] belongs in %s%s, not here", MK_STR_ARG(there->name), file_names[other],
                       conf->hosts.section && other == MK_CONF_SCOPE_HOST ? " or below a [HOST]" : "");
    else if (suggestion)
        mk__conf_error(conf, origin, "unknown section [%.*s]" MK__SUGGEST_PHRASE "[%s]?", MK_STR_ARG(name), suggestion);
    else
        mk__conf_error(conf, origin, "unknown section [%.*s]", MK_STR_ARG(name));
    return suggestion;
}

/* ── keys ── */

/* Returns the first section that has the key. */
static const struct mk__conf_section_type *find_type_with_key(const struct mk__conf *conf, struct mk_str key)
{
    for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next)
        if (mk__schema_find_key(type, key).key || mk__schema_find_short_form(conf, type, key, MK_STR_NONE) ||
            mk__schema_find_absent_form(conf, type, key))
            return type;
    return NULL;
}

static void offer_keys(const struct mk__conf_section_type *type, struct mk__suggestion *suggestion)
{
    for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next)
        for (const struct mk_conf_key *key = reg->section->keys; !reg->absent && key && key->name; key++)
            mk__suggest_add(suggestion, key->name);
}

static void offer_short_forms(const struct mk__conf *conf, struct mk__suggestion *suggestion)
{
    for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next)
        for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next)
            if (reg->section->short_form)
                mk__suggest_add(suggestion, reg->section->short_form->name);
}

static const char *suggest_key(const struct mk__conf *conf, const struct mk__conf_section_type *type,
                               struct mk_str name)
{
    struct mk__suggestion suggestion = mk__suggest_init(name);
    const struct mk__conf_section_type *hosts = mk__schema_find_default(conf, type->name);
    offer_keys(type, &suggestion);
    if (mk__schema_has_short_forms(type))
        offer_short_forms(conf, &suggestion);
    if (hosts && type->scope == MK_CONF_SCOPE_SERVER)
        offer_keys(hosts, &suggestion);
    return suggestion.name;
}

/* Returns what to write in place of a key of another server or of an older version; NULL: it is none. */
static const char *find_foreign(const struct mk__conf_section_type *type, struct mk_str name)
{
    for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next)
        for (const struct mk_conf_foreign *foreign = reg->section->foreign; foreign && foreign->name; foreign++)
            if (mk_str_ieq(mk_str_c(foreign->name), name))
                return foreign->instead;
    if (name.len && memmem(name.p, name.len, "\xc2\xa0", 2))
        return "a no-break space (U+00A0) is no blank: write a plain one";
    return NULL;
}

const char *mk__unknown_key_report(struct mk__conf *conf, const struct mk__conf_section_type *type, struct mk_str name,
                                   struct mk__conf_origin origin)
{
    char place[PLACE_BYTES];
    declare_absent_plugins(conf);
    struct mk_str value = conf->words.n ? conf->words.word[0] : MK_STR_NONE;
    struct mk__conf_key_ref ref = mk__schema_find_key(type, name);
    const struct mk__conf_registration *form = mk__schema_find_absent_form(conf, type, name);
    bool is_form = form && (!ref.key || mk__schema_find_short_value(form->section->short_form, value));
    const struct mk__conf_registration *absent = is_form ? form : ref.key ? ref.registration : NULL;
    const char *instead = find_foreign(type, name);
    const char *suggestion = suggest_key(conf, type, name);
    const struct mk__conf_section_type *there = find_type_with_key(conf, name);
    struct mk__foreign_word word;
    bool foreign = !instead && mk__foreign_words_find_key(name, value, &word);

    if (there && there->scope != type->scope)
        suggestion = NULL; /* a name that is right, in the wrong file */
    if (foreign && !absent && !conf->plugins_missing)
        return report_foreign_key(conf, type, name, &word, origin);
    if (conf->plugins_missing && (absent || (!instead && !suggestion && !there)))
        mk__conf_suppress(conf); /* it may belong to a plugin whose failure was reported */
    else if (absent)
        mk__conf_error(conf, origin,
                       "\"%s\" belongs to the plugin \"%s\", which is not loaded: add \"Load %s\" to plugins.load%s",
                       is_form ? form->section->short_form->name : ref.key->name, absent->owner, absent->owner,
                       describe_place(conf, absent->owner, place, sizeof(place)));
    else if (instead)
        mk__conf_error(conf, origin, "\"%.*s\" is not a key of [%.*s] here; %s", MK_STR_ARG(name),
                       MK_STR_ARG(type->name), instead);
    else if (suggestion)
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]" MK__SUGGEST_PHRASE "\"%s\"?", MK_STR_ARG(name),
                       MK_STR_ARG(type->name), suggestion);
    else if (there)
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]; it belongs in [%.*s], in %s", MK_STR_ARG(name),
                       MK_STR_ARG(type->name), MK_STR_ARG(there->name), file_names[there->scope]);
    else
        mk__conf_error(conf, origin, "unknown key \"%.*s\" in [%.*s]", MK_STR_ARG(name), MK_STR_ARG(type->name));
    return absent || instead ? NULL : suggestion;
}
