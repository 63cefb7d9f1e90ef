// SPDX-License-Identifier: Apache-2.0
/* Hashes of passwords: kinds, wrong passwords, unknown users, limits, and no memory. */
#include <duda/mem.h>

#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "duda/packages/password/compute.h"

static bool fails;

static void *alloc_zeroed(size_t size)
{
    return fails ? NULL : calloc(1, size);
}

static const struct duda_api_mem memory = {.alloc_z = alloc_zeroed, .free = free};

static int compute(const char *text, const char *hash, bool verifies, struct pw_job *ret)
{
    *ret = (struct pw_job){0};
    int err = pw_job_set(ret, text, hash, verifies);
    if (err == 0)
        pw_job_run(ret);
    return err ? err : ret->result;
}

static int verify(const char *text, const char *hash)
{
    struct pw_job job;
    int err = compute(text, hash, true, &job);
    for (size_t i = 0; i < sizeof(job.password); i++)
        assert_int_equal(job.password[i], 0);
    return err;
}

TEST(hash_and_verify)
{
    struct pw_job first, second;
    assert_int_equal(compute("secret", NULL, false, &first), 0);
    assert_int_equal(compute("secret", NULL, false, &second), 0);
    assert_memory_equal(first.hash, "$y$", 3);
    assert_string_not_equal(first.hash, second.hash);
    assert_false(pw_is_outdated(first.hash));
    assert_int_equal(verify("secret", first.hash), 0);
    assert_int_equal(verify("Secret", first.hash), -EACCES);
    assert_int_equal(verify("", first.hash), -EACCES);
    assert_int_equal(verify("secret", NULL), -EACCES);
    first.hash[strlen(first.hash) - 1] = '\0';
    assert_int_equal(verify("secret", first.hash), -EACCES);
}

static const struct {
    const char *text, *hash;
    int result;
} rows[] = {
    /* from the specifications of bcrypt and of SHA-crypt */
    {"U*U", "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", 0},
    {"U*V", "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", -EACCES},
    {"Hello world!", "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5", 0},
    {"Hello world!",
     "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1", 0},
    {"Hello world!",
     "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1.", -EACCES},
    {"x", "", -EINVAL},
    {"x", "plain", -EINVAL},
    {"x", "$1$salt$abc", -EINVAL},
    {"x", "abJnggxhB/yWI", -EINVAL},
    {"x", "$y$", -EINVAL},
    {"x", "$y$j9T$!", -EINVAL},
    /* the highest costs, or what is near */
    {"x", "$y$jBT$abcd$", -EACCES},
    {"x", "$y$jCT$abcd$", -EINVAL},
    {"x", "$y$.9T$abcd$", -EINVAL},
    {"x", "$2b$15$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", -EINVAL},
    {"x", "$5$rounds=5000$salt$", -EACCES},
    {"x", "$5$rounds=1000000$salt$", -EINVAL},
    {"x", "$6$rounds=999999999$salt$", -EINVAL},
    {NULL, "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5", -EINVAL},
};

TEST(kinds)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        int err = verify(rows[i].text, rows[i].hash);
        if (err != rows[i].result)
            fail_msg("row %zu: %d", i, err);
        assert_true(pw_is_outdated(rows[i].hash) || err == -EINVAL);
    }
    assert_true(pw_is_outdated(NULL));
}

TEST(limits)
{
    struct pw_job job;
    char longest[DUDA_PASSWORD_BYTES + 2], hash[DUDA_PASSWORD_HASH_BYTES + 1];
    memset(longest, 'p', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memset(hash, '.', sizeof(hash) - 1);
    memcpy(hash, "$5$", 3);
    hash[sizeof(hash) - 1] = '\0';
    assert_int_equal(compute("", NULL, false, &job), -EINVAL);
    assert_int_equal(compute(longest, NULL, false, &job), -EMSGSIZE);
    assert_int_equal(verify(longest, NULL), -EMSGSIZE);
    assert_int_equal(verify("x", hash), -EINVAL);
    assert_int_equal(compute(longest + 1, NULL, false, &job), 0);
    assert_int_equal(verify(longest + 1, job.hash), 0);
    assert_int_equal(verify(longest + 2, job.hash), -EACCES);
}

TEST(no_memory)
{
    struct pw_job job;
    fails = true;
    assert_int_equal(compute("secret", NULL, false, &job), -ENOMEM);
    assert_int_equal(verify("secret", NULL), -ENOMEM);
    fails = false;
}

static int set_up(void **state)
{
    (void)state;
    mem = &memory;
    return pw_open();
}

TEST_FILE(set_up)
