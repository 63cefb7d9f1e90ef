// SPDX-License-Identifier: Apache-2.0
/*
 * The HTTP/2 shared object (http/h2/core.h): its calls of server functions go through the table that it is given.
 */
#include "http/h2/h2.h"

#include "http/h2/core.h"
#include "version.h"

static const struct mk__h2_core *bound_core;

#define CALL(type, name, parameters, arguments) \
    type name parameters \
    { \
        return bound_core->name arguments; \
    }

MK__H2_CORE(CALL)

static void bind_core(const struct mk__h2_core *core)
{
    bound_core = core;
}

extern const struct mk__h2_module mk__h2_module;
MK_API const struct mk__h2_module mk__h2_module = {
    .version = MK__VERSION,
    .core_size = sizeof(struct mk__h2_core),
    .proto_size = sizeof(struct mk__proto),
    .conn_size = sizeof(struct mk__conn),
    .http_size = sizeof(struct mk__context),
    .request_size = sizeof(struct mk_request),
    .proto = &mk__h2_proto,
    .bind = bind_core,
};
