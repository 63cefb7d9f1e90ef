// SPDX-License-Identifier: Apache-2.0
/*
 * Stores the words of a line in a field of a struct, and records where the value was set. Decides which of several
 * settings wins: an option over a file over the default, and otherwise the later one.
 */
#include "conf/foreign_syntax.h"
#include "conf/internal.h"
#include "conf/scan.h"
#include "conf/value.h"

#include <assert.h>
#include <errno.h>

static void *get_field(const struct mk__conf_values *values, const struct mk_conf_key *key)
{
    assert(key->offset + key->size <= values->registration->section->size);
    return (char *)values->data + key->offset;
}

static bool add_setting(struct mk__conf *conf, struct mk__conf_values *values, const struct mk_conf_key *key,
                        struct mk__conf_origin origin, struct mk_str text, enum mk__setting_state state)
{
    struct mk__conf_setting *setting = mk_arena_alloc(&conf->arena, sizeof(*setting));
    if (!setting)
        return false;
    *setting = (struct mk__conf_setting){.key = key, .origin = origin, .text = text, .state = (uint8_t)state};
    *values->last = setting;
    values->last = &setting->next;
    return true;
}

static const struct mk__conf_setting *find_last_setting(const struct mk__conf_values *values,
                                                        const struct mk_conf_key *key)
{
    const struct mk__conf_setting *last = NULL;
    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next)
        if (setting->key == key && setting->state != MK__SETTING_GUESSED)
            last = setting;
    return last;
}

/* Resets a key to the state before it was set. */
static void clear_key(struct mk__conf_values *values, const struct mk_conf_key *key)
{
    memset(get_field(values, key), 0, key->size);
    values->last = &values->settings;
    while (*values->last) {
        if ((*values->last)->key == key)
            *values->last = (*values->last)->next;
        else
            values->last = &(*values->last)->next;
    }
}

/* Returns the name of a key as the line has it. */
static const char *get_written_name(const struct mk__conf *conf, const struct mk_conf_key *key)
{
    return conf->short_form ? conf->short_form : key->name;
}

static const struct mk__word_path *find_path(const struct mk__words *w, uint32_t word)
{
    const struct mk__word_path *path = w->paths;
    while (path && path->word != word)
        path = path->next;
    return path;
}

static void quote_path(struct mk_str word, const struct mk__word_path *path, struct mk_buf *text)
{
    MK_BUF_ON_STACK(whole, MK__WORDS_BYTES_MAX);
    mk_buf_adds(&whole, mk_str(word.p, path->begin));
    mk_buf_adds(&whole, path->path);
    if (whole.err)
        text->err = whole.err;
    mk__value_quote(mk_buf_str(&whole), text);
}

/* Returns the words of a line in a form that can be read again, in another file, too. */
static struct mk_str quote_words(struct mk__conf *conf)
{
    const struct mk__words *w = &conf->words;
    struct mk_buf text;
    uint32_t step;

    mk_buf_init(&text, 4 * MK__WORDS_BYTES_MAX);
    for (uint32_t i = 0; i < w->n; i += step) {
        struct mk_str word = w->word[i];
        const struct mk__word_path *path = find_path(w, i);
        step = path ? path->words : 1;
        if (i)
            mk_buf_addc(&text, ' ');
        if (path)
            quote_path(word, path, &text);
        else if (w->quoted[i] && word.len && memchr(word.p, ',', word.len)) /* which separates patterns if bare */
            mk__value_add_quoted(word, &text);
        else
            mk__value_quote(word, &text);
    }
    struct mk_str copy = text.err ? MK_STR_NONE : mk_arena_dup(&conf->arena, mk_buf_str(&text));
    mk_buf_release(&text);
    return copy;
}

static void add_settings(struct mk__conf *conf, struct mk__conf_values *values, const struct mk_conf_key *key,
                         struct mk__conf_origin origin)
{
    const struct mk__words *w = &conf->words;
    uint32_t n = key->type == MK_CONF_LIST ? w->n : 1;
    struct mk_str text = key->type == MK_CONF_CUSTOM ? quote_words(conf) : MK_STR("");
    bool done = text.p != NULL;

    for (uint32_t i = 0; i < n && done; i++) {
        origin.col = w->col[i];
        done = add_setting(conf, values, key, origin, text, MK__SETTING_SET);
    }
    if (!done)
        mk__conf_out_of_memory(conf);
}

/*
 * Returns the column of a byte of the value. After an escape or a variable, where the line and the value differ, it is
 * the column of the word.
 */
