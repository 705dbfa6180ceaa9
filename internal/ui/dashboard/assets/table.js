"use strict";

// The table of members: its selection, and a long table that scrolls. A long table has a part for each of its pages. Only the
// visible parts, the part with the focus, and their neighbors have rows. The others keep their height.

const chosen = new Set(); // the selected members, also the ones without a row
const most = 100; // members that one form changes
let long; // the long table; undefined for a short one

// boxes returns the checkboxes of the rows.
function boxes() {
  return [...document.querySelectorAll("#bulk input[name=member]")];
}

// inView returns the checkboxes that the box for all selects: the ones on the page, or the visible ones of a long table.
function inView() {
  if (!long) return boxes();
  const window = visible();
  return boxes().filter((box) => {
    const row = box.closest("tr").getBoundingClientRect();
    return row.top < window.bottom && row.bottom > window.top;
  });
}

// count shows the number of selected members beside the buttons, and sets the checkbox for all.
function count() {
  const all = document.querySelector("#bulk [data-all]");
  if (!all) return;
  for (const box of boxes()) box.checked = chosen.has(box.value);
  const rows = long ? [] : boxes();
  all.checked = chosen.size > 0 && rows.length === chosen.size;
  all.indeterminate = chosen.size > 0 && !all.checked;
  const one = long ? "Select all in view" : "Select all on this page";
  const many = chosen.size > most ? `, at most ${most} change at once` : "";
  document.querySelector("#bulk [data-chosen]").textContent = chosen.size ? `${chosen.size} selected${many}` : one;
  for (const button of document.querySelectorAll("#bulk button[name=action]:not([aria-describedby])")) button.disabled = chosen.size > most;
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.dataset.all !== undefined && long && chosen.size > 0) chosen.clear();
  else if (box.dataset.all !== undefined) for (const one of inView()) box.checked ? chosen.add(one.value) : chosen.delete(one.value);
  else if (box.matches("#bulk input[name=member]")) box.checked ? chosen.add(box.value) : chosen.delete(box.value);
  count();
});

// The form also has the selected members without a row.
document.addEventListener("formdata", (event) => {
  if (event.target.id !== "bulk") return;
  const present = event.formData.getAll("member");
  for (const name of chosen) if (!present.includes(name)) event.formData.append("member", name);
});

// visible returns the upper and the lower edge of the visible rows.
function visible() {
  const region = long.region.getBoundingClientRect();
  const head = long.table.tHead.getBoundingClientRect().height;
  return { top: Math.max(region.top, 0) + head, bottom: Math.min(region.bottom, innerHeight) };
}

// keyOf returns the address of the table without its page.
function keyOf() {
  const query = new URLSearchParams(location.search);
  query.delete("page");
  return query.toString();
}

// addressOf returns the address of a page of the table.
function addressOf(page) {
  const query = new URLSearchParams(keyOf());
  if (page > 1) query.set("page", page);
  return query.size ? "/?" + query : "/";
}

