// What becomes of each tensor of a GGUF decoder whose stream is turned by an isometry Q (orthogonal.ts). An RMS
// norm without gain commutes with Q up to √(size/width), so the gain g before a matrix goes into the matrix, and
//
//   reads the stream    W  → W diag(g) Qᵀ √(size/width)     queries, keys, values, gate, up, head
//   writes the stream   W  → Q W                            attention's output, down
//   table               E  → E Qᵀ
//   gain after a block  g  → Q diag(g) Qᵀ √(size/width)     Gemma's sandwich norms
//
// The last one is a matrix for good: Q diag(g) is no diagonal times an orthogonal matrix unless all gains are
// equal, and the length that the norm divides by is that of the block's output, which g must not touch. The
// engine multiplies by such a gain (engine/models/blocks/context.ts); llama.cpp cannot read it.

/** What becomes of a tensor. */
export type TurnRule =
  | { readonly kind: "table" }
  | { readonly kind: "writes" | "ones" | "after" | "keep" }
  /** The name of the norm before it. */
  | { readonly kind: "reads"; readonly norm: string };

const HEAD_NORM = "output_norm.weight";

const RULES: readonly (readonly [RegExp, (layer: string) => TurnRule])[] = [
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
  [/^(blk\.\d+\.)post_(attention|ffw)_norm\.weight$/, () => ({ kind: "after" })],
  // Behind a projection, where the stream is not seen.
  [/^(blk\.\d+\.)(attn_(q|k|v|qkv)|ffn_(gate|up))\.bias$|attn_[qk]_norm|rope_freqs/, () => ({
    kind: "keep",
  })],
];

/** What becomes of the tensor of that name, or undefined where nobody has worked it out. */
export function turnRule(name: string): TurnRule | undefined {
  for (const [pattern, rule] of RULES) {
    const found = pattern.exec(name);
    if (found) return rule(found[1] ?? "");
  }
  return undefined;
}

/** What becomes of the table where it is the head too, which then gets a tensor of its own. */
export const TIED_HEAD: { readonly name: string; readonly rule: TurnRule } = {
  name: "output.weight",
  rule: { kind: "reads", norm: HEAD_NORM },
};
