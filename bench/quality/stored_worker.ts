// Measures the formats that are sent to it, one after the other (jobs.ts).

/// <reference lib="deno.worker" />

import { measureStored, type StoredTask } from "./stored.ts";

self.onmessage = async ({ data }: MessageEvent<StoredTask>) => {
  try {
    self.postMessage({ result: await measureStored(data) });
  } catch (error) {
    self.postMessage({ error });
  }
};
