// SPDX-License-Identifier: Apache-2.0
#ifndef AUTH_PASSWORDS_H
#define AUTH_PASSWORDS_H

#include <monkey/base/file.h>
#include <monkey/base/str.h>

/*
 * The password hashes that users may have in a file, by their prefixes. Pure functions.
 *
 *     $y$j9T$salt$hash          yescrypt      $5$rounds=5000$salt$hash   SHA-256 crypt
 *     $2b$10$salt+hash          bcrypt        $apr1$salt$hash            of Apache, MD5
 *     $6$rounds=5000$salt$hash  SHA-512 crypt {SHA}base64                of the original server, without a salt
 */
enum scheme {
    SCHEME_YESCRYPT,
    SCHEME_BCRYPT,
    SCHEME_SHA512,
    SCHEME_SHA256,
    SCHEME_APR1,
    SCHEME_SHA1,
    SCHEME_COUNT,
};

/*
 * Limits of the cost, because each login costs that much: about half a second of one processor at most. yescrypt:
 * 64 MiB of memory, which is cost 7 of mk_passwd.
 */
enum { SCHEME_HASH_MAX = 255, SCHEME_YESCRYPT_KB_MAX = 65536, SCHEME_BCRYPT_COST_MAX = 13, SCHEME_ROUNDS_MAX = 999999 };

struct scheme_fault {
    size_t at;            /* offset of the mistake in the hash */
    const char *sentence; /* a literal without a full stop */
};

/* Identifies a stored hash, and checks its form and cost. Returns enum scheme, or -EINVAL with `*ret_fault`. */
int scheme_parse(struct mk_str hash, struct scheme_fault *ret_fault);

/* Returns what messages call the scheme, a literal. */
const char *scheme_name(enum scheme scheme);

/*
 * Computes and compares password hashes. Each call takes milliseconds to half a second, and with yescrypt 16 MiB or
 * more: not for a worker's thread. Any other thread, each with its own work space.
 */
/* The longest password; crypt(3) takes no longer one. */
enum { HASH_PASSWORD_MAX = 511 };

struct hash_work; /* about 33 KB */

/* Returns a work space, or NULL without memory. */
struct hash_work *hash_work_new(void);
/* Wipes and frees it; `w` may be NULL. */
void hash_work_free(struct hash_work *w);

/*
 * Returns true if `password` has the hash `stored`, of that scheme. Compares in constant time, and leaves no trace of
 * the password in the work space. A password with a NUL, or a longer one than HASH_PASSWORD_MAX, matches nothing.
 */
bool hash_matches(struct hash_work *w, enum scheme scheme, struct mk_str password, struct mk_str stored);

/*
 * Makes a hash with a random salt; `cost` 0: the default of the scheme. Not for SCHEME_SHA1.
 * Returns the hash, which lives as long as `w` until its next use, or `.p` NULL: the scheme has no such cost, or is not
 * supported by libcrypt.
 */
struct mk_str hash_create(struct hash_work *w, enum scheme scheme, unsigned cost, struct mk_str password);

/*
 * The `$apr1$` hash of Apache: 1,000 rounds of MD5. Over libcrypto's MD5; pure.
 */
enum { APR1_DIGITS = 22, APR1_SALT_MAX = 8 };

/*
 * Reads files of users (`name:hash`, as of htpasswd) and of groups (`group: user user`). Pure: bytes in, spans of them
 * out. Empty lines and lines that begin with `#` are skipped.
 */
enum {
    HTPASSWD_BYTES_MAX = 16 * 1024 * 1024,
    HTPASSWD_USERS_MAX = 200000,
    HTPASSWD_LINE_MAX = 1024,
    HTPASSWD_NAME_MAX = 255,
    HTPASSWD_GROUP_LINE_MAX = 65536,
    HTPASSWD_MEMBERS_MAX = 1000000,
};

struct htpasswd_user {
    struct mk_str name, hash;
    enum scheme scheme;
};

