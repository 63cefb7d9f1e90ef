// SPDX-License-Identifier: Apache-2.0
/*
 * Opens shared objects (<monkey/base/library.h>). Files are checked first, because dlopen() blocks on a FIFO, and an
 * incomplete file ends the program by SIGBUS.
 */
#include <monkey/base/library.h>

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES_MAX = 1 << 30, COPY_NAME_BYTES_MAX = 200 };

/* Such a file is passed over by dlopen() as if it were not there. This program is for the right machine. */
static bool is_for_other_machine(const ElfW(Ehdr) * head)
{
    ElfW(Ehdr) own;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool is_known = fd >= 0 && pread(fd, &own, sizeof(own), 0) == sizeof(own);
    if (fd >= 0)
        close(fd);
    return is_known && head->e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
           head->e_ident[EI_DATA] == own.e_ident[EI_DATA] && head->e_machine != own.e_machine;
}

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
    if (is_for_other_machine(&head))
        return "it was compiled for another processor";
    uint64_t size = (uint64_t)st.st_size;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        uint64_t at = head.e_phoff + i * sizeof(segment);
        if (at > size || pread(fd, &segment, sizeof(segment), (off_t)at) != sizeof(segment) ||
            segment.p_filesz > size || segment.p_offset > size - segment.p_filesz)
            return "the file is incomplete: copy it again";
    }
    return NULL;
}

/* Returns a descriptor of the file, or -errno. Does not wait for the writer of a FIFO. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

const char *mk_library_check(const char *path)
{
    int fd = open_file(path);
    if (fd < 0)
        return strerror(-fd);
    const char *error = check_file(fd);
    close(fd);
    return error;
}

static MK_COLD bool has_sanitizer(void)
{
    return dlsym(RTLD_DEFAULT, "__sanitizer_set_report_path");
}

/*
 * dlopen() identifies objects by path, and would return the old object for a file that was replaced. So each call uses
 * a new path: a counter, written as slashes and dots before the last part of the path. It is the file's, where
 * debuggers and profilers find its symbols; that of its descriptor for a copy in memory (`file` NULL), a path that is
 * too long, and a sanitizer, which reads the file that was opened also if another one has replaced it. The number of
 * the process is in the latter, since a debugger would open and read what "self" means for itself: a pipe, without an
 * end.
 */
static void make_unique_path(int fd, const char *file, char *to, size_t size)
{
    const char *slash = file && !has_sanitizer() ? strrchr(file, '/') : NULL;
    static _Atomic uint32_t times;
    char number[sizeof(times) * 8 * 2 + 1] = "";
    uint32_t n = atomic_fetch_add(&times, 1);
    for (unsigned i = 0; i < sizeof(n) * 8; i++)
        memcpy(number + i * 2, n >> i & 1 ? "/." : "//", 2);
    int len = slash ? snprintf(to, size, "%.*s%s/%s", (int)(slash - file), file, number, slash + 1) : (int)size;
    if (len >= (int)size)
        snprintf(to, size, "/proc/%d/fd%s/%d", getpid(), number, fd);
}

/*
 * The objects that are open. One that is open already is opened again by the path that it has, since glibc keeps each
 * further path of an object as long as that: a reload opens all modules again. Of more objects than this many, those of
 * others get new paths.
 *
 * Sanitizers open an object by its path when they report an error. So where one is in the process, the descriptor whose
 * number is in that path stays open as long as the object.
 */
enum { OBJECTS_MAX = 64, UNIQUE_PATH_BYTES = 256 };

static pthread_mutex_t objects_lock = PTHREAD_MUTEX_INITIALIZER;
static struct object {
    void *handle; /* NULL: the place is free */
    dev_t device;
    ino_t inode;    /* is not used again, as the object has mapped the file */
    int fd;         /* -1: it is not kept */
    unsigned opens; /* dlopen() has returned the handle so often, and dlclose() has not got it again */
    char path[UNIQUE_PATH_BYTES];
} objects[OBJECTS_MAX];

/* Returns the place of an object, or NULL. */
static struct object *find_object(const void *handle)
{
    int i = 0;
    while (i < OBJECTS_MAX && objects[i].handle != handle)
        i++;
    return i < OBJECTS_MAX ? &objects[i] : NULL;
}

