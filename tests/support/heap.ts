// Bytes that are really held by JavaScript in this thread: after a garbage collection, which Deno gives without a flag to
// whoever asks for it in a context of his own.

import v8 from "node:v8";
import vm from "node:vm";

/** Live bytes of this thread's heap. */
export function liveHeapBytes(): number {
  v8.setFlagsFromString("--expose-gc");
  const collect: () => void = vm.runInNewContext("gc");
  collect();
  collect(); // What only finalizers let go of.
  return Deno.memoryUsage().heapUsed;
}
