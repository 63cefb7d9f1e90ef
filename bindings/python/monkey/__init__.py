# SPDX-License-Identifier: Apache-2.0
"""The HTTP server monkey inside a Python program: see README.md."""

from .request import MonkeyError, Request
from .server import Server

__all__ = ["MonkeyError", "Request", "Server"]
