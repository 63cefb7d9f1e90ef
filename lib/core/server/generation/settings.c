// SPDX-License-Identifier: Apache-2.0
/*
 * The rows of the core's directives (server/generation/settings.h). Names and meanings follow the original Monkey
 * server where it had them. Directives that it lacked, such as a limit for each wait and each input, have names in its
 * style.
 */
#include "server/generation/settings.h"

#include "server/listen/foreign_listen.h"
#include "server/listen/names.h"
#include "server/generation/user.h"
#include "version.h"

#include <monkey/base/file.h>

#include <errno.h>
#include <unistd.h>

#define KEY(kind, ...) MK_CONF_KEY_##kind(struct mk__settings, __VA_ARGS__)
/* The names of an enumeration's values, by their numbers; the last one has the highest. */
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { REAL_IP_X_FORWARDED_FOR, REAL_IP_FORWARDED };

/* ── options that may follow the address of a listener ── */

static int parse_proxy(struct mk_str value, struct mk__listen_conf *one, struct mk_arena *arena, struct mk_buf *error)
{
    (void)value, (void)arena, (void)error;
    one->mode.proxy = true;
    return 0;
}

static int parse_mode(struct mk_str value, struct mk__listen_conf *one, struct mk_arena *arena, struct mk_buf *error)
{
    (void)arena;
    uint32_t mode = 0;
    bool good = value.len >= 3 && value.len <= 4;
    for (size_t i = 0; good && i < value.len; i++) {
        good = value.p[i] >= '0' && value.p[i] <= '7';
        mode = mode << 3 | (uint32_t)(value.p[i] - '0');
    }
    if (!good || mode > 0777) {
        mk_buf_addf(error, "the mode of a socket has three digits from 0 to 7, as in mode=0660");
        return -EINVAL;
    }
    one->rights.mode = mode;
    return 0;
}

/* Looks up a name of one word as the keys User and Group do. */
static int parse_owner(struct mk_str value, uint32_t *ret_id, mk_conf_parse_fn parse, struct mk_arena *arena,
                       struct mk_buf *error)
{
    struct mk_conf_value name = {.text = value, .words = &value, .n = 1};
    struct mk__user found;
    int err = parse(&name, &found, arena, error);
    if (err == 0)
        *ret_id = found.id;
    return err;
}

static int parse_user(struct mk_str value, struct mk__listen_conf *one, struct mk_arena *arena, struct mk_buf *error)
{
    return parse_owner(value, &one->rights.user, mk__user_parse, arena, error);
}

static int parse_group(struct mk_str value, struct mk__listen_conf *one, struct mk_arena *arena, struct mk_buf *error)
{
    return parse_owner(value, &one->rights.group, mk__user_parse_group, arena, error);
}

/* A name that ends with "=" is followed by a value, and is for Unix sockets. */
static const struct listener_option {
    struct mk_str name;
    int (*parse)(struct mk_str value, struct mk__listen_conf *one, struct mk_arena *arena, struct mk_buf *error);
} listener_options[] = {
    {MK_STR("proxy"), parse_proxy},
    {MK_STR("mode="), parse_mode},
    {MK_STR("user="), parse_user},
    {MK_STR("group="), parse_group},
};

static const struct listener_option *find_option(struct mk_str word)
{
    for (unsigned i = 0; i < MK_COUNT_OF(listener_options); i++) {
        struct mk_str name = listener_options[i].name;
        bool valued = name.p[name.len - 1] == '=';
        if (valued ? mk_str_istarts(word, name) : mk_str_ieq(word, name))
            return &listener_options[i];
    }
    return NULL;
}

/* Any other word is the name of a transport plugin, which is searched when the plugins are loaded. */
static int parse_option(struct mk_str word, struct mk__listen_conf *one, struct mk_arena *arena, struct mk_buf *error)
{
    const struct listener_option *option = find_option(word);
    if (option && option->parse != parse_proxy && one->addr.sa.sa_family != AF_UNIX) {
        mk_buf_addf(error, "%.*s is for Unix sockets: Listen unix:/path %.*s", MK_STR_ARG(option->name),
                    word.len < 80 ? (int)word.len : 80, word.p);
        return -EINVAL;
    }
    if (option)
        return option->parse(mk_str_after(word, option->name.len), one, arena, error);
    if (mk__foreign_listen_find_option(word, error))
        return -EINVAL;
    if (one->transport.len) {
        mk_buf_addf(error, "one plugin carries connections, not %.*s and %.*s", MK_STR_ARG(one->transport),
                    word.len < 80 ? (int)word.len : 80, word.p);
        return -EINVAL;
    }
    one->transport = mk_arena_dup(arena, word);
    return one->transport.p ? 0 : -ENOMEM;
}

