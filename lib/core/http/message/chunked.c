// SPDX-License-Identifier: Apache-2.0
/*
 * The decoder of the chunked transfer coding. Responsible for strict framing and its limits; the caller counts and uses
 * the bytes of the body.
 *
 *     ┌► SIZE ─► extensions ─► SIZE_LF ─► DATA ─► DATA_CR ─► DATA_LF ─┐
 *     └──────────────────────────┼────────────────────────────────────┘
 *                             size 0 ─► TRAILER ⇄ name: value CRLF ─► END_LF ─► done
 *
 * A table of states and byte classes. A transition that is not in the table is malformed: a bare CR or LF, a control
 * byte, a blank where the grammar has none. A second table has the transitions by which responses recover.
 */
#include <monkey/base/chunked.h>
#include <monkey/base/escape.h>

#include <assert.h>
#include <errno.h>

enum class {
    BAD,
    BLANK, /* SP HTAB */
    CR,
    LF,
    HEX,   /* a digit of a size; also allowed in tokens */
    TOKEN, /* the other bytes of a token */
    SEMICOLON,
    EQUALS,
    COLON,
    QUOTE,
    BACKSLASH,
    TEXT, /* the other visible bytes and obs-text */
    CLASSES,
};

/* count_byte() depends on the order of the groups. */
enum state {
    BROKEN,
    SIZE_FIRST,
    SIZE,
    /* extensions */
    EXT_BLANK, /* before a ";" */
    EXT_NAME_BLANK,
    EXT_NAME,
    EXT_NAME_END,
    EXT_VALUE_BLANK,
    EXT_VALUE,
    EXT_QUOTED,
    EXT_ESCAPED,
    EXT_QUOTED_END,
    /* the end of a chunk line, and data */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    /* the trailer section */
    TRAILER,
    TRAILER_NAME,
    TRAILER_NAME_BLANK, /* before a ":" */
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    DONE,
    STATES,
};

static const uint8_t classes[256] = {
    ['\t'] = BLANK,         [' '] = BLANK,         ['\r'] = CR,           ['\n'] = LF,           ['0' ... '9'] = HEX,
    ['A' ... 'F'] = HEX,    ['a' ... 'f'] = HEX,   ['G' ... 'Z'] = TOKEN, ['g' ... 'z'] = TOKEN, ['!'] = TOKEN,
    ['#' ... '\''] = TOKEN, ['*' ... '+'] = TOKEN, ['-' ... '.'] = TOKEN, ['^' ... '`'] = TOKEN, ['|'] = TOKEN,
    ['~'] = TOKEN,          [';'] = SEMICOLON,     ['='] = EQUALS,        [':'] = COLON,         ['"'] = QUOTE,
    ['\\'] = BACKSLASH,     ['(' ... ')'] = TEXT,  [','] = TEXT,          ['/'] = TEXT,          ['<'] = TEXT,
    ['>' ... '@'] = TEXT,   ['['] = TEXT,          [']'] = TEXT,          ['{'] = TEXT,          ['}'] = TEXT,
    [0x80 ... 0xff] = TEXT,
};

#define TOKENS(to) [HEX] = to, [TOKEN] = to
#define VISIBLE(to) TOKENS(to), [SEMICOLON] = to, [EQUALS] = to, [COLON] = to, [TEXT] = to

