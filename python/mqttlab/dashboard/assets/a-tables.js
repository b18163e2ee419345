// Tables, built from the data that came with the page. Texts go in as text, never as markup.
(function () {
  "use strict";

  const { element } = window.mqttlab;

  function cell(value) {
    const made = element("td");
    if (value === null || typeof value !== "object") {
      made.textContent = value;
      return made;
    }
    if (value.words !== undefined) {
      made.textContent = value.words;
      return made;
    }
    if (value.act !== undefined) {
      const button = element("button", { type: "button", class: "act", "data-act": value.act, "data-value": value.value },
        value.title);
      if (value.label) button.setAttribute("aria-label", value.label);
      made.appendChild(button);
      return made;
    }
    if (value.kind !== undefined) {
      made.appendChild(payload(value));
      return made;
    }
    const link = element("a", { class: value.to.startsWith("/data/") ? "" : "page-link", href: value.to }, value.title);
    if (value.to.startsWith("/data/")) link.download = "";
    if (value.label) link.setAttribute("aria-label", value.label);
    made.appendChild(link);
    return made;
  }

  // What a message carried: a picture, if it has one, and what it is; behind that its text.
  function payload(value) {
    const box = element("div", { class: "payload" });
    if (value.picture) box.appendChild(element("img", { src: value.picture, alt: "Picture in the payload", loading: "lazy" }));
    if (value.text) {
      const details = element("details");
      details.appendChild(element("summary", {}, value.kind));
      details.appendChild(element("pre", { tabindex: 0 }, value.text));
      box.appendChild(details);
    } else {
      box.appendChild(element("span", {}, value.kind));
    }
    box.appendChild(element("a", { href: value.to, download: "", "aria-label": "The payload as a file" }, "file"));
    return box;
  }

  function table(data) {
    const made = element("table", data.rows.length ? {} : { hidden: "" });
    made.appendChild(element("caption", { class: "unseen" }, data.caption));
    const head = made.createTHead().insertRow();
    for (const column of data.heads) {
      const title = element("th", { scope: "col", class: column.text ? "text" : "" }, column.title);
      if (column.meaning) title.title = column.meaning;
      if (column.unit) title.appendChild(element("small", {}, column.unit));
      head.appendChild(title);
    }
    const body = made.createTBody();
    for (const row of data.rows) {
      const line = body.insertRow();
      row.forEach((value, place) => {
        const made = cell(value);
        if (data.heads[place].title) made.dataset.head = data.heads[place].title;
        if (data.heads[place].text) made.className = "text";
        if (value !== null && value.state) made.classList.add("state-" + value.state);
        line.appendChild(made);
      });
    }
    return made;
  }

  // Keeps the rows in which every word occurs, in whatever order they were typed.
  function filter(caption, made) {
    const rows = [...made.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
    const field = element("input", { type: "search", class: "table-filter", placeholder: "such as: latency p99",
      "aria-label": caption + ": only rows with" });
    const count = element("output", { role: "status" });
    const label = element("label", { class: "form-row" }, "Only rows with");
    label.append(field, count);
    field.oninput = () => {
      const words = field.value.toLowerCase().split(/\s+/);
      let kept = 0;
      for (const [row, text] of rows) {
        row.hidden = !words.every((word) => text.includes(word));
        kept += row.hidden ? 0 : 1;
      }
      count.textContent = kept + " of " + rows.length;
    };
    return label;
  }

  // A page that changes may keep the place of a table and give it other rows.
  const built = new WeakMap();
  function fill(page) {
    for (const place of page.querySelectorAll(".rows[data-rows]")) {
      const data = place.dataset.rows;
      // What nobody has opened is not built: a study has thousands of cells.
      if (built.get(place) === data || place.closest("details:not([open])")) continue;
      built.set(place, data);
      const told = JSON.parse(data);
      const made = table(told);
      place.replaceChildren(...(told.filtered ? [filter(told.caption, made), made] : [made]));
    }
  }

  document.addEventListener("toggle", () => fill(document), true);

  window.mqttlab = Object.assign(window.mqttlab || {}, { fillTables: fill });
})();
