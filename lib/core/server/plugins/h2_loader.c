// SPDX-License-Identifier: Apache-2.0
/*
 * Opens HTTP/2 (server/plugins/h2_loader.h), which stays open as long as the process lives. Builds without it have
 * h2_loader_absent.c.
 */
#include "server/plugins/h2_loader.h"

#include "base/log.h"
#include "server/plugins/module.h"
#include "server/generation/settings.h"
#include "version.h"

#include <monkey/base/library.h>

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

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
