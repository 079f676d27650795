// What holds for the dispatches of every kernel, found by lowering the cases of all ops to memory that is not there.

import { assertEquals, assertGreater } from "@std/assert";
import type { GpuMemory } from "../../../gpu/gpu.ts";
import type { Capabilities, GpuSlice } from "../../../gpu/kernel.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { ops } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { maximumOf } from "../../plan/sizes.ts";
import { caseGraph } from "../case_graph.ts";
import { createReferences } from "../kernel_checks.ts";
import { limitsWithReach, reachDim } from "./cache_reach.ts";
import type { GpuDispatch, GpuKernel } from "./kernel.ts";
import { GPU_KERNELS, LEAST_GPU } from "./kernel_table.ts";
import { layOutTables } from "./page_tables.ts";
import { packedFilters } from "./plain_weights.ts";
import { createGpuTextures } from "./textures.ts";
import { allocateGpuWeights } from "./weights.ts";

/** A device that has all kernels, with subgroup matrices and without. */
const DEVICES = [true, false].map((subgroupMatrix): Capabilities => ({
  ...{ ...LEAST_GPU.capabilities, f16: true, subgroupSize: 32, packedDot: true, subgroupMatrix },
  ...{ maxWorkgroupBytes: 2 ** 16, maxWorkgroupSize: 1024 },
}));
/** Products of one row: of 32 results each, which no matrix has too many of. */
const OF_ONE_ROW = /^(norm_)?matmul_glu_[^h]/;

const NOWHERE: GpuSlice = {
  ...{ buffer: undefined as unknown as GPUBuffer, offset: 0, bytes: 0, access: "either" },
};

/** The dispatches of all kernels that take a case, by kernel. */
function dispatchesOf(
  name: string,
  { opCase, capabilities }: {
    readonly opCase: Parameters<typeof caseGraph>[1];
    readonly capabilities: Capabilities;
  },
): (readonly [GpuKernel, GpuDispatch])[] {
  const limits = Object.fromEntries(
    Object.entries(opCase.bindings ?? {}).map(([name, n]) => [name, n + 3]),
  );
  const made = plan(caseGraph(name, opCase), { limits });
  const { node } = made.steps.find(({ node }) => node.name === name)!;
  const memory = { capabilities, createBuffer: () => NOWHERE.buffer } as unknown as GpuMemory;
  const all = limitsWithReach(made), tables = layOutTables(made, { slots: 1 });
  return (GPU_KERNELS[name] ?? []).filter((kernel) => kernel.when({ node, capabilities }))
    .flatMap((kernel) => {
      const kernels = made.steps.map((step) =>
        step.node === node ? kernel : { ...kernel, packs: [] }
      );
      const { matrices } = allocateGpuWeights(memory, {
        ...{ plan: made, packed: packedFilters(made, kernels) },
      });
      const found: (readonly [GpuKernel, GpuDispatch])[] = [];
      kernel.lower({
        ...{ node, capabilities, rowByRow: false, reach: reachDim(made), apart: undefined },
        pages: tables.tableOf(node, ({ shape }) => maximumOf(shape[0]!, all)),
        ...{ slice: () => ({ ...NOWHERE }), state: () => NOWHERE, constant: () => NOWHERE },
        weight: ({ id }) => matrices.get(id)!,
        most: (dim) => maximumOf(dim, all),
        ...{ prepared: () => NOWHERE, scratch: () => NOWHERE, carried: () => NOWHERE },
        texture: createGpuTextures(undefined).texture.bind(undefined) as never,
        emit: (dispatch) => found.push([kernel, dispatch]),
      });
      return found;
    });
}

