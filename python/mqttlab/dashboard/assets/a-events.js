// Live: the form for an event by hand. What may be chosen comes from the run, once it takes events; what is chosen goes back
// in the words of `mqttlab event`. Fields that go with a choice come and go with it.
(function () {
  "use strict";

  const { element } = window.mqttlab;
  // By the run: when another one begins or ends the page is made anew, and what somebody has typed stays.
  const forms = new Map();
  let number = 0;
  const AGAIN_MS = 5000;

  document.addEventListener("pointerdown", (event) => {
    for (const form of forms.values()) if (!form.box.contains(event.target)) form.last = null;
  });

  function fillEvents(page) {
    for (const place of page.querySelectorAll(".event-form")) {
      const job = place.closest(".live-job").dataset.job;
      if (!forms.has(job)) forms.set(job, made(job));
      const form = forms.get(job);
      if (place.firstChild === form.box && place.childNodes.length === 1) continue;
      place.replaceChildren(form.box);
      if (form.last && document.activeElement === document.body) form.last.focus({ preventScroll: true });
    }
  }

  function made(job) {
    const form = { job, asked: 0, fieldset: null, last: null, box: element("div") };
    form.box.appendChild(element("p", { class: "faint" }, "Events by hand take place from the warm-up on."));
    form.box.addEventListener("focusin", (event) => { form.last = event.target; });
    // Who leaves goes somewhere else; where the page is made anew the focus goes nowhere.
    form.box.addEventListener("focusout", (event) => { if (event.relatedTarget) form.last = null; });
    return form;
  }

  // Called at each look at a run's numbers, with whether it takes events now.
  function followEvents(job, fires) {
    const form = forms.get(job);
    if (!form) return;
    if (form.fieldset) form.fieldset.disabled = !fires;
    else if (fires && Date.now() - form.asked > AGAIN_MS) ask(form);
  }

  async function ask(form) {
    form.asked = Date.now();
    const answer = await window.mqttlab.quietly("/data/job/" + form.job + "/possible.json");
    if (!answer.ok || form.fieldset) return;
    const told = await answer.json();
    if (told.refused) form.box.replaceChildren(element("p", { class: "faint" }, told.refused));
    else build(form, told.things);
  }

  function build(form, things) {
    number += 1;
    const id = "event-" + number;
    const made = element("form", { "aria-label": "An event by hand" });
    const fieldset = element("fieldset", { class: "plain" });
    const row = element("div", { class: "event-fields" });
    const what = field(row, id + "-what", "What", element("select"));
    const groups = new Map();
    things.forEach((thing, at) => {
      if (!groups.has(thing.called)) {
        groups.set(thing.called, element("optgroup", { label: thing.called }));
        what.appendChild(groups.get(thing.called));
      }
      groups.get(thing.called).appendChild(element("option", { value: at }, thing.name));
    });
    const happens = field(row, id + "-happens", "What happens", element("select"));
    const more = element("div", { class: "event-fields" });
    const button = element("button", { type: "submit", class: "main" }, "Fire");
    const said = element("p", { class: "event-said", role: "status" });
    fieldset.append(row, more, button, said);
    made.appendChild(fieldset);
    const deed = () => things[what.value].deeds[happens.value];
    const choose = () => {
      happens.replaceChildren(...things[what.value].deeds.map((one, at) => element("option", { value: at }, one.title)));
      detail();
    };
    const detail = () => {
      more.replaceChildren();
      for (const one of deed().asked) asked(more, id, one);
      if (deed().then) {
        field(more, id + "-for", "For, then " + deed().then, text("for", "20 s; else it stays"));
      }
    };
    what.onchange = choose;
    happens.onchange = detail;
    made.onsubmit = (event) => {
      event.preventDefault();
      fire(form, [...things[what.value].words, ...deed().words, ...words(more)], button, said);
    };
    choose();
    form.fieldset = fieldset;
    form.box.replaceChildren(made);
  }

  function field(row, id, title, input) {
    const box = element("div", { class: "field-below" });
    input.id = id;
    box.append(element("label", { for: id }, title), input);
    row.appendChild(box);
    return input;
  }

  const text = (name, example) => element("input", {
    type: "text", "data-field": name, placeholder: example, autocomplete: "off", spellcheck: "false" });

  function asked(row, id, one) {
    const place = id + "-" + one.name;
    if (one.options.length) {
      const choice = field(row, place, one.title, element("select", { "data-field": one.name }));
      for (const [value, called] of one.options) choice.appendChild(element("option", { value }, called));
    } else if (one.pair) {
      field(row, place, one.title + ": x", text(one.name, one.example)).dataset.pair = "0";
      field(row, place + "-y", one.title + ": y", text(one.name, one.example)).dataset.pair = "1";
    } else field(row, place, one.title, text(one.name, one.example));
  }

  // FIELD=VALUE of all that is filled in; two lengths are one field.
  function words(row) {
    const found = [];
    const pairs = new Map();
    for (const input of row.querySelectorAll("[data-field]")) {
      const value = input.value.trim();
      const name = input.dataset.field;
      if (input.dataset.pair) pairs.set(name, [...(pairs.get(name) || []), value || "0 m"]);
      else if (value) found.push(name + "=" + value);
    }
    for (const [name, values] of pairs) found.push(name + "=" + JSON.stringify(values));
    return found;
  }

  async function fire(form, told, button, said) {
    // Pressed twice it is one event.
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    let [kind, lines] = ["problem", "The dashboard does not answer: whether this was fired is not known."];
    try {
      const answer = await window.fetch("/data/job/" + form.job + "/event", {
        method: "POST", body: JSON.stringify({ words: told }), headers: { "Content-Type": "application/json" } });
      const found = await answer.json();
      if (found.fired) [kind, lines] = ["", "Fired by hand. " + found.fired.join("; ")];
      else lines = "Not fired: " + found.refused;
    } catch (_) {
      // What stands there says it.
    }
    button.removeAttribute("aria-disabled");
    said.className = "event-said " + kind;
    said.textContent = lines;
  }

  window.mqttlab = Object.assign(window.mqttlab || {}, { fillEvents, followEvents });
})();
