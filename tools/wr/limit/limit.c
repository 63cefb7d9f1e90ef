// SPDX-License-Identifier: Apache-2.0
/*
 * wr-limit: the least that a server can do for a workload. One thread, epoll edge-triggered; finds the end of a request
 * head, takes the path as it is, and answers with a fixed head and a file below ROOT, or with one text, in one of six
 * ways (struct mode). All answers from memory to the requests of one read are one write. Listens on 127.0.0.1 only.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HELLO_PATH "/hello/"
#define HELLO_BODY "Hello, world\n"

enum { SLICE = 256 * 1024, IN_BYTES = 16 * 1024, BATCH = 256, GATHERED = 64, SLOTS = 1 << 17, NAME_MAX_BYTES = 256 };

static const struct mode {
    const char *name;
    bool memory, opens; /* bodies are in memory; files are opened for each request */
    size_t slice;       /* bytes of a body that are sent before other connections have their turn */
    bool hello;         /* HELLO_BODY at HELLO_PATH instead of files, with the fields of an answer of a web service */
    bool upload;        /* requests have bodies with a length, which are dropped */
    unsigned wait_us;   /* before the answers to the requests of a read */
} modes[] = {
    {.name = "memory", .memory = true, .slice = SIZE_MAX},
    {.name = "descriptor", .slice = SIZE_MAX},
    {.name = "open", .opens = true, .slice = SIZE_MAX},
    {.name = "sliced", .slice = SLICE},
    {.name = "hello", .memory = true, .slice = SIZE_MAX, .hello = true},
    {.name = "upload", .memory = true, .slice = SIZE_MAX, .upload = true},
    {.name = "slow", .memory = true, .slice = SIZE_MAX, .wait_us = 2000},
};

/* What is known of a path since its first request. */
struct file {
    char name[NAME_MAX_BYTES];
    size_t name_len, size;
    int fd;
    struct head {
        char *bytes; /* in memory, the body follows */
        size_t len, all, date_at;
        time_t date; /* of its Date field */
    } heads[2];      /* for keep-alive, and with Connection: close */
};

/* A connection, at the index of its descriptor. */
struct conn {
    const struct file *file; /* its answer is sent; NULL: none */
    const struct head *head;
    size_t at; /* bytes of the answer that are sent */
    int file_fd;
    bool queued;
    size_t unread; /* bytes of a body, behind which the answer `head` is sent */
    size_t in_len;
    char *in; /* requests behind that answer, or the beginning of one; NULL: none */
};

struct request {
    const struct file *file;
    const struct head *head;
    size_t end;    /* of the request, in the bytes that were read */
    size_t unread; /* bytes of its body that were not read */
};

static const struct mode *mode;
static struct file *files[SLOTS], missing = {.fd = -1};
static unsigned files_n;
static struct conn *conns;
static int root, epoll, *queue, queue_n; /* `queue`: connections whose slice is used up */
static char in[IN_BYTES];

static void *allocate_memory(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (p)
        return p;
    fputs("wr-limit: memory is exhausted\n", stderr);
    exit(1);
}

static int open_file(const struct file *f)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    return f->name_len < 2 ? -1 : (int)syscall(SYS_openat2, root, f->name + 1, &how, sizeof(how));
}

/* Writes the fields before Content-Length: as many as those of a web service, or of a file that can be validated. */
static void format_fields(char *ret, size_t size, time_t now)
{
    strftime(ret, size,
             mode->hello ? "Server: wr-limit/1.00\r\nDate: %a, %d %b %Y %H:%M:%S GMT\r\n"
                         : "Server: wr-limit/1.00\r\nDate: %a, %d %b %Y %H:%M:%S GMT\r\n"
                           "Last-Modified: %a, %d %b %Y %H:%M:%S GMT\r\nETag: \"0000-0000000000000000\"\r\n"
                           "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n",
             gmtime(&now));
}

