// What only a script can do in a conversation: an answer in the making, the field, files, quotations.
// Everything else works without it.
"use strict";

(() => {
  // A conversation stays at its newest, unless somebody scrolled up. What grew isn't that: a browser tells of
  // a scroll a moment later, and by then the end may be further down.
  let isAtEnd = true, seen = 0;
  const stay = () => {
    if (isAtEnd) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    seen = scrollY;
  };
  const talk = (part) => {
    if (location.hash === "" || location.hash === "#end") stay(); else isAtEnd = false;
    addEventListener("scroll", () => {
      if (innerHeight + scrollY >= document.documentElement.scrollHeight - 60) isAtEnd = true;
      else if (scrollY < seen) isAtEnd = false;
      seen = scrollY;
    }, { passive: true });
    // At once, so that a scroll that is told next finds the page at its end; and what grows by itself, as a picture.
    new MutationObserver(stay).observe(part, { childList: true, characterData: true, subtree: true });
    // The field takes more room as more is written; a window is lower once a phone's keyboard is there.
    const grown = new ResizeObserver(stay);
    [part, ...document.querySelectorAll("#say")].forEach((one) => grown.observe(one));
    addEventListener("resize", stay);
  };

  const HEARD_MAX = 1000;

  // An answer in the making: shown as text until the message itself takes its place.
  const follow = (place) => {
    let attempt = "", text = "", before = "", isAnew = false, isHalted = false, quiet = 0;
    // How far calls of tools are, by tool: beside what the page says is used.
    const far = new Map();
    const going = () => {
      for (const one of document.querySelectorAll(".doing [data-tool]")) one.textContent = far.has(one.dataset.tool) ? ` ${far.get(one.dataset.tool)}` : "";
    };
    // By its name: where older ones go as newer come, there are never more.
    const newest = () => [...document.querySelectorAll("#talk article.assistant")].at(-1)?.id ?? "";
    const show = () => {
      const shown = document.getElementById("tokens");
      if (shown === null) return;
      shown.textContent = text;
      // What stopped comes from nowhere if nothing is done any more: its exchange was stopped, or given up.
      shown.hidden = text === "" || (isHalted && document.querySelector(".doing") === null);
      document.getElementById("halted").hidden = shown.hidden || !isHalted;
    };
    // Nothing more came for a while, as when what made it is gone and another takes it over.
    const wait = () => {
      clearTimeout(quiet);
      isHalted = false;
      if (text !== "") quiet = setTimeout(() => {
        isHalted = true;
        show();
        document.getElementById("live").dispatchEvent(new Event("changed", { bubbles: true }));
      }, Number(place.dataset.quietAfter));
    };
    const heard = (event) => {
      const told = JSON.parse(event.data);
      if (attempt !== `${told.turn} ${told.attempt}`) [text, before] = ["", newest()];
      attempt = `${told.turn} ${told.attempt}`;
      text = isAnew ? told.text : text + told.text;
      isAnew = false;
      wait();
      show();
      stay();
    };
    // Only while somebody sees it: a browser has six connections to a host, for all of its tabs. Whatever was
    // written until it opens comes first, as a whole.
    let source = null;
    const open = () => {
      if (document.hidden || (source !== null && source.readyState !== EventSource.CLOSED)) return;
      source = new EventSource(place.dataset.live);
      source.addEventListener("progress", (event) => {
        const told = JSON.parse(event.data);
        if (told.is_over) far.delete(told.tool); else far.set(told.tool, told.text);
        going();
      });
      source.addEventListener("token", heard);
      source.addEventListener("open", () => { isAnew = true; });
      // A browser gives up where something else answers, as a proxy whose gateway begins anew.
      source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) setTimeout(open, 5000); });
    };
    document.addEventListener("visibilitychange", () => {
      clearTimeout(quiet);
      if (document.hidden) source?.close(); else { open(); wait(); }
    });
    open();
    let known = newest();
    document.addEventListener("htmx:after:settle", () => {
      if (newest() !== before) text = "";
      going();
      show();
      // For who hears the page: what was just said, which nothing else of a page that is morphed tells.
      if (newest() !== known) document.getElementById("heard").textContent = [...document.querySelectorAll("#talk article.assistant .prose")].at(-1).innerText.slice(0, HEARD_MAX);
      known = newest();
    });
  };

  // Once nothing came for a while, the page looks again: then it says what may be the matter.
  let waited = "", waiting = 0;
  const wonder = () => {
    const line = document.querySelector(".doing[data-slow-after]");
    if (line === null || line.dataset.since === waited) return;
    waited = line.dataset.since;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (document.querySelector(".doing[data-slow-after]") !== null) document.getElementById("live").dispatchEvent(new Event("changed", { bubbles: true }));
    }, Number(line.dataset.slowAfter));
  };

  // What came while nobody saw the page is unread until somebody does.
  let noted = "";
  const read = () => {
    const part = document.querySelector("[data-read]");
    if (part === null || document.hidden || noted === part.dataset.read) return;
    noted = part.dataset.read;
    const told = new URLSearchParams({ do: "read", seq: noted });
    fetch(location.pathname, { method: "POST", body: told, redirect: "manual" }).catch(() => {});
  };

  // Files: dropped, pasted, taken, and shown before they go. A large picture goes smaller.
  const SIDE_MAX = 2000, BYTES_LIKED = 3000000, FILES_MAX = 4;
  const smaller = async (file) => {
    if (!/^image\/(png|jpeg|webp)$/.test(file.type) || file.size <= BYTES_LIKED) return file;
    const picture = await createImageBitmap(file);
    const share = Math.min(1, SIDE_MAX / Math.max(picture.width, picture.height));
    const canvas = new OffscreenCanvas(Math.round(picture.width * share), Math.round(picture.height * share));
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    const made = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 });
    return new File([made], `${file.name.replace(/\.[^.]*$/, "")}.jpg`, { type: "image/jpeg" });
  };
  // Text is what its bytes say: of its many endings browsers know few.
  const CONTROLS = /[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]/;
  const isText = async (file, bytesMax) => {
    try {
      const data = new Uint8Array(await file.slice(0, bytesMax).arrayBuffer());
      const mark = data[0] << 8 | data[1], kind = { 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[mark] ?? "utf-8";
      return !CONTROLS.test(new TextDecoder(kind, { fatal: true }).decode(data, { stream: file.size > bytesMax }));
    } catch {
      return false;
    }
  };
  const preview = async (file, place) => {
    try {
      const picture = await createImageBitmap(file);
      const canvas = document.createElement("canvas");
      canvas.height = 96;
      canvas.width = Math.max(1, Math.min(320, Math.round(picture.width * 96 / picture.height)));
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `Preview of ${file.name}`);
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      place.prepend(canvas);
    } catch { /* no picture: its name says what it is */ }
  };
  // Files that are still looked at, or made smaller: what is sent waits for them.
  let looking = null;
  const carry = (form) => {
    const input = document.getElementById("files"), list = document.getElementById("chosen");
    const take = (files) => {
      const data = new DataTransfer();
      for (const one of [...files].slice(0, FILES_MAX)) data.items.add(one);
      input.files = data.files;
      list.replaceChildren(...[...input.files].map((file, number) => {
        const place = document.createElement("li"), remove = document.createElement("button");
        place.append(file.name, " ", remove);
        remove.type = "button";
        remove.className = "plain";
        remove.textContent = "remove";
        remove.setAttribute("aria-label", `remove ${file.name}`);
        remove.addEventListener("click", () => take([...input.files].filter((_, n) => n !== number)));
        preview(file, place);
        return place;
      }));
    };
    // Nothing is left out without a word: the message would be refused, or go without it.
    const kinds = new Set(input.accept.split(",").filter((one) => /^image|pdf$/.test(one))), left = document.getElementById("left-out"), bytesMax = Number(left.dataset.bytesMax);
    const listed = (files) => files.map((one) => one.name).join(", ");
    const look = async (files) => {
      const given = [...files], are = await Promise.all(given.map((one) => kinds.has(one.type) || isText(one, bytesMax)));
      const wanted = given.filter((_, n) => are[n]);
      const made = await Promise.all(wanted.map((one) => smaller(one).catch(() => one)));
      const isLarge = (one) => one.size > bytesMax, large = made.filter(isLarge);
      const all = [...input.files, ...made.filter((one) => !isLarge(one))];
      const others = [...given.filter((_, n) => !are[n]), ...all.slice(FILES_MAX)];
      left.textContent = [
        others.length === 0 ? "" : `Left out: ${listed(others)}. Up to ${FILES_MAX} pictures (PNG, JPEG, GIF, WebP), PDFs or texts go with a message.`,
        large.length === 0 ? "" : `Left out: ${listed(large)}. A file ${left.dataset.tooLarge}.`,
      ].filter(Boolean).join(" ");
      left.hidden = left.textContent === "";
      take(all);
    };
    const add = (files) => {
      const all = looking = Promise.allSettled([looking, look(files)]).then(() => { if (looking === all) looking = null; });
      return all;
    };
    const inside = (event) => event.dataTransfer !== null && event.dataTransfer.types.includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!inside(event)) return;
      event.preventDefault();
      form.classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => { if (event.relatedTarget === null) form.classList.remove("dropping"); });
    document.addEventListener("drop", (event) => {
      if (!inside(event)) return;
      event.preventDefault();
      form.classList.remove("dropping");
      add(event.dataTransfer.files);
    });
    form.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length === 0) return;
      event.preventDefault();
      add(event.clipboardData.files);
    });
    addEventListener("pageshow", () => { if (list.childElementCount !== input.files.length) take(input.files); }); // a browser that goes back brings them along
    input.addEventListener("change", () => { const files = [...input.files]; take([]); add(files); });
    const camera = document.getElementById("camera");
    camera.addEventListener("change", async () => { await add(camera.files); camera.value = ""; });
    form.addEventListener("said", (event) => {
      left.hidden = true;
      take([...input.files].filter((one) => !event.detail.includes(named(one))));
    });
  };

  // What is half written stays with the tab until it's said: Stop, a reload or a sign-in that ended lead away from it.
  const fresh = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
  const named = (file) => `${file.name} ${file.size} ${file.lastModified}`;
  const chosen = () => [...document.getElementById("files").files].map(named);
  const drafted = (form, field, once) => {
    const place = `vigil-draft ${location.pathname}`;
    let tried = "";
    const hold = (isSent) => {
      if (field.value === "") sessionStorage.removeItem(place);
      else sessionStorage.setItem(place, JSON.stringify({ text: field.value, isSent, tried, once: once.value }));
    };
    const held = JSON.parse(sessionStorage.getItem(place));
    // It was taken, if that led here; if it was refused, or nobody was signed in, somebody came back by themselves.
    if (held?.isSent && performance.getEntriesByType("navigation")[0].redirectCount > 0) sessionStorage.removeItem(place);
    else if (held !== null && field.value === "") {
      field.value = held.text;
      if (held.tried !== "") [tried, once.value] = [held.tried, held.once];
    }
    field.addEventListener("input", () => hold(false));
    return {
      // Words that are tried again count once; others are others.
      begin: (isSent) => {
        const what = JSON.stringify([location.search, field.value, ...chosen()]);
        if (tried !== "" && tried !== what) once.value = fresh();
        tried = what;
        hold(isSent);
      },
      end: () => {
        [tried, once.value] = ["", fresh()];
        hold(false);
      },
      drop: () => sessionStorage.removeItem(place),
    };
  };

  const isTouched = () => matchMedia("(pointer: coarse)").matches;

  // The field: Enter sends, without leaving the page where nothing but the conversation changes by it.
  const say = (form) => {
    const field = form.elements.namedItem("text"), once = form.elements.namedItem("once"), draft = drafted(form, field, once);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") field.blur();
      // 229: a key of a writing system that composes, also where the browser doesn't say so otherwise.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      // A phone's keyboard has no Shift+Enter: there a button sends.
      if (isTouched() && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      if (field.value.trim() !== "") form.requestSubmit();
    });
    if (!isTouched() && location.hash.replace("#end", "").replace("#say", "") === "") {
      field.focus({ preventScroll: true });
      field.setSelectionRange(field.value.length, field.value.length);
    }
    let isSending = false;
    form.addEventListener("submit", async (event) => {
      if (isSending) return event.preventDefault();
      if (looking !== null) {
        event.preventDefault();
        isSending = true;
        await looking;
        isSending = false;
        return form.requestSubmit(event.submitter);
      }
      if (field.value.trimStart().startsWith("/")) return draft.drop();
      draft.begin(form.dataset.stays === undefined);
      if (form.dataset.stays === undefined) return;
      event.preventDefault();
      isSending = true;
      const unsent = document.getElementById("unsent"), sent = field.value, files = chosen();
      try {
        const answer = await fetch(location.href, { method: "POST", body: new FormData(form), redirect: "manual" });
        if (answer.status >= 500) throw new Error(); // what is in front of Vigil, or it can't keep anything now
        if (answer.type !== "opaqueredirect") return form.submit(); // refused: the page that it leads to says why
        // What was written meanwhile is for the next one.
        field.value = field.value.startsWith(sent) ? field.value.slice(sent.length).trimStart() : field.value;
        draft.end();
        form.dispatchEvent(new CustomEvent("said", { detail: files }));
        unsent.hidden = true;
        isAtEnd = true;
        document.getElementById("live").dispatchEvent(new Event("changed", { bubbles: true }));
      } catch {
        unsent.textContent = "No answer came, so it isn't known whether this was sent. It is still here: try again, it counts once.";
        unsent.hidden = false;
      } finally {
        isSending = false;
      }
    });
  };

  // What is selected of a message, or all of it, goes into the field as a quotation.
  const quote = (place) => {
    const field = document.querySelector("#say textarea"), chosen = getSelection();
    const isPart = !chosen.isCollapsed && place.contains(chosen.anchorNode) && place.contains(chosen.focusNode);
    const lines = (isPart ? String(chosen) : place.innerText).trim().split("\n").map((line) => `> ${line}`);
    field.value = `${field.value && `${field.value.trimEnd()}\n\n`}${lines.join("\n")}\n\n`;
    field.dispatchEvent(new Event("input"));
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  };
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button.quote") : null;
    if (button !== null) quote(document.getElementById(button.dataset.of));
  });

  // Before console.js, whose [autofocus] has the last word.
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-newest]").forEach(talk);
    wonder();
    document.addEventListener("htmx:after:settle", wonder);
    noted = document.querySelector("[data-read]")?.dataset.read ?? ""; // the page itself said so
    document.addEventListener("htmx:after:settle", read);
    document.addEventListener("visibilitychange", read);
    document.querySelectorAll("#tokens").forEach(follow);
    document.querySelectorAll("#say").forEach(say);
    document.querySelectorAll("#say").forEach(carry);
  });
})();
