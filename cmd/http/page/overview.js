// The first view: what comes and goes, destinations, and what the oldest mail waits for.

import { Chart, ratesOf } from "/chart.js";
import { address, aside, askObject, asOf, announce, byId, count, element, keyed, link, many, micro, put, rate, replyWords, say, showState,
         showTable, span, spark } from "/parts.js";

const LOOKS = 300;
const RATE_LOOKS = 5;
const MINUTE = 60;
const NEWS_MS = 10000;

const state = {
  looks: [],        // the newest few: {at_ms, received, sent}
  commits: [],      // {at_ms, count, sum_us, messages, buckets}
  sites: new Map(), // site and transport: [at_ms, verdicts]
  said: "", said_ms: 0,
};

export function forget() {
  state.looks = [];
  state.commits = [];
  state.sites.clear();
}

// --- the hour

const SERIES = [
  { name: "received", words: "accepted", tell: "Messages taken from clients" },
  { name: "rejected", words: "turned away", tell: "Commands of clients that got a 4xx or 5xx" },
  { name: "sent", words: "delivered", tell: "Recipients whose host took the message" },
  { name: "deferred", words: "put off", tell: "Attempts on recipients that are tried again later" },
  { name: "bounced", words: "refused", tell: "Recipients that a host refused for good" },
];
const hour = new Chart("hour", "The last hour, read by the arrow keys", SERIES);

// counts: how the relay calls the numbers of each point, behind its time.
export function showHour({ counts, points }) {
  const order = SERIES.map(({ name }) => counts.indexOf(name) + 1);
  hour.show(ratesOf(points.map((point) => [point[0], ...order.map((i) => point[i])])), points.length ? points[points.length - 1][0] : Date.now());
}

// --- figures

// Of the last few seconds, so that the figure can be read.
function recent(name) {
  const newest = state.looks[state.looks.length - 1];
  const seconds = (newest.at_ms - state.looks[0].at_ms) / 1000;
  return seconds > 0 ? Math.max(0, newest[name] - state.looks[0][name]) / seconds : 0;
}

function showRates(now) {
  state.looks.push({ at_ms: now.at_ms, received: now.received, sent: now.sent });
  if (state.looks.length > RATE_LOOKS) state.looks.shift();
  put("rate-in", rate(recent("received")));
  put("rate-out", rate(recent("sent")));
  for (const name of ["received", "rejected", "sent", "deferred", "bounced"]) put(name, count(now[name]));
  put("in-doubt", count(now.in_doubt));
}

function showQueue(now) {
  const names = ["incoming", "active", "deferred", "hold"];
  for (const name of names) put("queue-" + name, count(now.queue[name]));
  put("queued", count(names.reduce((sum, name) => sum + now.queue[name], 0)));
  put("active-limit", now.active_limit ? "of " + count(now.active_limit) : "");
}

// The bound below which this part of the commits between two looks has stayed.
function quantile(part, buckets, bounds) {
  const all = buckets.reduce((sum, n) => sum + n, 0);
  let below = 0;
  for (let i = 0; i < buckets.length; i++) {
    below += buckets[i];
    if (below >= part * all) return i < bounds.length ? "≤ " + micro(bounds[i]) : "> " + micro(bounds[i - 1]);
  }
  return "–";
}

function showCommit(now) {
  const commits = state.commits;
  commits.push({ at_ms: now.at_ms, ...now.commit });
  if (commits.length > LOOKS) commits.shift();
  const newest = commits[commits.length - 1];
  const before = commits[Math.max(0, commits.length - 1 - MINUTE)];
  // The first look of a page is of all since the start.
  const since = newest === before || newest.count === before.count
    ? { count: 0, messages: 0, buckets: newest.buckets.map(() => 0) } : before;
  const buckets = newest.buckets.map((n, i) => n - since.buckets[i]);
  const n = newest.count - since.count;
  put("commit", n ? quantile(0.5, buckets, newest.bounds_us) : "–");
  put("commit-p99", n ? quantile(0.99, buckets, newest.bounds_us) : "–");
  put("commit-batch", n ? ((newest.messages - since.messages) / n).toFixed(1) : "–");
  spark("spark-commit", commits.slice(1).map((c, i) => {
    const more = c.count - commits[i].count;
    return more > 0 ? (c.sum_us - commits[i].sum_us) / more : 0;
  }));
}

