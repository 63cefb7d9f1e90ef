// SPDX-License-Identifier: Apache-2.0
/*
 * Finds plugins (server/module.h): in the array that the build makes, and as shared objects, which use the public
 * functions of the program.
 */
#include "server/module.h"

#include "version.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SYMBOL_BYTES = 128 };

const struct mk_plugin *mk__module_find_builtin(struct mk_str name)
{
    for (const struct mk_plugin *const *p = mk__builtin_plugins; *p; p++)
        if (mk_str_ieq(mk_str_c((*p)->name), name))
            return *p;
    return NULL;
}

/* ── start and stop for the process ── */

enum { IN_USE_MAX = 128 };

/* The plugins in use, with the number of generations. Static, because servers of one process share plugins. */
static struct {
    const struct mk_plugin *plugin;
    unsigned generations;
} in_use[IN_USE_MAX];
static pthread_mutex_t in_use_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned *find_in_use(const struct mk_plugin *plugin)
{
    unsigned slot = IN_USE_MAX;
    for (unsigned i = 0; i < IN_USE_MAX; i++) {
        if (in_use[i].generations && in_use[i].plugin == plugin)
            return &in_use[i].generations;
        if (!in_use[i].generations && slot == IN_USE_MAX)
            slot = i;
    }
    if (slot == IN_USE_MAX)
        return NULL;
    in_use[slot].plugin = plugin;
    return &in_use[slot].generations;
}

int mk__module_use_plugin(const struct mk_plugin *plugin)
{
    pthread_mutex_lock(&in_use_lock);
    unsigned *generations = find_in_use(plugin);
    int err = !generations ? -ENOBUFS : *generations == 0 && plugin->start ? plugin->start() : 0;
    if (err == 0)
        ++*generations;
    pthread_mutex_unlock(&in_use_lock);
    return err;
}

void mk__module_release_plugin(const struct mk_plugin *plugin)
{
    pthread_mutex_lock(&in_use_lock);
    unsigned *generations = find_in_use(plugin);
    if (--*generations == 0 && plugin->stop)
        plugin->stop();
    pthread_mutex_unlock(&in_use_lock);
}

/* ── modules ── */

const char *mk__module_dir(void)
{
    static char beside[PATH_MAX];
    struct stat st;
    ssize_t n = readlink("/proc/self/exe", beside, sizeof(beside) - sizeof("/../lib/monkey"));
    char *slash = n > 0 ? memrchr(beside, '/', (size_t)n) : NULL;
    if (slash) {
        memcpy(slash, "/../lib/monkey", sizeof("/../lib/monkey"));
        if (stat(beside, &st) == 0 && S_ISDIR(st.st_mode))
            return beside;
    }
    return MK__PLUGIN_FOLDER;
}

/* Returns "compress" for "/usr/lib/monkey/compress.so". */
static struct mk_str get_module_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    struct mk_str name = mk_str_c(slash ? slash + 1 : file);
    if (name.len > 3 && memcmp(name.p + name.len - 3, ".so", 3) == 0)
        name.len -= 3;
    return name;
}

static int check_abi(const struct mk_plugin *plugin, struct mk_buf *error)
{
    if (plugin->abi == MK_PLUGIN_ABI && plugin->size == sizeof(*plugin))
        return 0;
    mk_buf_addf(error,
                "it was built for another server: its plugin interface is number %u with %u bytes, this one's is "
                "%u with %zu; build it again with the headers of monkey %s",
                plugin->abi, plugin->size, MK_PLUGIN_ABI, sizeof(*plugin), MK__VERSION);
    return -ENOEXEC;
}

const char *mk__module_check_file(int fd)
{
    struct stat st;
    ElfW(Ehdr) head;
    ElfW(Phdr) segment;
    if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
        return NULL;
    if (!S_ISREG(st.st_mode))
        return "not a regular file"; /* dlopen() would block on a FIFO */
    if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof(segment))
        return NULL;
    uint64_t size = (uint64_t)st.st_size;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        uint64_t at = head.e_phoff + i * sizeof(segment);
        if (at > size || pread(fd, &segment, sizeof(segment), (off_t)at) != sizeof(segment) ||
            segment.p_filesz > size || segment.p_offset > size - segment.p_filesz)
            return "the file is incomplete: copy it again"; /* dlopen() would die of SIGBUS */
    }
    return NULL;
}

