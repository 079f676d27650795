// Sessions on a tiny model, on both devices: what a timeline must keep whatever is done to it.

import {
  assert,
  assertEquals,
  assertMatch,
  assertNotEquals,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { FormatError, ResourceError } from "../engine/errors.ts";
import type { Session } from "../engine/decode/session.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import type { LoadOptions, Model } from "../engine/decode/model.ts";
import type { PlanExecutable } from "../engine/run/executable.ts";
import type { WasmPlan } from "../engine/run/wasm/backend.ts";
import { loadTiny } from "./support/models.ts";

const PROMPT = [1, 40, 77, 12, 9, 200, 31, 5, 88, 123, 17];

/** Logits of a prompt in a session of its own. */
async function fresh(model: Model, tokens: readonly number[]): Promise<number[]> {
  using session = model.createSession();
  await session.sync(tokens);
  return [...session.logits()];
}

/** A copy of the present logits. */
function logitsOf(session: Session): number[] {
  return [...session.logits()];
}

for (const device of ["reference", "wasm"] as const) {
  const test = (
    name: string,
    options: LoadOptions,
    run: (model: Model) => void | Promise<void>,
  ): void => {
    Deno.test(`${device}: ${name}`, async () => {
      using model = await loadTiny({ device, precision: "exact", contextLength: 32, ...options });
      await run(model);
    });
  };

  test("a prompt in chunks gives the logits of one that fits a step", {}, async (model) => {
    using small = await loadTiny({ device, precision: "exact", contextLength: 32, batch: 3 });
    const expected = await fresh(model, PROMPT);
    const actual = await fresh(small, PROMPT);
    const worst = Math.max(...expected.map((value, i) => Math.abs(value - actual[i]!)));
    assert(worst < 1e-5, `logits differ by ${worst}`);
  });

  test("sync() keeps the common prefix and computes the rest", { sessions: 2 }, async (model) => {
    using session = model.createSession();
    assertEquals(await session.sync(PROMPT), 0);
    const other = [...PROMPT.slice(0, 6), 3, 4];
    assertEquals(await session.sync(other), 6);
    assertEquals(session.tokens, other);
    assertEquals(logitsOf(session), await fresh(model, other));
  });

  // pc-kv-01
  test(
    "a prompt that the cache holds wholly is answered like a new one",
    { sessions: 2 },
    async (model) => {
      using session = model.createSession();
      await session.sync(PROMPT);
      const prefix = PROMPT.slice(0, 7);
      assertEquals(await session.sync(prefix), 6); // the last token is computed again
      assertEquals(session.length, 7);
      assertEquals(logitsOf(session), await fresh(model, prefix));
    },
  );

  test(
    "rewind() forgets: what follows is as if it had never been",
    { sessions: 2 },
    async (model) => {
      using session = model.createSession();
      await session.sync(PROMPT);
      session.rewind(4);
      assertThrows(() => session.logits(), TypeError, "has not been computed");
      await session.eval([9, 9]);
      assertEquals(logitsOf(session), await fresh(model, [...PROMPT.slice(0, 4), 9, 9]));
      assertThrows(() => session.rewind(7), RangeError, "has 6 tokens");
      assertThrows(() => session.rewind(-1), RangeError);
      assertThrows(() => session.rewind(1.5), RangeError);
    },
  );

  test(
    "eval() hands out the logits after every token",
    { sessions: 2, logitRows: 4 },
    async (model) => {
      using session = model.createSession();
      const rows: number[][] = [];
      await session.eval(PROMPT, { onLogits: (logits) => void rows.push([...logits]) });
      assertEquals(rows.length, PROMPT.length);
      for (const index of [0, 3, 4, 10]) {
        const expected = await fresh(model, PROMPT.slice(0, index + 1));
        const worst = Math.max(...expected.map((value, i) => Math.abs(value - rows[index]![i]!)));
        assert(worst < 1e-5, `logits at ${index} differ by ${worst}`);
      }
      assertEquals(logitsOf(session), rows.at(-1));
    },
  );

  test("two sessions do not see each other", { sessions: 3 }, async (model) => {
    using first = model.createSession();
    using second = model.createSession();
    await Promise.all([first.sync(PROMPT), second.sync(PROMPT.toReversed())]);
    await first.eval([7]);
    await second.eval([8]);
    assertEquals(logitsOf(first), await fresh(model, [...PROMPT, 7]));
    assertEquals(logitsOf(second), await fresh(model, [...PROMPT.toReversed(), 8]));
  });

  test("a place that is given back starts empty", { sessions: 1 }, async (model) => {
    const session = model.createSession();
    await session.sync(PROMPT);
    const error = assertThrows(() => model.createSession(), ResourceError);
    assertMatch(error.message, /all 1 slots are taken/);
    session.dispose();
    session.dispose();
    assertThrows(() => session.logits(), TypeError, "it is disposed");
    await assertRejects(() => session.sync(PROMPT), TypeError, "it is disposed");
    using next = model.createSession();
    assertEquals(next.length, 0);
    await next.sync([5]);
  });

  test("calls on one session queue in their order", { sessions: 2 }, async (model) => {
    using session = model.createSession();
    await Promise.all([session.sync(PROMPT.slice(0, 5)), session.eval([6]), session.eval([7, 8])]);
    assertEquals(session.tokens, [...PROMPT.slice(0, 5), 6, 7, 8]);
    assertEquals(logitsOf(session), await fresh(model, session.tokens));
  });

  test("a saved session goes on where it was, also with a longer context", {}, async (model) => {
    using session = model.createSession();
    await session.sync(PROMPT);
    const saved = await session.save();
    await session.eval([3, 4]);
    const expected = logitsOf(session);
    using longer = await loadTiny({ device, precision: "exact", contextLength: 48 });
    for (const target of [model, longer]) {
      if (target === model) session.dispose();
      using restored = target.createSession();
      await restored.sync([2, 2, 2]);
      await restored.load(saved);
      assertEquals(restored.tokens, PROMPT);
      assertThrows(() => restored.logits(), TypeError);
      await restored.eval([3, 4]);
      assertEquals(logitsOf(restored), expected);
    }
  });

  test("sync() without tokens gives a loaded timeline its logits", {}, async (model) => {
    using session = model.createSession();
    await session.sync(PROMPT);
    const expected = logitsOf(session), saved = await session.save();
    using restored = model.createSession();
    await restored.load(saved);
    assertEquals(await restored.sync(), PROMPT.length - 1);
    assertEquals(restored.tokens, PROMPT);
    assertEquals(logitsOf(restored).length, expected.length);
    assert(logitsOf(restored).every((x, i) => Math.abs(x - expected[i]!) < 1e-4));
  });

  test("a saved session of another precision or a too long one is refused", {}, async (model) => {
    using session = model.createSession();
    await session.sync(PROMPT);
    const saved = await session.save();
    using fast = await loadTiny({ device, precision: "fast", contextLength: 32 });
    using foreign = fast.createSession();
    await assertRejects(() => foreign.load(saved), FormatError, "another model");
    using short = await loadTiny({ device, precision: "exact", contextLength: 8 });
    using target = short.createSession();
    await target.sync([1, 2]);
    const error = await assertRejects(() => target.load(saved), ResourceError);
    assertMatch(error.message, /has 11 tokens, and 8 fit/);
    assertEquals(target.tokens, [1, 2]);
  });

  test(
    "a prompt beyond the context and a bad id are refused, nothing is lost",
    {},
    async (model) => {
      using session = model.createSession();
      await session.sync(PROMPT);
      const logits = logitsOf(session);
      const long = await assertRejects(() => session.sync(new Array(33).fill(1)), ResourceError);
      assertMatch(long.message, /prompt has 33 tokens, and the context holds 32/);
      const more = await assertRejects(() => session.eval(new Array(22).fill(1)), ResourceError);
      assertMatch(more.message, /22 more tokens do not fit: the session has 11 of 32/);
      for (const id of [-1, 288, 1.5, NaN]) {
        await assertRejects(() => session.eval([id]), RangeError, "ids go from 0 to 287");
      }
      assertEquals(session.tokens, PROMPT);
      assertEquals(logitsOf(session), logits);
    },
  );

  test(
    "an aborted prompt stops between chunks and what was computed stays",
    { logitRows: 2, sessions: 2 },
    async (model) => {
      using session = model.createSession();
      const controller = new AbortController();
      const { signal } = controller;
      const onLogits = (_: Float32Array, index: number) => {
        if (index === 3) controller.abort();
      };
      await assertRejects(() => session.eval(PROMPT, { signal, onLogits }), DOMException);
      assertEquals(session.tokens, PROMPT.slice(0, 4));
      await session.sync(PROMPT);
      assertEquals(logitsOf(session), await fresh(model, PROMPT));
      await assertRejects(() => session.eval([1], { signal }), DOMException);
    },
  );

  test("timers run between the chunks of a prompt", { batch: 1 }, async (model) => {
    using session = model.createSession();
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 0);
    await assertRejects(async () => {
      for (let round = 0; round < 1000; round++) {
        session.rewind(0);
        await session.sync(PROMPT, { signal: controller.signal });
      }
    }, DOMException);
  });

  test("embedding() is the state after the final norm", { embeddings: true }, async (model) => {
    using session = model.createSession();
    await session.sync(PROMPT);
    const state = [...session.embedding()];
    assertEquals(state.length, model.info.hidden);
    assert(state.every(Number.isFinite));
    await session.eval([4]);
    assertNotEquals([...session.embedding()], state);
  });

  test("embedding() without the option is refused", {}, async (model) => {
    using session = model.createSession();
    await session.sync(PROMPT);
    assertThrows(() => session.embedding(), TypeError, "embeddings: true");
  });
}

