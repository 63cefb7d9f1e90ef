// SPDX-License-Identifier: Apache-2.0
#include "logger.h"

#include <errno.h>
#include <limits.h>
#include <sys/un.h>

static const struct {
    struct mk_str name;
    enum mk_log_dest_kind kind;
} words[] = {
    {MK_STR("Off"), MK_LOG_DEST_OFF},
    {MK_STR("stdout"), MK_LOG_DEST_STDOUT},
    {MK_STR("stderr"), MK_LOG_DEST_STDERR},
    {MK_STR("syslog"), MK_LOG_DEST_SYSLOG},
};

static const struct mk_str syslog_prefix = MK_STR("syslog:");
static const struct mk_str syslog_path = MK_STR("/dev/log");

/* Parses a struct mk_log_dest; an mk_conf_parse_fn. */
static int parse_dest(const struct mk_conf_value *value, void *dest, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_log_dest *t = dest;
    struct mk_str text = value->text;
    if (value->n != 1 || !text.len)
        return mk_conf_fail(error, "one path is needed (in quotes if it has blanks), or stdout, stderr, syslog or Off");
    *t = (struct mk_log_dest){.kind = MK_LOG_DEST_FILE, .path = MK_STR("")};
    for (size_t i = 0; i < MK_COUNT_OF(words); i++)
        if (mk_str_ieq(text, words[i].name)) {
            *t = (struct mk_log_dest){words[i].kind, words[i].kind == MK_LOG_DEST_SYSLOG ? syslog_path : MK_STR("")};
            return 0;
        }
    if (mk_str_starts(text, syslog_prefix)) {
        t->kind = MK_LOG_DEST_SYSLOG;
        text = mk_str(text.p + syslog_prefix.len, text.len - syslog_prefix.len);
        if (text.len && text.p[0] != '/')
            return mk_conf_fail(error, "behind syslog: is the path of a socket, such as syslog:/dev/log");
    }
    int err = mk_conf_read_path(value, text, &t->path, arena, error);
    if (err < 0)
        return err;
    size_t most = t->kind == MK_LOG_DEST_SYSLOG ? sizeof(((struct sockaddr_un *)0)->sun_path) : PATH_MAX;
    if (!text.len || t->path.len >= most) {
        mk_buf_addf(error, "a path of 1 to %zu bytes is needed", most - 1);
        return -EINVAL;
    }
    return 0;
}

static const char *const when_full_names[] = {[WHEN_FULL_DROP] = "drop", [WHEN_FULL_WAIT] = "wait", NULL};

static const char *const facilities[] = {"kern",   "user",   "mail",   "daemon",   "auth",   "syslog", "lpr",
                                         "news",   "uucp",   "cron",   "authpriv", "ftp",    "ntp",    "audit",
                                         "alert",  "clock",  "local0", "local1",   "local2", "local3", "local4",
                                         "local5", "local6", "local7", NULL};

static const struct mk_conf_key server_keys[] = {
    MK_CONF_KEY_SIZE(
        struct logger_server_conf, buffer_bytes, "Buffer", "8M",
        "How much of each log may wait in each worker to be written. Memory is allocated as needed, from 256 KB "
        "on, and freed again. `WhenFull` says what happens when it is full.",
        .min = 32 * 1024, .max = 1024 * 1024 * 1024, .unit = "B"),
    MK_CONF_KEY_DURATION(struct logger_server_conf, flush_ms, "Flush", "1s",
                         "How long a line may wait, so that several are written together.", .min = 1, .max = 60 * 1000,
                         .unit = "s"),
    {0},
};

#define DEST_UNIT "path, stdout, stderr, syslog or Off"