/* Returns a copy of the object of this file that is open; without a handle if there is none. */
static MK_COLD struct object find_same_file(int fd)
{
    struct stat st;
    struct object found = {.handle = NULL};
    if (fstat(fd, &st) < 0)
        return found;
    pthread_mutex_lock(&objects_lock);
    for (int i = 0; i < OBJECTS_MAX && !found.handle; i++)
        if (objects[i].handle && objects[i].device == st.st_dev && objects[i].inode == st.st_ino)
            found = objects[i];
    pthread_mutex_unlock(&objects_lock);
    return found;
}

/*
 * Opens the object of this file that is open already, and writes its path. Returns NULL if there is none; another
 * thread may have closed it meanwhile, and its path may lead to another object.
 */
static MK_COLD void *open_again(int fd, char path[UNIQUE_PATH_BYTES])
{
    struct object known = find_same_file(fd);
    void *handle = known.handle ? dlopen(known.path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    if (handle && handle != known.handle) {
        dlclose(handle);
        handle = NULL;
    }
    memcpy(path, known.path, sizeof(known.path));
    return handle;
}

/* Adds an object, or one more opening of it. Returns whether its descriptor is kept. */
static MK_COLD bool add_object(void *handle, int fd, const char *path)
{
    bool keeps = has_sanitizer();
    struct stat st;
    struct object *o = find_object(handle);
    if (o) {
        o->opens++;
        return false;
    }
    o = find_object(NULL);
    if (!o || fstat(fd, &st) < 0)
        return false;
    *o = (struct object){handle, st.st_dev, st.st_ino, keeps ? fd : -1, 1, ""};
    snprintf(o->path, sizeof(o->path), "%s", path);
    return keeps;
}

/* Closes the descriptor that an object was opened by, or keeps it. `handle`: NULL if it was not opened. */
static MK_COLD void close_or_keep(int fd, void *handle, const char *path)
{
    pthread_mutex_lock(&objects_lock);
    if (!handle || !add_object(handle, fd, path))
        close(fd);
    pthread_mutex_unlock(&objects_lock);
}

/* Takes an object out that is closed for the last time. Returns whether it was in. */
static MK_COLD bool take_object(const void *handle, struct object *ret)
{
    pthread_mutex_lock(&objects_lock);
    struct object *o = find_object(handle);
    bool taken = o && o->opens > 0 && --o->opens == 0;
    if (taken) {
        *ret = *o;
        o->handle = NULL;
    }
    pthread_mutex_unlock(&objects_lock);
    return taken;
}

/* Keeps the object if it stays in memory, as with -z nodelete; else closes its descriptor. */
static MK_COLD void forget_if_unmapped(const struct object *taken, const void *address)
{
    Dl_info info;
    pthread_mutex_lock(&objects_lock);
    struct object *o = address && dladdr(address, &info) && !find_object(taken->handle) ? find_object(NULL) : NULL;
    if (o)
        *o = *taken;
    if (o)
        o->opens = 0;
    else if (taken->fd >= 0)
        close(taken->fd);
    pthread_mutex_unlock(&objects_lock);
}

/* Returns an address in the object, or NULL. */
static const void *find_address(void *handle)
{
    struct link_map *map = NULL;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_ld : NULL;
}

/*
 * Objects use the functions of this library. A program that has opened it by dlopen() with RTLD_LOCAL, as interpreters
 * do, hides them: so it is opened again with RTLD_GLOBAL, which stays. In a program that has the library linked into
 * itself, nothing of that name is found. In a namespace that dlmopen() has made, objects find those of the first one,
 * and RTLD_GLOBAL ends the program (BUGS in dlopen(3)).
 */
static void show_own_symbols(void)
{
    Dl_info info;
    Lmid_t namespace = LM_ID_BASE;
    if (!dladdr((const void *)mk_library_open, &info) || !info.dli_fname)
        return;
    void *own = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (!own)
        return;
    if (dlinfo(own, RTLD_DI_LMID, &namespace) == 0 && namespace == LM_ID_BASE &&
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL))
        dlclose(own);
    dlclose(own);
}

