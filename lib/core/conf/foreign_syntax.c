// SPDX-License-Identifier: Apache-2.0
/*
 * The syntax of nginx, Apache, lighttpd and Caddy, as tables (conf/foreign_syntax.h).
 */
#include "conf/foreign_syntax.h"

#include <stdio.h>

static struct mk_str skip_bytes(struct mk_str s, size_t n)
{
    return n < s.len ? mk_str_after(s, n) : MK_STR("");
}

static void set_error(struct mk__scan_line *l, size_t at, const char *sentence, const char *more)
{
    l->kind = MK__SCAN_ERROR;
    l->col = (uint32_t)at + 1;
    snprintf(l->error, sizeof(l->error), "%s%s", sentence, more);
}

/* ── comments ── */

/* A comment that may end in a later line has its end. */
static const struct {
    struct mk_str start, end;
    const char *sentence;
} comments[] = {
    {MK_STR("//"), {0}, "a comment begins with #, not with //"},
    {MK_STR("/*"), MK_STR("*/"), "a comment begins with # in each of its lines, not with /*"},
    {MK_STR("<!--"), MK_STR("-->"), "a comment begins with # in each of its lines, not with <!--"},
    {MK_STR(";"), {0}, "a comment begins with #, not with a semicolon"},
};

static bool contains_text(struct mk_str s, struct mk_str part)
{
    return s.len && memmem(s.p, s.len, part.p, part.len);
}

static bool scan_comment(struct mk__scan *s, struct mk__scan_line *l, struct mk_str text, size_t indent)
{
    struct mk_str rest = skip_bytes(text, indent);
    if (s->comment_end.len) {
        if (contains_text(rest, s->comment_end))
            s->comment_end = MK_STR_NONE;
        return true;
    }
    for (size_t i = 0; i < MK_COUNT_OF(comments); i++) {
        if (!mk_str_starts(rest, comments[i].start))
            continue;
        if (comments[i].end.len && !contains_text(skip_bytes(rest, comments[i].start.len), comments[i].end))
            s->comment_end = comments[i].end;
        set_error(l, indent, comments[i].sentence, "");
        return true;
    }
    return false;
}

bool mk__foreign_syntax_is_comment(struct mk_str word)
{
    return mk_str_starts(word, MK_STR("//")) || mk_str_starts(word, MK_STR("/*"));
}

/* ── blocks ── */

#define A_HOST "; a host is a file of sites/ that begins with [HOST]"
#define SOME_PATHS \
    "; a section for some paths has a line Match, such as [HEADERS], [AUTH], [ALIAS] and [RULES], in a file of sites/"
#define A_BACKEND "; a backend is a section [PROXY], in a file of sites/"
#define A_CONDITION "; conditions are lines When in [REDIRECT] and [REWRITE]"
#define THE_SERVER "; what holds for the whole server is in [SERVER] of monkey.conf"

