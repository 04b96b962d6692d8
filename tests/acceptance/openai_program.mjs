// What a program in Node does with OpenAI's SDK, unchanged; each line that it prints is one step, as JSON.
// $MODULES has the package, $BASE and $KEY say where and as whom, $ASKS is a message that calls `weather`.
import { createRequire } from "node:module";

const { MODULES, BASE, KEY, ASKS } = process.env;
const OpenAI = createRequire(`${MODULES}/`)("openai");
const client = new OpenAI({ baseURL: BASE, apiKey: KEY, maxRetries: 0 });
const tell = (step) => console.log(JSON.stringify(step));
const user = (content) => ({ role: "user", content });

tell((await client.models.list()).data.map((one) => one.id));

let streamed = "";
for await (const chunk of await client.chat.completions.create({
  model: "vigil", messages: [user("Hello")], stream: true,
})) streamed += chunk.choices[0]?.delta?.content ?? "";
tell(streamed);

const towns = [];
const weather = {
  type: "function",
  function: {
    name: "weather",
    description: "How warm it is",
    parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
    parse: JSON.parse,
    function: ({ town }) => { towns.push(town); return "21"; },
  },
};
const runner = client.chat.completions.runTools({
  model: "vigil", messages: [user(ASKS)], tools: [weather], stream: true,
});
tell([await runner.finalContent(), towns]);

for (const [of, change] of [
  [client, { model: "gpt-x" }],
  [client, { response_format: { type: "json_object" } }],
  [client.withOptions({ apiKey: "nope" }), {}],
]) {
  try {
    await of.chat.completions.create({ model: "vigil", messages: [user("Hi")], ...change });
    tell("no error");
  } catch (error) {
    const kind = ["NotFoundError", "BadRequestError", "AuthenticationError"]
      .find((name) => error instanceof OpenAI[name]);
    tell([kind, error.status, error.param ?? null, error.message]);
  }
}
