// SPDX-License-Identifier: Apache-2.0
// The live page of the status: reads an event each second, keeps what the charts show, and fills tiles and tables.
// Everything that the server sends is shown as text (textContent), never as markup.
"use strict";

const KEPT_SECONDS = 300, PERCENTILE_SECONDS = 10, HOSTS_SHOWN = 5, RETRY_MS = 2000;
const documents = [];  // of the last PERCENTILE_SECONDS, for differences
const charts = {};
const page = {documents, charts, events: 0};
window.statusPage = page;

const get = id => document.getElementById(id);

// ── numbers ──

function formatBytes(n) {
    const units = ["B", "KB", "MB", "GB", "TB"];
    let unit = 0;
    while (Math.abs(n) >= 1024 && unit < units.length - 1) {
        n /= 1024;
        unit++;
    }
    return `${n >= 100 || unit === 0 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

function formatNumber(n) {
    return n >= 100 || Number.isInteger(n) ? Math.round(n).toLocaleString("en-US") : n.toFixed(n >= 10 ? 1 : 2);
}

function formatMs(ms) {
    return ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : ms >= 1 || !ms ? `${formatNumber(ms)} ms` : `${Math.round(ms * 1000)} µs`;
}

function formatSeconds(s) {
    const days = Math.floor(s / 86400), time = new Date(s * 1000).toISOString().slice(11, 19);
    return days ? `${days} d ${time}` : time;
}

/** What the names of the counters mean. A name that is not here is shown as it is. */
const words = {
    handshake: "TLS handshake", new: "first request", idle: "next request", read_head: "headers of a request",
    read_body: "body of a request", handler: "a plugin or service", disk: "disk", write: "client reads slowly",
    tunnel: "WebSockets and tunnels", streams: "HTTP/2", streams_write: "HTTP/2, client reads slowly", linger: "client closes",
    stream: "HTTP/2 stream",
    plugin: "by a plugin", proxy_header: "no or wrong PROXY header", max_handshakes: "too many TLS handshakes",
    over_capacity: "too many connections", evicted: "closed for a newer one",
    malformed: "malformed", target_too_long: "URL too long", head_too_large: "headers too large",
    body_too_large: "body too large", min_body_rate: "body too slow",
};
const word = name => words[name] ?? name.replaceAll("_", " ");

/** The numbers of one host, or of all. */
function find(status, host) {
    return host ? status.hosts.find(one => one.name === host) : status.totals;
}

function rate(now, before, read) {
    const after = now && read(now), old = before && read(before);
    const seconds = before ? now.time - before.time : 0;
    return seconds > 0 && after !== undefined && old !== undefined ? Math.max(0, after - old) / seconds : null;
}

/** The time within which a share of the requests since `before` has ended, from the differences of the buckets. */
function percentile(now, before, host, share) {
    const after = find(now, host), old = before && find(before, host), counts = new Map();
    if (!after)
        return null;
    for (const [end, n] of after.latency.buckets)
        counts.set(end, n);
    for (const [end, n] of old ? old.latency.buckets : [])
        counts.set(end, counts.get(end) - n);
    const total = [...counts.values()].reduce((sum, n) => sum + n, 0);
    let left = Math.ceil(total * share), last = null;
    for (const [end, n] of counts) {
        last = end ?? last;
        left -= n;
        if (left <= 0)
            return total ? last : null;
    }
    return null;
}

// ── charts ──

// The legend of dygraphs needs style attributes, which the policy of the page forbids; Chart has one of its own.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);

function colors() {
    const style = getComputedStyle(document.documentElement);
    return [1, 2, 3, 4, 5, 6].map(n => style.getPropertyValue(`--c${n}`).trim());
}

function lineColor() {
    return getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
}

class Chart {
    /** `read(now, before)` returns the values by their names; a name that is new becomes a line. */
    constructor(id, read, format) {
        Object.assign(this, {element: get(id), read, format, rows: [], names: []});
        this.legend = document.createElement("div");
        this.legend.className = "legend";
        this.element.before(this.legend);
    }

    reset() {
        this.rows.length = this.names.length = 0;
        this.legend.replaceChildren();
    }

    add(now, before) {
        const values = this.read(now, before);
        for (const name of Object.keys(values))
            if (!this.names.includes(name))
                this.names.push(name);
        this.rows.push({time: new Date(now.time * 1000), values});
        while (this.rows[0].time < now.time * 1000 - KEPT_SECONDS * 1000)
            this.rows.shift();
        this.draw();
    }

    draw() {
        if (!this.names.length)
            return;
        const file = this.rows.map(row => [row.time, ...this.names.map(name => row.values[name] ?? null)]);
        const labels = ["time", ...this.names];
        this.fillLegend();
        if (this.graph) {
            this.graph.updateOptions({file, labels, colors: colors(), gridLineColor: lineColor()});
            return;
        }
        this.graph = new Dygraph(this.element, file, {
            labels,
            colors: colors(),
            axisLineColor: "transparent",
            gridLineColor: lineColor(),
            strokeWidth: 1.5,
            includeZero: true,
            labelsKMG2: this.format === formatBytes,
            axes: {y: {axisLabelFormatter: this.format, axisLabelWidth: 62}, x: {pixelsPerLabel: 70}},
        });
    }

    /** The name of each line, with its newest value. */
    fillLegend() {
        const palette = colors();
        this.legend.replaceChildren(...this.names.map((name, i) => {
            const value = this.last[name], one = document.createElement("span");
            one.textContent = `${name} ${value === null || value === undefined ? "-" : this.format(value)}`;
            one.style.color = palette[i % palette.length];
            return one;
        }));
    }

    get last() {
        return this.rows[this.rows.length - 1]?.values;
    }
}

const chosen = () => get("host").value;

function requestsByHost(now, before) {
    const values = {all: rate(now, before, s => s.totals.requests)};
    const hosts = chosen() ? now.hosts.filter(host => host.name === chosen()) : now.hosts.slice(0, HOSTS_SHOWN);
    for (const {name} of hosts.length > 1 || chosen() ? hosts : [])
        values[name] = rate(now, before, s => find(s, name)?.requests);
    return values;
}

function latency(now) {
    const before = documents.length > 1 ? documents[0] : null, values = {};
    for (const [name, share] of [["p50", 0.5], ["p90", 0.9], ["p99", 0.99]])
        values[name] = percentile(now, before, chosen(), share);
    return values;
}

function openConnections(now) {
    const values = {all: now.totals.connections};
    for (const [state, n] of Object.entries(now.connections))
        if (n > 0 || charts.connections.names.includes(word(state)))
            values[word(state)] = n;
    return values;
}

function bytes(now, before) {
    return {
        sent: rate(now, before, s => find(s, chosen())?.sent_body_bytes),
        received: rate(now, before, s => find(s, chosen())?.received_body_bytes),
    };
}

function errors(now, before) {
    return {
        "4xx": rate(now, before, s => find(s, chosen())?.status["4xx"]),
        "5xx": rate(now, before, s => find(s, chosen())?.status["5xx"]),
    };
}

function failures(now, before) {
    return {
        "aborted": rate(now, before, s => find(s, chosen())?.responses_aborted),
        "refused": rate(now, before, s => s.totals.refused_connections + s.totals.rejected_requests),
        "timeouts": rate(now, before, s => s.totals.timeouts),
    };
}

function memory(now) {
    const values = {process: now.process.resident_bytes};
    for (const worker of now.workers.slice(0, HOSTS_SHOWN))
        values[`worker ${worker.index}`] = worker.memory_bytes ?? null;
    return values;
}

function requestsByWorker(now, before) {
    const values = {}, read = index => s => s.workers.find(worker => worker.index === index)?.requests;
    for (const {index} of now.workers)
        values[`worker ${index}`] = rate(now, before, read(index));
    return values;
}

// ── tiles and tables ──

function show(id, value, text) {
    get(id).textContent = text;
    get(id).dataset.value = value;
}

function fillTiles(now) {
    const one = find(now, chosen()) ?? now.totals, requests = charts.requests.last, p99 = charts.latency.last.p99;
    const perSecond = requests[chosen() || "all"] ?? 0;
    show("requests", one.requests, formatNumber(one.requests));
    show("rate", perSecond, formatNumber(perSecond));
    show("p99", p99 ?? "", p99 === null ? "-" : formatMs(p99));
    show("errors", one.status["5xx"], formatNumber(one.status["5xx"]));
    show("connections", now.totals.connections, formatNumber(now.totals.connections));
    show("memory", now.process.resident_bytes, formatBytes(now.process.resident_bytes));
    show("generation", now.generation, String(now.generation));
    show("uptime", now.uptime, formatSeconds(now.uptime));
}

function fillTable(id, heads, rows) {
    const table = get(id), make = (name, text) => {
        const cell = document.createElement(name);
        cell.textContent = text;
        return cell;
    };
    const head = document.createElement("tr");
    head.append(...heads.map(text => make("th", text)));
    table.replaceChildren(head, ...rows.map(({cells, down}) => {
        const row = document.createElement("tr");
        row.classList.toggle("down", Boolean(down));
        row.append(...cells.map(text => make("td", text)));
        return row;
    }));
    table.parentElement.hidden = !rows.length;
}

function fillPaths(id, paths) {
    fillTable(id, ["path", "requests", "mean", "slowest"], (paths ?? []).map(one => ({
        cells: [one.path, (one.excess ? "≤ " : "") + formatNumber(one.requests), formatMs(one.mean_ms), formatMs(one.max_ms)],
    })));
}

// Of a name, `up` and `ejected` are numbers of addresses.
function describeServer(one) {
    if (one.server === undefined)
        return "";
    if (one.draining || one.taken_down)
        return one.draining ? "draining" : "taken down";
    if (one.ejected)
        return one.up > 1 ? `${one.ejected} of ${one.up} ejected` : "ejected";
    return one.up > 1 ? `${one.up} up` : one.up ? "up" : "down";
}

function fillServers(now) {
    const heads = ["group", "server", "state", "requests", "under way", "failed", "ejected", "checks failed", "waited", "waiting", "got none"];
    fillTable("servers", heads, now.servers.map(one => ({
        down: one.server !== undefined && (!one.up || one.ejected >= one.up || one.taken_down > 0),
        cells: [one.group, one.server ?? "all", describeServer(one), formatNumber(one.requests), formatNumber(one.active_requests),
            formatNumber(one.failures), formatNumber(one.ejections), formatNumber(one.failed_checks), formatNumber(one.waited_requests),
            formatNumber(one.queued_requests + one.held_requests), formatNumber(one.refused_requests)],
    })));
}

function fillBackends(now) {
    const heads = ["plugin", "backend", "requests", "4xx", "5xx", "failed", "sent again", "busy", "idle", "opened", "sent", "received",
        "connect: half within", "head: half within", "99 % within", "whole: half within"];
    fillTable("backends", heads, now.backends.map(one => ({
        cells: [one.plugin, [one.name, one.server].filter(Boolean).join(" "), formatNumber(one.requests), formatNumber(one.status["4xx"]), formatNumber(one.status["5xx"]),
            formatNumber(one.failures + one.timeouts), formatNumber(one.retries), formatNumber(one.busy_connections),
            formatNumber(one.idle_connections), formatNumber(one.opened_connections), formatBytes(one.sent_bytes),
            formatBytes(one.received_bytes), formatMs(one.connect_latency.p50_ms), formatMs(one.head_latency.p50_ms),
            formatMs(one.head_latency.p99_ms), formatMs(one.latency.p50_ms)],
    })));
}

function fillTables(now) {
    fillPaths("busiest", now.paths?.busiest);
    fillPaths("slowest", now.paths?.slowest);
    fillTable("hosts", ["host", "requests", "4xx", "5xx", "aborted", "sent", "half within", "99 % within"], now.hosts.map(host => ({
        cells: [host.name, formatNumber(host.requests), formatNumber(host.status["4xx"]), formatNumber(host.status["5xx"]),
            formatNumber(host.responses_aborted), formatBytes(host.sent_body_bytes), formatMs(host.latency.p50_ms), formatMs(host.latency.p99_ms)],
    })));
    fillBackends(now);
    fillServers(now);
    fillTable("workers", ["worker", "requests", "connections", "memory", "turns of its loop"], now.workers.map(worker => ({
        cells: worker.up ? [String(worker.index), formatNumber(worker.requests), formatNumber(worker.connections),
            formatBytes(worker.memory_bytes), formatNumber(worker.loop_turns)]
            : [`${worker.index} does not answer`, "-", "-", "-", "-"],
        down: !worker.up,
    })));
    const kinds = {refused_connections: "refused", rejected_requests: "rejected", timeouts: "timed out", http2_floods: "HTTP/2 abuse"};
    fillTable("refused", ["what", "number"], Object.entries(kinds).flatMap(([key, kind]) =>
        Object.entries(now[key]).filter(([, n]) => n).map(([name, n]) => ({cells: [`${kind}: ${word(name)}`, formatNumber(n)]}))));
}

function fillHosts(now) {
    const select = get("host"), known = new Set([...select.options].map(option => option.value));
    for (const {name} of now.hosts)
        if (!known.has(name))
            select.add(new Option(name, name));
}

// ── events ──

function take(now) {
    const before = documents[documents.length - 1];
    documents.push(now);
    while (documents[0].time < now.time - PERCENTILE_SECONDS)
        documents.shift();
    fillHosts(now);
    for (const chart of Object.values(charts))
        chart.add(now, before);
    fillTiles(now);
    fillTables(now);
    get("state").textContent = `version ${now.version}, process ${now.process.pid}`;
    get("state").classList.remove("lost");
    page.last = now;
    page.events++;
}

function connect() {
    const source = new EventSource("events");
    source.onmessage = event => take(JSON.parse(event.data));
    source.onerror = () => {
        get("state").textContent = "no connection to the server, trying again ...";
        get("state").classList.add("lost");
        if (source.readyState === EventSource.CLOSED)  // 503: the browser gives up
            setTimeout(connect, RETRY_MS);
    };
}

charts.requests = new Chart("chart-requests", requestsByHost, formatNumber);
charts.latency = new Chart("chart-latency", latency, formatMs);
charts.connections = new Chart("chart-connections", openConnections, formatNumber);
charts.bytes = new Chart("chart-bytes", bytes, formatBytes);
charts.errors = new Chart("chart-errors", errors, formatNumber);
charts.aborted = new Chart("chart-aborted", failures, formatNumber);
charts.memory = new Chart("chart-memory", memory, formatBytes);
charts.workers = new Chart("chart-workers", requestsByWorker, formatNumber);
get("host").addEventListener("change", () => {
    for (const chart of Object.values(charts))
        chart.reset();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const chart of Object.values(charts))
        chart.draw();
});
connect();
