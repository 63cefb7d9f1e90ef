// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [CGI].
 */
#include "cgi.h"

#include <monkey/kit/encoded_slash.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── Interpreter ── */

static bool is_extension(struct mk_str s)
{
    return s.len > 1 && s.p[0] == '.' && !memchr(s.p, '/', s.len);
}

static bool has_extension(const struct cgi_interpreters *all, struct mk_str extension)
{
    const struct cgi_interpreter *i = all->first;
    while (i && !mk_str_eq(i->extension, extension))
        i = i->next;
    return i != NULL;
}

/* Joins the path of a program and the arguments after it, each with a NUL. Returns 0 or -ENOMEM. */
static int join_args(const struct mk_conf_value *value, struct cgi_interpreter *i, struct mk_arena *arena)
{
    size_t bytes = i->path.len + 1;
    for (uint32_t n = 2; n < value->n; n++)
        bytes += value->words[n].len + 1;
    char *to = mk_arena_zalloc(arena, bytes), *at = to;
    if (!to)
        return -ENOMEM;
    memcpy(at, i->path.p, i->path.len);
    at += i->path.len + 1;
    for (uint32_t n = 2; n < value->n; n++) {
        memcpy(at, value->words[n].p, value->words[n].len);
        at += value->words[n].len + 1;
    }
    i->args = mk_str(to, bytes);
    return 0;
}

static int parse_interpreter(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                             struct mk_buf *error)
{
    struct cgi_interpreters *all = field;
    if (value->n < 2 || value->n > 2 + CGI_INTERPRETER_ARGS_MAX || !is_extension(value->words[0]))
        return mk_conf_fail(error,
                            "it takes an extension, a program and perhaps arguments, such as .py /usr/bin/python3");
    if (value->words[1].p[0] != '/')
        return mk_conf_fail(error, "the program is an absolute path, such as /usr/bin/python3");
    if (has_extension(all, value->words[0]))
        return mk_conf_fail(error, "a line before this one has the same extension");
    struct cgi_interpreter *i = mk_arena_zalloc(arena, sizeof(*i));
    if (!i)
        return -ENOMEM;
    i->extension = mk_arena_dup(arena, value->words[0]);
    i->path = mk_arena_dup(arena, value->words[1]);
    if (!i->extension.p || !i->path.p)
        return -ENOMEM;
    if (!all->last)
        all->last = &all->first;
    *all->last = i;
    all->last = &i->next;
    return join_args(value, i, arena);
}

const struct cgi_interpreter *cgi_conf_find_interpreter(const struct cgi_conf *conf, struct mk_str file)
{
    for (const struct cgi_interpreter *i = conf->interpreters.first; i; i = i->next)
        if (file.len > i->extension.len &&
            memcmp(file.p + file.len - i->extension.len, i->extension.p, i->extension.len) == 0)
            return i;
    return NULL;
}

