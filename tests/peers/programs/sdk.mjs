// The official SDK for TypeScript, in Node.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { VIGIL_MCP, VIGIL_TOKEN, SAYS } = process.env;
const headers = { Authorization: `Bearer ${VIGIL_TOKEN}` };
const client = new Client({ name: "peer", version: "1" });
const way = new StreamableHTTPClientTransport(new URL(VIGIL_MCP), { requestInit: { headers } });
await client.connect(way);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
await client.callTool({ name: "memory_save", arguments: { content: SAYS } });
const found = await client.callTool({ name: "memory_recall", arguments: { query: "parrot" } });
const told = { protocol: way.protocolVersion, tools, found: JSON.stringify(found) };
console.log(JSON.stringify(told));
await client.close();
