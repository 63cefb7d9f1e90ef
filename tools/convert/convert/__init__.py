# SPDX-License-Identifier: Apache-2.0
"""Converts configurations of nginx, Caddy and Apache into one file of this server.

A parser of each server (*_syntax) makes nodes, its meaning (nginx, caddy, apache and their tables) makes hosts with
scopes (model), and the writer prints them. Nodes that cannot be said here are collected in a report (report)."""
