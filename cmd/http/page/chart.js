// An hour as lines: time from left to right, how many a second (or a minute) upwards, and a pointer that reads them.

import { count, element, keyed, say } from "/parts.js";

const SVG = "http://www.w3.org/2000/svg";
const HOUR_MS = 3600000;
const MINUTE_MS = 60000;
const HEIGHT = 190, TOP = 10, BOTTOM = 22, RIGHT = 8;

function svgPart(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// --- scales

// The least of 1, 2, 5 and their tens that holds it.
function roundUp(n) {
  const ten = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 5, 10].find((step) => step * ten >= n * 0.999) * ten;
}

// Lines between nothing and a round number that are round themselves.
function linesUpTo(most) {
  const n = { 1: 5, 2: 4, 5: 5 }[String(most).replace(/[0.]/g, "")];
  return Array.from({ length: n + 1 }, (_, i) => most * i / n);
}

function figure(n) {
  if (n === 0) return "0";
  if (n < 10) return n.toFixed(n < 1 ? 2 : 1).replace(/\.?0+$/, "") || "0";
  return count(Math.round(n));
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// Whole lines at the top, of a second where there is one a second, else of a minute.
function scaleOf(steps) {
  const most = Math.max(0, ...steps.flatMap((step) => step.rates));
  const unit = most >= 1 ? { words: "a second", times: 1 } : { words: "a minute", times: 60 };
  return { ...unit, most: roundUp(Math.max(most * unit.times, 1)) };
}

// --- the chart

// series: [{name, words, tell}], as the rates of each step stand; tell: what of it a line means.
export class Chart {
  constructor(id, label, series) {
    this.label = label;
    this.series = series;
    this.steps = []; // {at_ms, rates}: the end of each, and how many of each series came in a second of it
    this.to_ms = Date.now();
    this.at = -1; // the step that is pointed at; -1: none
    const box = document.getElementById(id);
    this.when = element("p", null, "dim");
    this.legend = element("ul", null, "legend");
    this.plot = element("div", null, "plot");
    this.svg = svgPart("svg", { "aria-hidden": "true", height: HEIGHT });
    this.plot.append(this.svg);
    box.replaceChildren(this.legend, this.plot, this.when);
    this.listen();
  }

  listen() {
    const { plot } = this;
    for (const [name, value] of [["tabindex", "0"], ["role", "slider"], ["aria-label", this.label], ["aria-orientation", "horizontal"]]) plot.setAttribute(name, value);
    plot.addEventListener("pointermove", (event) => this.pointAt(event.clientX - plot.getBoundingClientRect().left));
    plot.addEventListener("pointerdown", (event) => this.pointAt(event.clientX - plot.getBoundingClientRect().left));
    for (const end of ["pointerleave", "blur"]) plot.addEventListener(end, () => this.choose(-1));
    plot.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(plot);
    this.tell();
  }

  press(event) {
    const last = this.steps.length - 1;
    const at = this.at < 0 ? last : this.at;
    const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageUp: at + 6, PageDown: at - 6, Home: 0, End: last, Escape: -1 }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.choose(event.key === "Escape" ? -1 : Math.min(last, Math.max(0, to)));
  }

  // steps, old to new; of them those of the last hour are shown.
  show(steps, to_ms) {
    const pointed = this.at >= 0 ? this.steps[this.at]?.at_ms : null;
    this.to_ms = to_ms;
    this.steps = steps.filter((step) => step.at_ms > to_ms - HOUR_MS);
    this.at = pointed === null || !this.steps.length ? -1 : this.nearest((step) => Math.abs(step.at_ms - pointed));
    this.draw();
    this.tell();
  }

  x(at_ms) {
    return this.left + (this.width - this.left - RIGHT) * (1 - (this.to_ms - at_ms) / HOUR_MS);
  }

  y(rate) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * Math.min(1, rate * this.scale.times / this.scale.most);
  }

  draw() {
    this.width = this.plot.clientWidth;
    if (!this.width) return;
    this.scale = scaleOf(this.steps);
    this.left = 14 + 7 * Math.max(...linesUpTo(this.scale.most).map((value) => figure(value).length));
    this.svg.setAttribute("width", this.width);
    this.svg.replaceChildren(...this.rates(), ...this.times(), ...this.lines(), this.pointer());
  }

  rates() {
    return linesUpTo(this.scale.most).flatMap((value) => {
      const y = this.y(value / this.scale.times);
      const text = svgPart("text", { x: this.left - 6, y: y + 4, "text-anchor": "end" });
      text.textContent = figure(value);
      return [svgPart("line", { class: value ? "grid" : "axis", x1: this.left, x2: this.width - RIGHT, y1: y, y2: y }), text];
    });
  }

  times() {
    const minutes = this.width > 700 ? 5 : 15;
    const step = minutes * MINUTE_MS;
    const found = [];
    for (let at = Math.ceil((this.to_ms - HOUR_MS) / step) * step; at <= this.to_ms; at += step) {
      const x = this.x(at);
      const near = x < this.left + 16 ? "start" : x > this.width - 24 ? "end" : "middle";
      const text = svgPart("text", { x, y: HEIGHT - 6, "text-anchor": near });
      text.textContent = clock.format(at);
      found.push(svgPart("line", { class: "grid", x1: x, x2: x, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }), text);
    }
    return found;
  }

  lines() {
    return this.series.map(({ name }, i) => {
      const d = this.steps.map((step, k) => (k ? "L" : "M") + this.x(step.at_ms).toFixed(1) + " " + this.y(step.rates[i]).toFixed(1)).join("");
      return svgPart("path", { class: "line " + name, d: this.steps.length === 1 ? d + "h-3" : d });
    });
  }

  pointer() {
    const made = svgPart("g", { class: "pointer" });
    const step = this.steps[this.at];
    if (!step) return made;
    const x = this.x(step.at_ms);
    made.append(svgPart("line", { x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }),
                ...this.series.map(({ name }, i) => svgPart("circle", { class: "line " + name, cx: x, cy: this.y(step.rates[i]), r: 3 })));
    return made;
  }

  pointAt(x) {
    if (!this.steps.length) return;
    this.choose(this.nearest((step) => Math.abs(this.x(step.at_ms) - x)));
  }

  nearest(away) {
    return this.steps.reduce((best, step, i) => (away(step) < away(this.steps[best]) ? i : best), 0);
  }

  choose(at) {
    if (at === this.at) return;
    this.at = at;
    this.svg.lastChild?.replaceWith(this.pointer());
    this.tell();
  }

  // The values of where the pointer is, or else of the newest step.
  tell() {
    const last = this.steps.length - 1;
    const step = this.steps[this.at] || this.steps[last];
    const { words, times } = this.scale || { words: "a second", times: 1 };
    const value = (i) => (step ? figure(step.rates[i] * times) : "–");
    keyed(this.legend, this.series.map((one, i) => ({ ...one, key: one.name, value: value(i) })), newEntry, (li, one) => {
      li.firstChild.setAttribute("class", "line " + one.name);
      li.title = one.tell;
      say(li.children[1], one.value);
      say(li.children[2], one.words);
    });
    const when = !step ? "Nothing was counted yet." : "At " + clockSeconds.format(step.at_ms) + (this.at < 0 ? ", just now: " : ": ") + "how many " + words + ".";
    say(this.when, when);
    this.plot.setAttribute("aria-valuemin", 0);
    this.plot.setAttribute("aria-valuemax", Math.max(0, last));
    this.plot.setAttribute("aria-valuenow", this.at < 0 ? Math.max(0, last) : this.at);
    this.plot.setAttribute("aria-valuetext", step ? clockSeconds.format(step.at_ms) + ": " + this.series.map((one, i) => value(i) + " " + words + " " + one.words).join(", ") : when);
  }
}

function newEntry() {
  const li = element("li");
  const mark = svgPart("svg", { width: 22, height: 10, "aria-hidden": "true" });
  mark.append(svgPart("line", { x1: 0, x2: 22, y1: 5, y2: 5 }));
  li.append(mark, element("b"), element("span", null, "dim"));
  return li;
}

// Of counters at several times: what came in a second between each two. A counter that began anew has counted nothing.
export function ratesOf(points) {
  return points.slice(1).map((point, i) => {
    const seconds = (point[0] - points[i][0]) / 1000;
    return { at_ms: point[0], rates: point.slice(1).map((n, k) => (seconds > 0 ? Math.max(0, n - points[i][k + 1]) / seconds : 0)) };
  });
}
