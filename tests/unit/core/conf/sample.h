// SPDX-License-Identifier: Apache-2.0
/*
 * A small set of declared sections with every type, flag and kind of owner, for the tests of the
 * configuration and its fuzz target.
 */
#ifndef MK_UNIT_CONF_SAMPLE_H
#define MK_UNIT_CONF_SAMPLE_H

#include <errno.h>

#include "conf/conf.h"
#include "conf/value.h"

struct sample_port {
    uint64_t port;
    bool tls;
};

struct sample_ports {
    struct sample_port *items;
    uint32_t n;
};

struct sample_server {
    int64_t workers, nice;
    bool keep_alive;
    uint32_t timeout_ms;
    uint64_t request_bytes_max, cache_bytes;
    struct mk_str title, pid_file;
    struct mk_conf_list index, deny;
    int symlink;
    struct sample_ports ports;
};

static inline int sample_parse_port(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                    struct mk_buf *error)
{
    struct sample_ports *ports = field;
    struct sample_port port = {.tls = value->n == 2 && mk_str_ieq(value->words[1], MK_STR("tls"))};

    if (value->n > 1 + (unsigned)port.tls)
        return -EINVAL;
    if (!mk_str_u64(value->words[0], 65535, &port.port)) {
        mk_buf_addf(error, "\"%.*s\" is no port", MK_STR_ARG(value->words[0]));
        return -EINVAL;
    }
    ports->items = mk_arena_grow(arena, ports->items, ports->n, sizeof(port));
    if (!ports->items)
        return -ENOMEM;
    ports->items[ports->n++] = port;
    return 0;
}

static inline void sample_check_server(const struct mk_conf_check *check, void *section)
{
    const struct sample_server *server = section;
    if (server->workers == 13)
        mk_conf_error(check, offsetof(struct sample_server, workers), "%d workers bring bad luck", 13);
    if (server->nice == 13)
        mk_conf_error(check, offsetof(struct sample_server, title), "so modest a process needs a \"Title\"");
    if (!server->keep_alive && server->timeout_ms > 60000)
        mk_conf_warn(check, offsetof(struct sample_server, timeout_ms), "a long \"Timeout\" without \"KeepAlive\"");
}

static const char *const sample_symlink_names[] = {"Off", "Inside", "On", NULL};

