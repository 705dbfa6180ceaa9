"use strict";

// What is shown is kept as it is on the hub: the server sends what changed of this page, or that it is to be loaded again.

let source;
let loading;
let warned; // the view on which a warning stands that the server did not render

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
  warned = view;
}

function listen() {
  if (source) source.close();
  const to = document.getElementById("view").dataset.live;
  if (!to) return;
  source = new EventSource(to);
  source.onopen = () => {
    say(true);
    if (warned === document.getElementById("view")) load(location.href); // a new stream does not know what the one before it warned of
  };
  source.onerror = () => {
    say(false);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => load(location.href), 5000);
  };
  source.addEventListener("tiles", (event) => change(JSON.parse(event.data)));
  source.addEventListener("reload", () => load(location.href));
  source.addEventListener("problem", (event) => warn(JSON.parse(event.data)));
}

// load shows a page in the place of this one, but for the forms above it, in which somebody may be writing.
async function load(url) {
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
    if (!view) throw new Error("this is no page of the dashboard");
    const open = [...document.querySelectorAll("#view details[open]")].map((d) => d.querySelector("strong").textContent);
    for (const d of view.querySelectorAll("details")) d.open = open.includes(d.querySelector("strong").textContent);
    document.getElementById("view").replaceWith(document.adoptNode(view));
    listen();
  } catch (err) {
    if (err.name === "AbortError") return;
    say(false);
    setTimeout(() => load(location.href), 5000);
  }
}

// change puts tiles in their places, in the order of their names, and takes away those of members that are not shown any more.
function change(changes) {
  for (const name of changes.gone) document.getElementById(name)?.remove();
  for (const put of changes.put) {
    const group = [...document.querySelectorAll(".group")].find((g) => g.dataset.group === put.group);
    if (!group) return load(location.href);
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
    const url = "/?" + query;
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
  await navigator.clipboard.writeText(document.getElementById(from).textContent);
  event.target.textContent = "Copied";
});

listen();
