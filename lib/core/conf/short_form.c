// SPDX-License-Identifier: Apache-2.0
/*
 * Reads short forms: keys of [HOST] that mean a section of that host.
 *
 *     [HOST]                                         [PROXY]
 *         Proxy /api http://127.0.0.1:3000    ──►        Match /api
 *                                                        To    http://127.0.0.1:3000
 */
#include "conf/internal.h"

#include <assert.h>

/* Returns whether the first of several words says which paths the section is for. */
static bool begins_with_pattern(const struct mk__words *words)
{
    return words->n > 1 && words->word[0].len && memchr("/=~*", words->word[0].p[0], 4);
}

/* Sets the key Match to the first word, and removes that from the words. */
static void bind_match(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk__conf_origin origin)
{
    struct mk__words *words = &conf->words;
    uint32_t n = words->n;
    size_t len = words->text.len;
    bool semicolon = conf->semicolon;
    words->n = 1;
    words->text.len = words->word[0].len;
    conf->semicolon = false; /* it is at the end of the line */
    mk__bind_key(conf, sec, MK_STR("Match"), origin);
    conf->semicolon = semicolon;
    words->n = n;
    words->text.len = len;
    mk__words_drop_first(words);
}

static void reject_value(struct mk__conf *conf, const struct mk_conf_short_form *form, struct mk__conf_origin origin)
{
    MK_BUF_ON_STACK(known, 80);
    for (const struct mk_conf_short_value *value = form->values; value->word; value++)
        mk_buf_addf(&known, "%s%s", value == form->values ? "" : value[1].word ? ", " : " or ", value->word);
    origin.col = conf->words.col[0];
    mk__conf_error(conf, origin, "\"%s\" takes %.*s, not \"%.*s\"%s", form->name, MK_STR_ARG(mk_buf_str(&known)),
                   MK_STR_ARG(mk_buf_str(&conf->words.text)),
                   conf->semicolon ? "; lines do not end with a semicolon" : "");
}

/* Replaces a word by what it means for the section's key. Returns false if no key is to be set. */
static bool translate_value(struct mk__conf *conf, const struct mk__conf_section *sec,
                            const struct mk_conf_short_form *form, struct mk__conf_origin origin)
{
    const struct mk_conf_short_value *value = mk__schema_find_short_value(form, mk_buf_str(&conf->words.text));
    struct mk__expand_error error;
    if (!value) {
        reject_value(conf, form, origin);
        mk__bind_failure(conf, sec, mk_str_c(form->key), origin, MK__SETTING_FAILED);
    }
    return value && value->means && mk__expand(NULL, mk_str_c(value->means), conf->words.col[0], &conf->words, &error);
}

void mk__short_form_bind(struct mk__conf *conf, const struct mk__conf_section *sec,
                         const struct mk__conf_registration *reg, struct mk__conf_origin origin)
{
    const struct mk_conf_short_form *form = reg->section->short_form;
    conf->short_form = form->name;
    if (mk__rule_index_match_key(reg->section) && begins_with_pattern(&conf->words))
        bind_match(conf, sec, origin);
    if (!form->values || !conf->words.n || translate_value(conf, sec, form, origin))
        mk__bind_key(conf, sec, mk_str_c(form->key), origin);
    conf->short_form = NULL;
}