/* clang-format off */
static const struct mk_conf_key sample_server_keys[] = {
    MK_CONF_KEY_INT(struct sample_server, workers, "Workers", "0", "Threads that serve.", .max = 64),
    MK_CONF_KEY_INT(struct sample_server, nice, "Nice", NULL, "How modest the process is."),
    MK_CONF_KEY_BOOL(struct sample_server, keep_alive, "KeepAlive", "On", "Whether connections stay."),
    MK_CONF_KEY_DURATION(struct sample_server, timeout_ms, "Timeout", "15s", "How long a request may take.",
                         .min = 1000, .max = 3600000),
    MK_CONF_KEY_SIZE(struct sample_server, request_bytes_max, "MaxRequestSize", "32", "The largest request.",
                     .unit = "K", .min = 1024),
    MK_CONF_KEY_SIZE(struct sample_server, cache_bytes, "CacheSize", "0", "Memory for files."),
    MK_CONF_KEY_STRING(struct sample_server, title, "Title", NULL, "A name for people."),
    MK_CONF_KEY_PATH(struct sample_server, pid_file, "PidFile", "", "Where the process id is written."),
    MK_CONF_KEY_LIST(struct sample_server, index, "Indexfile", "index.html index.htm", "Names to try."),
    MK_CONF_KEY_LIST(struct sample_server, deny, "Deny", NULL, "Names to refuse.", .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_CUSTOM(struct sample_server, ports, "Listen", "2001", "Where to listen.", .unit = "port [tls]",
                       .flags = MK_CONF_REPEAT, .parse = sample_parse_port),
    {0},
};
static const struct mk_conf_section sample_server = {
    .name = "SERVER", .keys = sample_server_keys, .size = sizeof(struct sample_server), .doc = "The whole server.",
    .check = sample_check_server,
};

/* the plugin "static" adds to it */
static const struct mk_conf_key sample_static_keys[] = {
    MK_CONF_KEY_ENUM(struct sample_server, symlink, "SymLink", "Off", "Which links are followed.",
                     .names = sample_symlink_names),
    {0},
};
static const struct mk_conf_section sample_static = {
    .name = "SERVER", .keys = sample_static_keys, .size = sizeof(struct sample_server),
};

static const struct mk_conf_section sample_mime = {
    .name = "MIMETYPES", .flags = MK_CONF_PAIRS, .doc = "Extensions and their types.",
};

struct sample_host {
    struct mk_conf_list names;
    struct mk_str root;
};
static const struct mk_conf_key sample_host_keys[] = {
    MK_CONF_KEY_LIST(struct sample_host, names, "ServerName", NULL, "Names of the host.", .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_PATH(struct sample_host, root, "DocumentRoot", NULL, "The files.", .flags = MK_CONF_REQUIRED),
    {0},
};
static const struct mk_conf_section sample_host = {
    .name = "HOST", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REQUIRED, .keys = sample_host_keys,
    .size = sizeof(struct sample_host), .doc = "A host.",
};

struct sample_auth {
    struct mk_str location, title;
};
static const struct mk_conf_key sample_auth_keys[] = {
    MK_CONF_KEY_STRING(struct sample_auth, location, "Location", NULL, "A prefix.", .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_STRING(struct sample_auth, title, "Title", "Members only", "The realm."),
    {0},
};
static const struct mk_conf_section sample_auth = {
    .name = "AUTH", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT, .keys = sample_auth_keys,
    .size = sizeof(struct sample_auth), .doc = "Who may see what.",
};

/* the plugin "gate" has keys of the server and keys of hosts, which may stand in one section of the server's files */
struct sample_gate_server {
    int64_t gates;
};
static const struct mk_conf_key sample_gate_server_keys[] = {
    MK_CONF_KEY_INT(struct sample_gate_server, gates, "Gates", "1", "How many there are."),
    {0},
};
static const struct mk_conf_section sample_gate_server = {
    .name = "GATE", .keys = sample_gate_server_keys, .size = sizeof(struct sample_gate_server),
};
static const struct mk_conf_section sample_gate = {
    .name = "GATE", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT, .keys = sample_auth_keys,
    .size = sizeof(struct sample_auth),
};

/* pairs next to a key */
struct sample_pages {
    struct mk_conf_pairs pairs;
    struct mk_str match;
};
static const struct mk_conf_key sample_pages_keys[] = {
    MK_CONF_KEY_STRING(struct sample_pages, match, "Match", "/", "A prefix."),
    {0},
};
static const struct mk_conf_section sample_pages = {
    .name = "PAGES", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT | MK_CONF_PAIRS, .keys = sample_pages_keys,
    .size = sizeof(struct sample_pages), .doc = "Pages by status.",
};

static const struct mk_conf_section sample_service = {
    .name = "SERVICE", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT | MK_CONF_HOST_ONLY,
    .keys = sample_auth_keys, .size = sizeof(struct sample_auth),
};

/* sections with short forms: with a pattern of paths, and with words for values */
struct sample_route {
    struct mk_pattern match;
    struct mk_conf_list to;
};
static const struct mk_conf_key sample_route_keys[] = {
    MK_CONF_KEY_PATTERN(struct sample_route, match, "Match", "/", "Which paths."),
    MK_CONF_KEY_LIST(struct sample_route, to, "To", "here", "Where they lead."),
    {0},
};
static const struct mk_conf_short_form sample_route_form = {.name = "Route", .key = "To", .doc = "A way."};
static const struct mk_conf_section sample_route = {
    .name = "ROUTE", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT, .keys = sample_route_keys,
    .size = sizeof(struct sample_route), .short_form = &sample_route_form, .doc = "Ways.",
};
static const struct mk_conf_short_value sample_detour_values[] = {
    {"On", NULL}, {"Off", "a b"}, {"all", "\"a b\""}, {0}};
static const struct mk_conf_short_form sample_detour_form = {
    .name = "Detour", .key = "To", .values = sample_detour_values, .doc = "A detour."};
static const struct mk_conf_section sample_detour = {
    .name = "DETOUR", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT, .keys = sample_route_keys,
    .size = sizeof(struct sample_route), .short_form = &sample_detour_form, .doc = "Detours.",
};
/* the plugin "cheetah" is known, but not loaded */
static const struct mk_conf_key sample_cheetah_keys[] = {
    MK_CONF_KEY_STRING(struct sample_auth, location, "Shell", NULL, "Where the shell listens."),
    {0},
};
static const struct mk_conf_section sample_cheetah = {
    .name = "CHEETAH", .keys = sample_cheetah_keys, .size = sizeof(struct sample_auth), .doc = "A shell.",
};
static const struct mk_conf_section sample_cheetah_server = {
    .name = "SERVER", .keys = sample_cheetah_keys, .size = sizeof(struct sample_auth),
};
static const struct mk_conf_short_form sample_spot_form = {.name = "Spot", .key = "Shell", .doc = "A spot."};
static const struct mk_conf_section sample_cheetah_host = {
    .name = "SPOTS", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT, .keys = sample_cheetah_keys,
    .size = sizeof(struct sample_auth), .short_form = &sample_spot_form,
};
/* clang-format on */

/* Declares all of it: 0 or -errno. */
static inline int sample_declare(struct mk__conf *conf)
{
    int r = mk__conf_declare(conf, &sample_server, NULL);

    r = r < 0 ? r : mk__conf_declare(conf, &sample_mime, NULL);
    r = r < 0 ? r : mk__conf_declare(conf, &sample_host, NULL);
    r = r < 0 ? r : mk__conf_declare(conf, &sample_static, "static");
    r = r < 0 ? r : mk__conf_declare(conf, &sample_auth, "auth");
    r = r < 0 ? r : mk__conf_declare(conf, &sample_gate_server, "gate");
    r = r < 0 ? r : mk__conf_declare(conf, &sample_gate, "gate");
    r = r < 0 ? r : mk__conf_declare(conf, &sample_pages, "gate");
    r = r < 0 ? r : mk__conf_declare(conf, &sample_service, "gate");
    r = r < 0 ? r : mk__conf_declare(conf, &sample_route, "gate");
    r = r < 0 ? r : mk__conf_declare(conf, &sample_detour, "gate");
    r = r < 0 ? r : mk__conf_declare_absent(conf, &sample_cheetah, "cheetah");
    r = r < 0 ? r : mk__conf_declare_absent(conf, &sample_cheetah_host, "cheetah");
    return r < 0 ? r : mk__conf_declare_absent(conf, &sample_cheetah_server, "cheetah");
}

/* A configuration with all of it declared, or NULL without memory. */
static inline struct mk__conf *sample_new(void)
{
    struct mk__conf *conf = mk__conf_new();
    if (conf && sample_declare(conf) == 0)
        return conf;
    mk__conf_free(conf);
    return NULL;
}

#endif
