// What is shipped.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { client, dist } from "./support.mjs";

const bytesMax = 2000;
const read = (name) => readFileSync(join(dist, name), "utf8");

// Proves I9
test("minified and gzipped it has less than 2 kB", () => {
  const bytes = gzipSync(read("settle.min.js"), { level: 9 }).length;
  console.log(`settle.min.js: ${bytes} bytes of ${bytesMax}`);
  assert.ok(bytes < bytesMax, `${bytes} bytes`);
});

test("the bundle for browsers needs nothing else", () => {
  assert.doesNotMatch(read("settle.min.js"), /\bimport\b|\brequire\b|node:/);
});

test("the bundle for browsers offers what the package offers", async () => {
  const bundle = await import(pathToFileURL(join(dist, "settle.min.js")).href);
  assert.deepEqual(Object.keys(bundle).sort(), Object.keys(client).sort());
});