struct mk__module {
    void *handle;
    const struct mk_plugin *plugin;
};

/*
 * dlopen() identifies objects by path, and would return the old object for a file that was replaced. So each call uses
 * a path of its own for the descriptor: a counter, written as slashes and dots between "/proc/self/fd" and the number.
 */
static void make_unique_path(int fd, char *to, size_t size)
{
    static _Atomic uint32_t times;
    char number[sizeof(times) * 8 * 2 + 1] = "";
    uint32_t n = atomic_fetch_add(&times, 1);
    for (unsigned i = 0; i < sizeof(n) * 8; i++)
        memcpy(number + i * 2, n >> i & 1 ? "/." : "//", 2);
    snprintf(to, size, "/proc/self/fd%s/%d", number, fd);
}

/* Returns the dynamic linker's message without our path. */
static const char *get_dl_error(void)
{
    const char *text = dlerror(), *colon = strstr(text, ": ");
    return strncmp(text, "/proc/self/fd/", 14) == 0 && colon ? colon + 2 : text;
}

static int open_library(struct mk__module *m, const char *file, struct mk_buf *error)
{
    char name[128];
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        mk_buf_addf(error, "cannot open shared object file: %s", strerror(errno));
        return -ENOENT;
    }
    const char *fault = mk__module_check_file(fd);
    make_unique_path(fd, name, sizeof(name));
    m->handle = fault ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!m->handle)
        mk_buf_addf(error, "%s", fault ? fault : get_dl_error());
    close(fd);
    return m->handle ? 0 : -ENOEXEC;
}

static int find_symbol(struct mk__module *m, struct mk_str name, struct mk_buf *error)
{
    char symbol[SYMBOL_BYTES];
    int n = snprintf(symbol, sizeof(symbol), "mk_plugin_%.*s", MK_STR_ARG(name));
    m->plugin = n < (int)sizeof(symbol) ? dlsym(m->handle, symbol) : NULL;
    if (m->plugin)
        return check_abi(m->plugin, error);
    mk_buf_addf(error, "not a plugin of that name: the symbol mk_plugin_%.*s is missing", MK_STR_ARG(name));
    return -ENOEXEC;
}

int mk__module_open(const char *file, struct mk__module **ret_module, const struct mk_plugin **ret_plugin,
                    struct mk_buf *error)
{
    struct mk__module *m = mk_account_alloc(NULL, sizeof(*m));
    int err = m ? open_library(m, file, error) : -ENOMEM;
    if (err < 0) {
        mk_account_free(NULL, m, sizeof(*m));
        return err;
    }
    err = find_symbol(m, get_module_name(file), error);
    if (err < 0) {
        m->plugin = NULL;
        mk__module_close(m);
        return err;
    }
    *ret_module = m;
    *ret_plugin = m->plugin;
    return 0;
}

void mk__module_close(struct mk__module *m)
{
    /* a transport stays loaded: connections use it without holding the generation */
    if (!m->plugin || !m->plugin->transport)
        dlclose(m->handle);
    mk_account_free(NULL, m, sizeof(*m));
}

void mk__module_each(void (*fn)(const struct mk_plugin *plugin, void *ctx), void *ctx)
{
    char pattern[PATH_MAX], reason[256];
    struct mk_buf error;
    glob_t files;
    snprintf(pattern, sizeof(pattern), "%s/*.so", mk__module_dir());
    if (glob(pattern, 0, NULL, &files) != 0)
        return;
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct mk__module *module;
        const struct mk_plugin *plugin;
        if (mk__module_open(files.gl_pathv[i], &module, &plugin, &error) != 0)
            continue;
        fn(plugin, ctx);
        mk_account_free(NULL, module, sizeof(*module)); /* the object itself stays open */
    }
    globfree(&files);
}
