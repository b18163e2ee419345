// The time at which a simulated run is looked into: typed, it becomes the address.
(function () {
  "use strict";

  const made = new WeakMap();

  function fillInstants(page) {
    for (const place of page.querySelectorAll(".instant-place")) {
      if (made.get(place) === place.dataset.at) continue;
      made.set(place, place.dataset.at);
      const input = document.createElement("input");
      input.type = "number";
      input.id = "instant-at";
      input.min = 0;
      input.step = "any";
      input.value = Number(place.dataset.at);
      input.onchange = () => {
        window.mqttlab.go(place.dataset.run + "?part=instant&at=" + encodeURIComponent(input.value));
      };
      place.replaceChildren(input);
    }
  }

  window.mqttlab = Object.assign(window.mqttlab || {}, { fillInstants });
})();
