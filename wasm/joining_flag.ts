/** Flag of V8 by which it joins pairs of vectors to 256 bits: `deno run --v8-flags=…` (assembly/machine/joining.ts). */
export const JOINING_FLAG = "--experimental-wasm-revectorize";

/** Arguments of `deno run` that set it, on a processor (`Deno.build.arch`) whose V8 knows it: Deno ends on others. */
export function joiningArguments(arch: string): readonly string[] {
  return arch === "x86_64" ? [`--v8-flags=${JOINING_FLAG}`] : [];
}
