// SPDX-License-Identifier: Apache-2.0
/*
 * The aliases of a host: opened when the host starts, and found by their patterns. find.c finds the file, as
 * below a document root.
 */
#include "static.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

struct alias {
    struct alias *next;
    struct alias_rule rule;
    const struct alias_rule *section; /* NULL: it is the folder of a plugin */
    struct mk_str name;               /* exact alias: the file in the folder, with a slash before it */
    struct static_host host;          /* a copy of the host's, for an [ALIAS] without TryFiles */
    struct static_site site;
    size_t bytes; /* of this struct and `folder` */
    char folder[];
};

/* ── directives ── */

static int parse_match(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    const struct mk_pattern *match = field;
    int err = mk_conf_pattern(value, field, arena, error);
    if (err < 0)
        return err;
    if (match->kind == MK_PATTERN_PREFIX || match->kind == MK_PATTERN_EXACT)
        return 0;
    mk_buf_addf(error, "an alias has /prefix or =/exact, not a glob");
    return -EINVAL;
}

const struct mk_conf_key mk__static_alias_keys[] = {
    MK_CONF_KEY_CUSTOM(struct alias_rule, match, "Match", NULL,
                       "Which paths: `/prefix` with everything below it, or `=/exact`. A section whose paths all match "
                       "an earlier one is an error.",
                       .flags = MK_CONF_REQUIRED, .unit = "/prefix or =/exact", .parse = parse_match),
    MK_CONF_KEY_PATH(struct alias_rule, to, "To", NULL, "The folder of a prefix, or the file of an exact path.",
                     .flags = MK_CONF_REQUIRED),
    {0},
};

/* ── opening ── */

static bool is_exact(const struct alias *a)
{
    return a->rule.match.kind == MK_PATTERN_EXACT;
}

static struct alias *make_alias(struct static_site *parent, const struct alias_rule *rule)
{
    const char *slash = memrchr(rule->to.p, '/', rule->to.len);
    assert(slash);
    bool exact = rule->match.kind == MK_PATTERN_EXACT;
    struct mk_str folder = mk_str_strip_end(exact ? mk_str(rule->to.p, (size_t)(slash - rule->to.p)) : rule->to, "/");
    struct alias *a = mk_account_alloc(NULL, sizeof(*a) + folder.len + 2);
    if (!a)
        return NULL;
    *a = (struct alias){.rule = *rule, .host = *parent->host, .bytes = sizeof(*a) + folder.len + 2};
    if (folder.len)
        memcpy(a->folder, folder.p, folder.len);
    else
        a->folder[folder.len++] = '/';
    a->folder[folder.len] = '\0';
    a->site.settings = parent->settings;
    a->site.host = &a->host;
    a->site.owner = parent->owner;
    a->site.of_host = parent;
    a->site.prefix = mk_str_strip_end(rule->match.text, "/");
    if (!exact)
        return a;
    a->name = mk_str_c(slash);
    const struct mk_patterns *patterns = &a->host.precompressed_match;
    if (patterns->n && mk_patterns_match(patterns, rule->match.text) <= 0)
        a->host.n_codings = 0;
    a->host.precompressed_match.n = 0; /* decided above, by the path and not the name of the file */
    return a;
}

/* Checks that this process may search the folder, or read the file. Returns 0 or -errno. */
static int check_readable(struct alias *a)
{
    struct stat st;
    if (!is_exact(a))
        return fstatat(a->site.root_fd, ".", &st, 0) < 0 ? -errno : 0;
    struct find_result f =
        a->name.len > 1 ? find_path(&a->site, a->name, NULL, false) : (struct find_result){.kind = FOUND_DIRECTORY};
    if (f.kind == FOUND_FILE)
        close(f.fd);
    return f.kind == FOUND_DIRECTORY ? -EISDIR : f.kind == FOUND_NOTHING ? -f.err : 0;
}

static int open_alias(struct alias *a)
{
    int err = mk__static_root_open(&a->site, mk_str_c(a->folder));
    if (err < 0)
        return err;
    err = check_readable(a);
    if (err < 0)
        mk__static_root_close(&a->site);
    return err;
}

static const char *describe_error(int err)
{
    return err == ELOOP || err == EXDEV ? "SymLink does not follow this link" : strerror(err);
}

static int check_rule(struct mk_host *host, const struct static_site *site, const struct alias_rule *rule)
{
    struct mk_str text = rule->match.text;
    if (mk_host_is_wrong(host, rule, offsetof(struct alias_rule, match)) || !text.p || !rule->to.len)
        return -EINVAL; /* that was reported */
    bool hidden = mk__static_open_is_hidden(site, text);
    if (hidden)
        mk_host_error(
            host, rule, offsetof(struct alias_rule, match), 0,
            "this alias would be hidden, because names that begin with a dot are: set DotFiles On to serve them");
    return hidden ? -EINVAL : 0;
}

