// SPDX-License-Identifier: Apache-2.0
/*
 * The package password: hashes for passwords (yescrypt, by libcrypt), which take a processor and 16 MB of memory for
 * some 50 ms (docs/reference/duda/password.md). They are computed by tasks of the service (task.h), so that no worker
 * waits.
 *
 *     static void log_in(duda_request_t *dr, void *data)  // a dthread: dthread->handle(dr, log_in, NULL)
 *     {
 *         const char *hash = find_user(form->get(dr, "name"));  // NULL: there is none; it takes the same time
 *         int err = password->verify(form->get(dr, "password"), hash);
 *         if (err == 0) ...
 *         response->error(dr, err == -EACCES ? 401 : 503);
 *     }
 *
 * hash() and verify() are called
 *
 *     in dthreads                              they wait, for DUDA_PASSWORD_WAIT_MS at most
 *     in duda_main(), tasks, other threads     they compute in the caller's thread
 *     in other callbacks of a worker           -EPERM, which is logged: use hash_then() and verify_then()
 *
 * Their results, and those of the callbacks:
 *
 *     0             done; the password is right
 *     -EACCES       verify(): the password is wrong, or there is no hash
 *     -EINVAL       an argument is NULL, or hash() of an empty password; or `hash` is none of a kind below, or of a
 *                   higher cost (logged)
 *     -EMSGSIZE     the password has more than DUDA_PASSWORD_BYTES
 *     -EBUSY        the queue of the service's tasks is full: try again later
 *     -ETIMEDOUT    no thread was free, or the hash not computed, in time
 *     -ENOMEM, -EAGAIN (no thread can be started)
 *     -EIO          there are no random bytes, or libcrypt has failed; logged
 *     -ECONNABORTED, -ECANCELED    as of dthreads
 *
 * Passwords are bytes without a NUL. Copies of them are erased after their use.
 */
#ifndef DUDA_PACKAGES_PASSWORD_H
#define DUDA_PACKAGES_PASSWORD_H

#include "../../package.h"

#include <errno.h>

enum {
    DUDA_PASSWORD_BYTES = 511,      /* of a password at most, without the NUL */
    DUDA_PASSWORD_HASH_BYTES = 128, /* room for a hash, with the NUL */
    DUDA_PASSWORD_WAIT_MS = 10000,
};

/*
 * Called once in the worker, unless the service ends there before. `dr` is that of the call, or NULL: it has ended, or
 * there was none. `hash`: of hash_then() with the result 0, until it returns; otherwise NULL.
 */
typedef void (*duda_password_fn)(duda_request_t *dr, int result, const char *hash, void *data);

struct duda_api_password {
    /* Writes the hash of a password with a random salt: printable characters without colons and spaces, "$y$...". */
    int (*hash)(const char *password, char hash[DUDA_PASSWORD_HASH_BYTES]);
    /*
     * Compares a password with a hash of hash(), or of libcrypt: "$y$" (yescrypt, up to "$y$jBT$", which takes 64 MB),
     * "$2b$" (bcrypt, up to cost 14), "$6$" and "$5$" (SHA-512 and SHA-256, up to 999,999 rounds). A `hash` of NULL
     * means that there is no such user: it takes the time of one of hash(), and returns -EACCES, so that a client
     * cannot learn names from the time. The comparison takes the same time for all passwords.
     */
    int (*verify)(const char *password, const char *hash);
    /*
     * The same for callbacks; `dr` may be NULL. What they are given is copied. They return 0; or an error, after which
     * `fn` is not called: -EINVAL (also without `fn`), -EMSGSIZE, -EBUSY, -ENOMEM, -EAGAIN, -EPERM (no worker) or
     * -ECANCELED (the service ends). Worker.
     */
    int (*hash_then)(duda_request_t *dr, const char *password, duda_password_fn fn, void *data);
    int (*verify_then)(duda_request_t *dr, const char *password, const char *hash, duda_password_fn fn, void *data);
    /*
     * Returns whether a hash is of another kind or cost than those of hash(), so that a login with the right password
     * should store a new one. Any thread.
     */
    bool (*is_outdated)(const char *hash);
};

DUDA_PACKAGE(struct duda_api_password, password)

#endif
