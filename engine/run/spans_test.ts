import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { checkpointPath } from "../../tests/support/seeded_weights.ts";
import { UnsupportedError } from "../errors.ts";
import { load } from "../models/load.ts";
import type { Model } from "../decode/model.ts";

// Rotations change beyond 32 tokens; the context is 64.
async function withModel(use: (model: Model) => Promise<void>): Promise<void> {
  using model = await load(checkpointPath("phi3_longrope"), {
    device: "reference",
    precision: "exact",
    sessions: 2,
    batch: 7,
  });
  await use(model);
}

const TEXT = Array.from({ length: 45 }, (_, i) => (i * 37 + 11) % 128);

async function logitsOf(model: Model, ids: readonly number[]): Promise<number[]> {
  using session = model.createSession();
  await session.sync(ids);
  return [...session.logits()];
}

Deno.test("a text that outgrows the change is as if it had been given at once", () =>
  withModel(async (model) => {
    using session = model.createSession();
    for (const [i, id] of TEXT.entries()) {
      await session.eval([id]);
      if ([30, 31, 32, 44].includes(i)) {
        assertEquals([...session.logits()], await logitsOf(model, TEXT.slice(0, i + 1)), `at ${i}`);
      }
    }
  }));

Deno.test("a text that is rewound below the change rotates as a short one again", () =>
  withModel(async (model) => {
    using session = model.createSession();
    await session.sync(TEXT);
    const other = [...TEXT.slice(0, 20), 5];
    await session.sync(other);
    assertEquals([...session.logits()], await logitsOf(model, other));
  }));

Deno.test("what is saved is rotated as its length says", () =>
  withModel(async (model) => {
    using session = model.createSession();
    await session.sync(TEXT);
    session.rewind(20);
    await session.load(await session.save());
    await session.eval([5]);
    assertEquals([...session.logits()], await logitsOf(model, [...TEXT.slice(0, 20), 5]));
  }));

Deno.test("a restored session refuses to cross the change and says what to do", () =>
  withModel(async (model) => {
    using session = model.createSession();
    await session.sync(TEXT.slice(0, 30));
    const bytes = await session.save();
    await session.load(bytes);
    const error = await assertRejects(() => session.eval(TEXT.slice(30)), UnsupportedError);
    assertMatch(error.message, /cannot go across 32 tokens/);
  }));
