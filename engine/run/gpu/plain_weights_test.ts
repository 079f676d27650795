import { assert, assertEquals } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import type { Backend } from "../backend.ts";
import { tensorInMemory } from "../case_graph.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createGpuBackend } from "./backend.ts";

/** Filters of a file: 16 that make tiles, as two nodes read them, and one a channel. */
function filters(): Graph {
  const random = createCaseRandom(3);
  const builder = createGraphBuilder("filters", getOp);
  const weight = (name: string, format: string, shape: readonly number[]) => {
    const made = random.weight(format, shape);
    if (made.role !== "weight") throw new TypeError("no weight");
    return builder.weight(name, tensorInMemory(name, { format, shape, bytes: made.bytes }));
  };
  const pads = [1, 1, 1, 1];
  const shared = weight("shared", "F16", [16, 16, 3, 3]);
  const convolved = (x: ReturnType<typeof builder.input>, name: string) =>
    builder.op("conv", [x, shared], { pads }, name)[0]!;
  const x = builder.input("x", [1, 16, 6, 7], "f32");
  const own = weight("own", "F16", [16, 1, 3, 3]);
  const mixed = builder.op("conv", [convolved(x, "a"), own], { pads, groups: 16 }, "b")[0]!;
  builder.output("y", convolved(mixed, "c"));
  return builder.build();
}

async function resultOf(backend: Backend): Promise<[readonly string[], Float32Array]> {
  const executable = await backend.prepare(plan(filters(), { limits: {} }), {
    ...{ slots: 0, hostSteps: true },
  });
  (executable.input("x") as Float32Array).set(createCaseRandom(4).normal(16 * 6 * 7));
  await executable.run({});
  const y = Float32Array.from(executable.output("y") as Float32Array);
  const { kernels = [] } = executable;
  executable.dispose();
  return [kernels, y];
}

gpuTest("filters of a file stay packed where the kernel reads them so", async () => {
  const [, expected] = await resultOf(createReferenceBackend());
  const largest = Math.max(...expected.map(Math.abs));
  const tiled = "gpu_conv_gemm_packed_f32";
  for (
    const [storages, names] of [
      [{}, [tiled, "gpu_conv_f32", tiled]],
      // Textures rearrange what is known.
      [{ conv: { source: "planes", weights: "texture_2d", target: "planes" } }, [
        "gpu_conv_virtual_f32",
        "gpu_conv_f32",
        "gpu_conv_virtual_f32",
      ]],
    ] as const
  ) {
    const [kernels, y] = await resultOf(createGpuBackend({ storages }));
    assertEquals(kernels, names);
    assert(y.every((value, i) => Math.abs(value - expected[i]!) < 1e-5 * largest));
  }
});