function showConnections(connections) {
  put("clients", count(connections.clients));
  put("conn-busy", count(connections.busy));
  put("conn-idle", count(connections.idle));
  put("conn-connecting", count(connections.connecting));
}

// --- the situation, in sentences

// What keeps mail from being taken or sent, what it does, and what to do.
function conditionWords(one) {
  const what = one.name.replaceAll("_", " ") + (one.subject ? " (" + one.subject + ")" : "");
  const reason = one.reason ? " It was seen: " + one.reason + "." : "";
  return what[0].toUpperCase() + what.slice(1) + ": " + one.effect + "." + reason + " To do: " + one.remedy + ".";
}

function situation(now) {
  const found = [];
  const queue = now.queue;
  // One sender alone has nine tenths of it at most, if nothing else is set.
  const full = now.active_limit > 0 && queue.active >= 0.85 * now.active_limit;
  const suspended = now.worst.filter((site) => site.state === "suspended").length;
  for (const one of now.conditions) found.push([one.stops_mail ? "bad" : "warn", conditionWords(one)]);
  if (!now.accepting && !now.conditions.some((one) => one.stops_mail)) found.push(["bad", "New mail is refused."]);
  if (full) found.push(["bad", "The active queue is full. Some destination drains slower than mail for it arrives.", "See which", "#/shape?queue=active"]);
  if (!full && queue.incoming >= 100) found.push(["warn", "Mail arrives faster than it is taken up: look at the disk and the name server.", "See the incoming queue", "#/shape?queue=incoming"]);
  if (now.dead) found.push(["warn", many(now.dead, "destination takes", "destinations take") + " no mail: dead or out."]);
  if (now.tls.unproven.length) found.push(["warn", "Mail waits for TLS: " + many(now.tls.unproven.length, "destination does", "destinations do") + " not prove what the policy wants."]);
  if (suspended) found.push(["warn", many(suspended, "destination is", "destinations are") + " suspended by the operator."]);
  if (!found.length) found.push(["good", "Mail flows: incoming and active are not congested, and no destination is out."]);
  if (!full && queue.deferred > 0) found.push(["plain", many(queue.deferred, "message is", "messages are") + " deferred, which does no harm while the active queue is short.",
                                               "By destination", "#/shape?queue=deferred", "By sender", "#/shape?queue=deferred&by=sender"]);
  return found;
}

function showSituation(now) {
  const rows = situation(now).map(([look, text, ...links]) => ({ key: text.replace(/[\d,]+/g, "#"), look, text, links }));
  keyed(byId("situation"), rows, () => {
    const li = element("li");
    li.append(element("span"));
    return li;
  }, (li, row) => {
    li.className = row.look;
    say(li.firstChild, row.text);
    for (let i = 0; i < row.links.length && li.children.length <= row.links.length / 2; i += 2) {
      const a = element("a", row.links[i]);
      a.href = row.links[i + 1];
      li.append(" ", a);
    }
  });
  // Not each figure, but what is the matter, when it changes.
  const text = rows.filter((row) => row.look !== "plain").map((row) => row.text).join(" ");
  if (text === state.said || now.at_ms - state.said_ms < NEWS_MS) return;
  state.said = text;
  state.said_ms = now.at_ms;
  announce(text);
}

// --- tables

// From two looks at least three seconds apart, so that a site with one message a second shows it.
function siteRate(key, at_ms, verdicts) {
  const looks = state.sites.get(key) || [];
  looks.push([at_ms, verdicts]);
  while (looks.length > 6) looks.shift();
  state.sites.set(key, looks);
  const [before_ms, before] = looks[0];
  return at_ms > before_ms ? Math.max(0, verdicts - before) * 1000 / (at_ms - before_ms) : 0;
}

