// SPDX-License-Identifier: Apache-2.0
/*
 * scripts: claims files as the programs of a plugin for FastCGI or CGI, but runs none. [SCRIPTS] has `Split`, an
 * extension, and `Folder`, whose files are all programs.
 */
#include <monkey/hooks.h>
#include <monkey/kit/source.h>
#include <monkey/plugin.h>

extern const struct mk_plugin mk_plugin_scripts;

struct scripts {
    struct mk_str split, folder;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_STRING(struct scripts, split, "Split", NULL, "The extension of programs."),
    MK_CONF_KEY_STRING(struct scripts, folder, "Folder", NULL, "A folder of programs."),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "SCRIPTS",
     .scope = MK_CONF_SCOPE_HOST,
     .size = sizeof(struct scripts),
     .keys = keys,
     .doc = MK_CONF_DOC("Programs that are never sent.")},
    {0},
};

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct scripts *conf = mk_host_conf(host, sections);
    *ret_state = conf->split.len || conf->folder.len ? (void *)(uintptr_t)conf : NULL;
    return 0;
}

static bool is_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    const struct scripts *conf = mk_host_state(host, &mk_plugin_scripts);
    if (conf->split.len && mk_source_has_extension(kind, name, conf->split))
        return true;
    return kind == MK_SOURCE_FILE && conf->folder.len && mk_source_is_below(name, conf->folder);
}

static const struct mk_source_hooks source_hooks = {.is_source = is_source};

MK_PLUGIN(scripts) = {
    MK_PLUGIN_HEAD("scripts", "1.0", "claims files as programs"),
    .sections = sections,
    .host_start = start_host,
    .sources = &source_hooks,
};