Deno.test("convolutions whose scratch memory a device cannot bind are left to kernels that need none", () => {
  const random = createCaseRandom(3);
  const inputs = [random.input([1, 24, 40, 40]), random.weight("F16", [16, 24, 3, 3])];
  const opCase = { name: "plane", inputs };
  for (
    const [device, bytes, kernels] of [
      [1, 2 ** 20, ["gpu_conv_winograd_f32"]],
      [1, 300_000, []],
      [0, 300_000, ["gpu_conv_halves_f32"]],
      [0, 150_000, []],
    ] as const
  ) {
    const limits = { maxBindingBytes: bytes, maxBufferBytes: 2 ** 22 };
    const capabilities = { ...DEVICES[device]!, ...limits };
    const found = new Set(
      dispatchesOf("conv", { opCase, capabilities }).map(([{ name }]) => name),
    );
    const expected = [...kernels, "gpu_conv_gemm_packed_f32"];
    assertEquals([...found].slice(0, expected.length), expected, `${bytes} bytes`);
  }
});

Deno.test("kernels whose workgroups are one count ask which of them they are", () => {
  const { cases } = createReferences(1), wrong = new Set<string>();
  let seen = 0;
  for (const op of ops.values()) {
    for (const opCase of GPU_KERNELS[op.name] ? cases(op) : []) {
      for (const capabilities of DEVICES) {
        for (const [{ name }, dispatch] of dispatchesOf(op.name, { opCase, capabilities })) {
          const { shader, workgroups } = dispatch;
          if (workgroups.length > 1 || workgroups[0] === 1 || OF_ONE_ROW.test(shader.name)) {
            continue;
          }
          seen++;
          if (!shader.code.includes("flat_workgroup(")) wrong.add(`${name}: ${shader.name}`);
        }
      }
    }
  }
  assertGreater(seen, 1000);
  assertEquals([...wrong], []);
});

/** What the standard promises of every device, with and without extensions. */
const LEAST: readonly Capabilities[] = [
  LEAST_GPU.capabilities,
  { ...LEAST_GPU.capabilities, f16: true, subgroupSize: 32, packedDot: true },
  { ...LEAST_GPU.capabilities, f16: true, subgroupSize: 32, subgroupMatrix: true },
];

/** Bytes of plain types of WGSL. */
const BYTES: Readonly<Record<string, number>> = { f32: 4, u32: 4, i32: 4, bool: 4, f16: 2 };

/** Bytes that an element of an array of a type takes; of structs, those of four numbers. */
function bytesOf(type: string): number {
  const [, element, count] = /^array<(.*), *(\d+)u?>$/s.exec(type) ?? [];
  if (element) return bytesOf(element) * Number(count);
  const [, lanes, lane] = /^vec([234])<(\w+)>$/.exec(type) ?? [];
  if (lane) return BYTES[lane]! * (lanes === "2" ? 2 : 4);
  return BYTES[/^atomic<(\w+)>$/.exec(type)?.[1] ?? type] ?? 16;
}

Deno.test("kernels ask of a device no more than it has: bindings, memory and invocations of a workgroup", () => {
  const { cases } = createReferences(1), wrong = new Set<string>();
  let seen = 0;
  for (const op of ops.values()) {
    for (const opCase of GPU_KERNELS[op.name] ? cases(op) : []) {
      for (const capabilities of LEAST) {
        for (const [{ name }, { shader }] of dispatchesOf(op.name, { opCase, capabilities })) {
          const { code, storage } = shader;
          const memory = [...code.matchAll(/var<workgroup>\s+\w+\s*:\s*([^;]+);/g)]
            .reduce((sum, [, type]) => sum + bytesOf(type!), 0);
          const invocations = /@workgroup_size\(([^)]*)\)/.exec(code)![1]!.split(",")
            .reduce((product, size) => product * parseInt(size), 1);
          const asked = [Object.keys(storage).length, memory, invocations];
          const { maxStorageBindings, maxWorkgroupBytes, maxWorkgroupSize } = capabilities;
          const most = [maxStorageBindings, maxWorkgroupBytes, maxWorkgroupSize];
          seen++;
          if (asked.every((one, i) => one <= most[i]!)) continue;
          wrong.add(`${name}: ${shader.name} asks ${asked} of ${most}`);
        }
      }
    }
  }
  assertGreater(seen, 1000);
  assertEquals([...wrong], []);
});
