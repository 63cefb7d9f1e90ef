// SPDX-License-Identifier: Apache-2.0
/*
 * The object `fconf`: reads files for conf_file.c, and returns values as services want them.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "common/mem.h"
#include "log/message.h"
#include "objects.h"
#include "service/conf_file.h"
#include "service/folder.h"
#include "service/service.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 << 20, READ_BYTES = 16384, ARENA_BYTES_MAX = 64 << 20 };

struct duda_config {
    struct mk_arena arena;
    struct duda_config_section *first;
};

/* ── files ── */

/* Reads up to the end, with a NUL. Returns the bytes, which free() frees, or NULL with errno. */
static char *read_all(int fd, size_t size, size_t bytes_max, size_t *ret_len)
{
    char *text = mem_alloc(size);
    size_t len = 0;
    while (text) {
        ssize_t n = read(fd, text + len, size - len - 1);
        len += n > 0 ? (size_t)n : 0;
        if (n == 0)
            break;
        if (n > 0 && len > bytes_max)
            errno = EFBIG;
        char *larger = n < 0 || len > bytes_max ? NULL : size - len > 1 ? text : mem_realloc(text, size *= 2);
        if (!larger)
            mem_free(text);
        text = larger;
    }
    if (text)
        text[len] = 0;
    *ret_len = len;
    return text;
}

static char *open_and_read(const char *path, size_t bytes_max, size_t *ret_len)
{
    struct stat st;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        text = NULL;
    else if (!S_ISREG(st.st_mode))
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    else if ((uint64_t)st.st_size > bytes_max)
        errno = EFBIG;
    else
        text = read_all(fd, (size_t)st.st_size + READ_BYTES, bytes_max, ret_len);
    int err = errno;
    if (fd >= 0)
        close(fd);
    if (!text)
        message_log(MK_LOG_ERROR, "%s: %s", path, strerror(err));
    return text;
}

static char *read_file(const char *path)
{
    size_t len;
    if (!phase_check(PHASE_ANY, "fconf->read_file()") || !path)
        return NULL;
    return open_and_read(path, FILE_BYTES_MAX, &len);
}

/* ── configurations ── */

static void free_conf(struct duda_config *conf)
{
    if (!conf)
        return;
    mk_arena_release(&conf->arena);
    heap_free(conf, sizeof(*conf));
}

static int parse_text(struct duda_config *conf, const char *path, struct mk_str text)
{
    MK_BUF_ON_STACK(error, 256);
    int err = conf_file_parse(text, &conf->arena, &conf->first, &error);
    if (err == -ENOMEM)
        message_log(MK_LOG_ERROR, "%s: %s", path, strerror(ENOMEM));
    else if (err < 0)
        message_log(MK_LOG_ERROR, "%s:%s", path, mk_buf_cstr(&error));
    return err;
}

