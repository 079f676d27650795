// Which keys a row sees, what its scores become and where heads lie: the part in which attentions differ. Kernels ask
// `span_of(row)` and `adjust(score, head, key, span)` and know nothing of windows, slots, masks or biases.
// Scores are in base-2 units nowhere: `exp` is the same instruction after one multiplication.

import type { Shader } from "../../kernel.ts";
import { float, wgsl } from "../../wgsl.ts";
import { TANH } from "../activations.ts";
import { inPage, pageRow, type PageTable, tableOf } from "../cache_pages.ts";

/** A score that no key has. */
export const NO_SCORE: string = float(-3e38);
/** The least that a key has which is seen, however large a number a mask takes off. */
const LEAST_SCORE = float(-2.9e38);

/** WGSL of one kind of attention. */
export interface SpanRule {
  /** WGSL types of its bindings. */
  readonly storage: Readonly<Record<string, string>>;
  /** Of its uniforms; absent: there are none. */
  readonly uniforms?: Shader["uniforms"];
  /** `struct Span`, `span_of` and `adjust`. */
  readonly code: string;
  /** Whether spans end before the row's own key, which is attended to apart (fresh.ts). */
  readonly leavesOwnKey?: boolean;
  /** How heads lie; absent: side by side in rows. */
  readonly layout?: HeadLayout;
  /** How queries do, if otherwise. */
  readonly queries?: HeadLayout["query"];
  /** The pages that keys are in; absent: they lie one behind the other. */
  readonly pages?: PageTable | undefined;
  /** Whether spans may begin elsewhere than at 0. */
  readonly begins?: boolean;
  /** What a row is that sees nothing, a quad or a number; absent: zeros, and NaN is as little as nothing. */
  readonly nothing?: string;
}

const SPAN = wgsl`
  // Keys start … end - 1; key 0 is row \`base\`, or in the page of entry \`base\` of the table.
  struct Span { start: u32, end: u32, base: u32, position: i32 }
`;

/** What the rule of a step's rows is made for. */
export interface RowsRule {
  readonly scale: number;
  /** Bound of scores; 0: none. */
  readonly softcap?: number;
  /** Where keys are in a cache; absent: they are rows of the step. */
  readonly pages?: PageTable | undefined;
  /** Last keys that a row sees; 0: all. */
  readonly window?: number;
  /** Whether scores fall with distance. */
  readonly slopes?: boolean;
  /** Which of these lists there are. */
  readonly starts?: boolean;
  readonly ends?: boolean;
  readonly positions?: boolean;
  /** Greatest distance of the table of biases; absent: there is none. */
  readonly reach?: number | undefined;
  /** See SpanRule; default: no. */
  readonly leavesOwnKey?: boolean;
  /** Heads of queries, of whose rows those of the list `picked` attend; absent: all do. */
  readonly picked?: number | undefined;
  /** Heads of rows that have queries, keys and values, side by side; absent: they lie apart. */
  readonly packed?: { readonly heads: number; readonly kvHeads: number } | undefined;
}

/** Rows that see spans, or what is before them; bindings positions, slots, slopes, starts, ends, bias, picked. */
export function rowsRule(given: RowsRule): SpanRule {
  const { pages, starts, ends, positions, window = 0, slopes, reach, leavesOwnKey, picked } = given;
  const least = starts ? "starts[row]" : "0";
  const start = window > 0
    ? `u32(max(${least}, position + 1 - ${window}))`
    : starts
    ? `u32(${least})`
    : "0u";
  const end = !ends
    ? leavesOwnKey ? "u32(position)" : "u32(position + 1)"
    : `u32(max(${least}, ends[row]))`;
  const biased = slopes ? "own - slopes[head] * f32(span.position - i32(key))" : "own";
  return {
    leavesOwnKey: leavesOwnKey ?? false,
    pages,
    ...given.packed && { layout: packedLayout(given.packed) },
    ...picked && { queries: (row, head) => `picked[${row}] * ${picked}u + ${head}` },
    begins: starts === true || window > 0,
    storage: {
      ...starts ? { starts: "array<i32>" } : {},
      ...ends ? { ends: "array<i32>" } : {},
      ...positions ? { positions: "array<i32>" } : {},
      ...pages ? { slots: "array<u32>" } : {},
      ...slopes ? { slopes: "array<f32>" } : {},
      ...reach === undefined ? {} : { bias: "array<f32>" },
      ...picked ? { picked: "array<u32>" } : {},
    },
    code: wgsl`
      ${SPAN}

      fn span_of(${
      picked ? "place: u32) -> Span {\nlet row = picked[place];" : "row: u32) -> Span {"
    }
        let position = ${positions ? "positions[row]" : "0"};
        return Span(${start}, ${end}, ${pages ? tableOf(pages, "slots[row]") : "0u"}, position);
      }

      ${pages ? pageRow(pages) : ""}

      ${given.softcap ? TANH : ""}

      fn adjust(score: f32, head: u32, key: u32, span: Span) -> f32 {
        ${capped(given)}
        ${reach === undefined ? `return ${biased};` : byDistance(reach, biased)}
      }
    `,
  };
}

