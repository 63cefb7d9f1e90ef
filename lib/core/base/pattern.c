// SPDX-License-Identifier: Apache-2.0
/*
 * The patterns of <monkey/base/pattern.h>. All functions are pure, except those of regular expressions (base/regex.h).
 */
#include <monkey/base/pattern.h>

#include "base/pattern_index.h"
#include "base/regex.h"

#include <monkey/base/escape.h>

#include <assert.h>
#include <errno.h>

static int set_error(struct mk_buf *error, const char *reason)
{
    mk_buf_addf(error, "%s", reason);
    return -EINVAL;
}

static bool has_wildcard(struct mk_str text)
{
    return text.len && (memchr(text.p, '*', text.len) || memchr(text.p, '?', text.len));
}

/* Expressions of other servers have a blank behind ~. Here it would be a part of the expression, or begin a new word.
 */
static int check_blank(struct mk_pattern *pattern, struct mk_str text, struct mk_buf *error)
{
    size_t sign = text.len > 1 && text.p[1] == '*' ? 2 : 1;
    struct mk_str rest = mk_str_after(text, sign);
    pattern->text = rest;
    if (!rest.len)
        return set_error(error, "an expression stands right behind ~, without a blank: write it as ~\\.php$");
    if (!mk_is_blank(rest.p[0]))
        return 0;
    mk_buf_addf(error, "no path has this blank: write %.*s%.*s", MK_STR_ARG(mk_str(text.p, sign)),
                MK_STR_ARG(mk_str_trim(rest)));
    return -EINVAL;
}

static int parse_regex(struct mk_pattern *pattern, struct mk_str text, struct mk_arena *arena, struct mk_buf *error)
{
    size_t fault = 0;
    pattern->kind = MK_PATTERN_REGEX;
    if (check_blank(pattern, text, error) < 0)
        return -EINVAL;
    int r = mk__regex_new(&pattern->regex, text, arena, error, &fault);
    if (r == 0)
        pattern->groups = (uint16_t)mk__regex_groups(pattern->regex);
    else
        pattern->text = mk_str_after(text, fault);
    return r;
}

static struct mk_str find_last_segment(struct mk_str path)
{
    const char *slash = path.len ? memrchr(path.p, '/', path.len) : NULL;
    return slash ? mk_str(slash + 1, path.len - (size_t)(slash + 1 - path.p)) : path;
}

/* Returns where a path or a glob has a segment that no normalized path has, or NULL. */
static const char *find_abnormal(struct mk_str path)
{
    static const char *const never[] = {"//", "/./", "/../"};
    for (size_t i = 0; i < MK_COUNT_OF(never); i++) {
        const char *at = memmem(path.p, path.len, never[i], strlen(never[i]));
        if (at)
            return at;
    }
    struct mk_str last = find_last_segment(path);
    return mk_str_eq(last, MK_STR(".")) || mk_str_eq(last, MK_STR("..")) ? last.p : NULL;
}

/* Reports that the pattern is wrong at `fault`; NULL: it is not. */
static int check_fault(struct mk_pattern *pattern, const char *fault, struct mk_buf *error, const char *reason)
{
    if (!fault)
        return 0;
    pattern->text.len -= (size_t)(fault - pattern->text.p);
    pattern->text.p = fault;
    return set_error(error, reason);
}

static int check_normal(struct mk_pattern *pattern, struct mk_buf *error)
{
    return check_fault(pattern, find_abnormal(pattern->text), error,
                       "no path has empty segments or dots for names when it is compared");
}

/* Returns where a path or a glob has what only regular expressions have, or NULL. */
static const char *find_regex_sign(struct mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (memchr("\\|[^", text.p[i], 4) || (text.p[i] == '$' && i + 1 == text.len))
            return text.p + i;
    return NULL;
}

/* Returns the byte of a percent-escape at `i`; -1: there is none, or an encoded slash, which paths keep as %2F. */
static int read_escape(struct mk_str text, size_t i)
{
    int byte = mk_percent_value(text.p + i, text.len - i);
    return byte == '/' && text.p[i + 2] == 'F' ? -1 : byte;
}

