# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests stand on: the server as a process, and a client that believes nothing."""
