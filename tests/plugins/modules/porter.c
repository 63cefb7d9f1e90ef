// SPDX-License-Identifier: Apache-2.0
/*
 * porter: logs when connections are accepted and closed, and rejects the clients that its configuration names. Keeps a
 * number for each connection, which is in the responses.
 */
#include <monkey/hooks.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct settings {
    struct mk_networks refused;
    struct mk_str name;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_NETWORKS(struct settings, refused, "Refuse", NULL, "Who may not come in.", .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_STRING(struct settings, name, "Name", "first", "Of this generation."),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "PORTER",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct settings),
     .keys = keys,
     .doc = MK_CONF_DOC("A porter.")},
    {0},
};

static const struct settings *settings_of(const struct mk_connection *conn)
{
    return mk_generation_conf(mk_worker_generation(mk_connection_worker(conn)), sections);
}

static void note(struct mk_connection *conn, const char *moment)
{
    char text[64];
    struct mk_buf b;
    struct mk_address peer = mk_connection_peer(conn);
    mk_buf_init_fixed(&b, text, sizeof(text));
    mk_address_print(&peer, &b);
    mk_log_info("porter: %.*s %s %llu %.*s %.*s", MK_STR_ARG(settings_of(conn)->name), moment,
                (unsigned long long)mk_connection_id(conn), MK_STR_ARG(mk_buf_str(&b)),
                MK_STR_ARG(mk_connection_listener(conn)));
}

static int admit(struct mk_connection *conn)
{
    struct mk_address peer = mk_connection_peer(conn);
    bool is_refused = mk_networks_contain(&settings_of(conn)->refused, &peer);
    note(conn, is_refused ? "refused" : "accepted");
    return is_refused ? -EACCES : 0;
}

static void log_close(struct mk_connection *conn)
{
    note(conn, "closed");
}

/* ── what is kept ── */

extern const struct mk_plugin mk_plugin_porter;

struct kept {
    uint64_t id;
};

static void forget(void *state)
{
    struct kept *kept = state;
    mk_log_info("porter forgets %llu", (unsigned long long)kept->id);
    free(kept);
}

static int keep(struct mk_connection *conn)
{
    char text[64];
    struct mk_buf b;
    struct mk_address client = mk_connection_client(conn);
    struct kept *kept = malloc(sizeof(*kept));
    if (!kept)
        return -ENOMEM;
    kept->id = mk_connection_id(conn);
    mk_buf_init_fixed(&b, text, sizeof(text));
    mk_address_print(&client, &b);
    mk_log_info("porter knows %llu %.*s %s", (unsigned long long)kept->id, MK_STR_ARG(mk_buf_str(&b)),
                mk_connection_is_proxy(conn) ? "proxy" : "client");
    int err = mk_connection_set_state(conn, &mk_plugin_porter, kept, forget);
    if (err < 0)
        free(kept);
    return err;
}

static void show(struct mk_request *req)
{
    char text[32];
    const struct kept *kept = mk_connection_state(mk_request_connection(req), &mk_plugin_porter);
    snprintf(text, sizeof(text), "%llu", kept ? (unsigned long long)kept->id : 0);
    mk_response_header(req, MK_STR("Porter"), mk_str_c(text));
}

static const struct mk_connection_hooks connection_hooks = {
    .on_accept = admit,
    .on_client = keep,
    .on_close = log_close,
};

MK_PLUGIN(porter) = {
    MK_PLUGIN_HEAD("porter", "1.0", "sees connections come and go"),
    .sections = sections,
    .on_response = show,
    .connections = &connection_hooks,
};
