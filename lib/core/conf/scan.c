// SPDX-License-Identifier: Apache-2.0
/*
 * Splits a configuration text into sections, keys and directives, and a value into words. It knows no names of sections
 * or keys, resolves nothing and opens no files.
 */
#include "conf/scan.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static size_t count_blanks(struct mk_str s)
{
    size_t n = 0;
    while (n < s.len && mk_is_blank(s.p[n]))
        n++;
    return n;
}

static size_t count_nonblanks(struct mk_str s)
{
    size_t n = 0;
    while (n < s.len && !mk_is_blank(s.p[n]))
        n++;
    return n;
}

bool mk__scan_is_escape(struct mk_str s, bool quoted)
{
    if (s.len < 2 || s.p[0] != '\\')
        return false;
    if (s.p[1] == '$')
        return s.len > 2 && s.p[2] == '{';
    return s.p[1] == '"' || s.p[1] == '#' || (quoted && s.p[1] == '\\');
}

static bool is_variable(struct mk_str s)
{
    return s.len >= 2 && s.p[0] == '$' && s.p[1] == '{';
}

size_t mk__scan_variable(struct mk_str s)
{
    const char *end = is_variable(s) ? memchr(s.p, '}', s.len) : NULL;
    return end ? (size_t)(end - s.p) + 1 : 0;
}

/* Returns the length of the word that `s` begins with (after an opening quote), or the offset of an error. */
static size_t find_word_end(struct mk_str s, bool quoted, const char **ret_error)
{
    size_t i = 0;
    while (i < s.len && (quoted ? s.p[i] != '"' : !mk_is_blank(s.p[i]))) {
        struct mk_str here = mk_str_after(s, i);
        if (mk__scan_is_escape(here, quoted)) {
            i += 2;
        } else if (is_variable(here)) {
            size_t n = mk__scan_variable(here);
            if (!n) {
                *ret_error = "this ${ is never closed with }";
                return i;
            }
            i += n;
        } else {
            i++;
        }
    }
    return i;
}

/* Cuts off the quoted word that `rest` begins with; `len` is its length without the quotes. */
static int take_quoted(struct mk_str *rest, size_t len, struct mk__scan_word *word, const char **ret_error)
{
    if (len == rest->len - 1) {
        *ret_error = "this quote is never closed";
        return -EINVAL;
    }
    word->raw = mk_str(rest->p + 1, len);
    *rest = mk_str_after(*rest, len + 2);
    if (rest->len && !mk_is_blank(*rest->p)) {
        *ret_error = "a space must follow the closing quote";
        return -EINVAL;
    }
    return 1;
}

int mk__scan_word(struct mk_str *rest, struct mk__scan_word *word, const char **ret_error)
{
    assert(rest->p || !rest->len);
    *ret_error = NULL;
    *rest = mk_str_after(*rest, count_blanks(*rest));
    if (!rest->len || *rest->p == '#')
        return 0;
    word->quoted = *rest->p == '"';
    size_t len = find_word_end(mk_str_after(*rest, word->quoted), word->quoted, ret_error);
    if (*ret_error) {
        *rest = mk_str_after(*rest, len + word->quoted);
        return -EINVAL;
    }
    if (word->quoted)
        return take_quoted(rest, len, word, ret_error);
    word->raw = mk_str(rest->p, len);
    *rest = mk_str_after(*rest, len);
    return 1;
}

static void MK_PRINTF(3, 4) set_error(struct mk__scan_line *l, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    l->kind = MK__SCAN_ERROR;
    l->col = (uint32_t)at + 1;
    vsnprintf(l->error, sizeof(l->error), format, args);
    va_end(args);
}

