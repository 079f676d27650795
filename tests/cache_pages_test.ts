// One pool of pages for all sessions: what begins alike is there once and is computed once, and what a session sees is
// the same whoever computed it. Rows are counted, not timed.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import type { LoadOptions } from "../engine/decode/model.ts";
import { ResourceError } from "../engine/errors.ts";
import { load } from "../engine/models/load.ts";
import { atEachTurn, pause } from "../engine/pause.ts";
import { withFolder } from "./support/folder.ts";
import { fixturePath } from "./support/fixtures.ts";
import { writeRandomLlama } from "./support/random_llama.ts";
import { writeSeededCheckpoint } from "./support/seeded_weights.ts";

const VOCABULARY = 128;

const SHAPE = {
  ...{ layers: 2, hidden: 256, heads: 4, kvHeads: 2, headDim: 64, feedForward: 256 },
  ...{ vocabulary: 288, context: 2048 },
};

/** A tiny model with room for long texts: a random one in LF8, or one of a family. */
async function withModel(
  { family, device = "wasm", ...options }: LoadOptions & { readonly family?: string },
  body: (model: LoadedModel) => Promise<void>,
): Promise<void> {
  await withFolder(async (folder) => {
    let path = `${folder}/model.safetensors`;
    if (!family) await writeRandomLlama(path, SHAPE, "LF8");
    else {
      path = folder;
      writeSeededCheckpoint(fixturePath(`models/${family}`), folder);
      const config = JSON.parse(await Deno.readTextFile(`${folder}/config.json`));
      const longer = { ...config, max_position_embeddings: 2048 };
      await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(longer));
    }
    using model = await load(path, { device, contextLength: 1024, ...options }) as LoadedModel;
    await body(model);
  });
}

function text(length: number, seed = 1): number[] {
  return Array.from(
    { length },
    (_, i) => 3 + Math.imul(i + 1, 7919 * seed + 31) % 1000 % (VOCABULARY - 3),
  );
}

/** Tokens of pages that sessions hold. */
function heldTokens({ runtime: { executable: { rows } } }: LoadedModel): number {
  return rows.poolTokens - rows.freeTokens;
}

Deno.test("32 sessions with a system prompt in common take a third of the memory of separate ones", async () => {
  await withModel({ sessions: 32 }, async (model) => {
    const system = text(800);
    const prompts = Array.from({ length: 32 }, (_, i) => [...system, ...text(200, i + 2)]);
    const sessions = prompts.map(() => model.createSession());
    await Promise.all(sessions.map((session, i) => session.sync(prompts[i]!)));
    const shared = heldTokens(model);
    const separate = 32 * 1024;
    assertEquals(model.memory.cacheTokens, separate);
    assert(shared <= separate / 3, `${shared} of ${separate}`);
    for (const session of sessions) session.dispose();
    assertEquals(heldTokens(model), 0);
  });
});

Deno.test("a prompt that was computed before, also by a session that is gone, is not computed again", async () => {
  for (const [device, length] of [["wasm", 1000], ["reference", 200]] as const) {
    await withModel(
      { device, family: "mistral", cacheTokens: 2048, sessions: 2 },
      async (model) => {
        const prompt = text(length);
        const first = model.createSession();
        assertEquals(await first.sync(prompt), 0);
        first.dispose();
        const second = model.createSession(), question = [...prompt, ...text(9, 5)];
        const kept = await second.sync(question);
        assert(
          (question.length - kept) * 20 <= prompt.length,
          `${question.length - kept} rows computed`,
        );
        const third = model.createSession();
        assertEquals(await third.sync(prompt), length - 1);
        // Other scales, other rows; none are there for another beginning.
        assertEquals(await second.sync(text(100, 9)), 0);
      },
    );
  }
});

/** Logits after a prompt, with what is appended at once, and after each of some tokens behind it. */
async function answer(
  model: LoadedModel,
  prompt: readonly number[],
  next: readonly number[],
  appended: readonly number[] = [],
) {
  using session = model.createSession();
  await session.sync(prompt);
  if (appended.length > 0) await session.eval(appended);
  const logits = [[...session.logits()]];
  for (const token of next) {
    await session.eval([token]);
    logits.push([...session.logits()]);
  }
  return logits;
}

