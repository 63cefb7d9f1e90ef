// SPDX-License-Identifier: Apache-2.0
/*
 * Parses lists of networks, for several directives.
 */
#include <monkey/conf.h>

#include <errno.h>

int mk_conf_networks(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_networks *list = field;
    for (uint32_t i = 0; i < value->n; i++) {
        struct mk_network *items = mk_arena_grow(arena, list->items, list->n, sizeof(*items));
        if (!items)
            return -ENOMEM;
        list->items = items;
        if (mk_network_parse(value->words[i], &items[list->n], error) < 0) {
            if (value->fault)
                *value->fault = (size_t)(value->words[i].p - value->text.p);
            return -EINVAL;
        }
        list->n++;
    }
    return 0;
}
