// The built client, the golden fixtures, and a server that fails as it is told.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
export const dist = resolve(process.env.SETTLE_CLIENT_DIST ?? join(here, "../dist"));
export const client = await import(pathToFileURL(join(dist, "node.js")).href);

export function fixture(name) {
  const text = readFileSync(join(here, "../../fixtures", name), "utf8");
  return JSON.parse(text, (_, value) =>
    typeof value == "string" ? value.replace(/\{(\d+)×(.+?)\}/, (_, n, what) => what.repeat(+n)) : value);
}

/**
 * A server on a free port that plays `script`, one step per request: `{status, headers, body}`, "cut" (the connection
 * ends before an answer), "torn" (in the middle of one), "silent" (no answer at all) or "work" (does the work of the
 * key once, and replays it). What is beyond the script is "work". `requests` has what arrived.
 */
export async function scripted(t, script) {
  const requests = [];
  const results = new Map();
  const server = createServer((request, answer) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const key = request.headers["idempotency-key"];
      const { method, url, headers } = request;
      requests.push({ method, url, headers, key, body: Buffer.concat(chunks).toString("latin1") });
      let step = script[requests.length - 1] ?? "work";
      if (step.during) step = step.during(requests.length) ?? step;
      if (step == "cut") return void request.socket.destroy();
      if (step == "silent") return;
      if (step == "torn") {
        answer.writeHead(200, { "content-length": 100 });
        return void answer.write("{", () => request.socket.destroy());
      }
      if (step == "work" || step == "work, then cut") {
        const replayed = results.has(key);
        if (!replayed) results.set(key, `done ${results.size + 1}`);
        if (step != "work") return void request.socket.destroy();
        step = { status: 201, headers: { "idempotent-replayed": String(replayed) }, body: results.get(key) };
      }
      answer.writeHead(step.status, step.headers);
      answer.end(step.body);
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}/orders`, requests, results };
}

/** Time that moves only by sleeping, and no randomness. `slept` has the waits. */
export function calm() {
  const slept = [];
  let now = Date.UTC(2026, 10, 16, 12);
  return {
    slept,
    now: () => now,
    random: () => 0,
    sleep: async (ms) => {
      slept.push(ms);
      now += ms;
    },
  };
}

export function memoryStorage(content = {}) {
  const items = new Map(Object.entries(content));
  return {
    items,
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, value) => void items.set(name, value),
    removeItem: (name) => void items.delete(name),
  };
}

export const uuid4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
