// What the engine uses of `Deno`, for Node and Bun.

import { ERRORS } from "../error_classes.ts";
import { FILES } from "./files.ts";
import { createProcess } from "./process.ts";
import { serve } from "./serve.ts";

function refuse(what: string): () => never {
  return () => {
    throw new Error(`${what} needs Deno: https://docs.deno.com/runtime`);
  };
}

/** The object. Devices in other processes (engine/place/peer/sockets.ts) are not served. */
export function createNodeDeno() {
  return {
    ...FILES,
    ...createProcess(),
    errors: ERRORS,
    serve,
    connect: refuse("a device in another process"),
    listen: refuse("a device in another process"),
  } as const;
}
