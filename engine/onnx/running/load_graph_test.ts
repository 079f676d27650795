import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { TroodonError, UnsupportedError } from "../../errors.ts";
import { onnxSeeds } from "../../../tests/support/fuzz_onnx.ts";
import { floats, type GraphParts, longs, writeOnnx } from "../../../tests/support/write_onnx.ts";
import { openStructure, readOnnx } from "../file/open_onnx.ts";
import { memorySource } from "../../io.ts";
import type { Backend } from "../../run/backend.ts";
import { openDevice } from "../../run/devices.ts";
import { kernelNames } from "../../run/kernel_choice.ts";
import { WASM_KERNELS } from "../../run/wasm/kernel_table.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import type { GraphTensor, GraphValue } from "./graph_tensor.ts";
import type { LoadedGraph, LoadGraphOptions } from "./graph_types.ts";
import { loadGraph } from "./load_graph.ts";
import { openGraph } from "./open_graph.ts";
import { planGraph } from "./plan_graph.ts";

const SMALL = { device: "reference" } as const;
const DEVICE = await openDevice("wasm", {});

async function withGraph(
  file: Uint8Array,
  use: (graph: LoadedGraph) => Promise<void>,
  options: LoadGraphOptions = SMALL,
): Promise<void> {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    await Deno.writeFile(path, file);
    using graph = await loadGraph(path, options);
    await use(graph);
  } finally {
    await Deno.remove(path);
  }
}

function tensor(values: readonly number[], dims: readonly number[]): GraphTensor {
  return { data: Float32Array.from(values), dims };
}

function ones(...dims: number[]): GraphTensor {
  return { data: new Float32Array(dims.reduce((a, b) => a * b, 1)).fill(1), dims };
}

function plain(value: GraphValue | undefined) {
  const { data, dims } = value as GraphTensor;
  return { data: Array.from(data as ArrayLike<number>, Number), dims };
}

const [shapeChain, controlFlow, convolution, functions] = onnxSeeds();

for (const device of ["reference", "wasm"] as const) {
  Deno.test(`a chain of shape ops, weights and a reshape run on ${device}`, () =>
    withGraph(shapeChain!, async (graph) => {
      const { y, z } = await graph.run({ x: ones(3, 4), mask: ones(1, 2) });
      const row = [24, 28, 32, 36];
      assertEquals(plain(y), { data: [...row, ...row, ...row], dims: [3, 2, 2] });
      assertEquals(plain(z), { data: Array(6).fill(5), dims: [3, 2] });
      const less = await graph.run({ x: ones(1, 4), mask: ones(1, 7) }, { outputs: ["z"] });
      assertEquals([Object.keys(less), plain(less.z).dims], [["z"], [1, 7]]);
    }, { device, threads: 1 }));

  Deno.test(`If and Loop see the values around them on ${device}`, () =>
    withGraph(controlFlow!, async (graph) => {
      const x = tensor([1, -2], [2]);
      for (const [c, expected] of [[1, [-1, 2]], [0, [1, 0]]] as const) {
        const { y, last, rows } = await graph.run({ x, c: { data: Uint8Array.of(c), dims: [] } });
        assertEquals(plain(y).data, [...expected]);
        assertEquals(plain(last).data, [4, -8]);
        assertEquals(plain(rows), { data: [2, -4, 3, -6, 4, -8], dims: [3, 2] });
      }
    }, { device, threads: 1 }));

  Deno.test(`a convolution and the largest of a row run on ${device}`, () =>
    withGraph(convolution!, async (graph) => {
      const { y, i } = await graph.run({ x: ones(1, 2, 3, 4) });
      assertEquals(plain(y).dims, [1, 3, 3, 4]);
      // The middle of the first map: the sum of all 18 weights.
      assertEquals(plain(y).data[5], 153);
      assertEquals(plain(i), { data: Array(9).fill(1), dims: [1, 3, 3] });
    }, { device, threads: 1 }));
}

