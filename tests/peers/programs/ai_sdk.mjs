// The client of the AI SDK, in Node.
import { createMCPClient } from "@ai-sdk/mcp";

const { VIGIL_MCP, VIGIL_TOKEN, SAYS } = process.env;
const headers = { Authorization: `Bearer ${VIGIL_TOKEN}` };
const client = await createMCPClient({ transport: { type: "http", url: VIGIL_MCP, headers } });
const tools = await client.tools();
const run = (name, given) => tools[name].execute(given, { toolCallId: name, messages: [] });
await run("memory_save", { content: SAYS });
const found = await run("memory_recall", { query: "parrot" });
console.log(JSON.stringify({ tools: Object.keys(tools), found: JSON.stringify(found) }));
await client.close();
