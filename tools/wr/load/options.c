// SPDX-License-Identifier: Apache-2.0
/*
 * Options as rows of a table: what each accepts, and where its value goes. Then the files and the server that they
 * name.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <monkey/base/buf.h>

#include "base/file.h"
#include "http/message/parse.h"
#include "tls.h"
#include "version.h"

enum {
    BODY_BYTES_MAX = 1 << 30,
    MESSAGE_BYTES_DEFAULT = 125,
    DESCRIPTORS_EXTRA = 32, /* besides the connections; plus some for each thread */
};

static const char help[] =
    "usage: wr-load [options] URL...\n\n"
    "  -c, --connections N     connections (default 1)\n"
    "  -t, --threads N         threads, each with its own loop (default 1)\n"
    "  -n, --requests N        end after N answers\n"
    "  -d, --duration SECONDS  end after this time (default 10, unless -n)\n"
    "      --warm-up SECONDS   load that is not counted, before that\n"
    "      --close             a new connection for each request; otherwise keep-alive\n"
    "      --requests-per-connection N   close a connection after N answers\n"
    "      --full-handshakes   resume no TLS sessions\n"
    "  -p, --pipeline N        requests in flight on a connection (default 1)\n"
    "  -r, --rate R            open loop: R requests a second over all connections, at constant intervals\n"
    "      --paths FILE        paths, one a line: PATH [STATUS [LENGTH [SHA256]]]\n"
    "      --pick sequence|uniform|zipf[:S]   the order of paths; --seed N\n"
    "  -H, --header 'N: V'     a header line; --method M; --body FILE\n"
    "      --status N, --length N   of every answer, where no path says otherwise\n"
    "      --sample N          hash one answer in N and compare it with the SHA256 of its path (default 1000)\n"
    "      --timeout SECONDS   an answer that takes longer is an error (default 30)\n"
    "      --ca FILE, --insecure   TLS: https://, wss://\n"
    "      --message BYTES     ws://: the length of the messages, which come back (default 125)\n"
    "      --broadcast         ws://: the first connection sends, and each one receives every message\n"
    "      --hdr FILE          write latencies as an HdrHistogram V2 log\n"
    "      --progress          a JSON line every second on standard error\n"
    "      --version           print the version\n";

bool options_print(const struct plan *plan)
{
    if (!plan->has_help && !plan->has_version)
        return false;
    fputs(plan->has_help ? help : "wr-load " MK__VERSION "\n", stdout);
    return true;
}

static int MK_PRINTF(1, 2) report_mistake(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("wr-load: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\n", stderr);
    va_end(args);
    return -EINVAL;
}

/* ── values ── */

/* A number from `min` to `max`. */
static bool parse_real(const char *text, double min, double max, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && !*end && isfinite(*ret) && *ret >= min && *ret <= max;
}

static bool parse_count(const char *text, double min, double max, uint64_t *ret)
{
    double value;
    bool ok = text[0] >= '0' && text[0] <= '9' && !strpbrk(text, "xX.eE") && parse_real(text, min, max, &value);
    *ret = ok ? strtoull(text, NULL, 10) : 0;
    return ok;
}

static bool parse_pick(struct plan *plan, const char *text)
{
    static const char *const names[] = {[PICK_SEQUENCE] = "sequence", [PICK_UNIFORM] = "uniform", [PICK_ZIPF] = "zipf"};
    plan->exponent = 1;
    for (unsigned i = 0; i < MK_COUNT_OF(names); i++) {
        plan->pick = (enum pick)i;
        if (strcmp(text, names[i]) == 0)
            return true;
    }
    return strncmp(text, "zipf:", 5) == 0 && parse_real(text + 5, 0, 10, &plan->exponent);
}

/* Adds a line to the requests' heads; `Host` replaces the URL's. */
static bool parse_header(struct plan *plan, const char *text)
{
    const char *colon = strchr(text, ':');
    if (!colon || !mk__parse_is_token(mk_str(text, (size_t)(colon - text))) || strpbrk(text, "\r\n"))
        return false;
    if (mk_str_ieq(mk_str(text, (size_t)(colon - text)), MK_STR("host")))
        plan->form.host = mk_str_trim(mk_str_c(colon + 1));
    else
        mk_buf_addf(&plan->headers, "%s\r\n", text);
    return true;
}