Deno.test("a function of the file is expanded in place", () =>
  withGraph(functions!, async (graph) => {
    const { y } = await graph.run({ x: tensor([1, 3], [2]) });
    assertEquals(plain(y).data, [4, 12]);
  }));

Deno.test("inputs and outputs say name, type and sizes", () =>
  withGraph(shapeChain!, (graph) => {
    assertEquals(graph.inputs, [
      { name: "x", type: "float32", dims: ["N", 4], required: true },
      { name: "mask", type: "float32", dims: [1, "sumN"], required: true },
    ]);
    assertEquals(graph.outputs.map(({ name }) => name), ["y", "z"]);
    return Promise.resolve();
  }));

Deno.test("a wrong input is an error with its name, what was given and what is expected", () =>
  withGraph(shapeChain!, async (graph) => {
    const mask = ones(1, 2);
    const refuse = async (inputs: Record<string, GraphValue>, message: RegExp) => {
      const error = await assertRejects(() => graph.run(inputs)) as Error;
      assert(error instanceof TypeError || error instanceof RangeError);
      assertMatch(error.message, message);
    };
    await refuse({ mask }, /input "x" \(f32\[N, 4\]\) is missing/);
    await refuse(
      { x: ones(3, 5), mask },
      /input "x" is f32\[3, 5\], the model expects f32\[N, 4\]/,
    );
    await refuse({ x: ones(3, 4), mask, w: mask }, /no input "w" \(inputs: x, mask\)/);
    const whole = { data: new Int32Array(12), dims: [3, 4] };
    await refuse({ x: whole, mask }, /input "x" is i32\[3, 4\], the model expects f32/);
    await refuse({ x: { data: new Float32Array(3), dims: [3, 4] }, mask }, /"x" has 3 elements/);
    const listed = { data: [1, 2, 3, 4] as unknown as string[], dims: [1, 4] };
    await refuse({ x: listed, mask }, /"x" is a plain array .* Float32Array\.from\(data\)/);
    const bare = new Float32Array(4) as unknown as GraphValue;
    await refuse({ x: bare, mask }, /"x" is no tensor\. Give one with its sizes: \{ data, dims/);
    await refuse({ x: null, mask }, /input "x" is null/);
    const error = await assertRejects(
      () => graph.run({ x: ones(1, 4), mask }, { outputs: ["q"] }),
      TypeError,
    );
    assertMatch(error.message, /no output "q" \(outputs: y, z\)/);
  }));

Deno.test("float16 goes in and out as Float16Array", () =>
  withGraph(
    writeOnnx({
      inputs: [["x", 10, [2]]],
      outputs: [["y", 10, [2]]],
      nodes: [{ op: "Add", inputs: ["x", "x"], outputs: ["y"] }],
    }),
    async (graph) => {
      const { y } = await graph.run({ x: { data: Float16Array.of(1.5, -3), dims: [2] } });
      const { data, type } = y as GraphTensor;
      assert(data instanceof Float16Array);
      assertEquals([[...data], type], [[3, -6], "float16"]);
    },
  ));

Deno.test("all that is not supported is listed in one error before anything runs", async () => {
  const file = writeOnnx({
    inputs: [["x", 1, [4]]],
    outputs: [["y", 1, [4]]],
    nodes: [
      { op: "Conv3000", name: "first", inputs: ["x"], outputs: ["a"] },
      { op: "Relu", name: "second", domain: "com.acme", inputs: ["a"], outputs: ["b"] },
      {
        op: "Softmax",
        name: "third",
        inputs: ["b"],
        outputs: ["y"],
        attributes: { axis: { s: "1" } },
      },
    ],
  }, { opsets: { "": 17, "com.acme": 1 } });
  const error = await assertRejects(
    () => withGraph(file, () => Promise.resolve()),
    UnsupportedError,
  );
  assertMatch(error.message, /Conv3000 at first/);
  assertMatch(error.message, /com\.acme\.Relu at second/);
  assertMatch(error.message, /Softmax at third: attribute "axis" must be of kind int/);
});

// What is wrong with a graph, and what the message must say.
const WRONG: readonly (readonly [name: string, graph: Partial<GraphParts>, message: RegExp])[] = [
  [
    "an input that nothing makes",
    { nodes: [{ op: "Relu", name: "r", inputs: ["q"], outputs: ["y"] }] },
    /node r \(Relu\): input "q" is produced by nothing/,
  ],
  [
    "a cycle",
    {
      nodes: [
        { op: "Add", name: "a", inputs: ["x", "b"], outputs: ["y"] },
        { op: "Neg", name: "n", inputs: ["y"], outputs: ["b"] },
      ],
    },
    /node a \(Add\): it waits for its own result/,
  ],
  [
    "a name written twice",
    {
      nodes: [
        { op: "Relu", inputs: ["x"], outputs: ["y"] },
        { op: "Neg", name: "n", inputs: ["x"], outputs: ["y"] },
      ],
    },
    /node n \(Neg\): output "y" is written twice/,
  ],
  ["an output that nothing makes", { nodes: [] }, /output "y" is produced by nothing/],
  [
    "a required input left empty",
    { nodes: [{ op: "Relu", name: "r", inputs: [""], outputs: ["y"] }] },
    /Relu at r: input 0/,
  ],
  [
    "an axis that its declared sizes lack",
    {
      nodes: [
        { op: "Softmax", name: "s", inputs: ["x"], outputs: ["y"], attributes: { axis: { i: 7 } } },
      ],
    },
    /\.onnx: node s \(Softmax\): axis 7 is outside a tensor of 1 dims/,
  ],
  [
    "a shape that its declared sizes do not fill",
    {
      initializers: [{ name: "to", type: 7, dims: [2], raw: longs(3, -1) }],
      nodes: [{ op: "Reshape", name: "r", inputs: ["x", "to"], outputs: ["y"] }],
    },
    /\.onnx: node r \(Reshape\): .*cannot view 4 elements as 3/,
  ],
];

for (const [name, graph, message] of WRONG) {
  Deno.test(`a graph with ${name} is refused`, async () => {
    const file = writeOnnx({
      inputs: [["x", 1, [4]]],
      outputs: [["y", 1, [4]]],
      nodes: [],
      ...graph,
    });
    const run = (loaded: LoadedGraph) => loaded.run({ x: ones(4) }).then(() => {});
    const error = await assertRejects(() => withGraph(file, run), TroodonError);
    assertMatch(error.message, message);
    assertMatch(error.file!, /\.onnx$/);
  });
}

Deno.test("nodes in any order run in theirs", () =>
  withGraph(
    writeOnnx({
      inputs: [["x", 1, [2]]],
      outputs: [["y", 1, [2]]],
      nodes: [
        { op: "Neg", inputs: ["r"], outputs: ["y"] },
        { op: "Relu", inputs: ["x"], outputs: ["r"] },
      ],
    }),
    async (graph) => {
      assertEquals(plain((await graph.run({ x: tensor([2, -2], [2]) })).y).data, [-2, -0]);
    },
  ));

Deno.test("a loop that would never end can be stopped, and lets timers through", () =>
  withGraph(
    writeOnnx({
      inputs: [["x", 1, [2]]],
      outputs: [["y", 1, [2]]],
      initializers: [
        { name: "trips", type: 7, dims: [], raw: longs(2 ** 62) },
        { name: "go", type: 9, dims: [], raw: Uint8Array.of(1) },
      ],
      nodes: [{
        op: "Loop",
        inputs: ["trips", "go", "x"],
        outputs: ["y"],
        attributes: {
          body: {
            g: {
              inputs: [["i", 7, []], ["on", 9, []], ["v", 1, [2]]],
              outputs: [["on2", 9, []], ["v2", 1, [2]]],
              nodes: [
                { op: "Identity", inputs: ["on"], outputs: ["on2"] },
                { op: "Neg", inputs: ["v"], outputs: ["v2"] },
              ],
            },
          },
        },
      }],
    }),
    async (graph) => {
      const signal = AbortSignal.timeout(200);
      const error = await assertRejects(() => graph.run({ x: ones(2) }, { signal })) as Error;
      assertEquals(error.name, "TimeoutError");
    },
  ));

Deno.test("sizes are derived once: later runs bind them and prepare nothing", async () => {
  const reference = createReferenceBackend();
  let prepared = 0;
  const counting: Backend = {
    ...reference,
    prepare(...args) {
      prepared++;
      return reference.prepare(...args);
    },
  };
  const device = { ...await openDevice("reference", {}), backend: counting };
  const runtime = { device, reference: counting, maxBytes: 2 ** 20 };
  const graph = openGraph(readOnnx(memorySource("m", shapeChain!)), {
    ...runtime,
    limits: { N: 4, sumN: 8 },
  });
  const feed = (rows: number, columns: number) =>
    new Map(
      [
        ["x", { dtype: "f32", shape: [rows, 4], data: new Float32Array(4 * rows) }],
        ["mask", { dtype: "f32", shape: [1, columns], data: new Float32Array(columns) }],
      ] as const,
    );
  for (const [rows, columns] of [[2, 3], [4, 8], [1, 1], [3, 2]] as const) {
    await graph.run(feed(rows, columns));
  }
  assertEquals([prepared, [...graph.reasons]], [1, []]);
  // Beyond the limits memory is planned anew, once.
  await graph.run(feed(5, 3));
  await graph.run(feed(5, 16));
  assertEquals(prepared, 3);
  graph.dispose();
});

for (const device of ["reference", "wasm"] as const) {
  Deno.test(`a run is bound to its own shapes, outputs and order of inputs, whatever the one before had, on ${device}`, () =>
    withGraph(shapeChain!, async (graph) => {
      const x3 = ones(3, 4), x1 = ones(1, 4), mask2 = ones(1, 2), mask7 = ones(1, 7);
      const runs: [Record<string, GraphTensor>, string[], Record<string, number[]>][] = [
        [{ x: x3, mask: mask2 }, ["y", "z"], { y: [3, 2, 2], z: [3, 2] }],
        [{ x: x3, mask: mask2 }, ["y", "z"], { y: [3, 2, 2], z: [3, 2] }],
        [{ mask: mask2, x: x3 }, ["y", "z"], { y: [3, 2, 2], z: [3, 2] }],
        [{ x: x3, mask: mask2 }, ["z"], { z: [3, 2] }],
        [{ x: x3, mask: mask2 }, ["z", "y"], { z: [3, 2], y: [3, 2, 2] }],
        [{ x: x1, mask: mask2 }, ["z", "y"], { z: [1, 2], y: [1, 2, 2] }],
        [{ x: x1, mask: mask7 }, ["z", "y"], { z: [1, 7], y: [1, 2, 2] }],
        [{ x: x3, mask: mask2 }, ["y", "z"], { y: [3, 2, 2], z: [3, 2] }],
      ];
      for (const [i, [inputs, outputs, dims]] of runs.entries()) {
        const results = await graph.run(inputs, { outputs });
        assertEquals(Object.keys(results), outputs);
        for (const [name, wanted] of Object.entries(dims)) {
          const found = plain(results[name]);
          assertEquals(found.dims, wanted, `run ${i}, ${name}`);
          if (name === "z") assert(found.data.every((value) => value === 5), `run ${i}`);
          // What the caller does to a result stays with that result.
          (found.dims as number[]).fill(99);
          ((results[name] as GraphTensor).data as Float32Array).fill(-1);
        }
      }
    }, { device, threads: 1 }));
}

Deno.test("results go into arrays of the caller, whose kind and length are checked", async () => {
  for (const [file, name] of [[shapeChain!, "z"], [controlFlow!, "y"]] as const) {
    await withGraph(file, async (graph) => {
      const inputs: Record<string, GraphValue> = name === "z"
        ? { x: ones(2, 4), mask: ones(1, 3) }
        : { x: ones(6), c: { data: Uint8Array.of(0), dims: [] } };
      const room = new Float32Array(9).fill(-1);
      const result = (await graph.run(inputs, { into: { [name]: room } }))[name] as GraphTensor;
      assertEquals((result.data as Float32Array).buffer, room.buffer);
      assertEquals([result.data.length, room[5], room[6]], [6, name === "z" ? 5 : 1, -1]);
      await assertRejects(
        () => graph.run(inputs, { into: { [name]: new Float32Array(5) } }),
        RangeError,
        `"${name}": it has 6 elements, the array 5`,
      );
      await assertRejects(
        () => graph.run(inputs, { into: { [name]: new Int32Array(9) } }),
        TypeError,
        `result "${name}" (f32)`,
      );
    });
  }
});

Deno.test("a graph tells what a run would take, and where the time of runs went", () =>
  withGraph(shapeChain!, async (graph) => {
    const { outputs, steps, arenaBytes, lowerBoundBytes } = graph.plan({ N: 3, sumN: 5 });
    assertEquals(outputs, { y: [3, 2, 2], z: [3, 5] });
    assertEquals(steps, 3);
    assert(lowerBoundBytes <= arenaBytes);
    for (const N of [1.5, -1, "2" as unknown as number]) {
      assertThrows(() => graph.plan({ N, sumN: 5 }), RangeError, `Cannot bind N to ${N}`);
    }
    await graph.run({ x: ones(3, 4), mask: ones(1, 5) });
    const entries = graph.profile();
    assert(entries.some(({ name }) => name.startsWith("matmul")), JSON.stringify(entries));
    assert(entries.every(({ calls, ms }) => calls >= 1 && ms >= 0));
  }, { device: "wasm", threads: 1, profile: true }));

Deno.test("a profile of a graph that was loaded without it is refused, not empty", () =>
  withGraph(shapeChain!, async (graph) => {
    await graph.run({ x: ones(3, 4), mask: ones(1, 5) });
    assertThrows(() => graph.profile(), TypeError, "Load the graph with profile: true");
  }, { device: "wasm", threads: 1 }));

Deno.test("a whole file of another kind is called that, a cut graph is called cut", async () => {
  const file = await Deno.makeTempFile();
  try {
    const texts = new TextEncoder();
    for (
      const [bytes, what] of [
        [texts.encode("GGUF\x03\0\0\0"), /is a GGUF file, not an ONNX graph.*load\(\)/],
        [texts.encode("def f():\n    return 1\n"), /it is a text\. .* are opened$/],
        [texts.encode("<!doctype html><p>"), /is an HTML page/],
        [new Uint8Array(0), /is empty/],
        [shapeChain!.subarray(0, 90), /cut short or damaged/],
      ] as const
    ) {
      Deno.writeFileSync(file, bytes);
      const error = await assertRejects(() => loadGraph(file, { device: "wasm", threads: 1 }));
      assertMatch((error as Error).message, what);
    }
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("a device that there is not is refused with those that there are", async () => {
  const options = { device: "cuda" as "gpu" };
  await assertRejects(
    () => withGraph(shapeChain!, () => Promise.resolve(), options),
    RangeError,
    'device "cuda": it is one of auto, wasm, gpu, reference',
  );
});

Deno.test("limits of symbols that the graph lacks, or below 1, are refused", async () => {
  for (
    const [limits, message] of [[{ Q: 3 }, /"Q": the inputs have N, sumN/], [
      { N: 0 },
      /"N" to 0/,
    ]] as const
  ) {
    const error = await assertRejects(
      () => withGraph(shapeChain!, () => Promise.resolve(), { ...SMALL, limits }),
      RangeError,
    );
    assertMatch(error.message, message);
  }
});

Deno.test("after derivation no node computes a shape, and memory is close to its bound", () => {
  const model = readOnnx(memorySource("m", shapeChain!));
  const { plan, bindings, assumptions, split } = planGraph(model, {
    bind: { N: 3, sumN: 5 },
    device: DEVICE,
  });
  assertEquals(plan!.steps.map(({ node }) => node.op).sort(), ["binary", "matmul", "reduce"]);
  assertEquals([bindings, assumptions, split], [{ N: 3, sumN: 5 }, [], []]);
});

Deno.test("planning asks for the symbols that it misses, and refuses others", async () => {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeFile(path, shapeChain!);
    const model = openStructure(path);
    const failures = [[{ N: 1 }, /no value for sumN/], [
      { N: 1, sumN: 2, Q: 3 },
      /named Q/,
    ]] as const;
    for (const [bind, message] of failures) {
      const error = await assertRejects(
        () => Promise.try(() => planGraph(model, { bind, device: DEVICE })),
        RangeError,
      );
      assertMatch(error.message, message);
    }
    model.close();
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("with permission for one folder alone, nothing outside of it is even tried", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const product = (location: string) =>
      writeOnnx({
        inputs: [["x", 1, [1, 2]]],
        outputs: [["y", 1, [1, 2]]],
        initializers: [{ name: "W", type: 1, dims: [2, 2], external: { location } }],
        nodes: [{ op: "MatMul", inputs: ["x", "W"], outputs: ["y"] }],
      });
    Deno.mkdirSync(`${folder}/m`);
    Deno.writeFileSync(`${folder}/outside.bin`, floats(1, 2, 3, 4));
    Deno.writeFileSync(`${folder}/m/w.bin`, floats(1, 2, 3, 4));
    Deno.symlinkSync("../outside.bin", `${folder}/m/link.bin`);
    const locations = ["w.bin", "../outside.bin", `${folder}/outside.bin`, "link.bin"];
    locations.forEach((location, i) =>
      Deno.writeFileSync(`${folder}/m/${i}.onnx`, product(location))
    );
    const code = `
      import { loadGraph } from ${JSON.stringify(import.meta.resolve("./load_graph.ts"))};
      for (let i = 0; i < ${locations.length}; i++) {
        try {
          using graph = await loadGraph(${
      JSON.stringify(folder)
    } + "/m/" + i + ".onnx", { device: "reference" });
          const { y } = await graph.run({ x: { data: Float32Array.of(1, 1), dims: [1, 2] } });
          console.log([...y.data].join());
        } catch (error) {
          console.log(error.name + ": " + error.message);
        }
      }`;
    const source = `data:application/typescript;base64,${btoa(code)}`;
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--no-check", `--allow-read=${folder}/m`, source],
    }).output();
    const lines = new TextDecoder().decode(stdout).trim().split("\n");
    assertEquals(lines[0], "4,6");
    assertEquals(lines.length, locations.length);
    for (const line of lines.slice(1, 3)) {
      assertMatch(line, /^FormatError: .*not a plain file name/);
    }
    assertMatch(lines[3]!, /^FormatError: .*link out of its folder|Deno may not read it/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("kernels that are excluded are not taken, and their nodes are computed by the reference", async () => {
  const run = async (excludeKernels: readonly string[]) => {
    const outcome = { names: new Set<string>(), y: [] as number[] };
    await withGraph(convolution!, async (graph) => {
      outcome.y = plain((await graph.run({ x: ones(1, 2, 3, 4) })).y).data;
      outcome.names = new Set(graph.profile().map(({ name }) => name));
    }, { device: "wasm", threads: 1, profile: true, excludeKernels });
    return outcome;
  };
  const usual = await run([]);
  const taken = [...usual.names].filter((name) => name.startsWith("conv"));
  assert(taken.length > 0, [...usual.names].join());
  const every = kernelNames(WASM_KERNELS, "conv");
  const without = await run(every);
  assertEquals(every.filter((name) => without.names.has(name)), []);
  assert(without.names.has("host:conv"), [...without.names].join());
  assertEquals(without.y, usual.y);
});
