// The entry for Node, where `crypto` is no global before version 19.
// @ts-ignore: there are no types of Node here, and this one line is all that would need them
import { webcrypto } from "node:crypto";
import { useCrypto } from "./key.js";

useCrypto(webcrypto);

export * from "./index.js";