/* Finds the end of the value that begins at `at` or after blanks there, and checks its quotes. */
static void scan_value(struct mk__scan_line *l, struct mk_str text, size_t at)
{
    struct mk_str rest = mk_str_after(text, at);
    struct mk__scan_word word;
    const char *error, *end = NULL;
    int r;

    rest = mk_str_after(rest, count_blanks(rest));
    l->value = mk_str(rest.p, 0);
    l->value_col = (uint32_t)(rest.p - text.p) + 1;
    while ((r = mk__scan_word(&rest, &word, &error)) > 0)
        end = rest.p;
    if (r < 0)
        set_error(l, (size_t)(rest.p - text.p), "%s", error);
    else if (end)
        l->value.len = (size_t)(end - l->value.p);
}

void mk__scan_names(const struct mk__scan_line *section, size_t at, struct mk__scan_line *ret)
{
    assert(section->kind == MK__SCAN_SECTION);
    *ret = (struct mk__scan_line){.kind = MK__SCAN_KEY, .col = 1};
    scan_value(ret, section->name, at);
    ret->col += section->value_col - 1;
    ret->value_col += section->value_col - 1;
}

static void scan_section(struct mk__scan_line *l, struct mk_str text, size_t indent)
{
    assert(text.p[indent] == '[');
    const char *end = memchr(text.p, ']', text.len);

    l->section = true;
    if (indent) {
        set_error(l, indent, "a [SECTION] starts at column 1");
        return;
    }
    if (!end) {
        set_error(l, text.len, "the section's name is never closed with ]");
        return;
    }
    size_t close = (size_t)(end - text.p), after = close + 1 + count_blanks(mk_str_after(text, close + 1));
    l->kind = MK__SCAN_SECTION;
    l->col = 1;
    l->name = mk_str_trim(mk_str(text.p + 1, close - 1));
    l->value_col = (uint32_t)(l->name.p - text.p) + 1;
    if (!l->name.len)
        set_error(l, 1, "a section needs a name");
    else if (after < text.len && text.p[after] != '#')
        set_error(l, after, "nothing may follow the section's name on its line");
}

static void scan_set(struct mk__scan_line *l, struct mk_str text, size_t at)
{
    const char *equals = memchr(text.p + at, '=', text.len - at);
    size_t from = at + count_blanks(mk_str_after(text, at));

    if (!equals) {
        set_error(l, from, "@SET wants name=value");
        return;
    }
    l->name = mk_str_trim(mk_str(text.p + at, (size_t)(equals - text.p) - at));
    size_t valid = 0;
    while (valid < l->name.len && mk_is_name_byte(l->name.p[valid], "_"))
        valid++;
    if (!valid || valid < l->name.len)
        set_error(l, from + valid, "the name of a variable consists of letters, digits and _");
    else
        scan_value(l, text, (size_t)(equals - text.p) + 1);
}

static void scan_directive(struct mk__scan_line *l, struct mk_str text, size_t indent)
{
    assert(text.p[indent] == '@');
    size_t len = count_nonblanks(mk_str_after(text, indent));
    struct mk_str name = mk_str(text.p + indent, len);

    l->col = (uint32_t)indent + 1;
    if (indent) {
        set_error(l, indent, "@INCLUDE and @SET start at column 1");
    } else if (mk_str_ieq(name, MK_STR("@INCLUDE"))) {
        l->kind = MK__SCAN_INCLUDE;
        scan_value(l, text, len);
        if (l->kind != MK__SCAN_ERROR && !l->value.len)
            set_error(l, 0, "@INCLUDE wants the name of a file");
    } else if (mk_str_ieq(name, MK_STR("@SET"))) {
        l->kind = MK__SCAN_SET;
        scan_set(l, text, len);
    } else {
        set_error(l, 0, "unknown directive; there are @INCLUDE and @SET");
    }
}

static void describe_indent(char *out, size_t size, struct mk_str indent)
{
    size_t tabs = 0;
    for (size_t i = 0; i < indent.len; i++)
        tabs += indent.p[i] == '\t';
    if (tabs && tabs != indent.len)
        snprintf(out, size, "a mix of spaces and tabs");
    else
        snprintf(out, size, "%zu %s%s", indent.len, tabs ? "tab" : "space", indent.len == 1 ? "" : "s");
}

