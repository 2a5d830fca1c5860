// What the views are made of. Text that comes from mail or from peers goes in by textContent only.

export const byId = (id) => document.getElementById(id);

// What is the same stays untouched: a selection, and a reader's place, stay with it.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const put = (id, text) => say(byId(id), text);

export function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// --- figures and times

export const count = (n) => n.toLocaleString("en");

export function many(n, one, more) {
  return count(n) + " " + (n === 1 ? one : more || one + "s");
}

export function rate(n) {
  if (n === 0) return "0";
  return n < 10 ? n.toFixed(1) : count(Math.round(n));
}

export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86400) + " days";
}

export const soon = (ms) => ms < 1000 ? "now" : "in " + span(ms);

export function micro(us) {
  if (us < 1000) return Math.round(us) + " µs";
  if (us < 1e6) return (us / 1000).toFixed(us < 10000 ? 1 : 0) + " ms";
  return (us / 1e6).toFixed(1) + " s";
}

// --- tables and lists

// Children stay the same elements as long as their keys do, and the one that has the focus is never
// moved: the others are put around it. One that has it and is no longer wanted stays until it has not.
export function keyed(parent, rows, make, fill) {
  const had = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const wanted = rows.map((data) => {
    const child = had.get(data.key) || make();
    had.delete(data.key);
    child.dataset.key = data.key;
    fill(child, data);
    return child;
  });
  const focused = [...parent.children].find((child) => child.contains(document.activeElement));
  for (const child of had.values()) {
    if (child === focused) wanted.push(child);
    else child.remove();
  }
  if (wanted.every((child, i) => parent.children[i] === child)) return;
  const middle = wanted.indexOf(focused);
  if (middle < 0) parent.append(...wanted);
  else wanted.forEach((child, i) => {
    if (i < middle) parent.insertBefore(child, focused);
    else if (i > middle) parent.append(child);
  });
}

// columns: title; look: the class of its cells; fill(cell, data). The first heads the row.
export function showTable(id, columns, rows) {
  const table = byId(id);
  if (!table.tHead) {
    const head = table.createTHead().insertRow();
    for (const column of columns) {
      const th = element("th", column.title, column.look);
      th.scope = "col";
      th.setAttribute("role", "columnheader");
      head.append(th);
    }
    table.createTBody();
    // Said again, for where rows are shown as cards.
    table.setAttribute("role", "table");
    head.setAttribute("role", "row");
    for (const part of [table.tHead, table.tBodies[0]]) part.setAttribute("role", "rowgroup");
  }
  keyed(table.tBodies[0], rows, () => newRow(columns), (tr, data) => {
    columns.forEach((column, i) => column.fill(tr.cells[i], data));
  });
  table.hidden = rows.length === 0;
  const none = byId(id + "-none");
  if (none) none.hidden = rows.length > 0;
}

function newRow(columns) {
  const tr = element("tr");
  tr.setAttribute("role", "row");
  columns.forEach((column, i) => {
    const cell = element(i ? "td" : "th", null, column.look);
    cell.setAttribute("role", i ? "cell" : "rowheader");
    if (!i) cell.scope = "row";
    cell.dataset.name = column.title;
    tr.append(cell);
  });
  return tr;
}

export function link(cell, text, href) {
  let a = cell.querySelector("a");
  if (!a) {
    a = element("a");
    cell.append(a);
  }
  say(a, text);
  if (a.getAttribute("href") !== href) a.setAttribute("href", href);
  return a;
}

// A number that leads to its mail; none leads nowhere.
export function linkCount(cell, n, href) {
  if (n > 0) {
    if (!cell.firstElementChild) cell.replaceChildren();
    link(cell, count(n), href);
  } else {
    say(cell, "0");
  }
}

// Text behind the link of a cell.
export function aside(cell, text) {
  let note = cell.querySelector("span");
  if (!note) {
    note = element("span", null, "dim");
    cell.append(" ", note);
  }
  say(note, text);
}

