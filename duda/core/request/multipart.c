// SPDX-License-Identifier: Apache-2.0
/*
 * Parses multipart/form-data (multipart.h). A delimiter has one CR, its first byte: where a part of it does not
 * continue, the next one begins at a later CR.
 */
#include "request/multipart.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* ── parameters, after the first word of Content-Type and Content-Disposition (RFC 9110 section 5.6.6) ── */

struct parameter {
    struct mk_str name, value;
    bool is_quoted; /* `value` has escapes */
};

static struct mk_str split_front(struct mk_str *text, size_t n)
{
    struct mk_str first = mk_str(text->p, n);
    *text = mk_str_after(*text, n);
    return first;
}

/* Returns whether the next parameter, or nothing, follows. */
static bool is_end_of_value(struct mk_str text)
{
    mk_str_skip_blanks(&text);
    return !text.len || text.p[0] == ';';
}

/*
 * Returns whether an escape is at `n`. Browsers write %22 for a quote and leave a backslash as it is, so that one
 * before a quote that ends the value is part of the name.
 */
static bool is_escape(struct mk_str text, size_t n)
{
    if (text.p[n] != '\\' || n + 1 >= text.len)
        return false;
    bool is_quote = text.p[n + 1] == '"' && !is_end_of_value(mk_str(text.p + n + 2, text.len - n - 2));
    return is_quote || text.p[n + 1] == '\\';
}

/* Returns the length of a quoted string without its quotes; SIZE_MAX: it has no end. */
static size_t measure_quoted(struct mk_str text)
{
    size_t n = 1;
    while (n < text.len && text.p[n] != '"')
        n += is_escape(text, n) ? 2 : 1;
    return n < text.len ? n - 1 : SIZE_MAX;
}

static int split_value(struct mk_str *text, struct parameter *ret)
{
    ret->is_quoted = text->len && text->p[0] == '"';
    if (ret->is_quoted) {
        size_t n = measure_quoted(*text);
        if (n == SIZE_MAX)
            return -EBADMSG;
        split_front(text, 1);
        ret->value = split_front(text, n);
        split_front(text, 1);
        return 0;
    }
    ret->value = split_front(text, mk_str_until(*text, "; \t").len);
    return 0;
}

/* Cuts the next "; name=value" off. Returns 1, 0 (there is none) or -EBADMSG. */
static int split_parameter(struct mk_str *text, struct parameter *ret)
{
    do {
        mk_str_skip_blanks(text);
        if (!text->len)
            return 0;
        if (text->p[0] != ';')
            return -EBADMSG;
        split_front(text, 1);
        mk_str_skip_blanks(text);
    } while (text->len && text->p[0] == ';');
    if (!text->len)
        return 0;
    const char *equals = memchr(text->p, '=', text->len);
    if (!equals || equals == text->p)
        return -EBADMSG;
    ret->name = split_front(text, (size_t)(equals - text->p));
    split_front(text, 1);
    int err = split_value(text, ret);
    return err < 0 ? err : 1;
}

/* Cuts the first word off, up to the parameters. */
static struct mk_str split_word(struct mk_str *text)
{
    return mk_str_trim(split_front(text, mk_str_until(*text, ";").len));
}

/* ── the boundary ── */

static bool is_boundary(struct mk_str s)
{
    return s.len <= MULTIPART_BOUNDARY_MAX && mk_str_is_name(s, "'()+_,-./:=? ") && s.p[s.len - 1] != ' ';
}

int multipart_init(struct multipart *m, struct mk_str content_type)
{
    struct parameter parameter;
    struct mk_str boundary = MK_STR_NONE;
    if (!mk_str_ieq(split_word(&content_type), MK_STR("multipart/form-data")))
        return -EINVAL;
    while (!boundary.p && split_parameter(&content_type, &parameter) > 0)
        if (mk_str_ieq(parameter.name, MK_STR("boundary")))
            boundary = parameter.value;
    if (!is_boundary(boundary))
        return -EINVAL;
    m->state = MULTIPART_PREAMBLE;
    m->matched = 2; /* the first delimiter may have no line end before it */
    m->head_len = 0;
    m->delimiter_len = (uint8_t)(4 + boundary.len);
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.p, boundary.len);
    return 0;
}

/* ── the head of a part ── */

