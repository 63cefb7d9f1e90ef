// SPDX-License-Identifier: Apache-2.0
/*
 * A state machine over the bytes of an HTML text. Each state is a function that returns the next one.
 */
#include "template.h"

#include <assert.h>

enum markup_state {
    STATE_TEXT,
    STATE_TAG_OPEN,
    STATE_END_TAG_OPEN,
    STATE_TAG_NAME,
    STATE_BEFORE_NAME,
    STATE_NAME,
    STATE_AFTER_NAME,
    STATE_BEFORE_VALUE,
    STATE_VALUE,
    STATE_UNQUOTED,
    STATE_DECLARATION, /* after "<!" */
    STATE_BOGUS,       /* to the next ">" */
    STATE_COMMENT,
    STATE_RAW, /* and RCDATA: `kind` tells which */
    STATE_RAW_OPEN,
    STATE_RAW_END,
    STATES
};

/* What the content of an element is. */
enum content { CONTENT_NORMAL, CONTENT_TEXT_ONLY, CONTENT_RAW, CONTENT_SCRIPT, CONTENT_STYLE };

static const struct {
    struct mk_str name;
    uint8_t content;
} elements[] = {
    {MK_STR("script"), CONTENT_SCRIPT}, {MK_STR("style"), CONTENT_STYLE},        {MK_STR("title"), CONTENT_TEXT_ONLY},
    {MK_STR("iframe"), CONTENT_RAW},    {MK_STR("textarea"), CONTENT_TEXT_ONLY}, {MK_STR("xmp"), CONTENT_RAW},
    {MK_STR("noembed"), CONTENT_RAW},   {MK_STR("noframes"), CONTENT_RAW},       {MK_STR("plaintext"), CONTENT_RAW},
};

static const struct {
    struct mk_str name;
    uint8_t place;
} attributes[] = {
    {MK_STR("href"), MARKUP_URL},       {MK_STR("src"), MARKUP_URL},          {MK_STR("action"), MARKUP_URL},
    {MK_STR("formaction"), MARKUP_URL}, {MK_STR("poster"), MARKUP_URL},       {MK_STR("data"), MARKUP_URL},
    {MK_STR("cite"), MARKUP_URL},       {MK_STR("ping"), MARKUP_URL},         {MK_STR("background"), MARKUP_URL},
    {MK_STR("xlink:href"), MARKUP_URL}, {MK_STR("style"), MARKUP_CODE},       {MK_STR("srcdoc"), MARKUP_CODE},
    {MK_STR("srcset"), MARKUP_CODE},    {MK_STR("imagesrcset"), MARKUP_CODE},
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool is_letter(char c)
{
    return mk_lower(c) >= 'a' && mk_lower(c) <= 'z';
}

static struct mk_str tag_name(const struct markup *m)
{
    return mk_str(m->tag, m->tag_len);
}

static struct mk_str attribute_name(const struct markup *m)
{
    return mk_str(m->attribute, m->attribute_len);
}

static enum content find_content(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(elements); i++)
        if (mk_str_eq(elements[i].name, name))
            return elements[i].content;
    return CONTENT_NORMAL;
}

static enum markup_place find_value_place(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(attributes); i++)
        if (mk_str_eq(attributes[i].name, name))
            return attributes[i].place;
    return mk_str_starts(name, MK_STR("on")) ? MARKUP_CODE : MARKUP_ATTRIBUTE;
}

/* ── tags ── */

static enum markup_state begin_tag(struct markup *m, char c, bool closing)
{
    m->closing = closing;
    m->tag[0] = mk_lower(c);
    m->tag_len = 1;
    if (!closing)
        m->kind = CONTENT_NORMAL;
    return STATE_TAG_NAME;
}

/* Is called for the ">" of a tag. */
static enum markup_state end_tag(struct markup *m)
{
    m->kind = m->closing ? CONTENT_NORMAL : find_content(tag_name(m));
    return m->kind == CONTENT_NORMAL ? STATE_TEXT : STATE_RAW;
}

static enum markup_state begin_attribute(struct markup *m, char c)
{
    m->attribute[0] = mk_lower(c);
    m->attribute_len = 1;
    return STATE_NAME;
}

static void end_attribute(struct markup *m)
{
    if (m->closing)
        return;
    m->has_script_file |= mk_str_eq(tag_name(m), MK_STR("script")) && mk_str_eq(attribute_name(m), MK_STR("src"));
    m->matched = 0;
}

