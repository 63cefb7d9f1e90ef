// SPDX-License-Identifier: Apache-2.0
/*
 * One loaded configuration with everything that was made from it: settings, types, plugins, hosts. Read-only once it is
 * loaded, so that all workers may read it. The main thread loads it; that thread or the control thread stops and frees
 * it.
 *
 *     generation ─► settings, mime
 *                ─► plugins (in their order)
 *                ─► hosts ─► a state for each plugin
 *                ─► vhosts: finds a host by its name
 */
#ifndef MK_SERVER_GENERATION_H
#define MK_SERVER_GENERATION_H

#include <monkey/plugin.h>

#include <assert.h>
#include <stdatomic.h>

#include "conf/conf.h"
#include "http/message/mime.h"
#include "server/generation/settings.h"
#include "server/listen/listeners.h"
#include "server/generation/vhost.h"

enum { MK__PLUGINS_MAX = 32, MK__OVERRIDES_MAX = 16, MK__PROGRAM_PLUGINS_MAX = 16 };

/* The hooks of a request. The first three are called in this order until a plugin takes the request. */
enum { MK__HOOK_HEAD, MK__HOOK_REQUEST, MK__HOOK_CONTENT, MK__HOOK_RESPONSE, MK__HOOK_DONE, MK__HOOKS };

static_assert(MK__PLUGINS_MAX <= 32, "a bit each in uint32_t");

enum { MK__PLUGIN_SLOTS = 256 }; /* a power of two */

struct mk__host_counts;
struct mk__module;
struct mk__path_limits;
struct mk__spools;

struct mk_host {
    struct mk_host *next;
    struct mk_generation *generation;
    struct mk__conf_set *set;
    const struct mk__host_settings *settings;
    struct mk__http_limits limits;
    const struct mk__path_limits *path_limits; /* NULL: no [LIMITS] */
    struct mk__host_counts *counts;            /* NULL: requests are not counted */
    struct mk__handlers handlers;
    void *states[MK__PLUGINS_MAX];
    uint32_t started;   /* plugins whose host_start succeeded, a bit each */
    uint32_t skipped;   /* plugins whose hooks for requests are not called: MK_PLUGIN_STATE_NEEDED */
    uint8_t first_hook; /* the first MK__HOOK_ of requests at which anything is called */
    struct mk_host_folder *folders, *last_folder;
    bool folders_read; /* by the plugin that serves files */
    bool uses_access;  /* a plugin asks mk_request_access() */
};

/* What a program that embeds the server adds to a configuration, or passes in place of files. */
struct mk__program {
    bool in_caller;     /* it has one worker, in the thread that calls mk_server_run_once() */
    struct mk_str text; /* of the server and its hosts; the first host is the default; `p` NULL: none */
    const struct mk_plugin *plugins[MK__PROGRAM_PLUGINS_MAX];
    unsigned n_plugins;
};

/* Where a configuration comes from. */
struct mk__generation_source {
    const char *dir;                   /* of monkey.conf or of `file`, or NULL */
    const char *file;                  /* the only file that is read, with those that it includes; or NULL */
    const char *root;                  /* of one-shot mode, or NULL */
    const char *root_origin;           /* how it was passed, for messages */
    bool check_only;                   /* it will not be started */
    bool check_only_supervised;        /* the same if it says Supervisor On */
    bool drops_root, after_root;       /* of mk_server_drops_root() and mk_server_check_after_root() */
    bool was_root;                     /* root started the server */
    const struct mk__program *program; /* NULL: nothing */
    struct mk__override {
        const char *section, *key, *value, *origin;
        bool of_plugin; /* without effect if no loaded plugin has the key */
    } overrides[MK__OVERRIDES_MAX];
    unsigned n_overrides;
};

/* The hosts that answer at one Listen line: see server/generation/bound_hosts.h. */
struct mk__bound_hosts {
    struct mk__vhosts vhosts;
    struct mk_host *default_host;
};

