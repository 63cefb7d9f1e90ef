// SPDX-License-Identifier: Apache-2.0
/*
 * What every service defines, and what it can ask about itself.
 *
 *     int duda_main(void)  { router->get("/", cb_root); return 0; }    begins: 0, or another value if it cannot
 *     void duda_exit(void) { ... }                                     ends; optional
 *
 * duda_main() runs once, in the main thread, before the workers serve the service; it may block. duda_exit() runs after
 * the last request, timer and event of the service have ended.
 */
#ifndef DUDA_SERVICE_H
#define DUDA_SERVICE_H

#include "types.h"

DUDA_C_BEGIN

int duda_main(void) __attribute__((visibility("default")));
void duda_exit(void) __attribute__((visibility("default")));

DUDA_C_END

/* A string that ends with a NUL, which `len` does not count. */
struct duda_string {
    char *data;
    unsigned long len;
};

/* The running service; the strings live as long as it does. Folders end with a slash, and are empty if not set. */
struct duda_self {
    struct duda_string name; /* as [WEB_SERVICE] or conf->service_name() has it */
    struct duda_string url;  /* what its URLs begin with: "/name", or "" for a service that is the root of its host */
    struct duda_string docroot; /* DocumentRoot */
    struct duda_string confdir; /* ConfDir */
    struct duda_string datadir; /* DataDir */
    struct duda_string logdir;  /* LogDir */
};

DUDA_OBJECT(struct duda_self, self)

/* Says what the service is, once, at file scope. */
struct duda_registration {
    const char *app, *title;
};
#define DUDA_REGISTER(app_name, page_title) \
    __attribute__((visibility("default"))) extern const struct duda_registration duda_registration; \
    const struct duda_registration duda_registration = {app_name, page_title}

#endif
