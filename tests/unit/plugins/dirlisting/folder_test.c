// SPDX-License-Identifier: Apache-2.0
/* Entries of folders: which ones, in batches of any size, and without memory. */
#include "folder.h"

#include "conf/conf.h"
#include "server/generation/generation.h"

#include <errno.h>

#include "plugins/dirlisting/listing.h"

#include <monkey/hooks.h>

enum { FILES = 2400, NAMES = 900, MEMORY_MAX = 64 * 1024 * 1024 };

/* ── a host whose files are those of the test's folder; names with a dot first are hidden ── */

static int open_file(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    struct stat st;
    (void)host;
    if (memmem(path.p, path.len, "/.", 2))
        return -ENOENT;
    int fd = open(mk_test_path(path.p + 1), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    assert_int_equal(fstat(fd, &st), 0);
    bool wrong = S_ISDIR(st.st_mode) && path.p[path.len - 1] != '/';
    assert_true(flags == 0 || S_ISDIR(st.st_mode));
    if (wrong)
        close(fd);
    return wrong ? -EISDIR : fd;
}

static const struct mk_path_hooks file_paths = {.open_path = open_file};
static const struct mk_plugin files = {.name = "files", .paths = &file_paths};
static struct mk_generation generation = {.plugins = {&files}, .n_plugins = 1};
static struct mk_host host = {.generation = &generation};
static const struct listing_rule *rule;
static _Atomic bool cancelled;

static void load_rule(const char *text)
{
    generation.conf = mk__conf_new();
    for (const struct mk_conf_section *s = rules_sections; s->name; s++)
        assert_int_equal(mk__conf_declare(generation.conf, s, "dirlisting"), 0);
    generation.set = mk__conf_set_new(generation.conf, MK_CONF_SCOPE_SERVER);
    host.set = mk__conf_set_new(generation.conf, MK_CONF_SCOPE_HOST);
    mk__conf_read_text(generation.conf, host.set, "test", mk_str_c(text));
    assert_int_equal(mk__conf_check(generation.conf, host.set), 0);
    rule = rules_find(&host, MK_STR("/"));
    assert_non_null(rule);
}

/* ── reading ── */

TEST(entries)
{
    struct folder f;
    struct listing listing;
    char text[256] = "";
    size_t n = 0;
    unsigned names = NAMES;
    assert_int_equal(folder_open(&f, &host, rule, MK_STR("/"), &cancelled), 0);
    assert_int_equal(folder_read(&f, &listing, 1024 * 1024, MEMORY_MAX, &names), 0);
    assert_int_equal(names, NAMES - 11); /* those that are left out, "." and ".." count, too */
    assert_false(listing.more);
    order_sort(&listing, LISTING_BY_NAME, false);
    for (uint32_t i = 0; i < listing.n; i++) {
        const struct listing_entry *e = listing.entries[i];
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s %u, ", e->name, e->is_dir ? "/" : "",
                              e->is_link ? "@" : "", (unsigned)e->bytes);
    }
    assert_string_equal(text, "many/ 0, to-folder/@ 0, a 5, to-file@ 5, ");
    folder_release(&listing);
    assert_str_equal(folder_entry_path(&f, MK_STR("x"), true), "/x/");
    folder_close(&f);
}

static unsigned slices; /* of the last batch */

/* Reads the folder of many files in batches. Returns how many entries there are, or -errno. */
static int count_entries(size_t bytes_max, uint64_t memory_max, unsigned *ret_batches)
{
    static bool seen[FILES];
    struct folder f;
    struct listing listing = {.more = true};
    int n = folder_open(&f, &host, rule, MK_STR("/many/"), &cancelled);
    if (n < 0)
        return n;
    memset(seen, 0, sizeof(seen));
    for (*ret_batches = 0; n >= 0 && listing.more; ++*ret_batches) {
        int err = MK_AGAIN;
        for (slices = 0; err == MK_AGAIN; slices++) {
            unsigned names = NAMES;
            err = folder_read(&f, &listing, bytes_max, memory_max, &names);
            assert_true(err != MK_AGAIN || names == 0);
        }
        assert_true(listing.arena.bytes <= bytes_max + 2 * FOLDER_BATCH_BYTES);
        for (uint32_t i = 0; err == 0 && i < listing.n; i++) {
            unsigned long file = strtoul(listing.entries[i]->name, NULL, 10);
            assert_true(file < FILES && !seen[file]);
            seen[file] = true;
        }
        n = err < 0 ? err : n + (int)listing.n;
        bool more = listing.more;
        folder_release(&listing);
        listing.more = more;
    }
    folder_close(&f);
    return n;
}

