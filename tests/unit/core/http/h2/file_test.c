// SPDX-License-Identifier: Apache-2.0
/* Files on streams of HTTP/2: from the page cache and from the disk, whole and cut off. */
#include "folder.h"
#include "http/h2_fixture.h"
#include "http/disk_fixture.h"

static struct mk_thread_pool jobs;

/* Bytes of the file, as its handler believes. */
static size_t announced;

enum { FILE_BYTES = 1 << 20 };

static void send_file(struct mk_request *req, struct mk_test_fixture *fixture)
{
    int fd = open(mk_test_path("file"), O_RDONLY | O_CLOEXEC);
    remember(req, fixture);
    assert_true(mk_response_write_file(req, fd, 0, announced) >= 0);
    mk_response_end(req);
}

static struct mk_test_h2 open_with_disk(handler_fn *handler)
{
    open_disk_fixture(&w, &jobs, handler);
    struct mk_test_h2 t = h2_connect();
    h2_open_wide(&t);
    return t;
}

static void close_with_disk(struct mk_test_h2 *t)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    h2_close(t);
}

static void wait_for_disk(void)
{
    for (int i = 0; i < 1000 && !w.done; i++)
        if (!mk_test_wait_wakeup(&w))
            break;
    mk_test_settle(&w);
}

TEST(files)
{
    unsigned before = mk_test_descriptors();
    for (int cold = 0; cold < 2; cold++) {
        announced = FILE_BYTES;
        if (cold)
            mk_test_make_cold();
        struct mk_test_h2 t = open_with_disk(send_file);
        h2_get_path(&t, 1, "/");
        mk_test_settle(&w);
        if (!w.done)
            wait_for_disk();
        h2_expect(&t, "1:200,content-length=1048576 1:#1048576!");
        close_with_disk(&t);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

/* A turn ends with a whole write, also where files end within frames: the writes are almost as large as they can be. */
TEST(files_in_whole_writes)
{
    enum { STREAMS = 20, BYTES = 204800 };
    announced = BYTES;
    struct mk_test_h2 t = open_with_disk(send_file);
    unsigned before = t.end->writes;
    for (int32_t i = 0; i < STREAMS; i++)
        h2_get_path(&t, 2 * i + 1, "/");
    mk_test_settle(&w);
    if (w.done < STREAMS)
        wait_for_disk();
    h2_listen(&t);
    for (int32_t i = 0; i < STREAMS; i++)
        assert_int_equal(t.data[i], BYTES);
    assert_true(STREAMS * BYTES / (t.end->writes - before) > 105000);
    close_with_disk(&t);
}

/* Grants windows for three files, of which the third is incremental, until the client has all of them. */
static void take_files(struct mk_test_h2 *t, uint32_t window)
{
    for (size_t n = 0; w.done < 3; n++) {
        size_t before = t->data[0] + t->data[1] + t->data[2];
        assert_true(n < 10000);
        mk_test_settle(&w);
        h2_listen(t);
        if (t->data[0] + t->data[1] + t->data[2] == before)
            mk_test_wait_wakeup(&w); /* a part was not in the page cache */
        for (int32_t id = 1; id <= 5; id += 2)
            h2_window(t, id, window);
        mk_test_take(t->end, 100000);
    }
    mk_test_settle(&w);
    h2_listen(t);
}

/* Payloads are read together; the windows and the socket end within them. */
TEST(files_in_narrow_windows)
{
    static const uint32_t windows[] = {16384, 16385, 50000, 300000};
    for (size_t i = 0; i < COUNT(windows); i++) {
        announced = FILE_BYTES;
        struct mk_test_h2 t = open_with_disk(send_file);
        h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, windows[i]);
        t.end->room = 70000;
        for (int32_t id = 1; id <= 5; id += 2)
            h2_ask(&t, id, "/", id == 5 ? "i" : NULL);
        take_files(&t, windows[i]);
        for (size_t id = 0; id < 3; id++)
            assert_int_equal(t.data[id], FILE_BYTES);
        assert_int_equal(w.aborted, 0);
        close_with_disk(&t);
    }
}

/* The file is shorter than it was. */
TEST(a_file_that_has_shrunk)
{
    unsigned before = mk_test_descriptors();
    announced = FILE_BYTES + 1;
    struct mk_test_h2 t = open_with_disk(send_file);
    h2_get_path(&t, 1, "/");
    mk_test_settle(&w);
    if (!w.done)
        wait_for_disk();
    h2_expect(&t, "1:200,content-length=1048577 1:#1048576 1:RST(2)");
    assert_int_equal(w.aborted, 1);
    close_with_disk(&t);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(a_client_that_resets_a_file)
{
    unsigned before = mk_test_descriptors();
    announced = FILE_BYTES;
    mk_test_make_cold();
    struct mk_test_h2 t = open_with_disk(send_file);
    h2_get_path(&t, 1, "/");
    h2_get_path(&t, 3, "/");
    mk_test_settle(&w);
    h2_rst(&t, 1);
    h2_rst(&t, 3);
    mk_test_settle(&w);
    assert_int_equal(w.done, 2);
    assert_string_equal(mk_test_state(t.end), "idle");
    close_with_disk(&t);
    assert_int_equal(mk_test_descriptors(), before);
}

static int set_up(void **state)
{
    static char bytes[FILE_BYTES];
    if (mk_test_folder_make(state) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = mk_test_byte(i);
    mk_test_write("file", mk_str(bytes, sizeof(bytes)));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
