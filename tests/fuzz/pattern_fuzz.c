// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns: three lines, two patterns and a path. What matches must agree with a matcher that is too simple to be
 * wrong (and too slow for more than a few bytes), and no path may contradict what mk_pattern_covers() promises.
 */
#include <stdlib.h>

#include <monkey/base/pattern.h>

#include "conf/scan.h"

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

enum { SIMPLE_GLOB_MAX = 12, SIMPLE_PATH_MAX = 24 };

static struct mk_str cut_line(struct mk_str *rest)
{
    const char *end = rest->len ? memchr(rest->p, '\n', rest->len) : NULL;
    struct mk_str line = mk_str(rest->p, end ? (size_t)(end - rest->p) : rest->len);
    size_t used = line.len + (end != NULL);
    *rest = mk_str(rest->p + used, rest->len - used);
    return line;
}

/* By trying everything. */
static bool match_simply(struct mk_str glob, struct mk_str path)
{
    if (!glob.len)
        return !path.len;
    bool star = glob.p[0] == '*', any = star && glob.len > 1 && glob.p[1] == '*';
    struct mk_str behind = mk_str(glob.p + 1 + any, glob.len - 1 - any);
    if (star && match_simply(behind, path))
        return true;
    if (!path.len || (path.p[0] == '/' && !any && glob.p[0] != '/'))
        return false;
    struct mk_str next = mk_str(path.p + 1, path.len - 1);
    if (star)
        return match_simply(glob, next);
    return (glob.p[0] == '?' || glob.p[0] == path.p[0]) && match_simply(behind, next);
}

/* As the header says it, kind by kind. */
static bool match_by_the_book(const struct mk_pattern *pattern, struct mk_str path)
{
    struct mk_str text = pattern->text, name = path;
    for (size_t i = path.len; i-- > 0;)
        if (path.p[i] == '/') {
            name = mk_str(path.p + i + 1, path.len - i - 1);
            break;
        }
    switch (pattern->kind) {
    case MK_PATTERN_EXACT:
        return mk_str_eq(text, path);
    case MK_PATTERN_PREFIX:
        return mk_str_starts(path, text) &&
               (path.len == text.len || text.p[text.len - 1] == '/' || path.p[text.len] == '/');
    default:
        return match_simply(text, pattern->kind == MK_PATTERN_NAME ? name : path);
    }
}

static void check_match(const struct mk_pattern *pattern, struct mk_str path)
{
    struct mk_str groups[MK_PATTERN_GROUPS];
    int matches = mk_pattern_match(pattern, path);
    CHECK(matches >= 0 || pattern->kind == MK_PATTERN_REGEX);
    struct mk_str rest = mk_pattern_rest(pattern, path);
    CHECK(mk_pattern_capture(pattern, path, groups) == matches);
    for (unsigned i = 0; matches > 0 && i < MK_PATTERN_GROUPS; i++)
        CHECK(!groups[i].len || (groups[i].p >= path.p && groups[i].p + groups[i].len <= path.p + path.len));
    CHECK(!rest.len || (pattern->kind == MK_PATTERN_PREFIX && rest.p + rest.len == path.p + path.len));
    if (pattern->kind != MK_PATTERN_REGEX && pattern->text.len <= SIMPLE_GLOB_MAX && path.len <= SIMPLE_PATH_MAX)
        CHECK(match_by_the_book(pattern, path) == matches);
}

static bool parse(struct mk_pattern *pattern, struct mk_str text, struct mk_arena *arena)
{
    struct mk_buf error;
    char storage[MK__SCAN_LINE_MAX + 1024]; /* as conf/bind.c: a sentence may quote the line */
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int r = mk_pattern_parse(pattern, text, arena, &error);
    CHECK(r == 0 || (!error.err && error.len > 10));
    CHECK(pattern->text.p >= text.p && pattern->text.p + pattern->text.len <= text.p + text.len);
    return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_str rest = mk_str((const char *)data, size);
    struct mk_str texts[2] = {cut_line(&rest), cut_line(&rest)};
    struct mk_pattern patterns[2];
    struct mk_arena arena;
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    bool first = parse(&patterns[0], texts[0], &arena), later = parse(&patterns[1], texts[1], &arena);
    if (first)
        check_match(&patterns[0], rest);
    if (later)
        check_match(&patterns[1], rest);
    bool path = rest.len && rest.p[0] == '/';
    if (first && later && path && mk_pattern_covers(&patterns[0], &patterns[1]) &&
        mk_pattern_match(&patterns[1], rest) > 0)
        CHECK(mk_pattern_match(&patterns[0], rest) != 0);
    mk_arena_release(&arena);
    return 0;
}