static uint32_t find_column(const struct mk__words *w, struct mk__conf_origin origin, size_t fault)
{
    assert(fault <= w->text.len);
    struct mk_str line = mk__diagnostics_line(origin);
    const char *at = w->text.data + fault;
    uint32_t i = w->n - 1;
    if (!line.len) /* a default or an option, which may have no words */
        return w->col[0];
    while (i > 0 && w->word[i].p > at)
        i--;
    size_t len = (size_t)(at - w->word[i].p), start = w->col[i] - 1;
    start += start < line.len && line.p[start] == '"';
    if (len < line.len && start < line.len - len && memcmp(line.p + start, w->word[i].p, len) == 0)
        return (uint32_t)(start + len) + 1;
    return w->col[i];
}

/* Returns whether the value may be any text. `key` is NULL in a section with arbitrary keys. */
static bool is_text(const struct mk_conf_key *key)
{
    return !key || key->type == MK_CONF_STRING || key->type == MK_CONF_CUSTOM;
}

/*
 * nginx ends lines with a semicolon; here it would be part of the value, and only a text can contain it. So an unquoted
 * value that ends in one is an error, or for a text a warning.
 * Returns whether it is an error.
 */
static bool reject_semicolon(struct mk__conf *conf, const struct mk_conf_key *key, struct mk__conf_origin origin)
{
    bool text = is_text(key);
    if (!conf->semicolon)
        return false;
    if (text)
        mk__conf_warn(conf, origin,
                      "lines do not end with a semicolon: it becomes part of the value; put the value in quotes if "
                      "it is meant to end with one");
    else
        mk__conf_error(conf, origin, "lines do not end with a semicolon: remove it from the value of \"%s\"",
                       get_written_name(conf, key));
    return !text;
}

/*
 * Returns the word that begins a comment of other servers' syntax after the value; 0: there is none. The value of a
 * text may have such a word.
 */
static uint32_t find_comment(const struct mk__words *w, const struct mk_conf_key *key)
{
    for (uint32_t i = 1; !is_text(key) && i < w->n; i++)
        if (mk__foreign_syntax_is_comment(w->word[i]))
            return i;
    return 0;
}

/* Reports a comment after the value that does not begin with a `#`. Returns whether there is one. */
static bool reject_comment(struct mk__conf *conf, const struct mk_conf_key *key, struct mk__conf_origin origin)
{
    uint32_t i = find_comment(&conf->words, key);
    if (!i)
        return false;
    origin.col = conf->words.col[i];
    mk__conf_error(conf, origin, "a comment begins with #, not with %.2s", conf->words.word[i].p);
    return true;
}

static int parse_words(struct mk__conf *conf, const struct mk_conf_key *key, void *field, struct mk__conf_origin origin)
{
    const struct mk__words *w = &conf->words;
    size_t fault = 0;
    struct mk_conf_value value = {
        .text = mk_buf_str(&w->text), .words = w->word, .n = w->n, .fault = &fault, .quoted = w->quoted};
    MK_BUF_ON_STACK(error, MK__SCAN_LINE_MAX + 1024); /* a sentence may quote what the line has */
    struct mk__value_source source = {origin, &conf->words};
    conf->words.paths = NULL;
    if (origin.source) {
        value.dir = origin.source->dir;
        value.origin = &source;
    }
    int r = mk__value_parse(key, &value, field, &conf->arena, &error);
    if (r == -ENOMEM)
        return mk__conf_out_of_memory(conf);
    if (r < 0) {
        origin.col = r == -E2BIG ? w->col[1] : find_column(w, origin, fault);
        mk__conf_error(conf, origin, "%s\"%s\"%.*s%s", origin.source ? "" : "the default of ",
                       get_written_name(conf, key), MK_STR_ARG(mk_buf_str(&error)),
                       conf->semicolon ? "; lines do not end with a semicolon" : "");
    }
    return r;
}

void mk__bind_defaults(struct mk__conf *conf, struct mk__conf_values *values)
{
    struct mk__conf_origin nowhere = {NULL, 0, 0};
    struct mk__expand_error error;

    for (const struct mk_conf_key *key = values->registration->section->keys; key && key->name; key++) {
        if (!key->fallback)
            continue;
        if (mk__expand(NULL, mk_str_c(key->fallback), 0, &conf->words, &error))
            parse_words(conf, key, get_field(values, key), nowhere);
        else
            mk__conf_error(conf, nowhere, "the default of \"%s\": %s", key->name, error.text);
    }
}

/* Returns the field for the value, or NULL after an error or without memory. */
static void *find_field(struct mk__conf *conf, struct mk__conf_values *values, const struct mk_conf_key *key,
                        struct mk__conf_origin origin, bool *ret_wins)
{
    const struct mk__conf_setting *old = find_last_setting(values, key);
    unsigned level = old ? old->origin.source->level : 0;
    bool repeat = key->flags & MK_CONF_REPEAT;

