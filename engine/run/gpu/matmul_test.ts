import { assertEquals } from "@std/assert";
import { hasGpuIntegerKernel } from "../../../gpu/weight_layout.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { differingRows, gpuWith, type RowsRun, testGpu } from "../../../tests/support/gpu_cases.ts";
import { getFormat } from "../../../quant/mod.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { WEIGHT_FORMATS } from "../../ops/case_sizes.ts";
import type { CaseInput, OpCase } from "../../ops/op_case.ts";
import { matmulCase, quantized } from "../../ops/matmul_cases.ts";
import { plan } from "../../plan/planner.ts";
import { caseGraph } from "../case_graph.ts";
import { createGpuBackend } from "./backend.ts";

// Every kind of dispatch, and rows that no tile divides: one row, few, tiles of each kind and a bit.
const COUNTS = [0, 1, 3, 8, 9, 20, 70];
/** One output more than a tile has; odd numbers get a bias. */
const OUTPUTS = 65;
const STYLES = ["subgroup", "workgroup"] as const;
const Q8_TOLERANCE = 2e-3;

interface Size {
  readonly format: string;
  readonly columns: number;
  readonly outputs?: number;
  readonly rows?: number;
}

function product({ format, columns, outputs = OUTPUTS, rows = Math.max(...COUNTS) }: Size): OpCase {
  return matmulCase(createCaseRandom(7), { format, rows, outputs, columns });
}

function check(size: Size, style: string, run: Partial<RowsRun> = {}): Promise<string[]> {
  return differingRows("matmul", product(size), {
    kernel: `gpu_matmul_f32_${style}`,
    rows: COUNTS,
    ...run,
  });
}

function checkQ8(size: Size, style: string, run: Partial<RowsRun> = {}): Promise<string[]> {
  return differingRows("matmul", quantized(product(size)), {
    kernel: `gpu_matmul_q8_${style}`,
    rows: COUNTS,
    ofLargest: Q8_TOLERANCE,
    ...run,
  });
}

for (const [i, format] of WEIGHT_FORMATS.entries()) {
  const { blockSize } = getFormat(format);
  // Float formats end within a unit and within a quad.
  const columns = blockSize === 1 ? [100, 36, 33][i % 3]! : blockSize === 32 ? 64 : 512;
  const style = STYLES[i % 2]!;
  gpuTest(`GPU products by ${format} are the reference's for any number of rows`, async () => {
    assertEquals(await check({ format, columns }, style), []);
  });
  if (!hasGpuIntegerKernel(format)) continue;
  gpuTest(
    `GPU products of 8 bit by ${format} are the reference's for any number of rows`,
    async () => {
      assertEquals(await checkQ8({ format, columns }, style), []);
    },
  );
}

for (const [i, format] of ["F16", "F32", "Q8_0", "Q4_K"].entries()) {
  const { blockSize } = getFormat(format), style = STYLES[i % 2]!;
  const columns = blockSize === 1 ? 1160 : 512, outputs = [132, 65][i % 2]!;
  const { inputs: [x, weight, bias], ...rest } = product({ format, columns, outputs });
  const rows = [0, 1, 20, 50, 70];

  gpuTest(`GPU products by ${format} apply functions to their sums`, async () => {
    for (const [activation, alpha] of [["silu", 1.702], ["gelu", 1]] as const) {
      const opCase = { ...rest, inputs: [x, weight, bias], attributes: { activation, alpha } };
      const run = { kernel: `gpu_matmul_active_f32_${style}`, rows, ofLargest: 2e-5 };
      assertEquals(await differingRows("matmul", opCase, run), []);
    }
  });

  gpuTest(`GPU products by ${format} norm their sums beside them`, async () => {
    const random = createCaseRandom(8);
    const residual = random.input([x!.shape[0]!, outputs], rest.bindings);
    const vectors = [0, 1].map((at) => i === at ? undefined : random.weight("F32", [outputs]));
    const opCase = {
      ...rest,
      inputs: [x, weight, bias, residual, ...vectors],
      attributes: { norm_behind: true, epsilon: 1e-5 },
    };
    const run = { kernel: `gpu_matmul_add_norm_f32_${style}`, rows, ofLargest: 2e-5 };
    assertEquals(await differingRows("matmul", opCase, run), []);
  });
}

