// SPDX-License-Identifier: Apache-2.0
/*
 * What a program learns of its server (<monkey/embed.h>): the reason of an error, the problems of the configuration,
 * and the port.
 */
#include "embed/embed.h"

#include <errno.h>
#include <stdio.h>

/* ── problems ── */

struct visit {
    mk_problem_fn fn;
    void *ctx;
};

static void visit_problem(const struct mk__conf_problem *p, void *ctx)
{
    const struct visit *visit = ctx;
    char text[256];
    snprintf(text, sizeof(text), "%.*s", MK_STR_ARG(p->line_text));
    struct mk_problem one = {.is_warning = p->warning,
                             .place = p->place.p,
                             .line = p->line,
                             .column = p->col,
                             .message = p->text.p,
                             .source = text};
    visit->fn(&one, visit->ctx);
}

void mk_server_each_problem(const struct mk_server *s, mk_problem_fn fn, void *ctx)
{
    const struct mk_generation *g = !s || !fn ? NULL : s->failed ? s->failed : s->current;
    struct visit visit = {fn, ctx};
    if (g && g->load_conf)
        mk__conf_each_problem(g->load_conf, visit_problem, &visit);
    if (g && g->conf)
        mk__conf_each_problem(g->conf, visit_problem, &visit);
}

/* ── the last error ── */

struct error_text {
    char *text;
    size_t size;
    bool is_set;
};

static void keep_first_error(const struct mk_problem *p, void *ctx)
{
    struct error_text *e = ctx;
    if (p->is_warning || e->is_set)
        return;
    e->is_set = true;
    if (p->line)
        snprintf(e->text, e->size, "%s:%u:%u: %s", p->place, p->line, p->column, p->message);
    else
        snprintf(e->text, e->size, "%s%s%s", p->place, *p->place ? ": " : "", p->message);
}

const char *mk_server_error(struct mk_server *s)
{
    if (!s)
        return "there is no server: mk_server_new() had no memory";
    if (s->refusal)
        return s->refusal;
    if (!s->embedded || s->error == 0)
        return s->error ? strerror(-s->error) : "";
    struct error_text error = {s->embedded->error, sizeof(s->embedded->error), false};
    if (s->error != -ENOMEM)
        mk_server_each_problem(s, keep_first_error, &error);
    if (!error.is_set)
        snprintf(error.text, error.size, "%s", strerror(-s->error));
    return error.text;
}

/* ── the port ── */

/* Keeps why there is no port: the one function for a `const` server that can fail. */
static int fail_port(const struct mk_server *s, int err, const char *sentence)
{
    ((struct mk_server *)(uintptr_t)s)->refusal = sentence;
    return err;
}

int mk_server_port(const struct mk_server *s)
{
    if (!s)
        return -EINVAL;
    if (s->state == MK__SERVER_STOPPED)
        return fail_port(s, -EINVAL, "mk_server_port(): the server does not run");
    MK_LIST_EACH_ITEM(&s->listeners.open, const struct mk__listener, node, one) {
        if (one->addr.sa.sa_family == AF_INET)
            return ntohs(one->addr.in.sin_port);
        if (one->addr.sa.sa_family == AF_INET6)
            return ntohs(one->addr.in6.sin6_port);
    }
    return fail_port(s, -ENOENT, "mk_server_port(): the server listens at no port");
}
