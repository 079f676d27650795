// The newest row of a session on its way into its own attention: attention_walk reads the row's queries, key and value
// from the product that made them, normalises and rotates them as it goes, attends to the key in registers, and writes
// key and value to the caches for the rows to come. A dispatch of its own for that (rope_append.ts) costs the host more
// than all of it costs the GPU. For one row only: rows of one step may attend to each other's keys, which have to be in
// the cache before.
//
// Every workgroup of a row rotates its queries anew, and every tile of a key head the key; one of them stores it. What a
// cache rounds is rounded before it is attended to, so that the result is the same as by way of the cache.

import type { Shader } from "../../kernel.ts";
import { float, wgsl } from "../../wgsl.ts";
import type { HeadShape } from "./heads.ts";
import { CACHE_BLOCK, ROUND_BLOCK, scalesOf } from "../cache_blocks.ts";
import { HALF_PAIR } from "../kv_append.ts";
import { list } from "../matmul/rows.ts";

/** How a row becomes heads. */
export interface FreshRow {
  /** Channels that are rotated in pairs; see canRotate. */
  readonly pairs: number;
  readonly interleaved: boolean;
  readonly hasQueryNorm: boolean;
  readonly hasKeyNorm: boolean;
  /** Of the norms. */
  readonly epsilon: number;
  readonly base: number;
  /** Whether keys and values come in bindings of their own. */
  readonly isApart: boolean;
}

/** Parts of a shader that attends to a fresh row. */
export interface FreshReader {
  /** Instead of a binding of queries. */
  readonly storage: Shader["storage"];
  /** Functions. */
  readonly declarations: string;
  /** Statements that define `name{i}`: quads of a lane of query head `head` (an expression), ready to be multiplied. */
  query(name: string, head: string): string;
  /** Statements that define `fresh_k{i}` and `fresh_v{i}` of `kv_head`, as the cache will have them. */
  readonly keyAndValue: string;
  /** Statements that write a lane's part of them as row `row` (an expression) of heads in the caches `k` and `v`. */
  store(row: string): string[];
}

/** Channels whose scales are an element of a q8_0 cache, and lanes of a block: eight channels each. */
const SCALE_PAIR = 2 * CACHE_BLOCK, BLOCK_LANES = CACHE_BLOCK / 8;

/** Whether quads of channels stay whole when they are rotated, and no two heads write an element of the cache. */
export function canRotate(
  { pairs, interleaved }: Pick<FreshRow, "pairs" | "interleaved">,
  { dtype, width }: Pick<HeadShape, "dtype" | "width">,
): boolean {
  return pairs % (interleaved ? 2 : 4) === 0 && (dtype !== "q8_0" || width % SCALE_PAIR === 0);
}

/**
 * The parts for heads whose lanes have `quads` quads each, of `lanes` neighbouring invocations.
 *
 * @param sum Statements that add a variable up over the lanes of a head.
 */
export function freshReader(
  { heads, kvHeads, width, dtype }: HeadShape,
  row: FreshRow,
  { quads, sum }: { readonly quads: number; readonly sum: (name: string) => string },
): FreshReader {
  const { hasQueryNorm, hasKeyNorm, isApart, interleaved } = row;
  const headQuads = width / 4;
  const f16 = dtype === "f16";
  const quadsOf = (text: (i: number) => string) => list(quads, text);

  /** Defines the factor of a head's norm. */
  function factorOf(name: string, source: string, base: string): string {
    return wgsl`
      var ${name}_squares = 0.0;
      ${
      quadsOf((i) =>
        wgsl`
        let ${name}_raw${i} = ${source}[${base} + ${quads}u * lane + ${i}u];
        ${name}_squares += dot(${name}_raw${i}, ${name}_raw${i});
      `
      )
    }
      ${sum(`${name}_squares`)}
      let ${name}_factor = 1.0 / sqrt(${name}_squares / ${width}.0 + ${float(row.epsilon)});
    `;
  }

  function headOf(
    name: string,
    { kind, source, base }: {
      readonly kind: "q" | "k";
      readonly source: string;
      readonly base: string;
    },
  ): string {
    const isNormed = kind === "q" ? hasQueryNorm : hasKeyNorm;
    const factor = isNormed ? `${name}_factor` : "1.0";
    return wgsl`
      ${isNormed ? factorOf(name, source, base) : ""}
      ${
      quadsOf((i) =>
        `let ${name}${i} = turned_${kind}(${base}, ${quads}u * lane + ${i}u, ${factor});`
      )
    }
    `;
  }

  const keyBase = isApart ? `kv_head * ${headQuads}u` : `(${heads}u + kv_head) * ${headQuads}u`;
  const valueBase = isApart ? keyBase : `(${heads + kvHeads}u + kv_head) * ${headQuads}u`;
  return {
    storage: {
      qkv: "array<vec4<f32>>",
      table: interleaved ? "array<vec2<f32>>" : "array<vec4<f32>>",
      ...hasQueryNorm && { query_norm: "array<vec4<f32>>" },
      ...hasKeyNorm && { key_norm: "array<vec4<f32>>" },
      ...isApart && { new_k: "array<vec4<f32>>", new_v: "array<vec4<f32>>" },
    },
    declarations: wgsl`
      ${f16 ? [HALF_PAIR, STORED] : dtype === "q8_0" ? ROUND_BLOCK : ""}
      ${
      turned("q", { source: "qkv", row, headQuads, norm: hasQueryNorm ? "query_norm" : undefined })
    }
      ${
      turned("k", {
        source: isApart ? "new_k" : "qkv",
        row,
        headQuads,
        norm: hasKeyNorm ? "key_norm" : undefined,
      })
    }
    `,
    query: (name, head) =>
      headOf(name, { kind: "q", source: "qkv", base: `${head} * ${headQuads}u` }),
    keyAndValue: wgsl`
      ${headOf("turned_k", { kind: "k", source: isApart ? "new_k" : "qkv", base: keyBase })}
      ${
      quadsOf((i) =>
        `let raw_v${i} = ${isApart ? "new_v" : "qkv"}[${valueBase} + ${quads}u * lane + ${i}u];`
      )
    }
      ${cached("fresh_k", "turned_k")}
      ${cached("fresh_v", "raw_v")}
    `,
    store: (row) =>
      (["k", "v"] as const).map((cache) => {
        const at = `(${row}) * ${headQuads / quads}u + lane`, name = `fresh_${cache}`;
        if (dtype === "q8_0") return storeCodes(cache, { at, row, pairs: width / SCALE_PAIR });
        const packed = quadsOf((i) => f16 ? `stored(${name}${i})` : `${name}${i}`).join(", ");
        return `${cache}[${at}] = ${quads === 2 ? `vec4<u32>(${packed})` : packed};`;
      }),
  };

  /** Defines the quads of a lane as the cache gives them back. */
  function cached(name: string, from: string): string | string[] {
    if (dtype === "q8_0") return inBlocks(name, from);
    return quadsOf((i) => `let ${name}${i} = ${f16 ? `rounded(${from}${i})` : `${from}${i}`};`);
  }
}

