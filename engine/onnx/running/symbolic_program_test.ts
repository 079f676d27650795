import { assertEquals, assertRejects } from "@std/assert";
import { onnxSeeds } from "../../../tests/support/fuzz_onnx.ts";
import { ResourceError } from "../../errors.ts";
import type { GraphTensor } from "./graph_tensor.ts";
import { loadGraph } from "./load_graph.ts";

const [shapeChain] = onnxSeeds();

function ones(...dims: number[]): GraphTensor {
  return { data: new Float32Array(dims.reduce((a, b) => a * b, 1)).fill(1), dims };
}

for (const device of ["reference", "wasm"] as const) {
  Deno.test(`sizes that are refused leave a graph as it was on ${device}`, async () => {
    const path = await Deno.makeTempFile({ suffix: ".onnx" });
    try {
      await Deno.writeFile(path, shapeChain!);
      using graph = await loadGraph(path, { device, threads: 1, maxActivationBytes: 10_000 });
      const run = async (rows: number) => {
        const { z } = await graph.run({ x: ones(rows, 4), mask: ones(1, 2) });
        return [...(z as GraphTensor).data as Float32Array];
      };
      const expected = [await run(3), await run(1)];
      await assertRejects(() => run(10_000), ResourceError);
      assertEquals([await run(3), await run(1)], expected);
    } finally {
      await Deno.remove(path);
    }
  });
}
