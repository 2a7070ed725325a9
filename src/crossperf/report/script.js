"use strict";
// The page reads without this. It adds: what a mark stands for, choices of what was held out, of a model and of an
// application, copies of figures, sorting, light and dark.
(() => {
  const data = JSON.parse(document.getElementById("page-data").textContent);
  for (const marks of Object.values(data.tooltips)) marks.forEach((mark) => { mark[2] = data.texts[mark[2]]; });
  document.documentElement.classList.add("scripted");
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
  let unseen = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((part) => { part.open = true; });
    unseen = [...document.querySelectorAll("[data-view][hidden]")];
    unseen.forEach((part) => { part.hidden = false; });
  });
  addEventListener("afterprint", () => {
    opened.forEach((part) => { part.open = false; });
    unseen.forEach((part) => { part.hidden = true; });
  });

  // ---- which evaluation, which model -----------------------------------------------------------------------------
  const viewSelect = document.getElementById("view");
  const modelSelect = document.getElementById("model");

  function chooseView(key) {
    hide();
    document.querySelectorAll("[data-view]").forEach((part) => { part.hidden = !part.dataset.view.split(" ").includes(key); });
    document.querySelectorAll("[data-choose]").forEach((card) => {
      card.setAttribute("aria-pressed", String(card.dataset.choose === key));
    });
    if (viewSelect) viewSelect.value = key;
  }

  // Of parts that stand side by side, one for each model, the chosen one is shown; the first where it has none.
  function chooseModel(name) {
    hide();
    const groups = new Map();
    document.querySelectorAll("[data-model]").forEach((part) => {
      if (!groups.has(part.parentNode)) groups.set(part.parentNode, []);
      groups.get(part.parentNode).push(part);
    });
    groups.forEach((parts) => {
      const chosen = parts.find((part) => part.dataset.model === name) || parts[0];
      parts.forEach((part) => { part.hidden = part !== chosen; });
    });
  }

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

  // ---- one application after another: marks and axis of Figure 3 are moved, nothing is drawn anew -----------------
  function choose(view, number) {
    const app = view.chooser.apps[number];
    const id = `${view.prefix}vector`;
    [id, `${id}-narrow`].forEach((drawing, place) => place < view.chooser.spans.length && redraw(view, app, drawing, place));
    document.getElementById(`${id}-question`).textContent = app.question;
    document.getElementById(`${id}-caption`).textContent = app.caption;
    hide();
  }

  function redraw(view, app, drawing, place) {
    const svg = document.querySelector(`#${CSS.escape(drawing)}-drawing svg`);
    if (!svg) return;
    const [left, right] = view.chooser.spans[place];
    const [low, high] = app.axis;
    const at = (ratio) => left + (right - left) * Math.log(ratio / low) / Math.log(high / low);
    const part = (name) => document.getElementById(`${drawing}-${name}`);
    moveTicks(svg, drawing, app.axis[2 + place].map(([ratio, words]) => [at(ratio), words]));
    const once = part("once").querySelector("path");
    once.setAttribute("d", once.getAttribute("d").replace(/([ML]) [\d.]+/g, `$1 ${at(1).toFixed(2)}`));
    const box = svg.viewBox.baseVal;
    const marks = [];
    app.marks.forEach((row, platform) => row.forEach((mark, series) => {
      const line = part(`line-${platform}-${series}`);
      const dot = part(`dot-${platform}-${series}`);
      line.style.display = dot.style.display = mark ? "" : "none";
      if (!mark) return;
      const [first, middle, third] = mark.slice(0, 3).map(at);
      const path = line.querySelector("path");
      const y = Number(path.getAttribute("d").match(/[\d.]+/g)[1]);
      path.setAttribute("d", `M ${first} ${y} L ${third} ${y}`);
      dot.querySelector("use").setAttribute("x", middle);
      // What the first choice lacks was drawn unseen. Predictions are hollow: their fill stays without opacity.
      for (const shape of [path, ...dot.querySelectorAll("*")]) {
        shape.style.opacity = shape.style.strokeOpacity = "";
        if (series === 0) shape.style.fillOpacity = "";
      }
      const text = `${view.chooser.platforms[platform]}, ${view.chooser.series[series]}: ${mark[3]}`;
      marks.push([(first + third) / 2 / box.width, y / box.height, text, (third - first + 9) / box.width, 9 / box.height]);
    }));
    data.tooltips[drawing] = marks;
  }

  // Each tick is a group of grid line, tick and label; more than the first choice has are copies of its first.
  function moveTicks(svg, drawing, wanted) {
    const ticks = [...svg.querySelectorAll(`[id^="${CSS.escape(drawing)}-tick-"]`)];
    while (ticks.length < wanted.length) {
      const copy = ticks[0].cloneNode(true);
      copy.querySelectorAll("defs").forEach((own) => own.remove());
      copy.querySelectorAll("[id]").forEach((own) => own.removeAttribute("id"));
      copy.id = `${drawing}-tick-${ticks.length}`;
      ticks[ticks.length - 1].after(copy);
      ticks.push(copy);
    }
    ticks.forEach((tick, number) => {
      tick.style.display = number < wanted.length ? "" : "none";
      if (number >= wanted.length) return;
      const text = tick.querySelector("text");
      if (!("x0" in tick.dataset)) tick.dataset.x0 = text.getAttribute("x") || text.getAttribute("transform").match(/-?[\d.]+/)[0];
      tick.setAttribute("transform", `translate(${(wanted[number][0] - Number(tick.dataset.x0)).toFixed(2)} 0)`);
      text.textContent = wanted[number][1];
    });
  }

  for (const view of data.views) {
    const select = document.getElementById(`${view.prefix}app`);
    if (!select) continue;
    view.chooser.apps.forEach((app, number) => select.add(new Option(app.name, number)));
    select.value = view.chooser.chosen;
    select.addEventListener("change", () => choose(view, Number(select.value)));
  }

  // ---- copies of figures: the drawing that is seen, on white, in the colours of print ------------------------------
  function standalone(id) {
    const shown = [`${id}-drawing`, `${id}-narrow-drawing`].map((name) => document.getElementById(name))
      .find((drawing) => drawing && drawing.offsetParent);
    const svg = shown.querySelector("svg").cloneNode(true);
    const { width, height } = svg.viewBox.baseVal;
    svg.removeAttribute("aria-labelledby");
    svg.removeAttribute("aria-describedby");
    svg.setAttribute("width", `${width}pt`);
    svg.setAttribute("height", `${height}pt`);
    svg.setAttribute("style", "fill: #333333; font-family: 'DejaVu Sans', Verdana, sans-serif");
    const make = (tag, text) => {
      const own = document.createElementNS("http://www.w3.org/2000/svg", tag);
      own.textContent = text;
      return own;
    };
    const ground = make("rect", "");
    for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: "#ffffff" })) ground.setAttribute(name, value);
    const question = document.getElementById(`${id}-question`).textContent;
    svg.prepend(make("title", question), make("desc", document.getElementById(`${id}-caption`).textContent), ground);
    const text = new XMLSerializer().serializeToString(svg)
      .replaceAll("var(--ink)", "#333333").replaceAll("var(--quiet)", "#7f7f7f");
    return { text, width, height };
  }

  function png({ text, width, height }) {
    return new Promise((done, fail) => {
      const image = new Image();
      image.onerror = () => fail(new Error("the figure cannot be drawn"));
      image.onload = () => {
        const canvas = document.createElement("canvas");
        canvas.width = Math.round(width * 3);
        canvas.height = Math.round(height * 3);
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(done, "image/png");
      };
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const tools = {
    svg: async (figure, name) => download(new Blob([figure.text], { type: "image/svg+xml" }), `${name}.svg`),
    png: async (figure, name) => download(await png(figure), `${name}.png`),
    copy: async (figure) => navigator.clipboard.write([new ClipboardItem({ "image/png": png(figure) })]),
  };

  for (const bar of document.querySelectorAll(".tools")) {
    bar.addEventListener("click", async (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const label = button.dataset.tool === "copy" ? "copy" : button.dataset.tool.toUpperCase();
      try {
        await tools[button.dataset.tool](standalone(bar.dataset.for), bar.dataset.name);
        button.textContent = button.dataset.tool === "copy" ? "copied" : "saved";
      } catch {
        button.textContent = "not allowed here";
      }
      setTimeout(() => { button.textContent = label; }, 2000);
    });
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

  // ---- begin with what the address names, or the first --------------------------------------------------------------
  const views = data.views.map((view) => view.key);
  const pick = (key) => { if (views.includes(key)) { chooseView(key); history.replaceState(null, "", `#${key}`); } };
  if (views.length > 1) {
    document.querySelectorAll("[data-choose]").forEach((card) => card.addEventListener("click", () => pick(card.dataset.choose)));
    viewSelect.addEventListener("change", () => pick(viewSelect.value));
    const asked = decodeURIComponent(location.hash.slice(1));
    chooseView(views.includes(asked) ? asked : views[0]);
  }
  if (modelSelect) {
    modelSelect.addEventListener("change", () => chooseModel(modelSelect.value));
    chooseModel(modelSelect.value);
  }
})();
