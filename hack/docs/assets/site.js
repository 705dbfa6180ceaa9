// The search and the switch of colours. Nothing is fetched: the index is a script beside this one, which is loaded when somebody searches.
(function () {
  "use strict";
  var base = document.body.dataset.base, root = document.documentElement;
  function stored(value) {
    try { // a browser may keep nothing for files
      if (value) localStorage.setItem("muster-scheme", value);
      return localStorage.getItem("muster-scheme");
    } catch (e) { return value; }
  }
  if (stored()) root.dataset.scheme = stored();
  document.getElementById("site-scheme").addEventListener("click", function () {
    var dark = root.dataset.scheme ? root.dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.scheme = dark ? "light" : "dark";
    stored(root.dataset.scheme);
  });

  var input = document.getElementById("site-search"), list = document.getElementById("site-found"), asked = false;
  function load() {
    if (asked) return;
    asked = true;
    var script = document.createElement("script");
    script.src = base + "search-index.js";
    script.onload = show;
    document.head.appendChild(script);
  }
  function score(part, words) {
    var title = (part.p + " " + part.t).toLowerCase(), text = part.x.toLowerCase(), sum = part.t.toLowerCase() === words.join(" ") ? 50 : 0;
    for (var i = 0; i < words.length; i++) {
      var inTitle = title.indexOf(words[i]) >= 0, at = text.indexOf(words[i]);
      if (!inTitle && at < 0) return 0;
      sum += (inTitle ? 10 : 0) + (part.t.toLowerCase() === words[i] ? 20 : 0) + (at >= 0 ? 1 + Math.min(text.split(words[i]).length - 1, 5) / 5 : 0);
    }
    return sum;
  }
  function excerpt(text, word) {
    var at = text.toLowerCase().indexOf(word), small = document.createElement("small");
    if (at < 0) { small.textContent = text.slice(0, 120); return small; }
    var from = Math.max(0, at - 50), mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + word.length);
    small.append((from ? "…" : "") + text.slice(from, at), mark, text.slice(at + word.length, at + word.length + 80));
    return small;
  }
  function show() {
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.textContent = "";
    list.hidden = !words.length || !window.searchIndex;
    if (list.hidden) return;
    var hits = window.searchIndex.map(function (part) { return { part: part, score: score(part, words) }; })
      .filter(function (hit) { return hit.score; }).sort(function (a, b) { return b.score - a.score; }).slice(0, 20);
    hits.forEach(function (hit) {
      var item = document.createElement("li"), a = document.createElement("a");
      a.href = base + hit.part.u;
      a.textContent = hit.part.t === hit.part.p ? hit.part.p : hit.part.p + " › " + hit.part.t;
      a.append(excerpt(hit.part.x, words[0]));
      item.append(a);
      list.append(item);
    });
    if (!hits.length) list.textContent = "Nothing found.";
  }
  input.addEventListener("focus", load);
  input.addEventListener("input", function () { load(); show(); });
  input.addEventListener("keydown", function (event) {
    var first = list.querySelector("a");
    if (event.key === "Enter" && first) location.href = first.href;
    if (event.key === "Escape") { input.value = ""; show(); }
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
  });
  document.addEventListener("click", function (event) { if (!event.target.closest(".search")) list.hidden = true; });
})();
