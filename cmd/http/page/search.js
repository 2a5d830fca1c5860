// Mail by address or domain, and one message.

import { reasonColumns, reasonRows } from "/overview.js";
import { address, askObject, askRows, byId, count, element, keyed, link, many, put, say, showCommands, showTable, siteValues, span, word } from "/parts.js";

const RECIPIENTS = 50;

// --- results

const siteColumns = [
  { title: "Destination", look: "wide", fill: (cell, site) => {
    link(cell, site.site, address("destination", siteValues(site)));
  } },
  { title: "Waiting", look: "n", fill: (cell, site) => say(cell, count(site.waiting)) },
  { title: "What holds its mail", look: "wide text", fill: (cell, site) => say(cell, site.says) },
];

const messageColumns = [
  { title: "Message", look: "half short", fill: (cell, message) => link(cell, message.id, address("message", { id: message.id })) },
  { title: "Queue", look: "half short", fill: (cell, message) => say(cell, message.queue) },
  { title: "Age", look: "n", fill: (cell, message) => say(cell, span(Date.now() - message.arrived_ms)) },
  { title: "From", look: "wide names", fill: (cell, message) => say(cell, message.from || "nobody (a bounce)") },
  { title: "To", look: "wide names", fill: (cell, message) => {
    const more = message.recipients > 1 ? " and " + count(message.recipients - 1) + " more" : "";
    say(cell, (message.to || "nobody") + more);
  } },
  { title: "Last reply", look: "wide text", fill: (cell, message) => say(cell, message.says || "none yet") },
];

const FIELDS = ["q", "queue", "site", "transport", "key", "flow", "login"];

// Of the address of a view those that are a question.
function asked(query) {
  return Object.fromEntries(FIELDS.filter((name) => query.get(name)).map((name) => [name, query.get(name).trim()]));
}

function searchTitle(query) {
  const { q, queue, site, flow, login } = asked(query);
  if (q && !queue && !flow && !login) return "Search: " + q;
  const parts = [queue && "in " + queue, q && "to or from " + q, site && "for " + site, flow && "of the flow " + flow, login && "of the login " + login];
  return "Mail " + parts.filter(Boolean).join(", ");
}

// The same as options, each with its value as a word of the shell.
function listWords(query, is) {
  const { q, queue, site, flow, login } = asked(query);
  return ["sluice queue list", ...(queue ? ["--queue", queue] : []), ...(q ? [is, word(q)] : []), ...(site ? ["--site", word(site)] : []),
          ...(flow ? ["--flow", word(flow)] : []), ...(login ? ["--login", word(login)] : [])];
}

function openSearch(query) {
  const words = query.get("q") || "";
  byId("words").value = words;
  put("search-title", searchTitle(query));
  put("search-said", "…");
  for (const id of ["found", "found-sites", "found-reasons"]) byId(id).tBodies[0]?.replaceChildren();
  byId("found-pages").replaceChildren();
  const options = !words ? [""] : words.includes("@") ? ["--to", "--from"] : ["--domain"];
  showCommands("search-commands", options.map((is) => [is === "--from" ? "from it" : is ? "to it" : "all of them", ...listWords(query, is)]));
}

// The message behind which the next page begins; the way back is the browser's.
function showPages(query, next) {
  const pages = [...(query.get("after") ? [["the oldest", address("search", asked(query))]] : []),
                 ...(next ? [["the next ones", address("search", { ...asked(query), after: next })]] : [])];
  keyed(byId("found-pages"), pages.map(([text, href]) => ({ key: text, text, href })), () => element("span"), (node, page) => {
    link(node, page.text, page.href);
    if (node.childNodes.length === 1) node.append(" ");
  });
}

