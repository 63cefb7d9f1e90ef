// SPDX-License-Identifier: Apache-2.0
/* Lists: order, deletion while walking, joining. */
#include "testing.h"

#include <monkey/base/list.h>

#include <string.h>

struct item {
    int number;
    struct mk_list link;
};

static void assert_numbers(struct mk_list *l, const char *digits)
{
    struct mk_list *n, *save;
    size_t i = 0;
    MK_LIST_EACH(l, n, save) {
        assert_true(digits[i] != '\0');
        assert_int_equal(MK_CONTAINER_OF(n, struct item, link)->number, digits[i++] - '0');
        assert_ptr_equal(n->next->prev, n);
    }
    assert_int_equal(digits[i], '\0');
    assert_int_equal(mk_list_empty(l), i == 0);
}

static void fill(struct mk_list *l, struct item *items, int from, int n)
{
    mk_list_init(l);
    for (int i = 0; i < n; i++) {
        items[i].number = from + i;
        mk_list_add(l, &items[i].link);
    }
}

TEST(keeps_order)
{
    struct item items[4];
    struct mk_list l;
    fill(&l, items, 1, 0);
    assert_numbers(&l, "");
    fill(&l, items, 1, 4);
    assert_numbers(&l, "1234");
    assert_int_equal(MK_LIST_FIRST(&l, struct item, link)->number, 1);
}

TEST(deletes)
{
    struct item items[4];
    struct mk_list l, *n, *save;
    fill(&l, items, 1, 4);
    mk_list_del(&items[1].link);
    assert_numbers(&l, "134");
    mk_list_del(&items[1].link);
    assert_numbers(&l, "134");
    assert_true(mk_list_empty(&items[1].link));
    mk_list_add(&l, &items[1].link);
    assert_numbers(&l, "1342");
    MK_LIST_EACH(&l, n, save)
        mk_list_del(n);
    assert_numbers(&l, "");
}

TEST(joins)
{
    struct item a[2], b[2];
    struct mk_list to, from;
    fill(&to, a, 1, 2);
    fill(&from, b, 3, 2);
    mk_list_join(&to, &from);
    assert_numbers(&to, "1234");
    assert_numbers(&from, "");
    mk_list_join(&to, &from);
    assert_numbers(&to, "1234");
    mk_list_join(&from, &to);
    assert_numbers(&from, "1234");
    assert_numbers(&to, "");
}

/* Of structs: the current one may be deleted, and the loop may be left and continued. */
TEST(items)
{
    struct item items[4];
    struct mk_list l;
    fill(&l, items, 1, 0);
    MK_LIST_EACH_ITEM(&l, struct item, link, item)
        fail_msg("%d in an empty list", item->number);
    fill(&l, items, 1, 4);
    MK_LIST_EACH_ITEM(&l, struct item, link, item) {
        if (item->number % 2)
            continue;
        mk_list_del(&item->link);
        memset(item, 0, sizeof(*item));
    }
    assert_numbers(&l, "13");
    const struct item *found = NULL;
    MK_LIST_EACH_ITEM(&l, const struct item, link, item) {
        found = item;
        break;
    }
    assert_ptr_equal(found, &items[0]);
}
