"use strict";
// The page reads without this. It adds: what a mark stands for, a choice of application, sorting, light and dark.
(() => {
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const tooltip = document.getElementById("tooltip");
  document.querySelectorAll(".script").forEach((part) => { part.hidden = false; });

  // ---- light and dark ------------------------------------------------------------------------------------------
  const theme = document.getElementById("theme");
  const darkNow = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const nameTheme = () => { theme.textContent = darkNow() ? "light" : "dark"; };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = darkNow() ? "light" : "dark";
    nameTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  nameTheme();

  // ---- paper has no hidden parts -------------------------------------------------------------------------------
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));

  // ---- tooltips: [x, y, text, width, height] in shares of the drawing --------------------------------------------
  const ring = document.createElement("div");
  ring.className = "ring";

  let shown = null;

  function show(drawing, mark) {
    const [x, y, text, width = 0, height = 0] = mark;
    shown = { drawing, mark };
    ring.classList.toggle("cell", width > 0);
    ring.style.left = `${x * 100}%`;
    ring.style.top = `${y * 100}%`;
    ring.style.width = `${width * 100}%`;
    ring.style.height = `${height * 100}%`;
    drawing.append(ring);
    tooltip.textContent = text;
    tooltip.hidden = false;
    follow();
  }

  // The tooltip stays by its mark when the page, or a drawing wider than the screen, is scrolled.
  function follow() {
    if (!shown) return;
    const [x, y, , , height = 0] = shown.mark;
    const box = shown.drawing.getBoundingClientRect();
    const left = box.left + x * box.width;
    const top = box.top + (y - height / 2) * box.height;
    const below = box.top + (y + height / 2) * box.height;
    tooltip.style.left = `${Math.max(8, Math.min(left - tooltip.offsetWidth / 2, innerWidth - tooltip.offsetWidth - 8))}px`;
    tooltip.style.top = `${top - tooltip.offsetHeight - 12 > 0 ? top - tooltip.offsetHeight - 12 : below + 12}px`;
  }

  function hide() {
    shown = null;
    tooltip.hidden = true;
    ring.remove();
  }

  // The nearest point within reach, or else the smallest rectangle under the pointer.
  function find(marks, x, y, box, reach) {
    let nearest = null;
    let least = reach;
    let within = null;
    let smallest = Infinity;
    for (const mark of marks) {
      const [markX, markY, , width = 0, height = 0] = mark;
      const across = Math.abs(x - markX);
      const along = Math.abs(y - markY);
      if (width > 0) {
        if (across <= width / 2 && along <= height / 2 && width * height < smallest) {
          smallest = width * height;
          within = mark;
        }
        continue;
      }
      const distance = Math.hypot(across * box.width, along * box.height);
      if (distance < least) {
        least = distance;
        nearest = mark;
      }
    }
    return nearest || within;
  }

  function watch(drawing, name) {
    let place = -1;
    const marks = () => data.tooltips[name] || [];
    const point = (event) => {
      const box = drawing.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width;
      const y = (event.clientY - box.top) / box.height;
      const mark = find(marks(), x, y, box, event.pointerType === "touch" ? 28 : 14);
      if (mark) {
        place = marks().indexOf(mark);
        show(drawing, mark);
      } else {
        hide();
      }
    };
    drawing.addEventListener("pointermove", point);
    drawing.addEventListener("pointerdown", point);
    drawing.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    drawing.addEventListener("blur", hide);
    drawing.tabIndex = 0;
    drawing.addEventListener("keydown", (event) => {
      const count = marks().length;
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
      if (event.key === "Escape") {
        hide();
        return;
      }
      if (!count || !(event.key in steps || event.key === "Home" || event.key === "End")) return;
      event.preventDefault();
      if (event.key === "Home") place = 0;
      else if (event.key === "End") place = count - 1;
      else place = Math.max(0, Math.min(count - 1, place + steps[event.key]));
      show(drawing, marks()[place]);
      ring.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
  }

  for (const drawing of document.querySelectorAll(".drawing")) {
    const name = drawing.id.replace(/-drawing$/, "");
    if (data.tooltips[name]) watch(drawing, name);
  }
  addEventListener("scroll", follow, { passive: true, capture: true });
  addEventListener("pointerdown", (event) => { if (!event.target.closest(".drawing")) hide(); });

  // ---- one application after another: the marks of Figure 3 are moved, nothing is drawn anew -----------------------
  const chooser = document.getElementById("app");

  function choose(number) {
    const app = data.chooser.apps[number];
    const view = document.querySelector("#vector-drawing svg").viewBox.baseVal;
    const marks = [];
    app.marks.forEach((row, platform) => row.forEach((mark, series) => {
      const line = document.getElementById(`vector-line-${platform}-${series}`);
      const dot = document.getElementById(`vector-dot-${platform}-${series}`);
      line.style.display = dot.style.display = mark ? "" : "none";
      if (!mark) return;
      const [low, middle, high, words] = mark;
      const path = line.querySelector("path");
      const y = Number(path.getAttribute("d").match(/[\d.]+/g)[1]);
      path.setAttribute("d", `M ${low} ${y} L ${high} ${y}`);
      dot.querySelector("use").setAttribute("x", middle);
      // What the first choice lacks was drawn unseen.
      for (const part of [path, ...dot.querySelectorAll("*")]) {
        part.style.opacity = part.style.strokeOpacity = part.style.fillOpacity = "";
      }
      const text = `${data.chooser.platforms[platform]}, ${data.chooser.series[series]}: ${words}`;
      marks.push([(low + high) / 2 / view.width, y / view.height, text, (high - low + 9) / view.width, 9 / view.height]);
    }));
    data.tooltips.vector = marks;
    document.getElementById("vector-question").textContent = app.question;
    document.getElementById("vector-caption").textContent = app.caption;
    hide();
  }

  if (chooser) {
    data.chooser.apps.forEach((app, number) => chooser.add(new Option(app.name, number)));
    chooser.value = data.chooser.chosen;
    chooser.addEventListener("change", () => choose(Number(chooser.value)));
  }

  // ---- sorting ---------------------------------------------------------------------------------------------------
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function sort(table, column, descending) {
    const body = table.tBodies[0];
    const numeric = table.tHead.rows[0].cells[column].classList.contains("number");
    const keyed = [...body.rows].map((row) => {
      const cell = row.cells[column];
      const key = numeric ? parseFloat(cell.dataset.value) : cell.textContent;
      return { row, key, absent: numeric && Number.isNaN(key) };
    });
    keyed.sort((a, b) => {
      if (a.absent || b.absent) return a.absent - b.absent;
      const order = numeric ? a.key - b.key : words.compare(a.key, b.key);
      return descending ? -order : order;
    });
    body.append(...keyed.map((entry) => entry.row));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.tBodies[0].rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const sorted = head.getAttribute("aria-sort");
        const descending = sorted ? sorted === "ascending" : false;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        sort(table, column, descending);
      });
    });
  }
})();
