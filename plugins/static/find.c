// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the file of a path: by the names of TryFiles or its own, for a directory by the names of its index, and the
 * precompressed variant of it. A name of TryFiles is only looked up, and not requested again, so that there are no
 * loops. All is done again if the root was swapped meanwhile.
 */
#include "static.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* ── precompressed variants: the codings of a host, and the variant for a request ── */

static const char suffixes[MK_CODING_COUNT][8] = {
    [MK_CODING_IDENTITY] = ".svgz", /* always compressed */
    [MK_CODING_GZIP] = ".gz",
    [MK_CODING_BR] = ".br",
    [MK_CODING_ZSTD] = ".zst",
};

static unsigned find_coding(struct mk_str name)
{
    unsigned i = MK_CODING_IDENTITY + 1;
    while (i < MK_CODING_COUNT && !mk_str_eq(mk_coding_name(i), name))
        i++;
    return i;
}

void mk__static_precompressed_check(const struct mk_conf_check *check, struct static_host *host)
{
    size_t offset = offsetof(struct static_host, precompressed);
    for (uint32_t i = 0; i < host->precompressed.n; i++) {
        struct mk_str word = host->precompressed.items[i];
        unsigned coding = find_coding(word);
        if (coding == MK_CODING_COUNT || memchr(host->codings, (int)coding, host->n_codings))
            mk_conf_error_nth(check, offset, i,
                              "\"Precompressed\" takes br, zstd and gzip, each once at most, not \"%.*s\"",
                              MK_STR_ARG(word));
        else
            host->codings[host->n_codings++] = (uint8_t)coding;
    }
    if (host->precompressed_match.n && !host->precompressed.n)
        mk_conf_warn(check, offsetof(struct static_host, precompressed_match),
                     "\"PrecompressedMatch\" does nothing without \"Precompressed\"");
}

/* Compares the path by which a client would request the file. */
static bool matches_patterns(const struct static_site *site, const char *name)
{
    const struct mk_patterns *patterns = &site->host->precompressed_match;
    MK_UNINITIALIZED char path[STATIC_NAME_BYTES];
    if (!patterns->n)
        return true;
    int n = snprintf(path, sizeof(path), "%.*s/%s", MK_STR_ARG(site->prefix), name);
    /* on an error the file itself is sent */
    return n < (int)sizeof(path) && mk_patterns_match(patterns, mk_str(path, (size_t)n)) > 0;
}

/* Files that are compressed already have no variants. Their names are compared as for Content-Encoding (open.c). */
static bool is_compressed(struct mk_str name)
{
    for (unsigned i = 0; i < MK_CODING_COUNT; i++)
        if (mk_str_iends(name, mk_str_c(suffixes[i])))
            return true;
    return false;
}

/* Counts a variant that is not used, and logs the first one of a host. */
static void note_old_variant(struct static_site *site, const char *path)
{
    struct static_site *of_host = site->of_host ? site->of_host : site;
    mk__static_file_counters_add_old_variant();
    if (site->owner && !atomic_exchange(&of_host->has_old_variants, true))
        mk_host_log(site->owner, MK_LOG_WARN,
                    "static: %.*s/%s is older than the file without %s, and not sent: compress the file again. Further "
                    "ones are counted (static_old_variants)",
                    MK_STR_ARG(site->path), path, strrchr(path, '.'));
}

