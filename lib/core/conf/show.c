// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the effective values of a set, each with its origin, in the syntax that the scanner reads; or only those that
 * were set:
 *
 *     [SERVER]
 *         Workers                4  # option --workers
 *         Timeout                15s  # conf/monkey.conf:12
 */
#include "conf/internal.h"
#include "conf/value.h"

struct listing {
    bool given; /* only values that were set, without their origins */
    struct mk_buf *out;
};

static void show_line(const struct listing *l, const char *name, struct mk_str value, struct mk__conf_origin origin)
{
    mk_buf_addf(l->out, "    %-22s ", name);
    mk_buf_adds(l->out, value);
    if (!l->given) {
        mk_buf_addf(l->out, "  # ");
        mk__conf_origin_print(origin, l->out);
    }
    mk_buf_addc(l->out, '\n');
}

static void show_absence(const struct listing *l, const struct mk_conf_key *key)
{
    if (!l->given)
        mk_buf_addf(l->out, "    # %s is not set\n", key->name);
}

/* Passes the error of a text that could not be printed on, and releases it. */
static void release_value(const struct listing *l, struct mk_buf *value)
{
    if (value->err && !l->out->err)
        l->out->err = value->err;
    mk_buf_release(value);
}

/* Prints the value of one setting of a key; NULL: the default. */
static void print_value(const struct mk__conf_values *values, const struct mk_conf_key *key,
                        const struct mk__conf_setting *setting, unsigned nth, struct mk_buf *value)
{
    const void *field = (const char *)values->data + key->offset;
    const struct mk_conf_list *list = field;

    if (key->type == MK_CONF_CUSTOM)
        mk_buf_adds(value, setting ? setting->text : mk_str_c(key->fallback));
    else if (setting && key->type == MK_CONF_LIST && (key->flags & MK_CONF_REPEAT) && nth < list->n)
        mk__value_quote(list->items[nth], value); /* the list has fewer items than settings if some values are wrong */
    else
        mk__value_print(key, field, value);
}

static void show_value(const struct listing *l, const struct mk__conf_values *values, const struct mk_conf_key *key,
                       const struct mk__conf_setting *setting, unsigned nth)
{
    struct mk_buf value;

    mk_buf_init(&value, 1 << 20);
    print_value(values, key, setting, nth, &value);
    if (value.len)
        show_line(l, key->name, mk_buf_str(&value), setting ? setting->origin : (struct mk__conf_origin){0});
    else
        show_absence(l, key);
    release_value(l, &value);
}

static void show_key(const struct listing *l, const struct mk__conf_values *values, const struct mk_conf_key *key)
{
    unsigned n = 0;

    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next)
        if (setting->key == key && (n == 0 || (key->flags & MK_CONF_REPEAT)))
            show_value(l, values, key, setting, n++);
    if (n == 0 && key->fallback && !l->given)
        show_value(l, values, key, NULL, 0);
    else if (n == 0)
        show_absence(l, key);
}

static void show_pairs(const struct listing *l, const struct mk__conf_values *values)
{
    const struct mk_conf_pair *pair = ((const struct mk_conf_pairs *)values->data)->items;

    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next) {
        struct mk_buf value;
        if (setting->key)
            continue; /* not a pair */
        mk_buf_init(&value, 1 << 20);
        mk__value_quote(pair->value, &value);
        show_line(l, pair->key.p, mk_buf_str(&value), setting->origin);
        release_value(l, &value);
        pair++;
    }
}

static void show_sections(const struct listing *l, const struct mk__conf_set *set)
{
    bool follows = false;
    for (const struct mk__conf_section *sec = set->sections; sec; sec = sec->next) {
        bool for_all = sec->type->scope != set->scope;
        if (l->given && !sec->origin.source)
            continue;
        mk_buf_addf(l->out, "%s%s[%.*s]\n", follows ? "\n" : "", for_all ? "# for all hosts, after their own\n" : "",
                    MK_STR_ARG(sec->type->name));
        follows = true;
        for (const struct mk__conf_values *values = sec->values; values; values = values->next) {
            if (sec->type->flags & MK_CONF_PAIRS)
                show_pairs(l, values);
            for (const struct mk_conf_key *key = values->registration->section->keys; key && key->name; key++)
                show_key(l, values, key);
        }
    }
}

void mk__conf_show(const struct mk__conf_set *set, struct mk_buf *out)
{
    show_sections(&(struct listing){.out = out}, set);
}

void mk__conf_show_given(const struct mk__conf_set *set, struct mk_buf *out)
{
    show_sections(&(struct listing){.given = true, .out = out}, set);
}