/* ── the section ── */

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct cgi_conf, match, "Match", NULL,
                        "Whose requests are answered by scripts: a path with everything below it, such as `/cgi-bin`, "
                        "a glob such as `*.cgi`, or a regular expression such as `~\\.py(/|$)`. No file that it names "
                        "is sent as a file.",
                        .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_PATH(struct cgi_conf, root, "Root", NULL,
                     "The folder of the scripts, which replaces the path of `Match`: with `Match /cgi`, `/cgi/a` is "
                     "`a` in this folder. Without it scripts are below DocumentRoot, as files are."),
    MK_CONF_KEY_PATH(struct cgi_conf, script, "Script", NULL,
                     "The one script for all paths of `Match`, whose rest is its `PATH_INFO`: `Match /git` and `Script "
                     "/usr/lib/git-core/git-http-backend`."),
    MK_CONF_KEY_CUSTOM(struct cgi_conf, interpreters, "Interpreter", NULL,
                       "The program that runs scripts with this extension, and its arguments: `.py "
                       "/usr/bin/python3`. A script without one is executed itself. May be repeated.",
                       .flags = MK_CONF_REPEAT, .unit = "extension program argument ...", .parse = parse_interpreter),
    MK_CONF_KEY_INT(struct cgi_conf, processes_max, "MaxProcesses", "32",
                    "How many scripts of this section run at the same time, in all workers together.", .min = 1,
                    .max = MK_CHILD_RUNNING_MAX / 4),
    MK_CONF_KEY_INT(struct cgi_conf, queue_max, "Queue", "128",
                    "How many further requests wait for one of them to end; more are answered with 503.", .min = 0,
                    .max = 100000),
    MK_CONF_KEY_DURATION(struct cgi_conf, queue_timeout_ms, "QueueTimeout", "5s",
                         "How long a request waits there; then 503.", .min = 1, .max = 3600000, .unit = "s"),
    MK_CONF_KEY_DURATION(struct cgi_conf, timeout_ms, "Timeout", "60s",
                         "How long a script may neither write output nor read input. Then it and all processes that "
                         "it has started are ended by SIGTERM, and 2 seconds later by SIGKILL; the response is 504, or "
                         "is cut if it has begun.",
                         .min = 1, .max = 86400000, .unit = "s"),
    MK_CONF_KEY_CUSTOM(struct cgi_conf, limits, "Limits", NULL,
                       "What a script may use: `memory=256M cpu=30s files=64 processes=32`, or some of these. "
                       "`processes` counts all processes and threads of the server's user, the server included.",
                       .unit = "name=value ...", .parse = mk_child_parse_limits),
    MK_CONF_KEY_CUSTOM(struct cgi_conf, env, "Env", NULL,
                       "Sets a variable for scripts: a name, and a value that may have variables of the request, as "
                       "in the formats of the plugin logger: `Env PROJECT $host`. It replaces one of the server's. "
                       "May be repeated.",
                       .flags = MK_CONF_REPEAT, .unit = "name value", .parse = mk_cgi_parse_extra),
    MK_CONF_KEY_BOOL(struct cgi_conf, authorization, "Authorization", "Off",
                     "Whether scripts get the header `Authorization`, which may have a password, as "
                     "`HTTP_AUTHORIZATION`."),
    MK_ENCODED_SLASH_KEY(struct cgi_conf, encoded_slash),
    MK_CONF_KEY_BOOL(struct cgi_conf, local_redirect, "LocalRedirect", "Off",
                     "Whether a path in the `Location` of a script is followed by the server itself, five times at "
                     "most. With `Off` the client is redirected."),
    MK_CONF_KEY_BOOL(struct cgi_conf, user_dirs, "UserScripts", "Off",
                     "Whether scripts in the folders of users (`UserDir`) run: those of all users run as the user of "
                     "the server. With `Off` such a path is 404."),
    MK_CONF_KEY_CUSTOM(struct cgi_conf, buffer, "BufferResponse", "256K 64M",
                       "How much of a response is kept for a client that does not take it, so that it does not hold "
                       "the script: so many bytes in memory, and then so many in a file (see `[SPOOL]`). `Off`: 128K "
                       "in memory.",
                       .unit = "size size, or Off", .parse = mk_gateway_parse_buffer),
    MK_CONF_KEY_CUSTOM(struct cgi_conf, spool_request_bytes, "SpoolRequest", "On",
                       "Whether the body of a request is received as a whole before the script starts, in memory and "
                       "then in a file (see `[SPOOL]`), so that a slow client does not hold it: `On`, or the length up "
                       "to which bodies are accepted. With `Off` the script reads it as it comes; a body whose length "
                       "is not known is received first in any case.",
                       .unit = "Off, On or size", .parse = mk_gateway_parse_spool),
    MK_CONF_KEY_SIZE(struct cgi_conf, head_bytes_max, "MaxResponseHead", "32K",
                     "How long the head of a response may be; a longer one is 502.", .min = 1024,
                     .max = MK_GATEWAY_HEAD_BYTES_MAX),
    {0},
};

