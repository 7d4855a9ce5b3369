// What a page does beside being read: parts that are fetched afterwards, the time slider, keys, and what is live.
// Everything that is chosen goes into the address.
"use strict";

const main = () => document.getElementById("main");

async function fetchPart(address, into) {
  let text;
  try {
    const answer = await fetch(address, { headers: { "x-part": "1" } });
    text = await answer.text();
  } catch {
    text = '<p class="bad">The console does not answer. Is <code>headwater ui</code> still running?</p>';
  }
  into.innerHTML = text;
  into.dataset.loaded = "yes";
}

function prepare(root) {
  for (const part of root.querySelectorAll("[data-load]:not([data-loaded])")) {
    part.dataset.loaded = "soon";
    fetchPart(part.dataset.load, part);
  }
  for (const details of root.querySelectorAll("details[data-details]")) {
    details.addEventListener("toggle", () => {
      const into = details.querySelector(".wait");
      if (details.open && into) {
        const place = document.createElement("div");
        place.append(...into.childNodes);
        into.replaceWith(place);
        fetchPart(details.dataset.details, place);
      }
    });
  }
  const counted = root.querySelector("[data-counts]");
  if (counted) countRows(counted.dataset.counts, root);
}

async function countRows(address, root) {
  const answer = await fetch(address).catch(() => null);
  if (!answer || !answer.ok) return;
  const { counts, partial } = await answer.json();
  for (const one of root.querySelectorAll("[data-rows]")) {
    const count = counts[one.dataset.rows];
    if (count === undefined) one.textContent = partial ? "…" : "";
    else one.textContent = count.toLocaleString("en") + (one.tagName === "text" ? (count === 1 ? " row" : " rows") : "");
  }
  if (partial && root.isConnected !== false) setTimeout(() => countRows(address, root), 50);
}

function goto(changes) {
  const address = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") address.searchParams.delete(name);
    else address.searchParams.set(name, value);
  }
  const transaction = address.pathname.match(/^\/transaction\/\d+$/);
  if (transaction && changes.at) address.pathname = `/transaction/${changes.at}`;
  location.assign(address);
}

// The row that is chosen, and the cells behind the cell that is pointed at

document.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) return copyText(copy);
  const row = event.target.closest("tr[data-row]");
  if (row && !getSelection().toString()) {
    event.preventDefault();
    choose(row);
  }
});

function choose(row) {
  for (const one of document.querySelectorAll("tr.chosen")) one.classList.remove("chosen");
  row.classList.add("chosen");
  const link = new URL(row.querySelector(".pick a").href);
  history.pushState(null, "", link);
  const asked = new URLSearchParams({ where: row.dataset.row, at: row.closest("table").dataset.tick });
  const pane = document.getElementById("pane");
  pane.innerHTML = '<p class="wait">tracing …</p>';
  const part = document.createElement("div");
  fetchPart(`${location.pathname}/trace?${asked}`, part).then(() => {
    if (row.classList.contains("chosen")) pane.replaceChildren(part);
  });
}

window.addEventListener("popstate", () => location.reload());

function light(cell) {
  for (const one of document.querySelectorAll(".lit, .asked")) one.classList.remove("lit", "asked");
  if (!cell || !cell.closest("tr.chosen")) return;
  cell.classList.add("asked");
  const from = (cell.dataset.from || "").split(" ").filter(Boolean).map((one) => one.split("/"));
  for (const table of document.querySelectorAll("#pane table[data-relation]")) {
    const columns = from.filter(([relation]) => relation.toLowerCase() === table.dataset.relation.toLowerCase());
    for (const [, column] of columns)
      for (const one of table.querySelectorAll(`td[data-column="${CSS.escape(column)}"]`)) one.classList.add("lit");
    if (!from.length) for (const one of table.querySelectorAll("td")) one.classList.add("lit");
  }
}