static struct find_result find_variant(struct static_site *site, const char *name, enum mk_coding coding,
                                       const struct find_mode *mode, const struct find_result *f)
{
    assert(coding > MK_CODING_IDENTITY && coding < MK_CODING_COUNT);
    MK_UNINITIALIZED char path[STATIC_NAME_BYTES];
    int n = snprintf(path, sizeof(path), "%s%s", name, suffixes[coding]);
    struct find_result v = n < (int)sizeof(path) ? mk__static_open_file(site, mode, path, f->name, coding)
                                                 : (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    /* By whole seconds, since not every program and file system keeps their fractions: brotli 1.0 does not. */
    if (v.kind != FOUND_FILE || v.mtime.tv_sec >= f->mtime.tv_sec)
        return v;
    mk__static_open_release(&v); /* of an earlier version of the file */
    note_old_variant(site, path);
    return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
}

/* Passes all variants to the loader, since requests choose different ones. */
static void load_variants(struct static_site *site, const char *name, const struct find_mode *mode,
                          const struct find_result *f)
{
    for (unsigned i = 0; i < site->host->n_codings; i++) {
        struct find_result v = find_variant(site, name, site->host->codings[i], mode, f);
        mk__static_open_release(&v);
    }
}

/*
 * Replaces `f`, the file `name`, by the variant with the highest weight in `accept` that exists and is not older. With
 * `cached`, `f` may become FOUND_NOTHING with EAGAIN. Does nothing if PrecompressedMatch does not match the file.
 */
static void select_variant(struct static_site *site, const char *name, const struct find_mode *mode,
                           struct find_result *f)
{
    const struct static_host *host = site->host;
    assert(host->n_codings && (f->kind != FOUND_FILE || f->fd >= 0 || f->content.p || mode->loader));
    enum mk_coding coding;
    if (f->kind != FOUND_FILE || is_compressed(mk_str_c(name)) || !matches_patterns(site, name))
        return;
    f->varies = true;
    if (mode->loader) {
        load_variants(site, name, mode, f);
        return;
    }
    struct mk_accept left = mode->accept ? *mode->accept : (struct mk_accept){{0}};
    while (mk_accept_next(&left, host->codings, host->n_codings, &coding)) {
        struct find_result v = find_variant(site, name, coding, mode, f);
        bool must_wait = v.kind == FOUND_NOTHING && v.err == EAGAIN;
        if (v.kind != FOUND_FILE && !must_wait)
            continue;
        mk__static_open_release(f);
        *f = v;
        f->coding = coding;
        f->varies = true;
        return;
    }
}

/*
 * ── the file of a path ──
 *
 * Finds the file of a path: by the names of TryFiles or its own, for a directory by the names of its index. A
 * name of TryFiles is only looked up, and not requested again, so that there are no loops. All is done again if the
 * root was swapped meanwhile.
 */

enum { TRIES_MAX = 64 };

/* In a name of TryFiles: the path of the request. */
#define PATH_WORD MK_STR("$path")

/* ── a path and its index ── */

/*
 * Looks for an index that another plugin runs. Returns FOUND_PROGRAM, or FOUND_NOTHING with EAGAIN, or with another
 * errno: there is none.
 */
static struct find_result find_program(struct static_site *site, const char *name, struct mk_str index,
                                       const struct find_mode *mode)
{
    struct find_result f = {.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    if (mode->sources || mode->loader || !sources_run_name(site, name))
        return f;
    f = mk__static_open_stat(mk__static_open_name(site, name, mode->cached), index);
    mk__static_open_release(&f);
    if (f.kind == FOUND_DIRECTORY)
        return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = EISDIR};
    return (struct find_result){.kind = f.kind == FOUND_FILE ? FOUND_PROGRAM : FOUND_NOTHING,
                                .fd = -1,
                                .err = f.err,
                                .is_index = true,
                                .name = index};
}

/* Tells whether the next name of the index is tried: this file is missing, or must not be sent. */
static bool is_passed_over(int err)
{
    return err == ENOENT || err == EXDEV || err == ENXIO;
}

static struct find_result find_index(struct static_site *site, struct mk_str path, const struct find_mode *mode)
{
    struct find_result f = {.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    MK_UNINITIALIZED char name[STATIC_NAME_BYTES];
    const struct mk_conf_list *index = &site->settings->index;
    int err = ENOENT;
    for (uint32_t i = 0; i < index->n; i++) {
        int n = snprintf(name, sizeof(name), "%s%.*s", path.p + 1, MK_STR_ARG(index->items[i]));
        if (n >= (int)sizeof(name))
            return f;
        f = find_program(site, name, index->items[i], mode);
        if (f.kind == FOUND_PROGRAM || f.err == EAGAIN)
            return f;
        f = mk__static_open_file(site, mode, name, index->items[i], MK_CODING_IDENTITY);
        if (site->host->n_codings)
            select_variant(site, name, mode, &f);
        f.is_index = true;
        if (f.kind == FOUND_FILE || (f.kind == FOUND_NOTHING && !is_passed_over(f.err)))
            return f;
        err = f.kind == FOUND_NOTHING && f.err != ENOENT ? f.err : err;
    }
    return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = err};
}

/* Opens the file of a path, or the index of its directory; selects a variant. */
static MK_HOT struct find_result find_file(struct static_site *site, struct mk_str path, const struct find_mode *mode)
{
    assert(path.len > 0 && path.p[0] == '/' && path.p[path.len] == '\0');
    if (path.p[path.len - 1] == '/')
        return find_index(site, path, mode);
    struct find_result f = mk__static_open_file(site, mode, path.p + 1, path, MK_CODING_IDENTITY);
    if (site->host->n_codings)
        select_variant(site, path.p + 1, mode, &f);
    return f;
}

/* ── TryFiles ── */

static const char *find_path_word(struct mk_str entry)
{
    return memmem(entry.p, entry.len, PATH_WORD.p, PATH_WORD.len);
}

/* Parses "=404". */
static bool parse_status(struct mk_str word, int *ret_status)
{
    uint64_t status;
    if (!word.len || word.p[0] != '=' || !mk_str_u64(mk_str_after(word, 1), 599, &status) || status < 400)
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

/* Returns what to write in place of a word that is none. */
static MK_COLD const char *get_hint(struct mk_str word)
{
    const char *dollar = memchr(word.p, '$', word.len);
    bool is_query = dollar && memchr(word.p, '?', (size_t)(dollar - word.p));
    if (is_query)
        return ": leave out what begins with ?, as a script gets the query of the request";
    if (mk_str_starts(word, MK_STR("@")))
        return ": there are no named locations: write a section [PROXY] or [FASTCGI] with a Match for the other paths";
    if (dollar || mk_str_until(word, "{").len < word.len)
        return ": write $path for the path of the request, the only variable here";
    return "";
}

void mk__static_find_check_tryfiles(const struct mk_conf_check *check, struct static_host *host)
{
    const struct mk_conf_list *list = &host->try_files;
    size_t offset = offsetof(struct static_host, try_files);
    for (uint32_t i = 0; i < list->n; i++) {
        struct mk_str word = list->items[i];
        if (i && i + 1 == list->n && parse_status(word, &host->last_status))
            continue;
        if (!word.len || !is_valid_entry(word))
            mk_conf_error_nth(
                check, offset, i,
                "\"TryFiles\" takes names that begin with \"/\" or $path, and a last =CODE, not \"%.*s\"%s",
                MK_STR_ARG(word), get_hint(word));
        host->n_tries++;
    }
}

enum mk_tries mk__static_find_get_tries(const struct static_host *host)
{
    if (!host->n_tries)
        return MK_TRIES_NOTHING;
    bool answers_all = host->last_status || !find_path_word(host->try_files.items[host->n_tries - 1]);
    return answers_all ? MK_TRIES_ALL : MK_TRIES_SOME;
}

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
    return n < STATIC_NAME_BYTES && !mk__static_open_is_hidden(site, mk_str(to, (size_t)n)) ? (size_t)n : 0;
}

/* The index of the path's own folder is run, by the path with a slash; that of another folder is skipped. */
static struct find_result try_program(const struct find_result *f, struct mk_str name, struct mk_str entry,
                                      struct mk_str path)
{
    if (mk_str_eq(name, path))
        return *f;
    if (mk_str_eq(entry, MK_STR("$path/")))
        return (struct find_result){.kind = FOUND_DIRECTORY, .fd = -1};
    return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
}

struct mk_str mk__static_find_get_last_name(const struct static_host *host)
{
    struct mk_str last = host->n_tries && !host->last_status ? host->try_files.items[host->n_tries - 1] : MK_STR_NONE;
    return last.p && !find_path_word(last) ? last : MK_STR_NONE;
}

/* Tells whether an entry is the one name for all that is not there, such as the /index.php of an application. */
static bool is_last_name(const struct static_host *host, struct mk_str entry)
{
    return host->n_tries > 1 && entry.p == mk__static_find_get_last_name(host).p && !mk_str_ends(entry, MK_STR("/"));
}

static struct find_result try_entry(struct static_site *site, struct mk_str entry, struct mk_str path,
                                    const struct find_mode *mode)
{
    assert(entry.len > 0);
    MK_UNINITIALIZED char name[STATIC_NAME_BYTES];
    size_t n = compose_name(site, entry, path, name);
    if (n == 0)
        return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    if (MK_UNLIKELY(is_last_name(site->host, entry))) {
        struct find_result program = find_program(site, name + 1, entry, mode);
        program.is_index = false;
        if (program.kind == FOUND_PROGRAM || program.err == EAGAIN)
            return program;
    }
    struct find_result f = find_file(site, mk_str(name, n), mode);
    if (f.name.p == name)
        f.name = mk_str_ends(entry, PATH_WORD) ? path : entry;
    if (f.kind == FOUND_PROGRAM)
        return try_program(&f, mk_str(name, n), entry, path);
    if (f.kind != FOUND_FILE || !mk_str_ends(entry, MK_STR("$path/")) || path.p[path.len - 1] == '/')
        return f;
    mk__static_open_release(&f); /* a directory without its slash is redirected, for its relative links */
    return (struct find_result){.kind = FOUND_DIRECTORY, .fd = -1};
}

/* Returns true if the search ends here. A directory is a result for "$path/" only. */
static bool is_final(const struct find_result *f, struct mk_str entry)
{
    if (f->kind == FOUND_DIRECTORY)
        return mk_str_ends(entry, MK_STR("$path/"));
    return f->kind == FOUND_FILE || f->kind == FOUND_PROGRAM || !mk__static_open_is_missing(f->err);
}

/* Finds the first name that exists. */
static struct find_result try_entries(struct static_site *site, struct mk_str path, const struct find_mode *mode)
{
    const struct static_host *host = site->host;
    int err = ENOENT; /* the first that is another one is the reason */
    for (uint32_t i = 0; i < host->n_tries; i++) {
        struct find_result f = try_entry(site, host->try_files.items[i], path, mode);
        f.tried = i + 1;
        if (is_final(&f, host->try_files.items[i]))
            return f;
        err = f.kind == FOUND_NOTHING && err == ENOENT ? f.err : err;
    }
    return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = err, .status = host->last_status};
}