/* The first word of a block, and what is here in its place. */
static const struct {
    struct mk_str word;
    const char *here;
} blocks[] = {
    {MK_STR("server"), A_HOST},
    {MK_STR("VirtualHost"), A_HOST},
    {MK_STR("$HTTP[\"host\"]"), A_HOST},
    {MK_STR("location"), SOME_PATHS},
    {MK_STR("LocationMatch"), SOME_PATHS},
    {MK_STR("Directory"), SOME_PATHS},
    {MK_STR("DirectoryMatch"), SOME_PATHS},
    {MK_STR("Files"), SOME_PATHS},
    {MK_STR("FilesMatch"), SOME_PATHS},
    {MK_STR("handle"), SOME_PATHS},
    {MK_STR("handle_path"), SOME_PATHS},
    {MK_STR("route"), SOME_PATHS},
    {MK_STR("$HTTP[\"url\"]"), SOME_PATHS},
    {MK_STR("http"), THE_SERVER},
    {MK_STR("events"), THE_SERVER},
    {MK_STR("stream"), "; this server passes requests on, not connections"},
    {MK_STR("upstream"), A_BACKEND},
    {MK_STR("Proxy"), A_BACKEND},
    {MK_STR("reverse_proxy"), A_BACKEND},
    {MK_STR("if"), A_CONDITION},
    {MK_STR("map"), A_CONDITION},
    {MK_STR("IfModule"), "; a section loads its plugin"},
    {MK_STR("IfDefine"), "; write ${NAME} for a variable of the environment or of @SET"},
    {MK_STR("types"), "; types of files are lines \"ext type/subtype\" in [MIMETYPES] of monkey.mime"},
    {MK_STR("Limit"), "; methods are a line When method in [RULES], in a file of sites/"},
    {MK_STR("LimitExcept"), "; methods are a line When method in [RULES], in a file of sites/"},
    {MK_STR("limit_except"), "; methods are a line When method in [RULES], in a file of sites/"},
    {MK_STR("RequireAll"), "; access is limited by [RULES] and [AUTH], in a file of sites/"},
    {MK_STR("RequireAny"), "; access is limited by [RULES] and [AUTH], in a file of sites/"},
    {MK_STR("$SERVER[\"socket\"]"), "; listeners are lines Listen in [SERVER] of monkey.conf"},
    {MK_STR("tls"), "; certificates are in [TLS], in a file of sites/"},
};

/* Caddy begins a host with its addresses: "example.org {", ":80 {". */
static bool is_address(struct mk_str word)
{
    return word.len && word.p[0] != '$' && word.p[0] != '@' && (contains_text(word, MK_STR(".")) || word.p[0] == ':');
}

static const char *find_block(struct mk_str word)
{
    for (size_t i = 0; i < MK_COUNT_OF(blocks); i++)
        if (mk_str_ieq(word, blocks[i].word))
            return blocks[i].here;
    return is_address(word) ? A_HOST : "";
}

/* What a line has to do with blocks: nginx, lighttpd and Caddy write them in braces, Apache in angle brackets. */
struct block_line {
    struct mk_str word;
    bool opens, closes, angle;
};

/* Returns whether a line opens a block: its last word ends with a brace, which is not that of a `${`. */
static bool opens_brace(struct mk_str text)
{
    struct mk__scan_word word, last = {MK_STR_NONE, false};
    const char *error;

    while (mk__scan_word(&text, &word, &error) > 0)
        last = word;
    size_t n = last.raw.len;
    return !error && !last.quoted && n && last.raw.p[n - 1] == '{' && (n == 1 || last.raw.p[n - 2] != '$');
}

/* Returns whether a line that is no key, because it is not indented, has a whole block. */
static bool is_whole_block(struct mk_str text, size_t indent)
{
    struct mk_str line = mk_str_trim(text);
    return indent == 0 && line.p[line.len - 1] == '}' && contains_text(line, MK_STR(" {"));
}

static struct block_line read_block(struct mk_str text, size_t indent)
{
    struct mk_str rest = skip_bytes(text, indent);
    struct block_line b = {.closes = rest.p[0] == '}', .opens = opens_brace(rest), .angle = false};
    if (is_whole_block(text, indent))
        b = (struct block_line){.closes = true, .opens = true};
    char second = rest.len > 1 ? mk_lower(rest.p[1]) : '\0';
    if (rest.p[0] == '<' && (second == '/' || (second >= 'a' && second <= 'z')))
        b = (struct block_line){.angle = true, .closes = second == '/', .opens = second != '/'};
    rest = skip_bytes(rest, b.angle ? 1 : 0);
    b.word = mk_str_until(rest, " \t{>");
    return b;
}

static void report_block(struct mk__scan_line *l, const struct block_line *b, size_t indent)
{
    static const char braces[] = "braces are not used: a section begins with a line [NAME], and its keys are indented "
                                 "below it, without a semicolon at their end";
    static const char brackets[] = "<...> is not used: a section begins with a line [NAME], and its keys are indented "
                                   "below it";
    set_error(l, indent, b->angle ? brackets : braces, b->opens ? find_block(b->word) : "");
}