static bool parse_method(struct plan *plan, const char *text)
{
    plan->form.method = mk_str_c(text);
    plan->to_head = strcmp(text, "HEAD") == 0;
    return mk__parse_is_token(plan->form.method);
}

/* ── the table of options ── */

enum kind { FLAG, TEXT, UNSIGNED, BIG, REAL, INT, INT64, CALL };

static const struct row {
    const char *name;
    char letter; /* 0: none */
    enum kind kind;
    size_t offset; /* in struct plan */
    double min, max;
    bool (*parse)(struct plan *plan, const char *text);
    const char *wanted;
} rows[] = {
    {"connections", 'c', UNSIGNED, offsetof(struct plan, connections), 1, 1000000, NULL, "a number from 1 to 1000000"},
    {"threads", 't', UNSIGNED, offsetof(struct plan, threads), 1, 256, NULL, "a number from 1 to 256"},
    {"requests", 'n', BIG, offsetof(struct plan, requests), 1, 1e15, NULL, "a number from 1 on"},
    {"duration", 'd', REAL, offsetof(struct plan, duration), 0.01, 1e6, NULL, "seconds, from 0.01 to 1000000"},
    {"warm-up", 0, REAL, offsetof(struct plan, warm_up), 0, 1e6, NULL, "seconds, from 0 to 1000000"},
    {"close", 0, FLAG, offsetof(struct plan, close), 0, 0, NULL, NULL},
    {"requests-per-connection", 0, BIG, offsetof(struct plan, per_connection), 1, 1e15, NULL, "a number from 1 on"},
    {"full-handshakes", 0, FLAG, offsetof(struct plan, full_handshakes), 0, 0, NULL, NULL},
    {"message", 0, UNSIGNED, offsetof(struct plan, message_bytes), 1, MESSAGE_BYTES_MAX, NULL,
     "a number of bytes from 1 to 16777216"},
    {"broadcast", 0, FLAG, offsetof(struct plan, broadcast), 0, 0, NULL, NULL},
    {"pipeline", 'p', UNSIGNED, offsetof(struct plan, pipeline), 1, 1024, NULL, "a number from 1 to 1024"},
    {"rate", 'r', REAL, offsetof(struct plan, rate), 0.001, 1e8, NULL, "requests a second, from 0.001 to 100000000"},
    {"paths", 0, TEXT, offsetof(struct plan, paths_file), 0, 0, NULL, NULL},
    {"pick", 0, CALL, 0, 0, 0, parse_pick, "sequence, uniform, zipf or zipf:S with S from 0 to 10"},
    {"seed", 0, BIG, offsetof(struct plan, seed), 0, 1e15, NULL, "a number from 0 on"},
    {"header", 'H', CALL, 0, 0, 0, parse_header, "a header line, 'Name: value'"},
    {"method", 0, CALL, 0, 0, 0, parse_method, "a method, such as GET, HEAD or POST"},
    {"body", 0, TEXT, offsetof(struct plan, body_file), 0, 0, NULL, NULL},
    {"status", 0, INT, offsetof(struct plan, form.status), 200, 599, NULL, "a status from 200 to 599"},
    {"length", 0, INT64, offsetof(struct plan, form.length), 0, 1e15, NULL, "a number of bytes"},
    {"sample", 0, UNSIGNED, offsetof(struct plan, sample), 1, 1e9, NULL, "a number from 1 on"},
    {"timeout", 0, REAL, offsetof(struct plan, timeout), 0.01, 1e6, NULL, "seconds, from 0.01 to 1000000"},
    {"ca", 0, TEXT, offsetof(struct plan, ca), 0, 0, NULL, NULL},
    {"insecure", 0, FLAG, offsetof(struct plan, insecure), 0, 0, NULL, NULL},
    {"hdr", 0, TEXT, offsetof(struct plan, hdr), 0, 0, NULL, NULL},
    {"progress", 0, FLAG, offsetof(struct plan, progress), 0, 0, NULL, NULL},
    {"help", 'h', FLAG, offsetof(struct plan, has_help), 0, 0, NULL, NULL},
    {"version", 0, FLAG, offsetof(struct plan, has_version), 0, 0, NULL, NULL},
};

enum { ROWS = MK_COUNT_OF(rows) };