static int parse_options(const struct mk_conf_value *value, struct mk__listen_conf *one, struct mk_arena *arena,
                         struct mk_buf *error)
{
    int err = 0;
    for (uint32_t i = 1; i < value->n && err == 0; i++) {
        err = parse_option(value->words[i], one, arena, error);
        if (err < 0 && value->fault)
            *value->fault = (size_t)(value->words[i].p - value->text.p);
    }
    return err;
}

/* Appends a listener. Returns 0 or -ENOMEM. */
static int add_listener(struct mk__listen_confs *all, const struct mk__listen_conf *one, struct mk_arena *arena)
{
    struct mk__listen_conf *items = mk_arena_grow(arena, all->items, all->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    items[all->n] = *one;
    *all = (struct mk__listen_confs){items, all->n + 1};
    return 0;
}

/* Appends a listener for each address of a name. */
static int add_named_listeners(struct mk__listen_confs *all, struct mk__listen_conf *one, struct mk_str name,
                               struct mk_arena *arena, struct mk_buf *error)
{
    struct mk__addr port, found[MK__LISTEN_NAMES_MAX];
    struct mk_str digits = mk_str(one->text.p + name.len + 1, one->text.len - name.len - 1);
    const char *reason;
    int n = mk__addr_parse(digits, &port, &reason), err = 0;
    if (n == 0)
        n = mk__listen_names_resolve(name, found, MK__LISTEN_NAMES_MAX, &reason);
    if (n < 0) {
        mk_buf_addf(error, "%s", reason);
        return n;
    }
    for (int i = 0; i < n && err == 0; i++) {
        one->addr = found[i];
        mk__addr_set_port(&one->addr, mk__addr_port(&port));
        err = add_listener(all, one, arena);
    }
    return err;
}

static int parse_listen(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk__listen_confs *all = field;
    struct mk__listen_conf one = {.text = mk_arena_dup(arena, value->words[0]),
                                  .rights = MK__LISTEN_DEFAULT_RIGHTS,
                                  .line = all->n ? all->items[all->n - 1].line + 1 : 0};
    struct mk_str name = MK_STR_NONE;
    const char *reason = "one address a line";
    if (!one.text.p)
        return -ENOMEM;
    if (mk__foreign_listen_find(one.text, error))
        return -EINVAL;
    bool named = mk__listen_names_split(one.text, &name);
    if (!named && mk__addr_parse(one.text, &one.addr, &reason) < 0) {
        mk_buf_addf(error, "%s", reason);
        return -EINVAL;
    }
    int err = parse_options(value, &one, arena, error);
    if (err < 0)
        return err;
    return named ? add_named_listeners(all, &one, name, arena, error) : add_listener(all, &one, arena);
}

/* Returns what to write in place of a value that would become the name of a file; NULL: it is a name. */
static const char *find_log_mistake(const struct mk_conf_value *value)
{
    struct mk_str text = value->text;
    if (value->n > 1)
        return "one path is needed (in quotes if it has blanks), or stderr; how much is logged says LogLevel";
    if (mk_conf_is_off(value))
        return "it has no Off: write LogLevel error for less, or ErrorLog /dev/null for nothing";
    if (mk_str_ieq(text, MK_STR("syslog")) || mk_str_istarts(text, MK_STR("syslog:")))
        return "this log does not go to syslog: write stderr, which systemd passes to its journal, or a path";
    if (mk_str_ieq(text, MK_STR("stdout")))
        return "write stderr, or /dev/stdout";
    return mk_str_ieq(text, MK_STR("stderr")) ? "write stderr in small letters" : NULL;
}

/* Parses a path, or the word or path of stderr, which leaves the path empty. */
static int parse_log(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *path = field;
    if (mk_str_eq(value->text, MK_STR("stderr")))
        return 0;
    const char *mistake = find_log_mistake(value);
    if (mistake)
        return mk_conf_fail(error, mistake);
    int err = mk_conf_read_path(value, value->text, path, arena, error);
    if (err == 0 && mk_file_std_stream(path->p) == STDERR_FILENO)
        *path = MK_STR("");
    return err;
}

// clang-format off
static const struct mk_conf_key server_keys[] = {
    KEY(CUSTOM, listen, "Listen", "2001",
        "Where connections are accepted: a port (all addresses, IPv4 and IPv6), `address:port`, `[v6]:port`, or "
        "`unix:/path`. May be given several times. Port 0 lets the system choose."
        " A link-local address needs its interface: `[fe80::1%eth0]:port`."
        " `localhost:port` means 127.0.0.1 and ::1; other names must be in `/etc/hosts`."
        " The name of a plugin behind it, such as `tls`, says what carries its connections, instead of "
        "`TransportLayer`. With `proxy`, each connection must come from one of the `TrustedProxies`, and begin "
        "with a PROXY header. A Unix socket takes `mode=0660`, `user=NAME` and `group=NAME`; its mode "
        "is 0666 without it, less what the umask forbids to read (0660 with a umask of 0027).",
        .flags = MK_CONF_REPEAT, .unit = "[address:]port [tls] [proxy] [mode=] [user=] [group=]",
        .parse = parse_listen),
    KEY(NETWORKS, trusted_proxies, "TrustedProxies", NULL,
        "The proxies whose information about the client is trusted: addresses, networks (`10.0.0.0/8`), or `unix` for "
        "Unix sockets.",
        .flags = MK_CONF_REPEAT),
    KEY(ENUM, real_ip_header, "RealIPHeader", "X-Forwarded-For",
        "The header field in which they name the client. They must set it themselves, not pass on the client's. "
        "`X-Forwarded-For` includes `X-Forwarded-Proto`.",
        .names = NAMES([REAL_IP_X_FORWARDED_FOR] = "X-Forwarded-For", [REAL_IP_FORWARDED] = "Forwarded")),
    KEY(INT, workers, "Workers", "0",
        "Threads that serve connections. 0: one for each processor that the process may use.", .min = 0, .max = 1024),
    KEY(ENUM, scheduler, "Scheduler", "reuseport",
        "How connections are accepted. `reuseport`: by each worker, at its own sockets (`SO_REUSEPORT`), among "
        "which the kernel spreads them at random. `fair`: by one thread, which hands each to the worker that has the "
        "fewest.",
        .names = NAMES([MK__SCHEDULER_REUSEPORT] = "reuseport", [MK__SCHEDULER_FAIR] = "fair")),
    KEY(BOOL, affinity, "Affinity", "Off",
        "Bind each worker to one of the processors that the process may use, in turn."),
    KEY(INT, descriptors_max, "FDLimit", "0",
        "The limit of open descriptors: each connection takes one, and each file that is being sent. At most the hard "
        "limit (`ulimit -Hn`). 0: the hard limit.",
        .min = 0, .max = 1 << 24),
    KEY(INT, connections_max, "MaxConnections", "0", "Connections of all workers together. 0: no limit.",
        .min = 0, .max = 1 << 24),
    KEY(ENUM, over_capacity, "OverCapacity", "Resist",
        "What happens to new connections when the server has no room for them: no descriptors (`FDLimit`), no memory "
        "(`MemoryLimit`), or `MaxConnections` of them. `Resist`: they wait in the kernel's queue, while other "
        "connections are closed to make room: idle ones, then an HTTP/2 connection with many responses that its client "
        "does not read, then those without a complete request head. `Drop`: they are closed at once. `TooBusy`: they "
        "are answered with 503, then closed; at a listener with `tls` as with `Drop`.",
        .names = NAMES([MK__OVER_CAPACITY_RESIST] = "Resist", [MK__OVER_CAPACITY_DROP] = "Drop",
                       [MK__OVER_CAPACITY_TOO_BUSY] = "TooBusy")),
    KEY(DURATION, limits.timeout_ms[MK__TIMEOUT_HEAD], "Timeout", "15",
        "How long a client may take to send the whole head of a request; answered with 408.", .min = 100,
        .max = 3600000, .unit = "s"),
    KEY(DURATION, limits.timeout_ms[MK__TIMEOUT_BODY], "BodyTimeout", "30",
        "How long a client may pause while it sends a body; 408.", .min = 100, .max = 3600000, .unit = "s"),
    KEY(SIZE, limits.body_rate_min, "MinBodyRate", "256",
        "Bytes per second that a body must bring on average once it is five seconds old; 408. 0: no minimum.",
        .unit = "B"),
    KEY(DURATION, limits.timeout_ms[MK__TIMEOUT_HANDLER], "HandlerTimeout", "60",
        "How long a handler may take for its response; 503. A response that has begun is cut if it pauses that long.",
        .min = 100, .max = 86400000, .unit = "s"),
    KEY(DURATION, limits.timeout_ms[MK__TIMEOUT_SEND], "SendTimeout", "30",
        "How long a client may accept no byte of a response; the connection is closed.", .min = 100, .max = 3600000,
        .unit = "s"),
    KEY(BOOL, keep_alive, "KeepAlive", "On", "Whether a connection may carry several requests."),
    KEY(DURATION, limits.timeout_ms[MK__TIMEOUT_IDLE], "KeepAliveTimeout", "5",
        "How long a connection may be idle between two requests.", .min = 100, .max = 3600000, .unit = "s"),
    KEY(INT, requests_max, "MaxKeepAliveRequest", "1000", "Requests that one connection may carry. 0: no limit.",
        .min = 0, .max = 1000000000),
    KEY(DURATION, limits.timeout_ms[MK__TIMEOUT_LINGER], "LingerTimeout", "2",
        "How long the server reads on after it has closed its side, so that a client that is still sending receives "
        "the response.",
        .min = 100, .max = 60000, .unit = "s"),
    KEY(DURATION, limits.timeout_ms[MK__TIMEOUT_HANDSHAKE], "HandshakeTimeout", "10",
        "How long the handshake of an encrypted connection may take; it is closed.", .min = 100, .max = 3600000,
        .unit = "s"),
    KEY(INT, handshakes_max, "MaxHandshakes", "512",
        "Concurrent TLS handshakes of each worker; when more connections come, the oldest of these is closed.",
        .min = 1, .max = 1 << 20),
    KEY(DURATION, limits.timeout_ms[MK__TIMEOUT_TUNNEL], "TunnelTimeout", "1h",
        "How long a connection that a handler has taken over (WebSocket, CONNECT) may carry no byte either way.",
        .min = 100, .max = 604800000, .unit = "s"),
    KEY(DURATION, shutdown_timeout_ms, "ShutdownTimeout", "10",
        "How long requests in progress may take to finish when the server stops.", .min = 0, .max = 3600000,
        .unit = "s"),
    KEY(DURATION, shutdown_delay_ms, "ShutdownDelay", "0",
        "How long the server continues as before when it is asked to stop, while `[HEALTH]` reports that it is not "
        "ready.",
        .min = 0, .max = 3600000, .unit = "s"),
    KEY(SIZE, line_bytes_max, "MaxRequestLine", "8K", "The longest request line; 414 beyond it.", .min = 64,
        .max = 32768, .unit = "B"),
    KEY(SIZE, head_bytes_max, "MaxHeadSize", "16K", "The largest head of a request; 431 beyond it.", .min = 256,
        .max = 65535, .unit = "B"),
    KEY(INT, headers_max, "MaxHeaders", "100", "The most header fields of a request; 431 beyond it.", .min = 1,
        .max = 1000),
    KEY(SIZE, limits.collect_bytes_max, "MaxRequestSize", "32",
        "The largest body that is collected in memory for a handler; 413 beyond it. A number without a unit counts "
        "kilobytes.",
        .min = 0, .max = 1 << 30, .unit = "K"),
    KEY(SIZE, limits.body_bytes_max, "MaxBodySize", "1G", "The largest body of any request; 413 beyond it.",
        .unit = "B"),
    KEY(SIZE, limits.discard_bytes_max, "MaxDiscardSize", "64K",
        "How much of an unused body is read and discarded to keep the connection; if the body is longer, the "
        "connection is closed after the response.",
        .unit = "B"),
    KEY(SIZE, memory_bytes_max, "MemoryLimit", "64M",
        "Memory that each worker may use for its connections; beyond it requests fail and connections are closed.",
        .min = 1 << 20, .unit = "B"),
    KEY(INT, backlog, "Backlog", "1024",
        "Connections that may wait to be accepted; the system's `net.core.somaxconn` limits it too.", .min = 1,
        .max = 65535),
    KEY(DURATION, defer_accept_ms, "DeferAccept", "1s",
        "For about how long the kernel keeps a new connection until its first bytes arrive (`TCP_DEFER_ACCEPT`, whole "
        "seconds). 0: off.",
        .min = 0, .max = 60000, .unit = "s"),
    KEY(SIZE, send_buffer_bytes, "SendBuffer", "0",
        "Kernel memory of each TCP connection for bytes that the client has not acknowledged (`SO_SNDBUF`). 0: as much "
        "as `net.ipv4.tcp_wmem` allows. It limits the speed over long distances: a connection needs its rate times the "
        "round-trip time.",
        .min = 0, .max = 1 << 30, .unit = "B"),
    KEY(SIZE, not_sent_bytes, "NotSentLowat", "128K",
        "How many of these bytes may wait unsent (`TCP_NOTSENT_LOWAT`). It bounds the memory for a client that does "
        "not read, without limiting the speed. 0: as `net.ipv4.tcp_notsent_lowat` says.",
        .min = 0, .max = 1 << 30, .unit = "B"),
    KEY(INT, fast_open, "FastOpen", "256",
        "The queue for TCP Fast Open connections, which save a round trip. 0: off. The system must allow it: "
        "`net.ipv4.tcp_fastopen` with the bit of value 2.",
        .min = 0, .max = 65535),
    KEY(BOOL, server_header, "ServerHeader", "On", "Whether responses have a `Server` field."),
    KEY(BOOL, hide_version, "HideVersion", "Off", "Leave the version out of the `Server` field."),
    KEY(STRING, default_type, "DefaultMimeType", "application/octet-stream",
        "The type of files whose extension is unknown."),
    KEY(STRING, transport, "TransportLayer", "liana",
        "The plugin that carries the connections of all listeners that name none."),
    KEY(INT, disk_threads, "DiskThreads", "2",
        "Threads that read files which are not in the page cache; started when needed.", .min = 1, .max = 16),
    KEY(CUSTOM, error_log, "ErrorLog", "stderr", "Where the error log goes: `stderr`, or a file, which is appended to.",
        .unit = "stderr or path", .parse = parse_log),
    KEY(ENUM, log_level, "LogLevel", "info", "The least urgent events that are logged.",
        .names = NAMES("error", "warn", "info", "debug")),
    KEY(PATH, pid_file, "PidFile", NULL, "Where the process writes its process ID; removed when it stops."),
    KEY(CUSTOM, user, "User", NULL,
        "The user that the server changes to when listeners, log and pid file are open; it must be started as root, or "
        "as this user. A reload reads and opens files as this user.",
        .unit = "name", .parse = mk__user_parse),
    KEY(CUSTOM, group, "Group", NULL, "The group of the process, instead of the user's own.", .unit = "name",
        .parse = mk__user_parse_group),
    KEY(BOOL, supervisor, "Supervisor", "Off",
        "Whether a small supervisor process runs above the server: it holds the listeners, restarts a server that "
        "crashed, and starts a new program (SIGUSR2). The same as the option `--supervise`."),
    KEY(BOOL, core_dumps, "CoreDumps", "Off",
        "Whether the server may write core files, and programs of its user may look into it: debuggers, profilers, and "
        "whatever reads `/proc/PID/fd`, `maps` or `mem`. The price of `On`: every program of that user can read the "
        "memory of the server, with its private keys, passwords and what clients send; scripts of `[CGI]` are such "
        "programs, and a core file has all of that, too. With `Off` root alone can. How large core files may be is "
        "decided by `ulimit -c`, or `LimitCORE` of systemd."),
    {0},
};
// clang-format on

static void check_proxies(const struct mk_conf_check *check, const struct mk__settings *s)
{
    for (uint32_t i = 0; i < s->listen.n && !s->trusted_proxies.items; i++) /* an invalid one was reported */
        if (s->listen.items[i].mode.proxy)
            mk_conf_error(check, offsetof(struct mk__settings, listen), "Listen %.*s proxy: TrustedProxies is empty",
                          MK_STR_ARG(s->listen.items[i].text));
}

/* Reports if this process cannot change to User and Group. */
static void check_user(const struct mk_conf_check *check, const struct mk__settings *s)
{
    if (s->group.name.p && !s->user.name.p)
        mk_conf_error(check, offsetof(struct mk__settings, group), "Group needs User, too");
    else if (s->user.name.p && geteuid() != 0 && s->user.id != geteuid())
        mk_conf_error(check, offsetof(struct mk__settings, user),
                      "only root can become %s, and this process runs as user %u: start it as root, or as %s",
                      s->user.name.p, geteuid(), s->user.name.p);
    else if (s->group.name.p && geteuid() != 0 && s->group.id != getegid())
        mk_conf_error(check, offsetof(struct mk__settings, group),
                      "only root can change to the group %s, and this process has group %u", s->group.name.p,
                      getegid());
}

/* A head is kept in one piece with its request line, so the line's limit cannot be larger. */
static void check_server(const struct mk_conf_check *check, void *section)
{
    const struct mk__settings *s = section;
    if (s->head_bytes_max && s->line_bytes_max > s->head_bytes_max) /* 0: its value was invalid */
        mk_conf_error(check, offsetof(struct mk__settings, line_bytes_max),
                      "MaxRequestLine is larger than MaxHeadSize, which includes it");
    check_user(check, s);
    check_proxies(check, s);
}

/* Keys that the original server had in [SERVER], and names of earlier versions. */
// clang-format off
static const struct mk_conf_foreign server_foreign[] = {
    MK_CONF_RENAMED("ClientFrom", "RealIPHeader"),
    MK_CONF_RENAMED("StopDelay", "ShutdownDelay"),
    MK_CONF_RENAMED("DrainTimeout", "ShutdownTimeout"),
    MK_CONF_RENAMED("MaxDrainSize", "MaxDiscardSize"),
    MK_CONF_RENAMED("BodyMinRate", "MinBodyRate"),
    {"FDT", "each request opens its file anew"},
    {"UserDir", "it belongs in [HOST], in a file of sites/"},
    {"Port", "Listen takes the port: Listen 2001"},
    {0},
};
// clang-format on

const struct mk_conf_section mk__section_server = {
    .name = "SERVER",
    .scope = MK_CONF_SCOPE_SERVER,
    .size = sizeof(struct mk__settings),
    .keys = server_keys,
    .foreign = server_foreign,
    .check = check_server,
    .doc = MK_CONF_DOC("The server as a whole: listeners, workers, limits and waits. In `monkey.conf`."),
};

/* 0: the host does not set a limit. */
#define LIMIT(kind, field, name, ...) \
    MK_CONF_KEY_##kind(struct mk__host_settings, limits.field, name, NULL, \
                       "For this host, instead of the server's `" name "`.", __VA_ARGS__)

