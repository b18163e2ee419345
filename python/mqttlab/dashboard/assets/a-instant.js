// The time at which a simulated run is looked into: typed, it becomes the address. Played, one stop follows the other.
(function () {
  "use strict";

  // Long enough to be looked at, once it is there.
  const STOP_MS = 400;
  const BY = [["", "next event"], ["0.001", "1 ms"], ["0.01", "10 ms"], ["0.1", "100 ms"], ["1", "1 s"]];
  const { element } = window.mqttlab;
  const made = new WeakMap();
  let playing = false;
  let by = "";
  let reached = "";
  let timer = 0;

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

  function fillPlay(page) {
    const place = page.querySelector(".instant-play");
    if (!place) return;
    if (!place.firstChild) place.replaceChildren(...controls(place));
    const stop = place.dataset.run + " " + place.dataset.at;
    if (stop === reached) return;
    reached = stop;
    if (playing) soon(place);
  }

  function controls(place) {
    const button = element("button", { type: "button", class: "main" }, playing ? "Pause" : "Play");
    button.onclick = () => play(place, !playing);
    const select = element("select", { id: "instant-by" });
    for (const [value, words] of BY) select.appendChild(element("option", { value }, words));
    select.value = by;
    select.onchange = () => { by = select.value; };
    return [button, element("label", { for: "instant-by" }, "by"), select];
  }

  function play(place, wanted) {
    playing = wanted;
    place.querySelector("button").textContent = playing ? "Pause" : "Play";
    if (playing) further(place);
  }

  function soon(place) {
    clearTimeout(timer);
    timer = setTimeout(() => { if (playing) further(place); }, STOP_MS);
  }

  // Where nothing comes any more, or the run cannot be stopped, it has been played; and whoever has left does not watch it.
  function further(place) {
    if (!place.isConnected || !place.dataset.next) {
      playing = false;
      if (place.isConnected) place.querySelector("button").textContent = "Play";
    } else if (document.hidden) {
      soon(place);
    } else {
      const at = by ? (Number(place.dataset.at) + Number(by)).toFixed(9) : place.dataset.next;
      window.mqttlab.go(place.dataset.run + "?part=instant&at=" + at, true);
    }
  }

  window.mqttlab = Object.assign(window.mqttlab || {}, { fillInstants, fillPlay });
})();