/* Paths are decoded when they are compared, so that an escape never matches. */
static int check_escapes(struct mk_pattern *pattern, struct mk_str text, struct mk_buf *error)
{
    size_t first = 0;
    while (first < text.len && read_escape(text, first) < 0)
        first++;
    if (first == text.len)
        return 0;
    pattern->text = mk_str_after(text, first);
    mk_buf_adds(error, MK_STR("paths are compared without escapes: write \""));
    for (size_t i = 0; i < text.len; i++) {
        int byte = read_escape(text, i);
        if (byte == '/')
            mk_buf_adds(error, MK_STR("%2F"));
        else
            mk_buf_addc(error, byte < 0 ? text.p[i] : (char)byte);
        i += byte < 0 ? 0 : 2;
    }
    mk_buf_adds(error, MK_STR("\""));
    return -EINVAL;
}

/* Tells whether an expression begins with a byte that is no slash. After one with a quantifier the slash may follow. */
static bool begins_with_name(struct mk_str expression)
{
    return expression.len && mk_is_name_byte(expression.p[0], "-_") &&
           !(expression.len > 1 && memchr("?*{", expression.p[1], 3));
}

/*
 * Tells whether an expression, or each alternative in the group that it begins with, begins so. False also where that
 * takes more to know: behind classes, quotes and an alternative outside of the group.
 */
static MK_COLD bool has_no_slash_first(struct mk_str expression)
{
    bool in_group = mk_str_starts(expression, MK_STR("("));
    size_t start = !in_group ? 0 : mk_str_starts(expression, MK_STR("(?:")) ? 3 : 1;
    unsigned depth = in_group;
    bool all = begins_with_name(mk_str_after(expression, start));
    for (size_t i = start; all && i < expression.len; i++) {
        char c = expression.p[i];
        if (c == ')' && depth && --depth == 0 && in_group) {
            in_group = false;
            all = i + 1 == expression.len || !memchr("?*{", expression.p[i + 1], 3);
        } else if (c == '(') {
            depth++;
        } else if (c == '\\') {
            all = ++i < expression.len && expression.p[i] != 'Q';
        } else if (c == '|' && (!depth || (in_group && depth == 1))) {
            all = depth && begins_with_name(mk_str_after(expression, i + 1));
        } else if (c == '[' && in_group) {
            all = false;
        }
    }
    return all;
}

/* Reports an expression for paths whose ^ is followed by a byte that is no slash. */
static MK_COLD int check_regex_start(struct mk_pattern *pattern, struct mk_str text, struct mk_buf *error)
{
    size_t start = mk_str_starts(text, MK_STR("~*")) ? 2 : 1;
    struct mk_str rest = text.len > start ? mk_str_after(text, start + 1) : MK_STR("");
    if (!rest.len || text.p[start] != '^' || !has_no_slash_first(rest))
        return 0;
    pattern->text = mk_str_after(text, start + 1);
    mk_buf_addf(error, "paths begin with a slash: write %.*s/%.*s", (int)start + 1, text.p, MK_STR_ARG(pattern->text));
    return -EINVAL;
}

/* Returns where a path or a glob has a list in braces, as shells expand them; NULL: it has none. */
static MK_COLD const char *find_brace_list(struct mk_str text)
{
    const char *open = memchr(text.p, '{', text.len);
    const char *close = open ? memchr(open, '}', text.len - (size_t)(open - text.p)) : NULL;
    return close && memchr(open, ',', (size_t)(close - open)) ? open : NULL;
}

MK_COLD int mk_pattern_parse_expression(struct mk_pattern *pattern, struct mk_str text, struct mk_arena *arena,
                                        struct mk_buf *error)
{
    assert(text.len && text.p[0] == '~');
    *pattern = (struct mk_pattern){.text = text};
    return parse_regex(pattern, text, arena, error);
}

/* Returns the length of the name of a query's parameter, `?name=` or `?a[]=`, at `i`; 0: there is none. */
static MK_COLD size_t count_parameter_bytes(struct mk_str text, size_t i)
{
    size_t end = i + 1;
    while (end < text.len && mk_is_name_byte(text.p[end], "_-.[]"))
        end++;
    return text.p[i] == '?' && end > i + 1 && end < text.len && text.p[end] == '=' ? end - i : 0;
}

