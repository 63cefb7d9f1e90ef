// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the service itself.
 */
#ifndef DUDA_COMPAT_SERVICE_H
#define DUDA_COMPAT_SERVICE_H

#include "types.h"
#include "../package.h"

/* The strings end with a NUL. Folders end with a slash; .data is NULL for those that are not set. */
struct web_service {
    struct duda_old_string name;       /* of the URLs */
    struct duda_old_string fixed_name; /* as [WEB_SERVICE] has it */
    struct duda_old_string docroot;
    struct duda_old_string confdir;
    struct duda_old_string datadir;
    struct duda_old_string logdir;
};

DUDA_OBJECT_AS(struct web_service, self, "self.1")

#ifndef DUDA_FRAMEWORK

/* Begin and end duda_main(struct duda_api_objects *api) of the summer of 2012. */
#define duda_service_init() ((void)0)
#define duda_service_ready() return 0

/* Says what the service is, at file scope. */
struct duda_registration {
    const char *app, *title;
};
#define DUDA_REGISTER(app_name, page_title) \
    extern const struct duda_registration duda_registration; \
    __attribute__((weak, visibility("default"))) \
    const struct duda_registration duda_registration = {app_name, page_title}

#endif

#endif