/* Compares the indent of a key with that of the first key, which it records. Returns whether they are equal. */
static bool check_indent(struct mk__scan *s, struct mk__scan_line *l, struct mk_str indent)
{
    assert(indent.len <= MK__SCAN_LINE_MAX);
    char mine[32], first[32];

    if (!s->indent.len && indent.len) {
        s->indent = indent;
        s->indent_line = s->line;
    }
    if (indent.len && mk_str_eq(s->indent, indent))
        return true;
    describe_indent(mine, sizeof(mine), indent);
    describe_indent(first, sizeof(first), s->indent);
    if (s->indent.len)
        set_error(l, indent.len, "indented by %s, but the first key of this file (line %u) by %s", mine, s->indent_line,
                  first);
    else
        set_error(l, 0, "a key is indented below its [SECTION]");
    return false;
}

static void scan_key(struct mk__scan *s, struct mk__scan_line *l, struct mk_str text, size_t indent)
{
    struct mk_str name = mk_str_until(mk_str_after(text, indent), " \t");
    if (!indent && mk_str_ieq(name, MK_STR("include"))) {
        set_error(l, 0, "another file is read by @INCLUDE: write \"@INCLUDE FILE\"");
        return;
    }
    if (!check_indent(s, l, mk_str(text.p, indent)))
        return;
    l->kind = MK__SCAN_KEY;
    l->name = mk_str(text.p + indent, count_nonblanks(mk_str_after(text, indent)));
    l->col = (uint32_t)indent + 1;
    scan_value(l, text, indent + l->name.len);
}

static struct mk_str read_line(struct mk__scan *s)
{
    assert(s->rest.len);
    s->line++;
    return mk_str_split_line(&s->rest);
}

/* Tells whether the first line of a file begins with the byte order mark of UTF-16. */
static bool is_utf16(struct mk_str text)
{
    return mk_str_starts(text, MK_STR("\xff\xfe")) || mk_str_starts(text, MK_STR("\xfe\xff"));
}

/* Returns whether the line is short enough and has no control bytes; else reports an error. */
static bool is_text(struct mk__scan_line *l, struct mk_str text)
{
    if (text.len > MK__SCAN_LINE_MAX) {
        set_error(l, MK__SCAN_LINE_MAX, "the line is longer than %d bytes", MK__SCAN_LINE_MAX);
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            set_error(l, i, "control byte 0x%02x%s", c,
                      is_utf16(text) ? ": the file is UTF-16, and must be UTF-8" : "");
            return false;
        }
    }
    return true;
}

void mk__scan_init(struct mk__scan *s, struct mk_str text)
{
    *s = (struct mk__scan){.rest = mk_str_starts(text, MK_STR("\xef\xbb\xbf")) ? mk_str_after(text, 3) : text};
}

/* Returns whether the line has something to report; false: it is blank, a comment, or skipped. */
static bool scan_line(struct mk__scan *s, struct mk__scan_line *l, struct mk_str text)
{
    size_t indent = count_blanks(text);

    *l = (struct mk__scan_line){.kind = MK__SCAN_END};
    if (!is_text(l, text))
        return true;
    if (indent == text.len || text.p[indent] == '#')
        return false;
    if (text.p[indent] == '[') {
        s->blocks = 0; /* a block or a comment whose end is missing must not hide the rest of the file */
        s->comment_end = MK_STR_NONE;
        scan_section(l, text, indent);
    } else if (s->foreign && s->foreign(s, l, text, indent)) {
        return l->kind == MK__SCAN_ERROR;
    } else if (text.p[indent] == '@') {
        scan_directive(l, text, indent);
    } else {
        scan_key(s, l, text, indent);
    }
    return true;
}

void mk__scan_next(struct mk__scan *s, struct mk__scan_line *line)
{
    while (s->rest.len)
        if (scan_line(s, line, read_line(s)))
            return;
    *line = (struct mk__scan_line){.kind = MK__SCAN_END};
}
