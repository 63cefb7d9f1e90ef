// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of configuration files (conf_file.h).
 */
#include "service/conf_file.h"

#include <errno.h>
#include <limits.h>

/* ── lines ── */

struct parser {
    struct mk_arena *arena;
    struct mk_buf *error;
    struct duda_config_section *section, **next_section; /* the last one, and where the next one is stored */
    struct conf_key **next_key;
    unsigned line;
};

static int report_error(struct parser *p, const char *sentence)
{
    mk_buf_addf(p->error, "%u: %s", p->line, sentence);
    return -EINVAL;
}

static const char *find_fault(struct mk_str line)
{
    if (line.len > CONF_LINE_BYTES_MAX)
        return "the line has more than 4,096 bytes";
    return mk_str_has_control(line) ? "the line has a control character" : NULL;
}

/* `line`: "[NAME]" without blanks around. */
static int add_section(struct parser *p, struct mk_str line)
{
    assert(line.len && line.p[0] == '[');
    if (line.p[line.len - 1] != ']')
        return report_error(p, "\"]\" is missing behind the name of the section");
    struct mk_str name = mk_str_trim(mk_str(line.p + 1, line.len - 2));
    if (!name.len || name.len > CONF_NAME_BYTES_MAX || memchr(name.p, '[', name.len) || memchr(name.p, ']', name.len))
        return report_error(p, "a section's name has 1 to 255 bytes and no brackets");
    struct duda_config_section *s = mk_arena_zalloc(p->arena, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->arena = p->arena;
    s->name = mk_arena_dup(p->arena, name);
    *p->next_section = p->section = s;
    p->next_section = &s->next;
    p->next_key = &s->first;
    return s->name.p ? 0 : -ENOMEM;
}

/* `line`: "key value" without blanks around. */
static int add_key(struct parser *p, struct mk_str line)
{
    size_t n = mk_str_until(line, " \t").len;
    if (!p->section)
        return report_error(p, "a key needs a section before it");
    assert(p->next_key);
    if (n > CONF_NAME_BYTES_MAX)
        return report_error(p, "the key has more than 255 bytes");
    if (n == line.len)
        return report_error(p, "the key has no value");
    struct conf_key *key = mk_arena_zalloc(p->arena, sizeof(*key));
    if (!key)
        return -ENOMEM;
    key->name = mk_arena_dup(p->arena, mk_str(line.p, n));
    key->value = mk_arena_dup(p->arena, mk_str_trim(mk_str_after(line, n)));
    *p->next_key = key;
    p->next_key = &key->next;
    return key->name.p && key->value.p ? 0 : -ENOMEM;
}

static int parse_line(struct parser *p, struct mk_str line)
{
    const char *fault = find_fault(line);
    bool indented = line.len && mk_is_blank(line.p[0]);
    if (fault)
        return report_error(p, fault);
    line = mk_str_trim(line);
    if (!line.len || line.p[0] == '#')
        return 0;
    if (line.p[0] == '[')
        return indented ? report_error(p, "a section begins at the start of its line") : add_section(p, line);
    return indented ? add_key(p, line) : report_error(p, "a key must be indented");
}

int conf_file_parse(struct mk_str text, struct mk_arena *arena, struct duda_config_section **ret_first,
                    struct mk_buf *error)
{
    struct parser p = {.arena = arena, .error = error, .next_section = ret_first};
    *ret_first = NULL;
    if (text.len > CONF_FILE_BYTES_MAX) {
        p.line = 1;
        return report_error(&p, "the file has more than 1 MB");
    }
    while (text.len) {
        p.line++;
        int err = parse_line(&p, mk_str_split_line(&text));
        if (err < 0)
            return err;
    }
    return 0;
}

/* ── finding ── */

struct duda_config_section *conf_file_find(struct duda_config_section *first, struct mk_str name)
{
    while (first && !mk_str_ieq(first->name, name))
        first = first->next;
    return first;
}

const struct conf_key *conf_file_find_key(const struct duda_config_section *section, struct mk_str name)
{
    const struct conf_key *key = section->first;
    while (key && !mk_str_ieq(key->name, name))
        key = key->next;
    return key;
}

/* ── values ── */

bool conf_file_get_number(struct mk_str value, long *ret)
{
    bool minus = value.len && value.p[0] == '-';
    size_t sign = value.len && (minus || value.p[0] == '+');
    uint64_t n;
    if (!mk_str_u64(mk_str_after(value, sign), (uint64_t)LONG_MAX + minus, &n))
        return false;
    *ret = minus ? (long)(0 - n) : (long)n;
    return true;
}

bool conf_file_get_bool(struct mk_str value, bool *ret)
{
    static const struct {
        struct mk_str word;
        bool value;
    } words[] = {
        {MK_STR_INIT("on"), true},   {MK_STR_INIT("yes"), true}, {MK_STR_INIT("true"), true},
        {MK_STR_INIT("off"), false}, {MK_STR_INIT("no"), false}, {MK_STR_INIT("false"), false},
    };
    for (size_t i = 0; i < MK_COUNT_OF(words); i++) {
        if (mk_str_ieq(value, words[i].word)) {
            *ret = words[i].value;
            return true;
        }
    }
    return false;
}
