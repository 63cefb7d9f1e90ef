// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of http/message/parse.h. Strict on purpose: what two implementations could parse differently (bare CR or
 * LF, folded lines, space before a colon, control bytes) is rejected, because request smuggling needs a proxy and a
 * server that disagree about the end of a message. The meaning of the fields is found in request_head.c.
 */
#include "http/message/parse.h"

#include "base/word.h"

#include <assert.h>
#include <limits.h>

enum { EMPTY_LINES_MAX = 8, HEAD_BYTES_LIMIT = UINT16_MAX };

enum { TOKEN = 1, TARGET = 2, VALUE = 4 };

/* Where a byte is allowed: in a token, in a request target, in a field value (RFC 9110 section 5.5). */
static const uint8_t classes[256] = {
    ['\t'] = VALUE,
    [' '] = VALUE,
    ['"'] = TARGET | VALUE,
    ['('] = TARGET | VALUE,
    [')'] = TARGET | VALUE,
    [','] = TARGET | VALUE,
    ['/'] = TARGET | VALUE,
    [':' ... '@'] = TARGET | VALUE,
    ['['] = TARGET | VALUE,
    ['\\'] = VALUE,
    [']'] = TARGET | VALUE,
    ['{'] = TARGET | VALUE,
    ['}'] = TARGET | VALUE,
    ['!'] = TOKEN | TARGET | VALUE,
    ['#' ... '\''] = TOKEN | TARGET | VALUE,
    ['*' ... '+'] = TOKEN | TARGET | VALUE,
    ['-' ... '.'] = TOKEN | TARGET | VALUE,
    ['0' ... '9'] = TOKEN | TARGET | VALUE,
    ['A' ... 'Z'] = TOKEN | TARGET | VALUE,
    ['^' ... 'z'] = TOKEN | TARGET | VALUE,
    ['|'] = TOKEN | TARGET | VALUE,
    ['~'] = TOKEN | TARGET | VALUE,
    [0x80 ... 0xff] = VALUE,
};

/*
 * Returns the first byte from `p` on that is not in a class, or `end`. `mark` marks those that may not be in it, and
 * the table decides; NULL: only the table does.
 */
static inline const char *skip_class(const char *p, const char *end, uint8_t class, uint64_t (*mark)(uint64_t word))
{
    for (;; p++) {
        for (uint64_t marks = 0; mark && !marks && end - p >= MK__WORD_BYTES;) {
            marks = mark(mk__word_load(p));
            p += marks ? mk__word_first(marks) : MK__WORD_BYTES;
        }
        if (p == end || !(classes[(unsigned char)*p] & class))
            return p;
    }
}

static const char *skip_token(const char *p, const char *end)
{
    return skip_class(p, end, TOKEN, NULL);
}

/* Marks spaces, control bytes, the backslash, and what is not ASCII. */
static uint64_t mark_not_target(uint64_t word)
{
    uint64_t below = word - MK__WORD_OF('!'), above = word + MK__WORD_OF(1);
    return ((below | word | above) & MK__WORD_OF(0x80)) | mk__word_mark(word, '\\');
}

/* Marks control bytes, the tab too. */
static uint64_t mark_not_value(uint64_t word)
{
    uint64_t below = word - MK__WORD_OF(' '), above = word + MK__WORD_OF(1);
    return (below | above) & ~word & MK__WORD_OF(0x80);
}

/* Returns the first colon, or `end`. */
static inline const char *find_colon(const char *p, const char *end)
{
    for (; end - p >= MK__WORD_BYTES; p += MK__WORD_BYTES) {
        uint64_t marks = mk__word_mark(mk__word_load(p), ':');
        if (marks)
            return p + mk__word_first(marks);
    }
    while (p < end && *p != ':')
        p++;
    return p;
}

bool mk__parse_is_token(struct mk_str s)
{
    return s.len && skip_token(s.p, s.p + s.len) == s.p + s.len;
}

bool mk__parse_is_lower_token(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(classes[(unsigned char)s.p[i]] & TOKEN) || (s.p[i] >= 'A' && s.p[i] <= 'Z'))
            return false;
    return s.len;
}

