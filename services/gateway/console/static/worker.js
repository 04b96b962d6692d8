// The service worker: keeps files that never change, and a page that says that Vigil can't be reached;
// and shows notifications, if the person pressed the button for that. Of a person nothing is kept but the
// ids of those: pages, pictures and streams come from the gateway alone.
"use strict";

// Another Vigil of this origin, below another path, has caches of its own.
const HOME = "PATH_OF_CONSOLE", OWN = HOME === "/console" ? "vigil-" : `vigil ${HOME} `;
const KEPT = `${OWN}HASH`, AWAY = `${HOME}/away`, FILES = `${HOME}/static/`;

addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((kept) => kept.add(new Request(AWAY, { cache: "reload" }))).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  const older = async () => {
    const names = await caches.keys();
    await Promise.all(names.filter((name) => name.startsWith(OWN) && name !== KEPT).map((name) => caches.delete(name)));
    await clients.claim();
  };
  event.waitUntil(older());
});

const file = async (request) => {
  const kept = await caches.open(KEPT), found = await kept.match(request);
  if (found !== undefined) return found;
  const answer = await fetch(request);
  if (answer.ok) await kept.put(request, answer.clone()).catch(() => {}); // no room
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

// Notifications. What comes twice under an id is shown once: its tag takes its own place, and one that
// was put away goes again at once.
const ICON = "ADDRESS_OF_ICON", SHOWN = "notifications-shown", SHOWN_MAX = 100;

const placeOf = (id) => new Request(`${HOME}/shown/${id}`);

const remember = async (id) => {
  const shown = await caches.open(SHOWN);
  await shown.put(placeOf(id), new Response(""));
  const all = await shown.keys();
  await Promise.all(all.slice(0, Math.max(0, all.length - SHOWN_MAX)).map((one) => shown.delete(one)));
};

const isKnown = async (id) => await (await caches.open(SHOWN)).match(placeOf(id)) !== undefined;

const isThere = async (tag) => (await registration.getNotifications({ tag })).length > 0;

// What a message names begins with /console, wherever that is here.
const urlOf = (path) => new URL(path.replace(/^\/console(?=\/)/, HOME), location.origin);

// Whether somebody looks at just that conversation.
const isSeen = async (path) => (await clients.matchAll({ type: "window" })).some((one) => (
  one.focused && one.visibilityState === "visible" && new URL(one.url).pathname === urlOf(path).pathname));

const BUTTONS = [{ action: "accept", title: "Accept" }, { action: "reject", title: "Reject" }];

const show = async (told) => {
  if (await isSeen(told.path)) return remember(told.id);
  // In this order: it may be just being shown by what came a moment before, and is there once that is known.
  const again = await isKnown(told.id), wasThere = await isThere(told.id);
  const actions = told.request ? BUTTONS : [];
  await registration.showNotification(told.title, {
    body: told.body, tag: told.id, data: told, silent: told.is_silent || again, actions,
    requireInteraction: Boolean(told.request), icon: ICON, badge: ICON,
  });
  await remember(told.id);
  if (again && !wasThere) (await registration.getNotifications({ tag: told.id })).forEach((one) => one.close());
};

const lead = async (path) => {
  const url = urlOf(path);
  if (url.origin !== location.origin || !url.pathname.startsWith(`${HOME}/`)) return;
  const open = await clients.matchAll({ type: "window" });
  const there = open.find((one) => new URL(one.url).pathname === url.pathname);
  await (there === undefined ? clients.openWindow(url.href) : there.focus());
};

// A verdict on exactly what was shown, as whoever is signed in; why it doesn't count is shown. Where nobody
// knows whether it does, it's asked again: the same verdict twice is one.
const decide = async (told, verdict) => {
  const tag = `${told.id}-decided`;
  let text = "Vigil doesn't answer, so it isn't known whether this was decided. Press again, or look in the inbox.";
  try {
    const body = new URLSearchParams({ id: told.request.id, digest: told.request.digest, verdict });
    const answer = await fetch(`${HOME}/decide`, { method: "POST", body, redirect: "error" }), found = await answer.json();
    if (found.is_done) return;
    if (answer.status < 500 && answer.status !== 429) {
      await registration.showNotification(told.title, { body: found.text, tag, silent: true, data: { path: told.path } });
      return;
    }
    text = found.text;
  } catch { /* the gateway is away, or went while it answered */ }
  await registration.showNotification(told.title, { body: `${text}\n${told.body}`, tag, silent: true, data: told, actions: BUTTONS, requireInteraction: true });
};

const clicked = async (notification, action) => {
  notification.close();
  const told = notification.data;
  await (told.request && action !== "" ? decide(told, action) : lead(told.path));
};

addEventListener("push", (event) => {
  if (event.data !== null) event.waitUntil(show(event.data.json()));
});

addEventListener("notificationclick", (event) => event.waitUntil(clicked(event.notification, event.action)));

// A browser may exchange its address by itself: then the new one takes the old one's place.
addEventListener("pushsubscriptionchange", (event) => {
  const renewed = async () => {
    const made = event.newSubscription ?? await registration.pushManager.subscribe(event.oldSubscription.options);
    const { endpoint, keys } = made.toJSON();
    await fetch(`${HOME}/notifications`, { method: "POST", body: new URLSearchParams({ do: "subscribe", endpoint, ...keys, replaces: event.oldSubscription?.endpoint ?? "" }), redirect: "manual" });
  };
  event.waitUntil(renewed());
});
