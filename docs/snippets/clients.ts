// What docs/guides/clients.md and sdk/typescript/README.md quote. sdk/typescript/run_tests checks its types, and the
// test clients_guide runs it.
import { UserAction } from "@settle/client";

// [snippet: ts_send]
export async function placeOrder(url: string, cart: { id: string; items: string[] }): Promise<string> {
  const action = new UserAction({ name: `order:${cart.id}`, storage: sessionStorage });
  const outcome = await action.send(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(cart),
  });
  if (outcome.end != "answered" || outcome.unsure) return "We do not know yet. Try again: nothing is ordered twice.";
  if (!outcome.response.ok) return `Not ordered: ${outcome.response.status}`;
  const { order } = await outcome.response.json();
  return outcome.replayed ? `Already ordered: ${order}` : `Ordered: ${order}`;
}
// [end]

// [snippet: ts_options]
export function charge(url: string, amount: number, signal: AbortSignal) {
  const action = new UserAction({
    form: "bare", // as Stripe wants the key
    attemptsMax: 5,
    deadlineMs: 30_000,
  });
  return action.send(url, { method: "POST", body: new URLSearchParams({ amount: `${amount}` }), signal });
}
// [end]
