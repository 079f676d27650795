/** Flag of V8 by which it joins pairs of vectors to 256 bits: `deno run --v8-flags=…` (assembly/machine/joining.ts). */
export const JOINING_FLAG = "--experimental-wasm-revectorize";
