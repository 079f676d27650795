import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { gpuTest } from "../tests/support/gpu.ts";
import { openGpu, STORAGE_USAGE } from "./gpu.ts";
import type { Capabilities, GpuSlice, GpuTexture } from "./kernel.ts";
import { MAP_BLOCK, mapCount, virtualMapShader } from "./kernels/virtual_map.ts";
import { createProgram } from "./program.ts";
import { readOnce } from "./readback.ts";
import { createTensorTexture, fitsTexture } from "./textures.ts";
import {
  isTexture,
  placeOf,
  read,
  readOrZero,
  STORAGE_KINDS,
  virtualTensor,
  write,
} from "./virtual_tensor.ts";
import { packTensor, unpackTensor } from "../tests/support/virtual_tensor.ts";
import { packWeights, readWeights, virtualWeights } from "./virtual_weights.ts";

Deno.test("objects have the sizes that the paper prints", () => {
  const shape = { b: 1, h: 2, w: 3, c: 5 };
  const extents = STORAGE_KINDS.map((kind) => virtualTensor("t", { shape, storage: kind }).extent);
  assertEquals(extents, [[12, 1, 1], [3, 4, 1], [3, 2, 2], [3, 2, 2]]);
  assertThrows(
    () => virtualTensor("t", { shape: { c: 0 }, storage: "buffer" }),
    RangeError,
    "c is 0",
  );
});

Deno.test("terms of dims of size 1 are not in the text", () => {
  const at = { b: "b", x: "x", y: "y", s: "s", d: "d" };
  const text = (shape: Parameters<typeof virtualTensor>[1]["shape"]) =>
    placeOf(virtualTensor("t", { shape, storage: "buffer" }), at)[0];
  assertEquals(text({ w: 3, h: 2, c: 5 }), "(s * 2u + y) * 3u + x");
  assertEquals(text({ b: 2, w: 3, h: 2, c: 5 }), "((s * 2u + y) * 3u + x) * 2u + b");
  assertEquals(text({ c: 4 }), "0u");
  const texture = virtualTensor("t", { shape: { w: 3, h: 2, c: 5 }, storage: "texture_2d" });
  assertEquals(read(texture, at), "textureLoad(t, vec2<u32>(x, y * 2u + s), 0)");
});

/** Value of an index expression at some coordinates. */
function evaluate(text: string, at: Readonly<Record<string, number>>): number {
  const numbers = text.replace(/\b([bxysd])\b/g, (_, name: string) => String(at[name]))
    .replace(/(\d)u/g, "$1");
  return Function(`return ${numbers}`)() as number;
}

const shapes = fc.record({
  b: fc.integer({ min: 1, max: 3 }),
  h: fc.integer({ min: 1, max: 3 }),
  w: fc.integer({ min: 1, max: 4 }),
  d: fc.integer({ min: 1, max: 2 }),
  c: fc.integer({ min: 1, max: 9 }),
});

Deno.test("the index in the text is where packing puts the element, for all coordinates", () => {
  fc.assert(
    fc.property(shapes, fc.constantFrom(...STORAGE_KINDS), (shape, kind) => {
      const tensor = virtualTensor("t", { shape, storage: kind });
      const { b, h, w, d, c } = shape;
      const values = Float32Array.from({ length: b * h * w * d * c }, (_, i) => i + 1);
      const packed = packTensor(tensor, values);
      assertEquals(unpackTensor(tensor, packed), values);
      const [width, height] = tensor.extent;
      for (let i = 0; i < values.length; i++) {
        const channel = i % c;
        const at = {
          s: channel >> 2,
          d: Math.floor(i / c) % d,
          x: Math.floor(i / (c * d)) % w,
          y: Math.floor(i / (c * d * w)) % h,
          b: Math.floor(i / (c * d * w * h)),
        };
        const names = { b: "b", x: "x", y: "y", s: "s", d: "d" };
        const [px = 0, py = 0, pz = 0] = placeOf(tensor, names).map((text) => evaluate(text, at));
        assertEquals(packed[4 * ((pz * height + py) * width + px) + (channel & 3)], values[i]);
      }
      // What no element has is zero.
      const filled = packed.filter((value) => value !== 0).length;
      assertEquals(filled, values.length);
    }),
    { seed: 11, numRuns: 60 },
  );
});

Deno.test("weights lie in four textures, texel by texel", () => {
  const weights = virtualWeights("k", { shape: { o: 5, h: 2, w: 1, i: 7 } });
  assertEquals(weights.objects.map(({ extent }) => extent), Array(4).fill([2, 4, 1]));
  const values = Float32Array.from({ length: 70 }, (_, i) => i + 1);
  const packed = packWeights(weights, values);
  const valueAt = (o: number, h: number, i: number) => o < 5 && i < 7 ? (o * 2 + h) * 7 + i + 1 : 0;
  for (let t = 0; t < 4; t++) {
    for (let y = 0; y < 4; y++) {
      for (let x = 0; x < 2; x++) {
        const lanes = [0, 1, 2, 3].map((o) => valueAt(4 * x + o, y >> 1, 4 * (y & 1) + t));
        assertEquals([...packed[t]!.subarray(4 * (2 * y + x), 4 * (2 * y + x) + 4)], lanes);
      }
    }
  }
  const at = { outputs: "so", tap: "tap", inputs: "si" };
  assertEquals(
    readWeights(weights, 3, at),
    "textureLoad(k3, vec2<u32>(so, (tap) * 2u + si), 0)",
  );
});