/* Returns where a pattern has a query, which is never compared; NULL: it has none. A ? alone is of globs and names. */
static MK_COLD const char *find_query(struct mk_str text)
{
    bool is_regex = text.p[0] == '~', is_exact = text.p[0] == '=';
    for (size_t i = 1; i < text.len; i++) {
        bool is_sign = text.p[i] == '?' && (!is_regex || text.p[i - 1] == '\\');
        if (is_sign && (is_exact || count_parameter_bytes(text, i)))
            return text.p + i;
    }
    return NULL;
}

MK_COLD int mk_pattern_parse(struct mk_pattern *pattern, struct mk_str text, struct mk_arena *arena,
                             struct mk_buf *error)
{
    *pattern = (struct mk_pattern){.kind = MK_PATTERN_EXACT, .text = text};
    if (text.len == 0)
        return set_error(error, "a pattern for paths is missing");
    if (check_escapes(pattern, text, error) < 0)
        return -EINVAL;
    if (check_fault(pattern, find_query(text), error,
                    "only paths are compared, without what follows ?: leave it out; some sections have \"When query "
                    "NAME =VALUE\"") < 0)
        return -EINVAL;
    if (text.p[0] == '~')
        return check_regex_start(pattern, text, error) < 0 ? -EINVAL : parse_regex(pattern, text, arena, error);
    if (text.p[0] == '=') {
        pattern->text = mk_str_after(text, 1);
        if (text.len == 1 || text.p[1] != '/')
            return set_error(error, "a path behind = starts with a slash");
        return check_normal(pattern, error);
    }
    if (mk_str_starts(text, MK_STR("^~")))
        return set_error(error, "the path of a prefix begins with its slash: leave ^~ out");
    if (text.p[0] == '\'')
        return set_error(error, "single quotes become part of the pattern: leave them out");
    if (check_fault(pattern, find_brace_list(text), error,
                    "braces list nothing here: write an expression such as ~\\.(css|js)$") < 0)
        return -EINVAL;
    bool slash = memchr(text.p, '/', text.len) != NULL;
    if (slash && text.p[0] != '/' && !mk_str_starts(text, MK_STR("**")))
        return set_error(error, "a pattern with slashes starts with one");
    if (!slash && !has_wildcard(text))
        return set_error(error, "a pattern is a path such as /downloads, or a glob such as *.css");
    pattern->kind = has_wildcard(text) ? (slash ? MK_PATTERN_GLOB : MK_PATTERN_NAME) : MK_PATTERN_PREFIX;
    if (has_wildcard(text) && text.len > MK_PATTERN_GLOB_MAX)
        return set_error(error, "a glob has at most 255 bytes");
    int err = check_fault(pattern, find_regex_sign(pattern->text), error,
                          "this is of a regular expression, which begins with ~, such as ~^/docs/.*\\.html$");
    return err == 0 && slash ? check_normal(pattern, error) : err;
}

/* The positions in a glob that the bytes of the path so far lead to; usually one or two. */
struct glob_positions {
    uint16_t at[MK_PATTERN_GLOB_MAX + 1];
    unsigned n;
};

static unsigned count_star_bytes(struct mk_str glob, size_t at)
{
    if (at >= glob.len || glob.p[at] != '*')
        return 0;
    return at + 1 < glob.len && glob.p[at + 1] == '*' ? 2 : 1;
}

/* Adds a position and those after its stars, which may match nothing. `marks[at] == turn`: is in the set already. */
static void add_position(struct glob_positions *set, struct mk_str glob, size_t at, uint32_t *marks, uint32_t turn)
{
    assert(at <= glob.len);
    for (;;) {
        if (marks[at] == turn)
            return;
        marks[at] = turn;
        set->at[set->n++] = (uint16_t)at;
        unsigned star = count_star_bytes(glob, at);
        if (!star)
            return;
        at += star;
    }
}

/*
 * Returns the position that one more byte of the path leads to: the same one (a star), the next one, or SIZE_MAX if the
 * byte does not match.
 */
static size_t step_byte(struct mk_str glob, size_t at, char byte)
{
    unsigned star = count_star_bytes(glob, at);
    if (star)
        return star == 2 || byte != '/' ? at : SIZE_MAX;
    bool fits = at < glob.len && (glob.p[at] == byte || (glob.p[at] == '?' && byte != '/'));
    return fits ? at + 1 : SIZE_MAX;
}