Deno.test("adopted, forked, restored and batched rows give the bits of a session of its own with strict", async () => {
  const options = {
    precision: "strict",
    sessions: 12,
    cacheTokens: 12 * 1024,
    batch: 200,
  } as const;
  const prompts = Array.from(
    { length: 9 },
    (_, i) => [...text(150 + 10 * i), ...text(40 + 17 * i, i + 2)],
  );
  const next = text(5, 3);
  await withModel(options, async (model) => {
    const alone: number[][][] = [];
    for (const prompt of prompts) {
      await withModel(options, async (fresh) => void alone.push(await answer(fresh, prompt, next)));
    }
    assertEquals(await Promise.all(prompts.map((prompt) => answer(model, prompt, next))), alone);
    // Now every beginning is known.
    assertEquals(await Promise.all(prompts.map((prompt) => answer(model, prompt, next))), alone);
    const session = model.createSession(), { executable, queue } = model.runtime;
    await session.sync(prompts[4]!);
    const saved = await session.save();
    using restored = model.createSession();
    await restored.load(saved);
    for (const [i, token] of next.entries()) {
      await restored.eval([token]);
      assertEquals([...restored.logits()], alone[4]![i + 1]);
    }
    const slot = executable.openSlot();
    const from = (session as unknown as { slot: number }).slot;
    await queue.between(() =>
      executable.rows.fork({ slot: from, length: prompts[4]!.length }, slot)
    );
    session.dispose();
    for (const [i, token] of next.entries()) {
      await queue.compute({
        ...{ slot, tokens: [token], from: 0, to: 1, start: prompts[4]!.length + i, scales: [] },
        ...{ wanted: -1, wantedRows: 1, feedback: 0, priority: 0, signal: undefined },
        check() {},
        read: (executable, { row }) => assertEquals([...executable.logits(row)], alone[4]![i + 1]),
      });
    }
  });
});

Deno.test("a session with sliding windows is rewound by a few rows, or computes what it has left behind", async () => {
  for (const family of ["gemma3_text", "mistral_swa"]) {
    await withModel({ family, precision: "exact", sessions: 2, batch: 64 }, async (model) => {
      const prompt = text(600), other = text(5, 3);
      using session = model.createSession();
      await session.sync(prompt);
      for (const length of [590, 300, 70]) {
        session.rewind(length);
        assertEquals(session.length, length);
        await session.eval(other);
        await withModel({ family, precision: "exact", batch: 64 }, async (fresh) => {
          const [logits] = await answer(fresh, [...prompt.slice(0, length), ...other], []);
          assertEquals([...session.logits()], logits);
        });
        await session.sync(prompt);
      }
      const saved = await session.save();
      using restored = model.createSession();
      await restored.load(saved);
      await restored.eval(other);
      await session.eval(other);
      assertEquals([...restored.logits()], [...session.logits()]);
    });
  }
});

Deno.test("a prompt beyond the pool is refused by name, and a full pool costs time only", async () => {
  await withModel(
    { sessions: 3, cacheTokens: 256, precision: "strict", batch: 64 },
    async (model) => {
      using a = model.createSession(), b = model.createSession();
      const error = await assertRejects(() => a.sync(text(257)), ResourceError);
      assertEquals(
        error.message.slice(error.message.indexOf(": ") + 2),
        "the prompt has 257 tokens, and the caches of all sessions hold 256. " +
          "Shorten it, or load the model with a larger cacheTokens",
      );
      await a.sync(text(130));
      await b.sync(text(200, 2)); // takes the place of what nobody uses at present
      await a.eval(text(3, 4));
      const [expected] = await answerAlone(model, [...text(130), ...text(3, 4)]);
      assertEquals([...a.logits()], expected);
    },
  );
});

async function answerAlone(model: LoadedModel, prompt: readonly number[]): Promise<number[][]> {
  const logits: number[][] = [];
  await withModel({ precision: model.info.precision, batch: 64 }, async (fresh) => {
    using session = fresh.createSession();
    await session.sync(prompt.slice(0, -3));
    await session.eval(prompt.slice(-3));
    logits.push([...session.logits()]);
  });
  return logits;
}

