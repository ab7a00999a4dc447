export { UserAction } from "./action.js";
export type { ActionOptions, KeyStorage, Outcome } from "./action.js";
export { decide } from "./decide.js";
export type { Decision, GivenUp, Moment, RetryPolicy } from "./decide.js";
export { keyHeader, newKey, useCrypto } from "./key.js";
export type { KeyForm } from "./key.js";
