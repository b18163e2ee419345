// Figures: asked for when their page is there, drawn by Plotly, redrawn when the theme or the range of time changes.
// Texts go into the page as text, never as markup.
(function () {
  "use strict";

  const CONFIG = { displaylogo: false, responsive: true, doubleClick: "autosize", modeBarButtonsToRemove: ["toImage", "lasso2d", "select2d"] };
  const mqttlab = window.mqttlab = Object.assign(window.mqttlab || {}, { theme: "", fillFigures: fill, redraw });
  let range = null;
  let settled = 0;
  // A page that changes may keep the place of a figure and give it another one.
  const sources = new WeakMap();
  const latest = new WeakMap();
  const followed = new WeakSet();

  // The library is large: it comes with the first figure.
  const library = () => mqttlab.script("/plotly.js");

  const identity = (place) => place.dataset.source + " " + place.dataset.version;

  function fill(page) {
    const places = [...page.querySelectorAll(".plot")].filter((place) => sources.get(place) !== identity(place));
    if (places.length) range = fromAddress();
    for (const place of places) {
      sources.set(place, identity(place));
      draw(place);
    }
  }

  function redraw() {
    for (const place of document.querySelectorAll(".plot")) draw(place);
  }

  async function draw(place) {
    const query = new URLSearchParams({ theme: mqttlab.theme || "light" });
    if (range && place.classList.contains("over-time")) {
      query.set("from", range[0]);
      query.set("to", range[1]);
    }
    const source = place.dataset.source + (place.dataset.source.includes("?") ? "&" : "?");
    const asked = source + query;
    latest.set(place, asked);
    const [answer] = await Promise.all([window.fetch(asked).then((sent) => sent.json()), library()]);
    // Meanwhile another range may have been asked for, or the page may be gone.
    if (latest.get(place) !== asked || !place.isConnected) return;
    const panel = place.closest(".figure-panel");
    if (answer.figure === null) {
      place.textContent = "The recording has nothing that this figure shows.";
      panel.classList.add("nothing");
      return;
    }
    // A run that goes on has nothing to draw at first.
    if (panel.classList.contains("nothing")) place.textContent = "";
    panel.classList.remove("nothing");
    panel.querySelector("h3").textContent = answer.title;
    place.setAttribute("aria-label", answer.title);
    twin(panel.querySelector(".twin"), answer.title, answer.twin);
    const csv = panel.querySelector("a.csv");
    csv.href = source.replace(".json", ".csv") + query;
    await window.Plotly.react(place, answer.figure.data, answer.figure.layout, CONFIG);
    if (!followed.has(place)) {
      followed.add(place);
      follow(place);
      lead(place);
    }
    name(place);
  }

  // Plotly's buttons are drawings without names; the mouse's tooltips become names for all.
  function name(place) {
    for (const button of place.querySelectorAll(".modebar-btn[data-title]:not([aria-label])")) {
      button.setAttribute("aria-label", button.dataset.title);
    }
  }

  // A point that is a run leads to it.
  function lead(place) {
    place.on("plotly_click", (event) => {
      const run = event.points[0] && event.points[0].customdata;
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
        for (const other of document.querySelectorAll(".plot.over-time")) draw(other);
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
    window.Plotly.downloadImage(button.closest(".figure-panel").querySelector(".plot"), {
      format: button.dataset.format, filename: button.dataset.name, width: 1000, height: 500, scale: 2,
    });
  });
})();
