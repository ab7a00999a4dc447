// The fixtures that all client helpers share.
import assert from "node:assert/strict";
import test from "node:test";
import { client, fixture } from "./support.mjs";

const policyOf = (of) => ({
  attemptsMax: of.attempts_max,
  deadlineMs: of.deadline_ms,
  firstWaitMs: of.first_wait_ms,
  waitMaxMs: of.wait_max_ms,
});

// Proves I9
test("decides as every other client helper", () => {
  const { policy, now_ms, cases } = fixture("retry.json");
  assert.ok(cases.length > 80);
  for (const one of cases) {
    const headers = new Map(Object.entries(one.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
    const decision = client.decide(
      one.status,
      (name) => headers.get(name) ?? null,
      { attempt: one.attempt, elapsedMs: one.elapsed_ms, nowMs: now_ms, random: one.random },
      policyOf(one.policy ?? policy),
    );
    const expected = "end" in one.expect ? one.expect : { waitMs: one.expect.wait_ms };
    assert.deepEqual(decision, expected, one.name);
  }
});

// Proves I9
test("writes keys as every other client helper", () => {
  for (const one of fixture("keys.json").write)
    for (const form of ["quoted", "bare"])
      if (one[form] == null) assert.throws(() => client.keyHeader(one.key, form), TypeError, `${one.name}, ${form}`);
      else assert.equal(client.keyHeader(one.key, form), one[form], one.name);
});
