const find = id => document.getElementById(id);
let token = "";

// Returns what the service has responded; throws the text of an error, which the page shows.
async function call(method, path, body) {
    const headers = {"Content-Type": "application/json", "X-CSRF-Token": token};
    const response = await fetch("api/" + path, {method, headers, body: body && JSON.stringify(body)});
    const result = response.status === 204 ? null : await response.json();
    find("error").textContent = response.ok ? "" : result.error;
    if (!response.ok)
        throw new Error(result.error);
    return result;
}

// What users have written becomes text, never HTML.
function makeItem({id, text, done}) {
    const item = find("todo").content.firstElementChild.cloneNode(true);
    const [box, label, button] = item.children;
    item.id = "todo-" + id;
    label.textContent = text;
    box.checked = done;
    box.onchange = () => call("PUT", "todos/" + id, {text, done: box.checked});
    button.onclick = () => call("DELETE", "todos/" + id);
    return item;
}

// Changes of this page are shown when they come back, as those of others.
function begin(user) {
    const events = new EventSource("api/events");
    const load = async () => find("todos").replaceChildren(...(await call("GET", "todos")).map(makeItem));
    let loaded;
    events.onopen = () => { loaded = load(); }; // again after the connection was lost: changes may have been missed
    events.onmessage = async message => {
        const {event, todo} = JSON.parse(message.data);
        await loaded; // the list may be older than this change
        const old = find("todo-" + todo.id), item = event === "removed" ? "" : makeItem(todo);
        old ? old.replaceWith(item) : find("todos").append(item);
    };
    token = user.csrf_token;
    find("name").textContent = user.name;
    find("login").hidden = true;
    find("main").hidden = false;
}

find("login").onsubmit = async event => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.target));
    begin(await call("POST", event.submitter.value, fields)); // "login" or "users"
};
find("add").onsubmit = async event => {
    event.preventDefault();
    await call("POST", "todos", Object.fromEntries(new FormData(event.target)));
    event.target.reset();
};
find("logout").onclick = () => call("POST", "logout").then(() => location.reload());
call("GET", "me").then(begin, () => { find("login").hidden = false; });
