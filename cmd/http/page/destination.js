// One destination: its mail by reason, its window and rate, its hosts, and the commands for it.

import { Chart } from "/chart.js";
import { aside, askObject, askRows, byId, count, element, many, put, rate, say, showCommands, showState, showTable, soon, span, word } from "/parts.js";
import { reasonColumns, reasonRows } from "/overview.js";

const LOOKS = 5;
const REASONS_MS = 5000;

// Those who have the address of before, without a key, are shown the first of that name.
const isMeant = (query, { site, transport, key }) =>
  site === query.get("site") && transport === query.get("transport") && (!query.has("key") || key === query.get("key"));

let seen; // {key, looks: the newest few [{at_ms, replies}], reasons_ms}

function open(query) {
  const key = query.toString();
  if (!seen || seen.key !== key) {
    seen = { key, looks: [], reasons_ms: 0 };
    hour.show([], Date.now());
    for (const id of ["site-reasons", "hosts"]) byId(id).tBodies[0]?.replaceChildren();
  }
  seen.reasons_ms = 0;
  put("site-name", query.get("site"));
  for (const id of ["site-transport", "site-holds", "site-failed"]) put(id, "");
  byId("site-state").replaceChildren();
}

// --- over time

const SERIES = [
  { name: "sent", words: "delivered", tell: "Recipients whose message it took" },
  { name: "deferred", words: "put off", tell: "Recipients that are tried again later, attempted or not" },
  { name: "bounced", words: "refused", tell: "Recipients that it refused for good" },
  { name: "unreached", words: "not reached", tell: "Connections that came to nothing" },
];
const hour = new Chart("site-hour", "The last hour of this destination, read by the arrow keys", SERIES);

// The step of now is not over: it is as long as it is.
function showHour({ step, last_began, counts, steps }) {
  const now = Date.now();
  const order = SERIES.map(({ name }) => counts.indexOf(name));
  hour.show(steps.map((of, i) => {
    const after = steps.length - 1 - i;
    const seconds = after ? step : Math.max(1, last_began);
    const at_ms = now - (after ? last_began + (after - 1) * step : 0) * 1000;
    return { at_ms, rates: order.map((k) => of[k] / seconds) };
  }), now);
}

function recentRate() {
  const newest = seen.looks[seen.looks.length - 1];
  const seconds = (newest.at_ms - seen.looks[0].at_ms) / 1000;
  return seconds > 0 ? rate(Math.max(0, newest.replies - seen.looks[0].replies) / seconds) : "–";
}

function showFigures(site) {
  seen.looks.push({ at_ms: Date.now(), replies: site.replies });
  if (seen.looks.length > LOOKS) seen.looks.shift();
  put("site-window", count(site.window));
  put("site-limit", site.limit ? " of " + count(site.limit) : "");
  put("site-busy", count(site.busy));
  put("site-connections", count(site.connections));
  put("site-rate", recentRate());
  put("site-replies", many(site.replies, "reply", "replies"));
  put("site-unreached", many(site.unreached, "connection") + " came to nothing");
  put("site-pace", site.rate_events ? ", at most " + many(site.rate_events, "delivery", "deliveries") + " in " + span(site.rate_per * 1000)
    : site.rate_delay ? ", one each " + span(site.rate_delay * 1000) : "");
  put("site-provider", site.provider ? ", provider " + site.provider : "");
  put("site-source", !site.source ? "" : ", source " + site.source
    + (site.refused_in > 0 ? ", refused, tried again in " + span(site.refused_in * 1000) : ""));
  put("site-waiting", count(site.waiting));
  put("site-deferred", count(site.deferred));
  put("site-parked", count(site.parked));
}

// --- hosts

function learnt(host) {
  const found = [];
  if (host.round_trip > 0) found.push("round trip " + (host.round_trip * 1000).toFixed(1) + " ms, " + (host.service * 1000).toFixed(1) + " ms a message");
  if (host.connections_most > 0) found.push("takes " + many(host.connections_most, "connection"));
  if (host.messages_most > 0) found.push("takes " + many(host.messages_most, "message") + " on a connection");
  if (host.recipients_most > 0) found.push("takes " + many(host.recipients_most, "recipient") + " at once");
  if (host.depth > 1) found.push("pipeline " + host.depth + " deep");
  if (host.mode_for > 0) found.push("spoken to in mode “" + host.mode + "” for " + span(host.mode_for * 1000));
  if (host.slow_for > 0) found.push("slow to connect, comes after others for " + span(host.slow_for * 1000));
  if (host.classical_for > 0) found.push("TLS with classical groups, as it chokes on a large ClientHello, for " + span(host.classical_for * 1000));
  if (host.tls_broken_for > 0) found.push("TLS is broken, not tried for " + span(host.tls_broken_for * 1000));
  if (host.unanswered > 0) found.push(many(host.unanswered, "connection") + " without an answer");
  if (host.in_doubt > 0) found.push(many(host.in_doubt, "delivery", "deliveries") + " in doubt");
  return found.join("; ") || "nothing yet";
}

