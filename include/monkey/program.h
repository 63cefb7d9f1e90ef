// SPDX-License-Identifier: Apache-2.0
/*
 * Which plugin of a host takes a path, and which programs its plugins run: for those that run files or pass requests
 * on, and the one that serves files. mk_host_is_source() (<monkey/plugin.h>) tells of one file. From generation_check
 * on, any thread.
 */
#ifndef MONKEY_PROGRAM_H
#define MONKEY_PROGRAM_H

#include "base/pattern.h"
#include "plugin.h"

MK_C_BEGIN

/* What a section runs; the strings are valid during the call. */
struct mk_program {
    const void *section_struct; /* with the key at `offset`: see mk_host_error() */
    size_t offset;
    struct mk_str folder; /* absolute; empty: the document root */
    struct mk_str name;   /* below it, with a slash before it */
};
typedef void (*mk_program_fn)(const struct mk_program *program, void *ctx);
/*
 * Calls `fn` for what each section of each plugin runs, with a name as an example: for messages about other hosts,
 * which would send it. In generation_check.
 */
MK_API void mk_host_each_program(const struct mk_host *host, mk_program_fn fn, void *ctx);

/*
 * Returns whether a request for the path of a source gets to the plugin that runs it, by one of its sections. Any
 * thread.
 */
MK_API bool mk_host_runs_source(const struct mk_host *host, struct mk_str path);
/*
 * Returns whether GET of a path gets to the plugin that serves files: neither a line of [HANDLERS] nor a section of a
 * plugin before it takes the path.
 */
MK_API bool mk_host_asks_files(const struct mk_host *host, struct mk_str path);
/*
 * Returns whether a plugin denies GET of a path to all clients, as a section [RULES] with no other condition does, or
 * redirects it with all others of the host: for messages about what is sent. In generation_check.
 */
MK_API bool mk_host_denies_path(const struct mk_host *host, struct mk_str path);
/*
 * Returns whether files come before a section that has the path by a prefix (`Match /app`): the path is that of an
 * [ALIAS] within the prefix (`/app/static`), or of such a line of [HANDLERS] with the plugin that serves files. A
 * plugin with sections that answer requests declines these paths.
 */
MK_API bool mk_host_prefers_files(const struct mk_host *host, const struct mk_pattern *match, struct mk_str path);
/* Returns the pattern of the n-th line of [HANDLERS], from 0, that names the plugin; NULL: there are not that many. */
MK_API const struct mk_pattern *mk_host_handler(const struct mk_host *host, const struct mk_plugin *plugin, unsigned n);

/* ── requests ── */

/*
 * Has the content of another path of the host sent in place of that of the request, as for the index of a folder (an
 * internal redirect): on_content of all plugins is asked again, with this path. Access goes by both paths: on_head and
 * on_request of the plugins with MK_PLUGIN_DECIDES_ACCESS are called before, so that rules and logins hold for the new
 * path as for a request of it. `path` is decoded and normalized, and copied. In on_content, which returns 0 then, or
 * later. Responds in any case.
 */
MK_API void mk_request_redirect_internally(struct mk_request *req, struct mk_str path);
/*
 * Has rules and logins decide about another path of the host, too, whose file is sent for the request: the index of a
 * folder, for example. on_head and on_request of the plugins with MK_PLUGIN_DECIDES_ACCESS are called with this path as
 * mk_request_path(), and the section of [LIMITS] for it holds. `path` is decoded and normalized, and copied. In
 * on_content, or later.
 * Returns MK_DECLINED (they let it pass, or there are none: the caller responds) or 0: one of them has responded, or
 * will do so, or on_content of the caller is called again, where mk_request_decided_path() is this path.
 */
MK_API int mk_request_decide_access(struct mk_request *req, struct mk_str path);
/* Returns whether mk_request_decide_access() has something to ask: a plugin, or [LIMITS] by path. Any thread. */
MK_API bool mk_host_decides_access(const struct mk_host *host);
/*
 * Returns the last other path that rules and logins have decided about for the request: that before an internal
 * redirect, or that of mk_request_decide_access(). `.p` NULL: none.
 */
MK_API struct mk_str mk_request_decided_path(const struct mk_request *req);

MK_C_END

#endif