document.addEventListener("pointerover", (event) => {
  const cell = event.target.closest("td[data-from]");
  if (cell || event.target.closest(".choose")) light(cell);
  const node = event.target.closest(".node");
  const graph = document.querySelector(".graph");
  if (!graph) return;
  graph.classList.toggle("pointing", Boolean(node));
  for (const edge of graph.querySelectorAll(".edge"))
    edge.classList.toggle("lit", Boolean(node) && [edge.dataset.start, edge.dataset.end].includes(node.dataset.key));
});

async function copyText(button) {
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    const area = document.createElement("textarea");
    area.value = button.dataset.copy;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
  button.classList.add("done");
  setTimeout(() => { button.textContent = said; button.classList.remove("done"); }, 1500);
}

// The time slider

function slider() {
  const strip = document.querySelector(".strip");
  if (!strip) return;
  const places = JSON.parse(strip.dataset.places);
  const handle = strip.querySelector(".handle");
  let tick = Number(strip.getAttribute("aria-valuenow"));
  const nearest = (x) => {
    let low = 0, high = places.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle][1] < x) low = middle + 1; else high = middle;
    }
    const before = places[Math.max(0, low - 1)];
    return Math.abs(before[1] - x) < Math.abs(places[low][1] - x) ? before : places[low];
  };
  const show = ([at, x]) => {
    tick = at;
    handle.style.left = `${x / 10}%`;
    handle.dataset.tick = at;
    strip.setAttribute("aria-valuenow", at);
  };
  const point = (event) => {
    const box = strip.getBoundingClientRect();
    show(nearest(((event.clientX - box.left) / box.width) * 1000));
  };
  strip.addEventListener("pointerdown", (event) => {
    strip.setPointerCapture(event.pointerId);
    point(event);
    strip.addEventListener("pointermove", point);
    strip.addEventListener("pointerup", () => goto({ at: String(tick) }), { once: true });
  });
  const step = (count) => {
    const here = places.findIndex(([at]) => at >= tick);
    const there = places[Math.min(places.length - 1, Math.max(0, (here < 0 ? places.length - 1 : here) + count))];
    if (there[0] !== tick || document.body.dataset.live === "yes") goto({ at: String(there[0]) });
  };
  steps = { step, strip, most: places.length };
}

let steps = null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector(".find input").focus();
  } else if (event.key === "l" && document.body.dataset.live === "no") document.querySelector("a.newest")?.click();
  else if (steps) {
    const keys = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -steps.most, End: steps.most };
    const everywhere = ["ArrowLeft", "ArrowRight"].includes(event.key);
    if (!(event.key in keys) || !(everywhere || document.activeElement === steps.strip)) return;
    event.preventDefault();
    steps.step(keys[event.key]);
  }
});

// What is live: the page is fetched again when something is new, and only its changed parts are replaced

function live() {
  if (!window.EventSource || !document.querySelector(".time")) return;
  const events = new EventSource("/events");
  let first = "";
  events.addEventListener("standing", async (event) => {
    if (!first) { first = event.data; return; }
    if (first === event.data) return;
    first = event.data;
    if (document.body.dataset.live === "no" || document.querySelector("[data-still]")) return;
    const active = document.activeElement;
    if (active && active.closest("main") && active.matches("input")) return;
    const answer = await fetch(location.href).catch(() => null);
    if (!answer || !answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const selector of [".picture", ".blame", "#views", "#sources", "#rows", ".facts", ".pages", "header .maintainer", ".time", "[data-live-part]"]) {
      const here = document.querySelector(selector), there = next.querySelector(selector);
      if (here && there && here.outerHTML !== there.outerHTML) {
        const scrolled = [here.scrollLeft, here.scrollTop];
        here.replaceWith(there);
        [there.scrollLeft, there.scrollTop] = scrolled;
        if (selector === ".time") slider();
      }
    }
    const counted = document.querySelector("[data-counts]");
    if (counted) countRows(counted.dataset.counts, document);
  });
  window.addEventListener("pagehide", () => events.close());
}

prepare(document);
slider();
live();