// clang-format off
static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_LIST(
        struct mk__host_settings, names, "ServerName", NULL,
        "The names of this host, as clients ask for them, without a port: a name, `*.example.org` for all "
        "names below it, or an address (`192.0.2.1`, `[2001:db8::1]`). A name wins over a wildcard, a long "
        "wildcard over a shorter one; no name may appear twice, in one host or in two. Names may also stand in the "
        "section's brackets: `[HOST example.org www.example.org]`.",
        .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_LIST(
        struct mk__host_settings, listeners, "Listener", NULL,
        "Answer only at these listeners, by the address of their `Listen` lines; at others the host does not exist. "
        "Hosts with the same name may be bound to different ones. For a name that no host has, the first host that is "
        "bound to a listener answers there (`sites/default` before others), else `sites/default`.",
        .flags = MK_CONF_REPEAT),
    MK__LIMIT_KEYS(LIMIT),
    {0},
};
// clang-format on

static const struct mk_conf_foreign host_foreign[] = {
    MK_CONF_RENAMED("MaxDrainSize", "MaxDiscardSize"),
    MK_CONF_RENAMED("BodyMinRate", "MinBodyRate"),
    {0},
};

const struct mk_conf_section mk__section_host = {
    .name = "HOST",
    .scope = MK_CONF_SCOPE_HOST,
    .flags = MK_CONF_REQUIRED,
    .size = sizeof(struct mk__host_settings),
    .keys = host_keys,
    .foreign = host_foreign,
    .doc = MK_CONF_DOC(
        "One host: a file in `sites/`, or what follows a line `[HOST example.org]` in `monkey.conf` or another file, "
        "up to the next such line. `sites/default` answers for every name that no other host has; without that file "
        "the first host of `monkey.conf` without a name, else its first one. A file that a host includes continues "
        "that host with `[HOST]` alone. Copies in `sites/` that editors and package managers leave (`*~`, `*.bak`, "
        "`*.orig`, `*.swp`, `*.dpkg-old`, `*.rpmnew`, `#*#` and the like) are skipped with a warning; names that begin "
        "with a dot without one."),
};

