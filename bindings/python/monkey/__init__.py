# SPDX-License-Identifier: Apache-2.0
"""The HTTP server monkey inside a Python program: see README.md."""

from .server import MonkeyError, Request, Server

__all__ = ["MonkeyError", "Request", "Server"]