TEST(batches)
{
    unsigned batches, before = mk_test_descriptors();
    assert_int_equal(count_entries(16 * 1024 * 1024, MEMORY_MAX, &batches), FILES);
    assert_int_equal(batches, 1);
    assert_int_equal(slices, FILES / NAMES + 1);
    assert_int_equal(count_entries(FOLDER_BATCH_BYTES, MEMORY_MAX, &batches), FILES);
    assert_true(batches > 2);
    assert_int_equal(count_entries(16 * 1024 * 1024, 1, &batches), FILES); /* the memory of all is used up */
    assert_true(batches > 1);
    assert_int_equal(count_entries(16 * 1024 * 1024, MEMORY_MAX, &batches), FILES); /* and was given back */
    assert_int_equal(batches, 1);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(cancelling)
{
    unsigned batches;
    cancelled = true;
    assert_int_equal(count_entries(1024 * 1024, MEMORY_MAX, &batches), -ECANCELED);
    cancelled = false;
}

static int count_all(void *ctx)
{
    unsigned batches;
    (void)ctx;
    int n = count_entries(FOLDER_BATCH_BYTES, MEMORY_MAX, &batches);
    return n < 0 ? n : n == FILES ? 0 : -EPROTO;
}

TEST(without_memory)
{
    unsigned before = mk_test_descriptors();
    assert_true(mk_test_failing_allocs(count_all, NULL) > 4);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(what_cannot_be_opened)
{
    struct folder f;
    static char path[FOLDER_PATH_BYTES + 2];
    memset(path, 'x', sizeof(path));
    path[0] = path[FOLDER_PATH_BYTES] = '/';
    path[FOLDER_PATH_BYTES + 1] = '\0';
    assert_int_equal(folder_open(&f, &host, rule, MK_STR("/none/"), &cancelled), -ENOENT);
    assert_int_equal(folder_open(&f, &host, rule, mk_str(path, FOLDER_PATH_BYTES + 1), &cancelled), -ENAMETOOLONG);
}

TEST(files)
{
    struct folder f;
    static char text[LISTING_README_BYTES];
    assert_int_equal(folder_open(&f, &host, rule, MK_STR("/"), &cancelled), 0);
    assert_int_equal(folder_read_file(&f, MK_STR("a"), text), 5);
    assert_memory_equal(text, "hello", 5);
    assert_int_equal(folder_read_file(&f, MK_STR("none"), text), -ENOENT);
    assert_int_equal(folder_read_file(&f, MK_STR("many"), text), -EISDIR);
    assert_int_equal(folder_read_file(&f, MK_STR(".dot"), text), -ENOENT);
    folder_close(&f);
    assert_true(folder_has_index(&host, MK_STR("/a")));
    assert_false(folder_has_index(&host, MK_STR("/many/")));
}

static int set_up(void **state)
{
    char name[32];
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_write("a", MK_STR("hello"));
    mk_test_write("b.bak", MK_STR("hidden by a rule"));
    mk_test_write(".dot", MK_STR("hidden by the host"));
    mk_test_mkdir("many");
    mk_test_mkdir("off");
    mk_test_link("a", "to-file");
    mk_test_link("many", "to-folder");
    mk_test_link("none", "to-nothing");
    if (mkfifo(mk_test_path("fifo"), 0644) < 0)
        return -1;
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "many/%d", i);
        mk_test_write(name, MK_STR(""));
    }
    load_rule("[DIRLISTING]\n Match /off\n Enabled Off\n[DIRLISTING]\n Hidden *.bak\n");
    return 0;
}

static int tear_down(void **state)
{
    mk__conf_free(generation.conf);
    return mk_test_folder_remove(state);
}

TEST_FILE(set_up, tear_down)