for (const [i, format] of ["F16", "F32", "BF16"].entries()) {
  const style = STYLES[i % 2]!, columns = [1152, 400, 48][i]!, outputs = [132, 65, 36][i]!;
  const { inputs: [x, weight, bias], ...rest } = product({ format, columns, outputs });
  const random = createCaseRandom(9);
  const [gain, shift] = [0, 1].map(() => random.weight("F32", [columns]));
  const vectors = [[gain, shift], [gain, undefined], [undefined, shift]][i]!;
  const residual = random.input([x!.shape[0]!, outputs], rest.bindings);
  // A row of equal numbers, and rows far from 0.
  const given = x as Extract<CaseInput, { readonly data: unknown }>;
  const data = Float32Array.from(
    given.data as Float32Array,
    (value, at) => at < columns ? 3 : at < 3 * columns ? 100 + value : value,
  );

  gpuTest(`GPU products by ${format} centre rows while they multiply them`, async () => {
    for (
      const [name, added, attributes] of [
        ["centred", undefined, {}],
        ["centred_add", residual, {}],
        ["centred_active", undefined, { activation: "gelu" }],
      ] as const
    ) {
      const opCase = {
        ...{ ...rest, inputs: [{ ...given, data }, weight, bias, added, ...vectors] },
        attributes: { ...attributes, centred: true, epsilon: 1e-5 },
      };
      const run = { kernel: `gpu_matmul_${name}_f32_${style}`, rows: [0, 1, 3, 20, 50, 70] };
      assertEquals(await differingRows("matmul", opCase, { ...run, ofLargest: 2e-5 }), []);
    }
  });
}

gpuTest("GPU products of 8 bit take odd numbers of groups", async () => {
  for (const format of ["Q4_0", "Q5_1", "Q8_0"]) {
    assertEquals(
      await checkQ8({ format, columns: 96, rows: 9 }, "workgroup", { rows: [1, 9] }),
      [],
    );
  }
});

gpuTest("GPU products do not depend on how a device adds up", async () => {
  const size = { format: "Q4_K", columns: 256, rows: 8 };
  const { capabilities } = await testGpu();
  for (const style of STYLES) {
    if (style === "subgroup" && capabilities.subgroupSize === 0) continue;
    const rows = [1, 3, 8];
    assertEquals(await check(size, style, { rows }), []);
    assertEquals(await checkQ8(size, style, { rows }), []);
  }
});

gpuTest("GPU products of 8 bit need no packed dots", async () => {
  const gpu = await gpuWith({ packedDot: false });
  for (const format of ["Q8_0", "Q6_K"]) {
    const columns = getFormat(format).blockSize;
    const size = { format, columns, rows: 9 };
    assertEquals(await checkQ8(size, "workgroup", { gpu, rows: [1, 9] }), []);
  }
});

gpuTest("a weight over the limit of a binding is multiplied part by part", async () => {
  // 1,200 rows of 96 columns have 57,600 bytes of codes.
  const size = { format: "Q4_0", columns: 96, outputs: 1199, rows: 9 };
  const gpu = await gpuWith({ maxBindingBytes: 50_000 });
  assertEquals(await checkQ8(size, "workgroup", { gpu, rows: [1, 9] }), []);
});

