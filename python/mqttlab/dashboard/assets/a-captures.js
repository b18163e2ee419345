// Captures: a file is sent in parts, one after the other, so that neither side keeps it in memory.
(function () {
  "use strict";

  const PART = 4000000;
  const made = new WeakSet();

  function fillDrops(page) {
    for (const place of page.querySelectorAll(".drop-place")) {
      if (made.has(place)) continue;
      made.add(place);
      make(place);
    }
  }

  function make(place) {
    const label = document.createElement("label");
    label.htmlFor = "capture-file";
    label.textContent = "Drop files here, or choose them: ";
    const input = document.createElement("input");
    input.type = "file";
    input.id = "capture-file";
    input.multiple = true;
    input.onchange = () => { all(place, [...input.files]); input.value = ""; };
    place.append(label, input);
    place.ondragover = (event) => { event.preventDefault(); place.classList.add("over"); };
    place.ondragleave = () => place.classList.remove("over");
    place.ondrop = (event) => {
      event.preventDefault();
      place.classList.remove("over");
      all(place, [...event.dataTransfer.files]);
    };
  }

  async function all(place, files) {
    for (const file of files) {
      const line = document.createElement("p");
      place.parentElement.querySelector(".drop-words").appendChild(line);
      try {
        await send(file, (words) => { line.textContent = file.name + ": " + words; });
      } catch (problem) {
        line.textContent = problem.message;
        line.className = "problem";
      }
    }
  }

  async function ask(path, body, kind) {
    const answer = await window.fetch(path, { method: "POST", body, headers: { "Content-Type": kind } });
    const words = await answer.text();
    if (!answer.ok) throw new Error(words.trim());
    return words.trim();
  }

  async function send(file, say) {
    say("beginning");
    const name = await ask("/upload", JSON.stringify({ name: file.name, size: file.size }), "application/json");
    for (let at = 0; at < file.size; at += PART) {
      await ask("/upload/" + name + "?offset=" + at, file.slice(at, at + PART), "application/octet-stream");
      say(Math.floor(100 * Math.min(file.size, at + PART) / file.size) + " % sent");
    }
    await ask("/upload/" + name + "/finish", "{}", "application/json");
    say("sent; the queue imports it.");
  }

  window.mqttlab = Object.assign(window.mqttlab || {}, { fillDrops });
})();
