// What V8 12.4 (Node 22) has but does not show: modifiers in regular expressions, which patterns of tokenizers use, and
// Float16Array. Both are flags of V8 that later versions have on.

import "../missing_methods.ts";
import { nodeModule } from "./node_module.ts";

const process = nodeModule<typeof import("node:process")>("node:process");
const v8 = nodeModule<typeof import("node:v8")>("node:v8");
const vm = nodeModule<typeof import("node:vm")>("node:vm");

const isNode = !("Deno" in globalThis) && process.versions.bun === undefined;

if (isNode) v8.setFlagsFromString("--js-regexp-modifiers");

/** The class, from a realm that is made after it was asked for. */
export function halfArrays(): unknown {
  v8.setFlagsFromString("--js-float16array");
  return vm.runInNewContext("Float16Array");
}
