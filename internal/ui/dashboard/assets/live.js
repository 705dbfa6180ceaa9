"use strict";

// What is shown is kept as it is on the hub: the server sends what changed of this page, or that it is to be loaded again.

let source;
let loading;
let waiting; // a timer until the view is loaded again
let loaded = 0; // when it was loaded last
let pointed = false; // somebody has moved the pointer on this page: it does not lie where it pressed a button on the page before

const pause = 2000; // between two loads of a view that changes all the time
const retry = 5000; // after a load that failed

function say(live) {
  const at = document.getElementById("liveness");
  if (!at) return;
  at.textContent = live ? "live" : "not live";
  at.classList.toggle("not", !live);
}

// warn says why what is shown may not be what is so now, until it is loaded again.
function warn(text) {
  say(false);
  const view = document.getElementById("view");
  const at = view.querySelector(".stale") ?? view.insertBefore(document.createElement("p"), view.firstChild);
  at.className = "stale";
  at.setAttribute("role", "alert");
  at.textContent = "This may not be what is so now: " + text;
}

// listen follows what is shown. A page that nobody looks at does not: browsers have few connections for one host.
function listen() {
  if (source) source.close();
  source = undefined;
  const to = document.getElementById("view").dataset.live;
  if (!to || document.hidden) return say(false);
  const mine = (source = new EventSource(to));
  let opened = false;
  mine.onopen = () => {
    if (opened) return reload(); // the page has changed since the server was told what it shows
    opened = true;
    say(!document.querySelector("#view .stale"));
  };
  mine.onerror = () => {
    say(false);
    if (mine.readyState === EventSource.CLOSED) reload(retry);
  };
  mine.addEventListener("tiles", (event) => change(JSON.parse(event.data)));
  mine.addEventListener("reload", () => reload());
  mine.addEventListener("problem", (event) => warn(JSON.parse(event.data)));
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) listen();
  else if (!source) reload();
});

// reload loads what is shown again: soon, unless that was done a moment ago, or somebody is about to press a button that decides something.
function reload(after = Math.max(0, loaded + pause - Date.now())) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    if (document.querySelector(pointed ? ".decision:hover, .decision:focus-within" : ".decision:focus-within")) {
      say(false);
      return reload(pause);
    }
    load(location.href);
  }, after);
}

document.addEventListener("pointermove", (event) => {
  if (event.movementX !== 0 || event.movementY !== 0) pointed = true;
});

// load shows a page in the place of this one, but for the forms above it, in which somebody may be writing.
async function load(url) {
  clearTimeout(waiting);
  if (loading) loading.abort();
  const mine = (loading = new AbortController());
  try {
    const answer = await fetch(url, { signal: mine.signal });
    if (answer.redirected && new URL(answer.url).pathname === "/sign-in") {
      location.href = answer.url;
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const view = page.getElementById("view");
    if (!view) throw new Error("the dashboard does not answer as it should");
    if (answer.status === 429 || answer.status >= 500) throw new Error(view.textContent.trim());
    const open = [...document.querySelectorAll("#view details[open]")].map((d) => d.querySelector("strong").textContent);
    for (const d of view.querySelectorAll("details")) d.open = open.includes(d.querySelector("strong").textContent);
    const old = document.getElementById("view");
    const focused = places(old).indexOf(document.activeElement);
    old.replaceWith(document.adoptNode(view));
    if (focused >= 0) places(view)[focused]?.focus();
    loaded = Date.now();
    listen();
  } catch (err) {
    if (err.name === "AbortError") return;
    warn(err.message);
    reload(retry);
  }
}

// places are where the keyboard may be in a view.
function places(view) {
  return [...view.querySelectorAll("a, button, summary, [tabindex]")];
}

// change puts tiles in their places, in the order of their names, and takes away those of members that are not shown any more.
function change(changes) {
  for (const name of changes.gone) document.getElementById(name)?.remove();
  for (const put of changes.put) {
    const group = [...document.querySelectorAll(".group")].find((g) => g.dataset.group === put.group);
    if (!group) return reload();
    document.getElementById(put.id)?.remove();
    const made = document.createElement("template");
    made.innerHTML = put.html;
    const tile = made.content.firstElementChild;
    tile.classList.add("new");
    const tiles = group.querySelector(".tiles");
    tiles.insertBefore(tile, [...tiles.children].find((t) => t.id > put.id) ?? null);
  }
  for (const group of document.querySelectorAll(".group")) if (!group.querySelector(".tiles a")) group.remove();
  const summary = document.getElementById("summary");
  const open = [...summary.querySelectorAll("details[open] strong")].map((s) => s.textContent);
  summary.innerHTML = changes.summary;
  for (const d of summary.querySelectorAll("details")) d.open = open.includes(d.querySelector("strong").textContent);
}

// What is searched for is shown as it is typed.
const search = document.getElementById("search");
if (search) {
  let typed;
  const show = () => {
    const query = new URLSearchParams([...new FormData(search)].filter(([, value]) => value !== ""));
    const url = new URL(search.action).pathname + "?" + query;
    history.replaceState(null, "", url);
    load(url);
  };
  search.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(show, 200);
  });
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
  event.preventDefault();
  document.querySelector("#search input")?.focus();
});

document.addEventListener("click", async (event) => {
  const from = event.target.dataset?.copy;
  if (!from) return;
  const text = document.getElementById(from);
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text.textContent);
    event.target.textContent = "Copied";
    return;
  }
  text.closest("details").open = true; // without HTTPS there is no clipboard for pages
  getSelection().selectAllChildren(text);
  event.target.textContent = "It is selected: copy it";
});

listen();
