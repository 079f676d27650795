import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { TOY, TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { FormatError, ResourceError } from "../../errors.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import type { PreparedPlan } from "../backend.ts";
import { tensorInMemory } from "../case_graph.ts";
import { plan } from "../../plan/planner.ts";
import { createReferenceBackend } from "./reference_backend.ts";

async function toy(
  options: { kv?: "f16" | "f32"; slots?: number; naive?: boolean } = {},
): Promise<PreparedPlan> {
  const { kv = "f16", slots = 2, naive = false } = options;
  const made = plan(toyDecoder(kv), {
    limits: TOY_LIMITS,
    ...naive ? { policy: "naive" as const } : {},
  });
  return await createReferenceBackend().prepare(made, { slots });
}

interface Row {
  readonly token: number;
  readonly position: number;
  readonly slot: number;
}

/** Logits of the last row of a step. */
function step(executable: PreparedPlan, rows: readonly Row[]): number[] {
  executable.input("tokens").set(rows.map(({ token }) => token) as never);
  executable.input("positions").set(rows.map(({ position }) => position) as never);
  executable.input("slots").set(rows.map(({ slot }) => slot) as never);
  executable.input("logit_rows").set([rows.length - 1] as never);
  executable.run({ M: rows.length, L: 1 });
  return [...executable.output("logits").subarray(0, TOY.vocabulary)] as number[];
}

function rowsOf(tokens: readonly number[], slot: number, start = 0): Row[] {
  return tokens.map((token, i) => ({ token, position: start + i, slot }));
}

Deno.test("a prompt gives the same logits in one step, in chunks and token by token", async () => {
  const tokens = [3, 1, 4, 1, 5, 9];
  const executable = await toy({ slots: 3 });
  const [a, b, c] = [executable.openSlot(), executable.openSlot(), executable.openSlot()];
  const whole = step(executable, rowsOf(tokens, a));
  step(executable, rowsOf(tokens.slice(0, 4), b));
  assertEquals(step(executable, rowsOf(tokens.slice(4), b, 4)), whole);
  let last: number[] = [];
  tokens.forEach((token, position) => last = step(executable, [{ token, position, slot: c }]));
  assertEquals(last, whole);
});

Deno.test("two sessions in one step do not see each other", async () => {
  const executable = await toy();
  const [a, b] = [executable.openSlot(), executable.openSlot()];
  const alone = step(executable, rowsOf([7, 8, 9], a));
  executable.closeSlot(a);
  assertEquals(executable.openSlot(), a);
  step(executable, [...rowsOf([7, 8], a), ...rowsOf([1, 2, 3], b)]);
  assertEquals(step(executable, [...rowsOf([4], b, 3), ...rowsOf([9], a, 2)]), alone);
});

Deno.test("the planned arena gives the numbers of a place for each value", async () => {
  const tight = await toy(), loose = await toy({ naive: true });
  assert(tight.memory.arena < loose.memory.arena);
  const rows = rowsOf([3, 1, 4, 1, 5, 9, 2], 0);
  tight.openSlot();
  loose.openSlot();
  assertEquals(step(tight, rows), step(loose, rows));
});

Deno.test("f16 states round keys and values, f32 states keep them", async () => {
  const half = await toy({ kv: "f16" }), single = await toy({ kv: "f32" });
  half.openSlot();
  single.openSlot();
  const rows = rowsOf([3, 1, 4], 0);
  const a = step(half, rows), b = step(single, rows);
  const worst = Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));
  assert(worst > 0 && worst < 0.01, `off by ${worst}`);
  assertEquals(half.memory.statePerSlot * 2, single.memory.statePerSlot);
});

Deno.test("a saved state goes on where it was", async () => {
  const executable = await toy();
  const [a, b] = [executable.openSlot(), executable.openSlot()];
  step(executable, rowsOf([5, 6, 7], a));
  const saved = await executable.readState(a, 3);
  assertEquals(saved.length, 3 * executable.memory.statePerSlot / TOY.capacity);
  await executable.writeState(b, 3, saved);
  assertEquals(step(executable, rowsOf([8], b, 3)), step(executable, rowsOf([8], a, 3)));
  assertThrows(() => executable.writeState(b, 2, saved), RangeError, "expected");
  assertThrows(() => executable.readState(b, 33), RangeError, "Cannot copy 33 rows");
});

