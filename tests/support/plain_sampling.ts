// Sampling steps written down from their definitions, one after the other on a sorted list, with Math.exp and no
// regard to speed; ../shared's specification and the papers that the engine's own files name. It shares nothing with
// engine/decode/sampling. Logits are float32 there, so what changes one rounds it here too.

/** A token that may still be taken. */
export interface PlainToken {
  readonly id: number;
  readonly logit: number;
}

/** Tokens so far. */
export interface PlainHistory {
  readonly tokens: readonly number[];
  readonly promptLength: number;
}

/** What steps see beside the tokens. */
export interface PlainState extends PlainHistory {
  /** Surprise limit of mirostat; undefined before its first token. */
  mu: number | undefined;
  /** Next random number. */
  coin(): number;
  /** How far a threshold is moved, as a share: rounding decides what lies on it. */
  readonly slack: number;
}

/** A step and its parameters. */
export interface PlainStep {
  readonly name: string;
  readonly [parameter: string]: unknown;
}

type Tokens = readonly PlainToken[];
type Rule = (tokens: Tokens, p: Readonly<Record<string, number>>, state: PlainState) => Tokens;

/** Best first, equals by lower id. */
export function inOrder(tokens: Tokens): PlainToken[] {
  return tokens.toSorted((a, b) => b.logit - a.logit || a.id - b.id);
}

/** What is infinitely likelier than the rest has all of the probability, in equal parts. */
export function withoutInfinity(tokens: Tokens): Tokens {
  if (!tokens.some(({ logit }) => logit === Infinity)) return tokens;
  return tokens.map(({ id, logit }) => ({ id, logit: logit === Infinity ? 0 : -Infinity }));
}

/** Probabilities by the definition of the softmax. */
export function softmaxOf(tokens: Tokens): number[] {
  const max = Math.max(...tokens.map(({ logit }) => logit));
  const weights = tokens.map(({ logit }) => Math.exp(logit - max));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

function entropyOf(probabilities: readonly number[]): number {
  return -probabilities.reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0);
}

/** How many of the first are needed for a sum. */
function reaching(probabilities: readonly number[], share: number): number {
  let sum = 0;
  for (const [i, p] of probabilities.entries()) {
    if (p === 0) return Math.max(1, i);
    sum += p;
    if (sum >= share) return i + 1;
  }
  return probabilities.length;
}

const changed = (tokens: Tokens, rule: (token: PlainToken) => number): Tokens =>
  tokens.map((token) => ({ id: token.id, logit: Math.fround(rule(token)) }));

