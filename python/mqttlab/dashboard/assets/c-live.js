// Live: the numbers of what runs, asked for twice a second while the page is there and seen; figures every two seconds.
(function () {
  "use strict";

  const EVERY_MS = 500;
  const FIGURES_EVERY = 4;
  let beat = 0;
  // Looks since all figures were drawn: a browser that is slow at it shows the next ones later, and rests between.
  let rested = FIGURES_EVERY - 1;
  let under_way = false;
  // What was asked for last. On a busy machine the answer takes longer than the next look, and to ask again would have it
  // thrown away, time after time.
  let asked = { signature: "", at: 0 };
  const AGAIN_MS = 10000;
  // When numbers came last. Those of a dashboard that is gone, or that has another token now, are not passed off as new.
  let heard = Date.now();
  let refused = false;
  const SILENT_MS = 2000;

  function put(place, words) {
    if (place && place.textContent !== words) place.textContent = words;
  }

  // The same list is kept while only its values change, so that readers and selections are not disturbed.
  function tiles(place, rows) {
    let list = place.querySelector("dl");
    if (!list || list.children.length !== rows.length) {
      list = document.createElement("dl");
      list.className = "facts";
      for (const [label] of rows) {
        const box = document.createElement("div");
        box.appendChild(document.createElement("dt")).textContent = label;
        box.appendChild(document.createElement("dd"));
        list.appendChild(box);
      }
      place.replaceChildren(list);
    }
    rows.forEach(([label, value], at) => {
      put(list.children[at].firstChild, label);
      put(list.children[at].lastChild, value);
    });
  }

  function table(place, told) {
    if (!place || !told) return;
    const text = JSON.stringify(told);
    // A button that has the focus keeps it: its table waits for a moment.
    if (place.dataset.rows !== text && !place.contains(document.activeElement)) place.dataset.rows = text;
  }

  function warnings(place, texts) {
    if (place.childElementCount === texts.length) return;
    place.replaceChildren(...texts.map((text) => {
      const line = document.createElement("p");
      line.className = "notice note";
      line.textContent = text;
      return line;
    }));
  }

  function show(section, job) {
    put(section.querySelector("[data-live=phase]"), job.phase);
    put(section.querySelector("[data-live=sample]"), job.sample);
    tiles(section.querySelector("[data-live=tiles]"), job.tiles);
    warnings(section.querySelector("[data-live=warnings]"), job.warnings);
    window.mqttlab.followEvents(section.dataset.job, job.fires);
    const bar = section.querySelector("[role=progressbar]");
    const done = Math.round(100 * job.done);
    bar.setAttribute("aria-valuenow", done);
    bar.firstElementChild.style.width = done + "%";
    for (const [name, told] of Object.entries(job.tables)) table(section.querySelector("[data-table=" + name + "]"), told);
    if (rested >= FIGURES_EVERY) {
      for (const plot of section.querySelectorAll(".plot")) if (seen(plot)) plot.dataset.version = beat;
    }
  }

  // A figure that nobody sees waits until somebody does: drawing them is most of what watching costs the machine of the run.
  const seen = (place) => {
    const { top, bottom } = place.getBoundingClientRect();
    return top < window.innerHeight && bottom > 0;
  };

  async function look() {
    const frame = document.getElementById("live-signature");
    if (!frame || under_way || document.hidden) return;
    under_way = true;
    try {
      const answer = await window.mqttlab.quietly("/data/live.json");
      refused = answer.status === 401;
      if (!answer.ok) return;
      const told = await answer.json();
      heard = Date.now();
      beat += 1;
      rested = window.mqttlab.figuresWait() ? 0 : rested + 1;
      for (const [name, job] of Object.entries(told.jobs)) {
        const section = document.querySelector('.live-job[data-job="' + name + '"]');
        if (section) show(section, job);
      }
      if (rested >= FIGURES_EVERY) rested = 0;
      put(document.getElementById("queue-words"), told.words);
      table(document.querySelector("[data-table=queue]"), told.queue);
      document.body.dataset.looked = beat;
      const waits = told.signature === asked.signature && Date.now() - asked.at < AGAIN_MS;
      if (told.signature !== frame.dataset.signature && !waits) {
        asked = { signature: told.signature, at: Date.now() };
        window.dash_clientside.set_props("live-frame", { data: told.signature + beat });
      }
    } catch (_) {
      // The dashboard is gone for a moment; the next look finds it again.
    } finally {
      under_way = false;
    }
  }

  function admit() {
    const place = document.getElementById("live-silent");
    if (!place || document.hidden) heard = Date.now();
    if (!place) return;
    const silent = Date.now() - heard;
    place.hidden = silent < SILENT_MS;
    put(place, place.hidden ? "" : refused ? "This browser is not let in any more: open the address that the dashboard has printed." :
      "The dashboard does not answer: what stands here is " + Math.floor(silent / 1000) + " s old.");
  }

  setInterval(() => { look(); admit(); }, EVERY_MS);
})();
