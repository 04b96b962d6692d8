// Tell a Vigil session something over NATS.
//
//   vigil token create --bus --user ann --name ci --json > credential.json
//   npm ci
//   node publish_event.mjs credential.json ann:vigil:t1 build.failed '{"branch": "main"}' [ID]
//
// Once it prints "stored", the broker has the event on disk. The same ID again changes nothing.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";

const [file, session, type, data, id = randomUUID()] = process.argv.slice(2);
const credential = JSON.parse(readFileSync(file, "utf8"));
const seed = new TextEncoder().encode(readFileSync(credential.seed_file, "utf8").trim());

const connection = await connect({
  servers: credential.url,
  authenticator: nkeyAuthenticator(seed),
  inboxPrefix: credential.inbox_prefix,
});
const event = {
  specversion: "1.0",
  id,
  source: "urn:example:ci",
  type,
  subject: session,
  datacontenttype: "text/plain",
  data,
};
const stored = await jetstream(connection).publish(credential.publish, JSON.stringify(event));
console.log(`stored: ${stored.stream} ${stored.seq}`);
await connection.drain();
