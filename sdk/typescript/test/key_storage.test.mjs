// Keys, and what is left of them after a reload.
import assert from "node:assert/strict";
import test from "node:test";
import { calm, client, memoryStorage, scripted, uuid4 } from "./support.mjs";

const { UserAction, newKey, useCrypto } = client;
const post = { method: "POST", body: "{}" };

// Proves I9
test("a key outlives a reload until the action has its answer", async (t) => {
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

test("a key is kept beyond the answer where asked", async (t) => {
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
  for (const bad of ["", "ü", "a\nb", "k".repeat(256)]) {
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
