// Work beside a user interface: `priority: "low"` cuts steps into pieces and lets events through between them. What a
// heartbeat would feel is counted: submissions, and turns of the event loop.

import { assert, assertEquals, assertGreater, assertRejects, assertThrows } from "@std/assert";
import { metadataAt } from "../engine/models/metadata.ts";
import { openModel } from "../engine/models/open_model.ts";
import { loadTower, openSight, planSight } from "../engine/models/sight/open_sight.ts";
import { paceOf, Pacer } from "../engine/run/pacer.ts";
import {
  generate,
  generateImage,
  load,
  loadGraph,
  loadImageModel,
  type LoadOptions,
} from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { unpackedVisionLanguage } from "./support/vision_language.ts";
import { floats, writeOnnx } from "./support/write_onnx.ts";

Deno.test("a pacer learns what items take, and cuts pieces below the limit", () => {
  const pacer = new Pacer(8);
  const times = [1, 2, 3, 9, 1, 1, 1, 1, 1, 1, 1, 1];
  /** Pieces of a run in which each item takes its time. */
  const pieces = (M: number) => {
    const found: number[] = [];
    pacer.begin({ M }, times.length);
    for (let first = 0; first < times.length;) {
      const count = pacer.take(first);
      const ms = times.slice(first, first + count).reduce((a, b) => a + b, 0);
      pacer.took(first, { count, ms });
      found.push(ms);
      first += count;
    }
    return found;
  };
  assertEquals(pieces(1), times, "nothing is known: one by one");
  // One that is over the limit by itself is alone.
  const cut = [6, 9, 8];
  assertEquals(pieces(1), cut);
  assertEquals(pieces(1), cut);
  assertEquals(pieces(2), times, "other sizes are learnt by themselves");
  assertEquals(pieces(1), cut);
});

Deno.test("times of a piece are shared out by what was expected, also where nothing was", () => {
  const pacer = new Pacer(8);
  pacer.begin({}, 4);
  [1, 1, 2, 4].forEach((ms, i) => pacer.took(i, { count: 1, ms }));
  assertEquals(pacer.take(0), 4);
  pacer.took(0, { count: 4, ms: 16 });
  assertEquals([pacer.take(0), pacer.take(2)], [3, 1]);
  pacer.took(0, { count: 4, ms: 0 });
  pacer.took(0, { count: 4, ms: 40 });
  assertEquals(pacer.take(0), 1);
});

Deno.test("options of priority are checked by name", async () => {
  assertEquals([paceOf({}), paceOf({ priority: "low" })], [undefined, 8]);
  assertEquals(paceOf({ priority: "low", maxSubmitMs: 3 }), 3);
  for (
    const [options, message] of [
      [{ priority: "idle" }, 'priority "idle"'],
      [{ maxSubmitMs: 8 }, 'maxSubmitMs without priority "low"'],
      [{ priority: "low", maxSubmitMs: 0 }, "maxSubmitMs 0"],
    ] as const
  ) {
    assertThrows(() => paceOf(options as LoadOptions), RangeError, message);
    await assertRejects(() => load(TINY_LLAMA, options as LoadOptions), RangeError, message);
  }
});

/** Turns of the event loop that are asked for while something is done: each lets a heartbeat through. */
async function turnsOf(action: () => Promise<unknown>): Promise<number> {
  const { setImmediate } = globalThis;
  let count = 0;
  globalThis.setImmediate = ((callback: () => void) => {
    count++;
    return setImmediate(callback);
  }) as typeof setImmediate;
  try {
    await action();
  } finally {
    globalThis.setImmediate = setImmediate;
  }
  return count;
}

const LONG = "abcabcab".repeat(4);

async function answer(options: LoadOptions): Promise<{ ids: readonly number[]; turns: number }> {
  using model = await load(TINY_LLAMA, { precision: "exact", contextLength: 64, ...options });
  const asked = { maxTokens: 6, temperature: 0, ignoreEos: true };
  let ids: readonly number[] = [];
  const turns = await turnsOf(async () => {
    ({ ids } = await generate(model, LONG, asked).result);
  });
  return { ids, turns };
}

/** So little that each item of a step is a piece, whatever the machine does. */
const LOW = { priority: "low", maxSubmitMs: 1e-6 } as const;

Deno.test("a low priority lets events through within every step on WASM, and answers the same", async () => {
  const normal = await answer({ device: "wasm", threads: 1 });
  const low = await answer({ device: "wasm", threads: 1, ...LOW });
  assertEquals(low.ids, normal.ids);
  // Seven steps of two layers of some ten phases each.
  assertGreater(low.turns, normal.turns + 7 * 15);
});