static void check_types(const struct mk_conf_check *check, void *section)
{
    const struct mk_conf_pairs *pairs = section;
    for (uint32_t i = 0; i < pairs->n; i++) {
        struct mk_str extension = pairs->items[i].key, type = pairs->items[i].value;
        if (extension.len && (memchr(extension.p, '/', extension.len) || extension.p[0] == '.'))
            mk_conf_error_nth(check, 0, i, "a line is an extension without a dot, and a type: js text/javascript");
        else if (!type.len || !memchr(type.p, '/', type.len))
            mk_conf_error_nth(check, 0, i, "a type has a slash, such as text/plain");
    }
}

const struct mk_conf_section mk__section_mimetypes = {
    .name = "MIMETYPES",
    .scope = MK_CONF_SCOPE_SERVER,
    .flags = MK_CONF_PAIRS,
    .check = check_types,
    .doc = MK_CONF_DOC(
        "Media types by extension, in `monkey.mime`: `ext type/subtype`. They come before the built-in table, "
        "which knows the usual ones."),
};

static const struct mk_conf_key plugin_keys[] = {
    MK_CONF_KEY_LIST(struct mk__plugin_list, load, "Load", NULL,
                     "The plugins to load, in the order in which requests pass them: by their names, or, with a "
                     "slash in it, by the path of a shared object, seen from this file.",
                     .flags = MK_CONF_REPEAT),
    {0},
};

