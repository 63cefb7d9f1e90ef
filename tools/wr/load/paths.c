// SPDX-License-Identifier: Apache-2.0
/*
 * Prepares requests, reads files of paths, and builds the alias table of the Zipf distribution.
 */
#include "paths.h"

#include <errno.h>
#include <math.h>

#include <monkey/base/buf.h>
#include <monkey/base/escape.h>

static int prepare_request(struct path *path, struct mk_arena *arena, const struct request_form *form,
                           struct mk_str target)
{
    struct mk_buf out;
    mk_buf_init(&out, SIZE_MAX);
    mk_buf_addf(&out, "%.*s %.*s HTTP/1.1\r\nHost: %.*s\r\n%.*s", MK_STR_ARG(form->method), MK_STR_ARG(target),
                MK_STR_ARG(form->host), MK_STR_ARG(form->headers));
    if (form->close)
        mk_buf_adds(&out, MK_STR("Connection: close\r\n"));
    if (form->body.len)
        mk_buf_addf(&out, "Content-Length: %zu\r\n", form->body.len);
    mk_buf_adds(&out, MK_STR("\r\n"));
    mk_buf_adds(&out, form->body);
    if (!out.err)
        path->request = mk_arena_dup(arena, mk_buf_str(&out));
    mk_buf_release(&out);
    return path->request.p ? 0 : -ENOMEM;
}

int paths_add(struct paths *paths, struct mk_arena *arena, const struct request_form *form, struct mk_str path)
{
    struct path *list = mk_arena_grow(arena, paths->list, paths->n, sizeof(*list));
    if (!list)
        return -ENOMEM;
    paths->list = list;
    list[paths->n] = (struct path){.status = form->status, .length = form->length};
    return prepare_request(&list[paths->n++], arena, form, path);
}

/* ── files of paths ── */

static bool is_given(struct mk_str word)
{
    return word.len && !mk_str_eq(word, MK_STR("-"));
}

/* Returns the number, or -1. */
static int64_t parse_number(struct mk_str word)
{
    int64_t n = 0;
    if (word.len > 15)
        return -1;
    for (size_t i = 0; i < word.len; i++) {
        if (word.p[i] < '0' || word.p[i] > '9')
            return -1;
        n = n * 10 + (word.p[i] - '0');
    }
    return n;
}

static bool parse_hash(struct mk_str word, unsigned char *to)
{
    if (word.len != (size_t)2 * PATH_HASH_BYTES)
        return false;
    for (size_t i = 0; i < word.len; i++) {
        int digit = mk_hex_value(word.p[i]);
        if (digit < 0)
            return false;
        to[i / 2] = (unsigned char)(i % 2 ? to[i / 2] << 4 | digit : digit);
    }
    return true;
}

static bool is_target(struct mk_str path)
{
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.p[i] <= ' ' || path.p[i] == 0x7f || path.p[i] == '#')
            return false;
    return path.len && path.p[0] == '/';
}

static int parse_path(struct paths *paths, struct mk_arena *arena, const struct request_form *form, struct mk_str line,
                      const char **ret_error)
{
    struct mk_str target = mk_str_next_word(&line), status = mk_str_next_word(&line), length = mk_str_next_word(&line),
                  hash = mk_str_next_word(&line);
    *ret_error = !is_target(target) ? "a path begins with / and has no blanks, control bytes or #" : NULL;
    if (!*ret_error && mk_str_trim(line).len)
        *ret_error = "a line is PATH [STATUS [LENGTH [SHA256]]]";
    if (*ret_error)
        return -EINVAL;
    if (paths_add(paths, arena, form, target) < 0)
        return -ENOMEM;
    struct path *path = &paths->list[paths->n - 1];
    if (is_given(status))
        path->status = (int)parse_number(status);
    if (is_given(length))
        path->length = parse_number(length);
    path->has_hash = is_given(hash);
    paths->has_hashes |= path->has_hash;
    if (is_given(status) && (path->status < 200 || path->status > 599))
        *ret_error = "the status is not 200 to 599, nor - for any";
    else if (is_given(length) && path->length < 0)
        *ret_error = "the length is no number of bytes, nor - for any";
    else if (path->has_hash && !parse_hash(hash, path->hash))
        *ret_error = "the SHA256 does not have 64 hexadecimal digits";
    else if (paths->n > PATHS_MAX)
        *ret_error = "there are more than 10000000 paths";
    return *ret_error ? -EINVAL : 0;
}

int paths_parse(struct paths *paths, struct mk_arena *arena, const struct request_form *form, struct mk_str text,
                unsigned *ret_line, const char **ret_error)
{
    *ret_line = 0;
    *ret_error = NULL;
    while (text.len) {
        struct mk_str line = mk_str_trim(mk_str_split_line(&text));
        ++*ret_line;
        if (!line.len || line.p[0] == '#')
            continue;
        int err = parse_path(paths, arena, form, line, ret_error);
        if (err < 0)
            return err;
    }
    *ret_error = paths->n ? NULL : "the file has no paths";
    return paths->n ? 0 : -EINVAL;
}

/* ── the order ── */

/*
 * Builds the alias table: each slot is shared by its own path, up to its limit, and one other. `weights` have the
 * mean 1. `stack` has room for all indexes: those below the mean grow from its start, the others from its end.
 */
static void build_aliases(struct alias *aliases, double *weights, uint32_t *stack, uint32_t n)
{
    uint32_t low = 0, high = n;
    for (uint32_t i = 0; i < n; i++) {
        aliases[i] = (struct alias){.limit = UINT32_MAX, .other = i};
        stack[weights[i] < 1 ? low++ : --high] = i;
    }
    while (low && high < n) {
        uint32_t small = stack[--low], large = stack[high];
        aliases[small] = (struct alias){(uint32_t)(weights[small] * UINT32_MAX), large};
        weights[large] -= 1 - weights[small];
        if (weights[large] < 1) {
            high++;
            stack[low++] = large;
        }
    }
}

int paths_prepare(struct paths *paths, struct mk_arena *arena, enum pick pick, double exponent)
{
    paths->pick = pick;
    if (pick != PICK_ZIPF)
        return 0;
    double sum = 0, *weights = mk_arena_alloc(arena, paths->n * sizeof(*weights));
    uint32_t *stack = mk_arena_alloc(arena, paths->n * sizeof(*stack));
    paths->aliases = mk_arena_alloc(arena, paths->n * sizeof(*paths->aliases));
    if (!weights || !stack || !paths->aliases)
        return -ENOMEM;
    for (uint32_t i = 0; i < paths->n; i++)
        sum += weights[i] = pow(i + 1, -exponent);
    for (uint32_t i = 0; i < paths->n; i++)
        weights[i] *= paths->n / sum;
    build_aliases(paths->aliases, weights, stack, paths->n);
    return 0;
}

void picker_init(struct picker *p, uint64_t seed, unsigned thread, unsigned threads)
{
    *p = (struct picker){.random = seed * 0x2545f4914f6cdd1dull + thread, .next = thread, .step = threads};
}
