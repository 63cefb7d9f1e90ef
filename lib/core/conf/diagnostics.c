// SPDX-License-Identifier: Apache-2.0
/*
 * Records, prints and lists diagnostics:
 *
 *     monkey.conf:3:5: error: unknown key "Workerss" in [SERVER]; did you mean "Workers"?
 *         Workerss 2
 *         ^
 *     included from main.conf:7
 *
 * Control bytes of files and names are replaced, so that they do not reach the terminal.
 */
#include "conf/internal.h"
#include "conf/scan.h"
#include "conf/suggest.h"
#include "conf/value.h"

#include <monkey/base/escape.h>

#include <assert.h>
#include <stdio.h>

enum {
    DIAGNOSTICS_MAX = 100,
    TEXT_BYTES_MAX = MK__SCAN_LINE_MAX + 1024,
    WORD_CHARACTERS_MAX = 200,
    LINE_BYTES_MAX = 160,
    PLACE_BYTES = 400,
};

/* Returns whether the diagnostic is recorded already: several hosts may report the same mistake in a server section. */
static bool is_duplicate(const struct mk__conf *conf, struct mk__conf_origin origin, const char *text)
{
    for (const struct mk__conf_diagnostic *p = conf->diagnostics; p; p = p->next)
        if (memcmp(&p->origin, &origin, sizeof(origin)) == 0 && mk_str_eq(p->text, mk_str_c(text)))
            return true;
    return false;
}

/* Cuts words with many characters, so that what is said of them is seen. */
static void truncate_words(char *text)
{
    char *to = text;
    size_t len = 0;
    for (const char *at = text; *at; at++) {
        bool begins = (*at & 0xc0) != 0x80; /* a character of UTF-8 */
        if (begins)
            len = *at == ' ' ? 0 : len + 1;
        if (len <= WORD_CHARACTERS_MAX || (begins && len <= WORD_CHARACTERS_MAX + 3))
            *to++ = len <= WORD_CHARACTERS_MAX ? *at : '.';
    }
    *to = '\0';
}

void mk__conf_report(struct mk__conf *conf, bool warning, struct mk__conf_origin origin, const char *format,
                     va_list args)
{
    assert(format);
    char text[TEXT_BYTES_MAX];

    conf->errors += !warning;
    vsnprintf(text, sizeof(text), format, args);
    truncate_words(text);
    if (is_duplicate(conf, origin, text))
        return;
    if (conf->kept >= DIAGNOSTICS_MAX) {
        conf->dropped++;
        return;
    }
    conf->kept++;
    struct mk__conf_diagnostic *p = mk_arena_alloc(&conf->arena, sizeof(*p));
    struct mk_str copy = mk_arena_dup(&conf->arena, mk_str_c(text));
    if (!p || !copy.p) {
        mk__conf_out_of_memory(conf);
        return;
    }
    *p = (struct mk__conf_diagnostic){.origin = origin, .warning = warning, .text = copy};
    *conf->last_diagnostic = p;
    conf->last_diagnostic = &p->next;
}

void mk__conf_error(struct mk__conf *conf, struct mk__conf_origin origin, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mk__conf_report(conf, false, origin, format, args);
    va_end(args);
}

void mk__conf_warn(struct mk__conf *conf, struct mk__conf_origin origin, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mk__conf_report(conf, true, origin, format, args);
    va_end(args);
}

unsigned mk__conf_errors(const struct mk__conf *conf)
{
    return conf->errors;
}

void mk__conf_suppress(struct mk__conf *conf)
{
    conf->suppressed++;
}

unsigned mk__conf_all_errors(const struct mk__conf *conf)
{
    return conf->errors + conf->suppressed;
}

static void print_safe(struct mk_str s, struct mk_buf *out)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        mk_buf_addc(out, (c < 0x20 && c != '\t') || c == 0x7f ? '?' : s.p[i]);
    }
}

void mk__conf_origin_print(struct mk__conf_origin origin, struct mk_buf *out)
{
    print_safe(origin.source ? mk_str_c(origin.source->name) : MK_STR("default"), out);
    if (origin.line)
        mk_buf_addf(out, ":%u", origin.line);
}

