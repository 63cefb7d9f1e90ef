// SPDX-License-Identifier: Apache-2.0
/*
 * Opens HTTP/2 (server/plugins/h2_loader.h), which stays open as long as the process lives, and has the rows of
 * [HTTP2].
 */
#include "server/plugins/h2_loader.h"

#include "base/log.h"
#include "http/h2/flood_counters.h"
#include "server/plugins/module.h"
#include "server/generation/settings.h"
#include "version.h"

#include <monkey/library.h>

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#define KEY(kind, ...) MK_CONF_KEY_##kind(struct mk__h2_settings, __VA_ARGS__)
#define FLOOD(flood, name, max_default, manual) \
    KEY(INT, rates_max[MK__H2_FLOOD_##flood], name, max_default, manual, .min = 1, .max = 1 << 30)

static const struct mk_conf_key keys[] = {
    KEY(BOOL, on, "Enabled", "On",
        "Whether HTTP/2 is accepted: by ALPN where the transport has it, else by prior knowledge."),
    KEY(INT, streams_max, "MaxConcurrentStreams", "100", "Concurrent requests of one connection.", .min = 1,
        .max = 10000),
    KEY(INT, continuations_max, "MaxContinuations", "8", "CONTINUATION frames of one head.", .min = 0, .max = 1 << 30),
    FLOOD(RESET, "MaxResets", "200", "Requests that the client cancels before their response is complete."),
    FLOOD(STREAM_ERROR, "MaxStreamErrors", "100", "Requests that the server aborts because of the client's errors."),
    FLOOD(SETTINGS, "MaxSettings", "100", "SETTINGS frames."),
    FLOOD(PING, "MaxPings", "500", "PING frames."),
    FLOOD(EMPTY, "MaxEmptyFrames", "500", "DATA, HEADERS and CONTINUATION frames without content."),
    FLOOD(PRIORITY, "MaxPriorities", "1000", "PRIORITY and PRIORITY_UPDATE frames."),
    FLOOD(WINDOW_UPDATE, "MaxWindowUpdates", "1000",
          "WINDOW_UPDATE frames that open a window by less than 256 bytes, or further than responses have used it; and "
          "resets of streams that have ended."),
    {0},
};

static const struct mk_conf_foreign renamed[] = {
    MK_CONF_RENAMED("MaxStreams", "MaxConcurrentStreams"),
    MK_CONF_RENAMED("MaxFaults", "MaxStreamErrors"),
    MK_CONF_RENAMED("MaxSmallUpdates", "MaxWindowUpdates"),
    {0},
};

const struct mk_conf_section mk__section_http2 = {
    .name = "HTTP2",
    .scope = MK_CONF_SCOPE_SERVER,
    .size = sizeof(struct mk__h2_settings),
    .keys = keys,
    .foreign = renamed,
    .doc = MK_CONF_DOC(
        "HTTP/2, on all listeners. All limits but the first two are for ten seconds of one connection. Beyond them it "
        "is closed with ENHANCE_YOUR_CALM (`MaxConcurrentStreams`: REFUSED_STREAM, or PROTOCOL_ERROR from a client "
        "that "
        "has acknowledged it), as it is for a head that decompresses to more than four times `MaxHeadSize`, and 64K. "
        "The limits of `[SERVER]` apply too, each wait to one request."),
};

static struct {
    pthread_once_t found, opened;
    char path[PATH_MAX];
    const char *file_error; /* what mk__h2_loader_find() found wrong; NULL: nothing */
    const struct mk__h2_module *module;
    char error[PATH_MAX + 256];
} loader = {.found = PTHREAD_ONCE_INIT, .opened = PTHREAD_ONCE_INIT};

static void find_library(void)
{
    snprintf(loader.path, sizeof(loader.path), "%s/protocols/http2.so", mk_plugin_dir());
    loader.file_error = mk_library_check(loader.path);
}

static bool is_compatible(const struct mk__h2_module *m)
{
    return strcmp(m->version, MK__VERSION) == 0 && m->core_size == sizeof(struct mk__h2_core) &&
           m->proto_size == sizeof(struct mk__proto) && m->conn_size == sizeof(struct mk__conn) &&
           m->http_size == sizeof(struct mk__context) && m->request_size == sizeof(struct mk_request);
}

static const struct mk__h2_module *find_module(void *handle, struct mk_buf *error)
{
    const struct mk__h2_module *module = NULL;
    if (!handle || mk_library_find(handle, &(struct mk_library_symbol){MK__H2_MODULE, &module}, 1, error) < 0)
        return NULL;
    if (is_compatible(module))
        return module;
    mk_buf_addf(error, "it was built with another server");
    return NULL;
}

/* The file is checked again: it may have been replaced since the start. */
static void open_library(void)
{
    assert(loader.path[0]); /* mk__h2_loader_find() was called */
    struct mk_buf error;
    mk_buf_init_fixed(&error, loader.error, sizeof(loader.error));
    mk_buf_addf(&error, "%s: ", loader.path);
    loader.module = find_module(mk_library_open(loader.path, MK_LIBRARY_SHARED, &error), &error);
    if (loader.module)
        loader.module->bind(&mk__h2_core);
    else if (!loader.file_error) /* else it was reported at the start */
        mk_log_warn("HTTP/2 is not available: %s", mk_buf_cstr(&error));
}

void mk__h2_loader_find(void)
{
    pthread_once(&loader.found, find_library);
}

void mk__h2_loader_check(struct mk__conf *conf)
{
    mk__h2_loader_find();
    if (loader.file_error)
        mk__conf_warn(conf, (struct mk__conf_origin){0}, "HTTP/2 is not available: %s: %s", loader.path,
                      loader.file_error);
}

const struct mk__proto *mk__h2_loader_open(void)
{
    pthread_once(&loader.opened, open_library);
    return loader.module ? loader.module->proto : NULL;
}

const char *mk__h2_loader_error(void)
{
    return loader.module ? NULL : loader.error;
}
