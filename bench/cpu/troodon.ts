// Our side of `deno task bench cpu`: the engine through its own public API, in a process of its own.
//
// deno run -A bench/cpu/troodon.ts MODEL THREADS CONTEXT PRECISION SESSIONS

import { generate, load, type Precision, type Session } from "../../mod.ts";
import type { TimelineSession } from "../../engine/decode/timeline_session.ts";
import { type Engine, serve } from "../support/runner.ts";

/** Steps over which the time of one is taken. */
const CHECKS = 8;

async function start(
  [path, threads, context, precision, sessions]: readonly string[],
): Promise<Engine> {
  const loadStart = performance.now();
  const model = await load(path!, {
    device: "wasm",
    threads: Number(threads),
    precision: precision as Precision,
    contextLength: Number(context),
    sessions: Math.max(2, Number(sessions)),
  });
  const session = model.createSession() as TimelineSession;
  const others: Session[] = [session];
  // Prompts that begin alike are computed once: each gets a first token of its own.
  let first = 0;
  return {
    loadMs: performance.now() - loadStart,
    prefill: async (ids) => {
      session.rewind(0);
      const prompt = [++first % model.info.vocabulary, ...ids.slice(1)];
      const start = performance.now();
      await session.sync(prompt);
      return { ms: performance.now() - start };
    },
    again: async (ids) => {
      using other = model.createSession();
      const start = performance.now();
      await other.sync([first % model.info.vocabulary, ...ids.slice(1)]);
      return { ms: performance.now() - start };
    },
    // What is in the session already is not computed again: a repeated run starts where it did.
    decode: async (ids, count, more = {}) => {
      const out: number[] = [];
      let start = 0;
      const options = { maxTokens: count + 1, ignoreEos: true, ...more };
      for await (const { tokens } of generate(session, ids, options)) {
        if (out.length === 0) start = performance.now(); // The first token ends the prefill.
        for (const { id } of tokens) out.push(id);
      }
      return { ms: performance.now() - start, ids: out };
    },
    check: async (ids, rows) => {
      const prompt = ids.slice(0, -rows), ahead = ids.slice(-rows);
      await session.sync(prompt);
      let ms = 0;
      for (let time = 0; time < CHECKS; time++) {
        session.rewind(prompt.length);
        const start = performance.now();
        await session.checkNow(ahead, { best: 1 });
        ms += performance.now() - start;
      }
      return { ms: ms / CHECKS };
    },
    batch: async (prompts, count) => {
      while (others.length < prompts.length) others.push(model.createSession());
      await Promise.all(prompts.map((prompt, i) => others[i]!.sync(prompt.slice(0, -1))));
      const start = performance.now();
      const options = { maxTokens: count, ignoreEos: true };
      await Promise.all(prompts.map((prompt, i) => generate(others[i]!, prompt, options).result));
      return { ms: performance.now() - start };
    },
    close: () => {
      model.dispose();
      return Promise.resolve();
    },
  };
}

if (import.meta.main) await serve(await start(Deno.args));
