// Which keys a row sees and what its scores become: the part in which the attention ops differ. Kernels ask
// `span_of(row)` and `adjust(score, head, key, span)` and know nothing of windows, slots or biases.
// Scores are in base-2 units nowhere: `exp` is the same instruction after one multiplication.

import { float, wgsl } from "../../wgsl.ts";
import { TANH } from "../activations.ts";

/** WGSL of one kind of attention. */
export interface SpanRule {
  /** WGSL types of its bindings. */
  readonly storage: Readonly<Record<string, string>>;
  /** `struct Span`, `span_of` and `adjust`. */
  readonly code: string;
  /** Whether spans end before the row's own key, which is attended to apart (fresh.ts). */
  readonly leavesOwnKey?: boolean;
}

const SPAN = wgsl`
  // Keys start … end - 1; key 0 is row \`base\` of the cache.
  struct Span { start: u32, end: u32, base: u32, position: i32 }
`;

/** What a causal rule is made for. */
export interface CausalRule {
  readonly capacity: number;
  readonly scale: number;
  /** Last keys that a row sees; 0: all. */
  readonly window: number;
  /** Bound of scores; 0: none. */
  readonly softcap: number;
  /** Whether scores fall with distance. */
  readonly slopes: boolean;
  /** See SpanRule; default: no. */
  readonly leavesOwnKey?: boolean;
}

/** The op attention; bindings positions, slots, slopes. */
export function causalRule(
  { capacity, scale, window, softcap, slopes, leavesOwnKey = false }: CausalRule,
): SpanRule {
  const end = leavesOwnKey ? "u32(position)" : "u32(position + 1)";
  const start = window === 0 ? "0u" : `u32(max(0, position + 1 - ${window}))`;
  const capped = softcap === 0
    ? `let own = score * ${float(scale)};`
    : `let own = ${float(softcap)} * safe_tanh(vec4<f32>(score * ${float(scale / softcap)})).x;`;
  const biased = slopes ? "own - slopes[head] * f32(span.position - i32(key))" : "own";
  return {
    leavesOwnKey,
    storage: {
      positions: "array<i32>",
      slots: "array<u32>",
      ...slopes ? { slopes: "array<f32>" } : {},
    },
    code: wgsl`
      ${SPAN}

      fn span_of(row: u32) -> Span {
        let position = positions[row];
        return Span(${start}, ${end}, slots[row] * ${capacity}u, position);
      }

      ${softcap === 0 ? "" : TANH}

      fn adjust(score: f32, head: u32, key: u32, span: Span) -> f32 {
        ${capped}
        return ${biased};
      }
    `,
  };
}

/** What a rule of given spans is made for. */
export interface GivenRule {
  /** Rows of a slot of the cache; 0 where keys are rows of the step. */
  readonly capacity: number;
  readonly scale: number;
  readonly starts: boolean;
  readonly ends: boolean;
  readonly positions: boolean;
  /** Greatest distance of the table of biases; undefined: there is none. */
  readonly reach: number | undefined;
}

/** The op span_attention; bindings starts, ends, positions, slots, bias. */
export function givenRule(
  { capacity, scale, starts, ends, positions, reach }: GivenRule,
): SpanRule {
  const position = positions ? "positions[row]" : "0";
  const bias = reach === undefined ? "" : wgsl`
    let distance = clamp(i32(key) - i32(span.start) - span.position, ${-reach}, ${reach});
    return own + bias[head * ${2 * reach + 1}u + u32(distance + ${reach})];
  `;
  return {
    storage: {
      ...starts ? { starts: "array<i32>" } : {},
      ...ends ? { ends: "array<i32>" } : {},
      ...positions ? { positions: "array<i32>" } : {},
      ...capacity > 0 ? { slots: "array<u32>" } : {},
      ...reach === undefined ? {} : { bias: "array<f32>" },
    },
    code: wgsl`
      ${SPAN}

      fn span_of(row: u32) -> Span {
        let position = ${position};
        let start = ${starts ? "starts[row]" : "0"};
        let end = ${ends ? "ends[row]" : "position + 1"};
        let base = ${capacity > 0 ? `slots[row] * ${capacity}u` : "0u"};
        return Span(u32(start), u32(max(start, end)), base, position);
      }

      fn adjust(score: f32, head: u32, key: u32, span: Span) -> f32 {
        let own = score * ${float(scale)};
        ${bias || "return own;"}
      }
    `,
  };
}