Deno.test("a read beyond the edge is zero by the text, not by luck", () => {
  const tensor = virtualTensor("t", { shape: { w: 3, h: 2, c: 4 }, storage: "texture_2d" });
  assertEquals(
    readOrZero(tensor, { x: "i", y: "j" }),
    "select(vec4<f32>(), textureLoad(t, vec2<u32>(u32(clamp(i, 0, 2)), u32(clamp(j, 0, 1))), 0), " +
      "i >= 0 && i < 3 && j >= 0 && j < 2)",
  );
});

Deno.test("channels of planes are read and written one by one, and only those that there are", () => {
  const tensor = virtualTensor("t", { shape: { b: 2, h: 3, w: 4, c: 6 }, storage: "planes" });
  const at = { b: "b", x: "x", y: "y", s: "s" };
  const first = "((b * 6u + 4u * s) * 3u + y) * 4u + x";
  assertEquals(
    read(tensor, at),
    `vec4<f32>(t[${first}], t[${first} + 12u], ` +
      `select(0.0, t[min(${first} + 24u, 143u)], s < 1u), ` +
      `select(0.0, t[min(${first} + 36u, 143u)], s < 1u))`,
  );
  const narrow = virtualTensor("t", { shape: { w: 4, c: 2 }, storage: "planes" });
  assertEquals(read(narrow, { x: "x" }), "vec4<f32>(t[x], t[x + 4u], 0.0, 0.0)");
  assertEquals(
    write(narrow, { at: { x: "x" }, value: "v" }),
    "{ let lanes = v; t[x] = lanes[0]; t[x + 4u] = lanes[1]; }",
  );
});

Deno.test("a tensor over the limits of textures does not fit", () => {
  const limits = { maxTexture2d: 8192, maxTexture3d: 2048, maxTextureLayers: 256 } as Capabilities;
  const fits = (shape: Parameters<typeof virtualTensor>[1]["shape"], kinds = STORAGE_KINDS) =>
    kinds.map((kind) => fitsTexture(virtualTensor("t", { shape, storage: kind }), limits));
  assertEquals(fits({ w: 2048, h: 100, c: 4 }), [true, true, true, true]);
  assertEquals(fits({ w: 2049, h: 100, c: 4 }), [true, true, false, true]);
  assertEquals(fits({ w: 8193, c: 4 }), [true, false, false, false]);
  assertEquals(fits({ w: 8, h: 8, c: 4 * 257 }), [true, true, true, false]);
  assertEquals(fits({ w: 8, h: 64, c: 4 * 257 }), [true, false, true, false]);
});

gpuTest("a tensor survives the way through every storage", async () => {
  const gpu = await openGpu();
  const { device } = gpu;
  const shape = { b: 2, h: 3, w: 4, d: 2, c: 6 };
  const kinds = ["planes", ...STORAGE_KINDS, "planes", "buffer"] as const;
  const tensors = kinds.map((kind, i) => virtualTensor(`t${i}`, { shape, storage: kind }));
  const values = Float32Array.from({ length: 2 * 3 * 4 * 2 * 6 }, (_, i) => Math.sin(i));
  const slices = new Map<string, GpuSlice>();
  const textures = new Map<string, GpuTexture>();
  for (const tensor of tensors) {
    if (isTexture(tensor)) textures.set(tensor.name, createTensorTexture(gpu, { tensor }));
    else {
      const bytes = 16 * tensor.extent[0];
      const buffer = gpu.createBuffer(tensor.name, bytes, STORAGE_USAGE);
      slices.set(tensor.name, { buffer, offset: 0, bytes, access: "either" });
    }
  }
  device.queue.writeBuffer(slices.get("t0")!.buffer, 0, packTensor(tensors[0]!, values));
  const program = await createProgram(
    gpu,
    {
      dispatches: tensors.slice(1).map((target, i) => ({
        name: "copy",
        shader: virtualMapShader(tensors[i]!, { target }),
        storage: Object.fromEntries(slices),
        textures: Object.fromEntries(textures),
        uniforms: {},
        workgroups: [Math.ceil(mapCount(target) / MAP_BLOCK)],
      })),
    },
  );
  program.bind({});
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  program.encode(pass);
  pass.end();
  device.queue.submit([encoder.finish()]);
  const last = slices.get(tensors.at(-1)!.name)!;
  const bytes = await readOnce(gpu, [last]);
  const result = unpackTensor(tensors.at(-1)!, new Float32Array(bytes.buffer));
  assertEquals(result, values);
  gpu.check();
  gpu.dispose();
  assertEquals(gpu.liveBuffers, 0);
});