static size_t step_star(struct mk_str glob, size_t at, size_t star)
{
    return count_star_bytes(glob, at) >= star ? at : SIZE_MAX;
}

/*
 * Follows all positions at once, byte by byte, and never goes back, whatever the pattern is. With `items` the path is a
 * glob as well: returns true only if `glob` matches everything that this glob matches. A star in the path is matched by
 * a star of the pattern that matches at least as much.
 */
static bool walk_glob(struct mk_str glob, struct mk_str path, bool items)
{
    assert(glob.len <= MK_PATTERN_GLOB_MAX);
    uint32_t marks[MK_PATTERN_GLOB_MAX + 1] = {0};
    MK_UNINITIALIZED struct glob_positions sets[2], *now = &sets[0], *next = &sets[1];
    now->n = 0;
    add_position(now, glob, 0, marks, 1);
    for (size_t i = 0, star; i < path.len && now->n; i += star ? star : 1) {
        star = items ? count_star_bytes(path, i) : 0;
        next->n = 0;
        for (unsigned k = 0; k < now->n; k++) {
            size_t at = star ? step_star(glob, now->at[k], star) : step_byte(glob, now->at[k], path.p[i]);
            if (at != SIZE_MAX)
                add_position(next, glob, at, marks, (uint32_t)i + 2);
        }
        struct glob_positions *spare = now;
        now = next;
        next = spare;
    }
    for (unsigned k = 0; k < now->n; k++)
        if (now->at[k] == glob.len)
            return true;
    return false;
}

static bool match_glob(struct mk_str glob, struct mk_str path)
{
    return walk_glob(glob, path, false);
}

static bool match_prefix(struct mk_str prefix, struct mk_str path)
{
    assert(prefix.len);
    if (!mk_str_starts(path, prefix))
        return false;
    return prefix.p[prefix.len - 1] == '/' || path.len == prefix.len || path.p[prefix.len] == '/';
}

int mk_pattern_capture(const struct mk_pattern *pattern, struct mk_str path, struct mk_str groups[MK_PATTERN_GROUPS])
{
    if (pattern->kind == MK_PATTERN_REGEX)
        return mk__regex_match(pattern->regex, path, groups, MK_PATTERN_GROUPS);
    if (mk_pattern_match(pattern, path) == 0)
        return 0;
    for (unsigned i = 0; i < MK_PATTERN_GROUPS; i++)
        groups[i] = MK_STR("");
    return 1;
}

int mk_pattern_match(const struct mk_pattern *pattern, struct mk_str path)
{
    switch (pattern->kind) {
    case MK_PATTERN_EXACT:
        return mk_str_eq(path, pattern->text);
    case MK_PATTERN_PREFIX:
        return match_prefix(pattern->text, path);
    case MK_PATTERN_NAME:
        return match_glob(pattern->text, find_last_segment(path));
    case MK_PATTERN_REGEX:
        return mk__regex_match(pattern->regex, path, NULL, 0);
    default:
        return match_glob(pattern->text, path);
    }
}

int mk_patterns_match(const struct mk_patterns *all, struct mk_str path)
{
    int match = 0;
    for (uint32_t i = 0; i < all->n && match == 0; i++)
        match = mk_pattern_match(&all->items[i], path);
    return match;
}

struct mk_str mk_pattern_rest(const struct mk_pattern *pattern, struct mk_str path)
{
    size_t n = pattern->text.len;
    if (pattern->kind != MK_PATTERN_PREFIX || n > path.len)
        return MK_STR("");
    while (n < path.len && path.p[n] == '/')
        n++;
    return mk_str_after(path, n);
}

bool mk_pattern_is_one_level(const struct mk_pattern *pattern)
{
    struct mk_str text = pattern->text;
    return pattern->kind == MK_PATTERN_GLOB && text.len > 1 && text.p[text.len - 1] == '*' &&
           text.p[text.len - 2] == '/' && !has_wildcard(mk_str(text.p, text.len - 1));
}

/* ── whether a pattern matches all that another one matches ── */

