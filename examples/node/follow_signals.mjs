// Follow what happens in Vigil over NATS: one line of JSON for each signal.
//
//   vigil token create --bus --user ann --name ci --json > credential.json
//   npm ci
//   node follow_signals.mjs credential.json [COUNT]
//
// They come from the credential's durable consumer, so what happens while this program is away
// comes when it is back. It ends after COUNT signals; without it, never.

import { readFileSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";

const [file, count = "0"] = process.argv.slice(2);
const credential = JSON.parse(readFileSync(file, "utf8"));
const seed = new TextEncoder().encode(readFileSync(credential.seed_file, "utf8").trim());

const connection = await connect({
  servers: credential.url,
  authenticator: nkeyAuthenticator(seed),
  inboxPrefix: credential.inbox_prefix,
});
const { consumers } = jetstream(connection, { domain: credential.domain });
const consumer = await consumers.get(credential.stream, credential.consumer);
const messages = await consumer.consume({ max_messages: 10 });
let seen = 0;
for await (const message of messages) {
  console.log(message.string());
  await message.ackAck();
  seen += 1;
  if (seen === Number(count)) break;
}
await connection.drain();
