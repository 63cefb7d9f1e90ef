// SPDX-License-Identifier: Apache-2.0
/*
 * overlap: logs the thread of each hook of the configuration, and whether another thread was in such a hook.
 */
#include <monkey/plugin.h>

#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

struct settings {
    struct mk_str name;
    uint32_t pause_ms;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_STRING(struct settings, name, "Name", "first", "Of this generation."),
    MK_CONF_KEY_DURATION(struct settings, pause_ms, "Pause", "0", "How long host_start takes.", .max = 10000,
                         .unit = "s"),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "OVERLAP",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct settings),
     .keys = keys,
     .doc = MK_CONF_DOC("Hooks that might overlap.")},
    {0},
};

static _Atomic int running; /* hooks */

static void begin(const struct mk_generation *g, const char *hook)
{
    const struct settings *s = mk_generation_conf(g, sections);
    char thread[16] = "";
    prctl(PR_GET_NAME, thread);
    mk_log_info("overlap: %.*s %s in %s%s", MK_STR_ARG(s->name), hook, thread,
                atomic_fetch_add(&running, 1) ? ", beside another hook" : "");
}

static void end(void)
{
    atomic_fetch_sub(&running, 1);
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    (void)ret_state;
    begin(g, "generation_start");
    end();
    return 0;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    (void)state;
    begin(g, "generation_stop");
    end();
}

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct settings *s = mk_host_server_conf(host, sections);
    const struct timespec pause = {.tv_sec = s->pause_ms / 1000, .tv_nsec = (long)(s->pause_ms % 1000) * 1000000};
    (void)ret_state;
    begin(mk_host_generation(host), "host_start");
    nanosleep(&pause, NULL);
    mk_log_info("overlap: %.*s has slept", MK_STR_ARG(s->name));
    end();
    return 0;
}

static void stop_host(struct mk_host *host, void *state)
{
    (void)state;
    begin(mk_host_generation(host), "host_stop");
    end();
}

MK_PLUGIN(overlap) = {
    MK_PLUGIN_HEAD("overlap", "1.0", "logs the threads of hooks"),
    .sections = sections,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
};
