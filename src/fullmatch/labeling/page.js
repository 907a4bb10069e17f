"use strict";
const the = (id) => document.getElementById(id);
const KEYS = "1234567890";
let state = null;
let waiting = true; // for an answer or a picture: what is not yet seen cannot be labeled

async function ask(path, body) {
  waiting = true;
  try {
    const headers = { "Content-Type": "application/json" };
    const options = body && { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(path, options);
    const found = await response.json();
    if (found.error) throw new Error(found.error);
    the("problem").hidden = true;
    show(found);
    return response.ok;
  } catch (error) {
    const lost = error instanceof TypeError;
    complain(lost ? "No connection: start fullmatch label again. Labels so far are kept." : error.message);
    waiting = false;
    return false;
  }
}

function complain(words) {
  the("problem").textContent = words;
  the("problem").hidden = false;
}

function show(found) {
  const before = state;
  state = found;
  const { number, total, classes } = state;
  const finished = number >= total;
  the("progress").textContent = finished
    ? `${state.labeled} of ${total} pictures labeled`
    : `Picture ${number + 1} of ${total}, ${state.labeled} labeled`;
  the("bar").max = total;
  the("bar").value = number;
  if (classes.join("\n") !== before?.classes.join("\n")) the("classes").replaceChildren(...classes.map(choice));
  the("classes").hidden = finished || !classes.length;
  the("hint").hidden = finished || classes.length > 0;
  the("skip").disabled = finished;
  the("undo").disabled = number === 0;
  the("new").hidden = finished;
  the("figure").hidden = finished;
  the("done").hidden = !finished;
  the("question").textContent = finished ? "Done" : "Which class is this?";
  if (before && before.number !== number) announce(before);
  if (finished) {
    the("done").textContent = state.labeled
      ? `The labels are in ${state.table}. Press Ctrl-C in the terminal: it says how to train with them.`
      : "No picture was labeled. Press Ctrl-C in the terminal to stop.";
    the("question").focus();
    waiting = false;
  } else if (before?.number === number) {
    waiting = false;
  } else {
    the("picture").alt = `Picture ${number + 1} of ${total}, ${state.name}`;
    the("name").textContent = state.name;
    the("reason").textContent = state.reason;
    the("picture").src = `picture/${number}`;
  }
}

function announce(before) {
  const { number, total, last } = state;
  const done = number < before.number ? "Undone." : last ? `Labeled ${last}.` : "Skipped.";
  const next = number < total ? `Picture ${number + 1} of ${total}: ${state.reason}` : "That was the last picture.";
  the("said").textContent = `${done} ${next}`;
}

function choice(name, index) {
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
  if (!waiting) ask(path, { number: state.number, ...more });
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

the("skip").addEventListener("click", skip);
the("undo").addEventListener("click", undo);
the("picture").addEventListener("load", () => (waiting = false));
the("picture").addEventListener("error", () => {
  complain("This picture cannot be read any more: skip it.");
  waiting = false;
});
the("new").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (waiting || !(await ask("class", { name: the("class").value }))) return;
  the("class").value = "";
  the("figure").focus(); // so that the next key is a choice again
  the("said").textContent = `Class ${state.classes.at(-1)} added.`;
});
document.addEventListener("keydown", (event) => {
  const typing = event.target === the("class");
  if (typing && event.key === "Escape") the("figure").focus();
  const modified = event.ctrlKey || event.metaKey || event.altKey || event.repeat;
  if (typing || modified || !state || !the("keys").checked) return;
  const key = event.key.toLowerCase();
  if (key === "s") skip();
  else if (key === "u") undo();
  else if (key === "n" && state.number < state.total) {
    event.preventDefault(); // the letter is not meant for the field
    the("class").focus();
  } else if (key.length === 1 && KEYS.includes(key)) label(state.classes[KEYS.indexOf(key)]);
});
ask("state");
