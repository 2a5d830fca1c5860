// The status page: which view is shown, and what /events says.

import { address, announce, byId, put, say, span } from "/parts.js";
import { forget, overview, showHour, showNow } from "/overview.js";
import { shape } from "/shape.js";
import { destination } from "/destination.js";
import { message, search } from "/search.js";

const VIEWS = { "": overview, shape, destination, search, message };
const ID = /^[0-9A-HJKMNP-TV-Z]{13}$/i;

let shown = null;    // {view, query}
let hostname = "";
let refreshing = 0;  // a number for each time that a view is opened

// --- views

function wanted() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: VIEWS[path] || overview, query: new URLSearchParams(query || "") };
}

function setTitle() {
  document.title = shown.view.title(shown.query) + (hostname ? " – " + hostname : "") + " – sluice";
}

async function refresh(number) {
  const { view, query } = shown;
  if (document.visibilityState === "visible") {
    try {
      await view.refresh(query);
    } catch (error) {
      if (number === refreshing && view.failed) view.failed(error);
    }
  }
  if (number === refreshing) setTimeout(() => number === refreshing && refresh(number), view.every_ms);
}

function show() {
  if (location.hash === "#main") return;
  const before = shown;
  shown = wanted();
  for (const view of Object.values(VIEWS)) byId(view.id).hidden = view !== shown.view;
  for (const a of document.querySelectorAll("nav a")) {
    if (a.dataset.view === shown.view.id) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  if (shown.view.open) shown.view.open(shown.query);
  setTitle();
  // Whoever follows a link is taken to the heading of what it leads to.
  const other = before && (before.view !== shown.view || (shown.view !== shape && String(before.query) !== String(shown.query)));
  if (other) {
    byId(shown.view.id).querySelector("h1").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  refresh(++refreshing);
}

addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh(++refreshing));

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = byId("words").value.trim();
  if (!words) return;
  location.hash = ID.test(words) ? address("message", { id: words.toUpperCase() }) : address("search", { q: words });
});

// --- events

function pill(id, text, look) {
  say(byId(id), text);
  byId(id).className = "pill " + look;
}

function take(now) {
  pill("accepting", now.accepting ? "accepting mail" : "refusing mail", now.accepting ? "good" : "bad");
  pill("live", "live", "good");
  put("hostname", now.hostname);
  put("uptime", "up " + span(now.uptime_ms));
  put("version", "sluice " + now.version);
  if (hostname !== now.hostname) {
    hostname = now.hostname;
    setTitle();
  }
  showNow(now);
}

function listen() {
  const events = new EventSource("/events");
  const on = (name, use) => events.addEventListener(name, (event) => use(JSON.parse(event.data)));
  on("hour", showHour);
  on("now", take);
  events.addEventListener("error", () => {
    if (byId("live").textContent === "live") announce("The relay does not answer: the page is not live.");
    pill("live", "not live", "bad");
    forget();
    // The browser tries again by itself, unless it was refused.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
}

show();
listen();
