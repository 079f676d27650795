// Random ONNX graphs on the devices of the suite; long runs are `deno task fuzz graphs --count N`.

import { assertEquals } from "@std/assert";
import type { DeviceName } from "../engine/run/backend.ts";
import { fuzzGraphs, PEER_REMEDY } from "../tools/fuzz/graphs/fuzz_graphs.ts";
import { modelOf } from "../tools/fuzz/graphs/judge.ts";
import { openPeer } from "../tools/fuzz/graphs/peer.ts";
import { randomGraph } from "../tools/fuzz/graphs/random_graph.ts";
import { gpuTest } from "./support/gpu.ts";

Deno.test("a random graph depends on seed and index only", () => {
  assertEquals(modelOf(randomGraph(7, 3)), modelOf(randomGraph(7, 3)));
  const distinct = new Set(
    Array.from({ length: 20 }, (_, i) => modelOf(randomGraph(7, i)).toHex()),
  );
  assertEquals(distinct.size, 20);
});

async function failuresOn(device: DeviceName, count: number): Promise<string[]> {
  const failures: string[] = [];
  const counts = await fuzzGraphs({
    seed: 1,
    from: 0,
    to: count,
    device,
    failed: (index, message) => failures.push(`graph ${index}: ${message}`),
  });
  assertEquals(counts.agreed, count - failures.length);
  return failures;
}

// Said by name, since without it the same test compares less.
const peer = await openPeer();
const beside = peer ? `and onnxruntime ${peer.version}` : `(no onnxruntime: ${PEER_REMEDY})`;
await peer?.[Symbol.asyncDispose]();

Deno.test(`500 random graphs on WASM are as on the reference ${beside}`, async () => {
  assertEquals(await failuresOn("wasm", 500), []);
});

gpuTest(`50 random graphs on the GPU are as on the reference ${beside}`, async () => {
  assertEquals(await failuresOn("gpu", 50), []);
});