static struct duda_config *read_conf(const char *file)
{
    static const char call[] = "fconf->read_conf()";
    struct duda_config *conf = phase_check(PHASE_ANY, call) ? heap_zalloc(sizeof(*conf)) : NULL;
    if (!conf)
        return NULL;
    mk_arena_init(&conf->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    char *path = folder_join(&conf->arena, folder_get(current.service, FOLDER_CONF), file, call);
    size_t len = 0;
    char *text = path ? open_and_read(path, CONF_FILE_BYTES_MAX, &len) : NULL;
    int err = text ? parse_text(conf, path, mk_str(text, len)) : -1;
    mem_free(text);
    if (err == 0)
        return conf;
    free_conf(conf);
    return NULL;
}

static struct duda_config_section *get_section(struct duda_config *conf, const char *name)
{
    return conf && name ? conf_file_find(conf->first, mk_str_c(name)) : NULL;
}

/* ── values ── */

static const struct conf_key *find_key(const struct duda_config_section *section, const char *key)
{
    return section && key ? conf_file_find_key(section, mk_str_c(key)) : NULL;
}

static const char *get_string(struct duda_config_section *section, const char *key, const char *fallback)
{
    const struct conf_key *found = find_key(section, key);
    return found ? found->value.p : fallback;
}

static void report_type(const struct conf_key *key, const char *wanted)
{
    message_log(MK_LOG_WARN, "the value \"%s\" of the key %s is not %s; its default is used", key->value.p, key->name.p,
                wanted);
}

static long get_number(struct duda_config_section *section, const char *key, long fallback)
{
    const struct conf_key *found = find_key(section, key);
    long number = fallback;
    if (found && !conf_file_get_number(found->value, &number))
        report_type(found, "a number");
    return number;
}

static bool get_bool(struct duda_config_section *section, const char *key, bool fallback)
{
    const struct conf_key *found = find_key(section, key);
    bool value = fallback;
    if (found && !conf_file_get_bool(found->value, &value))
        report_type(found, "on or off");
    return value;
}

static const char *const *get_list(struct duda_config_section *section, const char *key)
{
    const struct conf_key *found = find_key(section, key);
    if (!found)
        return NULL;
    struct mk_str rest = found->value, word;
    const char **words = NULL;
    uint32_t n = 0;
    while ((word = mk_str_next_word(&rest)).len) {
        words = mk_arena_grow(section->arena, words, n, sizeof(*words));
        if (!words || !(words[n++] = mk_arena_dup(section->arena, word).p))
            return NULL;
    }
    words = mk_arena_grow(section->arena, words, n, sizeof(*words));
    if (words)
        words[n] = NULL;
    return words;
}

/* ── section_key() of the original API ── */

/* As struct duda_string_line of the original API. */
struct string_line {
    char *val;
    int len;
    struct mk_list node;
};

static void *copy_string(struct duda_config_section *section, const struct conf_key *key)
{
    (void)section;
    return mem_dup(key->value);
}

static void *copy_number(struct duda_config_section *section, const struct conf_key *key)
{
    long number = 0;
    (void)section;
    conf_file_get_number(key->value, &number);
    return (void *)(intptr_t)number;
}

static void *copy_bool(struct duda_config_section *section, const struct conf_key *key)
{
    bool value = false;
    (void)section;
    conf_file_get_bool(key->value, &value);
    return (void *)(intptr_t)value;
}

/* Services of the original API free the configuration before they use its lists. */
static void *copy_list(struct duda_config_section *section, const struct conf_key *key)
{
    struct mk_arena *arena = phase_now() == PHASE_MAIN ? &current.service->arena : section->arena;
    struct mk_str rest = key->value, word;
    struct mk_list *list = mk_arena_alloc(arena, sizeof(*list));
    if (!list)
        return NULL;
    mk_list_init(list);
    while ((word = mk_str_next_word(&rest)).len) {
        struct string_line *line = mk_arena_alloc(arena, sizeof(*line));
        struct mk_str copy = line ? mk_arena_dup(arena, word) : MK_STR_NONE;
        if (!copy.p)
            return NULL;
        *line = (struct string_line){.val = (char *)(uintptr_t)copy.p, .len = (int)copy.len};
        mk_list_add(list, &line->node);
    }
    return list;
}

static void *get_key(struct duda_config_section *section, const char *key, int type)
{
    static void *(*const copies[])(struct duda_config_section *, const struct conf_key *) = {
        [DUDA_CONFIG_STR] = copy_string,
        [DUDA_CONFIG_NUM] = copy_number,
        [DUDA_CONFIG_BOOL] = copy_bool,
        [DUDA_CONFIG_LIST] = copy_list,
    };
    const struct conf_key *found = find_key(section, key);
    if (!found || type < DUDA_CONFIG_STR || type > DUDA_CONFIG_LIST)
        return NULL;
    return copies[type](section, found);
}

/* ── the folder ── */

static char *get_path(void)
{
    if (!phase_check(PHASE_ANY, "fconf->get_path()"))
        return NULL;
    const struct duda_string *folder = folder_get(current.service, FOLDER_CONF);
    return folder->len ? folder->data : NULL;
}

static int set_path(const char *path)
{
    return folder_set(FOLDER_CONF, path, "fconf->set_path()");
}

const struct duda_api_fconf object_fconf = {
    .get_path = get_path,
    .set_path = set_path,
    .read_file = read_file,
    .read_conf = read_conf,
    .free_conf = free_conf,
    .section_get = get_section,
    .section_key = get_key,
    .get_string = get_string,
    .get_number = get_number,
    .get_bool = get_bool,
    .get_list = get_list,
};
