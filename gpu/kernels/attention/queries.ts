// Attention of very many rows that all see the same keys, as those of pictures do: an invocation has a query of its own, or
// two, with channels and sums of values in registers, and walks over the keys with its workgroup. What it reads of them is
// read by all at once, the same word, so workgroup memory, which bounds tiles of queries and keys (tile.ts), is asked once
// for four multiplications. Indices of loops that are written out are constants, which nobody checks.

import type { Shader } from "../../kernel.ts";
import { float, mainOf, wgsl } from "../../wgsl.ts";
import { list } from "../matmul/rows.ts";
import { headReaders, type HeadShape } from "./heads.ts";
import { layoutOf, NO_SCORE, type SpanRule } from "./spans.ts";

/** What a shader is made for. */
export interface AttentionQueriesParams extends HeadShape {
  /** Says how heads lie; every row sees all keys of its item. */
  readonly rule: SpanRule;
  readonly scale: number;
  /** Invocations of a workgroup, and queries of each. */
  readonly invocations: number;
  readonly each: number;
  /** Keys in workgroup memory; a multiple of `turn`. */
  readonly block: number;
  /** Keys whose scores become weights at once: the maximum moves once for all. */
  readonly turn: number;
}

/** Bytes of workgroup memory that a shader takes. */
export function attentionQueriesBytes(
  { width, valueWidth, block }: Pick<AttentionQueriesParams, "width" | "valueWidth" | "block">,
): number {
  return 4 * block * (width + valueWidth);
}

/** The shader; bindings q, k, v, y, of whole quads; uniform `rows` of all items; workgroups: rows of an item, heads, items. */
export function attentionQueries(params: AttentionQueriesParams): Shader {
  const { rule, heads, kvHeads, width, valueWidth, scale, invocations, each, block, turn } = params;
  const readers = headReaders(params), layout = layoutOf(rule, params);
  const keyQuads = width / 4, valueQuads = valueWidth / 4;
  /** By turns: the number of the turn is the one index that is not known. */
  const memory = (quads: number) =>
    `array<array<array<vec4<f32>, ${quads}>, ${turn}>, ${block / turn}>`;
  const fill = (name: "k" | "v", quads: number, at: string) =>
    wgsl`
      for (var i = lane; i < ${block * quads}u; i += ${invocations}u) {
        let place = i / ${quads}u;
        let quad = i % ${quads}u;
        let key = min(first + place, params.keys - 1u);
        ${name}_block[place / ${turn}u][place % ${turn}u][quad] = ${name}_quad(${at}, quad);
      }
    `;
  return {
    name: "attention_queries",
    storage: { q: readers.q.type, ...readers.storage, y: "array<vec4<f32>>" },
    writes: ["y"],
    uniforms: { ...rule.uniforms },
    code: wgsl`
      ${readers.q.code}

      ${readers.k.code}

      ${readers.v.code}

      var<workgroup> k_block: ${memory(keyQuads)};
      var<workgroup> v_block: ${memory(valueQuads)};

      @compute @workgroup_size(${invocations})
      ${mainOf({ group: "group", lane: "lane" })}
        let head = group.y;
        let kv_head = head / ${heads / kvHeads}u;
        let base = group.z * params.keys;
        // Weights are powers of 2.
        ${
      list(each, (n) =>
        wgsl`
        let place${n} = group.x * ${invocations * each}u + lane + ${invocations * n}u;
        let row${n} = group.z * params.item_rows + min(place${n}, params.item_rows - 1u);
        let query_row${n} = ${layout.query(`row${n}`, "head")};
        ${
          list(
            keyQuads,
            (c) => `let q${n}_${c} = ${float(scale * Math.LOG2E)} * q_quad(query_row${n}, ${c}u);`,
          )
        }
        ${list(valueQuads, (c) => `var sum${n}_${c} = vec4<f32>();`)}
        var peak${n} = ${NO_SCORE};
        var total${n} = 0.0;
      `)
    }
        for (var first = 0u; first < params.keys; first += ${block}u) {
          ${fill("k", keyQuads, layout.key("base", "key", "kv_head"))}
          ${fill("v", valueQuads, layout.value("base", "key", "kv_head"))}
          workgroupBarrier();
          let turns = (min(params.keys - first, ${block}u) + ${turn - 1}u) / ${turn}u;
          for (var turn = 0u; turn < turns; turn++) {
            ${turnCode(params)}
          }
          workgroupBarrier();
        }
        ${
      list(each, (n) =>
        wgsl`
        if (place${n} < params.item_rows) {
          let at = (${layout.result(`row${n}`, "head")}) * ${valueQuads}u;
          ${list(valueQuads, (c) => `y[at + ${c}u] = sum${n}_${c} / total${n};`)}
        }
      `)
    }
      }
    `,
  };
}

/** Scores of a turn's keys, their weights, and what these take of the values. */
function turnCode({ width, valueWidth, turn, each }: AttentionQueriesParams): string {
  const quads = valueWidth / 4;
  return wgsl`
    let behind = first + turn * ${turn}u;
    ${list(each * turn, (n) => `var dots${n % each}_${Math.floor(n / each)} = vec4<f32>();`)}
    ${
    list(turn * width / 4, (at) => {
      const i = Math.floor(4 * at / width), c = at % (width / 4);
      return wgsl`
        {
          let key = k_block[turn][${i}][${c}];
          ${list(each, (n) => `dots${n}_${i} = fma(q${n}_${c}, key, dots${n}_${i});`)}
        }
      `;
    })
  }
    ${
    list(each, (n) =>
      wgsl`
      ${
        list(turn, (i) => {
          const dots = `dots${n}_${i}`;
          return `var score${n}_${i} = (${dots}.x + ${dots}.y) + (${dots}.z + ${dots}.w);`;
        })
      }
      if (behind + ${turn}u > params.keys) {
        ${
        list(
          turn,
          (i) => `if (behind + ${i}u >= params.keys) { score${n}_${i} = ${NO_SCORE}; }`,
        )
      }
      }
      let top${n} = ${
        list(turn, (i) => `score${n}_${i}`).reduce((most, own) => `max(${most}, ${own})`)
      };
      if (top${n} > peak${n}) {
        let fade = exp2(peak${n} - top${n});
        peak${n} = top${n};
        total${n} *= fade;
        ${list(quads, (c) => `sum${n}_${c} *= fade;`)}
      }
      ${list(turn, (i) => `let weight${n}_${i} = exp2(score${n}_${i} - peak${n});`)}
      total${n} += ${list(turn, (i) => `weight${n}_${i}`).join(" + ")};
    `)
  }
    ${
    list(turn * quads, (at) => {
      const i = Math.floor(at / quads), c = at % quads;
      return wgsl`
        {
          let value = v_block[turn][${i}][${c}];
          ${
        list(
          each,
          (n) => `sum${n}_${c} = fma(vec4<f32>(weight${n}_${i}), value, sum${n}_${c});`,
        )
      }
        }
      `;
    })
  }
  `;
}
