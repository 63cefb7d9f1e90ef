// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of the plugin.
 */
#include "static.h"

#include <assert.h>

static const char *const tag_names[] = {[STATIC_TAGS_EXACT] = "Exact", [STATIC_TAGS_PORTABLE] = "Portable", NULL};
/* The values by which a host overrides the server's: "Server" (as the server), then those of the server. */
static const char *const own_tag_names[] = {"Server", "Exact", "Portable", NULL};
static const char *const own_switch_names[] = {"Server", "Off", "On", NULL};
static const char *const own_symlink_names[] = {"Server", "Off", "Inside", "On", NULL};

static const char *const symlink_modes[] = {
    [SYMLINKS_OFF] = "Off", [SYMLINKS_INSIDE] = "Inside", [SYMLINKS_ON] = "On", [SYMLINKS_ON + 1] = NULL};

/* A file whose name has a comma is rare, a list with commas is not. */
static void check_index(const struct mk_conf_check *check, const struct mk_conf_list *index, size_t offset)
{
    for (uint32_t i = 0; i < index->n; i++) {
        struct mk_str name = index->items[i];
        if (name.len && memchr(name.p, ',', name.len))
            mk_conf_error_nth(check, offset, i, "\"Indexfile\": a blank separates names, not a comma");
        if (mk_str_starts(name, MK_STR("/")))
            mk_conf_warn_nth(check, offset, i,
                             "an index is a file of the folder that is asked for: write its name without a slash");
    }
}

static void check_server(const struct mk_conf_check *check, void *section)
{
    check_index(check, &((struct static_settings *)section)->index, offsetof(struct static_settings, index));
}

static const struct mk_conf_key server_keys[] = {
    MK_CONF_KEY_LIST(struct static_settings, index, "Indexfile", "index.html index.htm",
                     "The files that are served for a directory, in the order in which they are tried."),
    MK_CONF_KEY_ENUM(struct static_settings, symlinks, "SymLink", "Off",
                     "Which symbolic links are followed below a document root. `Off`: none, on no component of a path. "
                     "`Inside`: those that stay below the root, absolute ones included. `On`: all.",
                     .names = symlink_modes),
    MK_CONF_KEY_BOOL(struct static_settings, ranges, "Resume", "On", "Whether parts of files are served (Range)."),
    MK_CONF_KEY_BOOL(struct static_settings, dotfiles, "DotFiles", "Off",
                     "Whether names that begin with a dot are served. `/.well-known/` always is."),
    MK_CONF_KEY_ENUM(struct static_settings, tags, "ETag", "Exact",
                     "What entity tags are made of. `Exact`: size, time, device, inode and the time of "
                     "the inode's last change; two versions of a file never have the same. Where that "
                     "has no fraction of a second, as on images that are only read, tags are weak, as "
                     "with `Portable`. `Portable`: size and time, so that machines behind a "
                     "balancer with copies of a file "
                     "send the same; these tags are weak, and a download cannot be continued by them.",
                     .names = tag_names),
    {0},
};