const siteColumns = [
  { title: "Destination", look: "wide", fill: (cell, site) => {
    link(cell, site.site, address("destination", { site: site.site, transport: site.transport }));
    aside(cell, site.transport);
  } },
  { title: "State", look: "half", fill: showState },
  { title: "Last reply", look: "wide text", fill: (cell, site) => say(cell, replyWords(site)) },
  { title: "Waiting", look: "n", fill: (cell, site) => say(cell, count(site.waiting)) },
  { title: "Deferred", look: "n", fill: (cell, site) => say(cell, count(site.deferred)) },
  { title: "Window", look: "n", fill: (cell, site) => say(cell, count(site.window)) },
  { title: "Busy", look: "n", fill: (cell, site) => say(cell, site.busy + "/" + site.connections) },
  { title: "Replies/s", look: "n", fill: (cell, site) => say(cell, rate(site.rate)) },
];

function showSites(now) {
  const rows = now.worst.map((site) => {
    const key = site.transport + " " + site.site;
    return { ...site, key, rate: siteRate(key, now.at_ms, site.verdicts) };
  });
  const known = new Set(rows.map((row) => row.key));
  for (const key of state.sites.keys()) if (!known.has(key)) state.sites.delete(key);
  showTable("sites", siteColumns, rows);
  const dead = now.dead ? "; " + count(now.dead) + " dead or out" : "";
  put("sites-count", now.sites > rows.length ? "The worst " + rows.length + " of " + count(now.sites) + dead + "." : "");
}

// --- TLS

const TLS_RESULTS = [
  ["dane", "proven by DANE"], ["mta_sts", "proven as MTA-STS wants"], ["matched", "proven as our policy wants"],
  ["unverified", "TLS, nobody asked who it is"], ["clear", "in clear"],
];
const TLS_FAILURES = [
  ["untrusted", "did not prove who they are"], ["failed", "broke off the handshake"], ["missing", "offered no TLS where it must be"],
  ["broken", "broke TLS and were tried in clear"],
];
const EXPIRY_NEAR_S = 14 * 86400;

const tlsColumns = [
  { title: "Connections", look: "wide", fill: (cell, row) => say(cell, row.words) },
  { title: "Number", look: "n", fill: (cell, row) => say(cell, count(row.n)) },
  { title: "Share", look: "n", fill: (cell, row) => say(cell, (100 * row.n / row.all).toFixed(1) + " %") },
];

const unprovenColumns = [
  { title: "Destination", look: "wide", fill: (cell, site) => {
    link(cell, site.site, address("destination", { site: site.site, transport: site.transport }));
    aside(cell, site.transport);
  } },
  { title: "Why", look: "wide text", fill: (cell, site) => say(cell, replyWords(site)) },
  { title: "Waiting", look: "n", fill: (cell, site) => say(cell, count(site.waiting)) },
  { title: "Deferred", look: "n", fill: (cell, site) => say(cell, count(site.deferred)) },
];

const certificateColumns = [
  { title: "File", look: "wide names", fill: (cell, one) => say(cell, one.file) },
  { title: "Expires", look: "n", fill: (cell, one) => {
    say(cell, one.left_s < 0 ? "expired " + span(-1000 * one.left_s) + " ago" : "in " + span(1000 * one.left_s));
    cell.classList.toggle("failed", one.left_s < EXPIRY_NEAR_S);
  } },
];

function showTls(tls) {
  const all = TLS_RESULTS.reduce((sum, [name]) => sum + tls[name], 0);
  showTable("tls", tlsColumns, all ? TLS_RESULTS.map(([name, words]) => ({ key: name, words, n: tls[name], all })) : []);
  const failed = TLS_FAILURES.filter(([name]) => tls[name] > 0).map(([name, words]) => count(tls[name]) + " " + words);
  put("tls-failures", failed.length ? "Besides, " + failed.join(", ") + "." : "None failed for TLS.");
  showTable("unproven", unprovenColumns, tls.unproven.map((site) => ({ ...site, key: site.transport + " " + site.site })));
  showTable("certificates", certificateColumns, [...tls.certificates].sort((a, b) => a.left_s - b.left_s).map((one) => ({ ...one, key: one.file })));
}