static void make_heads(struct file *f, const char *status)
{
    char fields[256];
    time_t now = time(NULL);
    format_fields(fields, sizeof(fields), now);
    for (int close = 0; close < 2; close++) {
        char text[384];
        int n = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n%s\r\n", status, fields, f->size,
                         close ? "Connection: close\r\n" : "");
        size_t body = mode->memory ? f->size : 0, got = 0;
        struct head *head = &f->heads[close];
        *head = (struct head){allocate_memory((size_t)n + body), (size_t)n, (size_t)n + body,
                              (size_t)(strstr(text, "Date: ") - text) + 6, now};
        memcpy(head->bytes, text, head->len);
        if (mode->hello && body) {
            memcpy(head->bytes + head->len, HELLO_BODY, body);
            continue;
        }
        for (ssize_t r = 1; got < body && r > 0; got += r > 0 ? (size_t)r : 0)
            r = pread(f->fd, head->bytes + head->len + got, body - got, (off_t)got);
    }
}

/* Sets the Date field of an answer to the present second: a proxy may compare it with its own clock. */
static void update_date(struct head *head)
{
    char text[32];
    time_t now = time(NULL);
    if (now == head->date)
        return;
    head->date = now;
    memcpy(head->bytes + head->date_at, text, strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now)));
}

/* Finds the size of what is answered to a path, and opens its file. */
static bool find_content(struct file *f)
{
    struct stat st;
    f->fd = -1;
    if (mode->hello) {
        f->size = sizeof(HELLO_BODY) - 1;
        return strcmp(f->name, HELLO_PATH) == 0;
    }
    f->fd = open_file(f);
    if (f->fd < 0 || fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (f->fd >= 0)
            close(f->fd);
        return false;
    }
    f->size = (size_t)st.st_size;
    return true;
}

static struct file *add_file(struct file **slot, const char *path, size_t len)
{
    struct file f = {.name_len = len};
    if (len >= sizeof(f.name) || files_n > SLOTS / 2)
        return &missing;
    memcpy(f.name, path, len);
    if (!find_content(&f))
        return &missing;
    make_heads(&f, "200 OK");
    if (f.fd >= 0 && (mode->memory || mode->opens))
        close(f.fd);
    files_n++;
    *slot = allocate_memory(sizeof(f));
    **slot = f;
    return *slot;
}

static struct file *find_file(const char *path, size_t len)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)path[i]) * 1099511628211u;
    unsigned slot = (unsigned)(hash ^ hash >> 32) % SLOTS;
    for (; files[slot]; slot = (slot + 1) % SLOTS)
        if (files[slot]->name_len == len && memcmp(files[slot]->name, path, len) == 0)
            return files[slot];
    return add_file(&files[slot], path, len);
}

/* Returns the Content-Length of a head, behind which an empty line is; 0 without one. */
static size_t find_length(const char *head, size_t n)
{
    static const char name[] = "Content-Length:";
    for (const char *line = head; (line = memchr(line, '\n', n - (size_t)(line - head))); line++)
        if (strncasecmp(line + 1, name, sizeof(name) - 1) == 0)
            return strtoul(line + sizeof(name), NULL, 10);
    return 0;
}

/* Finds the next request: `GET /path HTTP/1.1` and fields that are not looked at. Returns false when it is not whole.
 */
static bool find_request(const char *from, size_t len, size_t at, struct request *ret)
{
    const char *head = from + at, *end = memmem(head, len - at, "\r\n\r\n", 4);
    if (!end)
        return false;
    size_t n = (size_t)(end - head);
    const char *path = memchr(head, ' ', n),
               *blank = path ? memchr(path + 1, ' ', n - (size_t)(path + 1 - head)) : NULL;
    struct file *f = blank ? find_file(path + 1, (size_t)(blank - path - 1)) : &missing;
    *ret = (struct request){f, &f->heads[memmem(head, n, "\nConnection: close", 18) != NULL], at + n + 4, 0};
    update_date(&f->heads[ret->head - f->heads]);
    size_t body = mode->upload ? find_length(head, n) : 0, got = len - ret->end;
    ret->end += body < got ? body : got;
    ret->unread = body < got ? 0 : body - got;
    return true;
}

