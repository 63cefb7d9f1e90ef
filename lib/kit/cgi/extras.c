// SPDX-License-Identifier: Apache-2.0
/*
 * The variables that the configuration sets (<monkey/kit/cgi.h>).
 */
#include <monkey/kit/cgi.h>

#include <errno.h>

static bool is_name(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = mk_lower(s.p[i]);
        if (!(c >= 'a' && c <= 'z') && c != '_' && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.len > 0;
}

static bool has_name(const struct mk_cgi_extras *all, struct mk_str name)
{
    const struct mk_cgi_extra *e = all->first;
    while (e && !mk_str_eq(e->name, name))
        e = e->next;
    return e != NULL;
}

int mk_cgi_parse_extra(const struct mk_conf_value *value, void *extras, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_cgi_extras *all = extras;
    if (value->n < 1 || !is_name(value->words[0]))
        return mk_conf_fail(error, "it takes a name, which has letters, digits and underscores, and a value");
    struct mk_str name = value->words[0];
    if (has_name(all, name))
        return mk_conf_fail(error, "a line before this one has the same name");
    struct mk_cgi_extra *extra = mk_arena_zalloc(arena, sizeof(*extra));
    if (!extra)
        return -ENOMEM;
    extra->name = mk_arena_dup(arena, name);
    if (!extra->name.p)
        return -ENOMEM;
    if (!all->last)
        all->last = &all->first;
    *all->last = extra;
    all->last = &extra->next;
    struct mk_str text = mk_str_trim(mk_str(value->text.p + name.len, value->text.len - name.len));
    return mk_text_parse(text, &extra->value, arena, error);
}
