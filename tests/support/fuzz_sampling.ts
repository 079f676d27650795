// What must hold for any sampling chain: its distribution, and the tokens that it takes, are those of the steps'
// definitions (plain_sampling.ts). A chain, logits and a history are drawn from the bytes of an input.

import { createSampler } from "../../engine/decode/sampling/sampler.ts";
import { samplingSteps } from "../../engine/decode/sampling/steps/mod.ts";
import { createDraw, type Draw } from "../../tools/support/draw.ts";
import {
  applyPlain,
  inOrder,
  javaDoubles,
  type PlainHistory,
  type PlainState,
  type PlainStep,
  type PlainToken,
  softmaxOf,
  withoutInfinity,
} from "./plain_sampling.ts";

/** A number that bytes stand for. */
export function numberOf(bytes: Uint8Array): number {
  return bytes.reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
}

/** Thresholds as they are, and moved a little either way: what lies on one is decided by rounding. */
const SLACKS = [0, 1e-6, -1e-6];

/**
 * Draws a few tokens from a chain.
 *
 * @throws {Error} If a distribution or a token is none that the definitions give.
 */
export function fuzzSampling(bytes: Uint8Array): void {
  const draw = createDraw(numberOf(bytes), 0);
  const size = choose(draw, [1, 2, 3, 5, 17, 100, 300]);
  const chain = randomChain(draw, size);
  const seed = draw(2 ** 30);
  const sampler = createSampler({ samplers: chain, seed });
  const tokens: number[] = Array.from(
    { length: choose(draw, [0, 1, 3, 40, 700]) },
    () => draw(size),
  );
  const promptLength = draw(tokens.length + 1);
  let states = SLACKS.map((slack) => ({ slack, mu: undefined as number | undefined, used: 0 }));
  for (let step = 0; step < 4; step++) {
    const logits = randomLogits(draw, size);
    const history = { tokens, promptLength };
    // All of a draw that may be right: of several thresholds, each with its random numbers.
    const right = states.map((state) => plainDraw({ chain, logits, history, seed }, state));
    const token = outcomeOf(() =>
      sampler.sample(logits, { tokens, length: tokens.length, promptLength })
    );
    const fitting = right.filter(({ allowed }) => allowed.includes(token));
    if (fitting.length === 0) {
      throw new Error(
        `${JSON.stringify(chain, spelled)} takes ${token}, ${
          right[0]!.allowed.join(" or ")
        } wanted; ` +
          `logits ${logits.join()}, tokens ${tokens.join()}, prompt ${promptLength}, seed ${seed}`,
      );
    }
    if (typeof token === "string") return;
    states = fitting.map(({ after }) => after(token));
    tokens.push(token);
  }
}

function spelled(_: string, value: unknown): unknown {
  return value === -Infinity ? "-Infinity" : value;
}

interface State {
  readonly slack: number;
  readonly mu: number | undefined;
  /** Random numbers taken so far. */
  readonly used: number;
}

interface PlainDraw {
  readonly chain: readonly PlainStep[];
  readonly logits: Float32Array;
  readonly history: PlainHistory;
  readonly seed: number;
}

/** What may be taken, and the state after it. */
function plainDraw({ chain, logits, history, seed }: PlainDraw, before: State) {
  const random = javaDoubles(seed);
  for (let i = 0; i < before.used; i++) random();
  let used = before.used;
  const coin = (): number => {
    used++;
    return random();
  };
  const state: PlainState = { ...history, mu: before.mu, slack: before.slack, coin };
  let left: readonly PlainToken[] = [...logits].map((logit, id) => ({ id, logit }));
  const isNothing = (): boolean => left.every(({ logit }) => logit === -Infinity);
  let last: readonly PlainToken[] = left;
  for (const step of chain) {
    if (isNothing()) break;
    last = left;
    left = applyPlain(left, step, state);
  }
  if (isNothing()) {
    // A sampler that is greedy by its first steps does not look at what later ones exclude.
    const alone = last.length === 1 ? [last[0]!.id] : [];
    return { allowed: ["nothing", ...alone] as (number | string)[], after: () => before };
  }
  const sorted = inOrder(withoutInfinity(left)), probabilities = softmaxOf(sorted);
  const place = coin();
  const allowed: number[] = [];
  let sum = 0;
  for (const [i, p] of probabilities.entries()) {
    const from = sum;
    sum += p;
    if (p > 0 && place >= from - 1e-9 && place <= sum + 1e-9) allowed.push(sorted[i]!.id);
  }
  function after(token: number): State {
    let { mu } = before;
    const p = probabilities[sorted.findIndex(({ id }) => id === token)]!;
    for (const { name, tau, eta } of chain) {
      if (!name.startsWith("mirostat")) continue;
      mu = (mu ?? 2 * (tau as number)) - (eta as number) * (-Math.log2(p) - (tau as number));
    }
    return { slack: before.slack, mu, used };
  }
  return { allowed: allowed as (number | string)[], after };
}