static int close_conn(int fd)
{
    struct conn *c = &conns[fd];
    if (mode->opens && c->file && c->file_fd >= 0)
        close(c->file_fd);
    free(c->in);
    *c = (struct conn){.queued = c->queued};
    close(fd);
    return -1;
}

/* ── sending: 1 (all is sent), 0 (wait for an event or a turn) or -1 (the connection is closed) ── */

static int end_answer(int fd)
{
    struct conn *c = &conns[fd];
    bool is_last = c->head == &c->file->heads[1];
    if (mode->opens && c->file_fd >= 0)
        close(c->file_fd);
    c->file = NULL;
    return is_last ? close_conn(fd) : 1;
}

static void queue_conn(int fd)
{
    if (!conns[fd].queued)
        queue[queue_n++] = fd;
    conns[fd].queued = true;
}

/* Sends what is left of an answer, or a slice of it. */
static int send_answer(int fd)
{
    struct conn *c = &conns[fd];
    const struct head *head = c->head;
    size_t all = head->len + c->file->size, slice = mode->slice;
    while (c->at < all) {
        off_t offset = (off_t)(c->at - head->len);
        size_t left = all - c->at;
        ssize_t n = c->at < head->all ? send(fd, head->bytes + c->at, head->all - c->at,
                                             MSG_NOSIGNAL | (head->all < all ? MSG_MORE : 0))
                                      : sendfile(fd, c->file_fd, &offset, left < slice ? left : slice);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0)
            return close_conn(fd);
        slice -= c->at < head->all ? 0 : (size_t)n;
        c->at += (size_t)n;
        if (slice == 0 && c->at < all) {
            queue_conn(fd);
            return 0;
        }
    }
    return end_answer(fd);
}

/* Sends answers from memory in one call; the first that is not sent whole stays with the connection. Returns its index.
 */
static int send_gathered(int fd, const struct request *requests, int n)
{
    struct iovec pieces[GATHERED];
    int done = 0;
    for (int i = 0; i < n; i++)
        pieces[i] = (struct iovec){requests[i].head->bytes, requests[i].head->all};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n};
    ssize_t sent =
        n == 1 ? send(fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL) : sendmsg(fd, &message, MSG_NOSIGNAL);
    size_t left = sent > 0 ? (size_t)sent : 0;
    while (done < n && left >= requests[done].head->all)
        left -= requests[done++].head->all;
    if (done < n)
        conns[fd] = (struct conn){requests[done].file, requests[done].head, left, -1, false, 0, 0, NULL};
    return done;
}

static int send_file(int fd, const struct request *request)
{
    int file_fd = mode->opens && request->file != &missing ? open_file(request->file) : request->file->fd;
    conns[fd] = (struct conn){request->file, request->head, 0, file_fd, false, 0, 0, NULL};
    return send_answer(fd);
}

/* Keeps bytes that cannot be answered now. */
static int keep_input(int fd, const char *from, size_t len)
{
    struct conn *c = &conns[fd];
    if (!len)
        return 0;
    c->in = allocate_memory(len);
    memcpy(c->in, from, c->in_len = len);
    return 0;
}

/* Answers all requests in `from`. Returns 0, or -1: the connection is closed. */
static int answer_requests(int fd, const char *from, size_t len)
{
    struct request requests[GATHERED];
    for (size_t at = 0; at < len;) {
        int n = 0, most = mode->memory ? GATHERED : 1, sent = 1;
        bool is_last = false;
        while (n < most && !is_last && find_request(from, len, n ? requests[n - 1].end : at, &requests[n])) {
            is_last = requests[n].head == &requests[n].file->heads[1];
            if (requests[n++].unread)
                break;
        }
        if (!n)
            return len - at < IN_BYTES ? keep_input(fd, from + at, len - at) : close_conn(fd);
        if (requests[n - 1].unread) {
            conns[fd] = (struct conn){
                requests[n - 1].file, requests[n - 1].head, 0, -1, false, requests[n - 1].unread, 0, NULL};
            return n > 1 ? close_conn(fd) : 0; /* uploads are not pipelined */
        }
        if (mode->wait_us)
            usleep(mode->wait_us);
        if (mode->memory) {
            int done = send_gathered(fd, requests, n);
            if (done < n)
                return keep_input(fd, from + requests[done].end, len - requests[done].end);
            sent = is_last ? close_conn(fd) : 1;
        } else {
            sent = send_file(fd, &requests[0]);
        }
        at = requests[n - 1].end;
        if (sent <= 0)
            return sent ? -1 : keep_input(fd, from + at, len - at);
    }
    return 0;
}

