"use strict";
const byId = (id) => document.getElementById(id);
const KEYS = "1234567890";
let state = null;
let waiting = true; // for a response or a picture: only a picture that is shown can be labeled

async function send(path, body) {
  waiting = true;
  try {
    const headers = { "Content-Type": "application/json" };
    const options = body && { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(path, options);
    const answer = await response.json();
    if (answer.error) throw new Error(answer.error);
    byId("problem").hidden = true;
    show(answer);
    return response.ok;
  } catch (error) {
    const disconnected = error instanceof TypeError;
    showProblem(disconnected ? "No connection: start fullmatch label again. The labels so far are saved." : error.message);
    waiting = false;
    return false;
  }
}

function showProblem(message) {
  byId("problem").textContent = message;
  byId("problem").hidden = false;
}

function show(newState) {
  const before = state;
  state = newState;
  const { number, total, classes } = state;
  const finished = number >= total;
  byId("progress").textContent = finished
    ? `${state.labeled} of ${total} pictures labeled`
    : `Picture ${number + 1} of ${total}, ${state.labeled} labeled`;
  byId("bar").max = total;
  byId("bar").value = number;
  if (classes.join("\n") !== before?.classes.join("\n")) byId("classes").replaceChildren(...classes.map(makeButton));
  byId("classes").hidden = finished || !classes.length;
  byId("hint").hidden = finished || classes.length > 0;
  byId("skip").disabled = finished;
  byId("undo").disabled = number === 0;
  byId("new").hidden = finished;
  byId("figure").hidden = finished;
  byId("done").hidden = !finished;
  byId("question").textContent = finished ? "Done" : "Which class is this?";
  if (before && before.number !== number) announce(before);
  if (finished) {
    byId("done").textContent = state.labeled
      ? `The labels are in ${state.table}. Press Ctrl-C in the terminal: it shows how to train with them.`
      : "No picture was labeled. Press Ctrl-C in the terminal to stop.";
    byId("question").focus();
    waiting = false;
  } else if (before?.number === number) {
    waiting = false;
  } else {
    byId("picture").alt = `Picture ${number + 1} of ${total}, ${state.name}`;
    byId("name").textContent = state.name;
    byId("reason").textContent = state.reason;
    byId("picture").src = `picture/${number}`;
  }
}

function announce(before) {
  const { number, total, last } = state;
  const done = number < before.number ? "Undone." : last ? `Labeled ${last}.` : "Skipped.";
  const next = number < total ? `Picture ${number + 1} of ${total}: ${state.reason}` : "That was the last picture.";
  byId("status").textContent = `${done} ${next}`;
}

function makeButton(name, index) {
  const button = document.createElement("button");
  button.type = "button";
  if (index < KEYS.length) {
    const key = document.createElement("kbd");
    key.textContent = KEYS[index];
    button.append(key, " ");
    button.setAttribute("aria-keyshortcuts", KEYS[index]);
  }
  button.append(name);
  button.addEventListener("click", () => label(name));
  return button;
}

function act(path, more) {
  if (!waiting) send(path, { number: state.number, ...more });
}

function label(name) {
  if (name !== undefined && state.number < state.total) act("label", { label: name });
}

function skip() {
  if (state.number < state.total) act("skip");
}

function undo() {
  if (state.number > 0) act("undo");
}

byId("skip").addEventListener("click", skip);
byId("undo").addEventListener("click", undo);
byId("picture").addEventListener("load", () => (waiting = false));
byId("picture").addEventListener("error", () => {
  showProblem("This picture can no longer be read: skip it.");
  waiting = false;
});
byId("new").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (waiting || !(await send("class", { name: byId("class").value }))) return;
  byId("class").value = "";
  byId("figure").focus(); // so that the next key chooses a class again
  byId("status").textContent = `Class ${state.classes.at(-1)} added.`;
});
document.addEventListener("keydown", (event) => {
  const typing = event.target === byId("class");
  if (typing && event.key === "Escape") byId("figure").focus();
  const modified = event.ctrlKey || event.metaKey || event.altKey || event.repeat;
  if (typing || modified || !state || !byId("keys").checked) return;
  const key = event.key.toLowerCase();
  if (key === "s") skip();
  else if (key === "u") undo();
  else if (key === "n" && state.number < state.total) {
    event.preventDefault(); // keeps the letter out of the field
    byId("class").focus();
  } else if (key.length === 1 && KEYS.includes(key)) label(state.classes[KEYS.indexOf(key)]);
});
send("state");
