// Graphs of sizes at which other engines went wrong: more groups of work than a GPU takes along one axis, rows that
// end beside a workgroup or have no element, and results beyond what is allowed (public reports pc-gpu-01, -11, -13).

import { assertEquals, assertRejects } from "@std/assert";
import { type GraphTensor, loadGraph, ResourceError } from "../mod.ts";
import { adapterNeed } from "./support/gpu.ts";
import { testWith } from "./support/skip.ts";
import {
  type GraphParts,
  longs,
  type NodeParts,
  type Tensor,
  writeOnnx,
} from "./support/write_onnx.ts";

const F32 = 1, I64 = 7;

/** A graph of one node over x, and constants of whole numbers. */
function oneNode(
  op: string,
  { inputs = ["x"], attributes = {}, ...more }:
    & Partial<Pick<NodeParts, "inputs" | "attributes">>
    & Partial<Pick<GraphParts, "initializers">> = {},
): Uint8Array {
  return writeOnnx({
    nodes: [{ op, inputs, outputs: ["y"], attributes }],
    inputs: [["x", F32, ["N", "M"]]],
    outputs: [["y", F32, ["P", "Q"]]],
    ...more,
  });
}

async function run(
  file: Uint8Array,
  { x, device, ...options }: {
    readonly x: GraphTensor;
    readonly device: "wasm" | "gpu";
    readonly maxActivationBytes?: number;
  },
): Promise<GraphTensor> {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    await Deno.writeFile(path, file);
    using graph = await loadGraph(path, { device, ...options });
    return (await graph.run({ x })).y as GraphTensor;
  } finally {
    await Deno.remove(path);
  }
}

/** A constant. */
function whole(name: string, ...values: number[]): Tensor {
  return { name, type: I64, dims: [values.length], raw: longs(...values) };
}

/** Whole numbers below 8, so that sums of 65,537 of them are exact in any order. */
function numbers(rows: number, columns: number): GraphTensor & { readonly data: Float32Array } {
  const data = Float32Array.from({ length: rows * columns }, (_, i) => (i * 7 + (i >> 5)) % 8);
  return { data, dims: [rows, columns] };
}

