// SPDX-License-Identifier: Apache-2.0
/*
 * Looks up names of backends (names.h), in threads of the C library, since getaddrinfo() cannot be interrupted.
 */
#include "names.h"

#include <monkey/arena.h>

#include <netdb.h>
#include <time.h>

struct lookup {
    struct addrinfo hints;
    struct gaicb request;
    char name[]; /* with a NUL */
};

static struct lookup *make_lookup(struct mk_str name)
{
    struct lookup *l = mk_account_alloc(NULL, sizeof(*l) + name.len + 1);
    if (!l)
        return NULL;
    *l = (struct lookup){.hints = {.ai_socktype = SOCK_STREAM}};
    memcpy(l->name, name.p, name.len);
    l->name[name.len] = '\0';
    l->request = (struct gaicb){.ar_name = l->name, .ar_request = &l->hints};
    return l;
}

/* A lookup that cannot be cancelled keeps its memory, until this process has checked the configuration. */
static void free_lookup(struct lookup *l)
{
    if (gai_error(&l->request) == EAI_INPROGRESS && gai_cancel(&l->request) == EAI_NOTCANCELED)
        return;
    if (l->request.ar_result)
        freeaddrinfo(l->request.ar_result);
    mk_account_free(NULL, l, sizeof(*l) + strlen(l->name) + 1);
}

static uint32_t get_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

/* Returns 0, or an error of getaddrinfo(): EAI_INPROGRESS if the time is over. */
static int look_up(struct mk_str name, uint32_t *left_ms)
{
    struct lookup *l = make_lookup(name);
    if (!l)
        return EAI_MEMORY;
    struct gaicb *const list[] = {&l->request};
    const struct timespec wait = {*left_ms / 1000, *left_ms % 1000 * 1000000};
    uint32_t began = get_ms();
    int err = getaddrinfo_a(GAI_NOWAIT, (struct gaicb **)(uintptr_t)list, 1, NULL);
    if (err == 0) {
        gai_suspend((const struct gaicb *const *)list, 1, &wait);
        err = gai_error(&l->request);
    }
    uint32_t took = get_ms() - began;
    *left_ms -= took < *left_ms ? took : *left_ms;
    free_lookup(l);
    return err;
}

void names_check(struct mk_host *host, uint32_t *left_ms)
{
    for (const struct proxy_conf *conf = mk_host_conf(host, proxy_sections); conf && *left_ms;
         conf = mk_host_conf_next(host, proxy_sections, conf)) {
        const struct mk_dial_target *target = conf->to.dial;
        bool is_name = target && target->port && !target->addr; /* neither an address nor a Unix socket */
        int err = is_name ? look_up(target->host, left_ms) : 0;
        if (err)
            mk_host_warn(host, conf, offsetof(struct proxy_conf, to), 0,
                         "%.*s has no address now (%s); it is looked up for each connection", MK_STR_ARG(target->host),
                         gai_strerror(err));
    }
}
