// SPDX-License-Identifier: Apache-2.0
/*
 * gate: an access check. Requests for some paths of a host need one of its keys in a field of the request.
 *
 *     [GATE]                           in the file of a host
 *         Match   /private
 *         Key     3f786850e387550f
 *         Key     89e6c98d92887913
 *
 * The client sends `X-Key: 3f786850e387550f`.
 */
#include <monkey/plugin.h>

extern const struct mk_plugin mk_plugin_gate;

/* ── directives: rows, from which loading, checking and the manual come ── */

struct gate {
    struct mk_pattern match;
    struct mk_conf_list keys;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct gate, match, "Match", NULL, "The paths behind the gate.", .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_LIST(struct gate, keys, "Key", NULL, "A key that opens it.",
                     .flags = MK_CONF_REQUIRED | MK_CONF_REPEAT),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "GATE",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct gate),
     .keys = keys,
     .doc = MK_CONF_DOC("Paths that need a key. All sections that match a path must be satisfied.")},
    {0},
};

/* Hosts without a gate cost nothing: their state is NULL. */
static int start_host(struct mk_host *host, void **ret_state)
{
    *ret_state = mk_host_conf(host, sections) ? host : NULL;
    return 0;
}

/* ── requests ── */

/* In a time that does not tell how much of it was right. */
static bool is_same(struct mk_str a, struct mk_str b)
{
    unsigned char difference = a.len != b.len;
    for (size_t i = 0; i < a.len && i < b.len; i++)
        difference |= (unsigned char)(a.p[i] ^ b.p[i]);
    return difference == 0;
}

static bool opens(const struct gate *gate, struct mk_str key)
{
    bool good = false;
    for (uint32_t i = 0; i < gate->keys.n; i++)
        good |= is_same(gate->keys.items[i], key);
    return good;
}

static int check(struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_state(req, &mk_plugin_gate);
    if (!host)
        return MK_DECLINED;
    for (const struct gate *g = mk_host_conf(host, sections); g; g = mk_host_conf_next(host, sections, g)) {
        if (mk_pattern_match(&g->match, mk_request_path(req)) == 0)
            continue; /* below 0 it cannot be told: a rule that protects counts as a match then */
        if (opens(g, mk_request_header_by_name(req, MK_STR("X-Key"))))
            continue;
        mk_response_error(req, 403);
        return 0; /* answered */
    }
    return MK_DECLINED; /* no objection */
}

MK_PLUGIN(gate) = {
    MK_PLUGIN_HEAD("gate", "1.0", "asks for keys"),
    .sections = sections,
    .host_start = start_host,
    .on_request = check,
};
