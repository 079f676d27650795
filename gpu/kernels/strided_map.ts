// One function of the elements of up to five tensors, whatever strides they are read with: broadcasting, transposed
// and cut inputs are all the same shader with other numbers. An element of the result is taken apart into indices once
// and put together for each input. Where several elements of the result lie in a word, a thread makes all of them.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import {
  elementFunctions,
  ELEMENTS,
  type ElementType,
  readElement,
  writePacked,
} from "./element_types.ts";

/** Threads of a workgroup, and elements of the result, or words of several. */
export const STRIDED_BLOCK = 64;

/** Dims of the shader; 1: every input is read element by element, or is one element. */
export type StridedRank = 1 | 4 | 6;

/** What is computed. */
export interface StridedRule {
  readonly name: string;
  /** Types of the inputs by name; in the expression the name is the element at hand. */
  readonly inputs: Readonly<Record<string, ElementType>>;
  /** Storage of an input that lies in the memory of another, by name; default: its own. */
  readonly shared?: Readonly<Record<string, string>>;
  readonly output: ElementType;
  readonly expression: string;
  /** Functions that it calls. */
  readonly functions?: string;
  /** f32 uniforms that it reads as `params.name`. */
  readonly constants?: readonly string[];
  /** u32 uniforms likewise. */
  readonly numbers?: readonly string[];
  readonly rank: StridedRank;
}

/**
 * Uniforms: `count`; sizes `n1`… of the inner dims; for each input `<name>_at`, its first element, and strides
 * `<name>_0`…; `y_at` and `y_0`… if the result is `placed` in a part of its memory; the rule's constants.
 */
export function stridedShader(rule: StridedRule, { placed = false } = {}): Shader {
  const { name, inputs, shared = {}, output, expression, functions = "", constants = [] } = rule;
  const { numbers = [], rank } = rule;
  const names = Object.keys(inputs);
  const walked = placed ? [...names, "y"] : names;
  const dims = Array.from({ length: rank }, (_, dim) => dim);
  const storageOf = (input: string) => shared[input] ?? input;
  const own = names.filter((input) => storageOf(input) === input);
  const place = (input: string) =>
    `params.${input}_at + ${dims.map((dim) => `i${dim} * params.${input}_${dim}`).join(" + ")}`;
  const { perWord, encode } = ELEMENTS[output];
  const storage = (type: ElementType) => `array<${ELEMENTS[type].memory}>`;
  return {
    name,
    storage: {
      ...Object.fromEntries(own.map((input) => [`${input}_in`, storage(inputs[input]!)])),
      y: storage(output),
    },
    writes: ["y"],
    uniforms: Object.fromEntries([
      ["count", "u32"],
      ...dims.slice(1).map((dim) => [`n${dim}`, "u32"]),
      ...walked.flatMap((input) => [
        [`${input}_at`, "u32"],
        ...dims.map((dim) => [`${input}_${dim}`, "u32"]),
      ]),
      ...constants.map((constant) => [constant, "f32"]),
      ...numbers.map((number) => [number, "u32"]),
    ]),
    code: wgsl`
      ${functions}
      ${elementFunctions([...Object.values(inputs), output])}
      ${perWord > 1 ? "fn element(i: u32) -> u32 {" : "fn make(i: u32) {"}
        ${
      dims.slice(1).reverse().map((dim, k) =>
        [
          `let i${dim} = ${k === 0 ? "i" : `rest${dim + 1}`} % params.n${dim};`,
          `let rest${dim} = ${k === 0 ? "i" : `rest${dim + 1}`} / params.n${dim};`,
        ].join("\n")
      )
    }
        let i0 = ${rank === 1 ? "i" : "rest1"};
        ${names.map((input) => `let ${input}_place = ${place(input)};`)}
        ${
      names.map((input) =>
        `let ${input} = ${
          readElement(inputs[input]!, {
            variable: `${storageOf(input)}_in`,
            place: `${input}_place`,
          })
        };`
      )
    }
        ${
      perWord > 1
        ? `return ${encode(expression)};`
        : `y[${placed ? place("y") : "i"}] = ${expression};`
    }
      }

      @compute @workgroup_size(${STRIDED_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${STRIDED_BLOCK}u + lane;
        ${perWord > 1 ? writePacked(perWord) : "if (i < params.count) { make(i); }"}
      }
    `,
  };
}

/** `is_marked(index, place)` by the type of an index: whether it names a place, from the end if it is negative. */
export const IS_MARKED: Readonly<Partial<Record<ElementType, string>>> = {
  i32: isMarked("i32", { low: "bitcast<u32>(index)", isFront: "index >= 0", isBack: "index < 0" }),
  pair: isMarked("vec2<u32>", {
    low: "index.x",
    isFront: "index.y == 0u",
    isBack: "index.y == 0xffffffffu",
  }),
  f32: isMarked("f32", {
    low: "bitcast<u32>(i32(index))",
    isFront: "index > -1.0 && index < 2147483648.0",
    isBack: "index <= -1.0 && index > -2147483648.0",
  }),
};

function isMarked(
  type: string,
  { low, isFront, isBack }: {
    readonly low: string;
    readonly isFront: string;
    readonly isBack: string;
  },
): string {
  return wgsl`
    fn is_marked(index: ${type}, place: u32) -> bool {
      let low = ${low};
      return (${isFront} && low == place) || (${isBack} && low + params.depth == place);
    }
  `;
}
