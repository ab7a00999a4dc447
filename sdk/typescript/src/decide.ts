export interface RetryPolicy {
  /** Requests per `send`, the first included. */
  attemptsMax: number;
  /** No attempt begins later than this after `send` was called, and one under way is aborted. */
  deadlineMs: number;
  /** The wait after the first failure; it doubles with each. Half of a wait is random. */
  firstWaitMs: number;
  /** Waits grow up to here. `Retry-After` may ask for more. */
  waitMaxMs: number;
}

/** What a decision depends on beside the answer. All of it is passed in, so that a test can read the schedule. */
export interface Moment {
  /** 1 for the first. */
  attempt: number;
  elapsedMs: number;
  nowMs: number;
  /** From 0 to below 1. */
  random: number;
}

/** Nobody knows what became of the request. The key is still good. */
export type GivenUp = "attempts_used" | "out_of_time";
/**
 * Ask again after a wait; or this is the answer; or give up. The answer is the `result` if it tells what became of
 * the action. A 401, say, or a failure that was undone, tells only that this attempt did nothing.
 */
export type Decision = { end?: undefined; waitMs: number } | { end: "answered"; result: boolean } | { end: GivenUp };

type Headers = (name: string) => string | null;

// Only what toUTCString() writes: the one form that servers may send today. NaN for everything else.
function httpDate(text: string | null): number {
  const ms = Date.parse(text!);
  return new Date(ms).toUTCString() == text ? ms : NaN;
}

function retryAfterMs(header: Headers, nowMs: number): number {
  const text = header("retry-after");
  if (/^\d+$/.test(text!)) return +text! * 1000;
  // By the server's own clock, if it tells: ours may be wrong.
  return httpDate(text) - (httpDate(header("date")) || nowMs) || 0;
}

export function isReplayed(header: Headers): boolean {
  return header("idempotent-replayed")?.toLowerCase() == "true";
}

/** What to do after an answer, or after none (status 0). sdk/fixtures/retry.json is its specification. */
export function decide(status: number, header: Headers, at: Moment, policy: RetryPolicy): Decision {
  const retried = [0, 408, 409, 425, 429, 500, 502, 503, 504].includes(status);
  // With this header the service itself has answered, be it with a conflict or a failure.
  const own = !!header("idempotent-replayed");
  const replayed = isReplayed(header);
  // A failure that is not replayed may have been undone: an earlier attempt can still succeed.
  if (!retried || (own && (status == 409 || status == 500)) || replayed)
    return { end: "answered", result: replayed || status < (own ? 500 : 400) };
  // Said so that a limit that is no number ends the action instead of never doing so.
  if (!(at.attempt < policy.attemptsMax)) return { end: "attempts_used" };

  const half = Math.min(policy.waitMaxMs, policy.firstWaitMs * 2 ** (at.attempt - 1)) / 2;
  const waitMs = Math.floor(Math.max(half, retryAfterMs(header, at.nowMs)) + at.random * half);
  return at.elapsedMs + waitMs < policy.deadlineMs ? { waitMs } : { end: "out_of_time" };
}
