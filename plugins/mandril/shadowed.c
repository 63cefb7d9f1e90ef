// SPDX-License-Identifier: Apache-2.0
/*
 * Finds sections that can never match: earlier ones hold for all of their paths, methods and headers, and together for
 * all of their clients. Files of networks may change, so what they have now is not looked at.
 */
#include "mandril.h"

#include <errno.h>

/* A section as it is compared with others. */
struct section_scope {
    const struct active_section *s;
    const struct mk_networks *networks;
    struct mk_str file;
    bool decides; /* a section in a dry run does not */
};

static bool is_for_all(const struct section_scope *r)
{
    return !r->networks->n && !r->file.len;
}

/* Returns whether the conditions other than clients of `first` hold whenever those of `later` do. */
static bool covers_conditions(const struct section_scope *first, const struct section_scope *later)
{
    return first->decides && (!first->s->when || conditions_cover(first->s->when, later->s->when));
}

/* Returns whether one section is for all clients of `later`. */
static bool covers_clients(const struct section_scope *first, const struct section_scope *later)
{
    if (is_for_all(first))
        return true;
    return first->file.len && mk_str_eq(first->file, later->file) && !later->networks->n;
}

/* Returns 1 if the `n` sections have all networks of `later` together, 0, or -ENOMEM. */
static int cover_networks(const struct section_scope *first, size_t n, const struct section_scope *later)
{
    struct mk_buf all;
    if (!later->networks->n || later->file.len)
        return 0;
    mk_buf_init(&all, NETWORKS_MAX * sizeof(struct mk_network));
    for (size_t i = 0; i < n; i++)
        if (covers_conditions(&first[i], later) && first[i].networks->n)
            mk_buf_add(&all, first[i].networks->items, first[i].networks->n * sizeof(struct mk_network));
    struct network_set *set = all.err || !all.len ? NULL
                                                  : networks_new((const struct mk_network *)(const void *)all.data,
                                                                 all.len / sizeof(struct mk_network));
    int covered = set ? networks_cover(set, later->s->clients.networks) : all.len ? -ENOMEM : 0;
    networks_free(set);
    mk_buf_release(&all);
    return covered;
}

/* Finds what covers the section `first[n]`. Returns 1, 0 or -ENOMEM. `*ret`: a section that does alone, or NULL. */
static int find_cover(const struct section_scope *first, size_t n, const struct section_scope **ret)
{
    for (size_t i = 0; i < n; i++) {
        *ret = &first[i];
        if (covers_conditions(&first[i], &first[n]) && covers_clients(&first[i], &first[n]))
            return 1;
    }
    *ret = NULL;
    return cover_networks(first, n, &first[n]);
}

/* Warns of the section `first[n]` if it can never match. Returns 0 or -ENOMEM. */
static int check_section(struct mk_host *host, const struct section_scope *first, size_t n, const void *conf,
                         size_t offset)
{
    const struct section_scope *cover;
    int found = find_cover(first, n, &cover);
    if (found > 0 && cover)
        mk_host_warn(host, conf, offset, 0, "this can never match: the section of %.*s comes first and takes all of it",
                     MK_STR_ARG(cover->s->place));
    else if (found > 0)
        mk_host_warn(host, conf, offset, 0, "this can never match: earlier sections together take all of it");
    return found < 0 ? found : 0;
}

/* Returns memory for `n` sections, to be freed with free_scopes(). */
static struct section_scope *new_scopes(size_t n)
{
    return mk_account_alloc(NULL, (n + 1) * sizeof(struct section_scope));
}

static void free_scopes(struct section_scope *all, size_t n)
{
    mk_account_free(NULL, all, (n + 1) * sizeof(struct section_scope));
}

/*
 * The sections of monkey.conf are after those of a host, which may override all of them, and are checked for the first
 * host only. Returns whether `conf` is the first of them; `*ret_skip`: they need no check.
 */
static bool begins_shared(struct mk_host *host, unsigned section, const void *conf, bool *ret_skip)
{
    bool first = conf == mk_host_server_conf(host, &mandril_sections[section]);
    *ret_skip = first && host != mk_generation_first_host(mk_host_generation(host));
    return first;
}

/* What no rule denies is allowed: a rule that allows is an exception of later ones, or of a login. */
static void check_allowing(struct mk_host *host, const struct host_state *state, size_t n)
{
    const struct rule *rule = &state->rules[n];
    bool has_effect = rule->conf->action.kind != ACTION_ALLOW || mk_host_uses_access(host);
    for (size_t i = n + 1; i < state->n_rules && !has_effect; i++)
        has_effect = state->rules[i].conf->action.kind != ACTION_ALLOW;
    if (!has_effect)
        mk_host_warn(
            host, rule->conf, offsetof(struct rule_conf, action), 0,
            "this has no effect: what no [RULES] denies is allowed; for these clients alone, write a section with "
            "\"Action deny\" behind it");
}

