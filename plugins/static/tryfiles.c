// SPDX-License-Identifier: Apache-2.0
/*
 * TryFiles (tryfiles.h). Each word is a name below the root with at most one "$path". A name is only looked up, and not
 * requested again, so that there are no loops.
 */
#include "tryfiles.h"

#include "index.h"
#include "open.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define PATH_WORD MK_STR("$path")

static const char *find_path_word(struct mk_str entry)
{
    return memmem(entry.p, entry.len, PATH_WORD.p, PATH_WORD.len);
}

static bool ends_with(struct mk_str s, struct mk_str end)
{
    return s.len >= end.len && memcmp(s.p + s.len - end.len, end.p, end.len) == 0;
}

/* ── the directive ── */

/* Parses "=404". */
static bool parse_status(struct mk_str word, int *ret_status)
{
    uint64_t status;
    if (!word.len || word.p[0] != '=' || !mk_str_u64(mk_str(word.p + 1, word.len - 1), 599, &status) || status < 400)
        return false;
    *ret_status = (int)status;
    return true;
}

static bool is_valid_entry(struct mk_str word)
{
    const char *at = find_path_word(word), *dollar = memchr(word.p, '$', word.len);
    if (word.p[0] != '/' && at != word.p)
        return false;
    return dollar == at && (!at || !memchr(at + 1, '$', word.len - (size_t)(at + 1 - word.p)));
}

void tryfiles_check(const struct mk_conf_check *check, struct static_host *host)
{
    const struct mk_conf_list *list = &host->try_files;
    size_t offset = offsetof(struct static_host, try_files);
    for (uint32_t i = 0; i < list->n; i++) {
        struct mk_str word = list->items[i];
        if (i && i + 1 == list->n && parse_status(word, &host->last_status))
            continue;
        if (!word.len || !is_valid_entry(word))
            mk_conf_error_nth(check, offset, i,
                              "\"TryFiles\" takes names that begin with \"/\" or $path, and a last =CODE, not \"%.*s\"",
                              MK_STR_ARG(word));
        host->n_tries++;
    }
}

/* ── a request ── */

/* Writes the name of an entry for this path. Returns its length; 0 if it is hidden or too long. */
static size_t compose_name(const struct static_site *site, struct mk_str entry, struct mk_str path,
                           char to[STATIC_NAME_BYTES])
{
    const char *at = find_path_word(entry);
    size_t before = at ? (size_t)(at - entry.p) : entry.len;
    const char *after = at ? at + PATH_WORD.len : "";
    if (at && after[0] == '/' && path.p[path.len - 1] == '/')
        after++;
    int n = snprintf(to, STATIC_NAME_BYTES, "%.*s%s%s", (int)before, entry.p, at ? path.p : "", after);
    return n < STATIC_NAME_BYTES && !open_is_hidden(site, mk_str(to, (size_t)n)) ? (size_t)n : 0;
}

static struct find_result try_entry(struct static_site *site, struct mk_str entry, struct mk_str path,
                                    const struct mk_accept *accept, bool cached)
{
    MK_UNINITIALIZED char name[STATIC_NAME_BYTES];
    size_t n = compose_name(site, entry, path, name);
    if (n == 0)
        return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    struct find_result f = index_find(site, mk_str(name, n), accept, cached);
    if (f.name.p == name)
        f.name = ends_with(entry, PATH_WORD) ? path : entry;
    if (f.kind != FOUND_FILE || !ends_with(entry, MK_STR("$path/")) || path.p[path.len - 1] == '/')
        return f;
    close(f.fd); /* a directory without its slash is redirected, for its relative links */
    return (struct find_result){.kind = FOUND_DIRECTORY, .fd = -1};
}

/* Returns true if the search ends here. A directory is a result for "$path/" only. */
static bool is_final(const struct find_result *f, struct mk_str entry)
{
    if (f->kind == FOUND_DIRECTORY)
        return ends_with(entry, MK_STR("$path/"));
    return f->kind == FOUND_FILE || !open_is_missing(f->err);
}

struct find_result tryfiles_find(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                                 bool cached)
{
    const struct static_host *host = site->host;
    for (uint32_t i = 0; i < host->n_tries; i++) {
        struct find_result f = try_entry(site, host->try_files.items[i], path, accept, cached);
        if (is_final(&f, host->try_files.items[i]))
            return f;
    }
    return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT, .status = host->last_status};
}
