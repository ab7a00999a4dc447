// The program that the guide quotes.
import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { dist, memoryStorage, scripted } from "./support.mjs";

globalThis.sessionStorage = memoryStorage();
const { placeOrder, charge } = await import(pathToFileURL(join(dist, "clients.js")).href);
const cart = { id: "42", items: ["book"] };
const ordered = (replayed) => ({ status: 201, headers: { "idempotent-replayed": replayed }, body: '{"order":"o-1"}' });

// Proves I9
test("the order of the guide is placed once", async (t) => {
  const server = await scripted(t, [ordered("false"), ordered("true"), { status: 422 }, "cut", { status: 403 }]);
  assert.equal(await placeOrder(server.url, cart), "Ordered: o-1");
  assert.equal(await placeOrder(server.url, cart), "Already ordered: o-1");
  assert.equal(await placeOrder(server.url, cart), "Not ordered: 422");
  assert.equal(sessionStorage.items.size, 0);
  assert.match(await placeOrder(server.url, cart), /^We do not know yet/);
  assert.equal(sessionStorage.items.size, 1);
});

test("the charge of the guide has a bare key", async (t) => {
  const server = await scripted(t, []);
  const outcome = await charge(server.url, 4200, new AbortController().signal);
  assert.equal(outcome.end, "answered");
  assert.match(server.requests[0].key, /^[0-9a-f-]{36}$/);
  assert.equal(server.requests[0].body, "amount=4200");
});