static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_PATH(
        struct static_host, root, "DocumentRoot", NULL,
        "The directory whose files this host serves. It may be missing if another section answers requests.",
        .flags = MK_CONF_REQUIRED | MK_CONF_FILES),
    MK_CONF_KEY_LIST(
        struct static_host, precompressed, "Precompressed", NULL,
        "Which precompressed variants of a file are looked for next to it: `br` (`F.br`), `zstd` (`F.zst`) and "
        "`gzip` (`F.gz`). The one with the highest weight in Accept-Encoding is served, among equals the first in "
        "this list, unless it is older than the file, in whole seconds. Each lookup costs a system call."),
    MK_CONF_KEY_PATTERNS(
        struct static_host, precompressed_match, "PrecompressedMatch", NULL,
        "The files for which variants are looked for: patterns of their paths (`/assets`, `*.css`). An index "
        "has the path of its own name. Without this key, all files.",
        .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_LIST(
        struct static_host, try_files, "TryFiles", NULL,
        "Names that are tried for a path, in this order; `$path` is the path. `$path/` is a directory with an "
        "index. A last `=404` is the status if none exists. Without this key only the path itself is tried. A "
        "single-page application needs `$path /index.html`."),
    MK_CONF_KEY_CUSTOM(
        struct static_host, user_dir, "UserDir", NULL,
        "Serves `/~name/` from this folder in the user's home, such as `public_html`, for users with a number of "
        "1000 and above, except the user `nobody`.",
        .unit = "folder", .parse = mk__static_userdir_parse),
    MK_CONF_KEY_LIST(struct static_host, index, "Indexfile", NULL,
                     "Overrides `Indexfile` of the server for this host."),
    MK_CONF_KEY_ENUM(struct static_host, symlinks, "SymLink", "Server",
                     "Overrides `SymLink` of the server for this host. `Server`: as there.",
                     .names = own_symlink_names),
    MK_CONF_KEY_ENUM(struct static_host, ranges, "Resume", "Server",
                     "Overrides `Resume` of the server for this host. `Server`: as there.", .names = own_switch_names),
    MK_CONF_KEY_ENUM(struct static_host, tags, "ETag", "Server",
                     "Overrides `ETag` of the server for this host. `Server`: as there.", .names = own_tag_names),
    MK_CONF_KEY_ENUM(struct static_host, dotfiles, "DotFiles", "Server",
                     "Overrides `DotFiles` of the server for this host. `Server`: as there.",
                     .names = own_switch_names),
    {0},
};

static void check_host(const struct mk_conf_check *check, void *section)
{
    mk__static_precompressed_check(check, section);
    mk__static_find_check_tryfiles(check, section);
    check_index(check, &((struct static_host *)section)->index, offsetof(struct static_host, index));
}

static const struct mk_conf_short_form short_root = {
    .name = "Root", .key = "DocumentRoot", .doc = MK_CONF_DOC("Another name of `DocumentRoot`: `Root /srv/www`.")};

const struct mk_conf_section mk__static_settings_sections[] = {
    {.name = "SERVER",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct static_settings),
     .keys = server_keys,
     .doc = MK_CONF_DOC("Files in general."),
     .check = check_server},
    {.name = "HOST",
     .scope = MK_CONF_SCOPE_HOST,
     .size = sizeof(struct static_host),
     .keys = host_keys,
     .short_form = &short_root,
     .doc = MK_CONF_DOC("The files of this host."),
     .check = check_host},
    {.name = "ERROR_PAGES",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_PAIRS | MK_CONF_REPEAT,
     .size = sizeof(struct error_pages_conf),
     .keys = mk__static_error_pages_keys,
     .doc = MK_CONF_DOC(
         "Pages for errors by status: `404 /errors/404.html`, a file below the document root of at most "
         "64 KB, or `503 \"Back in a minute.\"`, a text, which is HTML if it begins with `<`. They are read "
         "at the start and replace the server's pages; the status stays. The first section that matches a path is "
         "used, as a whole. In `monkey.conf` a file is looked for below the document root of each host; one that "
         "lacks it has the server's page. A request whose head cannot be read (400) or is too long (414, 431) has "
         "no host, and gets the server's page.")},
    {.name = "ALIAS",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
     .size = sizeof(struct alias_rule),
     .keys = mk__static_alias_keys,
     .doc = MK_CONF_DOC("Paths that are served from another folder, or file, than the document root. The first "
                        "section that matches is used, before the document root.")},
    {0},
};

static int choose_value(int own, int servers)
{
    return own ? own - 1 : servers;
}

const struct static_settings *mk__static_settings_merge(struct static_site *site, const struct static_settings *server)
{
    const struct static_host *host = site->host;
    assert(host);
    site->own_settings = (struct static_settings){
        .index = host->index.n ? host->index : server->index,
        .symlinks = choose_value(host->symlinks, server->symlinks),
        .ranges = choose_value(host->ranges, server->ranges),
        .tags = choose_value(host->tags, server->tags),
        .dotfiles = choose_value(host->dotfiles, server->dotfiles),
    };
    return &site->own_settings;
}