Deno.test("wasm: decode steps allocate neither array buffers nor WASM memory", async () => {
  using model = await loadTiny({ device: "wasm", contextLength: 64 });
  using session = model.createSession();
  await session.sync(PROMPT);
  const next = [7];
  const decode = async (count: number) => {
    for (let i = 0; i < count; i++) {
      if (session.length === session.capacity) session.rewind(PROMPT.length);
      await session.eval(next);
    }
  };
  await decode(80); // warm-up
  const { executable } = (model as LoadedModel).runtime;
  const { prepared } = executable as PlanExecutable<WasmPlan>;
  const committed = prepared.committedBytes;
  assertEquals(await countBuffers(() => decode(200)), 0);
  assertEquals(prepared.committedBytes, committed);
});

Deno.test("wasm: nor do steps of many sessions", async () => {
  using model = await loadTiny({ device: "wasm", contextLength: 64, sessions: 12 });
  const sessions = Array.from({ length: 12 }, () => model.createSession());
  await Promise.all(sessions.map((session) => session.sync(PROMPT)));
  const next = [7];
  const decode = async (count: number) => {
    for (let i = 0; i < count; i++) {
      for (const session of sessions) {
        if (session.length === session.capacity) session.rewind(PROMPT.length);
      }
      await Promise.all(sessions.map((session) => session.eval(next)));
    }
  };
  await decode(80); // warm-up
  const { prepared } = (model as LoadedModel).runtime.executable as PlanExecutable<WasmPlan>;
  const committed = prepared.committedBytes;
  assertEquals(await countBuffers(() => decode(60)), 0);
  assertEquals(prepared.committedBytes, committed);
});

