// SPDX-License-Identifier: Apache-2.0
/*
 * What is counted for each backend of a plugin that sends requests to other servers: counters with the label `backend`,
 * the text of the directive up to its path, and for those of a group with the label `server`, the line `Server`. They
 * are shown as long as a configuration names them, and have their values again when one names them anew.
 *
 *     process_start      mk_stats_registry_init()
 *     host_start         mk_target_stats_open()
 *     host_stop          mk_target_stats_close()
 *     process_stop       mk_stats_registry_release()
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_BACKEND_STATS_H
#define MONKEY_BACKEND_STATS_H

#include "../counters.h"
#include "target.h"

#include <pthread.h>

MK_C_BEGIN

/* The initializer of the infos of a plugin, by its name. */
#define MK_BACKEND_STATS_INFOS(plugin) \
    { \
        {plugin, "backend_requests", "requests that were passed to a backend", MK_COUNTER_SUM}, \
            {plugin, "backend_responses", "heads of responses of a backend, by class of the status", MK_COUNTER_SUM}, \
            {plugin, "backend_retries", "requests that were sent again, by what was wrong before", MK_COUNTER_SUM}, \
            {plugin, "backend_failures", "requests that a backend did not answer, or not completely", MK_COUNTER_SUM}, \
            {plugin, "backend_timeouts", "requests for which a backend took too long", MK_COUNTER_SUM}, \
            {plugin, "backend_opened_connections", "connections that were opened to a backend", MK_COUNTER_SUM}, \
            {plugin, "backend_connections", "open connections to a backend, by state", MK_COUNTER_LEVEL}, \
            {plugin, "backend_sent_bytes", "bytes that were sent to a backend, heads included", MK_COUNTER_SUM}, \
            {plugin, "backend_received_bytes", "bytes that a backend has sent, heads included", MK_COUNTER_SUM}, \
            {plugin, "backend_connect_duration", "time that new connections took, TLS included", \
             MK_COUNTER_HISTOGRAM}, \
            {plugin, "backend_head_duration", "time from the request to the head of the response", \
             MK_COUNTER_HISTOGRAM}, \
        { \
            plugin, "backend_duration", "time from the request to the end of the response", MK_COUNTER_HISTOGRAM \
        } \
    }

enum mk_backend_counter {
    MK_BACKEND_REQUESTS,
    MK_BACKEND_RESPONSES,                          /* five: by class, 1xx first */
    MK_BACKEND_RETRIES = MK_BACKEND_RESPONSES + 5, /* by enum mk_upstream_failure, the reason */
    MK_BACKEND_FAILURES = MK_BACKEND_RETRIES + 4,
    MK_BACKEND_TIMEOUTS,
    MK_BACKEND_OPENED, /* connections */
    MK_BACKEND_BUSY,   /* connections, now */
    MK_BACKEND_IDLE,   /* likewise */
    MK_BACKEND_SENT_BYTES,
    MK_BACKEND_RECEIVED_BYTES,
    MK_BACKEND_CONNECT_DURATION,
    MK_BACKEND_HEAD_DURATION,
    MK_BACKEND_DURATION,
    MK_BACKEND_COUNTERS
};

/* The counters of a backend, or of a server of its group. Lasts as long as the process. */
struct mk_backend_stats {
    struct mk_list node;
    unsigned refs;                 /* sections that name the backend */
    struct mk_str backend, server; /* `server`: of a group; or empty */
    const struct mk_counter *counters[MK_BACKEND_COUNTERS];
};

/* Adds to a counter. `worker` as for mk_counter_add(). */
static inline void mk_backend_stats_add(const struct mk_backend_stats *stats, enum mk_backend_counter counter,
                                        const struct mk_worker *worker, int64_t n)
{
    mk_counter_add(stats->counters[counter], worker, n);
}

/* Counts the head of a response by the class of its status, 100 to 999; above 599 it is one of 5xx. */
static inline void mk_backend_stats_add_status(const struct mk_backend_stats *stats, const struct mk_worker *worker,
                                               unsigned status)
{
    unsigned digit = (status > 599 ? 500 : status) / 100;
    mk_counter_add(stats->counters[MK_BACKEND_RESPONSES + digit - 1], worker, 1);
}

/* Adds a time to one of the three histograms. */
static inline void mk_backend_stats_observe(const struct mk_backend_stats *stats, enum mk_backend_counter counter,
                                            const struct mk_worker *worker, uint64_t us)
{
    mk_counter_observe(stats->counters[counter], worker, us);
}

/* The counters of all backends of a plugin, in the state of its process. The fields are private to the library. */
struct mk_stats_registry {
    const struct mk_counter_info *infos;
    pthread_mutex_t lock;
    struct mk_list list; /* under the lock, as their numbers of references */
};

/* `infos`: MK_BACKEND_STATS_INFOS(), which stay as long as the process. */
MK_API void mk_stats_registry_init(struct mk_stats_registry *registry, const struct mk_counter_info *infos);
MK_API void mk_stats_registry_release(struct mk_stats_registry *registry);

/* The counters of the backend of a section: of a server, or of a group and its lines. All zeros: not open. */
struct mk_target_stats {
    struct mk_backend_stats *backend; /* of the server, or the group as a whole */
    struct mk_backend_stats **servers;
    unsigned n, room;
};

/*
 * Opens those of a target, and of the lines of its group; NULL: it has none. In the hooks of the configuration. Returns
 * 0 or -ENOMEM.
 */
MK_API int mk_target_stats_open(struct mk_target_stats *b, struct mk_stats_registry *registry,
                                const struct mk_target *target, const struct mk_upstreams *upstreams,
                                const struct mk_upstream_group *group);
/* Ends the hold of its counters; also after an open that has failed. In the same hooks. */
MK_API void mk_target_stats_close(struct mk_target_stats *b, struct mk_stats_registry *registry);
/* Returns the counters of a server of the group, by its line, or those of the backend; never NULL. Any thread. */
MK_API const struct mk_backend_stats *mk_target_stats_find(const struct mk_target_stats *b, struct mk_str server);

MK_C_END

#endif