/** The token, or that there is none. */
function outcomeOf(take: () => number): number | string {
  try {
    return take();
  } catch (error) {
    if (error instanceof RangeError && /every token is excluded/.test(error.message)) {
      return "nothing";
    }
    throw error;
  }
}

function choose<T>(draw: Draw, list: readonly T[]): T {
  return list[draw(list.length)]!;
}

const real = (draw: Draw, low: number, high: number): number =>
  low + (high - low) * draw(1 << 20) / (1 << 20);

/** Ties, steps, floods of excluded tokens, and extremes. */
function randomLogits(draw: Draw, size: number): Float32Array {
  const kind = draw(6), spread = choose(draw, [0.01, 1, 5, 30, 1e4, 1e30]);
  const logits = Float32Array.from(
    { length: size },
    () =>
      kind === 0
        ? 0
        : kind === 1
        ? draw(4) - 2
        : kind === 2 && draw(3) > 0
        ? -Infinity
        : kind === 3 && draw(8) === 0
        ? choose(draw, [0, -0, spread, -spread, 3e38, -3e38, Infinity])
        : real(draw, -spread, spread),
  );
  if (logits.every((logit) => logit === -Infinity)) logits[draw(size)] = 1;
  return logits;
}

/** Numbers for any parameter whose rule allows them. */
const NUMBERS = [0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.999, 1, 2, 3, 10, 1000, -1];

/** Those of parameters that have turning points of their own, or whose rounding would decide elsewhere. */
const OWN_NUMBERS: Readonly<Record<string, readonly number[]>> = {
  "temperature.temperature": [0, 1e-9, 0.001, 0.3, 1, 2, 100, 1000],
  "temperature.range": [0, 0, 0.5, 3],
  "temperature.exponent": [0, 1, 2],
  "top_n_sigma.n": [-1, 0, 0.5, 1, 3, 100],
  "penalties.repeat_penalty": [0.5, 1, 1.1, 2, 1e3],
  "penalties.penalty_last_n": [-1, 0, 1, 5, 64, 5000],
  "penalties.frequency_penalty": [0, 0.1, -0.5, 10],
  "penalties.presence_penalty": [0, 0.3, -2],
  "dry.multiplier": [0, 0.8, 3],
  "dry.base": [1, 1.75, 10],
  "dry.allowed_length": [0, 1, 2, 5],
  "dry.penalty_last_n": [-1, 0, 1, 10, 5000],
  "fsd.n": [1, 2, 3, 4],
  "random_fsd.n": [1, 2, 3, 4],
  "mirostat.tau": [0, 1, 5],
  "mirostat_v1.tau": [0, 1, 5],
};

/** Excluding comes first, as options put it; mirostat has one memory. */
function randomChain(draw: Draw, size: number): PlainStep[] {
  const first = draw(4) > 0 ? [] : [{ name: "logit_bias", bias: [[draw(size), -Infinity]] }];
  const steps = Array.from({ length: 1 + draw(6) }, () => randomStep(draw, size));
  const isMirostat = ({ name }: PlainStep): boolean => name.startsWith("mirostat");
  return [
    ...first,
    ...steps.filter((step, i) => !isMirostat(step) || steps.findIndex(isMirostat) === i),
  ];
}

/** Any step, with every parameter stated: what its record allows. */
function randomStep(draw: Draw, size: number): PlainStep {
  const { name, rules } = choose(draw, [...samplingSteps.values()]);
  if (name === "temperature" && draw(2) === 0) {
    return { name, temperature: real(draw, 0.2, 2), range: choose(draw, [0, 0.5, 3]), exponent: 1 };
  }
  const values = Object.entries(rules).map(([key, rule]) => {
    if (key === "sequence_breakers") {
      return [
        key,
        Array.from({ length: draw(3) }, () => draw(size)),
      ];
    }
    if (key === "bias") return [key, randomBias(draw, size)];
    const numbers = OWN_NUMBERS[`${name}.${key}`];
    if (numbers) return [key, choose(draw, numbers)];
    if (rule.limits?.max === 1 && draw(3) === 0) return [key, real(draw, 0, 1)];
    return [key, choose(draw, NUMBERS.filter((value) => rule.parse(value) !== undefined))];
  });
  return { name, ...Object.fromEntries(values) };
}

function randomBias(draw: Draw, size: number): (readonly [number, number])[] {
  const pairs = Array.from(
    { length: draw(4) },
    () => [draw(size), choose(draw, [-20, -1, 0.5, 100])] as const,
  );
  return [...new Map(pairs)];
}