function capped({ scale, softcap = 0 }: Pick<RowsRule, "scale" | "softcap">): string {
  return softcap === 0
    ? `let own = score * ${float(scale)};`
    : `let own = ${float(softcap)} * safe_tanh(vec4<f32>(score * ${float(scale / softcap)})).x;`;
}

function byDistance(reach: number, own: string): string {
  return wgsl`
    let distance = clamp(i32(key) - i32(span.start) - span.position, ${-reach}, ${reach});
    return ${own} + bias[head * ${2 * reach + 1}u + u32(distance + ${reach})];
  `;
}

/** Row at which the page of a key begins, or that of key 0 where there are no pages: an expression. */
export function pageOf({ pages }: SpanRule, at: { base: string; key: string }): string {
  return pages ? `page_row(${at.base}, ${at.key})` : at.base;
}

/** Place of a key behind that row. */
export function placeOf({ pages }: SpanRule, key: string): string {
  return pages ? inPage(pages, key) : key;
}

/**
 * `first_of(span)`: where blocks of so many keys begin, so that each lies within a page. Keys before the span are not seen.
 */
export function firstOf({ pages, begins }: SpanRule, block: number): string {
  return wgsl`
    fn first_of(span: Span) -> u32 {
      return span.start${pages && begins ? ` / ${block}u * ${block}u` : ""};
    }
  `;
}

/** Whether keys of a block may be before the span. */
export function isEarly({ pages, begins }: SpanRule): boolean {
  return pages !== undefined && begins === true;
}

/** How heads lie: the index of a head's row of channels, of expressions. */
export interface HeadLayout {
  query(row: string, head: string): string;
  result(row: string, head: string): string;
  /** Of a key by `pageOf` and `placeOf`. */
  key(base: string, key: string, kvHead: string): string;
  value(base: string, key: string, kvHead: string): string;
}

/** How heads of so many lie by a rule. */
export function layoutOf(
  { layout, queries = layout?.query }: SpanRule,
  { heads, kvHeads }: { readonly heads: number; readonly kvHeads: number },
): HeadLayout {
  return layout ?? {
    ...{ query: queries ?? joinedRow(heads), result: joinedRow(heads) },
    ...{ key: joinedKey(kvHeads), value: joinedKey(kvHeads) },
  };
}

function joinedRow(heads: number): HeadLayout["query"] {
  return (row, head) => `${row} * ${heads}u + ${head}`;
}

function joinedKey(heads: number, first = 0): HeadLayout["key"] {
  return (base, key, kvHead) =>
    `(${base} + ${key}) * ${heads}u + ${first > 0 ? `${first}u + ` : ""}${kvHead}`;
}

/** Queries, keys and values side by side in rows; results have heads of queries alone. */
function packedLayout(
  { heads, kvHeads }: { readonly heads: number; readonly kvHeads: number },
): HeadLayout {
  const all = heads + 2 * kvHeads;
  return {
    ...{ query: joinedRow(all), result: joinedRow(heads) },
    ...{ key: joinedKey(all, heads), value: joinedKey(all, heads + kvHeads) },
  };
}

function planeRow(heads: number): HeadLayout["query"] {
  return (row, head) =>
    `(${row} / params.item_rows * ${heads}u + ${head}) * params.item_rows + ${row} % params.item_rows`;
}

function planeKey(kvHeads: number): HeadLayout["key"] {
  return (base, key, kvHead) => `${base} * ${kvHeads}u + ${kvHead} * params.keys + ${key}`;
}