static const uint8_t transitions[STATES][CLASSES] = {
    [SIZE_FIRST] = {[HEX] = SIZE},
    [SIZE] = {[HEX] = SIZE, [BLANK] = EXT_BLANK, [SEMICOLON] = EXT_NAME_BLANK, [CR] = SIZE_LF},
    [EXT_BLANK] = {[BLANK] = EXT_BLANK, [SEMICOLON] = EXT_NAME_BLANK},
    [EXT_NAME_BLANK] = {[BLANK] = EXT_NAME_BLANK, TOKENS(EXT_NAME)},
    [EXT_NAME] = {TOKENS(EXT_NAME), [BLANK] = EXT_NAME_END, [EQUALS] = EXT_VALUE_BLANK, [SEMICOLON] = EXT_NAME_BLANK,
                  [CR] = SIZE_LF},
    [EXT_NAME_END] = {[BLANK] = EXT_NAME_END, [EQUALS] = EXT_VALUE_BLANK, [SEMICOLON] = EXT_NAME_BLANK},
    [EXT_VALUE_BLANK] = {[BLANK] = EXT_VALUE_BLANK, TOKENS(EXT_VALUE), [QUOTE] = EXT_QUOTED},
    [EXT_VALUE] = {TOKENS(EXT_VALUE), [BLANK] = EXT_BLANK, [SEMICOLON] = EXT_NAME_BLANK, [CR] = SIZE_LF},
    [EXT_QUOTED] = {VISIBLE(EXT_QUOTED), [BLANK] = EXT_QUOTED, [BACKSLASH] = EXT_ESCAPED, [QUOTE] = EXT_QUOTED_END},
    [EXT_ESCAPED] = {VISIBLE(EXT_QUOTED), [BLANK] = EXT_QUOTED, [BACKSLASH] = EXT_QUOTED, [QUOTE] = EXT_QUOTED},
    [EXT_QUOTED_END] = {[BLANK] = EXT_BLANK, [SEMICOLON] = EXT_NAME_BLANK, [CR] = SIZE_LF},
    [SIZE_LF] = {[LF] = DATA},
    [DATA_CR] = {[CR] = DATA_LF},
    [DATA_LF] = {[LF] = SIZE_FIRST},
    [TRAILER] = {TOKENS(TRAILER_NAME), [CR] = END_LF},
    [TRAILER_NAME] = {TOKENS(TRAILER_NAME), [COLON] = TRAILER_VALUE},
    [TRAILER_VALUE] = {VISIBLE(TRAILER_VALUE), [BLANK] = TRAILER_VALUE, [QUOTE] = TRAILER_VALUE,
                       [BACKSLASH] = TRAILER_VALUE, [CR] = TRAILER_LF},
    [TRAILER_LF] = {[LF] = TRAILER},
    [END_LF] = {[LF] = DONE},
};

/* Where a malformed byte is found, by the first state that it may be in. */
static const struct {
    uint8_t from;
    const char *text;
} faults[] = {
    {TRAILER, "a line of its trailer section is malformed"},
    {DATA_CR, "a chunk has no CRLF at its end"},
    {SIZE_LF, "a line with the size of a chunk has a CR without LF"},
    {EXT_BLANK, "an extension of a chunk is malformed"},
    {SIZE_FIRST, "the size of a chunk is malformed"},
};

void mk_chunked_init(struct mk_chunked *c, const struct mk_chunked_limits *limits)
{
    *c = (struct mk_chunked){.limits = *limits, .state = SIZE_FIRST};
}

static int set_broken(struct mk_chunked *c, int err)
{
    c->broken_in = c->state;
    c->state = BROKEN;
    return err;
}

const char *mk_chunked_fault(const struct mk_chunked *c)
{
    unsigned i = 0;
    while (i < MK_COUNT_OF(faults) - 1 && c->broken_in < faults[i].from)
        i++;
    return faults[i].text;
}

/*
 * What a response may have besides: blanks behind a size, extensions of any form, which end with their line even within
 * quotes, and blanks before a colon (RFC 9112 section 5.1). None of them moves the end of a line.
 */
static enum state recover_state(enum state from, enum class class)
{
    if (from >= EXT_NAME_BLANK && from <= EXT_QUOTED_END && class != BAD && class != LF)
        return class == CR ? SIZE_LF : EXT_NAME;
    if (from == EXT_BLANK && class == CR)
        return SIZE_LF;
    if ((from == TRAILER_NAME || from == TRAILER_NAME_BLANK) && class == BLANK)
        return TRAILER_NAME_BLANK;
    return from == TRAILER_NAME_BLANK && class == COLON ? TRAILER_VALUE : BROKEN;
}

