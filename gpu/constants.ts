// Bits of the WebGPU standard. They are globals in browsers and in Deno, but not of every provider.

/** What a buffer may be used for. */
export const BUFFER_USAGE = {
  MAP_READ: 0x1,
  COPY_SRC: 0x4,
  COPY_DST: 0x8,
  UNIFORM: 0x40,
  STORAGE: 0x80,
  QUERY_RESOLVE: 0x200,
} as const;

/** What a texture may be used for. */
export const TEXTURE_USAGE = { COPY_DST: 0x2, TEXTURE_BINDING: 0x4, STORAGE_BINDING: 0x8 } as const;

/** Mapping for reading. */
export const MAP_READ = 0x1;
/** The compute stage. */
export const COMPUTE_STAGE = 0x4;
/** Offsets of every binding are multiples of this, the default of the standard. */
export const OFFSET_ALIGNMENT = 256;