for (const device of ["wasm", "gpu"] as const) {
  const needs = device === "gpu" ? [adapterNeed] : [];
  const name = (what: string) => `${what} on ${device}`;

  testWith(
    needs,
    name("sums of 4,194,241 elements and products of 70,000 rows are whole"),
    async () => {
      // One element more than 65,535 groups of 64 take.
      const x = numbers(1, 4_194_241);
      const { data } = await run(oneNode("Add", { inputs: ["x", "x"] }), { x, device });
      const wrong = (data as Float32Array).findIndex((value, i) => value !== 2 * x.data[i]!);
      assertEquals([data.length, wrong], [x.data.length, -1]);

      const many = numbers(70_000, 4);
      const initializers = [{
        name: "w",
        type: F32,
        dims: [4, 2],
        floats: [1, 2, 4, 8, 16, 32, 64, 128],
      }];
      const product = await run(oneNode("MatMul", { inputs: ["x", "w"], initializers }), {
        ...{ x: many, device },
      });
      const sums = product.data as Float32Array;
      const wrongRow = Array.from({ length: 70_000 }, (_, row) => row).find((row) => {
        const [a, b, c, d] = many.data.subarray(4 * row) as unknown as [
          number,
          number,
          number,
          number,
        ];
        const one = a + 4 * b + 16 * c + 64 * d;
        return sums[2 * row] !== one || sums[2 * row + 1] !== 2 * one;
      });
      assertEquals(wrongRow, undefined);
    },
  );

  testWith(
    needs,
    name("rows that end beside a workgroup are summed, accumulated and searched"),
    async () => {
      const axes = whole("axes", 1);
      const sum = oneNode("ReduceSum", { inputs: ["x", "axes"], initializers: [axes] });
      const running = oneNode("CumSum", { inputs: ["x", "axes"], initializers: [axes] });
      const largest = writeOnnx({
        nodes: [{ op: "ArgMax", inputs: ["x"], outputs: ["y"], attributes: { axis: { i: 1 } } }],
        inputs: [["x", F32, ["N", "M"]]],
        outputs: [["y", I64, ["P", "Q"]]],
      });
      for (const count of [0, 1, 255, 256, 257, 65_536, 65_537]) {
        const x = numbers(2, count);
        const totals = [0, 1].map((row) =>
          x.data.subarray(row * count, (row + 1) * count).reduce((a, b) => a + b, 0)
        );
        const { data } = await run(sum, { x, device });
        assertEquals([...data as Float32Array], totals, `${count}`);
        const { data: steps } = await run(running, { x, device });
        assertEquals(steps.length, 2 * count);
        const last = [count - 1, 2 * count - 1].map((i) => (steps as Float32Array)[i] ?? 0);
        assertEquals(last, totals, `${count}`);
        if (count === 0) continue; // where none is the largest
        x.data[count - 1] = 9;
        x.data[2 * count - 1] = 9;
        const { data: places } = await run(largest, { x, device });
        assertEquals([...places as BigInt64Array].map(Number), [count - 1, count - 1]);
      }
    },
  );

  testWith(needs, name("windows and products over 70,000 elements are whole"), async () => {
    const x = numbers(2, 70_000), rows = [0, 1].map((row) => x.data.subarray(70_000 * row));
    const dot = (a: Float32Array, b: Float32Array) => {
      let sum = 0;
      for (let i = 0; i < 70_000; i++) sum += a[i]! * b[i]!;
      return sum;
    };
    const ones = new Float32Array(70_000).fill(1);
    const raw = new Uint8Array(ones.buffer);
    const planes = (op: string, more: Partial<NodeParts>, initializers: readonly Tensor[] = []) =>
      writeOnnx({
        nodes: [
          { op: "Unsqueeze", inputs: ["x", "axes"], outputs: ["planes"] },
          { op, inputs: ["planes"], outputs: ["y"], ...more },
        ],
        inputs: [["x", F32, ["N", "M"]]],
        outputs: [["y", F32, ["P", "Q", "R"]]],
        initializers: [whole("axes", 1), ...initializers],
      });
    x.data[139_999] = 9; // the largest is the last
    const pooled = planes("MaxPool", { attributes: { kernel_shape: { ints: [70_000] } } });
    const filter = { name: "w", type: F32, dims: [1, 1, 70_000], raw };
    const convolved = planes("Conv", { inputs: ["planes", "w"] }, [filter]);
    const product = writeOnnx({
      nodes: [
        { op: "Transpose", inputs: ["x"], outputs: ["t"] },
        { op: "MatMul", inputs: ["x", "t"], outputs: ["y"] },
      ],
      inputs: [["x", F32, ["N", "M"]]],
      outputs: [["y", F32, ["N", "K"]]],
    });
    const gave = async (
      file: Uint8Array,
    ) => [...(await run(file, { x, device })).data as Float32Array];
    assertEquals(await gave(pooled), [7, 9]);
    assertEquals(await gave(convolved), rows.map((row) => dot(row, ones)));
    const products = rows.flatMap((a) => rows.map((b) => dot(a, b)));
    assertEquals(await gave(product), products);
  });

  testWith(
    needs,
    name("a result of 3 GiB where 1 GiB is allowed is refused with its node and its bytes"),
    async () => {
      const repeats = whole("repeats", 768, 1024);
      const tile = oneNode("Tile", { inputs: ["x", "repeats"], initializers: [repeats] });
      await assertRejects(
        () => run(tile, { x: numbers(32, 32), device, maxActivationBytes: 2 ** 30 }),
        ResourceError,
        "y: Cannot plan g: activations take 3072.0 MiB, the limit is 1024.0 MiB",
      );
    },
  );
}
