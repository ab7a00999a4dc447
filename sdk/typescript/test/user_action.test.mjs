// A user action against a real server that fails in every way it knows.
import assert from "node:assert/strict";
import test from "node:test";
import { calm, client, memoryStorage, scripted, uuid4 } from "./support.mjs";

const { UserAction } = client;
const post = { method: "POST", body: '{"total":42}', headers: { "content-type": "application/json" } };

// Proves I9
test("sends one key on every attempt of one action", async (t) => {
  const server = await scripted(t, ["cut", { status: 503 }, { status: 500 }, "torn", { status: 429 }, { status: 502 }]);
  const world = calm();
  const action = new UserAction(world);
  const outcome = await action.send(server.url, post);
  assert.equal(outcome.end, "answered");
  assert.equal(outcome.response.status, 201);
  assert.equal(await outcome.response.text(), "done 1");
  assert.equal(outcome.attempts, 7);
  assert.match(action.key, uuid4);
  assert.deepEqual(new Set(server.requests.map((r) => r.key)), new Set([`"${action.key}"`]));
  assert.deepEqual(new Set(server.requests.map((r) => r.body)), new Set([post.body]));
  assert.deepEqual(new Set(server.requests.map((r) => r.headers["content-type"])), new Set(["application/json"]));
  assert.deepEqual(world.slept, [250, 500, 1000, 2000, 4000, 5000]);
});

// Proves I9
test("an answer that was lost is replayed and says so", async (t) => {
  const server = await scripted(t, ["work, then cut"]);
  const outcome = await new UserAction(calm()).send(server.url, post);
  assert.equal(outcome.replayed, true);
  assert.equal(await outcome.response.text(), "done 1");
  assert.equal(server.results.size, 1);
});

// Proves I9
test("two actions have two keys", async (t) => {
  const server = await scripted(t, []);
  for (const _ of [1, 2]) assert.equal((await new UserAction(calm()).send(server.url, post)).replayed, false);
  assert.equal(server.results.size, 2);
});

// Proves I9
test("a second click on the same action is the same request", async (t) => {
  const server = await scripted(t, []);
  const action = new UserAction(calm());
  const outcomes = await Promise.all([action.send(server.url, post), action.send(server.url, post)]);
  assert.deepEqual(outcomes.map((o) => o.replayed).sort(), [false, true]);
  assert.equal(server.results.size, 1);
});

// Proves I9
test("in flight elsewhere waits as told and asks again", async (t) => {
  const busy = { status: 409, headers: { "retry-after": "3", "content-type": "application/problem+json" }, body: "{}" };
  const server = await scripted(t, [busy, busy]);
  const world = calm();
  const outcome = await new UserAction(world).send(server.url, post);
  assert.equal(outcome.response.status, 201);
  assert.deepEqual(world.slept, [3000, 3000]);
});

// Proves I9
test("a Retry-After as a date is honoured by the clock of the server", async (t) => {
  const headers = { date: "Mon, 16 Nov 2026 18:00:00 GMT", "retry-after": "Mon, 16 Nov 2026 18:00:09 GMT" };
  const server = await scripted(t, [{ status: 503, headers }]);
  const world = calm();
  await new UserAction(world).send(server.url, post);
  assert.deepEqual(world.slept, [9000]);
});

// Proves I9
test("a mismatch and other refusals are final", async (t) => {
  for (const status of [400, 401, 404, 422]) {
    const server = await scripted(t, [{ status, body: "no" }]);
    const outcome = await new UserAction(calm()).send(server.url, post);
    assert.equal(outcome.end, "answered");
    assert.equal(outcome.response.status, status);
    assert.equal(server.requests.length, 1);
  }
});

// Proves I9
test("a recorded failure is final", async (t) => {
  const server = await scripted(t, [{ status: 500, headers: { "idempotent-replayed": "true" } }]);
  const outcome = await new UserAction(calm()).send(server.url, post);
  assert.deepEqual([outcome.end, outcome.response.status, outcome.replayed], ["answered", 500, true]);
});

test("gives up after its attempts and hands out the last answer", async (t) => {
  const server = await scripted(t, [{ status: 503 }, { status: 503, body: "later" }, "cut"]);
  const outcome = await new UserAction({ ...calm(), attemptsMax: 3 }).send(server.url, post);
  assert.equal(outcome.end, "attempts_used");
  assert.equal(outcome.attempts, 3);
  assert.equal(await outcome.response.text(), "later");
  assert.ok(outcome.error instanceof Error);
});

test("gives up at its deadline before it waits in vain", async (t) => {
  const server = await scripted(t, [{ status: 503 }, { status: 429, headers: { "retry-after": "60" } }]);
  const world = calm();
  const outcome = await new UserAction(world).send(server.url, post);
  assert.equal(outcome.end, "out_of_time");
  assert.equal(outcome.response.status, 429);
  assert.deepEqual(world.slept, [250]);
});

// Proves I9
test("an action that was given up goes on with its key", async (t) => {
  const server = await scripted(t, ["work, then cut"]);
  const action = new UserAction({ ...calm(), attemptsMax: 1 });
  assert.equal((await action.send(server.url, post)).end, "attempts_used");
  assert.equal((await action.send(server.url, post)).replayed, true);
});

test("a server that is away is a network failure", async () => {
  const outcome = await new UserAction({ ...calm(), attemptsMax: 2 }).send("http://127.0.0.1:1/", post);
  assert.equal(outcome.end, "attempts_used");
  assert.equal(outcome.response, undefined);
  assert.ok(outcome.error);
});

