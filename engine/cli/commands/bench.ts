// `troodon bench`: how fast a model is on this machine, alone. Comparisons with other engines are
// `deno task bench`.

import type { Model } from "../../decode/model.ts";
import type { Session } from "../../decode/session.ts";
import { UnsupportedError } from "../../errors.ts";
import { runtimeVersion } from "../../io.ts";
import { type Command, defineCommand } from "../command.ts";
import { LOAD_FLAGS, loadOptions } from "../flags.ts";
import { showBytes, showTable } from "../format.ts";
import { machineFacts, peakResidentBytes } from "../machine.ts";

/** Tokens before a decode run. */
const BEGINNING = 32;

/** The command. */
export const bench: Command = defineCommand({
  name: "troodon bench",
  summary: "Measures load, prefill, decode and memory of a model on this machine.",
  positionals: ["[MODEL]"],
  flags: {
    ...LOAD_FLAGS,
    prompt: { type: "integer", value: "N", min: 1, help: "tokens of the prompt (512)" },
    decode: { type: "integer", value: "N", min: 1, help: "tokens of a decode run (64)" },
    rounds: {
      type: "integer",
      value: "N",
      min: 1,
      max: 100,
      help: "rounds; medians are shown (5)",
    },
  },
  examples: [
    ["troodon bench", "the default model on all threads"],
    ["troodon bench model.gguf --threads 1 --json", "one thread, as JSON lines"],
  ],
}, async (context, { positionals: [name], flags }) => {
  const { terminal, signal } = context;
  const prompt = flags.prompt ?? 512;
  const decode = flags.decode ?? 64;
  const rounds = flags.rounds ?? 5;
  const contextLength = flags.context ?? Math.max(prompt, decode + BEGINNING) + 1;
  const { openModel } = await import("../open_model.ts");
  // One conversation is measured; a pool for many keeps the pages of earlier rounds as long as there is room.
  const options = { sessions: 1, ...loadOptions(flags), contextLength };
  using opened = await openModel(name, {
    flags,
    options,
    context,
  });
  const { model } = opened;
  if (model.info.network !== "decoder") {
    throw new UnsupportedError("needs a source, and is no decoder by itself", {
      ...{ file: opened.name, remedy: "Give a model that continues texts" },
    });
  }
  using session = model.createSession();
  const measured = await measure(model, session, { prompt, decode, rounds, signal });
  const streamed = model.streaming();
  const figures = [
    { case: `prefill ${prompt}`, unit: "tokens/s", value: measured.prefill },
    { case: `decode ${decode}`, unit: "tokens/s", value: measured.decode },
    { case: "load", unit: "ms", value: model.loadMs },
    { case: "memory planned", unit: "MB", value: model.memory.total / 1e6 },
    { case: "memory peak", unit: "MB", value: peakResidentBytes() / 1e6 },
    ...streamed ? [{ case: "loading hidden", unit: "of 1", value: streamed.hidden }] : [],
  ];
  const { arch, threads } = machineFacts();
  const machine = `${arch}, ${flags.threads ?? threads} threads, ${runtimeVersion()}`;
  if (flags.json) {
    // The fields of `deno task bench`; there is no peer here.
    const alone = { peer: null, peerValue: null, ratio: null, share: null };
    for (const figure of figures) {
      const line = { bench: "model", ...figure, ...alone, machine, model: opened.name };
      terminal.out(JSON.stringify(line) + "\n");
    }
    return 0;
  }
  const rows = figures.map(({ case: label, unit, value }) => [
    label,
    unit === "MB" ? showBytes(value * 1e6) : `${value.toFixed(unit === "of 1" ? 2 : 1)} ${unit}`,
  ]);
  terminal.out(`${model.info.name} on ${model.device}, ${machine}\n${showTable(rows, [1])}\n`);
  return 0;
});

/** Rates of one text: its prompt, and the tokens behind the first one, a second. */
interface Rates {
  readonly prefill: number;
  readonly decode: number;
}

/** What runs a text of so many tokens and goes on with some. */
type Run = (text: readonly number[], tokens: number) => Promise<Rates>;

/** Medians over rounds, after one that is thrown away. */
async function measure(
  model: Model,
  session: Session,
  { prompt, decode, rounds, signal }: {
    readonly prompt: number;
    readonly decode: number;
    readonly rounds: number;
    readonly signal: AbortSignal;
  },
): Promise<Rates> {
  const run = await runOf(model, session, signal);
  let texts = 0;
  // Each begins otherwise: what was computed for an earlier one would be found again.
  const nextText = (count: number): number[] => {
    const first = texts++;
    return Array.from(
      { length: count },
      (_, i) => (i * 7919 + 11 + first) % Math.min(model.info.vocabulary, 4096),
    );
  };
  const prefills: number[] = [];
  const decodes: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    prefills.push((await run(nextText(prompt), 0)).prefill);
    decodes.push((await run(nextText(BEGINNING), decode)).decode);
    signal.throwIfAborted();
  }
  const median = (values: number[]): number => {
    const sorted = values.slice(1).sort((a, b) => a - b);
    return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
  };
  return { prefill: median(prefills), decode: median(decodes) };
}

/** As users meet it, by generate(); a file without a tokenizer answers token by token. */
async function runOf(model: Model, session: Session, signal: AbortSignal): Promise<Run> {
  if (hasTokenizer(model)) {
    const { generate } = await import("../../decode/generate.ts");
    const greedy = { temperature: 0, ignoreEos: true, signal };
    return async (text, tokens) => {
      const answer = generate(session, text, { ...greedy, maxTokens: tokens + 1 });
      const { stats: { firstTokenMs, decodePerSecond } } = await answer.result;
      return { prefill: text.length / firstTokenMs * 1000, decode: decodePerSecond };
    };
  }
  return async (text, tokens) => {
    const start = performance.now();
    await session.sync(text, { signal });
    session.logits();
    const read = performance.now();
    for (let i = 0; i < tokens; i++) {
      await session.eval([i % model.info.vocabulary], { signal });
      session.logits();
    }
    return {
      prefill: text.length / (read - start) * 1000,
      decode: tokens / (performance.now() - read) * 1000,
    };
  };
}

function hasTokenizer(model: Model): boolean {
  try {
    return model.tokenizer !== undefined;
  } catch (error) {
    if (error instanceof UnsupportedError) return false;
    throw error;
  }
}
