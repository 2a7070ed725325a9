// Everything works without this file; it makes pages quicker: theme, copying, dropping files, the map, live progress.
"use strict";
(() => {
  const root = document.documentElement;
  const stored = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  if (stored === "dark" || stored === "light") root.dataset.theme = stored;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const say = (text) => { const status = document.getElementById("said"); if (status) status.textContent = text; };

  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  function theme() {
    const button = document.getElementById("theme");
    const name = () => { button.textContent = isDark() ? "light" : "dark"; button.setAttribute("aria-label", `Show this page ${button.textContent}`); };
    name();
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* not kept */ }
      name();
    });
  }

  function reveal(from) { all(".script[hidden]", from).forEach((element) => { element.hidden = false; }); }

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy).textContent;
    const label = button.textContent;
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Not allowed here"; }
    say(button.textContent);
    setTimeout(() => { button.textContent = label; }, 1500);
  }

  function drop(zone) {
    const input = zone.querySelector("input[type=file]");
    zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      if (event.dataTransfer.files.length) { input.files = event.dataTransfer.files; say(`${input.files[0].name} chosen`); }
    });
  }

  // The map: a click shows the truth without loading the page; arrow keys go to the nearest dot that way.
  function show(link) {
    htmx.ajax("GET", link.getAttribute("href"), { target: "#truth", select: "#truth", swap: "outerHTML" }).then(() => {
      history.replaceState(null, "", link.getAttribute("href"));
      all(".dots .chosen").forEach((dot) => dot.classList.remove("chosen"));
      link.classList.add("chosen");
    });
  }
  const place = (link) => { const box = link.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; };
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  function walk(event) {
    const way = ways[event.key];
    const here = event.target.closest(".dots a");
    if (!way || !here) return;
    event.preventDefault();
    const [x, y] = place(here);
    let best = null, least = Infinity;
    for (const link of all("a", here.closest(".dots"))) {
      if (link === here) continue;
      const [a, b] = place(link), along = (a - x) * way[0] + (b - y) * way[1], across = Math.abs((a - x) * way[1]) + Math.abs((b - y) * way[0]);
      if (along > 0 && along + 2 * across < least) { least = along + 2 * across; best = link; }
    }
    if (best) { here.tabIndex = -1; best.tabIndex = 0; best.focus(); }
  }

  // The API: an example is sent as it stands in its box.
  async function send(form) {
    const output = form.querySelector("output"), method = form.dataset.method, body = form.querySelector("textarea");
    const address = form.querySelector("input[name=address]").value;
    const headers = { accept: "application/json, */*" };
    if (body) headers["content-type"] = form.dataset.type;
    const begun = performance.now();
    try {
      const response = await fetch(address, { method, headers, body: body ? body.value : undefined });
      const text = await response.text();
      let words = text;
      try { words = JSON.stringify(JSON.parse(text), null, 1); } catch { /* not JSON: as it is */ }
      const took = Math.round(performance.now() - begun);
      const more = words.length > 20000 ? `\n… ${words.length - 20000} characters more` : "";
      output.textContent = `${response.status} ${response.statusText}, ${took} ms\n\n${words.slice(0, 20000)}${more}`;
    } catch (error) { output.textContent = `No answer: ${error.message}`; }
    output.hidden = false;
    say(output.textContent.split("\n")[0]);
  }

  // A campaign: each event of the server renews the drawing.
  function follow(section) {
    const source = new EventSource(section.dataset.events);
    let due = 0;
    const renew = () => {
      clearTimeout(due);
      due = setTimeout(() => htmx.ajax("GET", section.dataset.page, { target: "#progress", select: "#progress", swap: "outerHTML" }), 150);
    };
    for (const name of ["message", "progress", "visit", "visits"]) source.addEventListener(name, renew);
    source.addEventListener("open", () => { section.querySelector(".live").textContent = "live"; });
    source.addEventListener("error", () => { section.querySelector(".live").textContent = "not connected; trying again"; });
    addEventListener("pagehide", () => source.close());
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
    const dot = event.target.closest(".dots a");
    if (dot && window.htmx && !event.metaKey && !event.ctrlKey && event.button === 0) { event.preventDefault(); show(dot); }
  });
  document.addEventListener("keydown", walk);
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form.example");
    if (form) { event.preventDefault(); send(form); }
  });
  document.addEventListener("htmx:afterSwap", (event) => reveal(event.target.parentElement || document));
  document.addEventListener("DOMContentLoaded", () => {
    root.classList.add("scripted");
    theme();
    reveal(document);
    all(".drop").forEach(drop);
    all("[data-events]").forEach(follow);
  });
})();
