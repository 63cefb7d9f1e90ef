// SPDX-License-Identifier: Apache-2.0
/* Broadcasts: which connections get them, in which order, in slices, and while WebSockets come, go and move. */
#include "fixture.h"

#include <pthread.h>
#include <sys/epoll.h>

/* What the loop does when the eventfd is readable. */
static void deliver(struct fixture *f)
{
    mk__ws_deliver(&f->worker->event, EPOLLIN);
    mk_test_settle(&f->fixture);
}

static struct peer *join(struct fixture *f, int channel)
{
    struct peer *p = connect_as(f, &(struct mk_ws_negotiated){0}, channel);
    assert_logged(f, "open\n");
    return p;
}

static int say(struct fixture *f, int channel, const char *text, const struct mk_ws *except)
{
    return mk_ws_broadcast(f->group, channel, MK_WS_TEXT, text, strlen(text), except);
}

TEST(channels)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *a = join(&f, 1), *b = join(&f, 1), *c = join(&f, 2), *d = join(&f, MK_WS_ALL_CHANNELS);
    assert_int_equal(mk_ws_group_count(f.group), 4);
    assert_int_equal(say(&f, 1, "one", a->ws), 0);
    assert_int_equal(say(&f, 2, "two", NULL), 0);
    assert_int_equal(say(&f, MK_WS_ALL_CHANNELS, "all", d->ws), 0);
    assert_int_equal(say(&f, 3, "none", NULL), 0);
    deliver(&f);
    assert_sent_text(a, "\x81\x03"
                        "all");
    assert_sent_text(b, "\x81\x03"
                        "one\x81\x03"
                        "all");
    assert_sent_text(c, "\x81\x03"
                        "two\x81\x03"
                        "all");
    assert_sent_text(d, "");
    assert_int_equal(mk_ws_set_channel(c->ws, 1), 0);
    assert_int_equal(mk_ws_set_channel(a->ws, MK_WS_ALL_CHANNELS), 0);
    assert_int_equal(mk_ws_channel(c->ws), 1);
    assert_int_equal(say(&f, 1, "moved", NULL), 0);
    deliver(&f);
    assert_sent_text(a, "");
    assert_sent_text(b, "\x81\x05moved");
    assert_sent_text(c, "\x81\x05moved");
    assert_int_equal(atomic_load(&f.group->pending_bytes), 0);
    disconnect(a);
    disconnect(b);
    disconnect(c);
    disconnect(d);
    fixture_close(&f);
}

/* Frames of clients are masked: a block for many cannot be. */
TEST(a_client_gets_masked_frames)
{
    const struct mk__ws_rules rules = {.masked = true, .rsv1 = false, .frame_max = FIXTURE_BYTES};
    static char text[3000];
    struct fixture f;
    fixture_open(&f);
    memset(text, 'a', sizeof(text) - 1);
    for (int deflate = 0; deflate < 2; deflate++) {
        const struct mk_ws_negotiated negotiated = {
            .is_client = true, .deflate = deflate, .send_context = true, .send_bits = 15, .receive_bits = 15};
        struct peer *p = connect_as(&f, &negotiated, 1);
        assert_logged(&f, "open\n");
        assert_int_equal(say(&f, 1, text, NULL), 0);
        deliver(&f);
        struct mk__ws_head head;
        const char *reason = "";
        int size = mk__ws_head_parse(p->out, p->out_len, &rules, &head, &reason);
        if (size <= 0)
            fail_msg("%d: %s", size, reason);
        assert_int_equal(head.opcode, MK__WS_OP_TEXT);
        assert_int_equal(head.len, sizeof(text) - 1);
        assert_int_equal((size_t)size + head.len, p->out_len);
        mk__ws_mask(p->out + size, p->out + size, head.len, head.key, 0);
        assert_memory_equal(p->out + size, text, head.len);
        disconnect(p);
        f.log[0] = '\0';
    }
    fixture_close(&f);
}

/* Messages to one channel leave in one write; others are not waited for. */
TEST(batches)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *a = join(&f, 1), *b = join(&f, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(say(&f, 1, "x", i == 1 ? b->ws : NULL), 0);
    deliver(&f);
    assert_int_equal(a->writes, 1);
    assert_int_equal(b->writes, 1);
    assert_sent_text(a, "\x81\x01x\x81\x01x\x81\x01x");
    assert_sent_text(b, "\x81\x01x\x81\x01x");
    for (int i = 0; i < 4; i++)
        assert_int_equal(say(&f, i == 2 ? MK_WS_ALL_CHANNELS : 1, i == 2 ? "y" : "x", NULL), 0);
    deliver(&f);
    assert_int_equal(a->writes, 1 + 3);
    assert_sent_text(a, "\x81\x01x\x81\x01x\x81\x01y\x81\x01x");
    disconnect(a);
    disconnect(b);
    fixture_close(&f);
}

