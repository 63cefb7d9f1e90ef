// SPDX-License-Identifier: Apache-2.0
/* A CGI program that says hello, for F2 and F3. */
#include <unistd.h>

int main(void)
{
    static const char answer[] = "Content-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n";
    return write(STDOUT_FILENO, answer, sizeof(answer) - 1) == sizeof(answer) - 1 ? 0 : 1;
}
