// SPDX-License-Identifier: Apache-2.0
/*
 * The search of http/hoard.h.
 */
#include "http/hoard.h"

#include "http/h2_core.h"

enum { FEW = 8 };

struct mk__conn *mk__hoard_find(const struct mk__http *http)
{
    struct mk__conn *hoarder = NULL;
    struct mk_list *n, *save;
    unsigned most = FEW;
    MK_LIST_EACH(&http->live, n, save) {
        struct mk__conn *c = MK_OWNER(n, struct mk__conn, link);
        unsigned waiting = c->h2 && !c->driving ? http->h2->waiting(c) : 0;
        if (waiting > most) {
            most = waiting;
            hoarder = c;
        }
    }
    return hoarder;
}
