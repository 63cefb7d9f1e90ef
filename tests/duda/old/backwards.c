// SPDX-License-Identifier: Apache-2.0
/* Level 1: lists that are walked backwards, and emptied. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Backwards");

struct word {
    char *text;
    struct mk_list _head;
};

static struct mk_list words;

static void add(char *text)
{
    struct word *word = mem->alloc(sizeof(struct word));

    word->text = text;
    mk_list_add(&word->_head, &words);
}

void cb_words(duda_request_t *dr)
{
    int n = 0;
    struct word *word;
    struct mk_list *head, *next;

    mk_list_init(&words);
    add("a");
    add("b");
    add("c");
    response->http_status(dr, 200);
    mk_list_foreach_r(head, &words)
    {
        word = mk_list_entry(head, struct word, _head);
        response->printf(dr, "%s%d ", word->text, ++n);
    }
    word = mk_list_entry_next(words.next, struct word, _head, &words);
    response->printf(dr, "%s %d", word->text, mk_list_size(&words));
    mk_list_foreach_safe(head, next, &words)
    {
        mk_list_del(head);
        mem->free(mk_list_entry(head, struct word, _head));
    }
    response->printf(dr, " %d", mk_list_is_empty(&words));
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/", "cb_words");
    return 0;
}
