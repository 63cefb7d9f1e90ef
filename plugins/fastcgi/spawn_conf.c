// SPDX-License-Identifier: Apache-2.0
/*
 * The directive Spawn (spawn.h): the program, and the path of the socket that its processes get.
 */
#include "spawn.h"

#include "spawn_socket.h"

#include <monkey/base/random.h>
#include <monkey/base/siphash.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