/* Short and long messages in a batch keep their order, also where a part of them has to wait. */
TEST(batches_that_wait)
{
    static char large[10000], all[64 * 1024];
    struct fixture f;
    memset(large, 'l', sizeof(large) - 1);
    for (size_t room = 0; room < 30000; room += 997) {
        fixture_open(&f);
        struct peer *a = join(&f, 1);
        size_t n = 0;
        a->room = room;
        for (int i = 0; i < 6; i++) {
            const char *text = i % 3 == 1 ? large : "short";
            assert_int_equal(say(&f, 1, text, NULL), 0);
            n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i % 3 == 1 ? "\x81~\x27\x0f" : "\x81\x05", text);
        }
        deliver(&f);
        assert_int_equal(a->out_len, room < n ? room : n);
        a->room = FIXTURE_BYTES;
        run(a, MK_TUNNEL_WRITE);
        assert_int_equal(a->out_len, n);
        assert_memory_equal(a->out, all, n);
        disconnect(a);
        fixture_close(&f);
    }
}

TEST(many_channels)
{
    enum { N = 500 };
    static struct peer *peers[N];
    struct fixture f;
    fixture_open(&f);
    for (int i = 0; i < N; i++)
        peers[i] = join(&f, i * 16);
    for (int i = 0; i < N; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%04d", i);
        assert_int_equal(say(&f, i * 16, text, NULL), 0);
    }
    deliver(&f);
    for (int i = 0; i < N; i++) {
        char frame[24];
        snprintf(frame, sizeof(frame), "\x81\x04%04d", i);
        assert_sent(peers[i], frame, 6);
        disconnect(peers[i]);
    }
    assert_int_equal(f.worker->channels.n, 0);
    fixture_close(&f);
}

static struct peer *victims[3];

/* The first of them to fail ends all others, among them the next receivers. */
static void end_victims(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx)
{
    see_close(ws, code, reason, ctx);
    for (unsigned i = 0; i < 3; i++)
        if (victims[i]->ws)
            mk_ws_abort(victims[i]->ws);
}

TEST(receivers_that_end_meanwhile)
{
    for (unsigned bad = 0; bad < 3; bad++) {
        for (int channel = -1; channel < 1; channel++) {
            struct fixture f;
            fixture_open(&f);
            f.settings.handlers.on_close = end_victims;
            for (unsigned i = 0; i < 3; i++)
                victims[i] = join(&f, channel);
            victims[bad]->error = -EPIPE;
            assert_int_equal(say(&f, channel, "x", NULL), 0);
            assert_int_equal(say(&f, channel, "y", NULL), 0);
            deliver(&f);
            assert_int_equal(mk_ws_group_count(f.group), 0);
            for (unsigned i = 0; i < 3; i++)
                disconnect(victims[i]);
            fixture_close(&f);
        }
    }
}

/* More receivers than one turn takes; some leave between the slices. */
TEST(slices)
{
    enum { N = 3000 };
    static struct mk_ws *all[N];
    static struct peer peer; /* its bytes are those of all */
    struct fixture f;
    fixture_open(&f);
    f.settings.handlers = (struct mk_ws_handlers){0};
    memset(&peer, 0, sizeof(peer));
    peer.fixture = &f;
    peer.room = SIZE_MAX / 2;
    for (int i = 0; i < N; i++) {
        all[i] = mk_ws_open(f.worker, &f.settings, &(struct mk_ws_negotiated){0}, -1, &peer, &peer_ops, &peer);
        assert_non_null(all[i]);
        mk_ws_run(all[i], MK_TUNNEL_WRITE);
    }
    assert_int_equal(say(&f, -1, "x", NULL), 0);
    mk__ws_deliver(&f.worker->event, EPOLLIN);
    size_t first = peer.out_len / 3;
    assert_true(first > 0 && first < N);
    for (int i = (int)first - 5; i < (int)first + 5; i++) { /* around the cursor */
        mk_ws_abort(all[i]);
        all[i] = NULL;
        peer.ended = false;
    }
    mk_test_settle(&f.fixture);
    assert_int_equal(peer.out_len, 3 * (N - 5));
    for (int i = 0; i < N; i++) {
        if (all[i])
            mk_ws_abort(all[i]);
        peer.ended = false;
    }
    fixture_close(&f);
}