/** What the rule of tensors is made for. */
export interface TensorRule {
  readonly heads: number;
  readonly kvHeads: number;
  readonly scale: number;
  readonly softcap: number;
  readonly window: number;
  readonly causal: boolean;
  readonly fromEnd: boolean;
  /** Words of a count of valid keys; 0: all keys are valid. */
  readonly countWords: 0 | 1 | 2;
  /** Whether a mask is added, or says what is seen. */
  readonly mask: "none" | "added" | "truths";
  /** Whether heads are planes [B, H, S, D]; otherwise [B, S, H · D]. */
  readonly planes: { readonly q: boolean; readonly k: boolean; readonly v: boolean };
  /** Whether q holds keys and values too. */
  readonly packed: boolean;
  readonly spoilt: boolean;
}

/**
 * Items with rows of their own; bindings counts, mask. Uniforms: `item_rows` and `keys` of an item, `offset` of a causal
 * row, strides and columns of a mask. Span.position is where the row's mask begins.
 */
export function tensorRule(given: TensorRule): SpanRule {
  const { heads, kvHeads, window, causal, fromEnd, countWords, mask, planes, packed } = given;
  const valid = countWords > 0 ? `min(counts[item * ${countWords}u], params.keys)` : "params.keys";
  const first = fromEnd ? "max(0, i32(valid) - i32(params.item_rows))" : "params.offset";
  return {
    storage: {
      ...countWords > 0 ? { counts: "array<u32>" } : {},
      ...mask === "none" ? {} : { mask: mask === "added" ? "array<f32>" : "array<u32>" },
    },
    uniforms: {
      ...{ item_rows: "u32", keys: "u32", offset: "i32" },
      ...mask === "none"
        ? {}
        : { mask_batch: "u32", mask_head: "u32", mask_row: "u32", mask_columns: "u32" },
    },
    layout: packed ? packedLayout(given) : {
      query: planes.q ? planeRow(heads) : joinedRow(heads),
      result: planes.q ? planeRow(heads) : joinedRow(heads),
      key: planes.k ? planeKey(kvHeads) : joinedKey(kvHeads),
      value: planes.v ? planeKey(kvHeads) : joinedKey(kvHeads),
    },
    nothing: given.spoilt
      ? "select(bitcast<f32>(params.keys | 0x7fc00000u), 0.0, params.keys == 0u)"
      : "0.0",
    code: wgsl`
      ${SPAN}

      fn span_of(row: u32) -> Span {
        let item = row / params.item_rows;
        let place = row % params.item_rows;
        let valid = ${valid};
        let own = i32(place) + ${first};
        var end = ${causal ? "u32(clamp(own + 1, 0, i32(valid)))" : "valid"};
        ${mask === "none" ? "" : MASKED_END}
        let start = ${window > 0 ? `min(u32(max(0, own - ${window - 1})), end)` : "0u"};
        let masked = ${
      mask === "none" ? "0u" : "item * params.mask_batch + place * params.mask_row"
    };
        return Span(start, end, item * params.keys, i32(masked));
      }

      ${given.softcap > 0 ? TANH : ""}

      // What is no number makes a row that is none, whatever else it sees; infinity does that too.
      fn held(score: f32) -> f32 {
        let bits = bitcast<u32>(score);
        let is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
        return select(max(score, ${LEAST_SCORE}), bitcast<f32>(bits & 0x7f800000u), is_nan);
      }

      fn adjust(score: f32, head: u32, key: u32, span: Span) -> f32 {
        ${capped(given)}
        ${MASKS[mask]}
      }
    `,
  };
}

// Where a mask has fewer columns than there are keys, the rest is not seen; a single one is for all.
const MASKED_END = "if (params.mask_columns != 1u) { end = min(end, params.mask_columns); }";

const MASK_PLACE = wgsl`
  let column = select(key, 0u, params.mask_columns == 1u);
  let at = u32(span.position) + head * params.mask_head + column;
`;

const MASKS: Readonly<Record<TensorRule["mask"], string>> = {
  none: "return held(own);",
  added: wgsl`
    ${MASK_PLACE}
    let added = mask[at];
    if (bitcast<u32>(added) == 0xff800000u) { return ${NO_SCORE}; }
    return held(own + added);
  `,
  truths: wgsl`
    ${MASK_PLACE}
    if ((extractBits(mask[at >> 2u], (at & 3u) * 8u, 8u)) == 0u) { return ${NO_SCORE}; }
    return held(own);
  `,
};

/** `factor` where a row sees something, by the sum of its exponentials. */
export function whereSeen(
  { nothing }: SpanRule,
  { sum, factor }: { readonly sum: string; readonly factor: string },
): string {
  return nothing === undefined
    ? `select(0.0, ${factor}, ${sum} > 0.0)`
    : `select(${factor}, ${nothing}, ${sum} == 0.0)`;
}
