// The first view: what comes and goes, destinations, and what the oldest mail waits for.

import { Chart, ratesOf } from "/chart.js";
import { address, aside, askObject, askRows, asOf, announce, byId, count, element, keyed, link, linkCount, many, micro, put, rate, replyWords, say, showState,
         showTable, siteValues, span } from "/parts.js";
import { drainMs, siteTrouble } from "/trouble.js";

const LOOKS = 300;
const RATE_LOOKS = 5;
const HALF_MINUTE = 31; // looks
const PUT_OFF_MANY = 100;
const FLOOD_MANY = 100;
const FLOWS = 12;
const TROUBLED = 3;
const MINUTE = 60;
const NEWS_MS = 10000;

const state = {
  looks: [],        // of the last half minute: {at_ms, received, sent, deferred}
  commits: [],      // {at_ms, count, messages, buckets}
  sites: new Map(), // key of a site: [[at_ms, attempts, verdicts]]
  oldest: new Map(), // number of a site: its oldest deferred message
  flows: [],
  troubled: [],
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

// How much more than so many looks ago.
function more(name, looks) {
  const newest = state.looks[state.looks.length - 1];
  const before = state.looks[Math.max(0, state.looks.length - looks)];
  return { n: Math.max(0, newest[name] - before[name]), seconds: (newest.at_ms - before.at_ms) / 1000 };
}

// Of the last few seconds, so that the figure can be read.
function recent(name) {
  const { n, seconds } = more(name, RATE_LOOKS);
  return seconds > 0 ? n / seconds : 0;
}

function showRates(now) {
  state.looks.push({ at_ms: now.at_ms, received: now.received, sent: now.sent, deferred: now.deferred });
  if (state.looks.length > HALF_MINUTE) state.looks.shift();
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
    if (below >= part * all) return i < bounds.length ? micro(bounds[i]) : "more than " + micro(bounds[i - 1]);
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
  put("commits", n ? "Commits to disk in the last minute: half of them within " + quantile(0.5, buckets, newest.bounds_us) + ", 99 of 100 within "
    + quantile(0.99, buckets, newest.bounds_us) + "; " + ((newest.messages - since.messages) / n).toFixed(1) + " messages each." : "No commit to disk in the last minute.");
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

// One that has most of what is being worked on keeps the others waiting, or will.
function floods(now) {
  const all = now.queue.active;
  return state.flows.filter((flow) => flow.messages >= FLOOD_MANY && flow.messages > 0.5 * all)
    .map((flow) => ["warn", "One sender has most of the mail that is being worked on: " + flow.flow + " has " + count(Math.min(flow.messages, all)) + " of " + many(all, "message") + ".",
                    "See them", address("search", { flow: flow.flow })]);
}

// So much was put off at once that no figure of the queue shows it yet.
function storm() {
  const late = more("deferred", HALF_MINUTE), sent = more("sent", HALF_MINUTE);
  if (late.n < PUT_OFF_MANY || late.n < sent.n) return [];
  return [["warn", many(late.n, "recipient was", "recipients were") + " put off within " + Math.max(1, Math.round(late.seconds)) + " s, and " + count(sent.n) + " delivered.",
           "Why", "#/search?queue=deferred"]];
}

// What the rows below say of themselves; where none does, all of them together.
function troubles() {
  const said = state.troubled.slice(0, TROUBLED).map((site) => ["warn", site.site + ": " + site.trouble, "Look at it", address("destination", siteValues(site))]);
  return said.length ? said : storm();
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
  found.push(...floods(now), ...troubles());
  if (now.dead) found.push(["warn", many(now.dead, "destination takes", "destinations take") + " no mail: dead or out."]);
  if (now.tls.unproven.length) found.push(["warn", "Mail waits for TLS: " + many(now.tls.unproven.length, "destination does", "destinations do") + " not prove what the policy wants."]);
  if (suspended) found.push(["warn", many(suspended, "destination is", "destinations are") + " suspended by the operator."]);
  if (now.logins.suspended) found.push(["plain", many(now.logins.suspended, "login is", "logins are") + " suspended by the operator."]);
  if (!found.some(([look]) => look !== "plain")) found.unshift(["good", "Mail flows: incoming and active are not congested, and no destination is out."]);
  const harmless = state.troubled.length ? "." : ", which does no harm while the active queue is short.";
  if (!full && queue.deferred > 0) found.push(["plain", many(queue.deferred, "message is", "messages are") + " deferred" + harmless,
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
  const told = rows.filter((row) => row.look !== "plain");
  const text = told.map((row) => row.text).join(" "), matter = told.map((row) => row.key).join(" ");
  if (matter === state.said || now.at_ms - state.said_ms < NEWS_MS) return;
  state.said = matter;
  state.said_ms = now.at_ms;
  announce(text);
}

// --- tables

// From looks some seconds apart, so that a site with one message a second shows it.
function siteRates(site, at_ms) {
  const looks = state.sites.get(site.key) || [];
  looks.push([at_ms, site.attempts, site.verdicts]);
  while (looks.length > 6) looks.shift();
  state.sites.set(site.key, looks);
  const [before_ms, attempts, verdicts] = looks[0];
  const each = (now, before) => (at_ms > before_ms ? Math.max(0, now - before) * 1000 / (at_ms - before_ms) : 0);
  return { attempt_rate: each(site.attempts, attempts), rate: each(site.verdicts, verdicts) };
}

function domainWords(site) {
  if (!site.domains) return "";
  const others = site.domains - site.domain.length;
  return "for " + site.domain.join(", ") + (others > 0 ? " and " + count(others) + " more" : "");
}

// What waits and what was deferred, whichever is older.
function oldestOf(site) {
  const deferred = state.oldest.get(site.number);
  if (deferred && (!site.oldest_ms || deferred.arrived_ms < site.oldest_ms)) return { ms: deferred.arrived_ms, id: deferred.id };
  return site.oldest_ms ? { ms: site.oldest_ms, id: null } : null;
}

const mailOf = (site, queue) => address("search", { queue, ...((site.domains && !site.domains_seen) || queue === "deferred" ? siteValues(site) : {}) });

const siteColumns = [
  { title: "Destination", look: "wide names", fill: (cell, site) => {
    link(cell, site.site, address("destination", siteValues(site)));
    aside(cell, [site.transport, domainWords(site)].filter(Boolean).join(", "));
  } },
  { title: "State", look: "wide text", fill: (cell, site) => {
    showState(cell, site);
    const why = cell.querySelector(".trouble") || cell.appendChild(element("p", null, "trouble"));
    say(why, site.trouble);
    why.hidden = !site.trouble;
  } },
  { title: "Last reply", look: "wide text", fill: (cell, site) => say(cell, replyWords(site)) },
  { title: "Waiting", look: "n", fill: (cell, site) => linkCount(cell, site.waiting, mailOf(site, "active")) },
  { title: "Deferred", look: "n", fill: (cell, site) => linkCount(cell, site.deferred, mailOf(site, "deferred")) },
  { title: "Oldest", look: "n", fill: (cell, site) => {
    const oldest = oldestOf(site);
    const age = oldest ? span(Date.now() - oldest.ms) : "–";
    if (Boolean(oldest?.id) !== Boolean(cell.firstElementChild)) cell.replaceChildren();
    if (oldest?.id) link(cell, age, address("message", { id: oldest.id }));
    else say(cell, age);
  } },
  { title: "Drains in", look: "n", fill: (cell, site) => say(cell, site.waiting === 0 ? "–" : site.drain_ms === null ? "not now" : span(site.drain_ms)) },
  { title: "Attempts/s", look: "n", fill: (cell, site) => say(cell, rate(site.attempt_rate)) },
  { title: "Replies/s", look: "n", fill: (cell, site) => say(cell, rate(site.rate)) },
  { title: "Busy", look: "n", fill: (cell, site) => say(cell, site.busy + " of " + site.window) },
];

function markTroubled(table, keys) {
  for (const tr of byId(table).tBodies[0].rows) tr.classList.toggle("troubled", keys.has(tr.dataset.key));
}

function showSites(now) {
  const rows = now.worst.map((site) => {
    return { ...site, ...siteRates(site, now.at_ms), drain_ms: drainMs(site), trouble: siteTrouble(site, oldestOf(site)?.ms, now.at_ms) };
  });
  const known = new Set(rows.map((row) => row.key));
  for (const key of state.sites.keys()) if (!known.has(key)) state.sites.delete(key);
  showTable("sites", siteColumns, rows);
  state.troubled = rows.filter((row) => row.trouble);
  markTroubled("sites", new Set(state.troubled.map((row) => row.key)));
  const dead = now.dead ? "; " + count(now.dead) + " dead or out" : "";
  put("sites-count", now.sites > rows.length ? "The worst " + rows.length + " of " + count(now.sites) + dead + "." : "");
}

// --- whose mail, and what is in its way

const flowColumns = [
  { title: "Flow", look: "wide names", fill: (cell, flow) => link(cell, flow.flow || "nobody (bounces)", address("search", { flow: flow.flow })) },
  { title: "State", look: "half", fill: (cell, flow) => {
    say(cell, flow.suspended ? "suspended by the operator" : flow.due && flow.due * 1000 > Date.now() ? "beyond its rate" : "active");
    cell.className = flow.suspended ? "half failed" : "half";
  } },
  { title: "Being worked on", look: "n", fill: (cell, flow) => linkCount(cell, flow.messages, address("search", { flow: flow.flow, queue: "active" })) },
  { title: "Oldest", look: "n", fill: (cell, flow) => say(cell, flow.oldest ? span(Date.now() - flow.oldest * 1000) : "–") },
  { title: "Share of what is sent", look: "n", fill: (cell, flow) => say(cell, flow.sending_all ? Math.round(100 * flow.sending / flow.sending_all) + " %" : "–") },
  { title: "Delivered today", look: "n", fill: (cell, flow) => say(cell, count(flow.sent)) },
  { title: "Put off today", look: "n", fill: (cell, flow) => linkCount(cell, flow.deferred, address("search", { flow: flow.flow, queue: "deferred" })) },
  { title: "Refused today", look: "n", fill: (cell, flow) => say(cell, count(flow.refused)) },
];

function showFlows(rows) {
  state.flows = rows;
  const shown = rows.slice(0, FLOWS);
  const all = shown.reduce((sum, flow) => sum + flow.messages, 0);
  showTable("flows", flowColumns, shown.map((flow) => ({ ...flow, key: flow.flow })));
  markTroubled("flows", new Set(shown.filter((flow) => flow.messages >= FLOOD_MANY && flow.messages > 0.5 * all).map((flow) => flow.flow)));
  put("flows-more", rows.length > FLOWS ? "There are more: sluice flow list." : "");
}

function limitWords(login) {
  if (!login.limit) return login.by === "login" ? "none of its own" : "–";
  return count(login.left) + " left of " + count(login.limit) + " in " + span(login.limit_per_ms);
}

const keptColumns = [
  { title: "Who", look: "wide names", fill: (cell, one) => {
    if (one.by === "client") say(cell.querySelector("b") || cell.appendChild(element("b")), one.name);
    else link(cell, one.name, address("search", one.by === "login" ? { login: one.name } : { q: one.name }));
    aside(cell, one.by);
  } },
  { title: "State", look: "half", fill: (cell, one) => {
    say(cell, one.suspended ? "suspended by the operator" : one.limit && one.left === 0 ? "at its limit" : "may send");
    cell.className = one.suspended ? "half failed" : "half";
  } },
  { title: "Limit of messages", look: "half", fill: (cell, one) => say(cell, limitWords(one)) },
  { title: "Accepted today", look: "n", fill: (cell, one) => say(cell, one.by === "login" ? count(one.messages) : "–") },
  { title: "Refused", look: "n", fill: (cell, one) => say(cell, count(one.refused)) },
  { title: "Wrong passwords", look: "n", fill: (cell, one) => say(cell, count(one.failures)) },
];

function showKept(logins) {
  showTable("kept", keptColumns, logins.kept.map((one) => ({ ...one, key: one.by + " " + one.name })));
  put("kept-more", logins.suspended > logins.kept.length ? count(logins.suspended) + " are suspended: sluice user list." : "");
}

const filterColumns = [
  { title: "Filter", look: "wide names", fill: (cell, one) => {
    say(cell.querySelector("b") || cell.appendChild(element("b")), one.milter);
    aside(cell, one.address);
  } },
  { title: "State", look: "wide text", fill: (cell, one) => {
    say(cell, one.state === "away" ? "away: " + (one.reason || "it does not answer") : one.state === "unused" ? "no mail passes it" : one.state);
    cell.classList.toggle("failed", one.state === "away" || one.state === "failing");
  } },
  { title: "Answers", look: "n", fill: (cell, one) => say(cell, count(Object.values(one.answers).reduce((sum, n) => sum + n, 0))) },
  { title: "Rejects", look: "n", fill: (cell, one) => say(cell, count(one.answers.reject || 0)) },
  { title: "Put off", look: "n", fill: (cell, one) => say(cell, count(one.answers.tempfail || 0)) },
  { title: "Mean time", look: "n", fill: (cell, one) => say(cell, one.mean_us ? micro(one.mean_us) : "–") },
  { title: "Longest", look: "n", fill: (cell, one) => say(cell, one.longest_us ? micro(one.longest_us) : "–") },
  { title: "Failures", look: "n", fill: (cell, one) => say(cell, count(one.failures)) },
];

function showFilters(filters) {
  showTable("filters", filterColumns, filters.map((one) => ({ ...one, key: one.milter })));
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
    link(cell, site.site, address("destination", siteValues(site)));
    aside(cell, site.transport);
  } },
  { title: "Why", look: "wide text", fill: (cell, site) => say(cell, replyWords(site)) },
  { title: "Waiting", look: "n", fill: (cell, site) => say(cell, count(site.waiting)) },
  { title: "Deferred", look: "n", fill: (cell, site) => say(cell, count(site.deferred)) },
];

function expiryWords(one) {
  return one.left_s < 0 ? "expired " + span(-1000 * one.left_s) + " ago" : "expires in " + span(1000 * one.left_s);
}

const certificateColumns = [
  { title: "File", look: "wide names", fill: (cell, one) => say(cell, one.file) },
  { title: "Validity", look: "n", fill: (cell, one) => {
    say(cell, expiryWords(one));
    cell.classList.toggle("failed", one.left_s < EXPIRY_NEAR_S);
  } },
];

// One sentence, and all of it where something is wrong.
function showTls(tls) {
  const all = TLS_RESULTS.reduce((sum, [name]) => sum + tls[name], 0);
  const parts = TLS_RESULTS.filter(([name]) => tls[name] > 0).map(([name, words]) => (100 * tls[name] / all).toFixed(1) + " % " + words);
  const failed = TLS_FAILURES.filter(([name]) => tls[name] > 0).map(([name, words]) => count(tls[name]) + " " + words);
  const certificates = [...tls.certificates].sort((a, b) => a.left_s - b.left_s);
  const expires = certificates.length ? " Our first certificate " + expiryWords(certificates[0]) + "." : "";
  put("tls-line", (all ? many(all, "connection") + " since the start: " + parts.join(", ") + "." : "No connection yet.")
    + (failed.length ? " Besides, " + failed.join(", ") + "." : " None failed for TLS.") + expires);
  byId("tls-detail").hidden = !failed.length && !tls.unproven.length && !(certificates.length && certificates[0].left_s < EXPIRY_NEAR_S);
  showTable("tls", tlsColumns, all ? TLS_RESULTS.map(([name, words]) => ({ key: name, words, n: tls[name], all })) : []);
  showTable("unproven", unprovenColumns, tls.unproven);
  showTable("certificates", certificateColumns, certificates.map((one) => ({ ...one, key: one.file })));
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
  { title: "Messages", look: "n", fill: (cell, reason) => {
    link(cell, (reason.thinned ? "about " : "") + count(reason.messages),
         address("search", { queue: reason.queue, ...(reason.domains.length === 1 && !reason.more_domains ? { q: reason.domains[0] } : {}) }));
  } },
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
    key: reason.queue + " " + (reason.why ? reason.why.constraint + (reason.why.key || reason.why.site) : reason.code + " " + (reason.text || "").replace(/\S*[\d@]\S*/g, "*")),
  }));
}

async function refresh() {
  const told = await askObject("/api/reasons");
  state.oldest = new Map(told.oldest.map((one) => [one.number, one]));
  showTable("reasons", reasonColumns, reasonRows(told));
  put("reasons-read", (told.read < told.messages || told.cut ? "Of " + many(told.read, "message") + " that were read. " : "")
    + asOf((Date.now() - told.at_ms) / 1000));
  showFlows((await askRows("/api/flows?limit=" + (FLOWS + 1))).rows);
}

export function showNow(now) {
  showRates(now);
  showQueue(now);
  showCommit(now);
  showConnections(now.connections);
  showSites(now);
  showSituation(now);
  showKept(now.logins);
  showFilters(now.filters);
  showTls(now.tls);
  showNodes(now.cluster);
}

export const overview = { id: "overview", title: () => "Overview", every_ms: 5000, refresh };
