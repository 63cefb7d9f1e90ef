// SPDX-License-Identifier: Apache-2.0
// Sorts tables by a column, and hides the servers that are not chosen. The page is whole without it.
"use strict";

function valueOf(row, column) {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
}

// Numbers before texts, and empty cells last, in both directions.
function compareRows(a, b, column, sign) {
    const x = valueOf(a, column), y = valueOf(b, column);
    if (x === "" || y === "") return (x === "") - (y === "");
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
}

function sortTable(table, header) {
    const sign = header.ariaSort === "ascending" ? -1 : 1, body = table.tBodies[0];
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    header.ariaSort = sign > 0 ? "ascending" : "descending";
    body.append(...[...body.rows].sort((a, b) => compareRows(a, b, header.cellIndex, sign)));
}

function makeSortable(table) {
    for (const header of table.tHead.rows[0].cells) {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...header.childNodes);
        button.addEventListener("click", () => sortTable(table, header));
        header.append(button);
    }
}

function filterTable(table, hidden) {
    const column = [...table.tHead.rows[0].cells].findIndex(header => header.textContent === "server");
    if (column < 0) return;
    for (const row of table.tBodies[0].rows)
        row.hidden = hidden.has(row.cells[column].textContent.replace(/ \(limit\)$/, ""));
}

// The parts of a server in a chart have its number in their identifiers.
function filterChart(figure, hidden) {
    JSON.parse(figure.dataset.series).forEach((series, index) => {
        const parts = figure.querySelectorAll(["series", "interval"].map(kind => `[id$="-${kind}-${index}"]`).join());
        const others = figure.querySelectorAll(`[id*="-of-${index}-"]`);
        for (const part of [...parts, ...others]) part.classList.toggle("hidden", hidden.has(series.name));
    });
    for (const item of figure.querySelectorAll("[data-server]")) item.hidden = hidden.has(item.dataset.server);
}

function applyFilter(filter) {
    const hidden = new Set();
    for (const box of filter.querySelectorAll("input"))
        if (!box.checked) for (const name of JSON.parse(box.dataset.labels)) hidden.add(name);
    for (const table of document.querySelectorAll("table")) filterTable(table, hidden);
    for (const figure of document.querySelectorAll("figure")) filterChart(figure, hidden);
}

for (const table of document.querySelectorAll("table")) makeSortable(table);
const filter = document.getElementById("filter");
if (filter) {
    filter.hidden = false;
    filter.addEventListener("change", () => applyFilter(filter));
}
