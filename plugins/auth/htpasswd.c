// SPDX-License-Identifier: Apache-2.0
#include "passwords.h"

#include <monkey/base/utf8.h>

#include <errno.h>

void htpasswd_begin(struct htpasswd_reader *r, struct mk_str text)
{
    static const struct mk_str mark = MK_STR_INIT("\xef\xbb\xbf");
    if (mk_str_starts(text, mark))
        text = mk_str(text.p + mark.len, text.len - mark.len);
    *r = (struct htpasswd_reader){.rest = text};
}

static int report_mistake(struct htpasswd_reader *r, size_t offset, const char *error)
{
    r->column = (uint32_t)offset + 1;
    r->error = error;
    return -EINVAL;
}

/* Cuts the next line off, without its end. Returns false at the end of the file. */
static bool next_line(struct htpasswd_reader *r, struct mk_str *ret)
{
    if (!r->rest.len)
        return false;
    *ret = mk_str_split_line(&r->rest);
    r->line++;
    return true;
}

/* Finds the next line that is neither empty nor a comment. */
static bool next_entry(struct htpasswd_reader *r, struct mk_str *ret)
{
    while (next_line(r, ret))
        if (mk_str_trim(*ret).len && ret->p[0] != '#')
            return true;
    return false;
}

/* ── names ── */

/* Returns the length of the character that `s` begins with; 0 if it is none, or a control character. */
static size_t measure_text(struct mk_str s)
{
    size_t n = mk_utf8_length(s);
    return n && !mk_utf8_is_control(mk_str(s.p, n)) ? n : 0;
}

bool htpasswd_is_text(struct mk_str text, size_t *ret_at)
{
    size_t at = 0, n;
    while (at < text.len && (n = measure_text(mk_str_after(text, at))) > 0)
        at += n;
    *ret_at = at;
    return at == text.len;
}

const char *htpasswd_check_name(struct mk_str name, size_t *ret_at)
{
    const char *colon = name.len ? memchr(name.p, ':', name.len) : NULL;
    *ret_at = 0;
    if (!name.len)
        return "the name of the user is missing";
    if (name.len > HTPASSWD_NAME_MAX) {
        *ret_at = HTPASSWD_NAME_MAX;
        return "the name of the user has more than 255 bytes";
    }
    if (colon) {
        *ret_at = (size_t)(colon - name.p);
        return "the name of a user cannot have a colon (RFC 7617)";
    }
    if (!htpasswd_is_text(name, ret_at))
        return "the name of the user has a control character, or is not UTF-8";
    return NULL;
}

/* ── users ── */

int htpasswd_next_user(struct htpasswd_reader *r, struct htpasswd_user *ret)
{
    struct mk_str line;
    struct scheme_fault fault;
    size_t at;
    if (!next_entry(r, &line))
        return 0;
    if (line.len > HTPASSWD_LINE_MAX)
        return report_mistake(r, HTPASSWD_LINE_MAX, "the line has more than 1024 bytes");
    const char *colon = memchr(line.p, ':', line.len);
    if (!colon)
        return report_mistake(r, line.len, "a line is a name, a colon and a hash");
    ret->name = mk_str(line.p, (size_t)(colon - line.p));
    ret->hash = mk_str_until(mk_str_after(line, ret->name.len + 1), ":");
    const char *error = htpasswd_check_name(ret->name, &at);
    if (error)
        return report_mistake(r, at, error);
    int scheme = scheme_parse(ret->hash, &fault);
    if (scheme < 0)
        return report_mistake(r, ret->name.len + 1 + fault.at, fault.sentence);
    ret->scheme = (enum scheme)scheme;
    return 1;
}

/* ── groups ── */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == ',';
}

/* Cuts the next word off the line of a group. Returns false if there is none. */
static bool next_word(struct htpasswd_reader *r, struct mk_str *ret)
{
    struct mk_str *rest = &r->line_rest;
    size_t n = 0;
    while (rest->len && is_blank(rest->p[0]))
        *rest = mk_str_after(*rest, 1);
    while (n < rest->len && !is_blank(rest->p[n]))
        n++;
    *ret = mk_str(rest->p, n);
    *rest = mk_str_after(*rest, n);
    return n > 0;
}

/* Begins the line of a group, with the name before the colon. Returns 1, 0 (the end) or -EINVAL. */
static int begin_group(struct htpasswd_reader *r)
{
    struct mk_str line;
    size_t at;
    if (!next_entry(r, &line))
        return 0;
    r->line_rest = MK_STR_NONE;
    if (line.len > HTPASSWD_GROUP_LINE_MAX)
        return report_mistake(r, HTPASSWD_GROUP_LINE_MAX,
                              "the line has more than 65536 bytes: begin another one with the same group");
    if (!htpasswd_is_text(mk_str(line.p, line.len), &at) && line.p[at] != '\t')
        return report_mistake(r, at, "the line has a control character, or is not UTF-8");
    const char *colon = memchr(line.p, ':', line.len);
    r->group = mk_str_trim(mk_str(line.p, colon ? (size_t)(colon - line.p) : 0));
    if (!r->group.len)
        return report_mistake(r, 0, "a line is the name of a group, a colon and the names of its users");
    r->line_rest = mk_str(colon + 1, line.len - (size_t)(colon + 1 - line.p));
    return 1;
}

int htpasswd_next_member(struct htpasswd_reader *r, struct htpasswd_member *ret)
{
    int more = 1;
    bool fresh = !r->line_rest.len;
    if (fresh && (more = begin_group(r)) <= 0)
        return more;
    ret->group = r->group;
    ret->user = MK_STR_NONE;
    while (!next_word(r, &ret->user) && !fresh) {
        fresh = true;
        if ((more = begin_group(r)) <= 0)
            return more;
        ret->group = r->group;
    }
    return 1;
}