test("a silent server is asked again", { timeout: 15_000 }, async (t) => {
  const server = await scripted(t, ["silent"]);
  const outcome = await new UserAction({ ...calm(), attemptMs: 300 }).send(server.url, post);
  assert.equal(outcome.response.status, 201);
  assert.ok(outcome.attempts > 1);
});

test("the deadline ends an attempt that hangs", { timeout: 15_000 }, async (t) => {
  const server = await scripted(t, ["silent"]);
  const outcome = await new UserAction({ deadlineMs: 50, random: () => 0 }).send(server.url, post);
  assert.equal(outcome.end, "out_of_time");
  assert.equal(outcome.attempts, 1);
});

test("an abort ends the request under way", { timeout: 15_000 }, async (t) => {
  const stop = new AbortController();
  const server = await scripted(t, [{ during: () => (stop.abort(new Error("closed")), "silent") }]);
  const storage = memoryStorage();
  const action = new UserAction({ ...calm(), storage, name: "a" });
  await assert.rejects(action.send(server.url, { ...post, signal: stop.signal }), /closed/);
  assert.equal(new UserAction({ storage, name: "a" }).key, action.key);
});

test("an abort ends the wait", { timeout: 15_000 }, async (t) => {
  const stop = new AbortController();
  const server = await scripted(t, [{ status: 503, headers: { "retry-after": "50" } }]);
  // The wait begins when the random part is asked for.
  const random = () => (setTimeout(() => stop.abort(new Error("closed")), 20), 0);
  await assert.rejects(new UserAction({ random }).send(server.url, { ...post, signal: stop.signal }), /closed/);
  assert.equal(server.requests.length, 1);
});

test("an abort before the beginning sends nothing", async (t) => {
  const server = await scripted(t, []);
  const signal = AbortSignal.abort(new Error("closed"));
  await assert.rejects(new UserAction(calm()).send(server.url, { ...post, signal }), /closed/);
  assert.equal(server.requests.length, 0);
});

test("waits in real time where nothing is injected", async (t) => {
  const server = await scripted(t, [{ status: 503 }]);
  const outcome = await new UserAction({ firstWaitMs: 2 }).send(server.url, post);
  assert.equal(outcome.attempts, 2);
});

test("bare and under another name where the server wants that", async (t) => {
  const server = await scripted(t, []);
  await new UserAction({ key: "k-1", form: "bare" }).send(server.url, post);
  await new UserAction({ key: "k-2", form: "bare", header: "X-Request-Key" }).send(server.url, post);
  assert.equal(server.requests[0].key, "k-1");
  assert.equal(server.requests[1].headers["x-request-key"], "k-2");
});

// Proves I9: a form would otherwise get another boundary, and be another request to the server's fingerprint.
test("a form has the same bytes on every attempt", async (t) => {
  const server = await scripted(t, ["cut", { status: 503 }]);
  const body = new FormData();
  body.set("name", "Ada");
  await new UserAction(calm()).send(server.url, { method: "POST", body });
  assert.equal(server.requests.length, 3);
  assert.equal(new Set(server.requests.map((r) => r.body)).size, 1);
  assert.equal(new Set(server.requests.map((r) => r.headers["content-type"])).size, 1);
  assert.match(server.requests[0].body, /Ada/);
});

test("a stream and no body at all can be repeated too", async (t) => {
  const server = await scripted(t, ["cut", "work", { status: 503 }]);
  const body = new Blob(["streamed"]).stream();
  await new UserAction(calm()).send(server.url, { method: "POST", body, duplex: "half" });
  await new UserAction(calm()).send(new URL(server.url), { method: "PATCH" });
  assert.deepEqual(server.requests.map((r) => r.body), ["streamed", "streamed", "", ""]);
  assert.deepEqual(server.requests.map((r) => r.method), ["POST", "POST", "PATCH", "PATCH"]);
});

test("what fetch would never send is refused at once", async () => {
  const storage = memoryStorage();
  const world = { ...calm(), storage, name: "a" };
  await assert.rejects(new UserAction(world).send("http://", post), TypeError);
  await assert.rejects(new UserAction(world).send("http://x/", { ...post, headers: { "a b": "c" } }), TypeError);
  assert.throws(() => new UserAction({ key: "ü" }), TypeError);
  assert.throws(() => new UserAction({ key: "a b", form: "bare" }), TypeError);
  assert.deepEqual(world.slept, []);
  assert.doesNotMatch(storage.getItem("settle:a"), /\n/, "not marked as sent");
});

// Proves I9: a browser drops the header there without a word.
test("a mode that cannot carry the key is refused", async (t) => {
  const server = await scripted(t, []);
  await assert.rejects(new UserAction(calm()).send(server.url, { ...post, mode: "no-cors" }), TypeError);
  assert.equal(server.requests.length, 0);
});

test("limits that are not given are the usual ones", async (t) => {
  const server = await scripted(t, Array(20).fill({ status: 503 }));
  const world = calm();
  const none = { attemptsMax: undefined, deadlineMs: undefined, attemptMs: undefined, header: undefined };
  const outcome = await new UserAction({ ...world, ...none }).send(server.url, post);
  assert.deepEqual([outcome.end, outcome.attempts], ["attempts_used", 10]);
  assert.match(server.requests[0].key, /^"/);
});