    *ret_wins = origin.source->level >= level;
    if (!*ret_wins) /* the value is checked all the same */
        return mk_arena_zalloc(&conf->arena, key->size);
    if (old && old->origin.source == origin.source && !repeat) {
        if (conf->short_form)
            mk__conf_error(conf, origin, "\"%s\" sets \"%s\" of [%s], which is set already in line %u",
                           conf->short_form, key->name, values->registration->section->name, old->origin.line);
        else
            mk__conf_error(conf, origin, "\"%s\" is set twice; the first time in line %u", key->name, old->origin.line);
        return NULL;
    }
    if (origin.source->level > level || !repeat)
        clear_key(values, key);
    return get_field(values, key);
}

static void add_failure(struct mk__conf *conf, struct mk__conf_values *values, const struct mk_conf_key *key,
                        struct mk__conf_origin origin, enum mk__setting_state state)
{
    if (!add_setting(conf, values, key, origin, MK_STR(""), state))
        mk__conf_out_of_memory(conf);
}

static void bind_setting(struct mk__conf *conf, struct mk__conf_values *values, const struct mk_conf_key *key,
                         struct mk__conf_origin origin)
{
    bool wins;
    unsigned errors = mk__conf_all_errors(conf);
    void *field = find_field(conf, values, key, origin, &wins);

    if (!field && errors == mk__conf_all_errors(conf))
        mk__conf_out_of_memory(conf);
    if (!field)
        return;
    bool rejected = reject_comment(conf, key, origin) || (!is_text(key) && reject_semicolon(conf, key, origin));
    int r = rejected ? -EINVAL : parse_words(conf, key, field, origin);
    if (r == 0 && is_text(key))
        reject_semicolon(conf, key, origin);
    if (wins && r == 0)
        add_settings(conf, values, key, origin);
    else if (wins) /* remembers that the key is not missing, but wrong */
        add_failure(conf, values, key, origin, MK__SETTING_FAILED);
}

static void bind_pair(struct mk__conf *conf, struct mk__conf_values *values, struct mk_str name,
                      struct mk__conf_origin origin)
{
    assert(values->registration->section->flags & MK_CONF_PAIRS);
    struct mk_conf_pairs *pairs = values->data;
    struct mk_str key = mk_arena_dup(&conf->arena, name);
    struct mk_str value = mk_arena_dup(&conf->arena, mk_buf_str(&conf->words.text));
    struct mk_conf_pair *items = mk_arena_grow(&conf->arena, pairs->items, pairs->n, sizeof(*items));

    if (!key.p || !value.p || !items || !add_setting(conf, values, NULL, origin, MK_STR_NONE, MK__SETTING_SET)) {
        mk__conf_out_of_memory(conf);
        return;
    }
    pairs->items = items;
    items[pairs->n++] = (struct mk_conf_pair){key, value};
}

static struct mk__conf_values *find_values(const struct mk__conf_section *sec,
                                           const struct mk__conf_registration *registration)
{
    struct mk__conf_values *values = sec->values;
    while (values->registration != registration)
        values = values->next;
    return values;
}

void mk__bind_failure(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk_str name,
                      struct mk__conf_origin origin, enum mk__setting_state state)
{
    assert(origin.source);
    struct mk__conf_key_ref ref = mk__schema_find_key(sec->type, name);
    if (ref.key && !ref.registration->absent)
        add_failure(conf, find_values(sec, ref.registration), ref.key, origin, state);
}

void mk__bind_unknown(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk_str name,
                      struct mk__conf_origin origin)
{
    const char *meant = mk__unknown_key_report(conf, sec->type, name, origin);
    if (meant)
        mk__bind_failure(conf, sec, mk_str_c(meant), origin, MK__SETTING_GUESSED);
}

void mk__bind_key(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk_str name,
                  struct mk__conf_origin origin)
{
    assert(sec->values && origin.source);
    bool pairs = sec->type->flags & MK_CONF_PAIRS;
    struct mk__conf_key_ref ref = mk__schema_find_key(sec->type, name);

    if (!pairs && (!ref.key || ref.registration->absent)) {
        mk__bind_unknown(conf, sec, name, origin);
    } else if (!conf->words.n) {
        mk__conf_error(conf, origin, "\"%.*s\" wants a value",
                       MK_STR_ARG(conf->short_form ? mk_str_c(conf->short_form) : name));
        mk__bind_failure(conf, sec, name, origin, MK__SETTING_FAILED);
    } else if (pairs && (!ref.key || ref.registration->absent))
        bind_pair(conf, sec->values, name, origin);
    else
        bind_setting(conf, find_values(sec, ref.registration), ref.key, origin);
}
