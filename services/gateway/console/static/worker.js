// The service worker: keeps files that never change, and a page that says that Vigil can't be reached.
// Nothing of a person is kept: pages, pictures and streams come from the gateway alone.
"use strict";

const KEPT = "vigil-HASH", HOME = "/console", AWAY = `${HOME}/away`, FILES = `${HOME}/static/`;

addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((kept) => kept.add(new Request(AWAY, { cache: "reload" }))).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  const older = async () => {
    const names = await caches.keys();
    await Promise.all(names.filter((name) => name.startsWith("vigil-") && name !== KEPT).map((name) => caches.delete(name)));
    await clients.claim();
  };
  event.waitUntil(older());
});

const file = async (request) => {
  const kept = await caches.open(KEPT), found = await kept.match(request);
  if (found !== undefined) return found;
  const answer = await fetch(request);
  if (answer.ok) await kept.put(request, answer.clone());
  return answer;
};

const page = async (request) => {
  try {
    return await fetch(request);
  } catch (error) {
    const away = await (await caches.open(KEPT)).match(AWAY);
    if (away === undefined) throw error;
    return away;
  }
};

addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin) return;
  if (url.pathname.startsWith(FILES)) event.respondWith(file(event.request));
  else if (event.request.mode === "navigate" && (url.pathname === HOME || url.pathname.startsWith(`${HOME}/`))) event.respondWith(page(event.request));
});
