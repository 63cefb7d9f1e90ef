// SPDX-License-Identifier: Apache-2.0
/* Random bytes: all of a buffer is filled, also under signals; a child has others; a refusal is an error. */
#include "testing.h"

#include <monkey/base/random.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEY_BYTES = 16, LARGE_BYTES = 1 << 20, BLOCK_BYTES = 64 };

TEST(fills_to_the_last_byte)
{
    unsigned char seen[65] = {0};
    for (size_t len = 0; len < sizeof(seen); len++) {
        static const char zero[sizeof(seen)];
        unsigned char *p = (unsigned char *)mk_test_guarded(zero, len);
        for (int i = 0; i < 16; i++) { /* a byte is 0 in all rounds once in 2^128 */
            assert_int_equal(mk_random(p, len), 0);
            seen[len] |= len ? p[len - 1] : 1;
        }
        mk_test_unguard((char *)p, len);
        assert_true(seen[len]);
    }
}

TEST(differs)
{
    unsigned char a[KEY_BYTES], b[KEY_BYTES];
    assert_int_equal(mk_random(a, sizeof(a)), 0);
    assert_int_equal(mk_random(b, sizeof(b)), 0);
    assert_memory_not_equal(a, b, sizeof(a));
}

static void ignore_signal(int signal)
{
    (void)signal;
}

/* getrandom(2) is cut short by a signal above 256 bytes. */
TEST(large_under_signals)
{
    static unsigned char large[LARGE_BYTES];
    static const unsigned char zero[BLOCK_BYTES];
    struct sigaction action = {.sa_handler = ignore_signal}, before; /* without SA_RESTART */
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    int err = mk_random(large, sizeof(large));
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(err, 0);
    for (size_t at = 0; at < sizeof(large); at += BLOCK_BYTES)
        assert_memory_not_equal(large + at, zero, BLOCK_BYTES);
}

TEST(differs_in_a_child)
{
    unsigned char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned char own[KEY_BYTES];
    assert_ptr_not_equal(shared, MAP_FAILED);
    assert_int_equal(mk_random(own, sizeof(own)), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(mk_random(shared, sizeof(own)) < 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(mk_random(own, sizeof(own)), 0);
    assert_memory_not_equal(own, shared, sizeof(own));
    munmap(shared, 4096);
}

/* A filter for system calls, in a child, which it stays with. */
static int refuse_getrandom(int err)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)err),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(refused_by_the_kernel)
{
    pid_t child = fork();
    if (child == 0) {
        unsigned char bytes[KEY_BYTES];
        if (refuse_getrandom(ENOSYS) < 0)
            _exit(77);
        _exit(mk_random(bytes, sizeof(bytes)) == -ENOSYS && mk_random(bytes, 0) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* the machine allows no filters */
    assert_int_equal(status, 0);
}
