// SPDX-License-Identifier: Apache-2.0
/*
 * Carries items to the thread of a loop (<monkey/kit/inbox.h>). The message is posted under the lock, so that no thread
 * posts it to a loop whose memory may be gone after mk_inbox_close().
 */
#include <monkey/kit/inbox.h>

#include <assert.h>
#include <errno.h>

static struct mk_inbox_item *take_items(struct mk_inbox *inbox)
{
    struct mk_inbox_item *first = inbox->first;
    inbox->first = NULL;
    inbox->end = &inbox->first;
    return first;
}

static void on_message(struct mk_message *message)
{
    struct mk_inbox *inbox = MK_CONTAINER_OF(message, struct mk_inbox, message);
    pthread_mutex_lock(&inbox->lock);
    inbox->posted = false;
    struct mk_inbox_item *first = take_items(inbox);
    pthread_mutex_unlock(&inbox->lock);
    assert(first);
    inbox->fn(inbox, first);
}

void mk_inbox_open(struct mk_inbox *inbox, struct mk_loop *loop, mk_inbox_fn fn)
{
    assert(loop && fn);
    *inbox = (struct mk_inbox){.loop = loop, .fn = fn, .message.fn = on_message};
    inbox->end = &inbox->first;
    pthread_mutex_init(&inbox->lock, NULL);
}

struct mk_inbox_item *mk_inbox_close(struct mk_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    assert(!inbox->closed);
    inbox->closed = true;
    struct mk_inbox_item *first = take_items(inbox);
    pthread_mutex_unlock(&inbox->lock);
    mk_message_cancel(inbox->loop, &inbox->message);
    return first;
}

void mk_inbox_release(struct mk_inbox *inbox)
{
    assert(inbox->closed && !inbox->first);
    pthread_mutex_destroy(&inbox->lock);
}

int mk_inbox_add(struct mk_inbox *inbox, struct mk_inbox_item *item)
{
    pthread_mutex_lock(&inbox->lock);
    int err = inbox->closed ? -ECANCELED : 0;
    if (err == 0) {
        item->next = NULL;
        *inbox->end = item;
        inbox->end = &item->next;
    }
    if (err == 0 && !inbox->posted) {
        inbox->posted = true;
        mk_post(inbox->loop, &inbox->message);
    }
    pthread_mutex_unlock(&inbox->lock);
    return err;
}
