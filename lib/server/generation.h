// SPDX-License-Identifier: Apache-2.0
/*
 * One loaded configuration with everything that was made from it: settings, types, plugins, hosts. Read-only
 * once it is loaded, so that all workers may look at it.
 *
 *     generation ─► settings, mime
 *                ─► plugins (in their order)
 *                ─► hosts ─► a state for each plugin
 *                ─► vhosts: the hosts by their names
 */
#ifndef MK_SERVER_GENERATION_H
#define MK_SERVER_GENERATION_H

#include <monkey/plugin.h>

#include <assert.h>
#include <stdatomic.h>

#include "conf/conf.h"
#include "http/message/mime.h"
#include "server/settings.h"
#include "server/listen/listeners.h"
#include "server/vhost.h"

enum { MK__PLUGINS_MAX = 32, MK__OVERRIDES_MAX = 16 };
static_assert(MK__PLUGINS_MAX <= 32, "a bit each");

struct mk__module;

struct mk_host {
    struct mk_host *next;
    struct mk_generation *generation;
    struct mk__conf_set *set;
    const struct mk__host_settings *settings;
    struct mk__http_limits limits;
    const struct mk__handlers *handlers;
    void *states[MK__PLUGINS_MAX];
    uint32_t started; /* the plugins that have been started for it, a bit each */
};

/* Where a configuration comes from. */
struct mk__generation_source {
    const char *dir;  /* of monkey.conf, or NULL */
    const char *root; /* of one-shot mode, or NULL */
    struct mk__override {
        const char *section, *key, *value, *origin;
    } overrides[MK__OVERRIDES_MAX];
    unsigned n_overrides;
};

struct mk_generation {
    _Atomic unsigned refs;                      /* the server, and each worker where something of it is under way */
    void (*on_unused)(struct mk_generation *g); /* after the last of them, in any thread; may be NULL */
    struct mk_message message;                  /* for whoever wants to be told in another thread */
    void *owner;                                /* of the one who set `unheld` */
    struct mk_arena arena;
    struct mk__conf *conf;      /* NULL without memory */
    struct mk__conf *load_conf; /* of plugins.load */
    struct mk__conf_set *set;
    const struct mk__settings *settings;
    struct mk__http_settings http;
    struct mk__mime mime;
    const struct mk_transport *transport;
    const struct mk_plugin *plugins[MK__PLUGINS_MAX];
    struct mk__module *modules[MK__PLUGINS_MAX]; /* of those that lie in a file */
    void *states[MK__PLUGINS_MAX];
    uint32_t used, started; /* the plugins that were started for the process, and for this generation, a bit each */
    uint32_t failed;        /* those with errors in their sections or starts: they are not asked about the whole */
    unsigned n_plugins;
    uint32_t guessed;     /* plugins that were loaded in place of a misspelt name, to check the rest with them */
    uint32_t flags;       /* of all plugins together */
    bool plugins_missing; /* plugins.load names one that could not be loaded, which was reported */
    struct mk_host *hosts, *last_host, *default_host;
    struct mk__vhosts vhosts;
};

/* Reads and prepares everything. 0; -EINVAL: see the problems; -ENOMEM. To be freed in each case. */
int mk__generation_load(struct mk_generation *g, const struct mk__generation_source *source);
void mk__generation_free(struct mk_generation *g);
/* Stops its plugins, which give back what they hold. One that failed is kept for its problems alone. */
void mk__generation_stop(struct mk_generation *g);

/* Any thread. A generation has one holder when it is loaded. */
struct mk_generation *mk__generation_get(struct mk_generation *g);
void mk__generation_put(struct mk_generation *g);

void mk__generation_diagnostics(const struct mk_generation *g, struct mk_buf *out);

/* The number of a plugin in it, or -1. */
int mk__generation_find_plugin(const struct mk_generation *g, const struct mk_plugin *plugin);

/* Its listener with these sockets; NULL: it has none. */
const struct mk__listen_conf *mk__generation_listen_conf(const struct mk_generation *g,
                                                         const struct mk__listener *listener);
/*
 * How a connection is treated that came by these sockets: as its own listener says, not another generation's. One that
 * is not its own had a connection just before a reload took it away: as before, if that is still possible. 0, or
 * -ENOTCONN: it is not.
 */
int mk__generation_listen_mode(const struct mk_generation *g, const struct mk__listener *listener,
                               struct mk__listen_mode *ret);
/* The listener as its file writes it. */
struct mk_str mk__generation_listener_text(const struct mk_generation *g, const struct mk__listener *listener);

/* How many workers it wants. */
unsigned mk__generation_workers(const struct mk_generation *g);

/* The host of that name (without a port), or the default one. */
struct mk_host *mk__generation_find_host(const struct mk_generation *g, struct mk_str name);

/* Declares the sections of the core and of all plugins of the build, for the manual. 0 or -errno. */
int mk__generation_declare_all(struct mk__conf *conf);

#endif
