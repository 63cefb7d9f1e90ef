// SPDX-License-Identifier: Apache-2.0
/*
 * Precompressed variants (precompressed.h): the codings of a host, and the variant for a request.
 */
#include "precompressed.h"

#include "file_counters.h"
#include "open.h"

#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

extern const struct mk_plugin mk_plugin_static;

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
    for (unsigned i = 0; i < MK_CODING_COUNT; i++) {
        size_t n = strlen(suffixes[i]);
        if (name.len >= n && mk_str_ieq(mk_str(name.p + name.len - n, n), mk_str(suffixes[i], n)))
            return true;
    }
    return false;
}

/* By whole seconds, since not every program and file system keeps their fractions: brotli 1.0 gives F.br those of F. */
static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec;
}

/* Counts a variant that is not used, and logs the first one of a host. */
static void note_old_variant(const struct static_site *site, const char *path)
{
    struct static_site *of_host = site->owner ? mk_host_state(site->owner, &mk_plugin_static) : NULL;
    mk__static_file_counters_add_old_variant();
    if (of_host && !atomic_exchange(&of_host->has_old_variants, true))
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
    if (v.kind != FOUND_FILE || !is_older(&v.mtime, &f->mtime))
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

void mk__static_precompressed_select(struct static_site *site, const char *name, const struct find_mode *mode,
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