/* All receivers leave the channel and come back between two slices. */
TEST(coming_back_between_slices)
{
    enum { N = 3000 };
    static struct mk_ws *all[N];
    static struct peer peer; /* its bytes are those of all */
    struct fixture f;
    fixture_open(&f);
    f.settings.handlers = (struct mk_ws_handlers){0};
    memset(&peer, 0, sizeof(peer));
    peer.fixture = &f;
    peer.room = SIZE_MAX / 2;
    for (int i = 0; i < N; i++) {
        all[i] = mk_ws_open(f.worker, &f.settings, &(struct mk_ws_negotiated){0}, 5, &peer, &peer_ops, &peer);
        assert_non_null(all[i]);
        mk_ws_run(all[i], MK_TUNNEL_WRITE);
    }
    assert_int_equal(say(&f, 5, "x", NULL), 0);
    mk__ws_deliver(&f.worker->event, EPOLLIN);
    size_t before = peer.out_len / 3;
    assert_true(before > 0 && before < N);
    for (int i = 0; i < N; i += 2) {
        assert_int_equal(mk_ws_set_channel(all[i], 6), 0);
        assert_int_equal(mk_ws_set_channel(all[i], 5), 0);
    }
    mk_test_settle(&f.fixture);
    assert_true(peer.out_len / 3 <= N); /* none twice; those that had left may miss it */
    assert_true(peer.out_len / 3 >= N / 2);
    for (int i = 0; i < N; i++) {
        mk_ws_abort(all[i]);
        peer.ended = false;
    }
    fixture_close(&f);
}

TEST(slow_readers)
{
    for (int drop = 0; drop < 2; drop++) {
        struct fixture f;
        fixture_open(&f);
        f.settings.queue_bytes_max = 20;
        f.settings.overflow = drop ? MK_WS_OVERFLOW_DROP : MK_WS_OVERFLOW_CLOSE;
        struct peer *slow = join(&f, 1), *fast = join(&f, 1);
        slow->room = 0;
        for (int i = 0; i < 5; i++)
            assert_int_equal(say(&f, 1, "12345678", NULL), 0);
        deliver(&f);
        assert_int_equal(fast->out_len, 50);
        assert_true(drop ? slow->ws && mk_ws_queued_bytes(slow->ws) == 20 : !slow->ws);
        assert_logged(&f, drop ? "" : "close 1008 \"reads too slowly\"\n");
        if (drop) {
            slow->room = 1000;
            run(slow, MK_TUNNEL_WRITE);
            assert_sent_text(slow, "\x81\x08"
                                   "12345678\x81\x08"
                                   "12345678");
        }
        disconnect(slow);
        disconnect(fast);
        fixture_close(&f);
    }
}

/* Behind what was broadcast before, also in one batch; what follows does not reach them. */
TEST(the_end_of_a_channel)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *a = join(&f, 1), *b = join(&f, 1), *c = join(&f, 2);
    assert_int_equal(say(&f, 1, "last", NULL), 0);
    assert_int_equal(mk_ws_broadcast_close(f.group, 1, 4000, MK_STR("over")), 0);
    assert_int_equal(say(&f, 1, "late", NULL), 0);
    deliver(&f);
    assert_sent_text(a, "\x81\x04last\x88\x06\x0f\xa0over");
    assert_sent_text(b, "\x81\x04last\x88\x06\x0f\xa0over");
    assert_sent_text(c, "");
    assert_int_equal(mk_ws_broadcast_close(f.group, MK_WS_ALL_CHANNELS, 0, MK_STR_NONE), 0);
    deliver(&f);
    assert_sent_text(a, "");
    assert_sent_text(c, "\x88\x00");
    assert_int_equal(atomic_load(&f.group->pending_bytes), 0);
    disconnect(a);
    disconnect(b);
    disconnect(c);
    fixture_close(&f);
}

TEST(limits)
{
    static char text[32 * 1024 * 1024];
    struct fixture f;
    fixture_open(&f);
    assert_int_equal(mk_ws_broadcast(f.group, -1, MK_WS_PING, "", 0, NULL), -EINVAL);
    assert_int_equal(mk_ws_broadcast(f.group, -1, MK_WS_BINARY, text, 64 * 1024 * 1024 + 1, NULL), -EMSGSIZE);
    assert_int_equal(mk_ws_broadcast(f.group, -1, MK_WS_BINARY, text, sizeof(text), NULL), 0);
    assert_int_equal(mk_ws_broadcast(f.group, -1, MK_WS_BINARY, text, sizeof(text), NULL), -EAGAIN);
    deliver(&f);
    assert_int_equal(mk_ws_broadcast(f.group, -1, MK_WS_BINARY, text, sizeof(text), NULL), 0);
    fixture_close(&f); /* with a message under way */
}