/** Steps by name; with what parameters is in {@linkcode applyPlain}'s caller. */
const RULES: Readonly<Record<string, Rule>> = {
  draw: (tokens) => tokens,
  greedy: (tokens) => inOrder(tokens).slice(0, 1),
  temperature(tokens, { temperature, range = 0, exponent = 1 }) {
    let value = temperature!;
    if (range > 0) {
      const low = Math.max(0, value - range), high = value + range;
      const share = tokens.length === 1
        ? 1
        : entropyOf(softmaxOf(tokens)) / Math.log(tokens.length);
      value = tokens.length === 1
        ? 1
        : low + (high - low) * Math.min(1, Math.max(0, share)) ** exponent;
    }
    if (value === 0) return inOrder(tokens).slice(0, 1);
    // Only distances count: where the best one would leave float32 it is 0.
    const max = Math.max(...tokens.map(({ logit }) => logit));
    const shift = Math.abs(max / value) < 3.4e38 ? 0 : max;
    return changed(tokens, ({ logit }) => (logit - shift) / value);
  },
  top_k: (tokens, { k }) => k === 0 ? tokens : inOrder(tokens).slice(0, k),
  top_p(tokens, { top_p, min_k = 1, max_k = 0 }, { slack }) {
    const sorted = inOrder(tokens);
    const nucleus = top_p === 1 ? sorted.length : reaching(softmaxOf(sorted), top_p! * (1 + slack));
    const count = Math.min(max_k === 0 ? Infinity : max_k, Math.max(min_k, nucleus));
    return sorted.slice(0, Math.max(1, count));
  },
  min_p(tokens, { min_p, min_k = 1 }, { slack }) {
    if (min_p === 0) return tokens;
    const sorted = inOrder(tokens), probabilities = softmaxOf(sorted);
    const least = min_p! * probabilities[0]! * (1 + slack);
    return sorted.filter((_, i) => i < Math.max(1, min_k) || probabilities[i]! >= least);
  },
  typical(tokens, { p }, { slack }) {
    if (p === 1) return tokens;
    const probabilities = softmaxOf(tokens), entropy = entropyOf(probabilities);
    const order = tokens.map(({ id }, i) => ({
      i,
      id,
      away: Math.fround(Math.abs(entropy + Math.log(probabilities[i]!))),
    })).sort((a, b) => a.away - b.away || a.id - b.id);
    const kept = new Set<number>();
    let sum = 0;
    for (const { i } of order) {
      if (kept.size > 0 && sum >= p! * (1 + slack)) break;
      kept.add(i);
      sum += probabilities[i]!;
    }
    return tokens.filter((_, i) => kept.has(i));
  },
  tfs(tokens, { z }, { slack }) {
    if (z === 1 || tokens.length < 3) return tokens;
    const sorted = inOrder(tokens), p = softmaxOf(sorted);
    const bends = p.slice(2).map((third, i) => Math.abs(p[i]! - 2 * p[i + 1]! + third));
    const total = bends.reduce((sum, bend) => sum + bend, 0);
    const weights = bends.map((bend) => total < 1e-6 ? 1 / bends.length : bend / total);
    let sum = 0;
    for (const [i, weight] of weights.entries()) {
      sum += weight;
      if (sum > z! * (1 + slack)) return sorted.slice(0, Math.max(1, i));
    }
    return tokens;
  },
  top_n_sigma(tokens, { n }, { slack }) {
    if (n! <= 0) return tokens;
    const finite = tokens.map(({ logit }) => logit).filter(Number.isFinite);
    const mean = finite.reduce((sum, logit) => sum + logit, 0) / finite.length;
    const square = finite.reduce((sum, logit) => sum + (logit - mean) ** 2, 0) / finite.length;
    const max = Math.max(...finite);
    return tokens.filter(({ logit }) => logit >= max - n! * Math.sqrt(square) * (1 - slack));
  },
  xtc(tokens, { probability, threshold }, { coin, slack }) {
    if (probability === 0 || threshold! > 0.5) return tokens;
    if (coin() >= probability!) return tokens;
    const sorted = inOrder(tokens), p = softmaxOf(sorted);
    const top =
      sorted.filter(({ logit }, i) => p[i]! >= threshold! * (1 + slack) && logit > -Infinity)
        .length;
    return top < 2 ? tokens : sorted.slice(top - 1);
  },
  penalties(tokens, p, { tokens: past, promptLength }) {
    const { repeat_penalty = 1, penalty_last_n = 64 } = p;
    const { frequency_penalty = 0, presence_penalty = 0 } = p;
    const recent = new Set(
      penalty_last_n === -1 ? past : penalty_last_n === 0 ? [] : past.slice(-penalty_last_n),
    );
    const generated = past.slice(promptLength);
    const repeated = changed(tokens, ({ id, logit }) => {
      if (!recent.has(id) || repeat_penalty === 1) return logit;
      return logit > 0 ? logit / repeat_penalty : logit * repeat_penalty;
    });
    return changed(repeated, ({ id, logit }) => {
      const count = generated.filter((one) => one === id).length;
      return count === 0 ? logit : logit - count * frequency_penalty - presence_penalty;
    });
  },
  mirostat(tokens, { tau }, state) {
    const sorted = inOrder(tokens), p = softmaxOf(sorted);
    const mu = state.mu ?? 2 * tau!;
    return sorted.filter((_, i) => i === 0 || p[i]! >= 2 ** -mu * (1 + state.slack));
  },
  mirostat_v1(tokens, { tau }, state) {
    const sorted = inOrder(tokens), mu = state.mu ?? 2 * tau!;
    if (sorted.length < 2) return sorted;
    let products = 0, squares = 0;
    for (let i = 0; i < Math.min(100, sorted.length) - 1; i++) {
      if (sorted[i + 1]!.logit === -Infinity) break;
      const t = Math.log((i + 2) / (i + 1));
      products += t * (sorted[i]!.logit - sorted[i + 1]!.logit); // log of p[i] / p[i + 1]
      squares += t * t;
    }
    const s = squares === 0 ? 0 : products / squares, epsilon = s - 1;
    if (s <= 0) return tokens;
    const n = sorted.length;
    const factor = Math.abs(epsilon) < 1e-9 ? 1 / Math.log(n) : epsilon / (1 - n ** -epsilon);
    const k = (factor * 2 ** mu) ** (1 / s) * (1 + state.slack);
    return sorted.slice(0, Math.max(1, Math.floor(Math.min(k, n))));
  },
  random_fsd(tokens, p, state) {
    const isRandom = state.tokens.length - state.promptLength < p.random_tokens! &&
      state.coin() < p.random_probability!;
    if (!isRandom) return RULES.fsd!(tokens, p, state);
    const sorted = inOrder(tokens);
    return sorted.slice(
      0,
      Math.min(p.max_k!, reaching(softmaxOf(sorted), p.top_p! * (1 + state.slack))),
    );
  },
  fsd: (tokens, p, state) => {
    const { k = 6, alpha = 0.5, n = 3, beta = 0.9 } = p;
    const sorted = inOrder(tokens), probabilities = softmaxOf(sorted);
    const { tokens: past } = state;
    const penaltyOf = (id: number): number => {
      if (past.length < n - 1 || past.length === 0) return 0;
      let rest = 1, sum = 0;
      for (let order = n - 1; order >= 0; order--) {
        const context = past.slice(past.length - order);
        const next = past.filter((_, at) =>
          at >= order && context.every((one, i) => past[at - order + i] === one)
        );
        const count = next.filter((one) => one === id).length;
        if (count === 0) continue;
        sum += rest * (order === 0 ? count / next.length : beta * count / (next.length + 1));
        rest *= 1 - beta;
      }
      return sum;
    };
    const scores = sorted.slice(0, k).map(({ id }, i) =>
      (1 - alpha) * probabilities[i]! - alpha * penaltyOf(id)
    );
    // The first of equals, up to rounding.
    const best = Math.max(...scores);
    return [sorted[scores.findIndex((score) => score >= best - Math.max(0, state.slack))]!];
  },
};

