// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin interface: one const struct, named hooks, all of them optional.
 *
 *     MK_PLUGIN(hello) = {
 *         MK_PLUGIN_HEAD("hello", "1.0", "answers /hello"),
 *         .on_content = say_hello,
 *     };
 *
 * A request passes the hooks of all loaded plugins in the order of plugins.load:
 *
 *     transport ─► on_request (access) ─► on_content ─► on_response ─► on_done
 *                  all, until one answers    the first        all           all
 *                                            that takes it
 *
 * Hooks of the request path run in the worker that serves the connection and must not block. A plugin has
 * no state of its own in globals: what it prepares for a host is handed back to it with each request.
 */
#ifndef MONKEY_PLUGIN_H
#define MONKEY_PLUGIN_H

#include "conf.h"
#include "log.h"
#include "request.h"
#include "transport.h"

/* Changes with every change of this header that a compiled plugin would not survive. */
enum { MK_PLUGIN_ABI = 1 };

struct mk_host;

struct mk_plugin {
    uint32_t abi, size; /* filled by MK_PLUGIN_HEAD */
    const char *name, *version, *summary;

    /* The sections that it adds to the configuration; ends with a row without a name. */
    const struct mk_conf_section *sections;

    /* Networking: it can carry connections; chosen by `TransportLayer`. */
    const struct mk_transport *transport;

    /*
     * A host of a new generation is being prepared, in the process context: check what the configuration
     * says (mk_host_error) and open what requests will need. `*ret_state` comes back in
     * mk_request_host_state(). 0 or -errno.
     */
    int (*host_start)(struct mk_host *host, void **ret_state);
    /* The last request of the generation is over. */
    void (*host_stop)(struct mk_host *host, void *state);

    /*
     * The head of a request is complete; may it go on? MK_DECLINED: no objection. 0: I have answered, or
     * will, or will call mk_request_continue() when I know. -errno: 500.
     */
    int (*on_request)(struct mk_request *req);
    /* Who answers? As above. Nobody: 404, or 501 for a method that is not a known one. */
    int (*on_content)(struct mk_request *req);
    /* The response's head is about to leave: look at status and fields, change them. */
    void (*on_response)(struct mk_request *req);
    /* The exchange is over, for better or worse (mk_request_aborted). */
    void (*on_done)(struct mk_request *req);
};

#define MK_PLUGIN(name) \
    extern const struct mk_plugin mk_plugin_##name; \
    MK_API const struct mk_plugin mk_plugin_##name

#define MK_PLUGIN_HEAD(plugin_name, plugin_version, plugin_summary) \
    .abi = MK_PLUGIN_ABI, .size = sizeof(struct mk_plugin), .name = plugin_name, .version = plugin_version, \
    .summary = plugin_summary

/* ── the host of a configuration ── */

/* What a section of the host's file holds, and a section of the server's files. As mk_conf_section says. */
MK_API const void *mk_host_conf(const struct mk_host *host, const struct mk_conf_section *section);
/* Of a section that repeats: the struct behind `data`, which came from one of these; NULL after the last. */
MK_API const void *mk_host_conf_next(const struct mk_host *host, const struct mk_conf_section *section,
                                     const void *data);
MK_API const void *mk_host_server_conf(const struct mk_host *host, const struct mk_conf_section *section);

/* Is that the text of one of the server's Listen lines? */
MK_API bool mk_host_has_listener(const struct mk_host *host, struct mk_str text);

/*
 * Tells the operator what is wrong with the field at `offset` of a section's struct, with its line: its `nth`
 * item or line, from 0; the nth pair where the section has free keys. Only during host_start, which then
 * returns -EINVAL. What several hosts say of a section of the server is told once.
 */
MK_API void mk_host_error(struct mk_host *host, const void *section_struct, size_t offset, unsigned nth,
                          const char *format, ...) MK_PRINTF(5, 6);

/*
 * For a section that repeats and of which the first that matches counts: tells the operator of each whose struct
 * mk_pattern, at `pattern` of its struct, leaves nothing to match behind an earlier one. 0, -EINVAL when there are
 * any, -ENOMEM. Only during host_start.
 */
MK_API int mk_host_check_patterns(struct mk_host *host, const struct mk_conf_section *section, size_t pattern);

/* ── the request of a plugin ── */

/*
 * A hook that returned 0 to think about it declines after all: the next plugin is asked. Does nothing
 * when the request has been answered.
 */
MK_API void mk_request_continue(struct mk_request *req);

/* What `plugin` prepared for the request's host. */
MK_API void *mk_request_host_state(const struct mk_request *req, const struct mk_plugin *plugin);

/* The text of the Listen line that the request's connection came by ("127.0.0.1:9000"); lives as long as `req`. */
MK_API struct mk_str mk_request_listener(const struct mk_request *req);
/* Has the server been asked to stop? It may answer for a while yet (StopDelay, DrainTimeout). */
MK_API bool mk_request_draining(const struct mk_request *req);
/*
 * What was prepared for the request's host stays as long as the request. A job or a message that goes on with it
 * beyond the request's end takes a pin before, and gives it back in the same worker.
 */
struct mk_pin;
MK_API struct mk_pin *mk_request_pin(const struct mk_request *req);
MK_API void mk_unpin(struct mk_pin *pin);

/* In on_done: did the client leave, or the response fail, before all of it was handed over? */
MK_API bool mk_request_aborted(const struct mk_request *req);
/* In on_done: bytes of the response's body handed over. */
MK_API uint64_t mk_request_bytes_sent(const struct mk_request *req);

#endif
