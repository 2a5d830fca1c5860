// How many wait for whom, and since when: the table of qshape.

import { address, askRows, asOf, byId, count, element, put, say, showCommands } from "/parts.js";

const ROWS = 25;
const QUEUES = ["maildrop", "incoming", "active", "deferred", "hold"];

function choice(query) {
  const asked = (query.get("queue") || "incoming,active").split(",");
  const queues = QUEUES.filter((queue) => asked.includes(queue));
  return { queues: queues.length ? queues : ["incoming", "active"], by: query.get("by") === "sender" ? "sender" : "recipient" };
}

function title({ queues, by }) {
  const which = queues.length > 1 ? queues.slice(0, -1).join(", ") + " and " + queues[queues.length - 1] : queues[0];
  return (by === "sender" ? "Senders of mail in " : "Destinations of mail in ") + which;
}

function open(query) {
  const chosen = choice(query);
  for (const box of byId("shape-choice").elements) {
    if (box.name === "queue") box.checked = chosen.queues.includes(box.value);
    if (box.name === "by") box.checked = chosen.by === box.value;
  }
  put("shape-title", title(chosen));
  byId("shape-table").tBodies[0].replaceChildren();
  showCommands("shape-commands", [["this table", "sluice shape", ...(chosen.by === "sender" ? ["-s"] : []), ...chosen.queues]]);
}

// The address says what is shown; so a choice can be gone back from, and sent to somebody.
byId("shape-choice").addEventListener("change", () => {
  const chosen = new FormData(byId("shape-choice"));
  const queue = chosen.getAll("queue").join(",");
  const by = chosen.get("by");
  history.replaceState(null, "", address("shape", { ...(queue && { queue }), ...(by === "sender" && { by }) }));
  dispatchEvent(new HashChangeEvent("hashchange"));
});

// Of a count among the largest, on a scale of tens.
function colour(node, n, most) {
  node.style.backgroundColor = n ? "rgba(var(--heat), " + (0.05 + 0.33 * Math.log1p(n) / Math.log1p(most)).toFixed(3) + ")" : "";
}

function showHeads(ages, by) {
  const heads = [by === "sender" ? "Sender" : "Destination", "All",
                 ...ages.map((age, i) => age.below_minutes === null ? ages[i - 1].below_minutes + "+" : "<" + age.below_minutes)];
  const row = byId("shape-table").tHead.rows[0];
  heads.forEach((text, i) => {
    if (!row.cells[i]) row.append(element("th"));
    row.cells[i].scope = "col";
    say(row.cells[i], text);
  });
}

function newRow(ages) {
  const tr = element("tr"), name = element("th");
  name.scope = "row";
  tr.append(name, ...Array.from({ length: ages + 1 }, () => element("td")));
  return tr;
}

function fillName(th, row, all) {
  const text = all ? "all" : row.domain === "MAILER-DAEMON" ? "MAILER-DAEMON (bounces)" : row.domain;
  if (all || row.domain === "MAILER-DAEMON") {
    say(th, text);
  } else if (th.firstChild === null || th.textContent !== text) {
    const a = element("a", text);
    a.href = address("search", { q: row.domain });
    th.replaceChildren(a);
  }
  th.title = text;
}

async function refresh(query) {
  const chosen = choice(query);
  const { rows, age_s } = await askRows("/api/shape?limit=" + ROWS + "&queue=" + chosen.queues.join(",") + "&by=" + chosen.by);
  if (title(chosen) !== byId("shape-title").textContent) return;
  const body = byId("shape-table").tBodies[0];
  const most = Math.max(1, ...rows.slice(1).flatMap((row) => row.ages.map((age) => age.count)));
  showHeads(rows[0].ages, chosen.by);
  rows.forEach((row, i) => {
    const tr = body.rows[i] || body.appendChild(newRow(row.ages.length));
    fillName(tr.cells[0], row, i === 0);
    say(tr.cells[1], count(row.total));
    tr.cells[1].className = "total";
    row.ages.forEach((age, k) => {
      const td = tr.cells[k + 2];
      say(td, count(age.count));
      td.className = age.count ? "" : "zero";
      if (i) colour(td, age.count, most);
    });
  });
  while (body.rows.length > rows.length) body.lastChild.remove();
  const shown = rows.slice(1).reduce((sum, row) => sum + row.total, 0);
  put("shape-more", rows[0].total > shown ? "Others, not shown: " + count(rows[0].total - shown) + "." : "");
  put("shape-age", asOf(age_s));
}

export const shape = { id: "shape", title: () => "Queue shape", every_ms: 5000, open, refresh };