struct mk_str mk_conf_place(const struct mk_conf_value *value, struct mk_arena *arena)
{
    MK_BUF_ON_STACK(place, PLACE_BYTES);
    const struct mk__value_source *source = value->origin;
    if (source)
        mk__conf_origin_print(source->origin, &place);
    return mk_arena_dup(arena, mk_buf_str(&place));
}

static struct mk_str find_line(struct mk_str text, uint32_t line)
{
    assert(line);
    for (;;) {
        const char *end = text.len ? memchr(text.p, '\n', text.len) : NULL;
        size_t len = end ? (size_t)(end - text.p) : text.len;
        if (--line == 0)
            return mk_str(text.p, len && text.p[len - 1] == '\r' ? len - 1 : len);
        if (!end)
            return MK_STR_NONE;
        text = mk_str(end + 1, text.len - len - 1);
    }
}

/*
 * Prints a caret below the byte. Tabs are copied, so that their width does not matter; later bytes of a UTF-8 character
 * have no width.
 */
static void print_caret(struct mk_str line, uint32_t col, struct mk_buf *out)
{
    assert(col);
    for (size_t i = 0; i + 1 < col && i < line.len; i++) {
        if (line.p[i] == '\t')
            mk_buf_addc(out, '\t');
        else if (((unsigned char)line.p[i] & 0xc0) != 0x80)
            mk_buf_addc(out, ' ');
    }
    mk_buf_adds(out, MK_STR("^\n"));
}

struct mk_str mk__diagnostics_line(struct mk__conf_origin origin)
{
    return origin.source && origin.line ? find_line(origin.source->text, origin.line) : MK_STR_NONE;
}

static void print_line(struct mk__conf_origin origin, struct mk_buf *out)
{
    struct mk_str line = mk__diagnostics_line(origin);

    if (!line.len)
        return;
    if (line.len > LINE_BYTES_MAX)
        line.len = LINE_BYTES_MAX;
    print_safe(line, out);
    mk_buf_addc(out, '\n');
    if (origin.col && origin.col <= line.len + 1)
        print_caret(line, origin.col, out);
}

static void print_diagnostic(const struct mk__conf_diagnostic *p, bool as_warnings, struct mk_buf *out)
{
    if (p->origin.source) {
        mk__conf_origin_print(p->origin, out);
        if (p->origin.col)
            mk_buf_addf(out, ":%u", p->origin.col);
        mk_buf_adds(out, MK_STR(": "));
    }
    mk_buf_adds(out, p->warning || as_warnings ? MK_STR("warning: ") : MK_STR("error: "));
    print_safe(p->text, out);
    mk_buf_addc(out, '\n');
    print_line(p->origin, out);
    for (const struct mk__conf_source *s = p->origin.source; s && s->parent; s = s->parent) {
        mk_buf_adds(out, MK_STR("included from "));
        mk__conf_origin_print((struct mk__conf_origin){s->parent, s->parent_line, 0}, out);
        mk_buf_addc(out, '\n');
    }
}

void mk__conf_diagnostics(const struct mk__conf *conf, struct mk_buf *out)
{
    for (const struct mk__conf_diagnostic *p = conf->diagnostics; p; p = p->next)
        print_diagnostic(p, false, out);
    if (conf->dropped)
        mk_buf_addf(out, "... and %u more\n", conf->dropped);
    if (conf->out_of_memory)
        mk_buf_adds(out, MK_STR("error: out of memory while reading the configuration\n"));
}

void mk__conf_each_problem(const struct mk__conf *conf, mk__conf_problem_fn fn, void *ctx)
{
    for (const struct mk__conf_diagnostic *p = conf->diagnostics; p; p = p->next) {
        struct mk__conf_problem one = {.warning = p->warning,
                                       .place = p->origin.source ? mk_str_c(p->origin.source->name) : MK_STR(""),
                                       .line = p->origin.line,
                                       .col = p->origin.col,
                                       .text = p->text,
                                       .line_text = mk__diagnostics_line(p->origin)};
        fn(&one, ctx);
    }
}