/* Looks for the value "stylesheet" of <link rel>. Other attributes have such values, too, which does no harm. */
static void match_value(struct markup *m, char c)
{
    static const struct mk_str word = MK_STR("stylesheet");
    if (m->matched < word.len)
        m->matched = mk_lower(c) == word.p[m->matched] ? m->matched + 1 : UINT8_MAX;
    if (m->matched == word.len)
        m->has_style_file |= !m->closing && mk_str_eq(tag_name(m), MK_STR("link"));
}

static void append_name(char *name, uint8_t *len, char c)
{
    if (*len < MARKUP_NAME_BYTES)
        name[(*len)++] = mk_lower(c);
}

/* ── states ── */

static enum markup_state read_text(struct markup *m, char c)
{
    (void)m;
    return c == '<' ? STATE_TAG_OPEN : STATE_TEXT;
}

static enum markup_state read_tag_open(struct markup *m, char c)
{
    if (is_letter(c))
        return begin_tag(m, c, false);
    return c == '/' ? STATE_END_TAG_OPEN : c == '!' ? STATE_DECLARATION : c == '?' ? STATE_BOGUS : read_text(m, c);
}

static enum markup_state read_end_tag_open(struct markup *m, char c)
{
    return is_letter(c) ? begin_tag(m, c, true) : c == '>' ? STATE_TEXT : STATE_BOGUS;
}

static enum markup_state read_tag_name(struct markup *m, char c)
{
    if (is_space(c) || c == '/')
        return STATE_BEFORE_NAME;
    if (c == '>')
        return end_tag(m);
    append_name(m->tag, &m->tag_len, c);
    return STATE_TAG_NAME;
}

static enum markup_state read_before_name(struct markup *m, char c)
{
    return is_space(c) || c == '/' ? STATE_BEFORE_NAME : c == '>' ? end_tag(m) : begin_attribute(m, c);
}

static enum markup_state read_after_name(struct markup *m, char c)
{
    return c == '=' ? STATE_BEFORE_VALUE : is_space(c) ? STATE_AFTER_NAME : read_before_name(m, c);
}

static enum markup_state read_name(struct markup *m, char c)
{
    if (c == '=' || c == '>' || c == '/' || is_space(c)) {
        end_attribute(m);
        return read_after_name(m, c);
    }
    append_name(m->attribute, &m->attribute_len, c);
    return STATE_NAME;
}

static enum markup_state read_before_value(struct markup *m, char c)
{
    if (is_space(c))
        return STATE_BEFORE_VALUE;
    m->quote = c;
    if (c != '"' && c != '\'')
        match_value(m, c);
    return c == '"' || c == '\'' ? STATE_VALUE : c == '>' ? end_tag(m) : STATE_UNQUOTED;
}

static enum markup_state read_value(struct markup *m, char c)
{
    match_value(m, c);
    return c == m->quote ? STATE_BEFORE_NAME : STATE_VALUE;
}

static enum markup_state read_unquoted(struct markup *m, char c)
{
    match_value(m, c);
    return is_space(c) ? STATE_BEFORE_NAME : c == '>' ? end_tag(m) : STATE_UNQUOTED;
}

static enum markup_state read_bogus(struct markup *m, char c)
{
    (void)m;
    return c == '>' ? STATE_TEXT : STATE_BOGUS;
}

/* `dashes` is 1 after "<!-". The comment begins as if two had been read: "<!-->" is a whole one. */
static enum markup_state read_declaration(struct markup *m, char c)
{
    if (c == '-' && m->dashes == 0) {
        m->dashes = 1;
        return STATE_DECLARATION;
    }
    if (c == '-') {
        m->dashes = 2;
        return STATE_COMMENT;
    }
    m->dashes = 0;
    return read_bogus(m, c);
}

/* `dashes` counts those before `c`, up to 2; it is -1 after "--!". */
static enum markup_state read_comment(struct markup *m, char c)
{
    if (c == '>' && (m->dashes == 2 || m->dashes < 0)) {
        m->dashes = 0;
        return STATE_TEXT;
    }
    if (c == '-')
        m->dashes = m->dashes < 0 ? 1 : m->dashes < 2 ? (int8_t)(m->dashes + 1) : 2;
    else
        m->dashes = c == '!' && m->dashes == 2 ? -1 : 0;
    return STATE_COMMENT;
}

static enum markup_state read_raw(struct markup *m, char c)
{
    (void)m;
    return c == '<' ? STATE_RAW_OPEN : STATE_RAW;
}

static enum markup_state read_raw_open(struct markup *m, char c)
{
    m->matched = 0;
    m->has_comment_in_script |= c == '!' && m->kind == CONTENT_SCRIPT;
    return c == '/' ? STATE_RAW_END : read_raw(m, c);
}

