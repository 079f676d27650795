// What stands between the products in the GPU bench, and what is fused with them.

import { activationFunction } from "../../gpu/kernels/element_functions.ts";
import { gemvQ8Steps } from "../../gpu/kernels/matmul/gemv_q8.ts";
import { gluWorkgroup, gluWorkgroups, matmulGluQ8 } from "../../gpu/kernels/matmul/glu_q8.ts";
import { workgroupOutputs } from "../../gpu/kernels/matmul/rows.ts";
import { MATMUL_TUNING, teamsFor } from "../../gpu/kernels/matmul/tuning.ts";
import { normMatmulQ8 } from "../../gpu/kernels/matmul/norm_matmul_q8.ts";
import { gluQ8, QUANTIZE_QUADS } from "../../gpu/kernels/quantize_q8.ts";
import { rmsNormQ8 } from "../../gpu/kernels/rms_norm_q8.ts";
import { gpuLayoutOf } from "../../gpu/weight_layout.ts";
import { q8RowBytes } from "../../quant/q8_activation.ts";
import type { BenchCase, BenchChoice } from "./case.ts";
import { planesOf, rotations } from "./cases.ts";

/** Kernels between the products. */
export function rowCases({ capabilities, small }: BenchChoice): BenchCase[] {
  const rows = small ? [1] : [1, 512];
  const subgroupSize = capabilities.subgroupSize >= 8 ? capabilities.subgroupSize : 0;
  const subgroups = subgroupSize > 0;
  return rows.flatMap((count): BenchCase[] => [
    ...[576, 2048, 4096].flatMap((columns) =>
      [64, 128, 256, 512].map((workgroup): BenchCase => ({
        group: "rows",
        name: `rms_norm_q8 ${count}×${columns}`,
        variant: `workgroup ${workgroup}`,
        bytes: 4 * count * columns,
        runs: 32,
        dispatches(timer) {
          const shader = rmsNormQ8({
            ...{ columns, weight: true, epsilon: 1e-5, base: 0, workgroup, subgroupSize },
          });
          const storage = {
            x: timer.room(4 * count * columns),
            y: timer.room(count * q8RowBytes(columns)),
            gain: timer.room(4 * columns),
          };
          return Array.from({ length: 32 }, () => ({
            shader,
            storage,
            uniforms: { rows: count },
            workgroups: [count],
          }));
        },
      }))
    ),
    ...[1536, 8192, 14336].map((columns): BenchCase => ({
      group: "rows",
      name: `glu_q8 ${count}×${columns}`,
      variant: "chosen",
      bytes: 8 * count * columns,
      runs: 32,
      dispatches(timer) {
        const quads = count * columns / 4;
        const storage = {
          gate: timer.room(4 * count * columns),
          up: timer.room(4 * count * columns),
          y: timer.room(count * q8RowBytes(columns)),
        };
        return Array.from({ length: 32 }, () => ({
          shader: gluQ8({ columns, subgroups }, activationFunction("silu")),
          storage,
          uniforms: { quads },
          workgroups: [Math.ceil(quads / QUANTIZE_QUADS)],
        }));
      },
    })),
  ]);
}

const NORM = { weight: true, epsilon: 1e-5, base: 0 } as const;

/** One row of products that take the norm before them or the gate after them along. */
export function fusedCases(choice: BenchChoice): BenchCase[] {
  const { capabilities, small } = choice;
  if (capabilities.subgroupSize < 8) return [];
  const sizes = small ? [[256, 128]] : [[576, 960], [576, 3072], [2048, 3072], [2048, 16384]];
  return (sizes as [number, number][]).flatMap(([columns, outputs]) => [
    normCase(choice, columns, outputs),
    ...[false, true].flatMap((norm) =>
      [8, 16, 32].filter((lanes) =>
        lanes <= capabilities.subgroupSize && gluWorkgroup(lanes) <= capabilities.maxWorkgroupSize
      ).map((lanes) => gluCase(choice, { columns, outputs, lanes, norm }))
    ),
  ]);
}

function normCase(
  { capabilities, formats: [format], small }: BenchChoice,
  columns: number,
  outputs: number,
): BenchCase {
  const planes = planesOf(format!, columns, outputs);
  const runs = rotations(planes.bytes, small);
  const { packedDot, subgroupSize } = capabilities;
  const params = {
    ...teamsFor(capabilities, "subgroup", {
      ...{ kind: "q8", steps: gemvQ8Steps(columns), lines: outputs, rows: 1 } as const,
    }),
    ...{ layout: gpuLayoutOf(format!, columns).id, columns, rows: 1, bias: false, packedDot },
    norm: { ...NORM, subgroupSize },
  };
  return {
    group: "fused",
    name: `norm_matmul ${format} ${columns}×${outputs}`,
    variant: "chosen",
    bytes: planes.bytes,
    runs,
    dispatches(timer) {
      const shader = normMatmulQ8(params);
      const x = timer.room(4 * columns), gain = timer.room(4 * columns);
      const y = timer.room(4 * outputs);
      return Array.from({ length: runs }, () => ({
        shader,
        storage: { x, ...planes.take(timer), y, gain },
        uniforms: { lines: outputs, first: 0, outputs, rows: 1 },
        workgroups: [Math.ceil(outputs / workgroupOutputs(params))],
      }));
    },
  };
}

function gluCase(
  { capabilities, formats: [format], small }: BenchChoice,
  { columns, outputs, lanes, norm }: {
    readonly columns: number;
    readonly outputs: number;
    readonly lanes: number;
    readonly norm: boolean;
  },
): BenchCase {
  const planes = planesOf(format!, columns, outputs);
  const runs = rotations(planes.bytes, small);
  const { packedDot, subgroupSize } = capabilities;
  const results = outputs / 2;
  return {
    group: "fused",
    name: `${norm ? "norm_" : ""}matmul_glu ${format} ${columns}×${outputs}`,
    variant: `lanes ${lanes}`,
    bytes: planes.bytes,
    runs,
    dispatches(timer) {
      const shader = matmulGluQ8({
        ...{ layout: gpuLayoutOf(format!, columns).id, columns, results, lanes, packedDot },
        ...{ unroll: MATMUL_TUNING.unroll, bias: false, activation: activationFunction("silu") },
        ...norm && { norm: { ...NORM, subgroupSize } },
      });
      const x = timer.room(norm ? 4 * columns : q8RowBytes(columns));
      const gain = timer.room(4 * columns), y = timer.room(q8RowBytes(results));
      return Array.from({ length: runs }, () => ({
        shader,
        storage: { x, ...planes.take(timer), y, ...norm && { gain } },
        uniforms: {},
        workgroups: [gluWorkgroups({ results })],
      }));
    },
  };
}
