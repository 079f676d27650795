// What stands for the globals of these names in bundles for browsers: files that were mounted, workers of source text, and
// nothing else of `Deno`: no environment, no processes, no permissions.

import { DisposableStack as OwnDisposableStack } from "../disposable_stack.ts";
import { ERRORS } from "../error_classes.ts";
import { FILES } from "./files.ts";
import { createWorker } from "./workers.ts";

const known = globalThis as unknown as Readonly<Record<string, unknown>>;
const denied = { state: "denied" } as const;

export const Deno = {
  ...FILES,
  errors: ERRORS,
  build: { os: "browser", arch: "wasm" },
  permissions: { querySync: () => denied },
  env: { get: () => undefined },
} as const;

export const Worker = createWorker;
export const DisposableStack = known.DisposableStack ?? OwnDisposableStack;
