// WGSL as text: the tag in which templates are written, and the one place that turns a Shader into the text
// of a module. Declarations follow from the Shader's data, in one order, so that bind groups need no
// reflection and two templates that compute the same give the same text.

import type { Extension, GpuSlice, Shader } from "./kernel.ts";

/** What may stand in a template: text and whole numbers as they are, lists line by line. */
export type Piece = string | number | readonly string[];

/**
 * WGSL text. Lines lose the indentation that all of them share, so that templates may be indented like
 * the code around them and snapshots are readable.
 *
 * @throws {RangeError} On a number that is no integer: write it with {@linkcode float}.
 */
export function wgsl(texts: TemplateStringsArray, ...pieces: readonly Piece[]): string {
  let text = "";
  texts.forEach((part, i) => {
    text += part;
    if (i < pieces.length) text += textOf(pieces[i]!, text);
  });
  return dedent(text);
}

/** A piece behind some text; where it begins a line, all its lines are indented like the first. */
function textOf(piece: Piece, before: string): string {
  if (typeof piece === "number") {
    if (Number.isSafeInteger(piece)) return String(piece);
    throw new RangeError(`Cannot write ${piece} as an integer of WGSL: use float()`);
  }
  const text = typeof piece === "string" ? piece : piece.join("\n");
  if (!text.includes("\n")) return text;
  // No pattern over the whole text: templates are long, and there are hundreds in a model.
  const indent = before.slice(before.lastIndexOf("\n") + 1);
  return indent.trim() === "" ? text.replaceAll("\n", `\n${indent}`) : text;
}

function dedent(text: string): string {
  const lines = text.trimEnd().split("\n");
  if (lines.length > 1 && lines[0]!.trim() === "") lines.shift();
  let margin = Infinity;
  for (const line of lines) {
    const own = line.length - line.trimStart().length;
    if (own < line.length) margin = Math.min(margin, own);
  }
  return lines.map((line) => line.slice(Math.min(margin, line.length)).trimEnd()).join("\n");
}

/**
 * A float32 literal that reads back as the same float32.
 *
 * @throws {RangeError} If the number is not finite in float32.
 */
export function float(value: number): string {
  const rounded = Math.fround(value);
  if (!Number.isFinite(rounded)) throw new RangeError(`Cannot write ${value} as a float of WGSL`);
  if (Object.is(rounded, -0)) return "-0f";
  const digits = rounded.toPrecision(9).replace(/(\.\d*?)0+(?=e|$)/, "$1").replace(/\.(?=e|$)/, "");
  return `${digits}f`;
}

/** Index of a workgroup in a count that may have been spread over x and y (GpuDispatch.workgroups). */
const FLAT_WORKGROUP = wgsl`
  fn flat_workgroup(id: vec3<u32>, count: vec3<u32>) -> u32 {
    return id.x + id.y * count.x;
  }
`;

/**
 * Head of a kernel's entry point, up to its brace: what the place of the workgroup among all is called, their count
 * where the kernel asks for it, and the invocation's place in its workgroup.
 */
export function mainOf(
  { group, groups, lane }: {
    readonly group: string;
    readonly groups?: string;
    readonly lane: string;
  },
): string {
  return [
    "fn main(",
    `  @builtin(workgroup_id) ${group}: vec3<u32>,`,
    ...groups === undefined ? [] : [`  @builtin(num_workgroups) ${groups}: vec3<u32>,`],
    `  @builtin(local_invocation_index) ${lane}: u32,`,
    ") {",
  ].join("\n");
}

/** The head of most: `flat_workgroup(group, groups)` is the workgroup's index. */
export const GROUP_MAIN: string = mainOf({ group: "group", groups: "groups", lane: "lane" });

const EXTENSION_NAMES: Readonly<Record<Extension, string>> = {
  f16: "f16",
  subgroups: "subgroups",
  subgroup_matrix: "chromium_experimental_subgroup_matrix",
};
/** The analysis does not know that all invocations of a workgroup walk over the same steps. */
const MATRIX_DIAGNOSTIC = "diagnostic(off, chromium.subgroup_matrix_uniformity);";

/** What memory the storage bindings get, by name. */
export type Accesses = Readonly<Record<string, Pick<GpuSlice, "access">>>;

/**
 * How a storage binding of a shader is declared.
 *
 * @throws {TypeError} If it has no memory, or writes into memory that is for reading.
 */
export function accessOf(
  { name, writes }: Shader,
  { variable, accesses }: { readonly variable: string; readonly accesses: Accesses },
): "read" | "read_write" {
  const access = accesses[variable]?.access;
  if (!access) throw new TypeError(`Cannot bind ${name}: nothing was given for ${variable}`);
  const isWritten = writes.includes(variable);
  if (access === "either") return isWritten ? "read_write" : "read";
  if (access === "read_write" || !isWritten) return access;
  throw new TypeError(`Cannot bind ${name}: it writes ${variable}, which is for reading`);
}

/**
 * Text of the module of a shader.
 *
 * @throws {TypeError} As `accessOf`.
 */
export function shaderText(
  shader: Shader,
  accesses: Accesses,
  { subgroupsNeedEnable = false }: { readonly subgroupsNeedEnable?: boolean } = {},
): string {
  const { storage, textures = {}, uniforms, enables = [], code } = shader;
  const needed = enables.filter((feature) => feature !== "subgroups" || subgroupsNeedEnable);
  const hasMatrices = needed.includes("subgroup_matrix");
  const members = Object.entries(uniforms);
  const bindings = Object.entries(storage).map(([variable, type], index) => {
    const access = accessOf(shader, { variable, accesses });
    return `@group(0) @binding(${index}) var<storage, ${access}> ${variable}: ${type};`;
  });
  for (const [variable, type] of Object.entries(textures)) {
    bindings.push(`@group(0) @binding(${bindings.length}) var ${variable}: ${type};`);
  }
  if (members.length > 0) {
    bindings.push(`@group(0) @binding(${bindings.length}) var<uniform> params: Params;`);
  }
  return [
    ...needed.map((feature) => `enable ${EXTENSION_NAMES[feature]};`),
    ...hasMatrices ? [MATRIX_DIAGNOSTIC] : [],
    ...members.length > 0
      ? [`struct Params {`, ...members.map(([member, type]) => `  ${member}: ${type},`), `}`]
      : [],
    ...bindings,
    ...code.includes("flat_workgroup(") ? [FLAT_WORKGROUP] : [],
    code,
  ].join("\n") + "\n";
}
