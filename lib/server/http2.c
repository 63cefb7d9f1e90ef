// SPDX-License-Identifier: Apache-2.0
/*
 * Opening HTTP/2 (server/http2.h). It stays open as long as the process lives.
 */
#include "server/http2.h"

#include "base/log.h"
#include "server/plugin.h"
#include "server/settings.h"
#include "version.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define KEY(kind, ...) MK_CONF_KEY_##kind(struct mk__h2_settings, __VA_ARGS__)
#define DEED(deed, name, often, manual) \
    KEY(INT, deeds_max[MK__H2_##deed], name, often, manual, .min = 1, .max = 1 << 30)

static const struct mk_conf_key keys[] = {
    KEY(BOOL, on, "Enabled", "On",
        "Speak HTTP/2 with clients that begin with it: by ALPN where the transport has that, else by prior knowledge."),
    KEY(INT, streams_max, "MaxStreams", "100", "Requests that one connection may have under way at once.", .min = 1,
        .max = 10000),
    KEY(INT, continuations_max, "MaxContinuations", "8", "CONTINUATION frames of one head.", .min = 0, .max = 1 << 30),
    DEED(RESETS, "MaxResets", "200", "Requests that the client takes back before their answer is complete."),
    DEED(FAULTS, "MaxFaults", "100", "Requests that had to be broken off for what the client did."),
    DEED(SETTINGS, "MaxSettings", "100", "SETTINGS frames."),
    DEED(PINGS, "MaxPings", "500", "PING frames."),
    DEED(EMPTIES, "MaxEmptyFrames", "500", "DATA, HEADERS and CONTINUATION frames without content."),
    DEED(PRIORITIES, "MaxPriorities", "1000", "PRIORITY and PRIORITY_UPDATE frames."),
    DEED(MORSELS, "MaxSmallUpdates", "1000",
         "WINDOW_UPDATE frames that open a window by less than 256 bytes, or further than answers have used it; and "
         "resets of streams that are over."),
    {0},
};

const struct mk_conf_section mk__section_http2 = {
    .name = "HTTP2",
    .scope = MK_CONF_SCOPE_SERVER,
    .size = sizeof(struct mk__h2_settings),
    .keys = keys,
    .doc = MK_CONF_DOC(
        "HTTP/2, on all listeners. All limits but the first two are for ten seconds of one connection. Beyond them it "
        "is closed with ENHANCE_YOUR_CALM (`MaxStreams`: REFUSED_STREAM, or PROTOCOL_ERROR for who knows it), as it is "
        "for a head that unpacks to more than four times `MaxHeadSize`, and 64K. What HTTP/1 is held to (`[SERVER]`) "
        "holds here too, each wait for one request."),
};

static struct {
    pthread_once_t found, opened;
    char path[PATH_MAX];
    const char *flaw; /* of the file, as it was found */
    const struct mk__h2_module *module;
    const char *fault;
    char text[PATH_MAX + 256];
} http2 = {.found = PTHREAD_ONCE_INIT, .opened = PTHREAD_ONCE_INIT};

/* NULL: dlopen() may have it, and says itself what is wrong. */
static const char *look(void)
{
    int fd = open(http2.path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return strerror(errno);
    const char *flaw = mk__plugin_file_fault(fd);
    close(fd);
    return flaw;
}

static void find(void)
{
    snprintf(http2.path, sizeof(http2.path), "%s/protocols/http2.so", mk__plugin_folder());
    http2.flaw = look();
}

static bool fits(const struct mk__h2_module *m)
{
    return strcmp(m->version, MK__VERSION) == 0 && m->core == sizeof(struct mk__h2_core) &&
           m->table == sizeof(struct mk__h2_calls) && m->conn == sizeof(struct mk__conn) &&
           m->http == sizeof(struct mk__http) && m->request == sizeof(struct mk_request);
}

/* What dlopen() says begins with the path already. */
static void open_object(void)
{
    const char *fault = look(); /* again: it may have been replaced since the start */
    void *handle = fault ? NULL : dlopen(http2.path, RTLD_NOW | RTLD_LOCAL);
    const struct mk__h2_module *module = handle ? dlsym(handle, MK__H2_MODULE) : NULL;
    if (module && !fits(module))
        fault = "it was built with another server";
    http2.fault = http2.text;
    if (fault)
        snprintf(http2.text, sizeof(http2.text), "%s: %s", http2.path, fault);
    else if (!module)
        snprintf(http2.text, sizeof(http2.text), "%s", dlerror());
    else
        http2.fault = NULL;
    if (http2.fault) {
        if (!http2.flaw) /* which was told at the start */
            mk_log_warn("HTTP/2 is not spoken: %s", http2.fault);
        return;
    }
    module->bind(&mk__h2_core);
    http2.module = module;
}

void mk__http2_find(void)
{
    pthread_once(&http2.found, find);
}

void mk__http2_check(struct mk__conf *conf)
{
    mk__http2_find();
    if (http2.flaw)
        mk__conf_warn(conf, (struct mk__conf_origin){0}, "HTTP/2 is not spoken: %s: %s", http2.path, http2.flaw);
}

const struct mk__h2_calls *mk__http2_open(void)
{
    pthread_once(&http2.opened, open_object);
    return http2.module ? http2.module->calls : NULL;
}

const char *mk__http2_fault(void)
{
    return http2.fault;
}

const char *mk__http2_library(void)
{
    return mk__http2_open() ? http2.module->library() : NULL;
}
