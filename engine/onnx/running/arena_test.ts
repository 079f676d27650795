import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { ResourceError } from "../../errors.ts";
import { floats, writeOnnx } from "../../../tests/support/write_onnx.ts";
import { type Arena, createArena } from "./arena.ts";
import type { GraphTensor } from "./graph_tensor.ts";
import type { LoadGraphOptions } from "./graph_types.ts";
import { loadGraph } from "./load_graph.ts";

const WIDTH = 64;

/** softmax(x·W)·W, so that there are activations between. */
function net(rows: number, weight: number): Uint8Array {
  return writeOnnx({
    inputs: [["x", 1, [rows, WIDTH]]],
    outputs: [["y", 1, [rows, WIDTH]]],
    initializers: [{
      name: "W",
      type: 1,
      dims: [WIDTH, WIDTH],
      raw: floats(...Array.from({ length: WIDTH ** 2 }, (_, i) => Math.sin(weight * i))),
    }],
    nodes: [
      { op: "MatMul", inputs: ["x", "W"], outputs: ["a"] },
      { op: "Softmax", inputs: ["a"], outputs: ["b"] },
      { op: "MatMul", inputs: ["b", "W"], outputs: ["y"] },
    ],
  });
}

function input(rows: number): Record<string, GraphTensor> {
  const data = Float32Array.from({ length: rows * WIDTH }, (_, i) => Math.cos(i));
  return { x: { data, dims: [rows, WIDTH] } };
}

async function withNets(use: (small: string, large: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    Deno.writeFileSync(`${folder}/small.onnx`, net(3, 0.1));
    Deno.writeFileSync(`${folder}/large.onnx`, net(500, 0.2));
    await use(`${folder}/small.onnx`, `${folder}/large.onnx`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("nets in one arena give what they give alone, in turns, and take the bytes of the largest", () =>
  withNets(async (smallPath, largePath) => {
    const alone: unknown[] = [];
    const sizes: number[] = [];
    for (const [path, rows] of [[smallPath, 3], [largePath, 500]] as const) {
      using graph = await loadGraph(path, { device: "wasm", threads: 1 });
      sizes.push(graph.plan().arenaBytes);
      alone.push((await graph.run(input(rows))).y);
    }
    const bytes = Math.max(...sizes);
    assert(bytes < sizes[0]! + sizes[1]!);
    using arena = createArena({ bytes, threads: 1 });
    using small = await loadGraph(smallPath, { arena });
    using large = await loadGraph(largePath, { arena });
    assertEquals([small.device, arena.bytes], ["wasm", bytes]);
    for (let round = 0; round < 2; round++) {
      assertEquals([(await small.run(input(3))).y, (await large.run(input(500))).y], alone);
    }
  }));

Deno.test("runs in one arena that overlap are refused, and the first is not disturbed", () =>
  withNets(async (smallPath, largePath) => {
    using arena = createArena({ bytes: 1e6, threads: 1 });
    using small = await loadGraph(smallPath, { arena });
    using large = await loadGraph(largePath, { arena });
    const first = large.run(input(500));
    await assertRejects(
      () => small.run(input(3)),
      TypeError,
      "another graph runs in the same arena",
    );
    const { y } = await first;
    assertEquals((await large.run(input(500))).y, y);
    assertEquals(((await small.run(input(3))).y as GraphTensor).dims, [3, WIDTH]);
  }));

Deno.test("a small arena, another device and threads of a graph in an arena are errors", () =>
  withNets(async (path) => {
    using arena = createArena({ bytes: 64, threads: 1 });
    using graph = await loadGraph(path, { arena });
    const { arenaBytes } = graph.plan();
    await assertRejects(
      () => graph.run(input(3)),
      ResourceError,
      `createArena({ bytes: ${arenaBytes} })`,
    );
    const refused: readonly [LoadGraphOptions, string][] = [
      [{ arena, device: "reference" }, "it is of device wasm"],
      [{ arena, threads: 1 }, "give them to createArena()"],
    ];
    for (const [options, message] of refused) {
      await assertRejects(() => loadGraph(path, options), RangeError, message);
    }
    await assertRejects(() => loadGraph(path, { arena: {} as Arena }), TypeError, "createArena()");
    assertThrows(() => createArena({ bytes: 0 }), RangeError, "0 bytes");
  }));
