// SPDX-License-Identifier: Apache-2.0
// The page of the cache: reads an event with its figures each second and the entries each few seconds, and changes
// entries after a question. Everything that the server sends is shown as text (textContent), never as markup.
"use strict";

const KEPT_SECONDS = 300, ENTRIES_MS = 3000, RETRY_MS = 2000, HOTTEST = 20;
const samples = [];
const page = {events: 0, lists: 0};
window.cachePage = page;

const get = id => document.getElementById(id);

// ── numbers ──

function formatBytes(n) {
    const units = ["B", "KB", "MB", "GB", "TB"];
    let unit = 0;
    while (n >= 1024 && unit < units.length - 1) {
        n /= 1024;
        unit++;
    }
    return `${n >= 100 || unit === 0 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

const formatNumber = n => n >= 10 || Number.isInteger(n) ? Math.round(n).toLocaleString("en-US") : n.toFixed(1);

function formatAge(ms) {
    const s = ms / 1000;
    return s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

const formatRatio = ratio => ratio === null ? "-" : `${(ratio * 100).toFixed(1)} %`;

// ── tables ──

function fillTable(id, heads, rows) {
    const make = (name, text) => {
        const cell = document.createElement(name);
        cell.textContent = text;
        return cell;
    };
    const fill = (name, texts) => {
        const row = document.createElement("tr");
        row.append(...texts.map(text => make(name, text)));
        return row;
    };
    get(id).replaceChildren(fill("th", heads), ...rows.map(cells => fill("td", cells)));
}

function show(id, value, text) {
    get(id).textContent = text;
    get(id).dataset.value = value ?? "";
}

// ── figures ──

const countEvicted = stats => Object.values(stats.kinds).reduce((sum, kind) => sum + kind.evicted, 0);

/** The ratio of the last seconds, or of all time if nothing was asked for meanwhile. */
function findRatio(now, before) {
    const hits = before ? now.hits - before.hits : 0, all = before ? hits + now.misses - before.misses : 0;
    return all > 0 ? hits / all : null;
}

function drawChart() {
    const points = samples.filter(one => one.ratio !== null)
        .map(one => `${(300 - (samples[samples.length - 1].time - one.time)).toFixed(1)},${(58 - one.ratio * 56).toFixed(1)}`);
    get("line").setAttribute("points", points.join(" "));
}

function take(now) {
    const time = performance.now() / 1000, last = samples[samples.length - 1];
    const before = samples.find(one => one.time >= time - 10), seconds = last ? time - last.time : 0;
    const rate = read => seconds > 0 ? Math.max(0, read(now) - read(last.stats)) / seconds : 0;
    const ratio = findRatio(now, last?.stats);
    samples.push({time, stats: now, ratio});
    while (samples[0].time < time - KEPT_SECONDS)
        samples.shift();
    show("ratio", now.hit_ratio, formatRatio(findRatio(now, before?.stats) ?? now.hit_ratio));
    show("rate", now.hits + now.misses, formatNumber(rate(s => s.hits + s.misses)));
    show("memory", now.memory_bytes, `${formatBytes(now.memory_bytes)} of ${formatBytes(now.memory_max_bytes)}`);
    show("evicted", countEvicted(now), formatNumber(rate(countEvicted)));
    show("watched", now.watched_folders, formatNumber(now.watched_folders));
    fillTable("kinds", ["kind", "entries", "memory", "evicted"], Object.entries(now.kinds).map(([name, kind]) =>
        [name, formatNumber(kind.entries), formatBytes(kind.bytes), formatNumber(kind.evicted)]));
    drawChart();
    get("state").textContent = "";
    get("state").classList.remove("lost");
    page.last = now;
    page.events++;
}

function connect() {
    const source = new EventSource("stats");
    source.onmessage = event => take(JSON.parse(event.data));
    source.onerror = () => {
        get("state").textContent = "no connection to the server, trying again ...";
        get("state").classList.add("lost");
        if (source.readyState === EventSource.CLOSED)  // 503: the browser gives up
            setTimeout(connect, RETRY_MS);
    };
}

// ── entries ──

const ages = {minute: "up to a minute", ten_minutes: "up to 10 minutes", hour: "up to an hour", day: "up to a day", older: "older"};

async function readEntries() {
    const response = await fetch(`entries?sort=hits&limit=${HOTTEST}`);
    if (!response.ok)
        return;
    const list = await response.json();
    fillTable("ages", ["loaded", "entries"], Object.entries(ages).map(([key, text]) => [text, formatNumber(list.ages[key])]));
    fillTable("hottest", ["path", "kind", "hits", "size", "loaded"], list.entries.map(one =>
        [one.path, one.kind + (one.coding ? ` (${one.coding})` : ""), formatNumber(one.hits), formatBytes(one.file_bytes), formatAge(one.age_ms)]));
    page.list = list;
    page.lists++;
}

async function keepReading() {
    try {
        await readEntries();
    } catch (error) {
        // the state of the events says that there is no connection
    }
    setTimeout(keepReading, ENTRIES_MS);
}

// ── changes ──

let confirmed;  // what the button "Remove" of the dialog does

function ask(question, action) {
    confirmed = action;
    get("question").textContent = question;
    get("confirm").showModal();
}

function report(text, failed) {
    get("result").textContent = text;
    get("result").classList.toggle("failed", failed);
    page.result = text;
}

async function change(call, parameters, describe) {
    try {
        const response = await fetch(call, {method: "POST", body: new URLSearchParams(parameters)});
        const answer = await response.json();
        if (response.ok)
            report(describe(answer), Boolean(answer.failed));
        else
            report(answer.error, true);
        await readEntries();
    } catch (error) {
        report("the server has not answered", true);
    }
}

const removed = answer => `${formatNumber(answer.removed)} removed`;

function added(answer) {
    const [first] = answer.errors;
    return first ? `${first.path}: ${first.error}` : `${formatNumber(answer.kept)} loaded`;
}

get("add").addEventListener("click", () => change("add", {path: get("path").value}, added));
get("reset").addEventListener("click", () => {
    const path = get("path").value;
    ask(`Remove ${path} from the cache?`, () => change("reset", {path}, removed));
});
get("reset-all").addEventListener("click", () =>
    ask("Remove all files of this host from the cache? They are loaded again when they are asked for.", () => change("reset", {all: 1}, removed)));
get("yes").addEventListener("click", () => confirmed());  // its form closes the dialog
get("change").addEventListener("submit", event => {  // Enter in the field
    event.preventDefault();
    get("add").click();
});
connect();
keepReading();
