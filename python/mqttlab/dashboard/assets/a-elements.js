// What the other scripts build with: elements, whose words go in as text and never as markup, and libraries that come when
// they are needed first, once. One that did not come is asked for again: the dashboard may have been away for a moment.
(function () {
  "use strict";

  const libraries = new Map();

  function element(kind, attributes, words) {
    const made = document.createElement(kind);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    if (words) made.textContent = words;
    return made;
  }

  function once(source, kind, attributes) {
    if (!libraries.has(source)) {
      libraries.set(source, new Promise((done, failed) => {
        const made = element(kind, attributes);
        made.onload = done;
        made.onerror = () => {
          libraries.delete(source);
          made.remove();
          failed(new Error(source + " has not come"));
        };
        document.head.appendChild(made);
      }));
    }
    return libraries.get(source);
  }

  const script = (source) => once(source, "script", { src: source });
  const style = (source) => once(source, "link", { rel: "stylesheet", href: source });

  window.mqttlab = Object.assign(window.mqttlab || {}, { element, script, style });
})();