function failure(host) {
  const last = host.last_failure;
  if (!last) return "none";
  return span(Date.now() - last.when * 1000) + " ago: " + (last.code ? last.code + " " : "") + last.reason;
}

const DOWN = ["out", "retry", "suspended"];

const hostColumns = [
  { title: "Host", look: "wide", fill: (cell, host) => {
    const name = cell.firstChild || cell.appendChild(element("b"));
    say(name, host.host || host.address);
    aside(cell, host.address + (host.port ? " port " + host.port : "") + (host.login ? ", as " + host.login : ""));
  } },
  { title: "State", look: "half", fill: (cell, host) => {
    say(cell, host.state + (host.retry_in > 0 ? ", tried again " + soon(host.retry_in * 1000) : ""));
    cell.className = DOWN.includes(host.state) ? "half failed" : "half";
  } },
  { title: "Preference", look: "n", fill: (cell, host) => say(cell, count(host.preference)) },
  { title: "Connections", look: "n", fill: (cell, host) => say(cell, host.ready + "/" + host.connections) },
  { title: "Learnt", look: "wide", fill: (cell, host) => say(cell, learnt(host)) },
  { title: "Last failure", look: "wide text", fill: (cell, host) => say(cell, failure(host)) },
];

// --- commands

function commands(site) {
  const name = word(site.site);
  const stop = site.state === "suspended"
    ? ["let it have mail again", "sluice dest resume", name]
    : ["send nothing there for now", "sluice dest suspend", name];
  return [
    stop,
    ["forget what was learnt, and try its hosts now", "sluice dest reset", name],
    ["all that is known of it", "sluice dest show", name],
    ["why its mail waits", "sluice explain", name],
    ["its messages", "sluice queue list --site", name],
    ["try its deferred mail now", "sluice queue flush --site", name],
    ["keep its mail aside, untried", "sluice queue hold --site", name],
    ["let go of what is kept aside", "sluice queue release --site", name],
    ["return its mail to the senders", "sluice queue bounce --site", name],
  ];
}

// --- answers

async function showHolds(query) {
  const { rows } = await askRows("/api/explain?site=" + encodeURIComponent(query.get("site")));
  const mine = rows.filter((why) => isMeant(query, why));
  put("site-holds", mine.map((why) => why.says[0].toUpperCase() + why.says.slice(1) + ".").join(" "));
}

async function showReasons(query) {
  const told = await askObject("/api/reasons?" + query);
  showTable("site-reasons", reasonColumns, reasonRows(told));
  put("site-reasons-read", told.read < told.messages ? "Of " + many(told.messages, "message") + " " + count(told.read) + " were read." : "");
}

async function refresh(query) {
  const of = seen;
  const { rows } = await askRows("/api/dest?name=" + encodeURIComponent(query.get("site")));
  const site = rows.find((row) => isMeant(query, row));
  if (of !== seen) return;
  if (!site) throw new Error("No mail is known for it any more.");
  site.dead_in_ms = site.dead_for * 1000;
  put("site-failed", "");
  showState(byId("site-state"), site);
  put("site-transport", "by transport " + site.transport);
  showFigures(site);
  showHour(site.past);
  showTable("hosts", hostColumns, site.hosts.map((host) => ({ ...host, key: host.address + " " + host.port + " " + host.host })));
  showCommands("site-commands", commands(site));
  await showHolds(query);
  if (Date.now() - seen.reasons_ms >= REASONS_MS) {
    await showReasons(query);
    seen.reasons_ms = Date.now();
  }
}

function failed(error) {
  put("site-failed", error.status === 404 ? "It is not known: no mail waits for it." : error.message);
}

export const destination = { id: "destination", title: (query) => query.get("site"), every_ms: 1000, open, refresh, failed };
