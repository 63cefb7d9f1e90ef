// SPDX-License-Identifier: Apache-2.0
#include "servers.h"

#include <monkey/base/arena.h>
#include <monkey/log.h>

const char *const admin_state_names[ADMIN_STATES] = {
    [ADMIN_UNSET] = "", [ADMIN_UP] = "up", [ADMIN_DRAIN] = "drain", [ADMIN_DOWN] = "down"};

static const struct mk_counter_info infos[ADMIN_COUNTS] = {
    {"upstream", "server_draining",
     "1 while a server gets only requests whose cookie names it, as its operator has set", MK_COUNTER_LEVEL},
    {"upstream", "server_taken_down", "1 while a server gets no requests, as its operator has set", MK_COUNTER_LEVEL},
};

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
    *admin = (struct admin){.next = upstream_process.admins,
                            .group = {text, group.len},
                            .line = {text + group.len, line.len}};
    if (group.len) /* else its name is refused */
        memcpy(text, group.p, group.len);
    memcpy(text + group.len, line.p, line.len);
    const struct mk_counter_label labels[] = {{"upstream", admin->group}, {"server", admin->line}};
    for (unsigned i = 0; i < ADMIN_COUNTS; i++)
        admin->counters[i] = mk_counter_hold(&infos[i], labels, MK_COUNT_OF(labels));
    upstream_process.admins = admin;
    return admin;
}

struct admin *admin_hold(struct mk_str group, struct mk_str line)
{
    lock_take(&upstream_process.admins_lock);
    struct admin *admin = upstream_process.admins;
    while (admin && !(mk_str_eq(admin->group, group) && mk_str_eq(admin->line, line)))
        admin = admin->next;
    if (!admin)
        admin = make_admin(group, line);
    if (admin)
        admin->refs++;
    lock_release(&upstream_process.admins_lock);
    return admin;
}

static void put_counters(const struct admin *admin)
{
    for (unsigned i = 0; i < ADMIN_COUNTS; i++)
        mk_counter_put(admin->counters[i]);
    for (unsigned i = 0; i < SERVER_COUNTS; i++)
        if (admin->server_counters[i])
            mk_counter_put(admin->server_counters[i]);
}

/* Has the counters show a state. Under the lock. */
static void show_state(struct admin *admin, enum admin_state state)
{
    if (admin->shown >= ADMIN_DRAIN)
        mk_counter_add(admin->counters[admin->shown - ADMIN_DRAIN], NULL, -1);
    if (state >= ADMIN_DRAIN)
        mk_counter_add(admin->counters[state - ADMIN_DRAIN], NULL, 1);
    admin->shown = state;
}

/* Under the lock. */
static enum admin_state find_state(const struct admin *admin)
{
    uint32_t set = atomic_load(&admin->state);
    return set != ADMIN_UNSET ? (enum admin_state)set : admin->configured;
}

static void update_shown(struct admin *admin)
{
    show_state(admin, find_state(admin));
}

enum admin_state admin_get_state(struct admin *admin)
{
    lock_take(&upstream_process.admins_lock);
    enum admin_state state = find_state(admin);
    lock_release(&upstream_process.admins_lock);
    return state == ADMIN_UNSET ? ADMIN_UP : state;
}

void admin_release(struct admin *admin)
{
    struct admin **at = &upstream_process.admins;
    if (!admin)
        return;
    lock_take(&upstream_process.admins_lock);
    bool is_last = --admin->refs == 0;
    while (is_last && *at != admin)
        at = &(*at)->next;
    if (is_last) {
        *at = admin->next;
        show_state(admin, ADMIN_UNSET);
    }
    lock_release(&upstream_process.admins_lock);
    if (!is_last)
        return;
    put_counters(admin);
    mk_account_free(NULL, admin, 0);
}

void admin_set_state(struct admin *admin, enum admin_state state)
{
    lock_take(&upstream_process.admins_lock);
    atomic_store(&admin->state, (uint32_t)state);
    update_shown(admin);
    lock_release(&upstream_process.admins_lock);
}

/* ── configurations ── */

static void log_change(const struct admin *admin, const char *verb, const char *to)
{
    mk_log_info("upstream %.*s: the configuration has %s %.*s%s", MK_STR_ARG(admin->group), verb,
                MK_STR_ARG(admin->line), to);
}

static void log_changes(const struct admin *admin, enum admin_state state, uint32_t weight, bool is_reload)
{
    static const char *const to[ADMIN_STATES] = {
        [ADMIN_UP] = " to up", [ADMIN_DRAIN] = " to drain", [ADMIN_DOWN] = " to down"};
    if (admin->configured == ADMIN_UNSET && is_reload)
        log_change(admin, "added", "");
    if (admin->configured != ADMIN_UNSET && admin->configured != state)
        log_change(admin, "set", to[state]);
    if (admin->configured != ADMIN_UNSET && admin->weight != weight)
        mk_log_info("upstream %.*s: the configuration has set the weight of %.*s to %u", MK_STR_ARG(admin->group),
                    MK_STR_ARG(admin->line), (unsigned)weight);
}

void admin_configure(struct admin *admin, enum admin_state state, uint32_t weight, bool is_reload)
{
    lock_take(&upstream_process.admins_lock);
    log_changes(admin, state, weight, is_reload);
    admin->configured = state;
    admin->weight = weight;
    admin->is_current = true;
    update_shown(admin);
    lock_release(&upstream_process.admins_lock);
}

void admin_end_configuring(void)
{
    lock_take(&upstream_process.admins_lock);
    for (struct admin *admin = upstream_process.admins; admin; admin = admin->next) {
        if (admin->configured != ADMIN_UNSET && !admin->is_current) {
            log_change(admin, "removed", "");
            admin->configured = ADMIN_UNSET;
            update_shown(admin);
        }
        admin->is_current = false;
    }
    lock_release(&upstream_process.admins_lock);
}
