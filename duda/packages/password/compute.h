// SPDX-License-Identifier: Apache-2.0
/*
 * Hashes of passwords by libcrypt: what the threads compute.
 */
#ifndef DUDA_PACKAGES_PASSWORD_COMPUTE_H
#define DUDA_PACKAGES_PASSWORD_COMPUTE_H

#include <duda/packages/password/password.h>

/* A call. Unused bytes of the texts are 0, so that hashes are compared in whole. */
struct pw_job {
    char password[DUDA_PASSWORD_BYTES + 1];
    char hash[DUDA_PASSWORD_HASH_BYTES]; /* to compare with; of hash(): the result */
    bool verifies, is_unknown;           /* is_unknown: there is no hash to compare with */
    int result;
    duda_password_fn fn;
    void *data;
};

/* Makes the hash for users that do not exist. Returns 0 or -EIO. In the main thread, once. */
int pw_open(void);
/*
 * Fills a job that was zeroed. `verifies`: `hash` is compared, and may be NULL. Returns 0, -EINVAL or -EMSGSIZE. Pure.
 */
int pw_job_set(struct pw_job *job, const char *text, const char *hash, bool verifies);
/* Computes `data`, a job, and sets its result. Any thread. */
void pw_job_run(void *data);
bool pw_is_outdated(const char *hash);

#endif