static const struct mk_conf_foreign foreign[] = {
    {"ScriptAlias", "write \"Match /cgi-bin\" and \"Root /folder\""},
    {"AddHandler", "write \"Match *.cgi\" or \"Interpreter .py /usr/bin/python3\""},
    {"Env[]", "write \"Env NAME value\""},
    {0},
};

static void check_section(const struct mk_conf_check *check, void *section)
{
    struct cgi_conf *conf = section;
    conf->head_limits = (struct mk_response_limits){(uint16_t)conf->head_bytes_max, CGI_FIELDS_MAX, {0}};
    size_t key = conf->script.len ? offsetof(struct cgi_conf, script) : offsetof(struct cgi_conf, root);
    if (conf->root.len && conf->script.len)
        mk_conf_error(check, key, "a section has Root or Script, not both");
    else if ((conf->root.len || conf->script.len) && conf->match.text.p && conf->match.kind != MK_PATTERN_PREFIX &&
             !mk_conf_is_wrong(check, offsetof(struct cgi_conf, match)))
        mk_conf_error(check, key, "%s replaces the path of Match, which must be a path, such as /cgi-bin",
                      conf->script.len ? "Script" : "Root");
}

const struct mk_conf_section cgi_sections[] = {
    {.name = "CGI",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
     .size = sizeof(struct cgi_conf),
     .keys = keys,
     .foreign = foreign,
     .check = check_section,
     .doc = MK_CONF_DOC("Scripts that the server runs for requests (RFC 3875). The first section whose `Match` fits "
                        "the path is used.")},
    {0},
};

/* ── files ── */

/* A root that cannot be used. Returns 0 or -EINVAL. */
static int check_root(struct mk_host *host, const struct cgi_conf *conf)
{
    struct stat st, top;
    if (!conf->root.len)
        return 0;
    int err = stat(conf->root.p, &st) < 0 || stat("/", &top) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    bool is_top = !err && st.st_dev == top.st_dev && st.st_ino == top.st_ino;
    if (err)
        mk_host_error(host, conf, offsetof(struct cgi_conf, root), 0, "cannot use the folder %s: %s", conf->root.p,
                      strerror(err));
    else if (is_top)
        mk_host_error(host, conf, offsetof(struct cgi_conf, root), 0,
                      "every file of the machine would be a script: name the folder that has them");
    return err || is_top ? -EINVAL : 0;
}

/* A file that is to be executed. Returns 0 or -EINVAL. */
static int check_program(struct mk_host *host, const struct cgi_conf *conf, size_t key, unsigned nth, const char *path)
{
    struct stat st;
    const char *problem = stat(path, &st) < 0    ? strerror(errno)
                          : S_ISDIR(st.st_mode)  ? "it is a folder"
                          : !S_ISREG(st.st_mode) ? "it is no file"
                          : !(st.st_mode & 0111) ? "it is not executable"
                                                 : NULL;
    if (problem)
        mk_host_error(host, conf, key, nth, "%s is no program that can be run: %s", path, problem);
    return problem ? -EINVAL : 0;
}

int cgi_conf_check_files(struct mk_host *host, const struct cgi_conf *conf)
{
    int result = check_root(host, conf);
    unsigned nth = 0;
    if (conf->script.len && !cgi_conf_find_interpreter(conf, conf->script) &&
        check_program(host, conf, offsetof(struct cgi_conf, script), 0, conf->script.p) < 0)
        result = -EINVAL;
    for (const struct cgi_interpreter *i = conf->interpreters.first; i; i = i->next, nth++)
        if (check_program(host, conf, offsetof(struct cgi_conf, interpreters), nth, i->path.p) < 0)
            result = -EINVAL;
    return result;
}
