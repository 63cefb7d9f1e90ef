// SPDX-License-Identifier: Apache-2.0
#include "fastcgi.h"

#include <monkey/base/random.h>
#include <monkey/base/siphash.h>
#include <monkey/kit/encoded_slash.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── Spawn ── */

enum { PATH_BYTES = 4096 };

static bool is_program(const char *path)
{
    struct stat st;
    return path[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Finds a program, by its path or in the usual folders. Returns NULL if there is none. */
static const char *find_program(struct mk_str name, struct mk_arena *arena)
{
    static const char *const folders[] = {"/usr/local/bin/", "/usr/bin/", "/bin/", "/usr/sbin/"};
    char path[PATH_BYTES];
    bool is_path = memchr(name.p, '/', name.len);
    for (size_t i = 0; i < (is_path ? 1 : MK_COUNT_OF(folders)); i++) {
        int n = snprintf(path, sizeof(path), "%s%.*s", is_path ? "" : folders[i], MK_STR_ARG(name));
        if (n < (int)sizeof(path) && is_program(path))
            return mk_arena_dup(arena, mk_str(path, (size_t)n)).p;
    }
    return NULL;
}

static int set_args(struct spawn_conf *conf, const struct mk_conf_value *value, struct mk_arena *arena)
{
    size_t len = 0;
    for (uint32_t i = 0; i < value->n; i++)
        len += value->words[i].len + 1;
    char *to = mk_arena_alloc(arena, len);
    if (!to)
        return -ENOMEM;
    conf->args = mk_str(to, len);
    for (uint32_t i = 0; i < value->n; i++) {
        memcpy(to, value->words[i].p, value->words[i].len);
        to += value->words[i].len;
        *to++ = '\0';
    }
    return 0;
}

/* Hashes with a key of the process, so that no other user can make the folder before, nor a former process has. */
static uint64_t hash_text(struct mk_str text)
{
    static uint64_t key[2]; /* configurations are loaded by one thread at a time */
    if (!key[0] && !key[1])
        mk_random(key, sizeof(key));
    return mk_siphash(key, text.p, text.len);
}

/* The same line has the same socket in this process, also in another generation. */
static int set_socket(struct spawn_conf *conf, struct mk_arena *arena, struct mk_buf *error)
{
    const char *runtime = getenv("RUNTIME_DIRECTORY"); /* of systemd, where the user of the server may write */
    char text[PATH_BYTES];
    int n = snprintf(text, sizeof(text), "unix:%s/" SPAWN_SOCKET_PREFIX "%d-%016" PRIx64 SPAWN_SOCKET_NAME,
                     runtime && runtime[0] == '/' && !strchr(runtime, ':') ? runtime : "/tmp", (int)getpid(),
                     hash_text(conf->args));
    struct mk_str target = mk_arena_dup(arena, mk_str(text, (size_t)n));
    if (!target.p)
        return -ENOMEM;
    int err = mk_target_parse_address(&conf->target, target, "server", arena, error);
    if (err < 0)
        return err;
    struct mk_str path = conf->target.dial->host;
    conf->folder = mk_arena_dup(arena, mk_str(path.p, path.len - strlen(SPAWN_SOCKET_NAME))).p;
    return conf->folder ? 0 : -ENOMEM;
}

int spawn_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct spawn_conf *conf = field;
    if (value->n < 1)
        return mk_conf_fail(error, "it takes a program and its arguments, such as php-cgi");
    struct mk_str name = value->words[0];
    conf->program = find_program(name, arena);
    if (!conf->program) {
        mk_buf_addf(error, "there is no program \"%.*s\" that can be executed", MK_STR_ARG(name));
        return -EINVAL;
    }
    int err = set_args(conf, value, arena);
    if (err == 0)
        err = set_socket(conf, arena, error);
    conf->text = mk_arena_dup(arena, value->text);
    return err == 0 && !conf->text.p ? -ENOMEM : err;
}

/* ── [FASTCGI] and [SCGI] ── */

/* ── To ── */

static int parse_to(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = mk_arena_dup(arena, value->text);
    if (!text.p)
        return -ENOMEM;
    if (value->n != 1)
        return mk_conf_fail(error, "it takes one server: unix:/PATH, HOST:PORT or the name of a group");
    if (memmem(text.p, text.len, "://", 3))
        return mk_conf_fail(error,
                            "it takes unix:/PATH, HOST:PORT or the name of a group, and no URL; HTTP is for [PROXY]");
    return mk_target_parse_address(field, text, "server", arena, error);
}

/* ── Split ── */

/* A dot, and letters, digits, dashes and underscores. */
static bool is_extension(struct mk_str s)
{
    return mk_str_starts(s, MK_STR(".")) && mk_str_is_name(mk_str_after(s, 1), "-_");
}

static int parse_split(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    if (mk_conf_is_off(value))
        return 0;
    for (uint32_t i = 0; i < value->n; i++)
        if (!is_extension(value->words[i]))
            return mk_conf_fail(error, "it takes extensions with their dots, such as .php, or Off");
    return mk_conf_add_words(value, 0, field, arena);
}

/* ── Index ── */

static int parse_index(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *name = field;
    if (mk_conf_is_off(value))
        return 0;
    if (value->n != 1 || memchr(value->text.p, '/', value->text.len) || value->text.p[0] == '.')
        return mk_conf_fail(error, "it takes the name of a script, without a folder, or Off");
    *name = mk_arena_dup(arena, value->text);
    return name->p ? 0 : -ENOMEM;
}

/* ── TryFiles ── */

static int parse_status(struct fastcgi_try *try, struct mk_str word, struct mk_buf *error)
{
    uint64_t status;
    if (!mk_str_u64(mk_str_after(word, 1), 599, &status) || status < 400)
        return mk_conf_fail(error, "a status is one from 400 to 599, such as =404");
    *try = (struct fastcgi_try){.kind = FASTCGI_TRY_STATUS, .status = (int)status};
    return 0;
}

/* Tells whether a path has a segment that no normalized one has: "." or "..". */
static bool has_dot_segment(struct mk_str path)
{
    while (path.len)
        if (mk_str_is_dots(mk_str_split(&path, '/')))
            return true;
    return false;
}

static int parse_name(struct fastcgi_try *try, struct mk_str word, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str path = MK_STR("$path");
    bool has_path = mk_str_starts(word, path);
    struct mk_str rest = has_path ? mk_str(word.p + path.len, word.len - path.len) : word;
    if (memchr(rest.p, '$', rest.len) || (!has_path && rest.p[0] != '/'))
        return mk_conf_fail(error,
                            "each entry is $path, $path/, a script such as /index.php or $path/index.php, or =STATUS");
    if (has_dot_segment(rest))
        return mk_conf_fail(error, "no entry has a segment . or ..");
    *try = (struct fastcgi_try){.kind = FASTCGI_TRY_SCRIPT, .has_path = has_path, .text = mk_arena_dup(arena, rest)};
    if (has_path && !rest.len)
        try->kind = FASTCGI_TRY_FILE;
    if (has_path && mk_str_eq(rest, MK_STR("/")))
        try->kind = FASTCGI_TRY_FOLDER;
    return try->text.p ? 0 : -ENOMEM;
}

static int parse_tries(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct fastcgi_tries *tries = field;
    if (value->n > FASTCGI_TRIES_MAX)
        return mk_conf_fail(error, "there are more than 16 entries");
    for (; tries->n < value->n; tries->n++) {
        struct mk_str word = value->words[tries->n];
        struct fastcgi_try *try = &tries->items[tries->n];
        bool is_status = word.len && word.p[0] == '=';
        if (is_status && tries->n + 1 < value->n)
            return mk_conf_fail(error, "a status is the last entry");
        int err = !word.len   ? mk_conf_fail(error, "an entry is empty")
                  : is_status ? parse_status(try, word, error)
                              : parse_name(try, word, arena, error);
        if (err < 0)
            return err;
    }
    return 0;
}

/* ── the sections ── */

#define DEFAULT_INDEX "index.php"

#define KEYS(split_default, index_default) \
    MK_CONF_KEY_PATTERN(struct fastcgi_conf, gateway.match, "Match", "/", \
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.php`, or a " \
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."), \
        MK_CONF_KEY_CUSTOM(struct fastcgi_conf, gateway.to, "To", NULL, \
                           "The server: `unix:/run/php/php-fpm.sock`, `127.0.0.1:9000` or the name of a group of " \
                           "`[UPSTREAM]`.", \
                           .unit = "address", .parse = parse_to), \
        MK_CONF_KEY_CUSTOM(struct fastcgi_conf, split, "Split", split_default, \
                           "The extensions of scripts. The first segment of a path that ends with one is the script, " \
                           "which must be a file below the document root, and what follows is its PATH_INFO; other " \
                           "paths are no scripts. Compares bytes, also their case. `Off`: all paths of the section " \
                           "are passed on, with the prefix of `Match` as SCRIPT_NAME.", \
                           .unit = "extension ...", .parse = parse_split), \
        MK_CONF_KEY_CUSTOM(struct fastcgi_conf, index, "Index", index_default, \
                           "The script of a folder, for paths that end with a slash; or `Off`.", .unit = "name", \
                           .parse = parse_index), \
        MK_CONF_KEY_CUSTOM( \
            struct fastcgi_conf, tries, "TryFiles", NULL, \
            "What a path means, in this order: `$path` (a file of this name is sent, a script is " \
            "run), `$path/` (a folder), a script such as `$path/index.php` or `/index.php`, and as the " \
            "last one a status such as `=404`. If it is not set, the path is a script, or the `Index` " \
            "of a folder; files are sent.", \
            .unit = "name ...", .parse = parse_tries), \
        MK_CONF_KEY_STRING(struct fastcgi_conf, remote_root, "RemoteRoot", NULL, \
                           "The folder of the scripts where the FastCGI or SCGI server sees it, such as in a " \
                           "container. Scripts are not looked for in the document root then: that server must check " \
                           "that they exist, and that `cgi.fix_pathinfo` of PHP is 0."), \
        MK_CONF_KEY_CUSTOM(struct fastcgi_conf, params, "Params", NULL, \
                           "Sets a variable, in place of one with the same name: `Params APP_ENV production`. The " \
                           "value may have the variables of a request that the plugin logger knows.", \
                           .flags = MK_CONF_REPEAT | MK_CONF_SERVES, .unit = "name value", \
                           .parse = mk_cgi_parse_extra), \
        MK_CONF_KEY_BOOL(struct fastcgi_conf, pass_authorization, "PassAuthorization", "Off", \
                         "Whether the application gets the header Authorization, as HTTP_AUTHORIZATION, for logins " \
                         "of its own."), \
        MK_ENCODED_SLASH_KEY(struct fastcgi_conf, encoded_slash), \
        MK_GATEWAY_KEYS_BODIES(struct fastcgi_conf, gateway, "On")

static const struct mk_conf_key fastcgi_keys[] = {
    KEYS(".php", DEFAULT_INDEX),
    MK_CONF_KEY_CUSTOM(struct fastcgi_conf, spawn, "Spawn", NULL,
                       "In place of `To`: a FastCGI program that the server starts, such as `php-cgi`, with its "
                       "arguments. Its processes run as the server's user and accept connections at one socket. One "
                       "that ends is started again.",
                       .unit = "program argument ...", .parse = spawn_parse),
    MK_CONF_KEY_INT(struct fastcgi_conf, children, "Children", NULL, "How many processes of `Spawn` run.", .min = 1,
                    .max = SPAWN_CHILDREN_MAX),
    MK_GATEWAY_KEYS_CONNECTIONS(struct fastcgi_conf, gateway, "Queue"),
    MK_GATEWAY_KEYS_RESPONSES(struct fastcgi_conf, gateway),
    {0},
};

/* A connection carries one request. */
static const struct mk_conf_foreign scgi_foreign[] = {
    {"KeepAlive", "leave it out: a connection of SCGI carries one request"},
    {"KeepAliveTimeout", "leave it out: a connection of SCGI carries one request"},
    {0},
};

static const struct mk_conf_key scgi_keys[] = {
    KEYS(NULL, NULL),
    MK_GATEWAY_KEYS_RESPONSES(struct fastcgi_conf, gateway),
    {0},
};

/* Tells whether Split finds the entry of TryFiles, as a whole. */
static bool is_script(const struct fastcgi_conf *c, const struct fastcgi_try *try)
{
    struct mk_str script, info;
    MK_BUF_ON_STACK(path, 256);
    mk_buf_addf(&path, "%s%.*s", try->has_path ? "/x" : "", MK_STR_ARG(try->text));
    return mk_cgi_split(mk_buf_str(&path), &c->split, &script, &info) && !info.len;
}

static void check_tries(const struct mk_conf_check *check, const struct fastcgi_conf *c)
{
    size_t key = offsetof(struct fastcgi_conf, tries);
    if (c->tries.n && !c->split.n) {
        mk_conf_error(check, key, "with Split Off all paths are passed on, so that no file can be tried");
        return;
    }
    for (uint32_t i = 0; i < c->tries.n; i++)
        if (c->tries.items[i].kind == FASTCGI_TRY_SCRIPT && !is_script(c, &c->tries.items[i])) {
            mk_conf_error(check, key, "\"%s%.*s\" is no script: Split has no such extension",
                          c->tries.items[i].has_path ? "$path" : "", MK_STR_ARG(c->tries.items[i].text));
            return;
        }
}

/* That of the default is not reported: another Split leaves it without effect. */
static void check_index(const struct mk_conf_check *check, const struct fastcgi_conf *c)
{
    const struct fastcgi_try index = {.has_path = true, .text = c->index};
    size_t key = offsetof(struct fastcgi_conf, index);
    if (!c->index.len || mk_str_eq(c->index, MK_STR(DEFAULT_INDEX)) || mk_conf_is_wrong(check, key))
        return;
    if (!is_script(c, &index))
        mk_conf_error(check, key, "\"%.*s\" is no script: Split has no such extension", MK_STR_ARG(c->index));
}

/* The socket of Spawn is the backend. */
static void check_backend(const struct mk_conf_check *check, struct fastcgi_conf *c)
{
    size_t to = offsetof(struct fastcgi_conf, gateway.to), spawn = offsetof(struct fastcgi_conf, spawn);
    bool is_wrong = mk_conf_is_wrong(check, to) || mk_conf_is_wrong(check, spawn);
    if (c->gateway.to.text.len && c->spawn.text.len)
        mk_conf_error(check, spawn, "To names a server already: one of both is enough");
    else if (!c->gateway.to.text.len && !c->spawn.text.len && !is_wrong)
        mk_conf_error(check, to, "To is missing: it names the server that runs the scripts");
    if (c->spawn.text.len && !c->children && !mk_conf_is_wrong(check, offsetof(struct fastcgi_conf, children)))
        mk_conf_error(check, spawn, "Children is missing: it says how many processes run");
    if (c->children && !c->spawn.text.len && !is_wrong)
        mk_conf_error(check, offsetof(struct fastcgi_conf, children), "there is no Spawn whose processes it counts");
    c->gateway.is_spawned = c->spawn.text.len > 0;
    if (c->gateway.is_spawned)
        c->gateway.to = c->spawn.target;
}

static void check_section(const struct mk_conf_check *check, void *section)
{
    struct fastcgi_conf *c = section;
    if (!mk_conf_is_wrong(check, offsetof(struct fastcgi_conf, split)) &&
        !mk_conf_is_wrong(check, offsetof(struct fastcgi_conf, tries)))
        check_tries(check, c);
    if (!mk_conf_is_wrong(check, offsetof(struct fastcgi_conf, split)))
        check_index(check, c);
    if (c->remote_root.len && c->remote_root.p[0] != '/')
        mk_conf_error(check, offsetof(struct fastcgi_conf, remote_root), "it takes an absolute path");
    check_backend(check, c);
    c->remote_root = mk_str_strip_end(c->remote_root, "/");
    mk_gateway_conf_finish(&c->gateway);
}

static const struct mk_conf_short_form short_form = {
    .name = "PHP",
    .key = "To",
    .doc = MK_CONF_DOC("Passes requests for PHP scripts to php-fpm, and serves all other files: "
                       "`PHP unix:/run/php/php-fpm.sock`."),
};

const struct mk_conf_section fastcgi_sections[] = {
    [FASTCGI_SECTION] = {.name = "FASTCGI",
                         .scope = MK_CONF_SCOPE_HOST,
                         .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
                         .size = sizeof(struct fastcgi_conf),
                         .keys = fastcgi_keys,
                         .short_form = &short_form,
                         .check = check_section,
                         .doc = MK_CONF_DOC("Passes requests to a FastCGI server, such as php-fpm. The first section "
                                            "that matches a path is used, as a whole.")},
    [SCGI_SECTION] = {.name = "SCGI",
                      .scope = MK_CONF_SCOPE_HOST,
                      .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
                      .size = sizeof(struct fastcgi_conf),
                      .keys = scgi_keys,
                      .foreign = scgi_foreign,
                      .check = check_section,
                      .doc = MK_CONF_DOC("Passes requests to an SCGI server. The first section that matches a path is "
                                         "used, as a whole; sections [FASTCGI] come first.")},
    {0},
};
