// SPDX-License-Identifier: Apache-2.0
/*
 * Fills the pointers of a service to its objects (objects.h).
 */
#include "objects.h"

#include "compat/old.h"
#include "service/package.h"
#include "service/service.h"

#include <errno.h>
#include <string.h>

#define OBJECT_AS(name, variable) \
    { \
        name, sizeof(variable), &variable \
    }
#define OBJECT(name) OBJECT_AS(#name, object_##name)

static const struct object objects[] = {
    OBJECT(conf),
    OBJECT(console),
    OBJECT(cookie),
    OBJECT(data),
    OBJECT(dthread),
    OBJECT(event),
    OBJECT(fconf),
    OBJECT(form),
    OBJECT(gc),
    OBJECT(global),
    OBJECT(logger),
    OBJECT(map),
    OBJECT(mem),
    OBJECT(msg),
    OBJECT(multipart),
    OBJECT(package),
    OBJECT(param),
    OBJECT(qs),
    OBJECT(request),
    OBJECT(response),
    OBJECT(router),
    OBJECT(session),
    OBJECT(sse),
    OBJECT(task),
    OBJECT(tunnel),
    OBJECT(worker),
    OBJECT(xtime),
    OBJECT_AS("cookie.1", object_cookie_1),
    OBJECT_AS("param.1", object_param_1),
    OBJECT_AS("param.2", object_param_2),
    OBJECT_AS("qs.1", object_qs_1),
    OBJECT_AS("router.2", object_router_2),
};

static int find_object(const struct service *s, const char *name, struct object *ret)
{
    for (size_t i = 0; i < MK_COUNT_OF(objects); i++) {
        *ret = objects[i];
        if (strcmp(name, ret->name) == 0)
            return 0;
    }
    *ret = (struct object){"self", sizeof(s->self), s ? &s->self : NULL};
    return strcmp(name, ret->name) == 0 ? 0 : old_find_object(s, name, ret);
}

int objects_bind(struct service *s, const struct duda_service_info *info, struct mk_buf *error)
{
    struct object object;
    for (const struct duda_object_row *row = info->begin; row < info->end; row++) {
        if (row->size == 0)
            continue; /* a package */
        if (find_object(s, row->name, &object) < 0) {
            mk_buf_addf(error, "it needs the object \"%s\", which this version does not have", row->name);
            return -ENOEXEC;
        }
        if (row->size > object.size) {
            mk_buf_addf(error, "it was compiled for a later version, whose object \"%s\" has more functions",
                        row->name);
            return -ENOEXEC;
        }
        memcpy(row->pointer, &object.address, sizeof(object.address));
    }
    return 0;
}
