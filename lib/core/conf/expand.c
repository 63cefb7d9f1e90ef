// SPDX-License-Identifier: Apache-2.0
/*
 * Resolves quotes, escapes and variables of a value, and splits it into words in the caller's storage.
 */
#include "conf/expand.h"
#include "conf/scan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct expansion {
    const struct mk__variable *variables;
    struct mk__words *words;
    uint32_t col; /* column of the current byte */
    size_t start; /* start of the current word in the text */
    bool open, quoted;
    struct mk__expand_error *error;
};

static bool MK_PRINTF(2, 3) set_error(struct expansion *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    e->error->col = e->col;
    vsnprintf(e->error->text, sizeof(e->error->text), format, args);
    va_end(args);
    return false;
}

static void begin_word(struct expansion *e)
{
    struct mk__words *w = e->words;
    if (e->open)
        return;
    if (w->text.len)
        mk_buf_addc(&w->text, ' ');
    e->open = true;
    e->start = w->text.len;
    if (w->n >= MK__WORDS_MAX)
        return;
    w->col[w->n] = e->col;
    w->quoted[w->n] = e->quoted;
}

static void end_word(struct expansion *e)
{
    assert(!e->open || e->start <= e->words->text.len);
    struct mk__words *w = e->words;
    if (!e->open)
        return;
    e->open = false;
    if (w->n < MK__WORDS_MAX)
        w->word[w->n] = mk_str(w->text.data + e->start, w->text.len - e->start);
    w->n++;
}

static bool add_variable(struct expansion *e, struct mk_str name, struct mk_str value)
{
    if (mk_str_has_control(value))
        return set_error(e, "the value of ${%.*s} has control bytes", MK_STR_ARG(name));
    for (size_t i = 0; i < value.len; i++) {
        char c = value.p[i];
        if (!e->quoted && (c == ' ' || c == '\t')) {
            end_word(e);
        } else {
            begin_word(e);
            mk_buf_addc(&e->words->text, c);
        }
    }
    return true;
}

static const struct mk__variable *find_variable(const struct mk__variable *v, struct mk_str name)
{
    while (v && !mk_str_eq(v->name, name))
        v = v->next;
    return v;
}

static struct mk_str get_variable(const struct mk__variable *known, struct mk_str name)
{
    char cname[128];

    if (known)
        return known->value;
    if (name.len >= sizeof(cname))
        return MK_STR_NONE;
    snprintf(cname, sizeof(cname), "%.*s", MK_STR_ARG(name));
    return mk_str_c(getenv(cname));
}

/* Appends the value of a variable; `inside` is the text between the braces. */
static bool expand_variable(struct expansion *e, struct mk_str inside)
{
    assert(inside.p);
    const char *dash = memmem(inside.p, inside.len, ":-", 2);
    struct mk_str name = dash ? mk_str(inside.p, (size_t)(dash - inside.p)) : inside;
    const struct mk__variable *known = find_variable(e->variables, name);
    struct mk_str value = get_variable(known, name);

    if (known && known->failed)
        return set_error(e, "%s", "");
    e->error->unset = !dash && !value.p;
    if (dash && !value.len)
        value = mk_str(dash + 2, inside.len - name.len - 2);
    else if (!value.p)
        return set_error(e,
                         "${%.*s} is neither set with @SET nor in the environment; ${%.*s:-x} would give it a default",
                         name.len > 32 ? 32 : (int)name.len, name.p, name.len > 32 ? 32 : (int)name.len, name.p);
    return add_variable(e, name, value);
}

/* Adds the character at the start of `s`, which a backslash may escape. Returns its length there. */
static MK_COLD size_t add_character(struct expansion *e, struct mk_str s)
{
    struct mk__words *w = e->words;
    bool escaped = mk__scan_is_escape(s, e->quoted);
    begin_word(e);
    if (escaped && w->n < MK__WORDS_MAX)
        w->quoted[w->n] = true;
    mk_buf_addc(&w->text, s.p[escaped]);
    return escaped ? 2 : 1;
}

static bool expand_word(struct expansion *e, const struct mk__scan_word *word, uint32_t col)
{
    struct mk_str s = word->raw;

    e->quoted = word->quoted;
    e->col = col;
    if (word->quoted)
        begin_word(e);
    while (s.len) {
        size_t n = mk__scan_variable(s);
        e->col = col + (uint32_t)(s.p - word->raw.p) + word->quoted;
        if (n && !expand_variable(e, mk_str(s.p + 2, n - 3)))
            return false;
        s = mk_str_after(s, n ? n : add_character(e, s));
    }
    end_word(e);
    return true;
}

static void reset_words(struct mk__words *words)
{
    mk_buf_init_fixed(&words->text, words->storage, sizeof(words->storage));
    words->n = 0;
}

bool mk__expand(const struct mk__variable *variables, struct mk_str value, uint32_t col, struct mk__words *words,
                struct mk__expand_error *ret_error)
{
    struct expansion e = {.variables = variables, .words = words, .col = col, .error = ret_error};
    struct mk_str rest = value;
    struct mk__scan_word word;
    const char *error;

    *ret_error = (struct mk__expand_error){.col = col};
    reset_words(words);
    while (mk__scan_word(&rest, &word, &error) > 0) {
        const char *start = word.raw.p - word.quoted;
        if (!expand_word(&e, &word, col + (uint32_t)(start - value.p)))
            return false;
    }
    e.col = col;
    if (words->text.err)
        return set_error(&e, "its variables make the value longer than %d bytes", MK__WORDS_BYTES_MAX);
    if (words->n > MK__WORDS_MAX)
        return set_error(&e, "the value has more than %d words", MK__WORDS_MAX);
    return true;
}

void mk__words_drop_first(struct mk__words *words)
{
    assert(words->n > 1);
    size_t shift = (size_t)(words->word[1].p - words->text.data);
    words->n--;
    words->text.len -= shift;
    memmove(words->text.data, words->text.data + shift, words->text.len);
    memmove(words->word, words->word + 1, words->n * sizeof(words->word[0]));
    memmove(words->col, words->col + 1, words->n * sizeof(words->col[0]));
    memmove(words->quoted, words->quoted + 1, words->n * sizeof(words->quoted[0]));
    for (uint32_t i = 0; i < words->n; i++)
        words->word[i].p -= shift;
}

bool mk__expand_literal(struct mk_str word, struct mk__words *words)
{
    reset_words(words);
    mk_buf_adds(&words->text, word);
    words->word[0] = mk_buf_str(&words->text);
    words->col[0] = 0;
    words->quoted[0] = true;
    words->n = 1;
    return !words->text.err && !mk_str_has_control(word);
}
