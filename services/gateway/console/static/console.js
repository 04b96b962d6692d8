// What only a script can do: hold updates back while somebody writes, and the keyboard's shortcuts.
// Everything else works without it.
"use strict";

(() => {
  const OFF = "vigil-shortcuts-off";
  const GO = { t: "", i: "/inbox", c: "/conversations", k: "/tasks", r: "/timetable", m: "/memories", w: "/why" };
  const home = document.documentElement.dataset.console;

  const isField = (one) => one instanceof HTMLElement && one.matches("input, textarea, select");
  const isWritten = (one) => (one.type === "checkbox" ? one.checked !== one.defaultChecked : one.value !== one.defaultValue);
  // Whether an update would take away what somebody writes, chose or opened.
  const isBusy = () => {
    const main = document.getElementById("main");
    return isField(document.activeElement)
      || main.querySelector("details[open]") !== null
      || [...main.querySelectorAll("input, textarea")].some(isWritten);
  };

  document.addEventListener("changed", (event) => {
    if (!isBusy()) return;
    event.stopImmediatePropagation();
    document.getElementById("news").hidden = false;
  }, true);

  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    const help = document.getElementById("keys");
    if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target) || help.open) return;
    if (localStorage.getItem(OFF) && event.key !== "?") return;
    if (isGoing) {
      isGoing = false;
      if (event.key in GO) location.assign(home + GO[event.key]);
    } else if (event.key === "g") {
      isGoing = true;
    } else if (event.key === "/") {
      const field = document.querySelector("main [role=search] input, main [role=search] select");
      if (field !== null) { event.preventDefault(); field.focus(); }
    } else if (event.key === "?") {
      help.showModal();
    }
  });

  // An answer in the making: shown as text until the message itself takes its place.
  const follow = (place) => {
    let attempt = "";
    new EventSource(place.dataset.live).addEventListener("token", (event) => {
      const told = JSON.parse(event.data);
      const shown = document.getElementById("tokens");
      if (shown === null) return;
      if (attempt !== `${told.turn} ${told.attempt}` || shown.hidden) shown.textContent = "";
      attempt = `${told.turn} ${told.attempt}`;
      shown.textContent += told.text;
      shown.hidden = false;
    });
  };

  // Copies as it reads, without what a style says isn't text; where there's no clipboard, as a browser's own command.
  const copy = async (place) => {
    const chosen = getSelection();
    chosen.selectAllChildren(place);
    try {
      await navigator.clipboard.writeText(String(chosen));
    } catch {
      document.execCommand("copy");
    }
    chosen.removeAllRanges();
  };
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element ? event.target.closest("button.copy") : null;
    if (button === null) return;
    const place = button.dataset.of ? document.getElementById(button.dataset.of) : button.closest(".code").querySelector("code");
    const before = button.textContent;
    await copy(place);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 2000);
  });

  // A table of numbers by day, as a curve above it.
  const draw = (table) => {
    const rows = [...table.tBodies[0].rows].map((row) => [row.dataset.x, row.dataset.y].map(Number));
    if (rows.length < 2 || rows.flat().some(Number.isNaN)) return;
    const place = document.createElement("div");
    place.className = "curve";
    place.setAttribute("aria-hidden", "true");
    const scroll = table.closest(".scroll");
    scroll.before(place);
    const ink = getComputedStyle(document.body).color;
    const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    const axis = { stroke: ink, grid: { show: false }, ticks: { show: false } };
    new uPlot({
      width: scroll.clientWidth, height: 180, legend: { show: false }, cursor: { show: false },
      axes: [axis, { ...axis, values: (_, found) => found.map((one) => `$${one}`) }],
      series: [{}, { stroke: accent, width: 2, fill: `${accent.trim()}22` }],
    }, [rows.map((row) => row[0]), rows.map((row) => row[1])], place);
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("#tokens").forEach(follow);
    document.querySelectorAll("table[data-curve]").forEach(draw);
    const box = document.getElementById("keys-on");
    box.checked = !localStorage.getItem(OFF);
    box.addEventListener("change", () => {
      if (box.checked) localStorage.removeItem(OFF); else localStorage.setItem(OFF, "1");
    });
  });
})();
