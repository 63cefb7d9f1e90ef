// SPDX-License-Identifier: Apache-2.0
/* Random bytes of the kernel (<monkey/base/random.h>): the one caller of getrandom(2). */
#include <monkey/base/random.h>

#include <errno.h>
#include <sys/random.h>

int mk_random(void *to, size_t bytes)
{
    char *p = to;
    while (bytes) {
        ssize_t n = getrandom(p, bytes, 0); /* more than 256 bytes may be cut short by a signal */
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            p += n;
            bytes -= (size_t)n;
        }
    }
    return 0;
}
