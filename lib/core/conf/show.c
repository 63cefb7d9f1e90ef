// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the effective values of a set, each with its origin, in the syntax that the scanner reads:
 *
 *     [SERVER]
 *         Workers                4  # option --workers
 *         Timeout                15s  # conf/monkey.conf:12
 */
#include "conf/internal.h"
#include "conf/value.h"

static void show_line(const char *name, struct mk_str value, struct mk__conf_origin origin, struct mk_buf *out)
{
    mk_buf_addf(out, "    %-22s ", name);
    mk_buf_adds(out, value);
    mk_buf_addf(out, "  # ");
    mk__conf_origin_print(origin, out);
    mk_buf_addc(out, '\n');
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

static void show_value(const struct mk__conf_values *values, const struct mk_conf_key *key,
                       const struct mk__conf_setting *setting, unsigned nth, struct mk_buf *out)
{
    struct mk_buf value;

    mk_buf_init(&value, 1 << 20);
    print_value(values, key, setting, nth, &value);
    if (value.len)
        show_line(key->name, mk_buf_str(&value), setting ? setting->origin : (struct mk__conf_origin){0}, out);
    else
        mk_buf_addf(out, "    # %s is not set\n", key->name);
    if (value.err && !out->err)
        out->err = value.err;
    mk_buf_release(&value);
}

static void show_key(const struct mk__conf_values *values, const struct mk_conf_key *key, struct mk_buf *out)
{
    unsigned n = 0;

    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next)
        if (setting->key == key && (n == 0 || (key->flags & MK_CONF_REPEAT)))
            show_value(values, key, setting, n++, out);
    if (n == 0 && key->fallback)
        show_value(values, key, NULL, 0, out);
    else if (n == 0)
        mk_buf_addf(out, "    # %s is not set\n", key->name);
}

static void show_pairs(const struct mk__conf_values *values, struct mk_buf *out)
{
    const struct mk_conf_pair *pair = ((const struct mk_conf_pairs *)values->data)->items;

    for (const struct mk__conf_setting *setting = values->settings; setting; setting = setting->next) {
        if (setting->key)
            continue; /* not a pair */
        mk_buf_addf(out, "    %-22s ", pair->key.p);
        mk__value_quote(pair++->value, out);
        mk_buf_addf(out, "  # ");
        mk__conf_origin_print(setting->origin, out);
        mk_buf_addc(out, '\n');
    }
}

void mk__conf_show(const struct mk__conf_set *set, struct mk_buf *out)
{
    for (const struct mk__conf_section *sec = set->sections; sec; sec = sec->next) {
        bool for_all = sec->type->scope != set->scope;
        mk_buf_addf(out, "%s%s[%.*s]\n", sec == set->sections ? "" : "\n",
                    for_all ? "# for all hosts, after their own\n" : "", MK_STR_ARG(sec->type->name));
        for (const struct mk__conf_values *values = sec->values; values; values = values->next) {
            if (sec->type->flags & MK_CONF_PAIRS)
                show_pairs(values, out);
            for (const struct mk_conf_key *key = values->registration->section->keys; key && key->name; key++)
                show_key(values, key, out);
        }
    }
}
