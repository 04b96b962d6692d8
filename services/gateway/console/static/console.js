// What only a script can do: hold updates back while somebody writes, and the keyboard's shortcuts.
// Everything else works without it.
"use strict";

(() => {
  const OFF = "vigil-shortcuts-off";
  const GO = { t: "", i: "/inbox", c: "/conversations", k: "/tasks", r: "/timetable", m: "/memories", w: "/why" };
  const home = document.documentElement.dataset.console;

  const isField = (one) => one instanceof HTMLElement && one.matches("input, textarea, select");
  // What is open in a fold that is closed isn't seen.
  const isOpen = (one) => one.parentElement.closest("details:not([open])") === null;
  const isWritten = (one) => (one.type === "checkbox" ? one.checked !== one.defaultChecked : one.value !== one.defaultValue);
  // Whether an update of the part that follows what happens would take away what somebody writes, chose or opened.
  const isBusy = () => {
    const part = document.querySelector("[data-follows]");
    if (part === null) return true; // what it shows is shown once
    return (isField(document.activeElement) && part.contains(document.activeElement))
      || (part.dataset.keepsOpen === undefined && [...part.querySelectorAll("details[open]")].some(isOpen))
      || [...part.querySelectorAll("input, textarea")].some(isWritten);
  };

  const AGAIN_MS = 5000;
  const tell = (id, isSo) => { document.getElementById(id).hidden = !isSo; };
  const lookAgain = () => document.getElementById("live").dispatchEvent(new Event("changed", { bubbles: true }));

  // Where a form leads on, what is here is asked for no more: it may be gone by that.
  let isLeaving = false, isBehind = false;
  addEventListener("beforeunload", () => {
    isLeaving = true;
    setTimeout(() => { // it was a download
      isLeaving = false;
      if (isBehind) lookAgain();
      isBehind = false;
    }, 3000);
  });

  document.addEventListener("changed", (event) => {
    if (isLeaving) isBehind = true;
    else if (isBusy()) tell("news", true);
    else return;
    event.stopImmediatePropagation();
  }, true);

  // One that was asked for before somebody began to write comes while they do, where much is going on.
  document.addEventListener("htmx:before:swap", (event) => {
    const { sourceElement, response } = event.detail.ctx;
    if (sourceElement.id === "live") return event.preventDefault(); // what answered is no stream
    if (sourceElement.dataset.follows === undefined || !response.raw.ok) return; // it was asked for by hand, or isn't shown
    if (isLeaving) isBehind = true;
    else tell("news", isBusy());
    if (isLeaving || isBusy()) event.preventDefault();
  });

  // What didn't come is asked for again, unless it's gone: what told of it tells no second time.
  let again = 0;
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    if (ctx.sourceElement.dataset.follows === undefined || ctx.response?.raw.ok) return;
    const status = ctx.response?.status ?? 0;
    clearTimeout(again);
    if (status === 401) tell("out", true);
    else if (status >= 400 && status < 500 && status !== 429) tell("news", true);
    else again = setTimeout(lookAgain, AGAIN_MS);
  });

  // What had the focus may be gone with that: then what leads on before it has it, and never a button that would act.
  let before = [];
  document.addEventListener("htmx:before:swap", () => {
    const part = document.querySelector("[data-follows]");
    if (part === null || !part.contains(document.activeElement)) { before = []; return; }
    const places = [...part.querySelectorAll("a[href], summary, button, input, select, textarea")];
    before = places.slice(0, places.indexOf(document.activeElement) + 1).reverse();
  });
  document.addEventListener("htmx:after:swap", () => {
    if (before.length === 0 || before[0].isConnected) return;
    const place = before.find((one) => one.isConnected && one.matches("a[href], summary")) ?? document.getElementById("main");
    before = [];
    place.focus({ preventScroll: true });
  });

  // What a page follows may be gone: then what it shows only looks like the present.
  document.addEventListener("htmx:sse:error", (event) => {
    const { connection, status } = event.detail;
    tell("out", status === 401);
    tell("apart", status !== 401 && connection.attempt > 0);
  });
  // A page that nobody has seen yet follows nothing: a browser has six connections to a host, for all of its tabs.
  const follow = () => { if (!document.hidden) document.getElementById("live").dispatchEvent(new Event("shown")); };
  let isFollowed = false;
  document.addEventListener("htmx:sse:after:connection", () => { isFollowed = true; tell("apart", false); tell("out", false); });
  // A stream that was refused to begin with isn't asked for again by itself.
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    if (ctx.sourceElement.id !== "live" || isFollowed) return;
    const isOut = ctx.response?.status === 401;
    tell("out", isOut && !isLeaving);
    tell("apart", !isOut && !isLeaving);
    setTimeout(follow, AGAIN_MS);
  });
  addEventListener("offline", () => tell("apart", true));
  addEventListener("online", () => tell("apart", false));

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
      const field = document.querySelector("main [role=search] input, main [role=search] select") ?? document.querySelector("header .anything input");
      if (field !== null) { event.preventDefault(); field.focus(); }
    } else if (event.key === "?") {
      help.showModal();
    }
  });

  // Pressed twice, a form is sent once: a browser sends both, and of what is made there would be two.
  const TWICE_MS = 3000, sent = new WeakMap();
  document.addEventListener("submit", (event) => {
    const { target: form, submitter, timeStamp: at } = event, last = sent.get(form);
    if (event.defaultPrevented || form.method !== "post") return;
    if (last !== undefined && last.submitter === submitter && at - last.at < TWICE_MS) event.preventDefault();
    else sent.set(form, { submitter, at });
  });

  // Ctrl-K: any page, conversation, task or memory; the arrows lead through what is found.
  let foundFor = null;
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (ctx.sourceElement.closest("#palette") !== null && ctx.response.raw.ok) foundFor = new URL(ctx.request.action, location.href).searchParams.get("q");
  });
  document.addEventListener("keydown", (event) => {
    const palette = document.getElementById("palette");
    if (palette === null) return;
    const field = palette.querySelector("input");
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (!palette.open) palette.showModal();
      field.select();
      field.dispatchEvent(new Event("asked"));
    } else if (palette.open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const places = [field, ...palette.querySelectorAll("#palette-found a")];
      const next = places.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      event.preventDefault();
      places[(next + places.length) % places.length].focus();
    } else if (palette.open && event.key === "Enter" && event.target === field) {
      const first = palette.querySelector("#palette-found a");
      // Of what was just written nothing may be found yet: then the page of what is found comes.
      if (first !== null && foundFor === field.value) { event.preventDefault(); location.assign(first.href); }
    }
  });

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
    const button = event.target instanceof Element ? event.target.closest("button.copy:not(.quote)") : null;
    if (button === null || button.textContent === "Copied") return;
    const place = button.dataset.of ? document.getElementById(button.dataset.of) : button.closest(".code").querySelector("code");
    const before = button.textContent;
    await copy(place);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 2000);
  });

  // How much waits stands in the title, too, also once it changes.
  document.addEventListener("htmx:after:settle", () => {
    const count = document.getElementById("waits").textContent.trim();
    document.title = (count && `(${count}) `) + document.title.replace(/^\(\d+\) /, "");
  });

  // A table of numbers by day, as a curve above it.
  const day = (at) => new Date(at * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
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
    const days = { incrs: [1, 2, 7, 14, 28, 91, 364].map((one) => one * 86400), values: (_, found) => found.map(day) };
    new uPlot({
      width: scroll.clientWidth, height: 180, legend: { show: false }, cursor: { show: false },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      axes: [{ ...axis, ...days }, { ...axis, values: (_, found) => found.map((one) => `$${one}`) }],
      series: [{}, { stroke: accent, width: 2, fill: `${accent.trim()}22` }],
    }, [rows.map((row) => row[0]), rows.map((row) => row[1])], place);
  };
  const drawAll = () => {
    document.querySelectorAll(".curve").forEach((one) => one.remove());
    document.querySelectorAll("table[data-curve]").forEach(draw);
  };
  // By day and by night in other colours, which it can't take from the page by itself; an update takes it away.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => { if (ctx.sourceElement.dataset.follows !== undefined) drawAll(); });

  // As an app: files are kept by the browser, and a page that says when the gateway is away.
  const install = () => {
    if (!("serviceWorker" in navigator)) return;
    const place = `${home}/worker.js`;
    const made = window.trustedTypes?.createPolicy("vigil", { createScriptURL: (url) => {
      if (url !== place) throw new TypeError("no worker of ours");
      return url;
    } });
    navigator.serviceWorker.register(made?.createScriptURL(place) ?? place, { scope: home }).catch(() => {});
  };

  // "Notify me in this browser": asks the browser, and sends what it gives as the form that it's in.
  const bytesOf = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
  const subscribed = async (key) => {
    if (await Notification.requestPermission() !== "granted") throw new Error("This browser doesn't allow it: look at its settings for this page.");
    const manager = (await navigator.serviceWorker.ready).pushManager, before = await manager.getSubscription();
    const known = before?.options.applicationServerKey;
    if (known && String(new Uint8Array(known)) !== String(bytesOf(key))) await before.unsubscribe();
    return (await manager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(key) })).toJSON();
  };
  const notify = (form) => {
    const can = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
    const reveal = () => { (can ? form : form.parentElement.querySelector("p[data-push]")).hidden = false; };
    reveal();
    document.addEventListener("htmx:after:settle", reveal);
    const note = form.querySelector("[role=status]");
    form.addEventListener("submit", async (event) => {
      if (form.elements.namedItem("endpoint").value !== "") return;
      event.preventDefault();
      try {
        const { endpoint, keys } = await subscribed(form.dataset.push);
        Object.entries({ endpoint, ...keys }).forEach(([name, value]) => { form.elements.namedItem(name).value = value; });
        form.requestSubmit(form.querySelector("button"));
      } catch (error) {
        note.textContent = `It wasn't set: ${error.message}`;
        note.hidden = false;
      }
    });
  };

  // Whoever is signed in has the browser: what was for somebody before them comes here no more, and what is
  // for them ends as they sign out, also if they pressed the button when they were signed in before.
  const settle = async () => {
    const signedIn = document.querySelector(".who")?.dataset.browser;
    if (!("serviceWorker" in navigator) || !signedIn || sessionStorage.getItem("vigil-here") === signedIn) return;
    const made = await (await navigator.serviceWorker.ready).pushManager?.getSubscription();
    const told = new URLSearchParams({ do: "here", endpoint: made?.endpoint ?? "" });
    if (made) await fetch(`${home}/notifications`, { method: "POST", body: told, redirect: "manual" });
    sessionStorage.setItem("vigil-here", signedIn);
  };

  document.addEventListener("DOMContentLoaded", () => {
    // Its own beginning comes a moment later, and what is pressed until then would be lost. As a stream that is
    // processed twice is asked for twice, #live takes no second while it is asked for (hx-sync).
    htmx.process(document.body);
    follow();
    document.addEventListener("visibilitychange", follow);
    // What was just done is said once, and not to who comes back or looks again.
    const address = new URL(location.href);
    if (address.searchParams.has("undo")) {
      address.searchParams.delete("undo");
      history.replaceState(history.state, "", address);
    }
    install();
    settle().catch(() => {});
    document.querySelectorAll("form[data-push]").forEach(notify);
    document.querySelector("form[action$='/leave']").addEventListener("submit", () => sessionStorage.clear());
    document.querySelectorAll("[data-own-zone]").forEach((field) => { field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || field.value; });
    document.querySelector("[autofocus]")?.focus();
    // A browser that goes to the place on the page that the address names takes the focus away again.
    addEventListener("load", () => { if (document.activeElement === document.body) document.querySelector("[autofocus]")?.focus(); });
    drawAll();
    const box = document.getElementById("keys-on");
    box.checked = !localStorage.getItem(OFF);
    box.addEventListener("change", () => {
      if (box.checked) localStorage.removeItem(OFF); else localStorage.setItem(OFF, "1");
    });
  });
})();