Deno.test("a slot starts empty, is unique while open, and must be open to be used", async () => {
  const executable = await toy();
  const [a, b] = [executable.openSlot(), executable.openSlot()];
  assertEquals([a, b], [0, 1]);
  const error = assertThrows(() => executable.openSlot(), ResourceError);
  assertEquals(
    error.message,
    "Cannot open a session: all 2 slots are taken. " +
      "Dispose a session or load the model with more `sessions`",
  );
  step(executable, rowsOf([5], a));
  executable.closeSlot(a);
  assertThrows(
    () => step(executable, rowsOf([5], a)),
    RangeError,
    "slot 0: no session has it open",
  );
  executable.openSlot();
  assert(((await executable.readState(a, 32)) as Uint8Array).every((byte) => byte === 0));
  assertThrows(() => executable.closeSlot(7), RangeError, "slot 7");
});

Deno.test("bindings outside the limits and values outside their range are refused", async () => {
  const executable = await toy();
  executable.openSlot();
  assertThrows(
    () => executable.run({ M: 9, L: 1 }),
    RangeError,
    "M = 9: must be an integer in 0..8",
  );
  assertThrows(() => executable.run({ M: 1.5, L: 1 }), RangeError, "M = 1.5");
  assertThrows(() => executable.run({ M: 1 }), RangeError, "L = undefined");
  assertThrows(() => executable.run({ M: 1, L: 1, N: 2 }), RangeError, "no such dim");
  assertThrows(
    () => step(executable, [{ token: 50, position: 0, slot: 0 }]),
    RangeError,
    "embed at embed: Cannot embed token 50: the vocabulary has 50",
  );
  assertThrows(
    () => step(executable, [{ token: 1, position: 32, slot: 0 }]),
    RangeError,
    "kv_append at layers.0.v_append: Cannot append at position 32: the cache holds 32",
  );
  assertThrows(() => executable.input("token"), RangeError, 'has no input "token": it has tokens');
});

Deno.test("a step of no rows computes nothing and fails nothing", async () => {
  const executable = await toy();
  executable.run({ M: 0, L: 0 });
});

Deno.test("a disposed executable refuses to run", async () => {
  const executable = await toy();
  executable.dispose();
  assertThrows(() => executable.run({ M: 1, L: 1 }), TypeError, "disposed");
  assertThrows(() => executable.output("logits"), TypeError, "disposed");
});

Deno.test("weights load with progress, can be aborted, and must fill their shape", async () => {
  const made = plan(toyDecoder(), { limits: TOY_LIMITS });
  const seen: number[] = [];
  let total = 0;
  await createReferenceBackend().prepare(made, {
    slots: 0,
    onProgress({ loadedBytes, totalBytes }) {
      seen.push(loadedBytes);
      total = totalBytes;
    },
  });
  assertEquals(seen.at(-1), total);
  assertEquals(seen, seen.toSorted((a, b) => a - b));
  const signal = AbortSignal.abort(new Error("stop"));
  await assertRejects(
    () => createReferenceBackend().prepare(made, { slots: 0, signal }),
    Error,
    "stop",
  );

  const builder = createGraphBuilder("short", getOp);
  const weight = builder.weight(
    "w",
    tensorInMemory("w", { format: "F32", shape: [2, 3], bytes: new Uint8Array(20) }),
  );
  const x = builder.input("x", [symbol("M"), 3], "f32");
  builder.output("y", builder.op("matmul", [x, weight], {}, "y")[0]!);
  const short = plan(builder.build(), { limits: { M: 1 } });
  await assertRejects(
    () => createReferenceBackend().prepare(short, { slots: 0 }),
    FormatError,
    "memory of w, w: 20 bytes do not hold 6 values of F32",
  );
});
