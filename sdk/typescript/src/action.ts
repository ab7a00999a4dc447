import { decide, GivenUp, isReplayed, RetryPolicy } from "./decide.js";
import { isKey, KeyForm, keyHeader, newKey } from "./key.js";

/** Where a key outlives a reload: `sessionStorage`, or anything like it. */
export interface KeyStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

export interface ActionOptions extends Partial<RetryPolicy> {
  /** The key, if the app has one of its own. Otherwise the stored one, otherwise a new one. */
  key?: string;
  /** Both together: the key is stored under `settle:<name>` until the action has its result. */
  storage?: KeyStorage;
  name?: string;
  /** The stored key stays after the result too, until `forget()`. */
  keep?: boolean;
  form?: KeyForm;
  /** The name of the header: `Idempotency-Key`. */
  header?: string;
  /** An attempt that takes longer is aborted and counts as a network failure: 20 s. */
  attemptMs?: number;
  /** For tests. */
  fetch?: typeof fetch;
  now?: () => number;
  random?: () => number;
  sleep?: (ms: number, signal?: AbortSignal | null) => Promise<void>;
}

/**
 * What became of the action. Unless it is `answered`, nobody knows whether it happened: `send` it again. Neither does
 * anybody if the answer is `unsure`: it refuses this attempt (a 401, say), and an earlier one may have succeeded. Remove
 * the cause and `send` the same action; the key is kept.
 */
export type Outcome =
  | { end: "answered"; response: Response; replayed: boolean; unsure: boolean; attempts: number }
  | { end: GivenUp; response?: Response; error?: unknown; attempts: number };

const defaults = {
  attemptsMax: 10,
  deadlineMs: 60_000,
  firstWaitMs: 500,
  waitMaxMs: 10_000,
  attemptMs: 20_000,
  header: "Idempotency-Key",
  now: Date.now,
  random: Math.random,
  sleep: (ms: number, signal?: AbortSignal | null) =>
    new Promise<void>((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(signal!.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, ms);
      signal?.addEventListener("abort", stop);
    }),
};

// Stands after a stored key that was used, and in no key.
const sent = "\n";

/**
 * One thing that a user wants to happen once: one key, made here, for every attempt of it.
 *
 *     const action = new UserAction({ name: "checkout", storage: sessionStorage });
 *     const { end, response } = await action.send("/orders", { method: "POST", body });
 *
 * Make it when the action begins (the form opens, the button is pressed), not for each attempt. One action is one
 * request: the same method, URL and body whenever it is sent.
 */
export class UserAction {
  readonly key: string;
  private unsure = false; // an attempt under this key may have acted
  private readonly with: ActionOptions & typeof defaults;

  constructor(options: ActionOptions = {}) {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    this.with = { ...defaults, ...Object.fromEntries(given) };
    const stored = this.stored((storage, name) => storage.getItem(name))?.replace(/\n$/, "");
    this.key = options.key ?? (isKey(stored) ? stored : newKey());
    keyHeader(this.key, options.form); // a key that cannot be sent is refused now
    if (this.key != stored) this.stored((storage, name) => storage.setItem(name, this.key));
  }

  /** The stored key goes: the next action of this name is a new one. */
  forget(): void {
    this.stored((storage, name) => storage.removeItem(name));
  }

  /**
   * Sends the request until there is an answer, as `fetch` takes it. Rejects only for what `fetch` would never send,
   * and with the signal's reason if `init.signal` aborts; the key is still good then.
   */
  async send(input: string | URL, init: RequestInit = {}): Promise<Outcome> {
    const { now, deadlineMs } = this.with;
    const begun = now();
    // Once for all attempts: a form would get another boundary each time, which makes it another request.
    const first = new Request(input, init);
    const { headers } = first;
    // There a browser drops the header without a word, and a retry without the key may do it twice.
    if (init.mode == "no-cors") throw new TypeError("no-cors cannot send a key");
    headers.set(this.with.header, keyHeader(this.key, this.with.form));
    // Before this function waits for anything, so that a second click finds it.
    this.stored((storage, name) => {
      const mark = this.key + sent;
      this.unsure ||= storage.getItem(name) == mark;
      storage.setItem(name, mark);
    });
    const body = await first.arrayBuffer();
    const request = { ...init, headers, body: body.byteLength ? body : null };

    let response: Response | undefined;
    for (let attempts = 1; ; attempts++) {
      let error: unknown;
      let { unsure } = this;
      this.unsure = true;
      const latest = await this.attempt(input, request, begun + deadlineMs - now()).catch((e) => {
        error = e;
      });
      response = latest ?? response;
      const header = (name: string) => latest?.headers.get(name) ?? null;
      const nowMs = now();
      const at = { attempt: attempts, elapsedMs: nowMs - begun, nowMs, random: this.with.random() };
      const decision = decide(latest?.status ?? 0, header, at, this.with);
      if (decision.end == "answered") {
        this.unsure = unsure = unsure && !decision.result;
        if (!unsure && !this.with.keep) this.forget();
        return { end: decision.end, response: latest!, replayed: isReplayed(header), unsure, attempts };
      }
      if (init.signal?.aborted) throw init.signal.reason;
      if (decision.end) return { end: decision.end, response, error, attempts };
      await this.with.sleep(decision.waitMs, init.signal);
    }
  }

  private async attempt(input: string | URL, request: RequestInit, leftMs: number): Promise<Response> {
    const { signal } = request;
    const limit = new AbortController();
    const stop = () => limit.abort();
    if (signal?.aborted) stop();
    const timer = setTimeout(stop, Math.min(this.with.attemptMs, leftMs));
    signal?.addEventListener("abort", stop);
    try {
      const response = await (this.with.fetch ?? fetch)(input, { ...request, signal: limit.signal });
      // An answer that breaks off is none, so all of it is read here; the caller reads it from memory.
      await response.clone().arrayBuffer();
      return response;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  // A storage that refuses (private windows, quota) costs the memory over a reload, never the action.
  private stored<T>(use: (storage: KeyStorage, name: string) => T): T | undefined {
    const { storage, name } = this.with;
    try {
      return storage && name ? use(storage, "settle:" + name) : undefined;
    } catch {
      return undefined;
    }
  }
}