/* Drops what comes of a body. Returns as the functions that send. */
static int drop_body(int fd)
{
    struct conn *c = &conns[fd];
    while (c->unread) {
        ssize_t n = recv(fd, NULL, c->unread, MSG_TRUNC);
        if (n <= 0)
            return n < 0 && errno == EAGAIN ? 0 : close_conn(fd);
        c->unread -= (size_t)n;
    }
    return 1;
}

/* Continues with a connection until it has to wait. */
static void serve_client(int fd)
{
    struct conn *c = &conns[fd];
    if (drop_body(fd) <= 0 || (c->file && send_answer(fd) <= 0))
        return;
    for (size_t room = 1; room;) {
        size_t kept = c->in_len;
        if (kept) {
            memcpy(in, c->in, kept);
            free(c->in);
            c->in = NULL;
            c->in_len = 0;
        }
        ssize_t n = recv(fd, in + kept, room = sizeof(in) - kept, 0);
        bool is_over = n == 0 || (n < 0 && errno != EAGAIN);
        size_t got = n > 0 ? (size_t)n : 0;
        if (is_over) {
            close_conn(fd);
            return;
        }
        if (answer_requests(fd, in, kept + got) < 0)
            return;
        if (c->unread && (drop_body(fd) <= 0 || send_answer(fd) <= 0))
            return;
        if (c->file || got < room)
            return;
    }
}

static void accept_conns(int listener)
{
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd};
        conns[fd] = (struct conn){.queued = conns[fd].queued};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

/* Gives each connection that waits for its turn one slice. */
static void serve_queue(void)
{
    int n = queue_n;
    for (int i = 0; i < n; i++) {
        conns[queue[i]].queued = false;
        if (conns[queue[i]].file)
            serve_client(queue[i]);
    }
    memmove(queue, queue + n, (size_t)(queue_n - n) * sizeof(*queue));
    queue_n -= n;
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* accepted sockets inherit both */
    setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on));
    return bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, 4096) < 0 ? -1 : fd;
}

static void serve_all(int listener)
{
    struct epoll_event events[BATCH], event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, BATCH, queue_n ? 0 : -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == listener)
                accept_conns(listener);
            else if (!conns[events[i].data.fd].queued)
                serve_client(events[i].data.fd);
        }
        serve_queue();
    }
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 4 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            mode = &modes[i];
    long port = mode ? strtol(argv[2], NULL, 10) : 0;
    if (port < 1 || port > 65535) {
        fputs(
            "usage: wr-limit memory|descriptor|open|sliced|hello|upload|slow PORT ROOT, with a port from 1 to 65535\n",
            stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* of sendfile(2) */
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 1 << 20 ? limit.rlim_max : 1 << 20;
    setrlimit(RLIMIT_NOFILE, &limit);
    conns = allocate_memory(limit.rlim_cur * sizeof(*conns));
    queue = allocate_memory(2 * limit.rlim_cur * sizeof(*queue));
    make_heads(&missing, "404 Not Found");
    root = open(argv[3], O_PATH | O_DIRECTORY | O_CLOEXEC);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener = root < 0 ? -1 : listen_on((uint16_t)port);
    if (listener < 0) {
        fprintf(stderr, "wr-limit: %s: %s\n", root < 0 ? argv[3] : argv[2], strerror(errno));
        return 1;
    }
    serve_all(listener);
}