bool mk__parse_is_target(struct mk_str s)
{
    if (s.len >= MK__WORD_BYTES / 2)
        return !mk__word_has_marks(s.p, s.len, mark_not_target); /* which has no others */
    return s.len && skip_class(s.p, s.p + s.len, TARGET, NULL) == s.p + s.len;
}

bool mk__parse_has_value_bytes(struct mk_str s)
{
    return !s.len || skip_class(s.p, s.p + s.len, VALUE, mark_not_value) == s.p + s.len;
}

bool mk__parse_is_value(struct mk_str s)
{
    return mk_str_trim(s).len == s.len && mk__parse_has_value_bytes(s);
}

struct name {
    struct mk_str text;
    uint8_t id;
};

/* Field names, sorted by length, so that a lookup compares with three at most. */
static const struct name names[] = {
    {MK_STR("te"), MK_HEADER_TE},
    {MK_STR("host"), MK_HEADER_HOST},
    {MK_STR("range"), MK_HEADER_RANGE},
    {MK_STR("accept"), MK_HEADER_ACCEPT},
    {MK_STR("cookie"), MK_HEADER_COOKIE},
    {MK_STR("expect"), MK_HEADER_EXPECT},
    {MK_STR("origin"), MK_HEADER_ORIGIN},
    {MK_STR("referer"), MK_HEADER_REFERER},
    {MK_STR("upgrade"), MK_HEADER_UPGRADE},
    {MK_STR("if-match"), MK_HEADER_IF_MATCH},
    {MK_STR("if-range"), MK_HEADER_IF_RANGE},
    {MK_STR("user-agent"), MK_HEADER_USER_AGENT},
    {MK_STR("connection"), MK_HEADER_CONNECTION},
    {MK_STR("content-type"), MK_HEADER_CONTENT_TYPE},
    {MK_STR("if-none-match"), MK_HEADER_IF_NONE_MATCH}, /* more often than the next */
    {MK_STR("authorization"), MK_HEADER_AUTHORIZATION},
    {MK_STR("content-length"), MK_HEADER_CONTENT_LENGTH},
    {MK_STR("accept-encoding"), MK_HEADER_ACCEPT_ENCODING},
    {MK_STR("if-modified-since"), MK_HEADER_IF_MODIFIED_SINCE},
    {MK_STR("transfer-encoding"), MK_HEADER_TRANSFER_ENCODING},
    {MK_STR("if-unmodified-since"), MK_HEADER_IF_UNMODIFIED_SINCE},
};

enum { NAMES = MK_COUNT_OF(names), NAME_BYTES_MAX = 19 };

/* The first row of `names` whose text has this length (the rows are sorted by it). */
static const uint8_t first_of_length[NAME_BYTES_MAX + 2] = {
    [0 ... 2] = 0, [3] = 1,   [4] = 1,   [5] = 2,   [6] = 3,   [7] = 7,   [8] = 9,   [9] = 11,  [10] = 11,    [11] = 13,
    [12] = 13,     [13] = 14, [14] = 16, [15] = 17, [16] = 18, [17] = 18, [18] = 20, [19] = 20, [20] = NAMES,
};

uint8_t mk__parse_header_id(struct mk_str name)
{
    if (name.len > NAME_BYTES_MAX)
        return MK_HEADER_OTHER;
    const struct name *row = &names[first_of_length[name.len]], *end = &names[first_of_length[name.len + 1]];
    for (; row < end; row++)
        if (mk__word_is_same_text(name.p, row->text.p, name.len))
            return row->id;
    return MK_HEADER_OTHER;
}

static const struct {
    struct mk_str name;
    uint8_t method;
} methods[] = {
    {MK_STR("GET"), MK_GET},         {MK_STR("HEAD"), MK_HEAD},     {MK_STR("POST"), MK_POST},
    {MK_STR("PUT"), MK_PUT},         {MK_STR("DELETE"), MK_DELETE}, {MK_STR("OPTIONS"), MK_OPTIONS},
    {MK_STR("CONNECT"), MK_CONNECT}, {MK_STR("TRACE"), MK_TRACE},   {MK_STR("PATCH"), MK_PATCH},
};

