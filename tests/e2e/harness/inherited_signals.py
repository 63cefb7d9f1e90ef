# SPDX-License-Identifier: Apache-2.0
"""A run that was started in the background or by nohup ignores signals, and what it starts would inherit that."""

import signal


def restore():
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
