// The contract between kernels and the rest of the WebGPU backend, as plain data. A kernel template
// (gpu/kernels/*.ts) is a function from constants to a Shader; a lowering (engine/run/gpu/lower/) names
// the memory that each of its bindings gets. What bindings are declared like, in which order, and what
// goes into the uniform block follows from the Shader alone: gpu/wgsl.ts writes those lines, so templates
// hold nothing but the computation.

/** WGSL type of a uniform. */
export type UniformType = "u32" | "i32" | "f32";

/** An extension of WGSL. */
export type Extension = "f16" | "subgroups" | "subgroup_matrix";

/** A compute shader before it meets memory. */
export interface Shader {
  /** Name in profiles and messages; not part of the text that pipelines are cached by. */
  readonly name: string;
  /**
   * WGSL types of the storage bindings by variable name, in the order of binding numbers, e.g.
   * `{ x: "array<vec4<f32>>", w: "array<vec4<u32>>", y: "array<f32>" }`.
   */
  readonly storage: Readonly<Record<string, string>>;
  /**
   * WGSL types of the textures by variable name; their binding numbers follow those of `storage`. Their texels are
   * four f32, e.g. `{ x: "texture_2d<f32>", y: "texture_storage_2d<rgba32float, write>" }`.
   */
  readonly textures?: Readonly<Record<string, string>> | undefined;
  /** Names of the storage bindings that the shader writes. */
  readonly writes: readonly string[];
  /** Members of the uniform block: the shader reads `params.name`. At most 64. */
  readonly uniforms: Readonly<Record<string, UniformType>>;
  /** Extensions to enable; a kernel's `when` asks for them. */
  readonly enables?: readonly Extension[];
  /**
   * Everything else: constants, functions, and one entry point `main`. Where it is long it is a getter, asked when the shader
   * is compiled: most of a model's products are for prompts.
   */
  readonly code: string;
}

/**
 * A range of a GPU buffer. Offsets are multiples of 256, and so many bytes are usable: `bytes` rounded up to
 * 16, so that any value may be bound as an array of vec4 whose last one has undefined lanes.
 */
export interface GpuSlice {
  /** The buffer. */
  readonly buffer: GPUBuffer;
  /** Where the range begins. */
  readonly offset: number;
  /** Bytes of the range. */
  readonly bytes: number;
  /**
   * How shaders must declare it: `read`, `read_write`, or `either`, as they use it. A buffer cannot be bound for
   * reading and for writing in one dispatch, so all of the arena is `read_write` even where it is only read.
   */
  readonly access: "read" | "read_write" | "either";
}

/** A texture of four f32 a texel, as dispatches are given it. */
export interface GpuTexture {
  /** Of the whole texture, of the dimension that the shader declares. */
  readonly view: GPUTextureView;
  readonly bytes: number;
}

/** A weight matrix on the GPU, rearranged by a layout of gpu/weight_layout.ts. */
export interface GpuWeight {
  /** Id of the layout. */
  readonly layout: string;
  /** Number format of the file. */
  readonly format: string;
  /** Rows without padding; those of all matrices of a stack together. */
  readonly rows: number;
  /** Columns. */
  readonly columns: number;
  /**
   * Consecutive ranges of rows: one, unless the matrix is over the device's limit of a binding. A kernel emits
   * one dispatch a part and adds `firstRow` where it writes.
   */
  readonly parts: readonly GpuWeightPart[];
}

/** Some rows of a weight matrix. */
export interface GpuWeightPart {
  /** Multiple of the layout's `rowGroup`. */
  readonly firstRow: number;
  /** Rows without padding. */
  readonly rows: number;
  /** The planes of the layout, in its order, and its table if it has one. */
  readonly planes: readonly GpuSlice[];
}

/** What a device can do, as plain data; kernels ask this and nothing else. */
export interface Capabilities {
  /** f16 in shaders and storage. */
  readonly f16: boolean;
  /** Lanes of a subgroup when they are of one known size, 0 if there are no subgroup operations. */
  readonly subgroupSize: number;
  /** Whether `enable subgroups;` must stand in shaders. */
  readonly subgroupsNeedEnable: boolean;
  /** `dot4I8Packed` and its relatives. */
  readonly packedDot: boolean;
  /** Subgroup matrices of 16 × 16 halves with sums in f32 (an experiment of Dawn). */
  readonly subgroupMatrix: boolean;
  /**
   * Whether floats that meet subgroup matrices may be rounded to one float16 each, as arithmetic in half precision has them: a wish of
   * who prepares a plan. Absent: they are two, which are as near as floats.
   */
  readonly roundsToHalves?: boolean | undefined;
  /** Whether pipelines are made one after the other, by calls that wait for them. */
  readonly compilesInTurn: boolean;
  /** Timestamps for profiles. */
  readonly timestamp: boolean;
  /** Bytes of the largest storage binding. */
  readonly maxBindingBytes: number;
  /** Bytes of the largest buffer. */
  readonly maxBufferBytes: number;
  /** Bytes of workgroup memory. */
  readonly maxWorkgroupBytes: number;
  /** Invocations of a workgroup. */
  readonly maxWorkgroupSize: number;
  /** Storage bindings of a shader. */
  readonly maxStorageBindings: number;
  /** Most texels along a side of a 2D texture and of a 3D texture, and most layers of an array. */
  readonly maxTexture2d: number;
  readonly maxTexture3d: number;
  readonly maxTextureLayers: number;
  /** Computed by the CPU: no speed to expect. For choosing a device and for messages. */
  readonly isSoftware: boolean;
  /** For messages only, never for decisions. */
  readonly adapter: string;
}

/** Most workgroups along one axis. */
export const MAX_WORKGROUPS = 65_535;
