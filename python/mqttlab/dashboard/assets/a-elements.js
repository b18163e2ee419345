// What the other scripts build with: elements, whose words go in as text and never as markup, and libraries that come when
// they are needed first, once.
(function () {
  "use strict";

  const libraries = new Map();

  function element(kind, attributes, words) {
    const made = document.createElement(kind);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    if (words) made.textContent = words;
    return made;
  }

  function script(source) {
    if (!libraries.has(source)) {
      libraries.set(source, new Promise((done, failed) => {
        const made = element("script", { src: source });
        made.onload = done;
        made.onerror = failed;
        document.head.appendChild(made);
      }));
    }
    return libraries.get(source);
  }

  window.mqttlab = Object.assign(window.mqttlab || {}, { element, script });
})();