/* Reports a block that is not within another one, and an end without a block if no block was reported. */
static bool scan_block(struct mk__scan *s, struct mk__scan_line *l, struct mk_str text, size_t indent)
{
    struct block_line b = read_block(text, indent);
    bool outer = s->blocks == 0;

    if (!b.opens && !b.closes)
        return !outer;
    if (outer && (b.opens || !s->had_blocks))
        report_block(l, &b, indent);
    s->blocks += b.opens;
    s->blocks -= b.closes && s->blocks > 0;
    s->had_blocks = true;
    return true;
}

bool mk__foreign_syntax_scan(struct mk__scan *s, struct mk__scan_line *line, struct mk_str text, size_t indent)
{
    bool within_block = s->blocks > 0 && !s->comment_end.len;
    return (!within_block && scan_comment(s, line, text, indent)) || scan_block(s, line, text, indent);
}

/* ── keys ── */

/* Returns the length of a sign that separates keys from values; 0: there is none. */
static size_t count_sign(struct mk_str s)
{
    static const struct mk_str signs[] = {MK_STR("=>"), MK_STR(":="), MK_STR("+="), MK_STR("="), MK_STR(":")};
    for (size_t i = 0; i < MK_COUNT_OF(signs); i++)
        if (mk_str_starts(s, signs[i]))
            return signs[i].len;
    return 0;
}

bool mk__foreign_syntax_is_sign(struct mk_str word)
{
    return word.len && count_sign(word) == word.len;
}

/* Finds an equals sign in a name, or a colon at its end. Returns the length of the name without it. */
static size_t find_sign(struct mk_str name)
{
    size_t equals = mk_str_until(name, "=").len;
    bool colon = name.len > 1 && name.p[name.len - 1] == ':';
    if (equals > 1 && equals < name.len && strchr(":+", name.p[equals - 1]))
        equals--;
    return equals == name.len && colon ? name.len - 1 : equals;
}

bool mk__foreign_syntax_split_key(const struct mk__scan_line *line, struct mk__foreign_key *ret)
{
    const char *end = line->value.len ? line->value.p + line->value.len : line->name.p + line->name.len;
    struct mk_str value = mk_str_until(line->value, " \t");
    size_t n = find_sign(line->name), bytes;
    const char *sign = line->name.p + n;

    if (n == line->name.len) { /* it may be a word: "= value" */
        bytes = value.len;
        sign = mk__foreign_syntax_is_sign(value) ? value.p : NULL;
    } else {
        bytes = count_sign(skip_bytes(line->name, n));
    }
    if (!n || !sign || !bytes)
        return false;
    ret->name = mk_str(line->name.p, n);
    ret->value = mk_str_trim(mk_str(sign + bytes, (size_t)(end - sign) - bytes));
    ret->sign = sign[0] == ':' && bytes == 1 ? ':' : '=';
    ret->within = n + bytes < line->name.len;
    ret->col = line->col + (uint32_t)(sign - line->name.p);
    return true;
}

/* ── paths ── */

static const struct {
    struct mk_str start;
    const char *here;
} paths[] = {
    {MK_STR("~/"), "~ is not replaced by a folder here: write ${HOME}/ or the whole path"},
    {MK_STR("$HOME/"), "a variable has braces: write ${HOME}/ or the whole path"},
    {MK_STR("file://"), "a path is not a URL: write it without file://"},
    {MK_STR("http://"), "a path is not a URL: a folder or a file of this machine is needed"},
    {MK_STR("https://"), "a path is not a URL: a folder or a file of this machine is needed"},
    {MK_STR("'"), "single quotes become part of the path: put it in \"double quotes\", or in none"},
    {MK_STR("\xe2\x80\x9c"), "these quotes become part of the path: put it in \"straight quotes\", or in none"},
    {MK_STR("\xe2\x80\x9e"), "these quotes become part of the path: put it in \"straight quotes\", or in none"},
};

const char *mk__foreign_syntax_check_path(struct mk_str path)
{
    for (size_t i = 0; i < MK_COUNT_OF(paths); i++)
        if (mk_str_starts(path, paths[i].start))
            return paths[i].here;
    return NULL;
}