/*
 * ── lists, as text or as JSON ──
 *
 *     {"severity":"error","file":"conf/monkey.conf","line":3,"column":5,
 *      "message":"unknown key \"Workerss\" in [SERVER]; did you mean \"Workers\"?","suggestion":"Workers"}
 *
 * Unknown values are null; `suggestion` is left out if there is none. The output is valid UTF-8, even if a file is not.
 */

static void add_string(struct mk_buf *out, const char *name, struct mk_str s)
{
    mk_buf_addf(out, "\"%s\":\"", name);
    mk_json_escape(out, s);
    mk_buf_addc(out, '"');
}

static void add_number(struct mk_buf *out, const char *name, uint32_t n)
{
    if (n)
        mk_buf_addf(out, ",\"%s\":%u", name, n);
    else
        mk_buf_addf(out, ",\"%s\":null", name);
}

/* ── diagnostics ── */

/* Returns the name in quotes or brackets that follows the last MK__SUGGEST_PHRASE. */
static struct mk_str find_suggestion(struct mk_str text)
{
    struct mk_str phrase = MK_STR(MK__SUGGEST_PHRASE);
    const char *at = NULL;
    for (size_t i = 0; i + phrase.len < text.len; i++)
        if (memcmp(text.p + i, phrase.p, phrase.len) == 0)
            at = text.p + i + phrase.len + 1;
    size_t len = at ? text.len - (size_t)(at - text.p) : 0;
    const char *end = at ? memchr(at, at[-1] == '[' ? ']' : '"', len) : NULL;
    return end ? mk_str(at, (size_t)(end - at)) : MK_STR_NONE;
}

/* Prints one diagnostic. An option of the command line is not a file: its name precedes the message. */
static void print_json(const struct mk__conf_diagnostic *p, bool as_warnings, struct mk_buf *out)
{
    const struct mk__conf_source *source = p->origin.source;
    struct mk_str suggestion = find_suggestion(p->text);
    bool option = source && source->level == MK__CONF_OPTION;

    mk_buf_addf(out, "{\"severity\":\"%s\",", p->warning || as_warnings ? "warning" : "error");
    if (source && !option)
        add_string(out, "file", mk_str_c(source->name));
    else
        mk_buf_addf(out, "\"file\":null");
    add_number(out, "line", p->origin.line);
    add_number(out, "column", p->origin.line ? p->origin.col : 0);
    mk_buf_addf(out, ",\"message\":\"");
    if (option) {
        mk_json_escape(out, mk_str_c(source->name));
        mk_buf_addf(out, ": ");
    }
    mk_json_escape(out, p->text);
    mk_buf_addc(out, '"');
    if (suggestion.p) {
        mk_buf_addc(out, ',');
        add_string(out, "suggestion", suggestion);
    }
    mk_buf_addc(out, '}');
}

static bool is_same_origin(struct mk__conf_origin a, struct mk__conf_origin b)
{
    if (!a.source || !b.source)
        return a.source == b.source;
    return a.line == b.line && strcmp(a.source->name, b.source->name) == 0;
}

static bool is_known(const struct mk__conf *known, const struct mk__conf_diagnostic *p)
{
    for (const struct mk__conf_diagnostic *k = known ? known->diagnostics : NULL; k; k = k->next)
        if (mk_str_eq(k->text, p->text) && is_same_origin(k->origin, p->origin))
            return true;
    return false;
}

void mk__conf_list_diagnostics(const struct mk__conf *conf, const struct mk__conf *known,
                               struct mk__conf_list_format form, struct mk_buf *out, struct mk__conf_counts *count)
{
    for (const struct mk__conf_diagnostic *p = conf->diagnostics; p; p = p->next) {
        if (is_known(known, p))
            continue;
        if (form.json && count->errors + count->warnings)
            mk_buf_adds(out, MK_STR(",\n"));
        ++*(p->warning || form.as_warnings ? &count->warnings : &count->errors);
        (form.json ? print_json : print_diagnostic)(p, form.as_warnings, out);
    }
    *(form.as_warnings ? &count->warnings : &count->errors) += known ? 0 : conf->dropped;
    if (conf->dropped && !known && !form.json)
        mk_buf_addf(out, "... and %u more\n", conf->dropped);
}
