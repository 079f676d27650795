// What V8 12.4 (Node 22) has but does not show: modifiers in regular expressions, which patterns of tokenizers use, and
// Float16Array. Both are flags of V8 that later versions have on.

import v8 from "node:v8";
import vm from "node:vm";
import "../missing_methods.ts";

const isOfV8 = process.versions.bun === undefined && !("Deno" in globalThis);

if (isOfV8) v8.setFlagsFromString("--js-regexp-modifiers");

/** The class, from a realm that is made after it was asked for. */
export function halfArrays(): unknown {
  v8.setFlagsFromString("--js-float16array");
  return vm.runInNewContext("Float16Array");
}
