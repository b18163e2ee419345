// The map: nodes where they are, links by use or loss, messages as they go, while the run's time passes.
// Leaflet draws; it comes with the first map. Names go into it as text, never as markup.
(function () {
  "use strict";

  const SPEEDS = [["0.01", "100 times slower"], ["0.1", "10 times slower"], ["1", "as it was"], ["10", "10 times faster"],
    ["100", "100 times faster"]];
  const FATES = { delivered: "#0072B2", duplicate: "#56B4E9", lost: "#D55E00" };
  const ROLE_WORDS = { server: "server", clients: "host with clients", client: "client at a place of its own",
    junction: "router, or a link that hosts share" };
  const FATE_WORDS = { delivered: "message under way, delivered", lost: "message that is lost", duplicate: "duplicate" };
  // None is the colour of a message: the legend has both.
  const ROLES = { server: "#CC79A7", clients: "#009E73", client: "#44AA99", junction: "#8a8f98" };
  // A message is seen for a moment at least, however fast it was.
  const SHOWN_S = 0.35;
  const EVERY_MS = 50;
  const MESSAGES_AT_ONCE = 150;
  const filled = new WeakMap();
  const { element } = window.mqttlab;

  // Names are placed by how wide they are, and without its style each is as wide as the map.
  const leaflet = () => Promise.all([window.mqttlab.style("/vendor/leaflet.css"), window.mqttlab.script("/vendor/leaflet.js")]);

  function fillMaps(page) {
    for (const place of page.querySelectorAll(".map-place")) {
      const source = place.dataset.source;
      if (filled.get(place) === source) continue;
      filled.set(place, source);
      make(place, source);
    }
  }

  async function make(place, source) {
    const [told] = await Promise.all([window.fetch(source).then((sent) => sent.json()), leaflet()]);
    if (filled.get(place) !== source || !place.isConnected || !told.nodes) return;
    if (place.map) place.map.remove();
    new RunMap(place, told).begin();
  }

  class RunMap {
    constructor(place, told) {
      this.place = place;
      this.told = told;
      this.now = told.span[0];
      this.playing = 0;
      this.flat = told.kind !== "geographic";
      // The address keeps what is looked at; what it says wrongly is left alone.
      const asked = new URLSearchParams(window.location.search);
      const [first, last] = told.span;
      const at = asked.has("at") ? Number(asked.get("at")) : NaN;
      if (at >= first && at <= last) this.now = at;
      this.filter = (asked.get("messages") || "").toLowerCase();
      this.state = { speed: SPEEDS.some(([speed]) => speed === asked.get("speed")) ? asked.get("speed") : "1",
        colour: asked.get("links") === "loss" ? "loss" : "use" };
    }

    // A moment after somebody has done something; while it plays the address stands still.
    remember() {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => {
        if (!this.place.isConnected) return;
        const query = new URLSearchParams(window.location.search);
        const kept = { at: this.now > this.told.span[0] ? this.now.toFixed(3) : "", messages: this.filter,
          speed: this.state.speed === "1" ? "" : this.state.speed, links: this.state.colour === "use" ? "" : "loss" };
        for (const [name, value] of Object.entries(kept)) if (value) query.set(name, value); else query.delete(name);
        window.history.replaceState(window.history.state, "", window.location.pathname + (query.size ? "?" + query : ""));
      }, 300);
    }

    begin() {
      this.controls();
      const L = window.L;
      this.map = this.place.map = L.map(this.place, {
        crs: this.flat ? L.CRS.Simple : L.CRS.EPSG3857, attributionControl: false, minZoom: -20, maxZoom: 20,
        zoomSnap: 0.25, keyboard: true, preferCanvas: false,
      });
      if (this.told.kind !== "topology") L.control.scale({ imperial: false, maxWidth: 160 }).addTo(this.map);
      const seen = this.bounds();
      if (this.told.nodes.some((node) => !node.path.length)) seen.extend(this.asideOf(seen));
      this.map.fitBounds(seen, { animate: false, padding: [40, 40] });
      this.outlines();
      this.lines = this.told.edges.map((edge) => this.line(edge));
      this.marks = this.told.nodes.map((node) => this.mark(node));
      this.dots = L.layerGroup().addTo(this.map);
      this.legend();
      this.free = [];
      this.timer = setInterval(() => this.step(), EVERY_MS);
      this.show();
      this.place.dataset.drawn = this.told.kind;
    }

    // The browser's own elements: everybody's keyboard and reader knows them.
    controls() {
      const box = this.place.parentElement.querySelector(".map-controls");
      const [first, last] = this.told.span;
      this.button = element("button", { type: "button", class: "main" }, "Play");
      this.button.onclick = () => this.play(!this.playing);
      this.slider = element("input", { type: "range", id: "map-time", min: first, max: last, step: "any" });
      this.slider.value = this.now;
      this.slider.oninput = () => { this.now = Number(this.slider.value); this.show(); this.remember(); };
      // Of "any" steps the arrow keys make none.
      this.slider.onkeydown = (event) => {
        const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
        if (!way) return;
        event.preventDefault();
        this.seek(this.now + way * (last - first) / 100);
        this.remember();
      };
      this.clock = element("output", { for: "map-time", class: "map-now" });
      const filter = element("input", { type: "search", id: "map-filter", placeholder: "topic, node or fate" });
      filter.value = this.filter;
      filter.oninput = () => { this.filter = filter.value.toLowerCase(); this.show(); this.remember(); };
      const parts = [this.button, element("label", { for: "map-time" }, "Time"), this.slider, this.clock];
      parts.push(...this.choice("speed", "Speed", SPEEDS), ...this.choice("colour", "Links by", [["use", "use"],
        ["loss", "loss"]]));
      const only = element("span", { class: "field" });
      only.append(element("label", { for: "map-filter" }, "Messages"), filter);
      parts.push(only);
      box.replaceChildren(...parts);
    }

    // What is drawn, and in which colour.
    legend() {
      const kinds = new Set(this.told.nodes.map((node) => node.role));
      const rows = [...Object.entries(ROLE_WORDS).filter(([role]) => kinds.has(role)).map(([role, words]) => [ROLES[role], words]),
        ...Object.entries(FATE_WORDS).map(([fate, words]) => [FATES[fate], words])];
      if (this.told.kind === "geographic") rows.push(["#8a8f98", "coast or border"]);
      const box = element("ul", { class: "map-legend", "aria-label": "Legend" });
      for (const [colour, words] of rows) {
        const line = element("li");
        const sign = element("span", { class: "map-sign", "aria-hidden": "true" });
        sign.style.background = colour;
        line.append(sign, words);
        box.appendChild(line);
      }
      const known = this.place.parentElement.querySelector(".map-legend");
      if (known) known.remove();
      this.place.after(box);
    }

    choice(name, words, options) {
      const select = element("select", { id: "map-" + name });
      for (const [value, text] of options) select.appendChild(element("option", { value }, text));
      select.value = this.state[name];
      select.onchange = () => { this.state[name] = select.value; this.show(); this.remember(); };
      return [element("label", { for: select.id }, words), select];
    }

    play(wanted) {
      if (wanted && this.now >= this.told.span[1]) this.now = this.told.span[0];
      this.playing = wanted ? performance.now() : 0;
      this.button.textContent = wanted ? "Pause" : "Play";
      if (!wanted) this.remember();
    }

    seek(to) {
      const [first, last] = this.told.span;
      this.now = Math.min(last, Math.max(first, to));
      this.slider.value = this.now;
      this.show();
    }

    step() {
      if (!this.place.isConnected) { clearInterval(this.timer); this.map.remove(); return; }
      if (!this.playing || document.hidden) return;
      const now = performance.now();
      const passed = (now - this.playing) / 1000 * Number(this.state.speed);
      this.playing = now;
      this.seek(this.now + passed);
      if (this.now >= this.told.span[1]) this.play(false);
    }

    at(x, y) { return [y, x]; }

    // Where a node is now: between two places it was at, on the straight line.
    whereabouts(node) {
      const path = node.path;
      if (!path.length) return null;
      let low = 0;
      let high = path.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (path[middle][0] <= this.now) low = middle; else high = middle - 1;
      }
      const [since, x, y] = path[low];
      const next = path[low + 1];
      if (!next || this.now < since) return this.at(x, y);
      const share = Math.min(1, (this.now - since) / Math.max(1e-9, next[0] - since));
      return this.at(x + share * (next[1] - x), y + share * (next[2] - y));
    }

    bounds() {
      const all = this.told.nodes.flatMap((node) => node.path.map(([, x, y]) => this.at(x, y)));
      const bounds = window.L.latLngBounds(all.length ? all : [[0, 0]]);
      if (bounds.getNorth() - bounds.getSouth() + bounds.getEast() - bounds.getWest() > 0) return bounds;
      const [y, x] = [bounds.getNorth(), bounds.getEast()];
      const d = this.flat ? 1 : 0.01;
      return window.L.latLngBounds([[y - d, x - d], [y + d, x + d]]);
    }

    // Who has no place of its own stands above the others, so that lines and messages have where to go.
    spot(node) {
      this.aside = this.aside || this.asideOf(this.bounds());
      return this.whereabouts(node) || this.aside;
    }

    asideOf(bounds) {
      return [bounds.getNorth() + 0.15 * (bounds.getNorth() - bounds.getSouth()), bounds.getCenter().lng];
    }

    async outlines() {
      if (this.told.kind !== "geographic") return;
      const answer = await window.fetch("/vendor/outlines.json");
      const outlines = await answer.json();
      if (!this.place.isConnected) return;
      window.L.geoJSON(outlines, { interactive: false, style: { color: "#8a8f98", weight: 1, fillOpacity: 0.06 } })
        .addTo(this.map).bringToBack();
    }

    line(edge) {
      const drawn = window.L.polyline([[0, 0], [0, 0]], { weight: 3, color: "#8a8f98" }).addTo(this.map);
      drawn.bindTooltip(() => element("span", {}, this.said(edge)), { sticky: true });
      return drawn;
    }

    mark(node) {
      const mark = window.L.circleMarker([0, 0], {
        radius: node.role === "server" ? 10 : node.role === "client" ? 5 : 7, weight: 2, color: ROLES[node.role],
        fillColor: ROLES[node.role], fillOpacity: node.path.length ? 0.7 : 0, dashArray: node.path.length ? null : "3",
      }).addTo(this.map);
      const unknown = node.path.length ? "" : "\nIts place is not known.";
      mark.bindTooltip(() => element("span", {}, node.name + " (" + node.role + ")\n" + node.words + unknown));
      // Names of many clients would cover each other; who points at one is told.
      if (this.told.nodes.length <= (node.role === "client" ? 16 : 60)) {
        mark.name = window.L.tooltip({ permanent: true, direction: "bottom", className: "map-name", offset: [0, 8] })
          .setContent(element("span", {}, node.name)).setLatLng([0, 0]).addTo(this.map);
      }
      return mark;
    }

    slice(edge) {
      const link = this.told.links[edge.link];
      if (!link) return null;
      let found = null;
      for (const slice of link.slices) {
        if (slice[0] > this.now) break;
        found = slice;
      }
      return found && this.now < found[0] + link.width ? found : [this.now, 0, 0, 0, 0];
    }

    said(edge) {
      const slice = this.slice(edge);
      if (!slice) return edge.link || "shares a link";
      const [, busy, rate, lost, frames] = slice;
      return edge.link + "\nbusy " + Math.round(100 * busy) + " %, " + rate.toFixed(1) + " kbit/s\n" + lost + " of " +
        frames + " frames lost";
    }

    // From blue by yellow to vermilion, and wider: neither says it alone.
    paint(edge) {
      const slice = this.slice(edge);
      if (!slice) return { color: "#8a8f98", weight: 1.5, dashArray: "4" };
      const share = this.state.colour === "use" ? slice[1] : slice[4] ? slice[3] / slice[4] : 0;
      const steps = this.state.colour === "use" ? [0.01, 0.3, 0.6, 0.85] : [0.0001, 0.01, 0.05, 0.2];
      const level = steps.filter((step) => share >= step).length;
      return { color: ["#8a8f98", "#56B4E9", "#0072B2", "#E69F00", "#D55E00"][level], weight: 2 + 1.5 * level };
    }

    show() {
      const { nodes, edges } = this.told;
      const spots = nodes.map((node) => this.spot(node));
      nodes.forEach((_, index) => {
        this.marks[index].setLatLng(spots[index]);
        if (this.marks[index].name) this.marks[index].name.setLatLng(spots[index]);
      });
      // The two directions of a pair of nodes lie side by side.
      const pairs = new Map();
      edges.forEach((edge, index) => {
        const key = Math.min(edge.from, edge.to) + "-" + Math.max(edge.from, edge.to);
        const place = pairs.get(key) || 0;
        pairs.set(key, place + 1);
        const side = (edge.link ? (place % 2 ? -1 : 1) * (1 + (place >> 1)) : 0) * (edge.from < edge.to ? 4 : -4);
        const [a, b] = [spots[edge.from], spots[edge.to]].map((spot) => this.map.latLngToLayerPoint(spot));
        const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
        const aside = window.L.point(-(b.y - a.y) / length, (b.x - a.x) / length).multiplyBy(side);
        this.lines[index].setLatLngs([a.add(aside), b.add(aside)].map((point) => this.map.layerPointToLatLng(point)));
        this.lines[index].setStyle(this.paint(edge));
      });
      this.letGo(spots);
      this.clock.textContent = this.now.toFixed(3) + " s";
      this.slider.setAttribute("aria-valuetext", this.now.toFixed(2) + " seconds");
    }

    letGo(spots) {
      const { messages, nodes } = this.told;
      const servers = nodes.map((node, index) => node.role === "server" ? index : -1).filter((index) => index >= 0);
      const least = SHOWN_S * Number(this.state.speed);
      const under = [];
      for (const message of messages) {
        const [sent, received, from, to, topic, fate] = message;
        if (sent > this.now) break;
        const end = Math.max(received === null ? sent : received, sent + least);
        if (this.now > end) continue;
        const words = (topic + " " + fate + " " + nodes[from].name + " " + nodes[to].name).toLowerCase();
        if (this.filter && !words.includes(this.filter)) continue;
        under.push([message, (this.now - sent) / Math.max(1e-9, end - sent)]);
        if (under.length >= MESSAGES_AT_ONCE) break;
      }
      this.dots.clearLayers();
      for (const [message, share] of under) {
        const [, , from, to, topic, fate, late] = message;
        const by = servers.length ? spots[servers[0]] : spots[from];
        // Half of the way to the server, half from it; what is lost ends on its way.
        const [a, b, part] = share < 0.5 ? [spots[from], by, 2 * share] : [by, spots[to], 2 * share - 1];
        const spot = [a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])];
        const dot = window.L.circleMarker(spot, { radius: 4, weight: 1, color: "#fff", fillOpacity: 1,
          fillColor: FATES[fate] || "#8a8f98" });
        const took = late === null ? fate.replace("_", " ") : late + " ms";
        dot.bindTooltip(() => element("span", {}, topic + "\n" + nodes[from].name + " to " + nodes[to].name + "\n" + took));
        this.dots.addLayer(dot);
      }
      const said = this.place.parentElement.querySelector(".map-words");
      const words = under.length + (under.length === 1 ? " message under way." : " messages under way.");
      if (!this.playing && said.textContent !== words) said.textContent = words;
    }
  }

  window.mqttlab = Object.assign(window.mqttlab || {}, { fillMaps });
})();
