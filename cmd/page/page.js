// The status page: what /events says, put into the page. Text that comes from mail or from peers
// goes in by textContent only.
"use strict";

const PAST_S = 300;
const MINUTE = 60;
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const put = (id, text) => { byId(id).textContent = text; };

const state = {
  samples: [],      // [at_ms, received, sent], one a second
  commits: [],      // {at_ms, count, sum_us, messages, buckets}
  sites: new Map(), // site and transport: [at_ms, verdicts]
};

// --- small things

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function count(n) {
  return n.toLocaleString("en");
}

function rate(n) {
  if (n === 0) return "0";
  return n < 10 ? n.toFixed(1) : count(Math.round(n));
}

function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86400) + " days";
}

function micro(us) {
  if (us < 1000) return Math.round(us) + " µs";
  if (us < 1e6) return (us / 1000).toFixed(us < 10000 ? 1 : 0) + " ms";
  return (us / 1e6).toFixed(1) + " s";
}

function line(points) {
  return points.map(([x, y], i) => (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");
}

// Values from old to new, the newest at the right edge.
function spark(id, values) {
  const svg = byId(id);
  const most = Math.max(...values, 1e-9);
  const step = 300 / (PAST_S - 1);
  const points = values.map((v, i) => [300 - (values.length - 1 - i) * step, 38 - 34 * v / most]);
  if (!svg.firstChild) {
    const area = document.createElementNS(SVG, "path");
    area.setAttribute("class", "area");
    svg.append(area, document.createElementNS(SVG, "path"));
  }
  const [area, path] = svg.children;
  const shown = points.length > 1 ? line(points) : "";
  path.setAttribute("d", shown);
  area.setAttribute("d", shown && shown + "L300 40L" + points[0][0].toFixed(1) + " 40Z");
}

// --- figures

function rates(column) {
  const found = [];
  for (let i = 1; i < state.samples.length; i++) {
    const seconds = (state.samples[i][0] - state.samples[i - 1][0]) / 1000;
    const more = state.samples[i][column] - state.samples[i - 1][column];
    found.push(seconds > 0 && more > 0 ? more / seconds : 0);
  }
  return found;
}

// Of the last few seconds, so that the figure can be read.
function recent(column) {
  const newest = state.samples[state.samples.length - 1];
  const before = state.samples[Math.max(0, state.samples.length - 4)];
  const seconds = (newest[0] - before[0]) / 1000;
  return seconds > 0 ? Math.max(0, newest[column] - before[column]) / seconds : 0;
}

function addSample(sample) {
  const last = state.samples[state.samples.length - 1];
  if (last && sample[0] - last[0] < 500) return;
  state.samples.push(sample);
  if (state.samples.length > PAST_S) state.samples.shift();
}

function showRates(now) {
  addSample([now.at_ms, now.received, now.sent]);
  put("rate-in", rate(recent(1)));
  put("rate-out", rate(recent(2)));
  spark("spark-in", rates(1));
  spark("spark-out", rates(2));
  put("received", count(now.received));
  put("rejected", count(now.rejected));
  put("sent", count(now.sent));
  put("deferred", count(now.deferred));
  put("bounced", count(now.bounced));
  put("in-doubt", count(now.in_doubt));
}

function showQueue(queue) {
  const names = ["incoming", "active", "deferred", "hold"];
  const bar = byId("queue-bar");
  if (!bar.firstChild) bar.append(...names.map((name) => element("i", null, name)));
  let all = 0;
  names.forEach((name, i) => {
    all += queue[name];
    put("queue-" + name, count(queue[name]));
    bar.children[i].style.flexGrow = queue[name];
  });
  bar.setAttribute("aria-label", names.map((name) => queue[name] + " " + name).join(", "));
  put("queued", count(all));
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
  if (commits.length > PAST_S) commits.shift();
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

// --- tables

function cell(text, className, name) {
  const made = element("td", text, className);
  if (name) made.dataset.name = name;
  return made;
}

function opener(text, title, query) {
  const button = element("button", text, "link");
  button.type = "button";
  button.setAttribute("aria-label", "Explain " + text);
  button.addEventListener("click", () => explain(title, query));
  return button;
}

// Rows stay the same elements as long as their keys do: what is focused stays so.
function showRows(table, rows, fill) {
  const body = table.tBodies[0];
  const had = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const wanted = rows.map((data) => {
    const row = had.get(data.key) || element("tr");
    had.delete(data.key);
    row.dataset.key = data.key;
    fill(row, data);
    return row;
  });
  for (const row of had.values()) row.remove();
  wanted.forEach((row, i) => {
    if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] || null);
  });
  table.hidden = rows.length === 0;
}

function reply(site) {
  if (site.last === null) return "";
  const code = site.last_code ? site.last_code + " " : "";
  return (site.last_host ? site.last_host + ": " : "") + code + site.last;
}

function fillSite(row, site) {
  if (!row.firstChild) {
    const first = cell(null, "wide");
    first.append(opener(site.site, site.site, "site=" + encodeURIComponent(site.site)),
      element("span", " " + site.transport, "dim"));
    row.append(first, cell(null, "wide short", "state"), cell(null, "n", "window"), cell(null, "n", "busy"),
      cell(null, "n", "waiting"), cell(null, "n", "rate"), cell(null, "text", "last reply"));
  }
  const cells = row.cells;
  cells[1].textContent = site.dead_in_ms > 0 ? site.state + " for " + span(site.dead_in_ms) : site.state;
  cells[1].className = "wide short " + site.state;
  cells[2].textContent = count(site.window);
  cells[3].textContent = site.busy + "/" + site.connections;
  cells[4].textContent = count(site.waiting);
  cells[5].textContent = rate(site.rate) + "/s";
  cells[6].textContent = reply(site);
  cells[6].className = site.last_class && site.last_class !== "sent" ? "text failed" : "text";
}

// From two looks at least three seconds apart, so that a site with one message a second shows it.
function siteRate(key, at_ms, verdicts) {
  const looks = state.sites.get(key) || [];
  looks.push([at_ms, verdicts]);
  while (looks.length > 6) looks.shift();
  state.sites.set(key, looks);
  const [before_ms, before] = looks[0];
  return at_ms > before_ms ? Math.max(0, verdicts - before) * 1000 / (at_ms - before_ms) : 0;
}

function showSites(now) {
  const rows = now.top.map((site) => {
    const key = site.transport + " " + site.site;
    return { ...site, key, rate: siteRate(key, now.at_ms, site.verdicts) };
  });
  const known = new Set(rows.map((row) => row.key));
  for (const key of state.sites.keys()) if (!known.has(key)) state.sites.delete(key);
  showRows(byId("sites"), rows, fillSite);
  byId("sites-none").hidden = rows.length > 0;
  const dead = now.dead ? ", " + count(now.dead) + " dead or out" : "";
  const more = now.sites > rows.length ? "the busiest " + rows.length + " of " : "";
  put("sites-count", now.sites ? more + count(now.sites) + dead : "");
}

function fillMessage(row, message) {
  if (!row.firstChild) {
    const first = cell(null, "half short");
    first.append(opener(message.id, "Message " + message.id, "id=" + encodeURIComponent(message.id)));
    row.append(first, cell(null, "short"), cell(null, "short"), cell(null, "wide"), cell(null, "text"));
  }
  const more = message.recipients > 1 ? " and " + (message.recipients - 1) + " more" : "";
  row.cells[1].textContent = span(Date.now() - message.arrived_ms);
  row.cells[2].textContent = message.queue;
  row.cells[3].textContent = "<" + message.from + "> → " + (message.to || "nobody") + more;
  row.cells[4].textContent = message.why.map((why) => (why.site ? why.site + ": " : "") + why.says).join("; ");
}

function showMessages(told) {
  const rows = told.messages.map((message) => ({ ...message, key: message.id }));
  showRows(byId("slow"), rows, fillMessage);
  byId("slow-none").hidden = rows.length > 0;
}

// --- shape

// Of a count among the largest, on a scale of tens: 0 to 0.85.
function heat(n, most) {
  return n ? 0.12 + 0.73 * Math.log1p(n) / Math.log1p(most) : 0;
}

function colour(node, n, most) {
  node.style.backgroundColor = n ? "rgba(var(--heat), " + heat(n, most).toFixed(3) + ")" : "";
}

function showHeads(ages) {
  const head = byId("shape").tHead.rows[0];
  if (head.cells.length === ages.length + 2) return;
  head.replaceChildren(element("th", "destination"), element("th", "all"));
  ages.forEach((age, i) => {
    const text = age.below_minutes === null ? ages[i - 1].below_minutes + "+" : "<" + age.below_minutes;
    head.append(element("th", text));
  });
  for (const th of head.cells) th.scope = "col";
}

function showShape(shape) {
  const body = byId("shape").tBodies[0];
  const ages = shape.rows[0].ages;
  const most = Math.max(1, ...shape.rows.slice(1).flatMap((row) => row.ages.map((age) => age.count)));
  showHeads(ages);
  body.replaceChildren(...shape.rows.map((row, i) => {
    const tr = element("tr");
    const name = element("th", i ? row.domain : "all");
    name.scope = "row";
    name.title = row.domain;
    tr.append(name, element("td", count(row.total), "total"));
    for (const age of row.ages) {
      const td = element("td", count(age.count), age.count ? "" : "zero");
      if (i) colour(td, age.count, most);
      tr.append(td);
    }
    return tr;
  }));
  showPast(shape.past);
}

function showPast(past) {
  const most = Math.max(1, ...past.flatMap((look) => look.slice(1)));
  byId("shape-past").replaceChildren(...past.map((look) => {
    const column = element("div");
    column.title = new Date(look[0]).toLocaleTimeString() + ": " + look.slice(1).join(" ");
    for (const n of look.slice(1)) {
      const mark = element("i");
      colour(mark, n, most);
      column.append(mark);
    }
    return column;
  }));
}

// --- explanations

async function explain(title, query) {
  const text = byId("why-text");
  put("why-title", title);
  text.replaceChildren(element("p", "…"));
  byId("why").showModal();
  try {
    const reply = await fetch("/api/explain?" + query);
    const said = await reply.text();
    if (!reply.ok) {
      text.replaceChildren(element("p", said));
      return;
    }
    const rows = said.trim().split("\n").map((row) => JSON.parse(row));
    // A site is also found by its hosts: where one has the name itself, it is meant.
    const named = rows.filter((why) => why.site === title);
    text.replaceChildren(...(named.length ? named : rows).map((why) => {
      const p = element("p");
      p.append(element("strong", [why.site, why.transport, why.constraint].filter(Boolean).join(", ")), why.says);
      return p;
    }));
  } catch (error) {
    text.replaceChildren(element("p", "The relay does not answer: " + error.message));
  }
}

// --- events

function pill(id, text, look) {
  const node = byId(id);
  if (node.textContent !== text) node.textContent = text;
  node.className = "pill " + look;
}

function showNow(now) {
  pill("accepting", now.accepting ? "accepting mail" : "refusing mail", now.accepting ? "good" : "bad");
  pill("live", "live", "good");
  put("hostname", now.hostname);
  put("uptime", "up " + span(now.uptime_ms));
  put("version", "sluice " + now.version);
  document.title = now.hostname + " – sluice";
  showRates(now);
  showQueue(now.queue);
  showCommit(now);
  showConnections(now.connections);
  showSites(now);
}

function listen() {
  const events = new EventSource("/events");
  const on = (name, show) => events.addEventListener(name, (event) => show(JSON.parse(event.data)));
  on("past", (past) => { state.samples = past.samples; });
  on("now", showNow);
  on("shape", showShape);
  on("slow", showMessages);
  events.addEventListener("error", () => {
    pill("live", "not live", "bad");
    state.commits = [];
    state.sites.clear();
    // The browser tries again by itself, unless it was refused.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
}

listen();
