// Tensor virtualisation (spec MD-2, MD-3, MD-5, MD-6): kernels speak of logical coordinates, and where an element
// lies is decided when their text is made. A tensor is B × H × W × D × C; four channels share a vec4, in
// S = ⌈C/4⌉ slices, padded with zeros. A vec4 lies
//   buffer            at (((d·S + s)·H + y)·W + x)·B + b          (order DSHWBC4)
//   texture_2d        at ((x·B + b)·D + d, y·S + s)               (order HSWBDC4)
//   texture_3d        at (x·B + b, y, d·S + s)
//   texture_2d_array  at (x·B + b, y) of layer d·S + s
//   planes            as four elements of an array of f32 in the order B, C, D, H, W, as the engine keeps activations:
//                     nothing has to be copied, and nothing is padded
// Terms of dims of size 1 are left out of the text, so virtualisation costs nothing when a kernel runs.
// Textures cannot share memory with buffers in WebGPU: a tensor gets there by a copy (kernels/virtual_map.ts).

import type { Shader } from "./kernel.ts";

/** Kinds of GPU objects whose elements are vec4. */
export const STORAGE_KINDS = ["buffer", "texture_2d", "texture_3d", "texture_2d_array"] as const;

/** One of {@linkcode STORAGE_KINDS}, or the engine's own order. */
export type StorageKind = typeof STORAGE_KINDS[number] | "planes";

/** Sizes along the logical axes. */
export interface TensorShape {
  readonly b: number;
  readonly h: number;
  readonly w: number;
  readonly d: number;
  readonly c: number;
}

/** Coordinates of a vec4 as WGSL expressions of type u32; absent ones are 0. */
export interface Coordinates {
  readonly b?: string;
  readonly x?: string;
  readonly y?: string;
  readonly s?: string;
  readonly d?: string;
}

/** A logical tensor in a physical object. */
export interface VirtualTensor {
  /** Name of the variable. */
  readonly name: string;
  readonly shape: TensorShape;
  /** Slices of four channels. */
  readonly slices: number;
  readonly storage: StorageKind;
  /** Size of the object in vec4, along x, y and z; the last one of planes may not be full. */
  readonly extent: readonly [x: number, y: number, z: number];
}

/**
 * Chooses where a tensor lies.
 *
 * @param shape Absent sizes are 1.
 * @throws {RangeError} If a size is no positive integer.
 */
export function virtualTensor(
  name: string,
  { shape, storage }: {
    readonly shape: Partial<TensorShape> & Pick<TensorShape, "c">;
    readonly storage: StorageKind;
  },
): VirtualTensor {
  const full = { b: 1, h: 1, w: 1, d: 1, ...shape };
  for (const [axis, size] of Object.entries(full)) {
    if (Number.isInteger(size) && size > 0) continue;
    throw new RangeError(`Cannot place ${name}: ${axis} is ${size}, and must be 1 or more`);
  }
  const { b, h, w, d, c } = full;
  const slices = Math.ceil(c / 4);
  const extents: Readonly<Record<StorageKind, readonly [number, number, number]>> = {
    buffer: [d * slices * h * w * b, 1, 1],
    planes: [Math.ceil(b * c * d * h * w / 4), 1, 1],
    texture_2d: [w * b * d, h * slices, 1],
    texture_3d: [w * b, h, d * slices],
    texture_2d_array: [w * b, h, d * slices],
  };
  return { name, shape: full, slices, storage, extent: extents[storage] };
}

/** A place as an expression, and how many places there are along it. */
type Axis = readonly [place: string | undefined, size: number];

function isName(text: string): boolean {
  return /^\w+$/.test(text);
}

/** ((a·B + b)·C + c): places in mixed radix, outermost first. */
function combine(axes: readonly Axis[]): string {
  let text = "";
  for (const [place, size] of axes) {
    if (size === 1 || (text === "" && place === undefined)) continue;
    text = text === ""
      ? place!
      : `${isName(text) ? text : `(${text})`} * ${size}u + ${place ?? "0u"}`;
  }
  return text || "0u";
}

/** Where a vec4 lies: an index of a buffer, or texture coordinates; of planes, the index of the first of its slice. */
export function placeOf(tensor: VirtualTensor, { b, x, y, s, d }: Coordinates): string[] {
  const { shape, slices, storage } = tensor;
  const axes = {
    b: [b, shape.b],
    x: [x, shape.w],
    y: [y, shape.h],
    s: [s, slices],
    d: [d, shape.d],
  } as const;
  switch (storage) {
    case "buffer":
      return [combine([axes.d, axes.s, axes.y, axes.x, axes.b])];
    case "planes": {
      const first = slices === 1 ? undefined : `4u * ${isName(s ?? "0u") ? s : `(${s})`}`;
      const channel = [first, shape.c] as const;
      return [combine([axes.b, channel, axes.d, axes.y, axes.x])];
    }
    case "texture_2d":
      return [combine([axes.x, axes.b, axes.d]), combine([axes.y, axes.s])];
    default:
      return [combine([axes.x, axes.b]), combine([axes.y]), combine([axes.d, axes.s])];
  }
}