/* Returns a value without the escapes of its quoted string, in the memory of the head. */
static struct mk_str unescape_parameter(struct multipart *m, const struct parameter *parameter)
{
    char *text = m->head + (parameter->value.p - m->head);
    size_t n = 0;
    for (size_t i = 0; i < parameter->value.len; i++) {
        char c = text[i], next = i + 1 < parameter->value.len ? text[i + 1] : '\0';
        i += parameter->is_quoted && c == '\\' && (next == '"' || next == '\\');
        text[n++] = text[i];
    }
    return mk_str(text, n);
}

/* Returns the part of a name after the folders, of Windows too; empty if it names a folder. */
static struct mk_str get_base_name(struct mk_str name)
{
    size_t at = name.len;
    while (at && name.p[at - 1] != '/' && name.p[at - 1] != '\\')
        at--;
    struct mk_str base = mk_str_after(name, at);
    return mk_str_is_dots(base) ? mk_str(base.p, 0) : base;
}

static int parse_disposition(struct multipart *m, struct mk_str value, struct multipart_part *part)
{
    struct parameter parameter;
    int got = 0;
    if (part->name.p || !mk_str_ieq(split_word(&value), MK_STR("form-data")))
        return -EBADMSG;
    while ((got = split_parameter(&value, &parameter)) > 0) {
        bool is_name = mk_str_ieq(parameter.name, MK_STR("name"));
        bool is_file_name = mk_str_ieq(parameter.name, MK_STR("filename"));
        part->is_file |= mk_str_ieq(parameter.name, MK_STR("filename*")); /* which RFC 7578 section 4.2 forbids */
        if (is_name ? part->name.p != NULL : is_file_name && part->file_name.p)
            return -EBADMSG; /* it is there twice */
        if (is_name)
            part->name = unescape_parameter(m, &parameter);
        if (is_file_name)
            part->file_name = get_base_name(unescape_parameter(m, &parameter));
        part->is_file |= is_file_name;
    }
    if (!part->file_name.p)
        part->file_name = MK_STR("");
    return got < 0 ? got : part->name.p ? 0 : -EBADMSG;
}

static int parse_field(struct multipart *m, struct mk_str line, struct multipart_part *part)
{
    const char *colon = line.len ? memchr(line.p, ':', line.len) : NULL;
    if (!colon || colon == line.p || mk_is_blank(line.p[0]) || mk_str_has_control(line) ||
        memchr(line.p, '\t', line.len))
        return -EBADMSG;
    struct mk_str name = split_front(&line, (size_t)(colon - line.p));
    split_front(&line, 1);
    line = mk_str_trim(line);
    if (mk_str_ieq(name, MK_STR("Content-Disposition")))
        return parse_disposition(m, line, part);
    if (mk_str_ieq(name, MK_STR("Content-Type")) && line.len)
        part->type = line;
    return 0;
}

static int parse_head(struct multipart *m, struct multipart_part *part)
{
    struct mk_str left = mk_str(m->head, m->head_len);
    *part = (struct multipart_part){.name = MK_STR_NONE, .file_name = MK_STR_NONE, .type = MK_STR_NONE};
    for (;;) {
        const char *end = memchr(left.p, '\n', left.len);
        assert(end);
        if (end == left.p || end[-1] != '\r')
            return -EBADMSG;
        struct mk_str line = split_front(&left, (size_t)(end - 1 - left.p));
        split_front(&left, 2);
        if (!line.len)
            return part->name.p ? 0 : -EBADMSG;
        int err = parse_field(m, line, part);
        if (err < 0)
            return err;
    }
}

static bool has_head(const struct multipart *m)
{
    return (m->head_len == 2 && memcmp(m->head, "\r\n", 2) == 0) ||
           (m->head_len >= 4 && memcmp(m->head + m->head_len - 4, "\r\n\r\n", 4) == 0);
}

static int read_head(struct multipart *m, struct mk_str *in, const struct multipart_events *events, void *ctx)
{
    struct multipart_part part;
    while (in->len) {
        if (m->head_len == sizeof(m->head))
            return -EMSGSIZE;
        m->head[m->head_len++] = split_front(in, 1).p[0];
        if (!has_head(m))
            continue;
        m->state = MULTIPART_CONTENT;
        int err = parse_head(m, &part);
        return err < 0 ? err : events->begin(&part, ctx);
    }
    return 0;
}

/* ── content and delimiters ── */

static int end_content(struct multipart *m, const struct multipart_events *events, void *ctx)
{
    bool is_part = m->state == MULTIPART_CONTENT;
    m->state = MULTIPART_DELIMITER;
    m->matched = 0;
    return is_part ? events->end(ctx) : 0;
}

