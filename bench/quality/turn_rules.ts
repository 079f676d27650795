// What becomes of each tensor of a GGUF decoder whose stream is turned by an isometry Q (orthogonal.ts). An RMS
// norm without gain commutes with Q up to k = √(size/width), so that
//
//   table               E  → E Qᵀ
//   writes the stream   W  → Q W                  attention's output, down
//   reads the stream    W  → W diag(g) Qᵀ k       queries, keys, values, gate, up, head; g: the gain before them
//   gain before them    g  → 1
//   gain after a block  g  → Q diag(g) Qᵀ k       Gemma's sandwich norms
//
// The last one is a matrix for good: Q diag(g) is no diagonal times an orthogonal matrix unless all gains are
// equal, and the length that the norm divides by is that of the block's output, which g must not touch. The
// engine multiplies by such a gain (engine/models/blocks/context.ts); llama.cpp cannot read it.
//
// Gains before a block may stay as well, each as a matrix, and W → W Qᵀ. Gemma wants that: a few channels of
// its stream are hundreds of times larger than the rest and are held down by small gains. Folded and turned, the
// error of every weight meets those channels unattenuated: Q8_0 alone takes Gemma 3 270M from 22.0 to 42.4.

/** `folded`: gains before blocks go into the matrices behind them; `kept`: they become matrices. */
export type Gains = "folded" | "kept";

/** What becomes of a tensor. */
export type TurnRule =
  | { readonly kind: "table" | "writes" | "ones" | "gain" | "keep" }
  /** With the name of the norm whose gain goes into it. */
  | { readonly kind: "reads"; readonly norm?: string };

const HEAD_NORM = "output_norm.weight";

type RuleRow = readonly [RegExp, (layer: string) => TurnRule];

const RULES: readonly RuleRow[] = [
  [/^token_embd\.weight$/, () => ({ kind: "table" })],
  [/^output\.weight$/, () => ({ kind: "reads", norm: HEAD_NORM })],
  [
    /^(blk\.\d+\.)attn_(q|k|v|qkv)\.weight$/,
    (layer) => ({ kind: "reads", norm: `${layer}attn_norm.weight` }),
  ],
  [
    /^(blk\.\d+\.)ffn_(gate|up)\.weight$/,
    (layer) => ({ kind: "reads", norm: `${layer}ffn_norm.weight` }),
  ],
  [/^(blk\.\d+\.)(attn_output|ffn_down)\.(weight|bias)$/, () => ({ kind: "writes" })],
  [/^(blk\.\d+\.(attn|ffn)|output)_norm\.weight$/, () => ({ kind: "ones" })],
  [/^(blk\.\d+\.)post_(attention|ffw)_norm\.weight$/, () => ({ kind: "gain" })],
  // Behind a projection, where the stream is not seen.
  [/^(blk\.\d+\.)(attn_(q|k|v|qkv)|ffn_(gate|up))\.bias$|attn_[qk]_norm|rope_freqs/, () => ({
    kind: "keep",
  })],
];

/** What becomes of the tensor of that name, or undefined where nobody has worked it out. */
export function turnRule(name: string, gains: Gains): TurnRule | undefined {
  for (const [pattern, rule] of RULES) {
    const found = pattern.exec(name);
    if (!found) continue;
    const folded = rule(found[1] ?? "");
    if (gains === "folded") return folded;
    if (folded.kind === "ones") return { kind: "gain" };
    return folded.kind === "reads" ? { kind: "reads" } : folded;
  }
  return undefined;
}

/** What becomes of the table where it is the head too and gains are folded: a tensor of its own. */
export const TIED_HEAD: { readonly name: string; readonly rule: TurnRule } = {
  name: "output.weight",
  rule: { kind: "reads", norm: HEAD_NORM },
};
