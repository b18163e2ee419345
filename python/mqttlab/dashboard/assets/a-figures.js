// Figures: asked for when their page is there, drawn by Plotly, redrawn when the theme or the range of time changes. One
// is drawn at a time, what is seen first, and the browser may paint between two: a page of nine figures shows its first
// one when that is drawn. Texts go into the page as text, never as markup.
(function () {
  "use strict";

  const CONFIG = { displaylogo: false, responsive: true, doubleClick: "autosize", modeBarButtonsToRemove: ["toImage", "lasso2d", "select2d"] };
  const mqttlab = window.mqttlab = Object.assign(window.mqttlab || {}, {
    theme: "", fillFigures: fill, redraw, figuresWait: () => wanted.size > 0 || drawing,
  });
  let range = null;
  let settled = 0;
  // A page that changes may keep the place of a figure and give it another one.
  const sources = new WeakMap();
  const answers = new WeakMap();
  const wanted = new Set();
  let drawing = false;
  const followed = new WeakSet();

  const idle = () => new Promise((done) => {
    if (window.requestIdleCallback) window.requestIdleCallback(done, { timeout: 1000 }); else setTimeout(done, 50);
  });

  // The library is large, and a browser takes a second to make it run: it comes with the first figure, at once where there
  // will be one, and else when whoever looks at a page has let the browser rest. A run is opened next.
  const library = () => mqttlab.script("/vendor/plotly-4.1.1.js");
  const early = () => { library().catch(() => {}); };
  const part = new URLSearchParams(window.location.search).get("part") || "messages";
  if (window.location.pathname.startsWith("/run/") && ["messages", "time", "parts", "network"].includes(part)) early();
  else window.addEventListener("load", () => setTimeout(() => idle().then(early), 2000));

  const identity = (place) => place.dataset.source + " " + place.dataset.version;

  function fill(page) {
    const places = [...page.querySelectorAll(".plot")].filter((place) => sources.get(place) !== identity(place));
    if (!places.length) return;
    range = fromAddress();
    for (const place of places) sources.set(place, identity(place));
    want(places);
  }

  function redraw() {
    want(document.querySelectorAll(".plot"));
  }

  function want(places) {
    document.body.dataset.ready = "no";
    // What is folded has no width to be drawn in.
    for (const place of places) if (!place.closest("details:not([open])")) wanted.add(place);
    for (const place of wanted) if (distance(place) === 0) ask(place);
    pump();
  }

  document.addEventListener("toggle", ({ target }) => {
    const places = target.open ? [...target.querySelectorAll(".plot")] : [];
    const undrawn = places.filter((place) => place.dataset.shows !== addressed(place));
    if (undrawn.length) want(undrawn);
  }, true);

  // How far a place is from what is seen of the page, in pixels.
  function distance(place) {
    const { top, bottom, width } = place.getBoundingClientRect();
    return width ? Math.max(0, top - window.innerHeight, -bottom) : Infinity;
  }

  function nearest() {
    let found = null;
    for (const place of wanted) {
      if (!place.isConnected) wanted.delete(place);
      else if (found === null || distance(place) < distance(found)) found = place;
    }
    return found;
  }

  const painted = () => new Promise((done) => {
    if (document.hidden) setTimeout(done); else window.requestAnimationFrame(() => setTimeout(done));
  });

  // To draw ten thousand runs takes a browser a second, in which the table beside them would not come. Its count stands there
  // before it does, empty until it is known how many rows come.
  function awaitsTable() {
    const count = document.getElementById("runs-count");
    return count && count.textContent !== "0 shown" && !document.querySelector("#runs-grid .ag-row a");
  }

  async function tableIsThere() {
    for (let waited = 0; awaitsTable() && waited < 2000; waited += 50) await new Promise((done) => setTimeout(done, 50));
    await painted();
  }

  async function pump() {
    if (drawing) return;
    drawing = true;
    if (awaitsTable()) await tableIsThere();
    for (let place = nearest(); place !== null; place = nearest()) {
      // Nobody waits for what is not seen, and whoever scrolls meanwhile has another one nearest.
      if (distance(place) > 0) {
        await idle();
        place = nearest();
        if (place === null) break;
      }
      wanted.delete(place);
      try {
        await draw(place);
      } catch (error) {
        place.textContent = "The dashboard has not given this figure.";
        window.reportError(error);
      }
      await painted();
    }
    drawing = false;
  }

  function addressed(place) {
    const query = new URLSearchParams({ theme: mqttlab.theme || "light" });
    if (range && place.classList.contains("over-time")) {
      query.set("from", range[0]);
      query.set("to", range[1]);
    }
    return place.dataset.source + (place.dataset.source.includes("?") ? "&" : "?") + query;
  }

  // The answer for what a place shall show now, asked for once.
  function ask(place) {
    const [from, identified] = [addressed(place), identity(place)];
    const known = answers.get(place);
    if (known && known.from === from && known.identified === identified) return known;
    const answer = window.fetch(from).then((sent) => sent.json());
    // Who draws it hears of a failure; until then nobody has to.
    answer.catch(() => {});
    const made = { from, identified, answer };
    answers.set(place, made);
    return made;
  }

  async function draw(place) {
    const asked = ask(place);
    const [answer] = await Promise.all([asked.answer, library()]);
    // Meanwhile another range may have been asked for, or the page may be gone.
    if (!place.isConnected) return;
    if (addressed(place) !== asked.from || identity(place) !== asked.identified) {
      wanted.add(place);
      return;
    }
    answers.delete(place);
    const panel = place.closest(".figure-panel");
    if (answer.figure === null) {
      place.textContent = answer.words || "The recording has nothing that this figure shows.";
      place.style.minHeight = "";
      place.dataset.shows = asked.from;
      panel.classList.add("nothing");
      return;
    }
    // A run that goes on has nothing to draw at first.
    if (panel.classList.contains("nothing")) place.textContent = "";
    panel.classList.remove("nothing");
    panel.querySelector("h3").textContent = answer.title;
    place.setAttribute("aria-label", answer.title);
    const csv = panel.querySelector("a.csv");
    csv.href = asked.from.replace(".json", ".csv");
    // Plotly draws beyond the end of a place that is lower than its figure.
    place.style.minHeight = answer.figure.layout.height + "px";
    await window.Plotly.react(place, answer.figure.data, answer.figure.layout, CONFIG);
    if (!followed.has(place)) {
      followed.add(place);
      follow(place);
      lead(place);
    }
    name(place);
    twin(panel.querySelector(".twin"), answer.title, answer.twin);
    place.dataset.shows = asked.from;
  }

  // Plotly's buttons are drawings without names; the mouse's tooltips become names for all.
  function name(place) {
    for (const button of place.querySelectorAll(".modebar-btn[data-title]:not([aria-label])")) {
      button.setAttribute("aria-label", button.dataset.title);
    }
  }

  // A point that is a run, or a delivery, leads to it.
  function lead(place) {
    place.on("plotly_click", (event) => {
      const point = event.points[0];
      const run = point && point.customdata;
      const [, of] = place.dataset.source.match(/^\/data(\/run\/.+)\/figure\/latency-over-time\.json/) || [];
      if (point && of) window.mqttlab.go(of + "?" + new URLSearchParams({ part: "message", at: point.x, latency: point.y }));
      if (typeof run === "string" && place.dataset.source.startsWith("/data/runs/")) {
        window.mqttlab.go("/run/" + run.split("/").map(encodeURIComponent).join("/"));
      }
    });
  }

  // Figures over run time share one range: whoever is zoomed tells the others, and the server draws what lies within.
  function follow(place) {
    place.on("plotly_relayout", (change) => {
      let wanted = null;
      if (!place.classList.contains("over-time")) return;
      if (change["xaxis.range[0]"] !== undefined) {
        wanted = [Number(change["xaxis.range[0]"]), Number(change["xaxis.range[1]"])];
      } else if (Array.isArray(change["xaxis.range"])) {
        wanted = change["xaxis.range"].map(Number);
      } else if (!change["xaxis.autorange"]) {
        return;
      }
      clearTimeout(settled);
      settled = setTimeout(() => {
        range = wanted;
        toAddress();
        want(document.querySelectorAll(".plot.over-time"));
      }, 120);
    });
  }
  function fromAddress() {
    const query = new URLSearchParams(window.location.search);
    const ends = [Number(query.get("from")), Number(query.get("to"))];
    return query.has("from") && query.has("to") && ends.every(Number.isFinite) ? ends : null;
  }
  function toAddress() {
    const query = new URLSearchParams(window.location.search);
    query.delete("from");
    query.delete("to");
    if (range) {
      query.set("from", range[0].toFixed(6));
      query.set("to", range[1].toFixed(6));
    }
    window.history.replaceState(window.history.state, "", "?" + query);
  }

  function twin(place, title, rows) {
    const table = mqttlab.element("table");
    table.appendChild(mqttlab.element("caption", { class: "unseen" }, title));
    const head = table.createTHead().insertRow();
    for (const column of rows.columns) head.appendChild(mqttlab.element("th", { scope: "col" }, column));
    const body = table.createTBody();
    for (const row of rows.rows) {
      const line = body.insertRow();
      for (const value of row) line.insertCell().textContent = value;
    }
    const box = mqttlab.element("div", { class: "scroll twin-rows", tabindex: 0, role: "region", "aria-label": title + ", table" });
    box.appendChild(table);
    place.replaceChildren(mqttlab.element("p", {}, rows.total > rows.rows.length
      ? "The first " + rows.rows.length + " of " + rows.total + " rows; the CSV has all." : ""), box);
  }

  // A figure as a picture.
  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("button.picture");
    if (!button) return;
    const panel = button.closest(".figure-panel");
    const { data, layout } = panel.querySelector(".plot");
    // On the page its title and its ground are the panel's; alone it needs both, on whatever it is put.
    const ground = window.getComputedStyle(panel).backgroundColor;
    const alone = { ...layout, width: 1000, height: 500, paper_bgcolor: ground, plot_bgcolor: ground,
      title: { text: panel.querySelector("h3").textContent, x: 0.02 }, margin: { ...layout.margin, t: 90 } };
    window.Plotly.downloadImage({ data, layout: alone }, {
      format: button.dataset.format, filename: button.dataset.name, width: 1000, height: 500, scale: 2,
    });
  });
})();