MK_HOT enum mk_method mk__parse_method(struct mk_str name)
{
    if (mk_str_eq(name, MK_STR("GET"))) /* most are */
        return MK_GET;
    for (unsigned i = 0; i < MK_COUNT_OF(methods); i++)
        if (mk_str_eq(name, methods[i].name))
            return methods[i].method;
    return MK_METHOD_OTHER;
}

/* Sets the method, with which the current line begins. */
static void set_method(struct mk_head_parser *p, struct mk_str name)
{
    p->method_name = (struct mk_span){p->line_at, (uint16_t)name.len};
    p->method = (uint8_t)mk__parse_method(name);
}

/* Reads method SP request-target SP HTTP-version. Returns 0, -400 or -505 (another major version). */
static int read_request_line(struct mk_head_parser *p, struct mk_str line)
{
    const char *end = line.p + line.len, *at = skip_token(line.p, end);
    if (at == line.p || at == end || *at != ' ')
        return -400;
    set_method(p, mk_str(line.p, (size_t)(at - line.p)));
    const char *target = at + 1;
    at = skip_class(target, end, TARGET, mark_not_target);
    if (at == target || at == end || *at != ' ')
        return -400;
    p->target = (struct mk_span){(uint16_t)(p->line_at + (target - line.p)), (uint16_t)(at - target)};
    at++;
    assert(at <= end);
    /* "HTTP/1.x", RFC 9112 section 2.3 */
    if (end - at != 8 || memcmp(at, "HTTP/", 5) != 0 || !mk_is_digit(at[5]) || at[6] != '.' || !mk_is_digit(at[7]))
        return -400;
    if (at[5] != '1')
        return -505;
    p->minor = (uint8_t)(at[7] - '0');
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/*
 * Reads field-name ":" OWS field-value OWS CRLF, without a space before the colon (RFC 9112 section 5.1). `base` is the
 * beginning of the head. Returns what follows it, or NULL: there is no such line at `line`.
 */
static MK_HOT inline const char *read_field(struct mk_field *field, const char *base, const char *line, const char *end)
{
    const char *at = find_colon(line, end);
    if (at == line || at == end)
        return NULL;
    field->name = (struct mk_span){(uint16_t)(line - base), (uint16_t)(at - line)};
    field->id = mk__parse_header_id(mk_str(line, (size_t)(at - line)));
    if (field->id == MK_HEADER_OTHER && skip_token(line, at) != at)
        return NULL;
    for (at++; at < end && is_space(*at);)
        at++;
    const char *value = at, *value_end;
    at = value_end = skip_class(at, end, VALUE, mark_not_value);
    if (end - at < 2 || at[0] != '\r' || at[1] != '\n')
        return NULL;
    while (value_end > value && is_space(value_end[-1]))
        value_end--;
    field->value = (struct mk_span){(uint16_t)(value - base), (uint16_t)(value_end - value)};
    return at + 2;
}

const char *mk__parse_field(struct mk_field *field, const char *base, const char *line, const char *end)
{
    return read_field(field, base, line, end);
}

MK_HOT unsigned mk__parse_fields(struct mk_head_parser *p, struct mk_field *fields, unsigned fields_max,
                                 struct mk_str head)
{
    const char *at = head.p + p->line_at, *end = head.p + head.len, *next;
    struct mk_field *first = fields + p->n_fields, *field = first;
    for (; field < fields + fields_max && at < end && *at != '\r'; field++, at = next) {
        next = read_field(field, head.p, at, end);
        if (!next)
            break;
        p->seen |= 1u << field->id;
    }
    p->n_fields = (uint16_t)(field - fields);
    p->line_at = (uint16_t)(at - head.p);
    return (unsigned)(field - first);
}

static_assert(MK_HEADER_COUNT <= sizeof(((struct mk_head_parser *)0)->seen) * CHAR_BIT, "a bit for each field");

/* Reads the line at the end of `head`. Returns 0 (it ended the head), MK_AGAIN or a negative status. */
static int read_line(struct mk_head_parser *p, struct mk_field *fields, const struct mk__parse_limits *limits,
                     struct mk_str head)
{
    struct mk_str line = mk_str(head.p + p->line_at, head.len - 2 - p->line_at);
    if (p->phase == MK__PARSE_START) {
        /* empty lines before the request line are skipped: RFC 9112 section 2.2 */
        if (line.len == 0)
            return ++p->empty_lines > EMPTY_LINES_MAX ? -400 : MK_AGAIN;
        int err = read_request_line(p, line);
        p->phase = MK__PARSE_FIELDS;
        return err ? err : MK_AGAIN;
    }
    if (line.len == 0) {
        p->phase = MK__PARSE_DONE;
        return 0;
    }
    if (p->n_fields >= limits->fields_max) /* may be above the limit, if a reload has lowered it */
        return -431;
    return mk__parse_fields(p, fields, limits->fields_max, head) ? MK_AGAIN : -400;
}

/* Returns the status for a request line that is too long: because of its method (-501) or its target (-414). */
static int reject_line(struct mk_head_parser *p, struct mk_str line)
{
    const char *end = line.p + line.len, *at = skip_token(line.p, end);
    if (at == end)
        return -501;
    set_method(p, mk_str(line.p, (size_t)(at - line.p))); /* a response to HEAD has no body */
    return *at == ' ' ? -414 : -400;
}

/*
 * Checks the lengths of the current line, of which `len - p->line_at` bytes are there without an LF, and of the head.
 * Returns MK_AGAIN or a negative status.
 */
static int check_length(struct mk_head_parser *p, const struct mk__parse_limits *limits, const char *head, size_t len)
{
    if (p->phase == MK__PARSE_START && len - p->line_at > limits->line_bytes_max + 1)
        return reject_line(p, mk_str(head + p->line_at, limits->line_bytes_max));
    return len >= limits->head_bytes_max || len >= HEAD_BYTES_LIMIT ? -431 : MK_AGAIN;
}

/* Most heads are well-formed and come as a whole. mk__parse_head() reads the lines that are left. */
static void read_usual_fields(struct mk_head_parser *p, struct mk_field *fields, const struct mk__parse_limits *limits,
                              struct mk_str head)
{
    if (head.len > limits->head_bytes_max)
        head.len = limits->head_bytes_max;
    if (p->phase == MK__PARSE_FIELDS && p->seen_len == p->line_at) {
        mk__parse_fields(p, fields, limits->fields_max, head);
        p->seen_len = p->line_at;
    }
}

int mk__parse_head(struct mk_head_parser *p, struct mk_field *fields, const struct mk__parse_limits *limits,
                   struct mk_str head)
{
    if (head.len > HEAD_BYTES_LIMIT)
        head.len = HEAD_BYTES_LIMIT;
    assert(p->phase != MK__PARSE_DONE && p->line_at <= p->seen_len && p->seen_len <= head.len);
    for (;;) {
        read_usual_fields(p, fields, limits, head);
        if (p->seen_len == head.len)
            break;
        char first = head.p[p->line_at];
        if (p->phase == MK__PARSE_START && !(classes[(unsigned char)first] & TOKEN) && first != '\r' && first != '\n')
            return -400; /* a TLS handshake, for example, which may have no line end */
        const char *at = head.p + p->seen_len;
        size_t left = head.len - p->seen_len;
        const char *lf = left >= 2 && at[0] == '\r' && at[1] == '\n' ? at + 1 : memchr(at, '\n', left);
        if (!lf) {
            p->seen_len = (uint16_t)head.len;
            break;
        }
        size_t end = (size_t)(lf - head.p);
        int r = check_length(p, limits, head.p, end); /* the result must not depend on how the input was split */
        if (r != MK_AGAIN)
            return r;
        if (end == p->line_at || lf[-1] != '\r')
            return -400; /* a bare LF */
        r = read_line(p, fields, limits, mk_str(head.p, end + 1));
        p->seen_len = p->line_at = (uint16_t)(end + 1);
        if (r == 0)
            p->head_len = (uint16_t)(end + 1);
        if (r != MK_AGAIN)
            return r;
    }
    return check_length(p, limits, head.p, head.len);
}
