"use strict";

// The page follows the hub: the server sends changed tiles, or a request to reload.

let source;
let loading;
let waiting; // the timer of the next load
let loaded = 0; // the time of the last load
let pointed = false; // the pointer has moved on this page, and is not left over from a click on the previous page

const pause = 2000; // between two loads of a view
const retry = 5000; // after a failed load

// say shows in the header whether the page is live.
function say(live) {
  const status = document.getElementById("liveness");
  if (!status) return;
  status.textContent = live ? "live" : "not live";
  status.classList.toggle("not", !live);
}

// warn shows a reason why the page may be out of date, until the next load.
function warn(text) {
  say(false);
  const view = document.getElementById("view");
  const warning = view.querySelector(".stale") ?? view.insertBefore(document.createElement("p"), view.firstChild);
  warning.className = "stale";
  warning.setAttribute("role", "alert");
  warning.textContent = "This page may be out of date: " + text;
}

// listen opens the stream of changes. A hidden page has none: browsers limit the connections to a host.
// A page without changes, such as an error, shows no status.
function listen() {
  if (source) source.close();
  source = undefined;
  const to = document.getElementById("view").dataset.live;
  if (!to) return document.getElementById("liveness")?.replaceChildren();
  if (document.hidden) return say(false);
  const mine = (source = new EventSource(to));
  let opened = false;
  mine.onopen = () => {
    if (opened) return reload(); // the page has changed since its address was made
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

// reload loads the view again, not more often than every pause, and not while the user is about to press the button of a decision.
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

// A time under the pointer also shows its exact time in the zone of the user.
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest?.("time[datetime]");
  if (!time || time.dataset.local) return;
  time.dataset.local = "shown";
  time.title = `${new Date(time.dateTime).toLocaleString([], { dateStyle: "medium", timeStyle: "long" })}\n${time.title}`;
});

// load replaces the view, but not the forms above it: the user may be typing there.
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
    if (!view) throw new Error("the dashboard sent an unexpected answer");
    if (answer.status === 429 || answer.status >= 500) throw new Error(view.textContent.trim());
    const open = [...document.querySelectorAll("#view details[open]")].map(nameOf);
    for (const d of view.querySelectorAll("details")) d.open = open.includes(nameOf(d));
    const old = document.getElementById("view");
    const focused = places(old).indexOf(document.activeElement);
    const member = placeOf(document.activeElement);
    old.replaceWith(document.adoptNode(view));
    document.dispatchEvent(new Event("view"));
    if (focused >= 0) ((member && elementAt(member)) ?? places(view)[focused])?.focus({ preventScroll: true });
    loaded = Date.now();
    listen();
  } catch (err) {
    if (err.name === "AbortError") return;
    warn(err.message);
    reload(retry);
  }
}

// nameOf returns the name of a disclosure, which stays the same when its page loads again.
function nameOf(details) {
  return (details.querySelector("strong") ?? details.querySelector("summary")).textContent;
}

// places returns the elements of a view that can have the focus.
function places(view) {
  return [...view.querySelectorAll("a, button, input, summary, [tabindex]")];
}

// change adds and replaces tiles, in the order of their names, and removes the tiles of members that have gone.
function change(changes) {
  for (const name of changes.gone) document.getElementById(name)?.remove();
  for (const put of changes.put) {
    const group = [...document.querySelectorAll(".group")].find((g) => g.dataset.group === put.group);
    if (!group) return reload();
    document.getElementById(put.id)?.remove();
    const template = document.createElement("template");
    template.innerHTML = put.html;
    const tile = template.content.firstElementChild;
    tile.classList.add("new");
    const tiles = group.querySelector(".tiles");
    tiles.insertBefore(tile, [...tiles.children].find((t) => t.id > put.id) ?? null);
  }
  for (const group of document.querySelectorAll(".group")) if (!group.querySelector(".tiles a")) group.remove();
  const summary = document.getElementById("summary");
  const open = [...summary.querySelectorAll("details[open]")].map(nameOf);
  summary.innerHTML = changes.summary;
  for (const d of summary.querySelectorAll("details")) d.open = open.includes(nameOf(d));
}

// The view follows the search as the user types.
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

listen();