Deno.test("a session is restored while older queries have all room, and into the room of those that wait", async () => {
  for (const family of [undefined, "mistral_swa"]) {
    const options = { sessions: 4, cacheTokens: 256, batch: 16, ...family && { family } };
    await withModel({ ...options, precision: family ? "exact" : "strict" }, async (model) => {
      const whole = text(133, 4), next = whole.slice(130);
      const [expected] = await answer(model, whole.slice(0, 130), [], next);
      using saving = model.createSession();
      await saving.sync(whole.slice(0, 130));
      const saved = await saving.save();
      using idle = model.createSession(), busy = model.createSession();
      await idle.sync(text(200, 2));
      using restored = model.createSession();
      // In the place of whoever computes nothing, and beside one who has all of it.
      await restored.load(saved);
      await restored.eval(next);
      assertEquals([...restored.logits()], expected);
      let loading: Promise<void> | undefined;
      atEachTurn(() => loading ??= restored.load(saved));
      await busy.sync(text(250, 3));
      atEachTurn(undefined);
      await loading;
      assertEquals(restored.tokens, whole.slice(0, 130));
      await restored.eval(next);
      assertEquals([...restored.logits()], expected);
    });
  }
});

Deno.test("cancelling in the middle of a shared page changes nobody else's answer", async () => {
  await withModel({ precision: "strict", sessions: 4, batch: 32 }, async (model) => {
    const common = text(100),
      ours = [...common, ...text(60, 2)],
      theirs = [...common, ...text(300, 3)];
    const [expected] = await answer(model, ours, []);
    using cancelled = model.createSession(), other = model.createSession();
    await Promise.all([cancelled.sync(common), other.sync(common)]);
    const controller = new AbortController();
    const doomed = cancelled.sync(theirs, { signal: controller.signal });
    const going = other.sync(ours);
    // Between two of the first steps, whatever their pace.
    let turns = 0;
    atEachTurn(() => {
      if (++turns === 3) controller.abort();
    });
    await assertRejects(() => doomed, DOMException);
    atEachTurn(undefined);
    cancelled.dispose();
    await going;
    assertEquals([...other.logits()], expected);
    assertEquals((await answer(model, ours, []))[0], expected);
  });
});

Deno.test("a session that is closed or rewound in the middle of its step says nothing of rows any more", async () => {
  await withModel({ sessions: 2, precision: "exact", batch: 256 }, async (model) => {
    const known = text(140),
      other = text(140, 2),
      { executable } = model.runtime,
      { run } = executable;
    const [expected] = await answerAlone(model, other);
    const far = (logits: Float32Array) =>
      logits.reduce((most, logit, i) => Math.max(most, Math.abs(logit - expected![i]!)), 0);
    using keeper = model.createSession();
    await keeper.sync(known);
    // As on a device that computes aside.
    let meanwhile = () => {};
    executable.run = async (step) => {
      await run(step);
      await pause();
      meanwhile();
      meanwhile = () => {};
    };
    const closed = model.createSession();
    let next: Promise<number> | undefined;
    meanwhile = () => {
      closed.dispose();
      // In the same slot, with the rows of the text that is known.
      next = model.createSession().sync(known);
    };
    await assertRejects(() => closed.sync(other), TypeError, "disposed");
    await next;
    await keeper.sync(other);
    assert(far(keeper.logits()) < 1e-4, `${far(keeper.logits())}`);

    meanwhile = () => keeper.rewind(100);
    await assertRejects(() => keeper.eval(text(3, 3)), TypeError, "rewound");
    assertEquals(keeper.tokens, other.slice(0, 100));
    await keeper.sync(other);
    assert(far(keeper.logits()) < 1e-4, `${far(keeper.logits())}`);
  });
});

Deno.test("who stops while another computes the rows in common goes on behind those that are there", async () => {
  await withModel({ sessions: 4, precision: "strict", batch: 16 }, async (model) => {
    const known = text(200), [, ...more] = text(30, 5);
    using first = model.createSession();
    await first.sync(known.slice(0, 70));
    using busy = model.createSession(), stopped = model.createSession();
    const own = text(3, 9);
    await stopped.sync(own);
    const computing = busy.sync(known), controller = new AbortController();
    const stopping = stopped.sync(known, { signal: controller.signal });
    await pause();
    controller.abort();
    await assertRejects(() => stopping, DOMException, "aborted");
    assertEquals(stopped.tokens, known.slice(0, stopped.length));
    assert(stopped.length >= 64);
    assertThrows(() => stopped.logits(), TypeError, "has not been computed");
    await stopped.eval(more);
    const logits = [...stopped.logits()];
    await computing;
    const [expected] = await answer(model, stopped.tokens, []);
    assertEquals(logits, expected);
  });
});