/* ── the path of a file that was found ── */

size_t mk__static_find_write_path(const struct static_site *site, const struct find_result *found, struct mk_str path,
                                  char ret[STATIC_NAME_BYTES])
{
    MK_UNINITIALIZED char name[STATIC_NAME_BYTES];
    struct mk_str prefix = MK_STR(""), index = found->is_index ? found->name : MK_STR("");
    if (found->tried) {
        prefix = site->prefix;
        path = mk_str_after(path, prefix.len);
        path = mk_str(name, compose_name(site, site->host->try_files.items[found->tried - 1], path, name));
    }
    while (mk_str_starts(index, MK_STR("/"))) /* the path has one */
        index = mk_str_after(index, 1);
    int n = snprintf(ret, STATIC_NAME_BYTES, "%.*s%.*s%.*s", MK_STR_ARG(prefix), MK_STR_ARG(path), MK_STR_ARG(index));
    return n < STATIC_NAME_BYTES ? (size_t)n : 0;
}

/* ── below one root ── */

/* If swap_seq has changed, some names may have been those of another root: find them again. */
MK_HOT struct find_result mk__static_find_path_with(struct static_site *site, struct mk_str path,
                                                    const struct find_mode *mode)
{
    assert(site->settings && site->host);
    assert(path.len > 0 && path.p[0] == '/' && path.p[path.len] == '\0');
    if (site->root_fd < 0)
        return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    for (int i = 0;; i++) {
        unsigned swap_seq = site->swap_seq;
        bool in_memory =
            site->in_memory && mode->cached; /* then mk__static_open_name() does not enter other file systems */
        struct find_result f = site->host->n_tries ? try_entries(site, path, mode) : find_file(site, path, mode);
        f.in_memory |= in_memory;
        if ((swap_seq == site->swap_seq && swap_seq % 2 == 0) || i == TRIES_MAX)
            return f;
        mk__static_open_release(&f);
        if (mode->cached)
            return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = EAGAIN};
        /* waits for the thread that swaps the root, which holds the lock */
        pthread_mutex_lock(&site->lock);
        pthread_mutex_unlock(&site->lock);
    }
}

struct find_result mk__static_find_folder(struct static_site *site, struct mk_str path)
{
    assert(path.len > 0 && path.p[0] == '/' && path.p[path.len] == '\0');
    struct stat st;
    const char *name = path.len > 1 ? path.p + 1 : ".";
    struct find_result f = {.kind = FOUND_NOTHING, .fd = -ENOENT};
    if (site->root_fd >= 0 && !sources_have_name(site, name))
        f.fd = sources_check(site, mk__static_open_name(site, name, false));
    if (f.fd >= 0 && fstat(f.fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        f.kind = FOUND_DIRECTORY;
        return f;
    }
    f.err = f.fd < 0 ? -f.fd : ENOTDIR;
    if (f.fd >= 0)
        close(f.fd);
    f.fd = -1;
    return f;
}