function foundWords(query, told) {
  const shown = told.messages.length;
  const what = query.get("q") ? " to or from it" : "";
  const where = query.get("after") ? "The next " : told.next ? "The oldest " : "";
  const all = told.next && !told.cut ? ", of " + count(told.found) + (query.get("after") ? " left" : "") : "";
  const half = told.cut && told.kind === "address" ? " Only " + many(told.read, "message") + " of its domain were read: the command below reads all."
    : told.cut && shown === 0 ? " " + many(told.read, "message") + " were read: look further." : "";
  return where + many(shown, "message") + what + all + "." + half;
}

async function refreshSearch(query) {
  const after = query.get("after");
  const told = await askObject("/api/search?" + new URLSearchParams({ ...asked(query), ...(after ? { after } : {}) }));
  showTable("found-sites", siteColumns, told.sites.map((site) => ({ ...site, key: site.key || "domain " + site.site })));
  byId("found-sites-card").hidden = told.sites.length === 0;
  showTable("found-reasons", reasonColumns, reasonRows(told));
  byId("found-reasons-card").hidden = told.reasons.length === 0;
  showTable("found", messageColumns, told.messages.map((message) => ({ ...message, key: message.id })));
  showPages(query, told.next);
  put("search-said", foundWords(query, told));
}

function failedSearch(error) {
  put("search-said", error.status === 404 ? "No mail is known for it." : error.message);
}

export const search = { id: "search-view", title: searchTitle, every_ms: 5000, open: openSearch, refresh: refreshSearch, failed: failedSearch };

// --- one message

const recipientColumns = [
  { title: "Recipient", look: "wide", fill: (cell, to) => say(cell, to.to) },
  { title: "State", look: "half", fill: (cell, to) => say(cell, to.done ? "done: " + to.status : to.status) },
  { title: "Tries", look: "n", fill: (cell, to) => say(cell, count(to.tries)) },
  { title: "Last reply", look: "wide text", fill: (cell, to) => {
    say(cell, to.reason === null ? "none yet" : (to.code ? to.code + " " : "") + to.reason);
  } },
];

function openMessage(query) {
  const id = query.get("id") || "", typed = word(id);
  put("message-title", "Message " + id);
  put("message-said", "…");
  put("recipients-count", "");
  byId("message-why").replaceChildren();
  byId("recipients").tBodies[0]?.replaceChildren();
  showCommands("message-commands", [
    ["read it", "sluice queue show", typed],
    ["try it now", "sluice queue flush", typed],
    ["keep it aside, untried", "sluice queue hold", typed],
    ["let it go again", "sluice queue release", typed],
    ["return it to its sender", "sluice queue bounce", typed],
    ["remove it without a word", "sluice queue delete", typed],
  ]);
}

async function showWhy(id) {
  const { rows } = await askRows("/api/explain?id=" + encodeURIComponent(id));
  keyed(byId("message-why"), rows.map((why, i) => ({ key: String(i), text: (why.site ? why.site + ": " : "") + why.says })),
    () => element("li"), (li, row) => say(li, row.text));
}

async function refreshMessage(query) {
  const id = query.get("id") || "";
  const { rows: [message] } = await askRows("/api/queue?id=" + encodeURIComponent(id));
  const open = message.rcpts.filter((to) => !to.done).length;
  put("message-said", "From " + (message.from || "nobody (a bounce)") + ", " + span(Date.now() - message.arrived * 1000) + " old, " + many(message.size, "byte") + ", in "
    + message.queue + ", after " + many(message.tries, "try", "tries") + ".");
  put("recipients-count", open + " of " + message.rcpts.length + " left" + (message.rcpts.length > RECIPIENTS ? "; the first " + RECIPIENTS + " are shown" : "") + ".");
  showTable("recipients", recipientColumns, message.rcpts.slice(0, RECIPIENTS).map((to, i) => ({ ...to, key: String(i) })));
  await showWhy(id);
}

function failedMessage(error) {
  put("message-said", error.status === 404 ? "It is not in the queue (any more)." : error.message);
  byId("message-why").replaceChildren();
}

export const message = { id: "message", title: (query) => "Message " + query.get("id"), every_ms: 5000, open: openMessage, refresh: refreshMessage,
                         failed: failedMessage };