/** Submissions while something is done. */
async function submissionsOf(action: () => Promise<unknown>): Promise<number> {
  const { submit } = GPUQueue.prototype;
  let count = 0;
  GPUQueue.prototype.submit = function (buffers) {
    count++;
    return submit.call(this, buffers);
  };
  try {
    await action();
  } finally {
    GPUQueue.prototype.submit = submit;
  }
  return count;
}

gpuTest("a low priority cuts steps of a GPU into submissions with turns between them", async () => {
  const runs = async (options: LoadOptions) => {
    let result = { ids: [] as readonly number[], turns: 0 };
    const submissions = await submissionsOf(async () => {
      result = await answer({ device: "gpu", stepsAhead: 0, ...options });
    });
    return { ...result, submissions };
  };
  const normal = await runs({}), low = await runs(LOW);
  assertEquals(low.ids, normal.ids);
  assertGreater(low.submissions, normal.submissions + 7 * 10);
  assertGreater(low.turns, normal.turns + 7 * 10);
  // With room for all of a step it is one submission again, once its times are known.
  const roomy = await runs({ priority: "low", maxSubmitMs: 1e9 });
  assertEquals(roomy.ids, normal.ids);
  assert(roomy.submissions < low.submissions);
});

Deno.test("graphs take a priority, too", async () => {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    const side = 32, w = floats(...Array.from({ length: side * side }, (_, i) => Math.sin(i)));
    const names = Array.from({ length: 9 }, (_, i) => `x${i}`);
    await Deno.writeFile(
      path,
      writeOnnx({
        inputs: [["x0", 1, [side, side]]],
        outputs: [["x8", 1, [side, side]]],
        initializers: [{ name: "w", type: 1, dims: [side, side], raw: w }],
        nodes: names.slice(1).map((name, i) => ({
          ...{ op: "MatMul", inputs: [names[i]!, "w"], outputs: [name] },
        })),
      }),
    );
    const x0 = { data: new Float32Array(side * side).fill(1e-3), dims: [side, side] };
    const run = async (options: Parameters<typeof loadGraph>[1]) => {
      using graph = await loadGraph(path, { device: "wasm", threads: 1, ...options });
      const expected = await graph.run({ x0 });
      let again;
      const turns = await turnsOf(async () => again = await graph.run({ x0 }));
      assertEquals(again, expected);
      return { turns, expected };
    };
    const normal = await run({}), low = await run(LOW);
    assertEquals(low.expected, normal.expected);
    assertGreater(low.turns, normal.turns + 6);
    await assertRejects(() => loadGraph(path, { maxSubmitMs: 1 }), RangeError, "without priority");
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("models that paint take a priority, too", async () => {
  const paint = async (options: Parameters<typeof loadImageModel>[1]) => {
    const on = { device: "wasm", threads: 1, ...options } as const;
    using model = await loadImageModel(fixturePath("pictures/sd_toy"), on);
    const size = { width: 16, height: 16, steps: 1, seed: 1 };
    let painted;
    const turns = await turnsOf(async () => painted = await generateImage(model, "a cat", size));
    return { turns, painted };
  };
  const normal = await paint({}), low = await paint(LOW);
  assertEquals(low.painted, normal.painted);
  assertGreater(low.turns, normal.turns + 50);
});

Deno.test("what looks at pictures of a chat takes a priority, too", async () => {
  const file = await openModel(`${unpackedVisionLanguage()}/gemma3_vl_toy`);
  const { sight } = await openSight(file, {});
  const hidden = Number(metadataAt(file.metadata, "text_config.hidden_size"));
  const planned = planSight(sight!, { hidden, batch: 64, options: {} });
  const values = new Float32Array(3 * 48 * 48).map((_, i) => Math.sin(i));
  const look = async (more: LoadOptions) => {
    const tower = await loadTower(planned, { device: "wasm", options: { threads: 1, ...more } });
    let rows: Float32Array | undefined;
    const turns = await turnsOf(async () => {
      ({ rows } = await tower.run({ width: 48, height: 48, values }));
    });
    tower.dispose();
    return { turns, rows };
  };
  const normal = await look({}), low = await look(LOW);
  file.close();
  assertEquals(low.rows, normal.rows);
  // Two layers of some ten phases each.
  assertGreater(low.turns, normal.turns + 15);
});