Deno.test("countBuffers() sees buffers and arrays that are made, and no views", async () => {
  const buffer = new ArrayBuffer(64);
  const made = await countBuffers(() => {
    new Float32Array(4);
    new ArrayBuffer(8);
    Float32Array.from([1]);
    new Float32Array(buffer, 0, 4).subarray(1);
    return Promise.resolve();
  });
  assertEquals(made, 3);
});

/** How many array buffers are made during a task, by size. */
async function countBuffers(task: () => Promise<void>): Promise<number> {
  const before = Deno.memoryUsage().external;
  let made = 0;
  const names = ["ArrayBuffer", "SharedArrayBuffer"] as const;
  const originals = names.map((name) => globalThis[name]);
  // Typed arrays made from lengths or lists do not call these constructors, so they are counted too.
  const arrays = [Float32Array, Float64Array, Int32Array, Uint8Array, Uint32Array, Int8Array];
  const wrapped = arrays.map((original) =>
    new Proxy(original, {
      construct(target, args, newTarget) {
        if (!(args[0] instanceof originals[0]! || args[0] instanceof originals[1]!)) made++;
        return Reflect.construct(target, args, newTarget);
      },
    })
  );
  const scope = globalThis as unknown as Record<string, unknown>;
  names.forEach((name, i) => {
    scope[name] = new Proxy(originals[i]!, {
      construct(target, args, newTarget) {
        made++;
        return Reflect.construct(target, args, newTarget);
      },
    });
  });
  arrays.forEach((original, i) => scope[original.name] = wrapped[i]);
  try {
    await task();
  } finally {
    names.forEach((name, i) => scope[name] = originals[i]);
    arrays.forEach((original) => scope[original.name] = original);
  }
  const grown = Deno.memoryUsage().external - before;
  assert(grown < 65536, `${grown} bytes of external memory were taken`);
  return made;
}
