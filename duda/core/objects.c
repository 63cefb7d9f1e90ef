// SPDX-License-Identifier: Apache-2.0
/*
 * Fills the pointers of a service to its objects (objects.h).
 */
#include "objects.h"

#include "service.h"

#include <errno.h>
#include <string.h>

struct object {
    const char *name;
    size_t size;
    const void *address;
};

#define OBJECT(name) \
    { \
#name, sizeof(object_##name), &object_##name \
    }

static const struct object objects[] = {
    OBJECT(conf),    OBJECT(console),  OBJECT(data),   OBJECT(event),  OBJECT(fconf),
    OBJECT(gc),      OBJECT(global),   OBJECT(logger), OBJECT(mem),    OBJECT(msg),
    OBJECT(request), OBJECT(response), OBJECT(router), OBJECT(worker), OBJECT(xtime),
};

static int find_object(const struct service *s, const char *name, struct object *ret)
{
    *ret = (struct object){"self", sizeof(s->self), &s->self};
    if (strcmp(name, ret->name) == 0)
        return 0;
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        *ret = objects[i];
        if (strcmp(name, ret->name) == 0)
            return 0;
    }
    return -ENOENT;
}

int objects_bind(struct service *s, struct mk_buf *error)
{
    struct object object;
    for (const struct duda_object_row *row = s->info->begin; row < s->info->end; row++) {
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
