// SPDX-License-Identifier: Apache-2.0
/*
 * Short texts of numbers (cell.h).
 */
#include "cell.h"

struct cell cell_bytes(double n, const char *suffix)
{
    struct cell cell;
    struct mk_buf out;
    mk_buf_init_fixed(&out, cell.text, sizeof(cell.text));
    text_add_bytes(&out, n);
    mk_buf_addf(&out, "%s", suffix);
    mk_buf_cstr(&out);
    return cell;
}

struct cell cell_rate(double n, const char *suffix)
{
    struct cell cell;
    struct mk_buf out;
    mk_buf_init_fixed(&out, cell.text, sizeof(cell.text));
    text_add_rate(&out, n);
    mk_buf_addf(&out, "%s", suffix);
    mk_buf_cstr(&out);
    return cell;
}

struct cell cell_us(uint64_t us)
{
    struct cell cell = {"-"};
    struct mk_buf out;
    mk_buf_init_fixed(&out, cell.text, sizeof(cell.text));
    if (us) {
        text_add_us(&out, us);
        mk_buf_cstr(&out);
    }
    return cell;
}

struct cell cell_seconds(long long n)
{
    struct cell cell;
    struct mk_buf out;
    mk_buf_init_fixed(&out, cell.text, sizeof(cell.text));
    text_add_seconds(&out, n, 2);
    mk_buf_cstr(&out);
    return cell;
}