// An engine that is not there, or away, does not know it.
function countKnown(n) {
  return n === null ? "-" : count(n);
}

const nodeColumns = [
  { title: "Node", look: "wide", fill: (cell, node) => say(cell, node.node) },
  { title: "State", look: "half", fill: (cell, node) => say(cell, node.state) },
  { title: "Version", look: "half", fill: (cell, node) => say(cell, node.version || "-") },
  { title: "Seen", look: "n", fill: (cell, node) => say(cell, span(node.seen_ms) + " ago") },
  { title: "Received", look: "n", fill: (cell, node) => say(cell, countKnown(node.received)) },
  { title: "Sent", look: "n", fill: (cell, node) => say(cell, countKnown(node.sent)) },
  { title: "Queued", look: "n", fill: (cell, node) => say(cell, countKnown(node.queued)) },
  { title: "Epoch", look: "n", fill: (cell, node) => say(cell, countKnown(node.epoch)) },
  { title: "Queue", look: "half", fill: (cell, node) => say(cell, node.queue ? node.queue + (node.by === node.node ? "" : " by " + node.by) : "-") },
];

function showNodes(cluster) {
  byId("cluster").hidden = !cluster;
  if (!cluster) return;
  for (const name of ["received", "sent", "queued"]) put("cluster-" + name, countKnown(cluster[name]));
  showTable("nodes", nodeColumns, cluster.node.map((node) => ({ ...node, key: node.node })));
  const says = [];
  if (cluster.redis_away) says.push("Redis is away: it says nothing of the others now.");
  if (cluster.nats_away) says.push("NATS is away: whose queue is whose is as it said last.");
  if (cluster.nodes > cluster.node.length) says.push("The first " + cluster.node.length + " of " + count(cluster.nodes) + ".");
  put("cluster-says", says.join(" "));
}

export function reasonWords(reason) {
  if (reason.why) return (reason.why.site ? reason.why.site + ": " : "") + reason.why.says;
  if (reason.says) return reason.says;
  const untold = { incoming: "waits for the scheduler to take it up", active: "is being worked on", hold: "on hold, until it is released" };
  return untold[reason.queue] || "put off, without an attempt of its own";
}

export const reasonColumns = [
  { title: "Reason", look: "wide text", fill: (cell, reason) => say(cell, reasonWords(reason)) },
  { title: "Queue", look: "half short", fill: (cell, reason) => say(cell, reason.queue) },
  { title: "Messages", look: "n", fill: (cell, reason) => say(cell, (reason.thinned ? "about " : "") + count(reason.messages)) },
  { title: "Oldest", look: "n", fill: (cell, reason) => {
    const a = link(cell, span(Date.now() - reason.oldest_ms), address("message", { id: reason.id }));
    a.title = "Message " + reason.id;
  } },
  { title: "Mail for", look: "wide names", fill: (cell, reason) => {
    say(cell, reason.domains.join(", ") + (reason.more_domains ? ", …" : ""));
  } },
];

export function reasonRows(told) {
  const thinned = told.read < told.messages;
  return told.reasons.map((reason) => ({
    ...reason, thinned: thinned && reason.messages > 9,
    key: reason.queue + " " + (reason.why ? reason.why.constraint + reason.why.site : reason.code + " " + (reason.text || "").replace(/\S*[\d@]\S*/g, "*")),
  }));
}

async function refresh() {
  const told = await askObject("/api/reasons");
  showTable("reasons", reasonColumns, reasonRows(told));
  put("reasons-read", (told.read < told.messages || told.cut ? "Of " + many(told.read, "message") + " that were read. " : "")
    + asOf((Date.now() - told.at_ms) / 1000));
}

export function showNow(now) {
  showRates(now);
  showQueue(now);
  showCommit(now);
  showConnections(now.connections);
  showSituation(now);
  showSites(now);
  showTls(now.tls);
  showNodes(now.cluster);
}

export const overview = { id: "overview", title: () => "Overview", every_ms: 5000, refresh };