/* ── threads ── */

enum { THREADS = 4, MESSAGES = 2000 };

static void *say_many(void *arg)
{
    struct fixture *f = arg;
    for (unsigned i = 0; i < MESSAGES; i++)
        if (mk_ws_broadcast(f->group, 1, MK_WS_BINARY, &i, sizeof(i), NULL) < 0)
            return arg;
    return NULL;
}

/* Several threads at once: each message arrives once, those of one thread in order. */
TEST(threads)
{
    struct fixture f;
    pthread_t threads[THREADS];
    unsigned expected[MESSAGES] = {0};
    fixture_open(&f);
    struct peer *p = join(&f, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, say_many, &f), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    deliver(&f);
    assert_int_equal(p->out_len, THREADS * MESSAGES * 6);
    for (size_t at = 0; at < p->out_len; at += 6) {
        unsigned i;
        memcpy(&i, p->out + at + 2, sizeof(i));
        assert_in_range(i, 0, MESSAGES - 1);
        assert_true(i == 0 || expected[i] < expected[i - 1]); /* a thread has sent the one before */
        expected[i]++;
    }
    disconnect(p);
    fixture_close(&f);
}

/* The part of a thread that has ended serves the next one, without what was said meanwhile. */
TEST(a_worker_comes_back)
{
    struct fixture f;
    fixture_open(&f);
    struct mk_ws_worker *before = f.worker;
    mk_ws_worker_put(f.worker);
    assert_int_equal(say(&f, -1, "lost", NULL), 0);
    f.worker = mk_ws_worker_get(f.group, &f.fixture.loop, &f.fixture.account, NULL, NULL);
    assert_ptr_equal(f.worker, before);
    assert_ptr_equal(mk_ws_worker_get(f.group, &f.fixture.loop, &f.fixture.account, NULL, NULL), before);
    mk_ws_worker_put(before);
    struct peer *p = join(&f, -1);
    assert_int_equal(say(&f, -1, "new", NULL), 0);
    deliver(&f);
    assert_sent_text(p, "\x81\x03new");
    disconnect(p);
    fixture_close(&f);
}

/* A thread with its own account, which compresses and decompresses, and ends. */
static void *serve(void *arg)
{
    static const struct mk_ws_negotiated negotiated = {.deflate = true, .send_bits = 15, .receive_bits = 15};
    struct fixture *f = arg;
    char text[200];
    memset(text, 'x', sizeof(text));
    struct mk_account *account = test_calloc(1, sizeof(*account));
    assert_int_equal(mk_test_fixture_open(&f->fixture, NULL), 0);
    f->worker = mk_ws_worker_get(f->group, &f->fixture.loop, account, NULL, NULL);
    assert_non_null(f->worker);
    struct peer *p = connect_as(f, &negotiated, 1);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, text, sizeof(text)), 0);
    assert_true(p->out[0] & 0x40);
    feed_frame(p, 0xc1, "\xca\x48\xcd\xc9\xc9\x07\x00", 7);
    run(p, MK_TUNNEL_READ);
    assert_non_null(strstr(f->log, "text \"hello\""));
    disconnect(p);
    mk_test_fixture_close(&f->fixture);
    test_free(account);
    return NULL;
}

TEST(a_worker_whose_thread_has_ended)
{
    struct fixture f = {0};
    pthread_t thread;
    f.settings = (struct mk_ws_settings){.handlers = {see_open, see_message, see_ping, see_writable, see_close}};
    f.group = mk_ws_group_new();
    assert_non_null(f.group);
    assert_int_equal(pthread_create(&thread, NULL, serve, &f), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(mk_ws_group_count(f.group), 0);
    mk_ws_worker_put(f.worker);
    mk_ws_group_free(f.group);
}

static int say_without_memory(void *ctx)
{
    struct fixture *f = ctx;
    int err = say(f, -1, "x", NULL);
    deliver(f);
    return err;
}

TEST(without_memory)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = join(&f, 1);
    assert_true(mk_test_failing_allocs(say_without_memory, &f) >= 2);
    assert_int_equal(atomic_load(&f.group->pending_bytes), 0);
    disconnect(p);
    fixture_close(&f);
}
