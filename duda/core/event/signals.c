// SPDX-License-Identifier: Apache-2.0
/*
 * Sends values to descriptors of a service (signals.h).
 */
#include "event/signals.h"

#include "log/message.h"
#include "service/service.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

int signals_init(struct service *s)
{
    pthread_mutex_init(&signals_of(s)->lock, NULL);
    return 0;
}

void signals_end(struct signals *signals)
{
    pthread_mutex_lock(&signals->lock);
    while (signals->n)
        close(signals->fds[--signals->n]);
    signals->ended = true;
    pthread_mutex_unlock(&signals->lock);
}

void signals_release(struct service *s)
{
    signals_end(signals_of(s));
    pthread_mutex_destroy(&signals_of(s)->lock);
}

/* Sends to one descriptor. Returns false if its reader has closed it. */
static bool send_to_fd(struct service *s, int fd, uint64_t value)
{
    if (send(fd, &value, sizeof(value), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return false;
    if (!signals_of(s)->lost++)
        message_log_of(s, MK_LOG_WARN,
                       "a value of event->signal() is lost: a descriptor of create_signal_fd() is not read; "
                       "this is logged once");
    return true;
}

void signals_send(struct service *s, uint64_t value)
{
    struct signals *signals = signals_of(s);
    pthread_mutex_lock(&signals->lock);
    for (unsigned i = 0; i < signals->n;) {
        if (send_to_fd(s, signals->fds[i], value)) {
            i++;
            continue;
        }
        close(signals->fds[i]);
        signals->fds[i] = signals->fds[--signals->n];
    }
    pthread_mutex_unlock(&signals->lock);
}

/* Keeps the sending end. */
static int add_fd(struct signals *signals, int fd)
{
    int err = -EMFILE;
    pthread_mutex_lock(&signals->lock);
    if (signals->ended)
        err = -ESHUTDOWN;
    else if (signals->n < SIGNAL_FDS_MAX) {
        signals->fds[signals->n++] = fd;
        err = 0;
    }
    pthread_mutex_unlock(&signals->lock);
    return err;
}

int signals_open_fd(struct service *s)
{
    int ends[2]; /* the receiving one, the sending one */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    int err = add_fd(signals_of(s), ends[1]);
    if (err == 0)
        return ends[0];
    close(ends[0]);
    close(ends[1]);
    return err;
}