struct htpasswd_member {
    struct mk_str group, user;
};

/* A position in a file. Initialized by htpasswd_begin(); after an error `line` and `column` are those of the mistake.
 */
struct htpasswd_reader {
    struct mk_str rest;
    uint32_t line, column;          /* from 1 */
    struct mk_str line_rest, group; /* of a groups file: the members that are left in the line */
    const char *error;              /* a sentence without a full stop, a literal; never has bytes of the file */
};

/* Begins at the start of a file. A byte order mark is skipped. */
void htpasswd_begin(struct htpasswd_reader *r, struct mk_str text);

/*
 * Reads the next user; what follows a second colon of its line is ignored, as Apache does.
 * Returns 1, 0 (the end) or -EINVAL (see `r->error`; the next call continues after the line).
 */
int htpasswd_next_user(struct htpasswd_reader *r, struct htpasswd_user *ret);

/* Reads the next member of a group. A group without members gives one with an empty name. Returns as above. */
int htpasswd_next_member(struct htpasswd_reader *r, struct htpasswd_member *ret);

/*
 * Checks a user's name: 1 to HTPASSWD_NAME_MAX bytes of UTF-8, without a colon (RFC 7617 section 2) and without control
 * bytes. Returns NULL, or a sentence that says what is wrong, and where in `*ret_at`.
 */
const char *htpasswd_check_name(struct mk_str name, size_t *ret_at);

/* Returns true for well-formed UTF-8 (RFC 3629) without control characters. */
bool htpasswd_is_text(struct mk_str text, size_t *ret_at);

/*
 * The credentials of Basic authentication (RFC 7617). Pure.
 */
struct basic_credentials {
    struct mk_str user, password;                              /* in `bytes` */
    char bytes[HTPASSWD_NAME_MAX + 1 + HASH_PASSWORD_MAX + 2]; /* to be wiped; base64 has groups of 3 */
};

enum basic_result {
    BASIC_OK,
    BASIC_NONE,      /* no credentials, or those of another scheme */
    BASIC_MALFORMED, /* not base64, no colon, not UTF-8, control characters, or too long */
};

/* Reads the value of Authorization; `.p` NULL: the request has none. */
enum basic_result basic_read(struct mk_str value, struct basic_credentials *ret);

/*
 * Files of users and of groups in memory, sorted for lookups. Constant once they are loaded; any thread may read them.
 */
/* The users of a file. The strings point into its bytes. */
struct users {
    struct mk_arena arena;
    struct mk_file_bytes bytes;
    struct htpasswd_user *items; /* sorted by name */
    uint32_t n;
    uint32_t n_sha1; /* users whose hash is {SHA} */
};

/* The members of all groups of a file. */
struct groups {
    struct mk_arena arena;
    struct mk_file_bytes bytes;
    struct htpasswd_member *items; /* sorted by group and user */
    uint32_t n;
};

/*
 * Load a file, which must be a regular one. `path` ends with a NUL. May block.
 * Return 0 and the value, or -errno with a sentence in `message`, which names file, line and column of a mistake.
 */
int users_load(const char *path, struct users **ret, struct mk_buf *message);
int groups_load(const char *path, struct groups **ret, struct mk_buf *message);

/* Wipe and free; NULL is allowed. */
void users_free(struct users *u);
void groups_free(struct groups *g);

/* Appends what an operator should know of a file that was loaded: its mode, weak hashes. Nothing: all is well. */
void users_add_warnings(const struct users *u, struct mk_buf *message);

/* Returns the user of that name; NULL if there is none. */
const struct htpasswd_user *users_find(const struct users *u, struct mk_str name);
/* Returns true if a line of the file is that of the group. */
bool groups_have(const struct groups *g, struct mk_str group);
/* Returns true if the user is in the group. */
bool groups_contain(const struct groups *g, struct mk_str group, struct mk_str user);

#endif
