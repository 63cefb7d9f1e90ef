// SPDX-License-Identifier: Apache-2.0
/*
 * Sections of the manual (manual.h), found by their headings: "## `[TLS]`".
 */
#include "manual.h"

#include <errno.h>

static const struct mk_str heading = MK_STR("\n## ");
static const struct mk_str section_heading = MK_STR("\n## `[");

/* Returns where `what` begins in `text` at or after `from`, or the length of the text. */
static size_t find(struct mk_str text, size_t from, struct mk_str what)
{
    const char *at = from < text.len ? memmem(text.p + from, text.len - from, what.p, what.len) : NULL;
    return at ? (size_t)(at - text.p) : text.len;
}

static struct mk_str get_name(struct mk_str text, size_t start)
{
    size_t at = start + section_heading.len;
    return mk_str(text.p + at, find(text, at, MK_STR("]")) - at);
}

static struct mk_str remove_brackets(const char *name)
{
    struct mk_str s = mk_str_c(name);
    return s.len > 2 && s.p[0] == '[' && s.p[s.len - 1] == ']' ? mk_str(s.p + 1, s.len - 2) : s;
}

int manual_add_section(struct mk_str manual, const char *name, struct mk_buf *out)
{
    struct mk_str wanted = remove_brackets(name);
    bool found = false;
    for (size_t at = find(manual, 0, section_heading); at < manual.len; at = find(manual, at + 1, section_heading)) {
        size_t end = find(manual, at + 1, heading);
        if (!mk_str_ieq(get_name(manual, at), wanted))
            continue;
        mk_buf_add(out, manual.p + at + !found, end - at - !found); /* an empty line between two sections */
        found = true;
    }
    return out->err ? out->err : found ? 0 : -ENOENT;
}

void manual_list_sections(struct mk_str manual, struct mk_buf *out)
{
    struct mk_str last = MK_STR_NONE;
    for (size_t at = find(manual, 0, section_heading); at < manual.len; at = find(manual, at + 1, section_heading)) {
        struct mk_str name = get_name(manual, at);
        if (last.p)
            mk_buf_addc(out, ' ');
        mk_buf_adds(out, name);
        last = name;
    }
}