static void *open_object(const char *name, struct mk_buf *error)
{
    static pthread_once_t shown = PTHREAD_ONCE_INIT;
    pthread_once(&shown, show_own_symbols);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    struct mk_str reason = handle ? MK_STR("") : mk_str_c(dlerror());
    size_t len = strlen(name) + 2;
    if (mk_str_starts(reason, mk_str_c(name)) && reason.len > len) /* "name: reason" */
        reason = mk_str_after(reason, len);
    mk_buf_adds(error, reason);
    return handle;
}

/* Opens the object of a descriptor, which is checked first. */
static void *open_checked(int fd, const char *path, struct mk_buf *error)
{
    const char *reason = check_file(fd);
    if (reason) {
        mk_buf_addf(error, "%s", reason);
        return NULL;
    }
    return open_object(path, error);
}

/* Copies the bytes from the beginning of the file. Returns 0 or -errno. */
static int copy_bytes(int to, int from, off_t size)
{
    for (off_t at = 0; at < size;) {
        ssize_t n = sendfile(to, from, &at, (size_t)(size - at));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0; /* it was truncated meanwhile; the copy is checked */
    }
    return 0;
}

/* Returns a descriptor with a copy of the file in memory, or -errno. */
static int copy_file(int from, const char *name)
{
    char text[COPY_NAME_BYTES_MAX + 1];
    struct stat st;
    if (fstat(from, &st) < 0)
        return -errno;
    if (st.st_size > COPY_BYTES_MAX)
        return -EFBIG;
    snprintf(text, sizeof(text), "%s", name);
    int to = memfd_create(text, MFD_CLOEXEC);
    if (to < 0)
        return -errno;
    int err = copy_bytes(to, from, st.st_size);
    if (err < 0)
        close(to);
    return err < 0 ? err : to;
}

/* Opens the file by a path that no other has, or the object of it that is open. */
static MK_COLD void *open_unique(int fd, const char *file, char path[UNIQUE_PATH_BYTES], struct mk_buf *error)
{
    void *handle = check_file(fd) ? NULL : open_again(fd, path);
    if (handle)
        return handle;
    make_unique_path(fd, file, path, UNIQUE_PATH_BYTES);
    return open_checked(fd, path, error);
}

/* The inode of the copy and the path are not used again, so that dlopen() finds no older object. */
void *mk_library_open_copy(int fd, const char *name, int *ret_copy, struct mk_buf *error)
{
    struct stat st;
    if (ret_copy)
        *ret_copy = -1;
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    int copy = regular ? copy_file(fd, name) : -EINVAL;
    if (copy < 0) {
        mk_buf_addf(error, "%s", regular ? strerror(-copy) : "not a regular file");
        return NULL;
    }
    char path[UNIQUE_PATH_BYTES];
    make_unique_path(copy, NULL, path, sizeof(path));
    void *handle = open_checked(copy, path, error);
    if (handle && ret_copy)
        *ret_copy = fcntl(copy, F_DUPFD_CLOEXEC, 0);
    close_or_keep(copy, handle, path);
    return handle;
}

void *mk_library_open(const char *file, enum mk_library_mode mode, struct mk_buf *error)
{
    assert(file[0]);
    const char *slash = strrchr(file, '/');
    if (!slash && mode == MK_LIBRARY_SHARED)
        return open_object(file, error);
    int fd = open_file(file);
    if (fd < 0) {
        mk_buf_addf(error, "%s", strerror(-fd));
        return NULL;
    }
    char path[UNIQUE_PATH_BYTES] = "";
    void *handle = mode == MK_LIBRARY_COPY       ? mk_library_open_copy(fd, slash ? slash + 1 : file, NULL, error)
                   : mode == MK_LIBRARY_REPLACED ? open_unique(fd, file, path, error)
                                                 : open_checked(fd, file, error);
    close_or_keep(fd, mode == MK_LIBRARY_REPLACED ? handle : NULL, path);
    return handle;
}

void mk_library_close(void *handle)
{
    struct object taken;
    bool was_last = take_object(handle, &taken);
    const void *address = was_last ? find_address(handle) : NULL;
    dlclose(handle);
    if (was_last)
        forget_if_unmapped(&taken, address);
}

int mk_library_find(void *handle, const struct mk_library_symbol *symbols, size_t n, struct mk_buf *error)
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
