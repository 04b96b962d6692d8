#!/usr/bin/env bash
# htmx 4 with its extension for server-sent events, on a page that asks for `htmx.process` itself.
#
# Expected: `htmx.process` may be called on what was processed before: `hx-get` and its like are initialised once,
#   so a button that is pressed asks once. So it is with `hx-sse:connect`: one element follows one stream.
# Seen (htmx.org 4.0.1, with jsdom 24.1.3 and in Chromium, 2026-11-30): each pass over an element with
#   `hx-sse:connect` adds a listener for its trigger. Once that comes, a second request waits behind the first, and
#   goes as soon as the first has its headers: two streams of one element, and a message is handled twice. A script
#   with `defer` that processes the page does that, as htmx begins by itself once more. Where the trigger is `load`,
#   and the stream stands by the second pass, nothing is seen of it. `hx-sync="drop"` on the element leaves one.
#   A browser has six connections to a host over HTTP/1.1: three such tabs, and nothing can be sent any more.
#
# Exits with 0 as long as that is so.
set -euo pipefail
cd "$(mktemp -d)"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts htmx.org@4.0.1 jsdom@24.1.3 >/dev/null
cat > finding.cjs <<'JS'
const { readFileSync } = require("node:fs");
const assert = require("node:assert/strict");
const { JSDOM } = require("jsdom");
const file = (name) => readFileSync(`node_modules/htmx.org/dist/${name}`, "utf8");
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// Returns how often a stream and a page were asked for, after so many more passes over the body.
const asked = async (passes, more) => {
  const { window } = new JSDOM(
    `<meta name="htmx-config" content='{"extensions": "sse"}'>
     <div id="live" hx-sse:connect="/live" hx-trigger="shown" ${more}></div><button hx-get="/one">one</button>`,
    { runScripts: "outside-only", url: "http://127.0.0.1/", pretendToBeVisual: true });
  // What browsers have and jsdom lacks.
  const { evaluate } = window.XPathExpression.prototype;
  window.XPathExpression.prototype.evaluate = function (node, kind = 0, into = null) { return evaluate.call(this, node, kind, into); };
  const CSS = { escape: (text) => text.replace(/[^\w-]/g, "\\$&") };
  const count = { "/live": 0, "/one": 0 };
  const fetch = async (url) => {
    count[url]++;
    const body = new ReadableStream({ start(out) {
      if (url === "/live") return; // it stays open
      out.enqueue(new TextEncoder().encode("two"));
      out.close();
    } });
    return new Response(body, { headers: { "Content-Type": url === "/live" ? "text/event-stream" : "text/html" } });
  };
  Object.assign(window, { CSS, Headers, AbortController, TextDecoder, fetch });
  window.eval(`${file("htmx.min.js")}; window.htmx = htmx;`);
  window.eval(file("ext/hx-sse.min.js"));
  await wait(100); // htmx begins by itself
  for (let pass = 0; pass < passes; pass++) window.htmx.process(window.document.body);
  window.document.getElementById("live").dispatchEvent(new window.Event("shown"));
  window.document.querySelector("button").click();
  await wait(300);
  window.close();
  return [count["/live"], count["/one"]];
};

(async () => {
  const seen = [await asked(0, ""), await asked(1, ""), await asked(1, "hx-sync='drop'")];
  console.log("htmx.org", JSON.parse(readFileSync("node_modules/htmx.org/package.json")).version,
    "streams and pages asked for; by itself, after a pass, after a pass with hx-sync:", JSON.stringify(seen));
  assert.deepEqual([seen[0], seen[2]], [[1, 1], [1, 1]]);
  assert.deepEqual(seen[1], [2, 1], "changed: one stream is followed, however often it's processed");
  process.exit(0);
})();
JS
node finding.cjs
echo "as described"
