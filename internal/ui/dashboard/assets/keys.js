"use strict";

// Keys and copy buttons. Each key has a link or a button on the page besides.

const pages = { f: "/", w: "/?view=wall", d: "/deliveries", r: "/registration" };
let began = 0; // the time of the key g

// rows returns the rows that j and k go through.
function rows() {
  return [...document.querySelectorAll("#view tbody tr")].filter((row) => row.querySelector("th a"));
}

// step moves the focus to the link of another row. A long table loads its rows on the way.
function step(by) {
  if (long) return walk(by);
  const all = rows();
  const now = all.indexOf(document.activeElement?.closest("tr"));
  all[Math.min(Math.max(now + by, 0), all.length - 1)]?.querySelector("th a").focus();
}

// pick selects the row with the focus, or ends its selection.
function pick() {
  document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]")?.click();
}

let asked = 0; // the number of searches of the dialog

// find shows the result of the search in the dialog. An answer that comes after a newer one is dropped.
async function find(text) {
  const mine = ++asked;
  const answer = await fetch("/find?q=" + encodeURIComponent(text)).catch(() => undefined);
  const page = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html");
  if (mine !== asked) return;
  const result = page.getElementById("found") ?? page.querySelector("main") ?? document.createTextNode("The dashboard does not answer.");
  document.querySelector("#find > div").replaceChildren(result);
}

// openFind opens the dialog that finds anything by name.
function openFind() {
  const dialog = document.getElementById("find");
  if (!dialog || document.querySelector("dialog:modal")) return;
  dialog.showModal();
  dialog.querySelector("input").select();
  find(dialog.querySelector("input").value);
}

document.getElementById("find")?.addEventListener("input", (event) => find(event.target.value.trim()));
document.getElementById("find")?.addEventListener("submit", (event) => {
  event.preventDefault();
  document.querySelector("#find li a")?.click();
});
document.getElementById("find")?.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  const stops = [...document.querySelectorAll("#find input, #find li a")];
  stops[Math.min(Math.max(stops.indexOf(document.activeElement) + by, 0), stops.length - 1)].focus();
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    openFind();
    return event.preventDefault();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  if (document.querySelector("dialog:modal")) return;
  const after = Date.now() - began < 1000;
  began = 0;
  if (after && pages[event.key]) {
    location.href = pages[event.key];
  } else if (event.key === "g") {
    began = Date.now();
  } else if (event.key === "/") {
    document.querySelector("#search input:not([type=hidden])")?.focus();
  } else if (event.key === "?") {
    document.getElementById("keys")?.showModal();
  } else if (event.key === "j" || event.key === "k") {
    step(event.key === "j" ? 1 : -1);
  } else if (event.key === "x") {
    if (long) walk(0);
    else pick();
  } else {
    return;
  }
  event.preventDefault();
});

// toast shows a short message, and has screen readers read it.
function toast(text) {
  const message = document.createElement("p");
  message.className = "toast";
  message.textContent = text;
  document.getElementById("toast").replaceChildren(message);
  setTimeout(() => message.remove(), 4000);
}

// copy copies the text of a button's command, or of the element that the button names.
async function copy(button) {
  const text = button.dataset.copy ? document.getElementById(button.dataset.copy) : button.parentElement.querySelector("pre");
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text.textContent);
    return toast("Copied");
  }
  const folded = text.closest("details");
  if (folded) folded.open = true; // without HTTPS pages have no clipboard
  getSelection().selectAllChildren(text);
  toast("Selected: copy it with the keyboard");
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.copy !== undefined) copy(button);
  if (button?.dataset.help !== undefined) document.getElementById("keys").showModal();
  if (event.target.closest("[data-find]") && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    openFind();
  }
});