/* Stores the value of an option. Returns whether it is one that the row accepts. */
static bool set_value(struct plan *plan, const struct row *row, const char *text)
{
    void *to = (char *)plan + row->offset;
    uint64_t count = 0;
    switch (row->kind) {
    case FLAG:
        *(bool *)to = true;
        return true;
    case TEXT:
        *(const char **)to = text;
        return true;
    case REAL:
        return parse_real(text, row->min, row->max, to);
    case CALL:
        return row->parse(plan, text);
    default:
        break;
    }
    if (!parse_count(text, row->min, row->max, &count))
        return false;
    if (row->kind == BIG || row->kind == INT64)
        memcpy(to, &count, sizeof(count));
    else
        *(unsigned *)to = (unsigned)count;
    return true;
}

static int parse_rows(struct plan *plan, int argc, char **argv)
{
    struct option longs[ROWS + 1] = {0};
    char letters[2 * ROWS + 2] = ":";
    size_t n = 1;
    for (int i = 0; i < ROWS; i++) {
        bool takes = rows[i].kind != FLAG;
        longs[i] = (struct option){rows[i].name, takes ? required_argument : no_argument, NULL, 256 + i};
        if (rows[i].letter)
            letters[n++] = rows[i].letter;
        if (rows[i].letter && takes)
            letters[n++] = ':';
    }
    letters[n] = '\0';
    optind = 0;
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        const struct row *row = c >= 256 ? &rows[c - 256] : NULL;
        if (c == ':')
            return report_mistake("%s needs a value; --help lists the options", argv[optind - 1]);
        for (int i = 0; i < ROWS && !row; i++)
            row = rows[i].letter == c ? &rows[i] : NULL;
        if (!row)
            return report_mistake("there is no option \"%s\"; --help lists the options", argv[optind - 1]);
        if (!set_value(plan, row, optarg))
            return report_mistake("--%s \"%s\" is not %s", row->name, optarg, row->wanted);
    }
    return 0;
}

/* ── what the options name ── */

static int check_messages(const struct plan *plan, int urls)
{
    bool is_http = plan->close || plan->paths_file || plan->body_file || plan->to_head || plan->form.status ||
                   plan->form.length >= 0;
    if (!plan->target.websocket)
        return plan->message_bytes || plan->broadcast ? report_mistake("--message and --broadcast are for ws:// URLs")
                                                      : 0;
    if (urls > 1 || is_http)
        return report_mistake("a ws:// URL is given alone, without options of HTTP requests");
    if (plan->broadcast && (plan->threads > 1 || plan->requests || plan->rate > 0))
        return report_mistake("--broadcast is given without -t, -n and -r");
    return 0;
}

static int check_rules(const struct plan *plan, int urls)
{
    if (!urls)
        return report_mistake("no URL is given; --help shows the usage");
    if (plan->threads > plan->connections)
        return report_mistake("%u threads need %u connections at least (-c), not %u", plan->threads, plan->threads,
                              plan->connections);
    if (plan->close && plan->pipeline > 1)
        return report_mistake("--close has one request on each connection: give it without --pipeline");
    if (plan->per_connection && (plan->close || plan->target.websocket))
        return report_mistake("--requests-per-connection is for connections that are kept, of HTTP requests");
    if ((plan->ca || plan->insecure || plan->full_handshakes) && !plan->target.tls)
        return report_mistake("--ca, --insecure and --full-handshakes are for https:// and wss:// URLs");
    if (plan->ca && plan->insecure)
        return report_mistake("--insecure checks no certificate: give it without --ca");
    return check_messages(plan, urls);
}

