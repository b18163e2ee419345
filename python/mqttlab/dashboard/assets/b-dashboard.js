// What the browser does alone: theme, links, one time axis for many figures, pictures, export of the screen.
// Nothing here asks another machine, and nothing makes code from text.
(function () {
  "use strict";

  const waiting = { count: 0, since: performance.now() };
  Object.defineProperties(window.mqttlab, Object.getOwnPropertyDescriptors({
    // For tests and for people who print: true when every page, table and figure that was asked for is there.
    get ready() {
      return waiting.count === 0 && !dashWorks() && !window.mqttlab.figuresWait() && !searching &&
        performance.now() - waiting.since > 250 &&
        document.querySelector("#page h1") !== null;
    },
  }));
  // Between an answer and what Dash asks for because of it a busy machine may take any time.
  const dashWorks = () => Boolean(window.store && window.store.getState().isLoading);
  const ask = window.fetch.bind(window);
  // For what is asked again and again, and is nothing to wait for.
  window.mqttlab.quietly = ask;
  window.fetch = (...what) => {
    waiting.count += 1;
    return ask(...what).finally(() => { waiting.count -= 1; waiting.since = performance.now(); });
  };

  // What somebody does may ask for something a moment later: until then nothing is ready.
  function stir() {
    waiting.since = performance.now();
    if (document.body) document.body.dataset.ready = "no";
  }
  for (const kind of ["pointerup", "click", "input", "change", "keydown"]) document.addEventListener(kind, stir, true);

  // Links change the page without loading it anew; with a key held they are links like all others. What comes in place of
  // what is seen leaves it where it is, and nothing to go back to.
  function go(href, inPlace = false) {
    stir();
    if (searching) remembered();
    window.history[inPlace ? "replaceState" : "pushState"]({}, "", href);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    if (!inPlace) window.scrollTo(0, 0);
  }
  window.mqttlab.go = go;
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a.page-link");
    if (link && event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)) {
      event.preventDefault();
      go(kept(link));
      markPlace();
    }
  });
  // The table's keys move from cell to cell, and none of them comes to the link within one.
  document.addEventListener("keydown", (event) => {
    const link = event.key === "Enter" && event.target.matches(".ag-cell") && event.target.querySelector("a.page-link");
    if (link) link.click();
  });
  // How the table of runs is sorted, filtered and drawn is known to the browser: links that change something else of it
  // were made before.
  const OF_TABLE = ["sort", "filter", "x", "y", "colour"];
  function kept(link) {
    if (link.pathname !== "/" || window.location.pathname !== "/" || !link.search || link.closest(".bar, .view")) {
      return link.getAttribute("href");
    }
    const now = new URLSearchParams(window.location.search);
    return "/" + search(link.search, Object.fromEntries(OF_TABLE.map((name) => [name, now.get(name)])), link.search);
  }
  // Pages of one of many stand under the list of them.
  const HEADS = { "/experiments": "/experiment", "/studies": "/stud" };
  const seen = new WeakSet();
  function intoSight(link) {
    const row = link.parentElement;
    row.scrollLeft = link.offsetLeft - row.offsetLeft - (row.clientWidth - link.offsetWidth) / 2;
  }
  window.addEventListener("resize", () => document.querySelectorAll(".bar nav a[aria-current], nav.parts a[aria-current]").forEach(intoSight));
  // The run's name leaves room for the first figure beside it.
  function narrowRuns() {
    const table = document.getElementById("runs-grid");
    if (!table || seen.has(table) || window.innerWidth > 640) return;
    seen.add(table);
    window.dash_ag_grid.getApiAsync("runs-grid").then((grid) => {
      const narrow = () => grid.setColumnWidths([{ key: "run", newWidth: 150 }]);
      // Columns that come anew have their own widths again.
      grid.addEventListener("newColumnsLoaded", narrow);
      narrow();
    });
  }
  function markPlace() {
    for (const link of document.querySelectorAll(".bar nav a")) {
      const here = new URL(link.href).pathname;
      const at = window.location.pathname;
      const current = here === "/" ? at === "/" || at.startsWith("/run/") : at.startsWith(HEADS[here] || here);
      const known = link.getAttribute("aria-current") !== null;
      if (current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
      // On a narrow screen the links are one row that scrolls.
      if (current && !known) intoSight(link);
    }
    for (const link of document.querySelectorAll("nav.parts a[aria-current]")) if (!seen.has(link)) {
      seen.add(link);
      intoSight(link);
    }
    const heading = document.querySelector("#page h1");
    const title = heading ? heading.textContent + " – mqttlab" : "mqttlab";
    if (document.title !== title) document.title = title;
  }

  window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {};
  window.dashAgGridComponentFunctions.RunLink = (cell) => {
    if (!cell.data) return "…";
    const link = (href, words, more) => window.React.createElement("a", { href, className: "page-link", ...more }, words);
    const run = link(cell.data.href, cell.value, { key: "run" });
    if (!cell.data.runs) return run;
    // An experiment: its runs are shown below it, or not.
    const fold = link(cell.data.fold, (cell.data.open ? "▾ " : "▸ ") + cell.data.words, {
      key: "fold", "aria-expanded": Boolean(cell.data.open), role: "button", "aria-label": cell.data.words + " of " + cell.value });
    return [fold, " ", run];
  };

  // Theme.
  function wear(theme) {
    document.documentElement.dataset.theme = theme;
    document.body.dataset.agThemeMode = theme;
    if (window.mqttlab.theme !== theme) {
      window.mqttlab.theme = theme;
      window.mqttlab.redraw();
    }
  }
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const preferred = () => system.matches ? "dark" : "light";
  // Who has chosen none has the system's theme, also when that changes.
  let ownTheme = "";
  system.addEventListener("change", () => { if (!ownTheme) wear(preferred()); });

  // Dash's lists to choose from are named by their value alone, and no key comes to them: their labels name them, too.
  function nameLists() {
    for (const list of document.querySelectorAll("button.dash-dropdown[id]")) {
      const label = document.querySelector('label[for="' + list.id + '"]');
      const known = list.getAttribute("aria-labelledby") || "";
      if (label && !label.id) label.id = list.id + "-label";
      if (label && !known.startsWith(label.id)) list.setAttribute("aria-labelledby", label.id + " " + known);
      if (list.tabIndex < 0) list.tabIndex = 0;
    }
  }

  function watch() {
    markPlace();
    nameLists();
    narrowRuns();
    window.mqttlab.fillTables(document);
    window.mqttlab.fillFigures(document);
    window.mqttlab.fillMaps(document);
    window.mqttlab.fillDrops(document);
    window.mqttlab.fillForms(document);
    window.mqttlab.fillEvents(document);
    window.mqttlab.fillInstants(document);
    window.mqttlab.fillPlay(document);
  }

  // Fields as the text that stands in them, for a copy has none of what was typed or chosen; empty ones go with their names.
  function fieldsAsText(page, copy) {
    // What a slider says stands beside it.
    const fields = "input:not([aria-hidden], [type=range]), select, textarea, button.dash-dropdown";
    const copies = copy.querySelectorAll(fields);
    page.querySelectorAll(fields).forEach((field, at) => {
      const ticked = field.type === "checkbox" || field.type === "radio";
      if (field.closest(".ag-root-wrapper") || (ticked && field.checked)) return;
      const text = ticked ? "" : field.tagName === "SELECT" ? field.selectedOptions[0].text
        : field.tagName === "BUTTON" ? field.innerText.trim() : field.value;
      const place = copies[at].closest(".dash-input-container, .dash-dropdown-wrapper") || copies[at];
      if (!text) {
        const label = (field.id && copy.querySelector('label[for="' + CSS.escape(field.id) + '"]')) || copies[at].closest("label");
        if (label) label.remove();
        place.remove();
      } else {
        place.replaceWith(window.mqttlab.element(field.tagName === "TEXTAREA" ? "pre" : "output", {}, text));
      }
    });
  }

  // What is on the screen, as one file: figures as drawings, styles within, nothing that runs.
  async function exportScreen() {
    const page = document.getElementById("page");
    const copy = page.cloneNode(true);
    const graphs = page.querySelectorAll(".js-plotly-plot");
    const places = copy.querySelectorAll(".js-plotly-plot");
    for (let i = 0; i < graphs.length; i += 1) {
      const picture = document.createElement("img");
      picture.src = await window.Plotly.toImage(graphs[i], { format: "svg", width: 1000, height: 450 });
      picture.alt = graphs[i].closest("[aria-label]").getAttribute("aria-label");
      places[i].replaceWith(picture);
    }
    fieldsAsText(page, copy);
    copy.querySelectorAll("button, input, script, .links, nav, .leaflet-control-zoom").forEach((part) => part.remove());
    copy.querySelectorAll("a").forEach((part) => part.replaceWith(...part.childNodes));
    let style = "";
    for (const sheet of document.styleSheets) {
      for (const rule of sheet.cssRules) style += rule.cssText + "\n";
    }
    const made = document.implementation.createHTMLDocument(document.title);
    made.documentElement.lang = "en";
    made.documentElement.dataset.theme = document.documentElement.dataset.theme || "light";
    made.head.appendChild(made.createElement("style")).textContent = style;
    made.body.appendChild(made.importNode(copy, true));
    const words = made.body.appendChild(made.createElement("footer"));
    words.textContent = "Exported from the mqttlab dashboard: " + window.location.pathname + window.location.search;
    const blob = new Blob(["<!doctype html>\n" + made.documentElement.outerHTML], { type: "text/html" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = document.title.replace(/[^\w.-]+/g, "-") + ".html";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    document.getElementById("status").textContent = "Exported.";
  }
  document.addEventListener("click", (event) => {
    if (event.target.id === "export") exportScreen();
  });

  let chosen = [];
  // What a button says besides its own value: a field's text, the selection of the table, the address.
  function asks(button) {
    const { value, from, with: more } = button.dataset;
    if (!from && !more) return value;
    const told = value ? JSON.parse(value) : {};
    if (from) told.text = document.getElementById(from).value;
    if (more === "selection") told.runs = chosen;
    if (more === "address") told.state = window.location.search;
    return JSON.stringify(told);
  }
  document.addEventListener("click", (event) => {
    if (event.target.id !== "runs-compare" || !chosen.length) return;
    // Two runs are the two sides. Several are one side: the other one is chosen next, or was chosen before.
    const query = new URLSearchParams(window.location.search);
    if (query.has("first")) {
      go("/compare?" + new URLSearchParams({ first: query.get("first"), second: chosen.join(",") }));
    } else if (chosen.length === 2) {
      go("/compare?" + new URLSearchParams({ first: chosen[0], second: chosen[1] }));
    } else {
      query.set("first", chosen.join(","));
      go("/?" + query);
    }
  });
  // Buttons: what they ask for goes through one store to one callback.
  let asked = 0;
  let said = 0;
  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("button.act");
    if (!button) return;
    asked += 1;
    const value = asks(button);
    window.dash_clientside.set_props("asked", { data: { name: button.dataset.act, value: value || "", number: asked } });
    clearTimeout(said);
    said = setTimeout(() => window.dash_clientside.set_props("status", { children: "" }), 8000);
  });

  function search(before, values, otherwise = window.dash_clientside.no_update) {
    const query = new URLSearchParams(before || "");
    for (const [name, value] of Object.entries(values)) {
      if (value) query.set(name, value); else query.delete(name);
    }
    const text = query.toString();
    // Addresses that somebody wrote may say the same in other letters.
    return text === new URLSearchParams(before || "").toString() ? otherwise : text ? "?" + text : "";
  }
  // A page that has just come brings its fields' values with it: only what the user has changed changes the address.
  const typed = () => {
    const at = document.activeElement;
    return at !== null && (at.tagName === "INPUT" || at.tagName === "TEXTAREA");
  };
  // The rows of the table of runs follow each letter of a search; the address, the figures and what else stands around
  // the table follow when no other one comes, or when somebody leaves the field.
  const REST_MS = 400;
  let searching = 0;
  let rowsFor = null;
  let pressed = false;
  for (const kind of ["pointerdown", "pointerup", "pointercancel"]) {
    document.addEventListener(kind, () => { pressed = kind === "pointerdown"; }, true);
  }
  const searchedFor = (text) => search(window.location.search, { search: text });
  function searchRuns(text) {
    const same = window.dash_clientside.no_update;
    if (!typed() || (!searching && searchedFor(text) === same)) return same;
    if (rowsFor !== text) askForRows(text);
    rest();
    return same;
  }
  function rest() {
    clearTimeout(searching);
    searching = setTimeout(searched, REST_MS);
  }
  function askForRows(text) {
    rowsFor = text;
    window.dash_ag_grid.getApiAsync("runs-grid").then((grid) => grid.purgeInfiniteCache());
  }
  function searched() {
    // What is pressed must still be there when it is let go, or nobody's click reaches it.
    if (pressed) {
      rest();
      return;
    }
    const field = document.getElementById("runs-search");
    // On a busy machine Dash may not have told of the last letter yet.
    if (field && rowsFor !== field.value && searchedFor(field.value) !== window.dash_clientside.no_update) askForRows(field.value);
    const found = remembered();
    waiting.since = performance.now();
    if (found === window.dash_clientside.no_update) return;
    // In this order, so that the page that follows the address knows that it was typed.
    for (const name of ["typed", "runs-typed"]) window.dash_clientside.set_props(name, { data: found });
    window.dash_clientside.set_props("location", { search: found });
  }
  // The address at once, for who reads it in the next moment, and for who goes on from here and comes back.
  function remembered() {
    const field = document.getElementById("runs-search");
    clearTimeout(searching);
    searching = 0;
    rowsFor = null;
    const found = field ? searchedFor(field.value) : window.dash_clientside.no_update;
    if (found !== window.dash_clientside.no_update) window.history.pushState({}, "", window.location.pathname + found);
    return found;
  }
  document.addEventListener("change", (event) => {
    if (event.target.id === "runs-search") searched();
  }, true);
  // Who goes back has an address, and no search of his is under way.
  window.addEventListener("popstate", () => { clearTimeout(searching); searching = 0; rowsFor = null; });
  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    mqttlab: {
      theme: (clicks, known) => {
        ownTheme = known || "";
        if (clicks && window.dash_clientside.callback_context.triggered.length) {
          const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
          ownTheme = other === preferred() ? "" : other;
        }
        wear(ownTheme || preferred());
        return ownTheme;
      },
      searchRuns,
      // A field's id is compare-SIDE, or compare-SIDE-search.
      chooseSides: (...values) => search(values.pop(), Object.fromEntries(
        window.dash_clientside.callback_context.inputs_list.map(({ id }, place) => [
          id.replace("compare-", "").replace("-", "_"),
          Array.isArray(values[place]) ? values[place].join(",") : values[place],
        ]))),
      groupRuns: (group, pin) => search(window.location.search, { group: (group || []).join(","), pin: (pin || []).join(",") }),
      // Beside the page, which shows it already.
      keepTable: (asked, x, y, colour) => {
        const [sorts, filters] = [(asked && asked.sortModel) || [], (asked && asked.filterModel) || {}];
        const sort = sorts.map((one) => (one.sort === "desc" ? "-" : "") + one.colId).join(",");
        const filter = Object.keys(filters).length ? JSON.stringify(filters) : "";
        const found = window.location.pathname === "/" && asked
          ? search(window.location.search, { sort, filter, x, y, colour }) : window.dash_clientside.no_update;
        if (found !== window.dash_clientside.no_update) window.history.replaceState(window.history.state, "", "/" + found);
        return window.dash_clientside.no_update;
      },
      keepSelection: (rows) => {
        chosen = (rows || []).flatMap((row) => row.runs || [row.run]);
        return window.dash_clientside.no_update;
      },
      chooseRun: (run, before) => run ? search(before, { run }) : window.dash_clientside.no_update,
      // The address changes beside the page, which has it already: a reload, or who is sent it, sees the same.
      keepScenario: (packed) => {
        const at = window.location;
        if (at.pathname === "/configure") {
          const query = new URLSearchParams(at.search);
          query.delete("run");
          if (packed) query.set("scenario", packed); else query.delete("scenario");
          const text = query.toString();
          window.history.replaceState(window.history.state, "", at.pathname + (text ? "?" + text : ""));
        }
        return window.dash_clientside.no_update;
      },
      searchMessages: (topic, client, before) => typed()
        ? search(before, { topic, client }) : window.dash_clientside.no_update,
    },
  });

  document.addEventListener("DOMContentLoaded", () => {
    wear(preferred());
    new MutationObserver(watch).observe(document.body, {
      childList: true, subtree: true, attributes: true, attributeFilter: ["data-rows", "data-source", "data-version", "data-form", "data-at", "data-job"],
    });
    watch();
    // For who drives a browser: whether all that was asked for is there.
    setInterval(() => {
      const ready = window.mqttlab.ready ? "yes" : "no";
      if (document.body.dataset.ready !== ready) document.body.dataset.ready = ready;
    }, 50);
  });
})();