/* Returns whether everything that the glob matches is below the prefix. */
static bool covers_prefix(struct mk_str prefix, struct mk_str glob)
{
    assert(prefix.len);
    struct mk_str start = mk_str(glob.p, 0);
    while (start.len < glob.len && glob.p[start.len] != '*' && glob.p[start.len] != '?')
        start.len++;
    bool open = prefix.p[prefix.len - 1] != '/';
    return mk_str_starts(start, prefix) && (!open || (start.len > prefix.len && start.p[prefix.len] == '/'));
}

/*
 * Returns a glob for the last segment of all paths that a glob with slashes matches: after `**` it is anything but a
 * slash.
 */
static struct mk_str find_last_items(struct mk_str glob)
{
    struct mk_str last = find_last_segment(glob);
    for (size_t i = 0; i + 1 < last.len; i++)
        if (last.p[i] == '*' && last.p[i + 1] == '*')
            return find_last_items(mk_str(last.p + i + 1, last.len - i - 1));
    return last;
}

static bool covers_glob(const struct mk_pattern *first, struct mk_str glob)
{
    switch (first->kind) {
    case MK_PATTERN_PREFIX:
        return covers_prefix(first->text, glob);
    case MK_PATTERN_GLOB:
        return walk_glob(first->text, glob, true);
    case MK_PATTERN_NAME:
        return walk_glob(first->text, find_last_items(glob), true);
    default:
        return false;
    }
}

/* Like covers_glob() for a glob in three parts; false if it is too long. */
static bool covers_joined(const struct mk_pattern *first, const char *start, struct mk_str text, const char *end)
{
    MK_BUF_ON_STACK(glob, 2 * MK_PATTERN_GLOB_MAX);
    mk_buf_adds(&glob, mk_str_c(start));
    mk_buf_adds(&glob, text);
    mk_buf_adds(&glob, mk_str_c(end));
    return !glob.err && covers_glob(first, mk_buf_str(&glob));
}

/* Returns whether `first` matches every path. The text is checked first, because few of thousands of rules can. */
static bool covers_all(const struct mk_pattern *first)
{
    struct mk_str text = first->text;
    bool slash = text.len && text.p[0] == '/';
    return (text.len == slash || text.p[slash] == '*') && covers_glob(first, MK_STR("/**"));
}

bool mk_pattern_covers(const struct mk_pattern *first, const struct mk_pattern *later)
{
    struct mk_str text = later->text;
    if (first->kind == later->kind && mk_str_eq(first->text, text))
        return mk__pattern_index_ignores_case(first) || !mk__pattern_index_ignores_case(later);
    if (covers_all(first))
        return true;
    switch (later->kind) {
    case MK_PATTERN_EXACT:
        return mk_pattern_match(first, text) > 0;
    case MK_PATTERN_PREFIX:
        if (text.p[text.len - 1] == '/')
            return covers_joined(first, "", text, "**");
        return mk_pattern_match(first, text) > 0 && covers_joined(first, "", text, "/**");
    case MK_PATTERN_GLOB:
        return covers_glob(first, text);
    case MK_PATTERN_NAME:
        return covers_joined(first, "/", text, "") && covers_joined(first, "/**/", text, "");
    default:
        return false;
    }
}

/* ── whether no path matches two patterns ── */

/* Returns the text that all paths of a prefix or a glob with slashes begin with; empty for others. */
static MK_COLD struct mk_str find_head(const struct mk_pattern *pattern)
{
    return pattern->kind == MK_PATTERN_REGEX ? mk_str(pattern->text.p, 0) : mk__pattern_index_head(pattern);
}

/* Tells whether nothing that begins with the longer head of the two can match the shorter one. */
static MK_COLD bool are_heads_apart(const struct mk_pattern *a, const struct mk_pattern *b)
{
    struct mk_str one = find_head(a), other = find_head(b);
    if (one.len > other.len)
        return are_heads_apart(b, a);
    if (memcmp(one.p, other.p, one.len) != 0)
        return true;
    return a->kind == MK_PATTERN_PREFIX && other.len > one.len && !match_prefix(one, other);
}

MK_COLD bool mk_pattern_is_apart(const struct mk_pattern *a, const struct mk_pattern *b)
{
    if (a->kind == MK_PATTERN_EXACT)
        return mk_pattern_match(b, a->text) == 0;
    return b->kind == MK_PATTERN_EXACT ? mk_pattern_match(a, b->text) == 0 : are_heads_apart(a, b);
}