/** `vec4<f32>` at some coordinates, which must be inside the tensor. */
export function read(tensor: VirtualTensor, at: Coordinates): string {
  const { name, storage } = tensor;
  const place = placeOf(tensor, at);
  switch (storage) {
    case "buffer":
      return `${name}[${place[0]}]`;
    case "planes":
      return `vec4<f32>(${
        lanesOf(tensor, place[0]!, at).map(({ index, guard }) => {
          if (guard === "never") return "0.0";
          return guard
            ? `select(0.0, ${name}[min(${index}, ${lastOf(tensor)}u)], ${guard})`
            : `${name}[${index}]`;
        }).join(", ")
      })`;
    case "texture_2d":
      return `textureLoad(${name}, vec2<u32>(${place.join(", ")}), 0)`;
    case "texture_3d":
      return `textureLoad(${name}, vec3<u32>(${place.join(", ")}), 0)`;
    case "texture_2d_array":
      return `textureLoad(${name}, vec2<u32>(${place[0]}, ${place[1]}), ${place[2]}, 0)`;
  }
}

/** One of the four channels of a slice in planes: its index, and when it is a channel at all (absent: always). */
interface Lane {
  readonly index: string;
  readonly guard: string | undefined;
}

function lanesOf({ shape: { c, d, h, w }, slices }: VirtualTensor, first: string, at: Coordinates) {
  const rest = c % 4;
  return [0, 1, 2, 3].map((lane): Lane => {
    const index = lane === 0 ? first : `${first} + ${lane * d * h * w}u`;
    if (rest === 0 || lane < rest) return { index, guard: undefined };
    const { s = "0u" } = at;
    return { index, guard: slices === 1 ? "never" : `${s} < ${slices - 1}u` };
  });
}

function lastOf({ shape: { b, c, d, h, w } }: VirtualTensor): number {
  return b * c * d * h * w - 1;
}

/**
 * The same, and zeros outside: what a load outside gives is not defined in WGSL, in no storage.
 *
 * @param at Expressions of type i32 for x, y and (where it is given) d, which may be outside.
 */
export function readOrZero(tensor: VirtualTensor, at: Coordinates): string {
  const { x = "0", y = "0", d } = at;
  const { w, h, d: depth } = tensor.shape;
  const isWithin = (place: string, size: number) => `${place} >= 0 && ${place} < ${size}`;
  const clamp = (place: string, size: number) => `u32(clamp(${place}, 0, ${size - 1}))`;
  const inside = [
    isWithin(x, w),
    isWithin(y, h),
    ...d === undefined ? [] : [isWithin(d, depth)],
  ].join(" && ");
  const clamped = {
    ...at,
    x: clamp(x, w),
    y: clamp(y, h),
    ...d !== undefined && { d: clamp(d, depth) },
  };
  return `select(vec4<f32>(), ${read(tensor, clamped)}, ${inside})`;
}

/** Statement that stores a `vec4<f32>`. */
export function write(
  tensor: VirtualTensor,
  { at, value }: { readonly at: Coordinates; readonly value: string },
): string {
  const { name, storage } = tensor;
  const place = placeOf(tensor, at);
  switch (storage) {
    case "buffer":
      return `${name}[${place[0]}] = ${value};`;
    case "planes":
      return `{ let lanes = ${value}; ${
        lanesOf(tensor, place[0]!, at).flatMap(({ index, guard }, lane) => {
          const store = `${name}[${index}] = lanes[${lane}];`;
          if (guard === "never") return [];
          return [guard ? `if (${guard}) { ${store} }` : store];
        }).join(" ")
      } }`;
    case "texture_2d":
      return `textureStore(${name}, vec2<u32>(${place.join(", ")}), ${value});`;
    case "texture_3d":
      return `textureStore(${name}, vec3<u32>(${place.join(", ")}), ${value});`;
    case "texture_2d_array":
      return `textureStore(${name}, vec2<u32>(${place[0]}, ${place[1]}), ${place[2]}, ${value});`;
  }
}

/** WGSL type of the variable. */
function typeOf({ storage }: VirtualTensor, access: "read" | "write"): string {
  if (storage === "planes") return "array<f32>";
  if (storage === "buffer") return "array<vec4<f32>>";
  return access === "read"
    ? `${storage}<f32>`
    : `${storage.replace("texture_", "texture_storage_")}<rgba32float, write>`;
}

/** Whether a tensor lies in a texture. */
export function isTexture({ storage }: Pick<VirtualTensor, "storage">): boolean {
  return storage.startsWith("texture_");
}

/**
 * The variables of some tensors as a Shader lists them: buffers and textures apart.
 *
 * @param accesses Tensors in the order of binding numbers, each with what the shader does.
 */
export function bindingsOf(
  accesses: readonly (readonly [tensor: VirtualTensor, access: "read" | "write"])[],
): Pick<Shader, "storage" | "textures" | "writes"> {
  const declared = (wanted: boolean) =>
    Object.fromEntries(
      accesses.filter(([tensor]) => isTexture(tensor) === wanted)
        .map(([tensor, access]) => [tensor.name, typeOf(tensor, access)]),
    );
  return {
    storage: declared(false),
    textures: declared(true),
    writes: accesses.filter(([tensor, access]) => access === "write" && !isTexture(tensor))
      .map(([{ name }]) => name),
  };
}