/** The same in blocks: their codes, and the scales of this one and the next. */
function inBlocks(name: string, from: string): string {
  const block = `${name}_block`, peak = `${name}_peak`;
  const across = (value: string, lanes: number) => `subgroupShuffleXor(${value}, ${lanes}u)`;
  return wgsl`
    var ${peak} = max(peak_of(${from}0), peak_of(${from}1));
    ${list(Math.log2(BLOCK_LANES), (i) => `${peak} = max(${peak}, ${across(peak, 1 << i)});`)}
    let ${block} = block_of(${peak});
    let ${name}_words = vec2<u32>(
      block_word(${from}0, ${block}),
      block_word(${from}1, ${block}),
    );
    let ${name}_scales = vec2<f32>(${block}.scale, ${across(`${block}.scale`, BLOCK_LANES)});
    let ${name}0 = ${block}.scale * codes_of(${name}_words.x);
    let ${name}1 = ${block}.scale * codes_of(${name}_words.y);
  `;
}

function storeCodes(
  cache: "k" | "v",
  { at, row, pairs }: { readonly at: string; readonly row: string; readonly pairs: number },
): string {
  const place = `(${row}) * ${pairs}u + lane / ${2 * BLOCK_LANES}u`;
  return wgsl`
    ${cache}[${at}] = fresh_${cache}_words;
    if (lane % ${2 * BLOCK_LANES}u == 0u) {
      ${cache}[${scalesOf(cache)} + ${place}] = bitcast<vec2<u32>>(fresh_${cache}_scales);
    }
  `;
}

const STORED = wgsl`
  // Four channels of a float16 cache.
  fn stored(quad: vec4<f32>) -> vec2<u32> {
    return vec2<u32>(half_pair(quad.xy), half_pair(quad.zw));
  }

  fn rounded(quad: vec4<f32>) -> vec4<f32> {
    let pair = stored(quad);
    return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
  }
`;

/** `turned_NAME(base, quad, factor)`: a quad of the head at `base` after norm and rotation. */
function turned(
  name: "q" | "k",
  { source, row: { pairs, interleaved, base }, headQuads, norm }: {
    readonly source: string;
    readonly row: FreshRow;
    readonly headQuads: number;
    readonly norm: string | undefined;
  },
): string {
  const raw = (quad: string) =>
    norm
      ? `${source}[base + ${quad}] * (factor * (${float(base)} + ${norm}[${quad}]))`
      : `${source}[base + ${quad}]`;
  const rest = pairs / 2 < headQuads ? `if (quad >= ${pairs / 2}u) { return own; }` : "";
  const rotated = interleaved
    ? wgsl`
      let cosine = table[quad].xxyy;
      let sine = table[quad + ${pairs / 2}u].xxyy;
      return own * cosine + vec4<f32>(-own.y, own.x, -own.w, own.z) * sine;
    `
    : wgsl`
      let is_second = quad >= ${pairs / 4}u;
      let pair = select(quad, quad - ${pairs / 4}u, is_second);
      let partner = select(quad + ${pairs / 4}u, pair, is_second);
      let other = ${raw("partner")};
      return own * table[pair] + select(-other, other, is_second) * table[pair + ${pairs / 4}u];
    `;
  return wgsl`
    fn turned_${name}(base: u32, quad: u32, factor: f32) -> vec4<f32> {
      let own = ${raw("quad")};
      ${rest}
      ${rotated}
    }
  `;
}
