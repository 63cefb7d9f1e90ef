// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the modules that a configuration mentions (server/plugins/autoload.h). lib/core/conf reads the files into a
 * configuration without sections.
 */
#include "server/plugins/autoload.h"

#include "base/file.h"
#include "conf/conf.h"
#include "conf/skipped_files.h"

#include <monkey/base/buf.h>

#include <errno.h>

enum { NAME_BYTES = 256, ARENA_BYTES_MAX = 64 * 1024 * 1024 };

struct search {
    const char *const *names;
    bool caches_files; /* with the plugin that serves files, the one that caches them */
    uint32_t found;
};

struct visit {
    const struct mk__autoload_files *files;
    struct mk__conf *conf;
    struct mk__conf_set *set;
};

uint32_t mk__autoload_match_word(struct mk_str word, const char *const *names)
{
    for (unsigned i = 0; names[i]; i++)
        if (mk_str_ieq(word, mk_str_c(names[i])))
            return 1u << i;
    return 0;
}

/* Names of sections and keys, and a value, that mean a plugin of another name. */
static const struct {
    struct mk_str section, name, value, plugin; /* `.p` NULL: any */
} others[] = {{.name = MK_STR("WEB_SERVICE"), .plugin = MK_STR("duda")},
              {.name = MK_STR("DocumentRoot"), .plugin = MK_STR("static")},
              {.section = MK_STR("HOST"), .name = MK_STR("Root"), .plugin = MK_STR("static")},
              {.section = MK_STR("HOST"), .name = MK_STR("PHP"), .plugin = MK_STR("fastcgi")},
              {.section = MK_STR("HOST"), .name = MK_STR("Login"), .plugin = MK_STR("auth")},
              {.section = MK_STR("HOST"), .name = MK_STR("Listing"), .plugin = MK_STR("dirlisting")},
              {MK_STR("HOST"), MK_STR("Redirect"), MK_STR("https"), MK_STR("tls")},
              {.name = MK_STR("REWRITE"), .plugin = MK_STR("redirect")},
              {.name = MK_STR("RULES"), .plugin = MK_STR("mandril")},
              {.name = MK_STR("CLIENT_LIMITS"), .plugin = MK_STR("mandril")},
              {.name = MK_STR("CONNECTIONS"), .plugin = MK_STR("mandril")},
              {.name = MK_STR("AUTH_LIMITS"), .plugin = MK_STR("auth")},
              {.name = MK_STR("DIRLISTING_LIMITS"), .plugin = MK_STR("dirlisting")},
              {.name = MK_STR("SCGI"), .plugin = MK_STR("fastcgi")}};

static bool is_or_any(struct mk_str wanted, struct mk_str text)
{
    return !wanted.p || mk_str_ieq(wanted, text);
}

static struct mk_str find_plugin_name(struct mk_str section, struct mk_str name, struct mk_str value)
{
    for (unsigned i = 0; i < MK_COUNT_OF(others); i++)
        if (mk_str_ieq(name, others[i].name) && is_or_any(others[i].section, section) &&
            is_or_any(others[i].value, value))
            return others[i].plugin;
    return name;
}

static void match_line(struct mk_str section, struct mk_str name, const struct mk_conf_value *value, void *ctx)
{
    struct search *s = ctx;
    name = mk_str_until(name, ":="); /* a sign behind a key, which is reported later */
    name = find_plugin_name(mk_str_until(section, " \t"), name, value ? value->text : MK_STR_NONE);
    bool transport = mk_str_ieq(name, MK_STR("Listen")) || mk_str_ieq(name, MK_STR("TransportLayer"));
    s->found |= mk__autoload_match_word(name, s->names);
    if (s->caches_files && mk_str_eq(name, MK_STR("static")))
        s->found |= mk__autoload_match_word(MK_STR("cache"), s->names);
    for (uint32_t i = 0; value && transport && i < value->n; i++)
        s->found |= mk__autoload_match_word(value->words[i], s->names);
}

static int visit_file(struct visit *v, const char *path)
{
    return mk__conf_read(v->conf, v->set, path) == -ENOMEM ? -ENOMEM : 0;
}

static int visit_matches(struct visit *v, struct mk_arena *arena, struct mk_str pattern)
{
    struct mk_str *paths;
    size_t n = 0;
    struct mk_str dir = mk_str_c(v->files->dir);
    int err = mk__file_glob(dir, pattern, MK__FILE_ONLY, arena, &paths, &n) == -ENOMEM ? -ENOMEM : 0;
    for (size_t i = 0; i < n && err == 0; i++)
        if (!mk__skipped_files_describe(paths[i].p))
            err = visit_file(v, paths[i].p);
    return err;
}

/* The files in the order in which the server reads them, because variables are valid in later files too. */
static int visit_dir(struct visit *v)
{
    const char *const *names = v->files->names;
    struct mk_arena arena;
    mk_arena_init(&arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    int err = visit_matches(v, &arena, MK_STR("/monkey.conf"));
    for (unsigned i = 0; names[i] && err == 0; i++) {
        MK_BUF_ON_STACK(name, NAME_BYTES);
        mk_buf_addf(&name, "/plugins/%s/%s.conf", names[i], names[i]);
        err = visit_matches(v, &arena, mk_buf_str(&name));
    }
    err = err < 0 ? err : visit_matches(v, &arena, MK_STR("/sites/*"));
    mk_arena_release(&arena);
    return err;
}

int mk__autoload_visit_files(struct mk__conf *conf, const struct mk__autoload_files *files, mk__conf_line_fn fn,
                             void *ctx)
{
    struct visit v = {files, conf, mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER)};
    if (!v.set)
        return -ENOMEM;
    mk__conf_on_line(conf, fn, ctx);
    return files->file ? visit_file(&v, files->file) : visit_dir(&v);
}

int mk__autoload_visit_text(struct mk__conf *conf, struct mk_str text, mk__conf_line_fn fn, void *ctx)
{
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    if (!set)
        return -ENOMEM;
    mk__conf_on_line(conf, fn, ctx);
    return mk__conf_read_text(conf, set, "text", text) == -ENOMEM ? -ENOMEM : 0;
}

int mk__autoload_find_in_text(struct mk__conf *conf, struct mk_str text, const char *const *names, uint32_t *ret_wanted)
{
    struct search s = {.names = names};
    int err = mk__autoload_visit_text(conf, text, match_line, &s);
    *ret_wanted |= s.found;
    return err;
}

/* The socket of shells is there by default where a server has a folder for it, as systemd's services have. */
static uint32_t match_shell(const char *const *names)
{
    return mk_file_run_folder().len ? mk__autoload_match_word(MK_STR("cheetah"), names) : 0;
}

int mk__autoload_find_modules(struct mk__conf *conf, const struct mk__autoload_files *files, uint32_t *ret_wanted)
{
    struct search s = {.names = files->names, .caches_files = true};
    int err = mk__autoload_visit_files(conf, files, match_line, &s);
    *ret_wanted = s.found | match_shell(files->names);
    return err;
}
