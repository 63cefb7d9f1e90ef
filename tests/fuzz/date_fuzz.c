// SPDX-License-Identifier: Apache-2.0
/* HTTP dates: what can be read can be written, and read again as the same second. */
#include <stdint.h>
#include <stdlib.h>

#include "http/message/date.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now = 1795149843, last = 253402300799;
    char out[MK__DATE_BYTES + 1];
    int64_t seconds, again;

    if (mk__date_parse(mk_str((const char *)data, size), now, &seconds) < 0)
        return 0;
    if (seconds > last) /* the leap second behind the last year */
        seconds = last;
    if (mk__date_format(seconds, out) != MK__DATE_BYTES || strlen(out) != MK__DATE_BYTES)
        abort();
    if (mk__date_parse(mk_str(out, MK__DATE_BYTES), now, &again) < 0 || again != seconds)
        abort();
    return 0;
}
