// SPDX-License-Identifier: Apache-2.0
/*
 * mk_passwd: creates and changes the files of users that the plugin auth reads.
 */
#include "../passwords.h"
#include "passwd.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "usage: mk_passwd [OPTION...] FILE USER\n"
    "\n"
    "Adds a user to a file of passwords for the plugin auth of monkey, or sets a new password. The password is asked\n"
    "for without echo, or is the first line of the standard input if that is not a terminal.\n"
    "\n"
    "  -c, --create        create FILE, which must not exist, with mode 600\n"
    "  -D, --delete        delete the user\n"
    "  -v, --verify        check the password of the user\n"
    "  -t, --type=TYPE     the kind of hash: yescrypt (the default), bcrypt, sha512, sha256, apr1\n"
    "  -C, --cost=N        yescrypt: 1 to 7 (default 5), bcrypt: 4 to 13 (default 10),\n"
    "                      sha512 and sha256: 1000 to 999999 rounds (default 5000)\n"
    "  -i, --stdin         read the password from the standard input even if that is a terminal\n"
    "  -h, --help          print this\n"
    "\n"
    "FILE is replaced as a whole and keeps its owner and mode. A running server reads it again by itself.\n"
    "Exit codes: 0 done, 1 a file or the password cannot be used, 2 wrong usage, 3 wrong password or no such user.\n";

static const struct option longs[] = {
    {"create", no_argument, NULL, 'c'},     {"delete", no_argument, NULL, 'D'},
    {"verify", no_argument, NULL, 'v'},     {"stdin", no_argument, NULL, 'i'},
    {"type", required_argument, NULL, 't'}, {"cost", required_argument, NULL, 'C'},
    {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0},
};

/* The kinds that can be made, and the costs that the server accepts. */
static const struct {
    const char *name;
    enum scheme scheme;
    unsigned cost_min, cost, cost_max;
} types[] = {
    {"yescrypt", SCHEME_YESCRYPT, 1, 5, 7},
    {"bcrypt", SCHEME_BCRYPT, 4, 10, SCHEME_BCRYPT_COST_MAX},
    {"sha512", SCHEME_SHA512, 1000, 5000, SCHEME_ROUNDS_MAX},
    {"sha256", SCHEME_SHA256, 1000, 5000, SCHEME_ROUNDS_MAX},
    {"apr1", SCHEME_APR1, 0, 0, 0},
};

enum { TYPES = MK_COUNT_OF(types) };

static bool fail_usage(int *ret_code, const char *message)
{
    fprintf(stderr, "mk_passwd: %s\nTry mk_passwd --help.\n", message);
    *ret_code = EXIT_USAGE;
    return false;
}

static bool set_action(struct options *o, enum action action, int *ret_code)
{
    if (o->action != ACTION_SET && o->action != action)
        return fail_usage(ret_code, "only one of --create, --delete and --verify can be given");
    o->action = action;
    return true;
}

/* What the options say, before they are checked. */
struct given {
    const char *type, *cost;
};

static bool read_option(struct options *o, struct given *given, int c, int *ret_code)
{
    switch (c) {
    case 'c':
        return set_action(o, ACTION_CREATE, ret_code);
    case 'D':
        return set_action(o, ACTION_DELETE, ret_code);
    case 'v':
        return set_action(o, ACTION_VERIFY, ret_code);
    case 'i':
        o->from_stdin = true;
        return true;
    case 't':
        given->type = optarg;
        return true;
    case 'C':
        given->cost = optarg;
        return true;
    case 'h':
        fputs(help, stdout);
        *ret_code = EXIT_DONE;
        return false;
    default: /* getopt_long() has printed a message */
        *ret_code = EXIT_USAGE;
        return false;
    }
}

static bool read_cost(struct options *o, const struct given *given, unsigned type, int *ret_code)
{
    char *end = NULL, message[128];
    unsigned long cost = given->cost ? strtoul(given->cost, &end, 10) : types[type].cost;
    o->cost = (unsigned)cost;
    if (given->cost && !types[type].cost_max)
        return fail_usage(ret_code, "this type has no cost");
    if (cost >= types[type].cost_min && cost <= types[type].cost_max && (!given->cost || (end > given->cost && !*end)))
        return true;
    snprintf(message, sizeof(message), "the cost of %s is a number from %u to %u", types[type].name,
             types[type].cost_min, types[type].cost_max);
    return fail_usage(ret_code, message);
}

static bool read_type(struct options *o, const struct given *given, int *ret_code)
{
    unsigned i = 0;
    while (given->type && i < TYPES && strcmp(given->type, types[i].name) != 0)
        i++;
    if (i == TYPES)
        return fail_usage(ret_code, "the type is yescrypt, bcrypt, sha512, sha256 or apr1");
    o->scheme = types[i].scheme;
    return read_cost(o, given, i, ret_code);
}