// begin makes a long table scroll. After a load of the same table, it keeps the rows of other parts until their next load.
function begin() {
  const table = document.querySelector("table.members[data-pages]");
  const before = long?.key === keyOf() ? long : undefined;
  long?.loads.forEach((load) => load.abort());
  long = undefined;
  if (table && +table.dataset.pages > 1) {
    const page = +table.dataset.page;
    const region = table.closest(".wide");
    const wide = table.offsetWidth > region.clientWidth ? table.offsetWidth : 0;
    const cells = table.tHead.offsetHeight ? [...table.tHead.rows[0].cells] : []; // a telephone shows cards without a head
    const widths = before?.widths ?? cells.map((cell) => (100 * cell.offsetWidth) / table.offsetWidth);
    long = { key: keyOf(), table, region, widths, parts: [], loads: new Map(), row: before?.row, page: before?.page ?? page, steps: before?.steps ?? [] };
    region.classList.add("long");
    table.setAttribute("aria-rowcount", +table.dataset.total + 1);
    widths.forEach((width, i) => (table.tHead.rows[0].cells[i].style.width = width + "%"));
    long.wide = before?.wide ?? wide;
    if (long.wide) table.style.minWidth = long.wide + "px";
    const fresh = table.tBodies[0];
    for (let i = 1; i <= +table.dataset.pages; i++) {
      const old = before?.parts[i - 1];
      const part = i === page ? { body: fresh, has: true } : { body: old?.body ?? document.createElement("tbody"), has: old?.has ?? false, stale: true };
      part.page = i;
      part.rows = Math.min(most, +table.dataset.total - (i - 1) * most);
      long.parts.push(part);
      if (i < page) table.insertBefore(part.body, fresh);
      else if (i > page) table.append(part.body);
      number(part);
    }
    long.row ??= fresh.offsetHeight / fresh.rows.length;
    for (const part of long.parts) if (!part.has) empty(part);
    document.querySelector("#bulk nav[aria-label=Pages]")?.classList.add("scrolled");
    if (before) region.scrollTop = before.top;
    else if (page > 1) show(page);
  }
  if (!before || !long) keep();
  count();
  update();
}

// keep keeps the selection of the members in the table: another search selects nothing else.
function keep() {
  const present = boxes();
  for (const name of chosen) if (!present.some((box) => box.value === name)) chosen.delete(name);
  for (const box of present) if (box.checked) chosen.add(box.value);
}

// show scrolls to a page of the table.
function show(page) {
  const part = long.parts[page - 1].body;
  if (getComputedStyle(long.region).overflowY === "visible") part.scrollIntoView();
  else long.region.scrollTop = part.offsetTop - long.table.tHead.offsetHeight;
}

// number tells screen readers the place of the rows.
function number(part) {
  if (part.has) [...part.body.rows].forEach((row, i) => row.setAttribute("aria-rowindex", (part.page - 1) * most + i + 2));
}

// empty replaces the rows of a part by one row of their height.
function empty(part) {
  const height = part.has ? part.body.offsetHeight : part.rows * long.row;
  const row = document.createElement("tr");
  const cell = document.createElement("td");
  row.className = "gap";
  row.setAttribute("aria-hidden", "true");
  cell.colSpan = long.table.tHead.rows[0].cells.length;
  cell.style.height = height + "px";
  row.append(cell);
  part.body.replaceChildren(row);
  part.has = false;
}

// fill loads the rows of a part.
async function fill(part) {
  const table = long;
  const load = new AbortController();
  table.loads.set(part.page, load);
  try {
    const answer = await fetch("/rows" + addressOf(part.page).slice(1), { signal: load.signal });
    if (answer.redirected && new URL(answer.url).pathname === "/sign-in") return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const rows = page.querySelector("table.members[data-pages]");
    if (long !== table) return;
    if (answer.ok && rows && +rows.dataset.page === part.page) put(part, rows.tBodies[0]);
    else if (answer.ok) reload(); // members have gone, and this page with them
    else throw new Error(page.querySelector("main")?.textContent.trim() ?? answer.statusText);
  } catch (err) {
    if (err.name !== "AbortError" && long === table) setTimeout(update, retry);
  } finally {
    table.loads.delete(part.page);
  }
}

// put shows the rows of a part. The focus stays on its member.
function put(part, rows) {
  const focus = placeOf(document.activeElement);
  part.body.replaceChildren(...[...rows.rows].map((row) => document.adoptNode(row)));
  Object.assign(part, { has: true, stale: false });
  number(part);
  settle();
  if (focus && !document.activeElement.closest("tr")) elementAt(focus)?.focus({ preventScroll: true });
  count();
  play();
}

// placeOf returns the member with the focus; undefined if the focus is elsewhere.
function placeOf(element) {
  const box = element?.closest?.("tr")?.querySelector("input[name=member]");
  return box && { name: box.value, box: element === box };
}

// elementAt returns the checkbox or the link of a member.
function elementAt(place) {
  const box = boxes().find((one) => one.value === place.name);
  return place.box ? box : box?.closest("tr").querySelector("th a");
}