/* Compares an end tag with the element's name, which `tag` still is. */
static enum markup_state read_raw_end(struct markup *m, char c)
{
    if (m->matched < m->tag_len && mk_lower(c) == m->tag[m->matched]) {
        m->matched++;
        return STATE_RAW_END;
    }
    if (m->matched < m->tag_len || !(is_space(c) || c == '/' || c == '>'))
        return read_raw(m, c);
    m->closing = true;
    m->kind = CONTENT_NORMAL;
    return read_before_name(m, c);
}

static enum markup_state (*const readers[STATES])(struct markup *m, char c) = {
    [STATE_TEXT] = read_text,
    [STATE_TAG_OPEN] = read_tag_open,
    [STATE_END_TAG_OPEN] = read_end_tag_open,
    [STATE_TAG_NAME] = read_tag_name,
    [STATE_BEFORE_NAME] = read_before_name,
    [STATE_NAME] = read_name,
    [STATE_AFTER_NAME] = read_after_name,
    [STATE_BEFORE_VALUE] = read_before_value,
    [STATE_VALUE] = read_value,
    [STATE_UNQUOTED] = read_unquoted,
    [STATE_DECLARATION] = read_declaration,
    [STATE_BOGUS] = read_bogus,
    [STATE_COMMENT] = read_comment,
    [STATE_RAW] = read_raw,
    [STATE_RAW_OPEN] = read_raw_open,
    [STATE_RAW_END] = read_raw_end,
};

void markup_feed(struct markup *m, char c)
{
    assert(m->state < STATES);
    m->state = (uint8_t)readers[m->state](m, c);
}

/* ── places ── */

static bool is_raw(const struct markup *m)
{
    return m->state == STATE_RAW || m->state == STATE_RAW_OPEN || m->state == STATE_RAW_END;
}

enum markup_place markup_place(const struct markup *m)
{
    switch (m->state) {
    case STATE_TEXT:
        return MARKUP_TEXT;
    case STATE_VALUE:
        return find_value_place(attribute_name(m));
    case STATE_BEFORE_VALUE:
    case STATE_UNQUOTED:
        return MARKUP_UNQUOTED;
    case STATE_DECLARATION:
    case STATE_BOGUS:
    case STATE_COMMENT:
        return MARKUP_COMMENT;
    case STATE_RAW:
        return m->kind == CONTENT_TEXT_ONLY ? MARKUP_TEXT : MARKUP_RAW;
    default:
        return is_raw(m) ? MARKUP_RAW : MARKUP_TAG;
    }
}

bool markup_is_inline_code(const struct markup *m, bool *ret_script)
{
    *ret_script = m->kind == CONTENT_SCRIPT;
    return is_raw(m) && (m->kind == CONTENT_SCRIPT || m->kind == CONTENT_STYLE);
}

/* What else counts in a state. */
enum { PART_TAG = 1, PART_ATTRIBUTE = 2, PART_QUOTE = 4, PART_DASHES = 8, PART_MATCHED = 16 };

static const uint8_t parts[STATES] = {
    [STATE_TAG_NAME] = PART_TAG,
    [STATE_BEFORE_NAME] = PART_TAG,
    [STATE_NAME] = PART_TAG | PART_ATTRIBUTE,
    [STATE_AFTER_NAME] = PART_TAG | PART_ATTRIBUTE,
    [STATE_BEFORE_VALUE] = PART_TAG | PART_ATTRIBUTE,
    [STATE_VALUE] = PART_TAG | PART_ATTRIBUTE | PART_QUOTE,
    [STATE_UNQUOTED] = PART_TAG | PART_ATTRIBUTE,
    [STATE_DECLARATION] = PART_DASHES,
    [STATE_COMMENT] = PART_DASHES,
    [STATE_RAW] = PART_TAG,
    [STATE_RAW_OPEN] = PART_TAG,
    [STATE_RAW_END] = PART_TAG | PART_MATCHED,
};

bool markup_is_same(const struct markup *a, const struct markup *b)
{
    uint8_t part = parts[a->state];
    return a->state == b->state && a->kind == b->kind &&
           (!(part & PART_TAG) || (a->closing == b->closing && mk_str_eq(tag_name(a), tag_name(b)))) &&
           (!(part & PART_ATTRIBUTE) || mk_str_eq(attribute_name(a), attribute_name(b))) &&
           (!(part & PART_QUOTE) || a->quote == b->quote) && (!(part & PART_DASHES) || a->dashes == b->dashes) &&
           (!(part & PART_MATCHED) || a->matched == b->matched);
}