/* Adds an alias to the list, even if it cannot be opened (root_fd < 0). */
static int add_alias(struct mk_host *host, struct static_site *site, const struct alias_rule *rule, struct alias **last)
{
    struct alias *a = make_alias(site, rule);
    if (!a)
        return -ENOMEM;
    *last = a;
    a->section = rule;
    a->host.n_tries = 0;
    int err = open_alias(a);
    if (err == 0)
        return 0;
    a->site.root_fd = -1;
    mk_host_error(host, rule, offsetof(struct alias_rule, to), 0, "cannot open the %s %s: %s",
                  is_exact(a) ? "file" : "folder", rule->to.p, describe_error(-err));
    return err == -ENOMEM ? err : -EINVAL;
}

int mk__static_alias_load(struct mk_host *host, struct static_site *site, const struct mk_conf_section *section)
{
    assert(!site->aliases);
    int result = 0;
    struct alias **last = &site->aliases;
    for (const struct alias_rule *r = mk_host_conf(host, section); r; r = mk_host_conf_next(host, section, r)) {
        int err = check_rule(host, site, r);
        if (err == 0)
            err = add_alias(host, site, r, last);
        if (err == -ENOMEM)
            return err;
        result = err < 0 ? err : result;
        last = *last ? &(*last)->next : last;
    }
    int err = mk_host_check_patterns(host, section, offsetof(struct alias_rule, match));
    return err < 0 ? err : result;
}

static struct alias **find_last(struct static_site *site)
{
    struct alias **last = &site->aliases;
    while (*last)
        last = &(*last)->next;
    return last;
}

int mk__static_alias_add_folder(struct mk_host *host, struct static_site *site, const struct mk_host_folder *folder)
{
    struct alias_rule rule = {.match = {.kind = MK_PATTERN_PREFIX, .text = folder->url.len ? folder->url : MK_STR("/")},
                              .to = folder->path};
    struct alias *a = make_alias(site, &rule);
    if (!a)
        return -ENOMEM;
    *find_last(site) = a;
    int err = open_alias(a);
    if (err == 0)
        return 0;
    a->site.root_fd = -1;
    mk_host_error(host, folder->section_struct, folder->offset, 0, "cannot open the folder %s: %s", folder->path.p,
                  describe_error(-err));
    return err == -ENOMEM ? err : -EINVAL;
}

void mk__static_alias_init_sources(struct static_site *site)
{
    for (struct alias *a = site->aliases; a; a = a->next) {
        mk__static_sources_init(&a->site);
        if (is_exact(a))
            continue;
        a->site.elsewhere = site->elsewhere;
        site->elsewhere = &a->site;
    }
}

void mk__static_alias_free(struct static_site *site)
{
    for (struct alias *a = site->aliases, *next; a; a = next) {
        next = a->next;
        if (a->site.root_fd >= 0)
            mk__static_root_close(&a->site);
        mk_account_free(NULL, a, a->bytes);
    }
    site->aliases = NULL;
}

void mk__static_alias_each_section(struct static_site *site, alias_section_fn fn, void *ctx)
{
    for (struct alias *a = site->aliases; a; a = a->next)
        if (a->section && a->site.root_fd >= 0)
            fn(&a->site, a->section, a->name, ctx);
}

void mk__static_alias_each_place(const struct static_site *site, mk_file_place_fn fn, void *ctx)
{
    for (const struct alias *a = site->aliases; a; a = a->next) {
        struct mk_file_place place = mk__static_open_place(&a->site);
        if (is_exact(a)) {
            place.url = a->rule.match.text;
            place.name = mk_str_after(a->name, 1);
        }
        if (a->site.root_fd >= 0)
            fn(&place, ctx);
    }
}

/* ── requests ── */

static struct alias *find_alias(const struct static_site *site, struct mk_str path)
{
    struct alias *a = site->aliases;
    while (a && mk_pattern_match(&a->rule.match, path) <= 0) /* never below 0: it is not a regular expression */
        a = a->next;
    return a;
}

/* Tells whether the path is that of an exact alias and the name of its file, as open.c asks for it. */
static bool is_name_of_file(const struct alias *a, struct mk_str path)
{
    return is_exact(a) && path.len == a->site.prefix.len + a->name.len && mk_str_starts(path, a->site.prefix) &&
           mk_str_eq(mk_str_after(path, a->site.prefix.len), a->name);
}

const struct mk_pattern *mk__static_alias_find_pattern(const struct mk_host *host, struct mk_str path)
{
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    const struct alias *a = site ? site->aliases : NULL;
    while (a && mk_pattern_match(&a->rule.match, path) <= 0 && !is_name_of_file(a, path))
        a = a->next;
    return a && a->section ? &a->rule.match : NULL;
}

bool mk__static_alias_find(struct static_location *at)
{
    struct alias *a = find_alias(at->site, at->path);
    if (!a)
        return false;
    size_t n = a->site.prefix.len;
    assert(at->path.len >= n);
    at->site = &a->site;
    at->path = a->name.p ? a->name : mk_str_after(at->path, n);
    return true;
}