/* Returns where the delimiter begins, whole or with what is there of it; the length of the text: nowhere. */
static size_t find_delimiter(const struct multipart *m, struct mk_str text)
{
    const char *at = text.p, *end = text.p + text.len;
    while ((at = memchr(at, '\r', (size_t)(end - at)))) {
        size_t n = (size_t)(end - at) < m->delimiter_len ? (size_t)(end - at) : m->delimiter_len;
        if (memcmp(at, m->delimiter, n) == 0)
            return (size_t)(at - text.p);
        at++;
    }
    return text.len;
}

/* Continues a delimiter that may have begun before. Returns 1 (all was read, or the delimiter is whole), 0 or -errno.
 */
static int continue_delimiter(struct multipart *m, struct mk_str *in, const struct multipart_events *events, void *ctx)
{
    size_t left = (size_t)m->delimiter_len - m->matched, n = in->len < left ? in->len : left;
    if (memcmp(in->p, m->delimiter + m->matched, n) == 0) {
        split_front(in, n);
        m->matched = (uint8_t)(m->matched + n);
        int err = n == left ? end_content(m, events, ctx) : 0;
        return err < 0 ? err : 1;
    }
    struct mk_str before = mk_str(m->delimiter, m->matched); /* it was content */
    m->matched = 0;
    return m->state == MULTIPART_CONTENT ? events->data(before, ctx) : 0;
}

static int read_content(struct multipart *m, struct mk_str *in, const struct multipart_events *events, void *ctx)
{
    int err = m->matched ? continue_delimiter(m, in, events, ctx) : 0;
    if (err)
        return err < 0 ? err : 0;
    struct mk_str content = split_front(in, find_delimiter(m, *in));
    if (content.len && m->state == MULTIPART_CONTENT)
        err = events->data(content, ctx);
    size_t matched = in->len < m->delimiter_len ? in->len : m->delimiter_len;
    split_front(in, matched);
    m->matched = (uint8_t)matched;
    return err == 0 && matched == m->delimiter_len ? end_content(m, events, ctx) : err;
}

/* After a delimiter: blanks and a line end, or two dashes after the last one. */
static int read_delimiter_end(struct multipart *m, struct mk_str *in, const struct multipart_events *events, void *ctx)
{
    static const struct {
        enum multipart_state from;
        char c;
        enum multipart_state to;
    } rows[] = {
        {MULTIPART_DELIMITER, '\r', MULTIPART_LINE_END}, {MULTIPART_DELIMITER, '-', MULTIPART_CLOSING},
        {MULTIPART_DELIMITER, ' ', MULTIPART_PADDING},   {MULTIPART_DELIMITER, '\t', MULTIPART_PADDING},
        {MULTIPART_PADDING, ' ', MULTIPART_PADDING},     {MULTIPART_PADDING, '\t', MULTIPART_PADDING},
        {MULTIPART_PADDING, '\r', MULTIPART_LINE_END},   {MULTIPART_LINE_END, '\n', MULTIPART_HEAD},
        {MULTIPART_CLOSING, '-', MULTIPART_EPILOGUE},
    };
    char c = split_front(in, 1).p[0];
    (void)events;
    (void)ctx;
    m->head_len = 0;
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].from == m->state && rows[i].c == c) {
            m->state = rows[i].to;
            return 0;
        }
    return -EBADMSG;
}

static int skip_epilogue(struct multipart *m, struct mk_str *in, const struct multipart_events *events, void *ctx)
{
    (void)m;
    (void)events;
    (void)ctx;
    split_front(in, in->len);
    return 0;
}

int multipart_feed(struct multipart *m, struct mk_str data, const struct multipart_events *events, void *ctx)
{
    static int (*const steps[MULTIPART_STATES])(struct multipart *, struct mk_str *, const struct multipart_events *,
                                                void *) = {
        [MULTIPART_PREAMBLE] = read_content,      [MULTIPART_DELIMITER] = read_delimiter_end,
        [MULTIPART_PADDING] = read_delimiter_end, [MULTIPART_LINE_END] = read_delimiter_end,
        [MULTIPART_CLOSING] = read_delimiter_end, [MULTIPART_HEAD] = read_head,
        [MULTIPART_CONTENT] = read_content,       [MULTIPART_EPILOGUE] = skip_epilogue,
    };
    int err = 0;
    while (data.len && err == 0) {
        assert(m->state < MULTIPART_STATES && m->matched < m->delimiter_len);
        err = steps[m->state](m, &data, events, ctx);
    }
    return err;
}