export function address(view, values) {
  const query = new URLSearchParams(values).toString();
  return "#/" + view + (query ? "?" + query : "");
}

// Which destination; its name alone may be that of another, too.
export const siteValues = ({ site, transport, key }) => ({ site, transport, key });

// --- states, in words

function paceWords(site) {
  const rate = site.pace ? site.pace.rate : site.pace_per_1000s / 1000;
  return rate >= 1 ? Math.round(rate) + "/s" : rate > 0 ? "one in " + Math.round(1 / rate) + " s" : "less";
}

export function stateWords(site) {
  const ms = site.dead_in_ms;
  if (site.state === "suspended") return "suspended by the operator";
  if (site.state === "limited") return "limited: takes no more connections";
  if (site.state === "paced") return "paced: " + (site.provider ? site.provider + " " : "") + "lets " + paceWords(site) + " through";
  if (site.state === "refused") return "refused: takes no mail" + (ms > 0 ? ", asked again " + soon(ms) : "");
  return ms > 0 ? site.state + ", tried again " + soon(ms) : site.state;
}

export function showState(cell, site) {
  let mark = cell.querySelector(".state");
  if (!mark) {
    mark = element("span");
    cell.append(mark);
  }
  say(mark, stateWords(site));
  mark.className = "state " + site.state;
}

const CLASSES = { sent: "", deferred: "put off: ", bounced: "refused: ", in_doubt: "in doubt: " };

export function replyWords(site) {
  if (site.last === null) return "none yet";
  const code = site.last_code ? site.last_code + " " : "";
  return (CLASSES[site.last_class] || "") + code + site.last + (site.last_host ? " (" + site.last_host + ")" : "");
}

// --- commands

// As one word of a shell; null where it could not be typed.
export function word(text) {
  if (/[\u0000-\u001f\u007f]/.test(text)) return null;
  if (/^[A-Za-z0-9@%+=:,./_][A-Za-z0-9@%+=:,./_-]*$/.test(text)) return text;
  return "'" + text.replaceAll("'", "'\\''") + "'";
}

// Each: [what it does, words...]; those with a word that can't be typed are left out.
export function showCommands(id, commands) {
  const rows = commands.filter((row) => !row.includes(null))
    .map(([what, ...words]) => ({ key: what, what, text: words.join(" ") }));
  keyed(byId(id), rows, newCommand, (li, row) => {
    say(li.children[0], row.what);
    say(li.children[1], row.text);
    li.children[2].setAttribute("aria-label", "Copy: " + row.text);
  });
}

function newCommand() {
  const li = element("li"), button = element("button", "Copy");
  button.type = "button";
  li.append(element("span", null, "dim"), element("code"), button);
  button.addEventListener("click", () => copy(li.children[1], button));
  return li;
}

async function copy(code, button) {
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    // Not on a page that came by plain HTTP from afar.
    getSelection().selectAllChildren(code);
    done = "Selected";
  }
  say(button, done);
  announce(done + ": " + code.textContent);
  setTimeout(() => say(button, "Copy"), 3000);
}

// --- said to those who do not see the page: seldom, and each thing once

export function announce(text) {
  say(byId("news"), text);
}

// --- answers

export async function ask(path) {
  const reply = await fetch(path);
  const text = await reply.text();
  if (!reply.ok) {
    const error = new Error(text.trim());
    error.status = reply.status;
    throw error;
  }
  return { text, age_s: Number(reply.headers.get("Age") || 0) };
}

export const askObject = async (path) => JSON.parse((await ask(path)).text);

export async function askRows(path) {
  const { text, age_s } = await ask(path);
  return { rows: text.trim().split("\n").filter(Boolean).map((row) => JSON.parse(row)), age_s };
}

export const asOf = (age_s) => age_s > 9 ? "As of " + span(age_s * 1000) + " ago." : "";
