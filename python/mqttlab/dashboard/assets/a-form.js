// The form of a scenario, built from the data that came with the page. What is typed goes to the server, which changes the
// text and sends the form again; fields stay where they are, and the one that has the focus keeps what is typed.
(function () {
  "use strict";

  const { element } = window.mqttlab;
  const built = new WeakMap();
  const opened = new Set();
  let number = 0;

  function fillForms(page) {
    for (const place of page.querySelectorAll(".form-place[data-form]")) {
      const data = place.dataset.form;
      if (built.get(place) === data) continue;
      built.set(place, data);
      const sections = JSON.parse(data);
      const shape = sections.map((section) => section.place + ":" + section.title + section.fields.map((field) =>
        field.place + field.kind).join()).join(";");
      if (place.dataset.shape === shape) update(place, sections); else build(place, sections, shape);
    }
  }

  function build(place, sections, shape) {
    const at = document.activeElement && document.activeElement.id;
    place.dataset.shape = shape;
    // What is a table within another stands in it: a group's publishing is found under the group.
    const boxes = new Map();
    const outer = [];
    for (const section of sections) {
      const box = element("details", { class: "form-section", "data-place": section.place });
      box.open = section.open || opened.has(section.place);
      box.ontoggle = () => { if (box.open) opened.add(section.place); else opened.delete(section.place); };
      box.appendChild(element("summary", {}, section.title));
      if (section.help) box.appendChild(element("p", { class: "lead" }, section.help));
      for (const field of section.fields) box.appendChild(one(field));
      boxes.set(section.place, box);
      const above = boxes.get(section.place.slice(0, Math.max(0, section.place.lastIndexOf("."))));
      if (section.place.includes(".") && above) above.appendChild(box); else outer.push(box);
    }
    place.replaceChildren(...outer);
    update(place, sections);
    const back = at && document.getElementById(at);
    if (back && place.contains(back)) back.focus();
  }

  function one(field) {
    const id = "field-" + field.place;
    const box = element("div", { class: "form-field" });
    box.appendChild(element("label", { for: id }, field.name.replace(/_/g, " ") + (field.required ? " *" : "")));
    let input;
    if (field.kind === "choice") {
      input = element("select", { id });
      input.appendChild(element("option", { value: "" }, field.default ? "default (" + field.default + ")" : "default"));
      for (const option of field.options) input.appendChild(element("option", { value: option }, option));
    } else {
      input = element("input", { id, type: "text", placeholder: field.default, autocomplete: "off", spellcheck: "false" });
      if (field.kind === "whole") input.inputMode = "numeric";
    }
    input.dataset.place = field.place;
    input.setAttribute("aria-describedby", id + "-help " + id + "-problem");
    input.onchange = () => {
      number += 1;
      window.dash_clientside.set_props("form-change", { data: { place: field.place, value: input.value, number } });
    };
    box.appendChild(input);
    box.appendChild(element("small", { id: id + "-help" }, field.help));
    box.appendChild(element("p", { id: id + "-problem", class: "problem", role: "alert" }));
    return box;
  }

  function update(place, sections) {
    for (const section of sections) {
      for (const field of section.fields) {
        const input = document.getElementById("field-" + field.place);
        if (!input) continue;
        if (input.value !== field.value && document.activeElement !== input) input.value = field.value;
        input.setAttribute("aria-invalid", field.problem ? "true" : "false");
        const problem = document.getElementById(input.id + "-problem");
        if (problem.textContent !== field.problem) problem.textContent = field.problem;
        for (let box = field.problem && input.closest("details"); box; box = box.parentElement.closest("details")) {
          box.open = true;
        }
      }
    }
  }

  // A field tells what is typed after a pause; who leaves it before, perhaps to press Start, has it told at once.
  const PAUSE_MS = 400;
  const typed = new WeakMap();
  const isField = (field) => field instanceof HTMLInputElement && field.id.startsWith("draft-") &&
    (field.type === "text" || field.type === "number");
  document.addEventListener("input", (event) => {
    if (isField(event.target)) typed.set(event.target, Date.now());
  }, true);
  document.addEventListener("focusout", (event) => {
    const field = event.target;
    if (!isField(field) || Date.now() - (typed.get(field) || 0) > PAUSE_MS) return;
    const number = field.value === "" ? null : Number(field.value);
    window.dash_clientside.set_props(field.id, { value: field.type === "number" ? number : field.value });
  });

  window.mqttlab = Object.assign(window.mqttlab || {}, { fillForms });
})();