struct mk_generation {
    struct mk_server *server;                   /* these two are set once it is loaded */
    uint32_t number;                            /* from 1, counted by the server */
    _Atomic unsigned refs;                      /* the server, and each struct mk_worker */
    void (*on_unused)(struct mk_generation *g); /* called in any thread with the last release; may be NULL */
    struct mk_message message;                  /* for on_unused */
    void *owner;                                /* of on_unused */
    struct mk_generation *next_unused;          /* likewise: a list of its owner */
    struct mk_arena arena;
    struct mk__conf *conf;      /* NULL: no memory */
    struct mk__conf *load_conf; /* of plugins.load; NULL without that file */
    struct mk__conf_set *set;
    const struct mk__settings *settings;
    struct mk__http_settings http;
    struct mk__mime mime;
    const struct mk_transport *transport;
    const struct mk_plugin *plugins[MK__PLUGINS_MAX];
    struct mk__module_list *module_list;         /* opened to tell whose an unknown name is; NULL: none */
    struct mk__module *modules[MK__PLUGINS_MAX]; /* of plugins that are shared objects; else NULL */
    void *states[MK__PLUGINS_MAX], *plugin_states[MK__PLUGINS_MAX]; /* of generation_start and of start */
    uint32_t used, started;    /* plugins started for the process, and for this generation, a bit each */
    uint32_t failed;           /* those with errors in their sections or starts: no generation_check */
    uint32_t hooks[MK__HOOKS]; /* the plugins that have each hook, a bit each */
    uint32_t skipped;          /* those with MK_PLUGIN_STATE_NEEDED, for requests without a host */
    uint32_t access;           /* those with MK_PLUGIN_DECIDES_ACCESS */
    unsigned n_plugins, workers;
    uint8_t plugin_slots[MK__PLUGIN_SLOTS]; /* indexes by hashed addresses; a wrong one does no harm */
    struct mk__spools *spools;              /* for bodies that wait; NULL: no plugin has any */
    bool check_only;                        /* it is only checked or shown */
    bool drops_root, after_root, was_root;  /* as the source says */
    const char *dir;                        /* likewise, while it is loaded */
    bool in_program;                        /* a program has the server in it (<monkey/embed.h>) */
    bool one_shot;                          /* a folder is served, and no program is started for it */
    bool stopped;                           /* the plugins' stops were called */
    bool plugins_missing;                   /* plugins.load names one that could not be loaded; it was reported */
    struct mk_host *hosts, *last_host, *default_host;
    struct mk__vhosts vhosts;
    struct mk__bound_hosts *bound; /* of each Listen line; NULL: no host is bound to a listener */
};

/* Take and release a reference. Any thread. A generation is loaded with one reference. */
struct mk_generation *mk__generation_get(struct mk_generation *g);
void mk__generation_put(struct mk_generation *g);

/* Appends the errors and warnings of its configuration. */
void mk__generation_diagnostics(const struct mk_generation *g, struct mk_buf *out);

/* Sets `hooks`, `skipped` and `access`, once it has its plugins. */
void mk__generation_find_hooks(struct mk_generation *g);
/* Sets `first_hook` of a host, once it has `skipped` and its limits for paths. */
void mk__generation_find_first_hook(const struct mk_generation *g, struct mk_host *host);

/* The slot of a plugin in mk_generation.plugin_slots. */
static inline unsigned mk__generation_plugin_slot(const struct mk_plugin *plugin)
{
    return (uintptr_t)plugin >> 5 & (MK__PLUGIN_SLOTS - 1);
}

/* Returns the plugin's index in the generation, or -1. Plugins ask for their states several times in each request. */
static inline int mk__generation_find_plugin(const struct mk_generation *g, const struct mk_plugin *plugin)
{
    assert(g->n_plugins <= MK__PLUGINS_MAX);
    unsigned guess = g->plugin_slots[mk__generation_plugin_slot(plugin)];
    if (g->plugins[guess] == plugin)
        return (int)guess;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i] == plugin)
            return (int)i;
    return -1;
}

/* Returns the line of the pattern at an offset of a section's struct, else that of the section. */
struct mk__conf_origin mk__host_find_rule(const struct mk_host *host, const void *section_struct, size_t pattern);

/* Returns the configuration's Listen for these sockets; NULL: it has none. */
const struct mk__listen_conf *mk__generation_listen_conf(const struct mk_generation *g,
                                                         const struct mk__listener *listener);
/*
 * Returns how to treat a connection of these sockets: as this generation's Listen says. A listener that this generation
 * does not have accepted the connection just before a reload removed it: the connection is treated as before, if the
 * transport is still loaded and needs no PROXY header. Returns 0, or -ENOTCONN: it cannot be served.
 */
int mk__generation_listen_mode(const struct mk_generation *g, const struct mk__listener *listener,
                               struct mk__listen_mode *ret);
/* Returns the listener's address as the configuration writes it. */
struct mk_str mk__generation_listener_text(const struct mk_generation *g, const struct mk__listener *listener);

/* Returns the path to which rules by path apply: "/" for "OPTIONS *", and for a path that could not be decoded. */
static inline struct mk_str mk__generation_rule_path(struct mk_str path)
{
    return path.len && path.p[0] == '/' ? path : MK_STR("/");
}

/*
 * Returns the host of that name (without a port) at a listener, or the default host. `listener` may be NULL, or one
 * that this generation does not have: then hosts that are bound to listeners are left out.
 */
struct mk_host *mk__generation_find_host(const struct mk_generation *g, const void *listener, struct mk_str name);

#endif
