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

  document.addEventListener("DOMContentLoaded", () => {
    const box = document.getElementById("keys-on");
    box.checked = !localStorage.getItem(OFF);
    box.addEventListener("change", () => {
      if (box.checked) localStorage.removeItem(OFF); else localStorage.setItem(OFF, "1");
    });
  });
})();