gpuTest("parts of a weight begin where bindings may, whatever the limit is", async () => {
  // 21,000 rows of 96 columns have 2,016,000 bytes of codes, and 1,000,003 is no multiple of 256.
  const size = { format: "Q8_0", columns: 96, outputs: 21_000, rows: 2 };
  const gpu = await gpuWith({ maxBindingBytes: 1_000_003 });
  const { device } = gpu, { createBindGroup } = device, odd: number[] = [];
  device.createBindGroup = (descriptor) => {
    for (const { resource } of descriptor.entries) {
      if ("buffer" in resource && (resource.offset ?? 0) % 256 > 0) odd.push(resource.offset!);
      if ("buffer" in resource && (resource.size ?? 0) > 1_000_003) odd.push(resource.size!);
    }
    return createBindGroup.call(device, descriptor);
  };
  try {
    assertEquals(await checkQ8(size, "workgroup", { gpu, rows: [1, 2] }), []);
  } finally {
    device.createBindGroup = createBindGroup;
  }
  assertEquals(odd, []);
});

gpuTest("splits are added up in one order: a product has the same bits again", async () => {
  const { inputs: [x, weight], ...rest } = product({ format: "F16", columns: 1160, outputs: 132 });
  const opCase = { ...rest, inputs: [x, weight] };
  const made = plan(caseGraph("matmul", opCase), { limits: { M: 70 } });
  const device = createGpuBackend({ gpu: await testGpu() });
  const executable = await device.prepare(made, { slots: 0 });
  (executable.input("input0") as Float32Array).set((x as { data: Float32Array }).data);
  const results = new Set<string>();
  for (const rows of [50, 50, 20, 50, 64, 50]) {
    await executable.run({ M: rows });
    const y = (executable.output("output0") as Float32Array).slice(0, rows * 132);
    if (rows === 50) results.add(new Uint8Array(y.buffer).toBase64());
  }
  executable.dispose();
  assertEquals(results.size, 1);
});

gpuTest("narrow products with many columns are split over the columns", async () => {
  const size = { format: "Q4_0", columns: 2048, outputs: 35, rows: 20 };
  assertEquals(await check(size, "workgroup", { rows: [20], ofLargest: 2e-5 }), []);
  assertEquals(await checkQ8(size, "workgroup", { rows: [20] }), []);
});

gpuTest(
  "products of activations near 60,000 pass the range of float16 and stay right",
  async () => {
    for (const format of ["F16", "Q8_0"]) {
      const columns = 64, rows = 9;
      const { inputs: [x, weight], ...rest } = product({ format, columns, outputs: 4, rows });
      const data = (x as { readonly data: Float32Array }).data.map((value) => 60_000 + 100 * value);
      const opCase = { ...rest, inputs: [{ ...x, data } as CaseInput, weight] };
      const run = { rows: [1, 9] };
      const float = { ...run, kernel: "gpu_matmul_f32_workgroup" };
      assertEquals(await differingRows("matmul", opCase, float), []);
      if (!hasGpuIntegerKernel(format)) continue;
      const integer = { ...run, kernel: "gpu_matmul_q8_workgroup", ofLargest: Q8_TOLERANCE };
      assertEquals(await differingRows("matmul", quantized(opCase), integer), []);
    }
  },
);

gpuTest(
  "a row that is not finite gives no numbers, and leaves the others as they are",
  async () => {
    const rows = 20, columns = 512, counts = { rows: [3, rows] };
    for (const special of [NaN, Infinity]) {
      const of = (format: string, attributes = {}): OpCase => {
        const { inputs: [x, ...others], ...rest } = product({ format, columns, outputs: 36, rows });
        const { data } = x as { readonly data: Float32Array };
        return {
          ...{ ...rest, attributes },
          inputs: [{ ...x, data: data.with(2 * columns + 7, special) } as CaseInput, ...others],
        };
      };
      for (const style of STYLES) {
        const centred = of("F32", { centred: true, epsilon: 1e-5 }), bytes = quantized(of("Q4_0"));
        const floats = { ...counts, kernel: `gpu_matmul_centred_f32_${style}`, ofLargest: 2e-5 };
        assertEquals(await differingRows("matmul", centred, floats), []);
        const integers = { ...counts, kernel: `gpu_matmul_q8_${style}`, ofLargest: Q8_TOLERANCE };
        assertEquals(await differingRows("matmul", bytes, integers), []);
      }
    }
  },
);
