// SPDX-License-Identifier: Apache-2.0
/*
 * Hosts: their sites are opened when a configuration is loaded, and tell other plugins of their files (host.h).
 */
#include "host.h"

#include <monkey/base/arena.h>
#include <monkey/base/file.h>

#include "alias.h"
#include "errors.h"
#include "find.h"
#include "host_path.h"
#include "open.h"
#include "other_programs.h"
#include "root.h"
#include "settings.h"
#include "sources.h"
#include "userdir.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* ── loading ── */

void mk__static_host_stop(struct mk_host *host, void *state)
{
    struct static_site *site = state;
    (void)host;
    mk__static_errors_free(site);
    mk__static_alias_free(site);
    if (site->root_fd >= 0)
        mk__static_root_close(site);
    mk_account_free(NULL, site, sizeof(*site));
}

/*
 * Opens the document root. If that fails, root_fd is -1, and what needs no root is still checked. A host without one
 * has no own files, only those of aliases and users.
 */
static int open_root(struct mk_host *host, struct static_site *site, const struct static_host *conf)
{
    int err = conf->root.len ? mk__static_root_open(site, conf->root) : -ENOENT;
    if (err == 0 && access(conf->root.p, X_OK) < 0) { /* O_PATH alone checks no permission */
        err = -errno;
        mk__static_root_close(site);
    }
    if (err == 0)
        return 0;
    site->root_fd = -1;
    site->path = MK_STR_NONE;
    site->next_check_ms = UINT64_MAX;
    if (!conf->root.len)
        return 0; /* an error was reported if there should be one */
    mk_host_error(host, conf, offsetof(struct static_host, root), 0, "cannot open the document root %s: %s",
                  conf->root.p, strerror(-err));
    return err == -ENOMEM ? err : -EINVAL;
}

int mk__static_host_start(struct mk_host *host, void **ret_state)
{
    const struct static_host *conf = mk_host_conf(host, &mk__static_settings_sections[SETTINGS_HOST]);
    struct static_site *site = mk_account_alloc(NULL, sizeof(*site));
    if (!site)
        return -ENOMEM;
    *site = (struct static_site){.host = conf, .owner = host};
    site->settings = mk_host_server_conf(host, &mk__static_settings_sections[SETTINGS_SERVER]);
    site->hints_at_listing = mk_generation_is_one_shot(mk_host_generation(host));
    site->settings = mk__static_settings_merge(site, site->settings);
    int err = open_root(host, site, conf);
    if (err != -ENOMEM) {
        int pages = mk__static_errors_load(host, site, &mk__static_settings_sections[SETTINGS_ERROR_PAGES]);
        err = err < 0 && pages != -ENOMEM ? err : pages;
    }
    if (err != -ENOMEM) {
        int aliases = mk__static_alias_load(host, site, &mk__static_settings_sections[SETTINGS_ALIAS]);
        err = err < 0 && aliases != -ENOMEM ? err : aliases;
    }
    site->has_files = site->root_fd >= 0 || site->aliases || conf->user_dir.len;
    if (err < 0) {
        mk__static_host_stop(host, site);
        return err;
    }
    *ret_state = site;
    return 0;
}

static int add_folders(struct mk_host *host, struct static_site *site)
{
    int result = 0;
    for (const struct mk_host_folder *f = mk_host_folders(host); f && result != -ENOMEM; f = f->next) {
        int err = mk__static_alias_add_folder(host, site, f);
        site->has_files |= err == 0;
        result = err < 0 ? err : result;
    }
    return result;
}

/* Opens the folders that plugins before this one have added, and learns which files are programs of others. */
static int check_host(struct mk_host *host)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    if (!site)
        return 0;
    int err = add_folders(host, site);
    mk__static_sources_init(site);
    mk__static_alias_init_sources(site);
    int pages = mk__static_errors_check(host, site);
    return err < 0 ? err : pages;
}

/* A check says once what the log of a server says. */
static void warn_of_openat2(struct mk_generation *g)
{
    struct mk_host *host = mk_generation_first_host(g);
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    MK_BUF_ON_STACK(text, 300);
    if (site && site->host->root.len && mk_generation_is_check(g) && mk_file_explain_openat2(&text))
        mk_host_warn(host, site->host, offsetof(struct static_host, root), 0, "%s", mk_buf_cstr(&text));
}

int mk__static_host_check_all(struct mk_generation *g, void *state)
{
    int result = 0;
    (void)state;
    for (struct mk_host *host = mk_generation_first_host(g); host && result != -ENOMEM; host = mk_host_next(host)) {
        int err = check_host(host);
        result = err < 0 ? err : result;
    }
    if (result == 0)
        mk__static_other_programs_check(g);
    warn_of_openat2(g);
    return result;
}

/* ── what other plugins ask for ── */

int mk__static_host_open_path(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    return site ? mk__static_host_path_open(site, path, flags) : -ENOENT;
}

bool mk__static_host_explain_path(const struct mk_host *host, struct mk_str path, struct mk_buf *out)
{
    return mk__static_host_path_explain(mk_host_state(host, &mk_plugin_static), path, out);
}

static int load_path(const struct mk_host *host, struct mk_str path, struct mk_file_loader *loader)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    return site ? mk__static_host_path_load(site, path, loader) : -ENOENT;
}

static void each_place(const struct mk_host *host, mk_file_place_fn fn, void *ctx)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    if (site)
        mk__static_host_path_each_place(site, fn, ctx);
}

static bool hides_path(const struct mk_host *host, struct mk_str path)
{
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    return !site || mk__static_open_is_hidden(site, path);
}

static enum mk_tries get_tries(const struct mk_host *host)
{
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    return site ? mk__static_find_get_tries(site->host) : MK_TRIES_NOTHING;
}

static const struct mk_pattern *find_alias(const struct mk_host *host, struct mk_str path)
{
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    return site ? mk__static_alias_find_pattern(site, path) : NULL;
}

const struct mk_file_server mk__static_host_file_server = {.load_path = load_path,
                                                           .each_place = each_place,
                                                           .hides = hides_path,
                                                           .tries = get_tries,
                                                           .find_alias = find_alias};

void mk__static_host_explain(const struct mk_host *host, struct mk_explain *e)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    struct static_location at = {site, e->path, MK_STR_NONE};
    if (e->phase != MK_EXPLAIN_CONTENT || !site || !site->has_files)
        return;
    if (sources_have_path(site, e->path)) {
        mk_explain_add(e, host, NULL, MK_EXPLAIN_NOTE, "is a program, and never sent");
        return;
    }
    bool reads = mk_str_eq(e->method, MK_STR("GET")) || mk_str_eq(e->method, MK_STR("HEAD"));
    if (!reads || mk__static_open_is_hidden(site, e->path))
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS, "%s", reads ? "404: hidden" : "405, or 501");
    else if (!mk__static_alias_find(&at) && mk__static_userdir_match(&at))
        mk_explain_add(e, host, NULL, MK_EXPLAIN_MAYBE, "sends a file below a folder of UserDir");
    else if (at.site->root_fd >= 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_MAYBE, "sends a file below %s", at.site->configured_path.p);
}