// update gives the visible parts their rows, and takes the rows of the others away.
function update() {
  if (!long) return;
  const window = visible();
  const seen = long.parts.filter((part) => {
    const place = part.body.getBoundingClientRect();
    return place.top < window.bottom && place.bottom > window.top;
  });
  const focused = long.parts.find((part) => part.body.contains(document.activeElement));
  const awaited = long.steps.length > 0 ? long.parts[long.awaited] : undefined;
  const pages = [...seen, focused, awaited].filter((part) => part).map((part) => part.page);
  const near = (part) => pages.some((page) => Math.abs(page - part.page) <= 1);
  for (const part of long.parts) {
    if (near(part) || pages.length === 0) continue;
    long.loads.get(part.page)?.abort();
    if (part.has) empty(part);
  }
  const wanted = long.parts.filter((part) => near(part) && (!part.has || part.stale));
  const first = wanted.filter((part) => pages.includes(part.page)); // the neighbors load after them
  for (const part of first.length > 0 ? first : wanted) if (!long.loads.has(part.page)) fill(part);
  long.top = long.region.scrollTop;
  if (seen.length > 0) tell(seen[0], window);
  play();
}

// walk moves the focus in a long table by one row, or selects its row if by is 0. If the row of a step is not loaded, this
// step and the further ones wait for it.
function walk(by) {
  if (document.activeElement.closest("table.members tbody tr")) {
    if (long.steps.length < most) long.steps.push(by);
    play();
  } else if (by !== 0) inView()[0]?.closest("tr").querySelector("th a").focus();
}

// play takes the waiting steps, as far as their rows are loaded.
function play() {
  for (; long?.steps.length > 0; long.steps.shift()) {
    const now = document.activeElement.closest("table.members tbody tr");
    const part = long.parts.find((one) => one.body === now?.parentElement);
    if (!part) return;
    const place = (part.page - 1) * most + now.sectionRowIndex + long.steps[0];
    const to = Math.min(Math.max(place, 0), +long.table.dataset.total - 1);
    const page = Math.floor(to / most);
    const row = long.parts[page].has && long.parts[page].body.rows[to % most];
    if (!row) {
      long.awaited = page;
      if (!long.loads.has(page + 1)) settle();
      return;
    }
    if (long.steps[0] === 0) pick();
    else row.querySelector("th a").focus();
  }
}

// Another action of the user ends the waiting steps.
for (const action of ["pointerdown", "wheel", "keydown"]) {
  document.addEventListener(action, (event) => long && !["j", "k", "x"].includes(event.key) && (long.steps = []), { passive: true });
}

// tell shows which rows are visible, and keeps their page in the address.
function tell(part, window) {
  const above = window.top - part.body.getBoundingClientRect().top;
  const height = part.body.offsetHeight / part.rows;
  const first = (part.page - 1) * most + Math.max(0, Math.floor(above / height)) + 1;
  const total = +long.table.dataset.total;
  const last = Math.min(total, first + Math.max(0, Math.ceil((window.bottom - window.top) / height) - 1));
  const range = document.querySelector("#bulk nav[aria-label=Pages] span");
  if (range) range.textContent = `${first} to ${last} of ${total}`;
  if (part.page === long.page) return;
  long.page = part.page;
  history.replaceState(null, "", addressOf(part.page));
  const back = document.querySelector("#bulk input[name=back]");
  if (back) back.value = addressOf(part.page);
}

let settling; // the timer after the last scroll
let scrolled = 0; // the time of the last scroll

// Scrolling passes many parts: only the ones where it begins and ends load their rows.
function settle(event) {
  clearTimeout(settling);
  settling = setTimeout(update, 30);
  if (event?.type !== "scroll") return;
  if (event.timeStamp - scrolled > 100) update(); // a jump is one scroll
  scrolled = event.timeStamp;
}

document.addEventListener("scroll", settle, { capture: true, passive: true });
addEventListener("resize", settle);
document.addEventListener("focusin", settle);
document.addEventListener("view", begin);
begin();