static int check_rules(struct mk_host *host, const struct host_state *state)
{
    struct section_scope *all = new_scopes(state->n_rules);
    int err = all ? 0 : -ENOMEM;
    size_t start = 0;
    bool skip = false;
    for (size_t i = 0; i < state->n_rules && err == 0; i++) {
        const struct rule *rule = &state->rules[i];
        all[i] = (struct section_scope){&rule->base, &rule->conf->when.networks, rule->conf->when.file,
                                        !rule->conf->dry_run};
        start = begins_shared(host, SECTION_RULES, rule->conf, &skip) ? i : start;
        if (skip)
            break;
        err = check_section(host, all + start, i - start, rule->conf, offsetof(struct rule_conf, action));
        check_allowing(host, state, i);
    }
    free_scopes(all, state->n_rules);
    return err;
}

static bool rates_differ(const struct bucket_rate *a, const struct bucket_rate *b)
{
    return a->per_us && b->per_us && a->per_us != b->per_us;
}

/*
 * Checks that no earlier section, from `start` on, fills the buckets that a section shares with it at other rates: a
 * bucket has one. Returns 0 or -EINVAL.
 */
static int check_rates(struct mk_host *host, const struct host_state *state, size_t start, size_t n)
{
    const struct limit *limit = &state->limits[n], *other;
    for (size_t i = start; i < n; i++) {
        other = &state->limits[i];
        if (other->base.zone != limit->base.zone)
            continue;
        if (!rates_differ(&limit->rate, &other->rate) && !rates_differ(&limit->send_rate, &other->send_rate))
            continue;
        mk_host_error(host, limit->conf, offsetof(struct limit_conf, name), 0,
                      "the section of %.*s has the same name, and so counts the same clients, but its rate is another: "
                      "use one rate, or two names",
                      MK_STR_ARG(other->base.place));
        return -EINVAL;
    }
    return 0;
}

static int check_limits(struct mk_host *host, const struct host_state *state)
{
    struct section_scope *all = new_scopes(state->n_limits);
    int err = all ? 0 : -ENOMEM;
    size_t start = 0;
    bool skip = false, wrong = false;
    for (size_t i = 0; i < state->n_limits && err == 0; i++) {
        const struct limit *limit = &state->limits[i];
        all[i] = (struct section_scope){&limit->base, &limit->conf->when.networks, limit->conf->when.file,
                                        !limit->conf->dry_run};
        start = begins_shared(host, SECTION_LIMITS, limit->conf, &skip) ? i : start;
        if (skip)
            break;
        err = check_section(host, all + start, i - start, limit->conf, offsetof(struct limit_conf, when.match));
        wrong = check_rates(host, state, start, i) < 0 || wrong;
    }
    free_scopes(all, state->n_limits);
    return err == 0 && wrong ? -EINVAL : err;
}

static int check_host(struct mk_host *host)
{
    const struct host_state *state = mk_host_state(host, &mk_plugin_mandril);
    int err = state ? check_rules(host, state) : 0;
    return err < 0 || !state ? err : check_limits(host, state);
}

int shadowed_check_hosts(struct mk_generation *g)
{
    int err = 0;
    for (struct mk_host *host = mk_generation_first_host(g); host && err != -ENOMEM; host = mk_host_next(host)) {
        int found = check_host(host);
        err = found < 0 ? found : err;
    }
    return err;
}

static bool refuses_connections(const struct connection_conf *conf)
{
    return conf->action == CONNECTION_DROP || conf->connections_max;
}

/* As check_allowing(), for connections. */
static void check_allowing_connections(struct mk_host *host, const struct generation_state *g, size_t n)
{
    bool has_effect = false;
    for (size_t i = n; i < g->n_connections && !has_effect; i++)
        has_effect = refuses_connections(g->connections[i].conf);
    if (!has_effect)
        mk_host_warn(host, g->connections[n].conf, offsetof(struct connection_conf, action), 0,
                     "this has no effect: what no [CONNECTIONS] refuses is accepted; for these clients alone, write a "
                     "section that drops all others behind it");
}

int shadowed_check_connections(struct mk_host *host, const struct generation_state *g)
{
    struct section_scope *all = new_scopes(g->n_connections);
    int err = all ? 0 : -ENOMEM;
    for (size_t i = 0; i < g->n_connections && err == 0; i++) {
        const struct connection_rule *rule = &g->connections[i];
        all[i] = (struct section_scope){&rule->base, &rule->conf->networks, rule->conf->file, !rule->conf->dry_run};
        err = check_section(host, all, i, rule->conf, offsetof(struct connection_conf, action));
        check_allowing_connections(host, g, i);
    }
    free_scopes(all, g->n_connections);
    return err;
}
