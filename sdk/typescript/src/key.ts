/** `quoted` is the structured-field string of the IETF draft; `bare` is for servers that want the plain text (Stripe). */
export type KeyForm = "quoted" | "bare";

type Randomness = Pick<Crypto, "getRandomValues"> & { randomUUID?: () => string };
let randomness: Randomness | undefined;

/** For platforms without a global `crypto` (Node 18). The package's Node entry calls it; browsers need not. */
export function useCrypto(given: Randomness): void {
  randomness = given;
}

/** A new key: a random UUID. Also on pages without https, where `randomUUID` is missing. */
export function newKey(): string {
  const from: Randomness = randomness ?? globalThis.crypto;
  if (from.randomUUID) return from.randomUUID();
  return Array.from(from.getRandomValues(new Uint8Array(16)), (byte, i) => {
    const marked = i == 6 ? (byte & 15) | 64 : i == 8 ? (byte & 63) | 128 : byte; // version 4, variant 1
    return (i > 3 && i < 11 && !(i & 1) ? "-" : "") + (marked + 256).toString(16).slice(1);
  }).join("");
}

export function isKey(text: unknown): text is string {
  return typeof text == "string" && /^[ -~]{1,255}$/.test(text);
}

/** The key as the value of the header. Throws a TypeError if it cannot be written in that form. */
export function keyHeader(key: string, form: KeyForm = "quoted"): string {
  const bare = form == "bare";
  // Spaces and commas would make one bare value look like several; a quote would make it look quoted.
  if (!isKey(key) || (bare && /[ ,"]/.test(key))) throw new TypeError(`not a ${form} key: ${key}`);
  return bare ? key : `"${key.replace(/["\\]/g, "\\$&")}"`;
}
