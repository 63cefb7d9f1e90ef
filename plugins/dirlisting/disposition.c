// SPDX-License-Identifier: Apache-2.0
/*
 * Writes Content-Disposition (disposition.h).
 */
#include "disposition.h"

#include "text.h"

#include <monkey/utf8.h>

/* Returns true for what needs no encoding in RFC 8187 and is safe in names of files of all systems. */
static bool is_safe(char c)
{
    return mk_is_name_byte(c, "-._+~!$&#^");
}

static bool is_plain(struct mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_safe(name.p[i]) && name.p[i] != ' ')
            return false;
    return true;
}

static void write_plain(struct mk_buf *out, struct mk_str name)
{
    while (name.len) {
        struct mk_str character = mk_utf8_next(&name);
        bool keep = character.len == 1 && (is_safe(character.p[0]) || character.p[0] == ' ');
        mk_buf_addc(out, keep ? character.p[0] : '_');
    }
}

static void write_encoded(struct mk_buf *out, struct mk_str name)
{
    while (name.len) {
        struct mk_str character = mk_utf8_next(&name);
        if (mk_utf8_is_control(character) || strchr("/\\:*?\"<>|", character.p[0]))
            character = MK_STR("_");
        if (character.len == 1 && is_safe(character.p[0]))
            mk_buf_addc(out, character.p[0]);
        else
            text_uri(out, character);
    }
}

void disposition_write(struct mk_buf *out, struct mk_str name, struct mk_str suffix)
{
    while (name.len && name.p[0] == '.')
        name = mk_str_after(name, 1);
    if (!name.len)
        name = MK_STR("files");
    mk_buf_adds(out, MK_STR("attachment; filename=\""));
    write_plain(out, name);
    mk_buf_addf(out, ".%.*s\"", MK_STR_ARG(suffix));
    if (is_plain(name))
        return;
    mk_buf_adds(out, MK_STR("; filename*=UTF-8''"));
    write_encoded(out, name);
    mk_buf_addf(out, ".%.*s", MK_STR_ARG(suffix));
}
