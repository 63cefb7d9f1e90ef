// SPDX-License-Identifier: Apache-2.0
/*
 * The object that HTTP/2 lies in (http/h2_core.h): what it calls of the server leads through the table that it is
 * given.
 */
#include "http/h2.h"

#include "http/h2_core.h"
#include "version.h"

static const struct mk__h2_core *bound;

#define CALL(type, name, parameters, arguments) \
    type name parameters \
    { \
        return bound->name arguments; \
    }

MK__H2_CORE(CALL)

static void bind_core(const struct mk__h2_core *core)
{
    bound = core;
}

extern const struct mk__h2_module mk__h2_module;
MK_API const struct mk__h2_module mk__h2_module = {
    .version = MK__VERSION,
    .core = sizeof(struct mk__h2_core),
    .table = sizeof(struct mk__h2_calls),
    .conn = sizeof(struct mk__conn),
    .http = sizeof(struct mk__context),
    .request = sizeof(struct mk_request),
    .calls = &mk__h2_calls,
    .bind = bind_core,
    .library = mk__h2_library,
};
