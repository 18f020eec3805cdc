// Connect with OAuth by one of the TypeScript SDKs, call a tool, and again when the token has expired.
// Lines to the test and back: `open URL` -> the address that the browser comes back to; `connected ID` -> any.
import { createInterface } from "node:readline";

const [sdk, address, document] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (text) => {
  console.log(text);
  return (await lines.next()).value;
};

const legacy = sdk === "2025-11-25";
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = legacy
  ? {
      ...(await import("@modelcontextprotocol/sdk/client/index.js")),
      ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
    }
  : await import("@modelcontextprotocol/client");

const kept = {};
let back;
const authProvider = {
  redirectUrl: "http://127.0.0.1:33418/",
  clientMetadataUrl: document,
  clientMetadata: {
    client_name: "Probe",
    redirect_uris: ["http://127.0.0.1:33418/"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => "state-of-the-client",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: async (url) => {
    back = new URL(await ask(`open ${url}`)).searchParams;
  },
};

const transport = () => new StreamableHTTPClientTransport(new URL(address), { authProvider });
const connect = async (over) => {
  const options = legacy ? {} : { versionNegotiation: { mode: { pin: sdk } } };
  const client = new Client({ name: "probe", version: "1.0.0" }, options);
  await client.connect(over);
  return client;
};

const first = transport();
let client;
try {
  client = await connect(first);
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
  if (back.get("state") !== "state-of-the-client") throw new Error("state");
  await first.finishAuth(...(legacy ? [back.get("code")] : [back]));
  client = await connect(transport());
}
const search = async () => {
  const found = await client.callTool({ name: "search", arguments: { query: "zebra" } });
  if (found.isError) throw new Error(JSON.stringify(found));
};
await search();
const before = kept.tokens.access_token;
await ask(`connected ${kept.client.client_id}`);
await search();
console.log(kept.tokens.access_token === before ? "not refreshed" : "refreshed");
process.exit(0);
