// What stands for the globals of these names in the npm package: Deno's own where Deno runs it, Node's and Bun's files,
// threads and processes otherwise. The build gives every module that names one of them this file (tools/build/bundle.ts).

import { DisposableStack as OwnDisposableStack } from "../disposable_stack.ts";
import { createNodeDeno } from "./deno.ts";
import { halfArrays } from "./missing.ts";
import { NodeWorker } from "./worker.ts";
import "./worker_globals.ts";

const known = globalThis as unknown as Readonly<Record<string, unknown>>;

export const Deno = known.Deno ?? createNodeDeno();
export const Worker = known.Deno ? known.Worker : NodeWorker;
export const Float16Array = known.Float16Array ?? halfArrays();
export const DisposableStack = known.DisposableStack ?? OwnDisposableStack;