/** DRY: a token loses by the longest repetition that it would prolong. */
function applyDry(tokens: Tokens, step: PlainStep, { tokens: past }: PlainHistory): Tokens {
  const { multiplier, base, allowed_length, penalty_last_n } = step as Readonly<
    Record<string, number>
  > as Readonly<Record<"multiplier" | "base" | "allowed_length" | "penalty_last_n", number>>;
  const breakers = new Set(step.sequence_breakers as readonly number[]);
  const window = penalty_last_n === -1
    ? past
    : penalty_last_n === 0
    ? []
    : past.slice(-penalty_last_n);
  const longest = new Map<number, number>();
  for (let end = 0; end < window.length - 1; end++) {
    let length = 0;
    while (length <= end) {
      const one = window[end - length]!;
      if (one !== window[window.length - 1 - length] || breakers.has(one)) break;
      length++;
    }
    const next = window[end + 1]!;
    if (length > (longest.get(next) ?? 0) && !breakers.has(next)) longest.set(next, length);
  }
  const most = 88.7 / Math.log(base);
  return changed(tokens, ({ id, logit }) => {
    const length = longest.get(id) ?? 0;
    if (length === 0 || length < allowed_length) return logit;
    return logit - multiplier * base ** Math.min(length - allowed_length, most);
  });
}

/** Applies one step. */
export function applyPlain(given: Tokens, step: PlainStep, state: PlainState): Tokens {
  const tokens = withoutInfinity(given);
  if (step.name === "dry") return applyDry(tokens, step, state);
  if (step.name === "logit_bias") {
    const bias = new Map(step.bias as readonly (readonly [number, number])[]);
    return changed(tokens, ({ id, logit }) => logit + (bias.get(id) ?? 0));
  }
  const rule = RULES[step.name];
  if (!rule) throw new Error(`${step.name} has no definition in tests/support/plain_sampling.ts`);
  return rule(tokens, step as unknown as Readonly<Record<string, number>>, state);
}

/** java.util.Random as its documentation has it, in whole numbers: doubles of 53 bits. */
export function javaDoubles(seed: number): () => number {
  const multiplier = 0x5DEECE66Dn, mask = (1n << 48n) - 1n;
  let state = (BigInt(seed) ^ multiplier) & mask;
  const next = (bits: bigint): bigint => {
    state = (state * multiplier + 0xBn) & mask;
    return state >> (48n - bits);
  };
  return () => Number((next(26n) << 27n) + next(27n)) / 2 ** 53;
}
