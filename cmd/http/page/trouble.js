// What a figure of a destination hides, in a sentence.

import { count, many, rate, span } from "/parts.js";

const SLOW_MS = 10 * 60000;   // to drain, from which on somebody should know
const OLD_MS = 3600000;       // of what waits for a destination that takes mail
const PUT_OFF_MANY = 100;
const SEEN_MS = 20000;        // for so long it was watched before it is judged

const perSecond = (n, site) => (site.lately_ms > 0 ? n * 1000 / site.lately_ms : 0);

// Until all that waits now is delivered, as it goes now; null: nothing goes.
export function drainMs(site) {
  const sent = perSecond(site.sent_lately, site);
  return sent > 0 ? site.waiting * 1000 / sent : null;
}

// "" where it says what it is by itself.
export function siteTrouble(site, oldest_ms, now_ms) {
  const judged = site.lately_ms >= SEEN_MS;
  const drain_ms = drainMs(site);
  const over = span(Math.max(1000, site.lately_ms));
  if (site.deferred_lately >= PUT_OFF_MANY && site.deferred_lately > site.sent_lately)
    return many(site.deferred_lately, "recipient was", "recipients were") + " put off within " + over + ", and " + count(site.sent_lately) + " delivered.";
  if (["dead", "out", "refused", "suspended"].includes(site.state)) return "";
  if (site.waiting > 0 && judged && drain_ms === null) return many(site.waiting, "delivery waits", "deliveries wait") + ", and nothing was delivered in the last " + over + ".";
  if (drain_ms !== null && drain_ms > SLOW_MS)
    return count(site.waiting) + " wait, and it takes " + rate(perSecond(site.sent_lately, site)) + " a second: that is " + span(drain_ms) + " for all of them.";
  if (oldest_ms && site.waiting + site.deferred > 0 && now_ms - oldest_ms > OLD_MS) return "The oldest waits for " + span(now_ms - oldest_ms) + ", though it takes mail.";
  return "";
}