/* Raises the limit of descriptors where that is allowed. */
static int raise_descriptors(const struct plan *plan)
{
    struct rlimit limit;
    rlim_t wanted = plan->connections + DESCRIPTORS_EXTRA + 4 * plan->threads;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return 0;
    rlim_t had = limit.rlim_max;
    limit.rlim_cur = wanted;
    if (wanted > had || setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return report_mistake(
            "%u connections need %lu descriptors, and the limit is %lu: raise it (ulimit -n %lu), or give "
            "fewer connections",
            plan->connections, (unsigned long)wanted, (unsigned long)had, (unsigned long)wanted);
    return 0;
}

static int read_file(struct plan *plan, const char *path, struct mk_str *ret)
{
    struct mk_file_bytes bytes;
    int err = mk_file_read(path, BODY_BYTES_MAX, &plan->arena, &bytes);
    if (err < 0)
        return report_mistake("%s: %s", path, strerror(-err));
    *ret = mk_str(bytes.data, bytes.len);
    return 0;
}

static int add_paths(struct plan *plan, char **urls, int n)
{
    struct mk_str text = MK_STR_NONE;
    const char *error;
    unsigned line;
    for (int i = 0; i < n && !plan->paths_file; i++) {
        struct target target;
        struct mk_str path;
        if (target_parse(&target, urls[i], &path, &error) < 0)
            return report_mistake("%s: %s", urls[i], error);
        if (!target_equal(&target, &plan->target))
            return report_mistake("%s: all URLs name one server, and the first one names %s", urls[i],
                                  plan->target.authority);
        if (paths_add(&plan->paths, &plan->arena, &plan->form, path) < 0)
            return report_mistake("memory is exhausted");
    }
    if (!plan->paths_file)
        return 0;
    if (read_file(plan, plan->paths_file, &text) < 0)
        return -EINVAL;
    int err = paths_parse(&plan->paths, &plan->arena, &plan->form, text, &line, &error);
    if (err == -EINVAL)
        return report_mistake("%s:%u: %s", plan->paths_file, line, error);
    return err < 0 ? report_mistake("memory is exhausted") : 0;
}

/* The only path of ws://: its request is the message. */
static int prepare_message(struct plan *plan, struct mk_str path)
{
    struct picker random = {.random = plan->seed};
    if (paths_add(&plan->paths, &plan->arena, &plan->form, path) < 0 ||
        message_prepare(&plan->message, &plan->arena, plan->form.host, path, plan->form.headers, plan->message_bytes,
                        (uint32_t)picker_random(&random)) < 0)
        return report_mistake("memory is exhausted");
    plan->paths.list[0].request = plan->message.frame;
    return 0;
}

static int prepare_plan(struct plan *plan, char **urls, int n)
{
    struct mk_str path;
    const char *error;
    if (!n)
        return check_rules(plan, 0);
    if (target_parse(&plan->target, urls[0], &path, &error) < 0)
        return report_mistake("%s: %s", urls[0], error);
    if (plan->paths_file && (n > 1 || path.len != 1))
        return report_mistake("with --paths one URL names the server, without a path");
    if (check_rules(plan, n) < 0 || raise_descriptors(plan) < 0)
        return -EINVAL;
    if (plan->body_file && read_file(plan, plan->body_file, &plan->form.body) < 0)
        return -EINVAL;
    if (!plan->form.host.p)
        plan->form.host = mk_str_c(plan->target.authority);
    plan->form.headers = mk_buf_str(&plan->headers);
    plan->form.close = plan->close;
    if (!plan->message_bytes)
        plan->message_bytes = MESSAGE_BYTES_DEFAULT;
    if ((plan->target.websocket ? prepare_message(plan, path) : add_paths(plan, urls, n)) < 0)
        return -EINVAL;
    if (paths_prepare(&plan->paths, &plan->arena, plan->pick, plan->exponent) < 0)
        return report_mistake("memory is exhausted");
    if (target_resolve(&plan->target, &error) < 0)
        return report_mistake("%s: %s", plan->target.host, error);
    if (plan->target.tls && !(plan->tls = tls_open(plan->ca, plan->insecure, &error)))
        return report_mistake("%s: %s", plan->ca ? plan->ca : "TLS", error);
    return 0;
}

int options_parse(struct plan *plan, int argc, char **argv)
{
    *plan = (struct plan){.connections = 1, .threads = 1, .pipeline = 1, .sample = 1000, .timeout = 30, .seed = 1};
    plan->argc = argc;
    plan->argv = argv;
    plan->form = (struct request_form){.method = MK_STR("GET"), .length = -1};
    mk_buf_init(&plan->headers, 1 << 20);
    mk_arena_init(&plan->arena, NULL, SIZE_MAX, NULL, 0);
    if (parse_rows(plan, argc, argv) < 0)
        return -EINVAL;
    if (plan->has_help || plan->has_version)
        return 0;
    if (plan->duration == 0 && plan->requests == 0)
        plan->duration = 10;
    return prepare_plan(plan, argv + optind, argc - optind);
}

void options_release(struct plan *plan)
{
    if (plan->tls)
        tls_close(plan->tls);
    mk_buf_release(&plan->headers);
    mk_arena_release(&plan->arena);
}
