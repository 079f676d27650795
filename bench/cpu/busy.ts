// Processes that do nothing and want a processor each, while a case is measured: what happens to an engine
// whose threads are more than the processors that are left.

import { startChild } from "../../tools/support/children.ts";

/** Starts enough of them to take a processor away from `threads` threads. */
export function startBusy(threads: number): Disposable {
  const count = Math.max(1, navigator.hardwareConcurrency - threads + 1);
  const children = Array.from({ length: count }, () =>
    startChild(Deno.execPath(), {
      args: ["eval", "for (;;);"],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }));
  return {
    [Symbol.dispose]() {
      for (const child of children) child.kill("SIGKILL");
    },
  };
}
