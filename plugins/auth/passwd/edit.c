// SPDX-License-Identifier: Apache-2.0
/*
 * Changes the text of a file of users (edit.h).
 */
#include "edit.h"

/* Cuts a line off, without its end. Returns false at the end of the text. */
static bool next_line(struct mk_str *rest, struct mk_str *ret)
{
    if (!rest->len)
        return false;
    *ret = mk_str_split(rest, '\n');
    return true;
}

/* Returns true for a line of that user; `ret_fields` gets what follows the name and its colon. */
static bool is_line_of(struct mk_str line, struct mk_str user, struct mk_str *ret_fields)
{
    if (line.len <= user.len || line.p[user.len] != ':' || !mk_str_starts(line, user))
        return false;
    *ret_fields = mk_str(line.p + user.len + 1, line.len - user.len - 1);
    if (ret_fields->len && ret_fields->p[ret_fields->len - 1] == '\r')
        ret_fields->len--;
    return true;
}

/* Cuts the hash off the fields of a line; what is left begins with a colon, or is empty. */
static struct mk_str split_hash(struct mk_str *fields)
{
    struct mk_str hash = mk_str_until(*fields, ":");
    *fields = mk_str_after(*fields, hash.len);
    return hash;
}

bool edit_find(struct mk_str text, struct mk_str user, struct mk_str *ret_hash)
{
    struct mk_str line, fields;
    while (next_line(&text, &line)) {
        if (!is_line_of(line, user, &fields))
            continue;
        *ret_hash = split_hash(&fields);
        return true;
    }
    return false;
}

static void add_line(struct mk_buf *out, struct mk_str user, struct mk_str hash, struct mk_str more)
{
    mk_buf_adds(out, user);
    mk_buf_addc(out, ':');
    mk_buf_adds(out, hash);
    mk_buf_adds(out, more);
    mk_buf_addc(out, '\n');
}

/* Copies the lines of others; the user's first line gets the hash, unless that is NULL. */
static bool edit_lines(struct mk_buf *out, struct mk_str text, struct mk_str user, const struct mk_str *hash)
{
    struct mk_str line, fields;
    bool found = false;
    while (next_line(&text, &line)) {
        if (!is_line_of(line, user, &fields)) {
            mk_buf_adds(out, line);
            mk_buf_addc(out, '\n');
            continue;
        }
        split_hash(&fields);
        if (hash && !found)
            add_line(out, user, *hash, fields);
        found = true;
    }
    return found;
}

bool edit_set(struct mk_buf *out, struct mk_str text, struct mk_str user, struct mk_str hash)
{
    bool found = edit_lines(out, text, user, &hash);
    if (!found)
        add_line(out, user, hash, MK_STR(""));
    return found;
}

bool edit_delete(struct mk_buf *out, struct mk_str text, struct mk_str user)
{
    return edit_lines(out, text, user, NULL);
}
