// SPDX-License-Identifier: Apache-2.0
/*
 * Names of states, and what was set for each line (admin.h).
 */
#include "admin.h"

#include <monkey/arena.h>

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct admin *first; /* under the lock */

const char *const admin_state_names[ADMIN_STATES] = {
    [ADMIN_UNSET] = "", [ADMIN_UP] = "up", [ADMIN_DRAIN] = "drain", [ADMIN_DOWN] = "down"};

enum admin_state admin_find_state(struct mk_str name)
{
    for (unsigned i = ADMIN_UP; i < ADMIN_STATES; i++)
        if (mk_str_eq(mk_str_c(admin_state_names[i]), name))
            return (enum admin_state)i;
    return ADMIN_UNSET;
}

static struct admin *make_admin(struct mk_str group, struct mk_str line)
{
    struct admin *admin = mk_account_alloc(NULL, sizeof(*admin) + group.len + line.len);
    if (!admin)
        return NULL;
    char *text = (char *)(admin + 1);
    *admin = (struct admin){.next = first, .group = {text, group.len}, .line = {text + group.len, line.len}};
    if (group.len) /* else its name is refused */
        memcpy(text, group.p, group.len);
    memcpy(text + group.len, line.p, line.len);
    first = admin;
    return admin;
}

struct admin *admin_hold(struct mk_str group, struct mk_str line)
{
    pthread_mutex_lock(&lock);
    struct admin *admin = first;
    while (admin && !(mk_str_eq(admin->group, group) && mk_str_eq(admin->line, line)))
        admin = admin->next;
    if (!admin)
        admin = make_admin(group, line);
    if (admin)
        admin->refs++;
    pthread_mutex_unlock(&lock);
    return admin;
}

void admin_release(struct admin *admin)
{
    struct admin **at = &first;
    if (!admin)
        return;
    pthread_mutex_lock(&lock);
    bool is_last = --admin->refs == 0;
    while (is_last && *at != admin)
        at = &(*at)->next;
    if (is_last)
        *at = admin->next;
    pthread_mutex_unlock(&lock);
    if (is_last)
        mk_account_free(NULL, admin, 0);
}