const struct mk_conf_section mk__section_plugins = {
    .name = "PLUGINS",
    .scope = MK_CONF_SCOPE_SERVER,
    .size = sizeof(struct mk__plugin_list),
    .keys = plugin_keys,
    .doc = MK_CONF_DOC(
        "In `plugins.load`. Without that file the built-in plugins are loaded, and those of the "
        "plugins' folder whose name is that of a section or a key in `monkey.conf`, `sites/` or `plugins/`."),
};

struct mk__listen_conf *mk__settings_find_listener(const struct mk__settings *s, struct mk_str text)
{
    for (uint32_t i = 0; i < s->listen.n; i++)
        if (mk_str_eq(s->listen.items[i].text, text))
            return &s->listen.items[i];
    return NULL;
}

static void override_limit(uint64_t *limit, uint64_t own)
{
    if (own)
        *limit = own;
}

void mk__settings_limits(const struct mk__http_limits *own, struct mk__http_limits *limits)
{
    for (int i = 0; i < MK__TIMEOUTS; i++)
        if (own->timeout_ms[i])
            limits->timeout_ms[i] = own->timeout_ms[i];
    override_limit(&limits->body_rate_min, own->body_rate_min);
    override_limit(&limits->body_bytes_max, own->body_bytes_max);
    override_limit(&limits->collect_bytes_max, own->collect_bytes_max);
    override_limit(&limits->discard_bytes_max, own->discard_bytes_max);
}

static struct mk_str get_server_line(const struct mk__settings *s)
{
    if (!s->server_header)
        return MK_STR("");
    return s->hide_version ? MK_STR("Server: Monkey\r\n") : MK_STR("Server: Monkey/" MK__VERSION "\r\n");
}

void mk__settings_http(const struct mk__settings *s, struct mk__http_settings *ret)
{
    *ret = (struct mk__http_settings){
        .head = {.line_bytes_max = (uint32_t)s->line_bytes_max,
                 .head_bytes_max = (uint32_t)s->head_bytes_max,
                 .fields_max = (uint32_t)s->headers_max},
        .limits = s->limits,
        .requests_max = (uint64_t)s->requests_max,
        .keep_alive = s->keep_alive,
        .handshakes_max = (uint32_t)s->handshakes_max,
        .trusted_proxies = {s->trusted_proxies, s->real_ip_header == REAL_IP_FORWARDED},
        .server_line = get_server_line(s),
    };
}
