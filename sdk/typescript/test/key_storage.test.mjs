// Keys, and what is left of them after a reload.
import assert from "node:assert/strict";
import test from "node:test";
import { calm, client, memoryStorage, scripted, uuid4 } from "./support.mjs";

const { UserAction, newKey, useCrypto } = client;
const post = { method: "POST", body: "{}" };

// Proves I9
test("a key outlives a reload until the action has its result", async (t) => {
  const server = await scripted(t, ["work, then cut"]);
  const storage = memoryStorage();
  const before = new UserAction({ ...calm(), storage, name: "checkout", attemptsMax: 1 });
  assert.equal((await before.send(server.url, post)).end, "attempts_used");

  const after = new UserAction({ ...calm(), storage, name: "checkout" });
  assert.equal(after.key, before.key);
  assert.equal((await after.send(server.url, post)).replayed, true);
  assert.equal(storage.items.size, 0);
  assert.notEqual(new UserAction({ storage, name: "checkout" }).key, before.key);
});

// Proves I9: a new key after the login would order twice.
test("a refusal after an attempt of unknown fate keeps the key", async (t) => {
  const server = await scripted(t, ["work, then cut", { status: 401 }, { status: 401 }]);
  const storage = memoryStorage();
  const before = new UserAction({ ...calm(), storage, name: "checkout" });
  const refused = await before.send(server.url, post);
  assert.deepEqual([refused.end, refused.response.status, refused.unsure], ["answered", 401, true]);

  const reloaded = new UserAction({ ...calm(), storage, name: "checkout" });
  assert.equal((await reloaded.send(server.url, post)).unsure, true);
  const outcome = await reloaded.send(server.url, post);
  assert.deepEqual([outcome.replayed, outcome.unsure], [true, false]);
  assert.equal(server.results.size, 1);
  assert.equal(storage.items.size, 0);
});

// Proves I9: that failure was undone, and the first attempt may still be at work.
test("a failure that was not recorded keeps the key after an attempt of unknown fate", async (t) => {
  const failed = { status: 500, headers: { "idempotent-replayed": "false" } };
  const server = await scripted(t, ["cut", failed]);
  const storage = memoryStorage();
  const before = new UserAction({ ...calm(), storage, name: "checkout" });
  const outcome = await before.send(server.url, post);
  assert.deepEqual([outcome.end, outcome.response.status, outcome.unsure], ["answered", 500, true]);
  assert.equal((await new UserAction({ ...calm(), storage, name: "checkout" }).send(server.url, post)).unsure, false);
  assert.deepEqual(new Set(server.requests.map((r) => r.key)), new Set([`"${before.key}"`]));
});

test("a refusal of the only attempt ends the action", async (t) => {
  const server = await scripted(t, [{ status: 400 }]);
  const storage = memoryStorage();
  const outcome = await new UserAction({ ...calm(), storage, name: "checkout" }).send(server.url, post);
  assert.deepEqual([outcome.end, outcome.unsure], ["answered", false]);
  assert.equal(storage.items.size, 0);
});

test("a reload before anything was sent leaves no doubt", async (t) => {
  const server = await scripted(t, [{ status: 400 }]);
  const storage = memoryStorage();
  const before = new UserAction({ storage, name: "checkout" });
  const after = new UserAction({ ...calm(), storage, name: "checkout" });
  assert.equal(after.key, before.key);
  assert.equal((await after.send(server.url, post)).unsure, false);
});

// Proves I9: two tabs over one storage, or a component that is made twice.
test("two actions of one name are one action", async (t) => {
  const server = await scripted(t, ["work, then cut", { status: 400 }]);
  const storage = memoryStorage();
  const [one, other] = [1, 2].map(() => new UserAction({ ...calm(), storage, name: "checkout", attemptsMax: 1 }));
  assert.equal((await one.send(server.url, post)).end, "attempts_used");
  assert.equal((await other.send(server.url, post)).unsure, true);
  assert.equal((await other.send(server.url, post)).replayed, true);
  assert.equal(server.results.size, 1);
});

test("a key is kept beyond the result where asked", async (t) => {
  const server = await scripted(t, []);
  const storage = memoryStorage();
  const action = new UserAction({ ...calm(), storage, name: "checkout", keep: true });
  await action.send(server.url, post);
  assert.equal(new UserAction({ storage, name: "checkout" }).key, action.key);
  action.forget();
  assert.equal(storage.items.size, 0);
});

test("actions of other names have other keys", () => {
  const storage = memoryStorage();
  assert.notEqual(new UserAction({ storage, name: "a" }).key, new UserAction({ storage, name: "b" }).key);
});

test("what is stored and no key is replaced", () => {
  for (const bad of ["", "\n", "ü", "a\nb", "k\n\n", "k".repeat(256)]) {
    const storage = memoryStorage({ "settle:a": bad });
    const action = new UserAction({ storage, name: "a" });
    assert.match(action.key, uuid4);
    assert.equal(storage.getItem("settle:a"), action.key);
  }
});

test("a storage that refuses does not stop the action", async (t) => {
  const refuse = () => {
    throw new Error("quota");
  };
  const server = await scripted(t, []);
  const storage = { getItem: refuse, setItem: refuse, removeItem: refuse };
  const outcome = await new UserAction({ ...calm(), storage, name: "a" }).send(server.url, post);
  assert.equal(outcome.end, "answered");
});

test("a key of the app is used and stored", () => {
  const storage = memoryStorage({ "settle:a": "old" });
  assert.equal(new UserAction({ storage, name: "a", key: "cart-42" }).key, "cart-42");
  assert.equal(storage.getItem("settle:a"), "cart-42");
});

// Proves I9: pages without https have no randomUUID.
test("keys are random where only getRandomValues is there", async () => {
  const { webcrypto } = await import("node:crypto");
  try {
    useCrypto({ getRandomValues: (bytes) => webcrypto.getRandomValues(bytes) });
    const keys = Array.from({ length: 100 }, newKey);
    for (const key of keys) assert.match(key, uuid4);
    assert.equal(new Set(keys).size, 100);
    useCrypto({ getRandomValues: (bytes) => bytes.map((_, i) => i * 16 + i) });
    assert.equal(newKey(), "00112233-4455-4677-8899-aabbccddeeff");
  } finally {
    useCrypto(webcrypto);
  }
});