/* Counts a byte of framing for the limits. Returns false above one of them. */
static bool count_byte(struct mk_chunked *c, enum state from, enum state to)
{
    if (from >= TRAILER) {
        c->trailer_count += from == TRAILER && to == TRAILER_NAME;
        return ++c->trailer_bytes <= c->limits.trailer_bytes_max && c->trailer_count <= c->limits.trailer_count_max;
    }
    if (from > SIZE_LF)
        return true;
    c->line_bytes = from == SIZE_FIRST ? 1 : c->line_bytes + 1;
    c->ext_bytes += to >= EXT_BLANK && to <= EXT_QUOTED_END;
    return c->line_bytes <= c->limits.line_bytes_max && c->ext_bytes <= c->limits.ext_bytes_total_max;
}

/* Adds a digit to the size of a chunk. Returns false after 16 digits, so that the size cannot overflow. */
static bool add_digit(struct mk_chunked *c, enum state from, char digit)
{
    if (from == SIZE_FIRST)
        c->left = c->digits = 0;
    c->left = c->left << 4 | (uint64_t)mk_hex_value(digit);
    return ++c->digits <= 16;
}

/* Decodes one byte of framing. Returns 0, -EINVAL or -EMSGSIZE. */
static int decode_byte(struct mk_chunked *c, char byte)
{
    enum state from = c->state, to = transitions[from][classes[(unsigned char)byte]];
    assert(from < STATES && from != DATA && from != DONE);

    if (to == BROKEN && c->recovers)
        to = recover_state(from, classes[(unsigned char)byte]);
    if (to == BROKEN || (to == SIZE && !add_digit(c, from, byte)))
        return set_broken(c, -EINVAL);
    if (!count_byte(c, from, to))
        return set_broken(c, -EMSGSIZE);
    if (c->trailers && from >= TRAILER && to < END_LF && to != TRAILER_NAME_BLANK)
        mk_buf_addc(c->trailers, byte);
    c->state = to == DATA && !c->left ? TRAILER : to;
    c->done = to == DONE;
    return 0;
}

uint64_t mk_chunked_skippable(const struct mk_chunked *c)
{
    return c->state == DATA ? c->left : 0;
}

void mk_chunked_skip(struct mk_chunked *c, uint64_t n)
{
    assert(c->state == DATA && n > 0 && n <= c->left);
    c->left -= n;
    if (!c->left)
        c->state = DATA_CR;
}

ssize_t mk_chunked_decode(struct mk_chunked *c, const char *in, size_t len, struct mk_str *ret_data)
{
    *ret_data = MK_STR_NONE;
    for (size_t i = 0; i < len && !c->done; i++) {
        if (c->state == DATA) {
            size_t n = len - i < c->left ? len - i : (size_t)c->left;
            *ret_data = mk_str(in + i, n);
            mk_chunked_skip(c, n);
            return (ssize_t)(i + n);
        }
        int err = decode_byte(c, in[i]);
        if (err)
            return err;
        if (c->done)
            return (ssize_t)(i + 1);
    }
    return c->done ? 0 : (ssize_t)len;
}

bool mk_chunked_next_trailer(struct mk_str *rest, struct mk_str *ret_name, struct mk_str *ret_value)
{
    const char *colon = rest->len ? memchr(rest->p, ':', rest->len) : NULL;
    if (!colon)
        return false;
    const char *end = rest->p + rest->len, *value = colon + 1, *cr = memchr(value, '\r', (size_t)(end - value));
    assert(cr && cr + 1 < end && cr[1] == '\n'); /* the decoder has checked the lines */
    *ret_name = mk_str(rest->p, (size_t)(colon - rest->p));
    *ret_value = mk_str_trim(mk_str(value, (size_t)(cr - value)));
    *rest = mk_str(cr + 2, (size_t)(end - cr - 2));
    return true;
}
