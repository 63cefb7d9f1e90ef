// SPDX-License-Identifier: Apache-2.0
/*
 * Computes hashes of passwords (compute.h).
 */
#include "compute.h"

#include <duda/mem.h>
#include <monkey/base/str.h>

#include <assert.h>
#include <crypt.h>
#include <string.h>

enum { KIND_YESCRYPT };

/* Up to the highest cost, a hash takes some seconds and 64 MB at most, also one that a client has chosen. */
static const struct kind {
    const char *prefix, *before_cost, *highest;
    bool has_default; /* the cost may be missing */
} kinds[] = {
    [KIND_YESCRYPT] = {"$y$", "j", "BT", false},
    {"$2b$", "", "14", false},
    {"$6$", "rounds=", "999999", true},
    {"$5$", "rounds=", "999999", true},
};

/* A setting of the default cost, which is compared with for users that do not exist. */
static char unknown[DUDA_PASSWORD_HASH_BYTES];

/* Writes a setting with a random salt. Returns 0 or -EIO. */
static int make_setting(char *setting)
{
    return crypt_gensalt_rn(kinds[KIND_YESCRYPT].prefix, 0, NULL, 0, setting, DUDA_PASSWORD_HASH_BYTES) ? 0 : -EIO;
}

int pw_open(void)
{
    return make_setting(unknown);
}

/* Digits of a cost are in the order of their bytes. */
static bool is_affordable(const struct kind *kind, const char *text)
{
    assert(kind->highest[0]);
    size_t before = strlen(kind->before_cost), most = strlen(kind->highest);
    if (strncmp(text, kind->before_cost, before) != 0)
        return kind->has_default;
    size_t len = strcspn(text + before, "$");
    return len < most || (len == most && memcmp(text + before, kind->highest, most) <= 0);
}

static bool is_accepted(const char *hash)
{
    for (size_t i = 0; i < MK_COUNT_OF(kinds); i++) {
        size_t len = strlen(kinds[i].prefix);
        if (strncmp(hash, kinds[i].prefix, len) == 0)
            return is_affordable(&kinds[i], hash + len);
    }
    return false;
}

int pw_job_set(struct pw_job *job, const char *text, const char *hash, bool verifies)
{
    size_t len = text ? strnlen(text, sizeof(job->password)) : 0;
    size_t hash_len = hash ? strnlen(hash, sizeof(job->hash)) : 0;
    if (!text || (!verifies && !len) || hash_len == sizeof(job->hash) || (hash && !is_accepted(hash)))
        return -EINVAL;
    if (len == sizeof(job->password))
        return -EMSGSIZE;
    memcpy(job->password, text, len);
    if (hash_len)
        memcpy(job->hash, hash, hash_len);
    job->verifies = verifies;
    job->is_unknown = verifies && !hash;
    return 0;
}

/*
 * Writes the hash with the salt of a setting. crypt_rn(), because AddressSanitizer looks the usual reentrant function
 * up before this package has brought libcrypt. Returns 0, -ENOMEM, -EINVAL (the setting) or -EIO.
 */
static int compute_hash(const char *text, const char *setting, char *out)
{
    assert(text && setting[0]);
    struct crypt_data *work = mem->alloc_z(sizeof(*work));
    if (!work)
        return -ENOMEM;
    errno = 0;
    const char *hash = crypt_rn(text, setting, work, (int)sizeof(*work));
    int err = hash ? 0 : errno == ENOMEM ? -ENOMEM : errno == EINVAL ? -EINVAL : -EIO;
    if (hash && strlen(hash) >= DUDA_PASSWORD_HASH_BYTES)
        err = -EIO;
    if (err == 0)
        memcpy(out, hash, strlen(hash));
    explicit_bzero(work, sizeof(*work));
    mem->free(work);
    return err;
}

void pw_job_run(void *data)
{
    struct pw_job *job = data;
    char setting[DUDA_PASSWORD_HASH_BYTES] = "", out[DUDA_PASSWORD_HASH_BYTES] = "";
    job->result = job->verifies ? 0 : make_setting(setting);
    if (job->verifies)
        memcpy(setting, job->is_unknown ? unknown : job->hash, sizeof(setting));
    if (job->result == 0)
        job->result = compute_hash(job->password, setting, out);
    explicit_bzero(job->password, sizeof(job->password));
    bool is_same = mk_str_eq_secret(mk_str(out, sizeof(out)), mk_str(job->hash, sizeof(job->hash)));
    if (job->result == 0 && job->verifies)
        job->result = is_same && !job->is_unknown ? 0 : -EACCES;
    else
        memcpy(job->hash, out, sizeof(out));
}

/* Returns the length of the kind and the cost: "$y$j9T$". */
static size_t measure_cost(const char *hash)
{
    const char *end = strchr(hash + strlen(kinds[KIND_YESCRYPT].prefix), '$');
    return end ? (size_t)(end - hash) + 1 : strlen(hash);
}

bool pw_is_outdated(const char *hash)
{
    return !hash || strncmp(hash, unknown, measure_cost(unknown)) != 0;
}
