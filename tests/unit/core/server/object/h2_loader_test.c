// SPDX-License-Identifier: Apache-2.0
/*
 * Opening http2.so, which happens once in a process: each case is a copy of this program next to an object
 * of its own, and says what it found.
 */
#include "folder.h"

#include <limits.h>
#include <sys/wait.h>

#include "server/plugins/h2_loader.h"
#include "version.h"

static char self[PATH_MAX];

/* In a copy of the program, before its main(). */
__attribute__((constructor)) static void answer_in_copy(void)
{
    if (!getenv("MK_TEST_H2_LOADER"))
        return;
    mk__h2_loader_find();
    const struct mk__proto *proto = mk__h2_loader_open();
    bool whole = proto && proto->begin && proto->on_ready && proto->on_timeout && proto->close && proto->release;
    if (proto != mk__h2_loader_open() || !proto == !mk__h2_loader_error())
        exit(1);
    printf("%s\n", whole ? "whole" : mk__h2_loader_error());
    exit(0);
}

static char bytes[1 << 26];

static size_t read_file(const char *path)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* "lib/monkey/NAME" of the build that this program is part of. */
static size_t read_object(const char *name)
{
    char path[PATH_MAX + 64];
    int folder = (int)(strrchr(self, '/') - self);
    snprintf(path, sizeof(path), "%.*s/../lib/monkey/%s", folder, self, name);
    return read_file(path);
}

/* Runs the copy: what it said. */
static const char *run_copy(void)
{
    static char said[1024];
    size_t len = 0;
    int ends[2], status;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        setenv("MK_TEST_H2_LOADER", "1", 1);
        execl(mk_test_path("bin/copy"), "copy", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], said + len, sizeof(said) - 1 - len)) > 0;)
        len += (size_t)n;
    said[len] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return said;
}

static void expect(const char *phrase)
{
    const char *said = run_copy();
    if (!strstr(said, phrase))
        fail_msg("\"%s\" instead of \"%s\"", said, phrase);
}

static void put_object(size_t len)
{
    mk_test_write("lib/monkey/protocols/http2.so", mk_str(bytes, len));
}

TEST(it_is_missing)
{
    unlink(mk_test_path("lib/monkey/protocols/http2.so"));
    expect("protocols/http2.so: No such file or directory");
}

TEST(no_object)
{
    for (size_t len = 0; len < 5000; len += 2500) {
        memset(bytes, 'x', len);
        put_object(len);
        expect("protocols/http2.so: ");
    }
}

/* An object, but a plugin. */
TEST(another_object)
{
    size_t len = read_object("logger.so");
    if (!len)
        skip();
    put_object(len);
    expect("protocols/http2.so: the symbol " MK__H2_MODULE " is missing");
}

/* It is asked before anything of it is called. */
TEST(of_another_version)
{
    const char version[] = MK__VERSION; /* with its end */
    size_t len = read_object("protocols/http2.so");
    unsigned found = 0;
    if (!len)
        skip();
    for (char *at = bytes; (at = memmem(at, len - (size_t)(at - bytes), version, sizeof(version))); at++, found++)
        *at = 'x';
    assert_true(found > 0);
    put_object(len);
    expect("protocols/http2.so: it was built with another server");
}

/* Reading what is not there would be SIGBUS, because of the first client that speaks it. */
TEST(a_part_of_it)
{
    if (!read_object("protocols/http2.so"))
        skip();
    for (size_t len = 5000; len <= 20000; len += 5000) { /* further back there may be nothing but what debuggers want */
        put_object(len);
        expect("protocols/http2.so: the file is incomplete");
    }
}

/* It is never written to. */
TEST(a_fifo)
{
    const char *path = mk_test_path("lib/monkey/protocols/http2.so");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect("protocols/http2.so: not a regular file");
    unlink(path);
}

TEST(opens)
{
    size_t len = read_object("protocols/http2.so");
    if (!len)
        skip();
    put_object(len);
    expect("whole");
}

static int set_up(void **state)
{
    static const char *const dirs[] = {"bin", "lib", "lib/monkey", "lib/monkey/protocols"};
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0 || mk_test_folder_make(state) < 0)
        return -1;
    self[n] = '\0';
    for (size_t i = 0; i < COUNT(dirs); i++)
        mk_test_mkdir(dirs[i]);
    mk_test_write("bin/copy", mk_str(bytes, read_file(self)));
    return chmod(mk_test_path("bin/copy"), 0755);
}

TEST_FILE(set_up, mk_test_folder_remove)