static bool read_user(struct options *o, const char *user, int *ret_code)
{
    size_t at;
    o->user = mk_str_c(user);
    const char *error = htpasswd_check_name(o->user, &at);
    if (!error && user[0] == '#')
        error = "the name of a user cannot begin with #, which begins a comment";
    return error ? fail_usage(ret_code, error) : true;
}

bool options_read(struct options *o, int argc, char **argv, int *ret_code)
{
    struct given given = {NULL, NULL};
    int c;
    *o = (struct options){.action = ACTION_SET};
    while ((c = getopt_long(argc, argv, "cDvit:C:h", longs, NULL)) != -1)
        if (!read_option(o, &given, c, ret_code))
            return false;
    if (argc - optind == 3)
        return fail_usage(ret_code, "a password on the command line can be seen by all users of the machine: leave it "
                                    "out, and mk_passwd asks for it, or write it to the standard input");
    if (argc - optind != 2)
        return fail_usage(ret_code, "the file and the name of the user are needed");
    o->path = argv[optind];
    return read_type(o, &given, ret_code) && read_user(o, argv[optind + 1], ret_code);
}

enum { WEAK_BYTES = 8, BCRYPT_BYTES_MAX = 72 };

static int print_failure(const char *path, const char *reason)
{
    fprintf(stderr, "mk_passwd: %s: %s\n", path, reason);
    return EXIT_FAILED;
}

static int fail_errno(const char *path, int err)
{
    static const struct {
        int err;
        const char *reason;
    } reasons[] = {
        {-EAGAIN, "another mk_passwd changes this folder, and has not finished within 10 seconds"},
        {-EFBIG, "the file has more than 16 MiB"},
        {-EISDIR, "this is not a regular file"},
        {-ENOLINK, "this is a link to a file that does not exist: remove the link, or name the file itself"},
        {-EPERM, "only root can replace a file of another owner or group; nothing was changed"},
    };
    for (unsigned i = 0; i < MK_COUNT_OF(reasons); i++)
        if (reasons[i].err == err)
            return print_failure(path, reasons[i].reason);
    return print_failure(path, strerror(-err));
}

/* ── passwords ── */

static int explain_prompt(int err)
{
    fprintf(stderr, "mk_passwd: %s\n",
            err == -E2BIG     ? "a password has at most 511 bytes"
            : err == -EILSEQ  ? "the two passwords are not the same; nothing was changed"
            : err == -ENODATA ? "there is no password in the standard input"
            : err == -EINTR   ? "interrupted; nothing was changed"
                              : strerror(-err));
    return EXIT_FAILED;
}

/* Returns what is wrong with a new password, or NULL. */
static const char *find_password_error(const struct options *o, struct mk_str password)
{
    size_t at;
    if (!password.len)
        return "an empty password is not accepted; nothing was changed";
    if (!htpasswd_is_text(password, &at))
        return "the password has a control character or is not UTF-8, so that no client can send it";
    if (o->scheme == SCHEME_BCRYPT && password.len > BCRYPT_BYTES_MAX)
        return "bcrypt uses only the first 72 bytes of a password: choose another type";
    return NULL;
}

static int make_hash(const struct options *o, struct hash_work *w, struct mk_str *ret)
{
    char bytes[HASH_PASSWORD_MAX + 1];
    int len = prompt_read(bytes, sizeof(bytes), o->from_stdin, true);
    if (len < 0)
        return explain_prompt(len);
    struct mk_str password = mk_str(bytes, (size_t)len);
    const char *error = find_password_error(o, password);
    if (!error && len < WEAK_BYTES)
        fprintf(stderr, "mk_passwd: warning: a password of less than %d bytes is guessed easily\n", WEAK_BYTES);
    *ret = error ? MK_STR_NONE : hash_create(w, o->scheme, o->cost, password);
    explicit_bzero(bytes, sizeof(bytes));
    if (!ret->p)
        fprintf(stderr, "mk_passwd: %s\n", error ? error : "libcrypt on this machine cannot make this type of hash");
    return ret->p ? EXIT_DONE : EXIT_FAILED;
}

/* ── actions ── */

/* The mode stays as it was: the server may read the file in this way only. */
static void warn_of_mode(const struct store *s, const char *path)
{
    if (s->exists && (s->st.st_mode & S_IROTH))
        fprintf(stderr,
                "mk_passwd: warning: %s: all users of the machine can read the hashes of this file (chmod 640)\n",
                path);
}

static int fail_replace(const struct store *s, const char *path, int err)
{
    char name[STORE_NAME_BYTES], reason[STORE_NAME_BYTES + 128];
    if (err == -EACCES || err == -EROFS)
        return print_failure(path, "this user cannot write to the folder of the file; nothing was changed");
    if (err != -EEXIST)
        return fail_errno(path, err == -ENOBUFS ? -EFBIG : err);
    store_temporary_name(s, name, sizeof(name));
    snprintf(reason, sizeof(reason),
             "the temporary file %s of a mk_passwd that was killed is in the folder: remove it; nothing was changed",
             name);
    return print_failure(path, reason);
}