static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_PATTERN(
        struct logger_host_conf, match, "Match", "/",
        "The requests of which paths are in the logs of this section. It is compared with the path that "
        "the client sent."),
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, dests[ACCESS], "AccessLog", "Off",
                       "The log of all exchanges: a file, `stdout`, `stderr`, `syslog` (RFC 5424, to /dev/log; "
                       "`syslog:/path` is another socket), or `Off`. Several hosts may share one.",
                       .unit = DEST_UNIT, .parse = parse_dest),
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, dests[ERRORS], "ErrorLog", "Off",
                       "The log of exchanges that failed: with a status of 400 and above, or ended before the response "
                       "was complete. Values as for `AccessLog`.",
                       .unit = DEST_UNIT, .parse = parse_dest),
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, formats[ACCESS], "Format", "common",
                       "The format of a line: `common`, `combined`, `json`, or a text with variables, "
                       "`\"$client $status $(request_time_us)us\"`; `json $time_iso8601 $status` is an object of these "
                       "variables. The page of the plugin lists them.",
                       .unit = "format", .parse = format_parse),
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, formats[ERRORS], "ErrorFormat", "error",
                       "The format of a line of the error log: as `Format`, or `error`.", .unit = "format",
                       .parse = format_parse),
    MK_CONF_KEY_PATTERNS(struct logger_host_conf, filter.except, "Except", NULL,
                         "Requests for these paths are not in the access log: patterns as for `Match`.",
                         .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_CUSTOM(
        struct logger_host_conf, filter.statuses, "Status", NULL,
        "Only exchanges with one of these statuses are in the access log: `404`, `5xx`; `aborted` selects "
        "those whose response is not complete.",
        .flags = MK_CONF_REPEAT, .unit = "status ...", .parse = filter_parse_statuses),
    MK_CONF_KEY_DURATION(struct logger_host_conf, filter.slower_ms, "SlowerThan", "0",
                         "Only exchanges that took at least this time, from the first byte of the request to the end, "
                         "are in the access log.",
                         .max = 24 * 3600 * 1000, .unit = "s"),
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, filter.sample, "Sample", NULL,
                       "Only this part of the exchanges that meet all other conditions is in the access log: `1%`, "
                       "`1/100`. Each worker writes every hundredth.",
                       .unit = "part", .parse = filter_parse_sample),
    MK_CONF_KEY_ENUM(
        struct logger_host_conf, when_full, "WhenFull", "drop",
        "What happens when a log cannot be written in time and `Buffer` is full. `drop`: lines are lost, and "
        "counted. `wait`: new requests of this host wait until enough was written, so that no line is "
        "lost; one that waits longer than `HandlerTimeout` gets 503.",
        .names = when_full_names),
    MK_CONF_KEY_BOOL(
        struct logger_host_conf, request_id, "RequestId", "Off",
        "Whether responses have the request ID in X-Request-Id: the one of the request's header, else a new "
        "one."),
    MK_CONF_KEY_ENUM(struct logger_host_conf, facility, "SyslogFacility", "daemon", "The facility of lines for syslog.",
                     .names = facilities),
    {0},
};

/* Warns of variables as other servers write them, which each line has as they are. */
static void check_format(const struct mk_conf_check *check, const struct format *format, size_t offset)
{
    struct mk_variable_found found;
    for (uint32_t i = 0; i < format->n; i++) {
        const struct log_op *op = &format->ops[i];
        if (!op->variable && !op->request_variable && mk_variable_find_in_literal(op->arg, &found))
            mk_conf_warn(check, offset, "a variable begins with a dollar: \"%.*s\" is written as it is%s%s",
                         MK_STR_ARG(found.text), found.here ? "; write $" : "", found.here ? found.here : "");
    }
}

static void check_host_section(const struct mk_conf_check *check, void *section)
{
    const struct logger_host_conf *conf = section;
    check_format(check, &conf->formats[ACCESS], offsetof(struct logger_host_conf, formats[ACCESS]));
    check_format(check, &conf->formats[ERRORS], offsetof(struct logger_host_conf, formats[ERRORS]));
}

const struct mk_conf_section logger_sections[] = {
    [SETTINGS_SERVER] = {.name = "LOGGER",
                         .scope = MK_CONF_SCOPE_SERVER,
                         .size = sizeof(struct logger_server_conf),
                         .keys = server_keys,
                         .doc = MK_CONF_DOC("How the workers' lines are written. The hosts set their logs.")},
    [SETTINGS_HOST] =
        {.name = "LOGGER",
         .scope = MK_CONF_SCOPE_HOST,
         .flags = MK_CONF_REPEAT,
         .size = sizeof(struct logger_host_conf),
         .keys = host_keys,
         .check = check_host_section,
         .doc = MK_CONF_DOC(
             "Logs of this host. All sections whose `Match` fits the path of a request write it; those of monkey.conf "
             "only if none of the host fits. Requests that could not be read are in the logs of `sites/default`.")},
    {0},
};
