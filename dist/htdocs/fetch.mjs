// Shows what the server answers for a JSON file: status, type, and how many entries it brought.

const answer = document.querySelector("#answer code");
const response = await fetch("monkeys.json");
const monkeys = await response.json();

answer.textContent = [
    `${response.status} ${response.headers.get("Content-Type")}`,
    ...monkeys.map(({ name, from, grams }) => `${name}, ${from}: ${(grams / 1000).toLocaleString("en")} kg`),
].join("\n");