static int replace_file(struct store *s, const struct options *o, struct mk_buf *text)
{
    int err = text->err < 0 ? text->err : store_replace(s, mk_buf_str(text));
    if (err < 0)
        return fail_replace(s, o->path, err);
    warn_of_mode(s, o->path);
    return EXIT_DONE;
}

/* Checks whether the file exists as the action needs it. */
static int check_existence(const struct store *s, const struct options *o)
{
    if (o->action == ACTION_CREATE && s->exists)
        return print_failure(o->path, "the file exists already: leave out -c to add a user");
    if (o->action != ACTION_CREATE && !s->exists)
        return print_failure(o->path, "there is no such file: create it with -c");
    return EXIT_DONE;
}

static int set_password(struct store *s, const struct options *o, struct mk_str hash, struct mk_buf *text)
{
    bool found = edit_set(text, mk_buf_str(&s->text), o->user, hash);
    int code = replace_file(s, o, text);
    if (code == EXIT_DONE)
        fprintf(stderr, "mk_passwd: %s user %.*s (%s)\n", found ? "changed the password of" : "added",
                MK_STR_ARG(o->user), scheme_name(o->scheme));
    return code;
}

static int report_missing(const struct options *o)
{
    fprintf(stderr, "mk_passwd: %s: there is no user %.*s\n", o->path, MK_STR_ARG(o->user));
    return EXIT_WRONG;
}

static int delete_user(struct store *s, const struct options *o, struct mk_buf *text)
{
    if (!edit_delete(text, mk_buf_str(&s->text), o->user))
        return report_missing(o);
    int code = replace_file(s, o, text);
    if (code == EXIT_DONE)
        fprintf(stderr, "mk_passwd: deleted user %.*s\n", MK_STR_ARG(o->user));
    return code;
}

static int verify_password(struct store *s, const struct options *o, struct hash_work *w)
{
    char bytes[HASH_PASSWORD_MAX + 1];
    struct scheme_fault fault;
    struct mk_str hash;
    if (!edit_find(mk_buf_str(&s->text), o->user, &hash))
        return report_missing(o);
    int scheme = scheme_parse(hash, &fault);
    if (scheme < 0) {
        fprintf(stderr, "mk_passwd: %s: user %.*s: %s\n", o->path, MK_STR_ARG(o->user), fault.sentence);
        return EXIT_FAILED;
    }
    int len = prompt_read(bytes, sizeof(bytes), o->from_stdin, false);
    if (len < 0)
        return explain_prompt(len);
    bool right = hash_matches(w, (enum scheme)scheme, mk_str(bytes, (size_t)len), hash);
    explicit_bzero(bytes, sizeof(bytes));
    fprintf(stderr, "mk_passwd: the password is %s\n", right ? "right" : "wrong");
    return right ? EXIT_DONE : EXIT_WRONG;
}

/* What is done with the file, which is locked unless the action is ACTION_VERIFY. */
static int run_action(struct store *s, const struct options *o, struct hash_work *w, struct mk_str hash)
{
    struct mk_buf text;
    int code = check_existence(s, o);
    if (code != EXIT_DONE)
        return code;
    mk_buf_init(&text, HTPASSWD_BYTES_MAX);
    if (o->action == ACTION_DELETE)
        code = delete_user(s, o, &text);
    else if (o->action == ACTION_VERIFY)
        code = verify_password(s, o, w);
    else
        code = set_password(s, o, hash, &text);
    mk_buf_release(&text);
    return code;
}

/* Asks for a new password before the file is locked. */
static int ask_password(const struct options *o, struct hash_work *w, struct mk_str *ret_hash)
{
    struct store s;
    int err = store_open(&s, o->path, false);
    int code = err < 0 ? fail_errno(o->path, err) : check_existence(&s, o);
    store_close(&s);
    return code == EXIT_DONE ? make_hash(o, w, ret_hash) : code;
}

static int run_options(const struct options *o, struct hash_work *w)
{
    struct store s;
    struct mk_str hash = MK_STR_NONE;
    int code = o->action == ACTION_SET || o->action == ACTION_CREATE ? ask_password(o, w, &hash) : EXIT_DONE;
    if (code != EXIT_DONE)
        return code;
    int err = store_open(&s, o->path, o->action != ACTION_VERIFY);
    code = err < 0 ? fail_errno(o->path, err) : run_action(&s, o, w, hash);
    store_close(&s);
    return code;
}

int main(int argc, char **argv)
{
    struct options o;
    int code;
    if (!options_read(&o, argc, argv, &code))
        return code;
    struct hash_work *w = hash_work_new();
    code = w ? run_options(&o, w) : print_failure(o.path, strerror(ENOMEM));
    hash_work_free(w);
    return code;
}
