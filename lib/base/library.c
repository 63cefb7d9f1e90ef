// SPDX-License-Identifier: Apache-2.0
/*
 * Opens shared objects (base/library.h). Files are checked first, because dlopen() blocks on a FIFO, and an incomplete
 * file ends the program by SIGBUS.
 */
#include "base/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns why dlopen() would crash or block with this file; NULL: it would not, and reports other errors itself. */
static const char *check_file(int fd)
{
    struct stat st;
    ElfW(Ehdr) head;
    ElfW(Phdr) segment;
    if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
        return NULL;
    if (!S_ISREG(st.st_mode))
        return "not a regular file";
    if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof(segment))
        return NULL;
    uint64_t size = (uint64_t)st.st_size;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        uint64_t at = head.e_phoff + i * sizeof(segment);
        if (at > size || pread(fd, &segment, sizeof(segment), (off_t)at) != sizeof(segment) ||
            segment.p_filesz > size || segment.p_offset > size - segment.p_filesz)
            return "the file is incomplete: copy it again";
    }
    return NULL;
}

/* Returns a descriptor of the file, or -1 with the reason in `*ret_error`. */
static int open_file(const char *path, const char **ret_error)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    *ret_error = fd < 0 ? strerror(errno) : check_file(fd);
    if (fd >= 0 && *ret_error) {
        close(fd);
        return -1;
    }
    return fd;
}

const char *mk__library_check(const char *path)
{
    const char *error;
    int fd = open_file(path, &error);
    if (fd >= 0)
        close(fd);
    return error;
}

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

static void *open_object(const char *name, struct mk_buf *error)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    struct mk_str reason = handle ? MK_STR("") : mk_str_c(dlerror());
    size_t len = strlen(name) + 2;
    if (mk_str_starts(reason, mk_str_c(name)) && reason.len > len) /* "name: reason" */
        reason = mk_str(reason.p + len, reason.len - len);
    mk_buf_adds(error, reason);
    return handle;
}

void *mk__library_open(const char *file, bool reload, struct mk_buf *error)
{
    assert(file[0]);
    char unique[128];
    const char *reason;
    if (!strchr(file, '/'))
        return open_object(file, error);
    int fd = open_file(file, &reason);
    if (fd < 0) {
        mk_buf_addf(error, "%s", reason);
        return NULL;
    }
    make_unique_path(fd, unique, sizeof(unique));
    void *handle = open_object(reload ? unique : file, error);
    close(fd);
    return handle;
}

int mk__library_find(void *handle, const struct mk__library_symbol *symbols, size_t n, struct mk_buf *error)
{
    assert(handle);
    for (size_t i = 0; i < n; i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (!address) {
            mk_buf_addf(error, "the symbol %s is missing", symbols[i].name);
            return -ENOEXEC;
        }
        memcpy(symbols[i].pointer, &address, sizeof(address));
    }
    return 0;
}
