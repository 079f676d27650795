import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { gpuTest } from "../tests/support/gpu.ts";
import { BUFFER_USAGE } from "./constants.ts";
import { type Gpu, openGpu } from "./gpu.ts";
import { MAP_BLOCK, virtualMap } from "./kernels/virtual_map.ts";
import { readOnce } from "./readback.ts";
import {
  packTensor,
  placeOf,
  read,
  readOrZero,
  STORAGE_KINDS,
  unpackTensor,
  type VirtualTensor,
  virtualTensor,
} from "./virtual_tensor.ts";
import { packWeights, readWeights, virtualWeights } from "./virtual_weights.ts";

Deno.test("objects have the sizes that the paper prints", () => {
  const shape = { b: 1, h: 2, w: 3, c: 5 };
  const extents = STORAGE_KINDS.map((kind) => virtualTensor("t", shape, kind).extent);
  assertEquals(extents, [[12, 1, 1], [3, 4, 1], [3, 2, 2], [3, 2, 2]]);
  assertThrows(() => virtualTensor("t", { c: 0 }, "buffer"), RangeError, "c is 0");
});

Deno.test("terms of dims of size 1 are not in the text", () => {
  const at = { b: "b", x: "x", y: "y", s: "s", d: "d" };
  const text = (shape: Parameters<typeof virtualTensor>[1]) =>
    placeOf(virtualTensor("t", shape, "buffer"), at)[0];
  assertEquals(text({ w: 3, h: 2, c: 5 }), "(s * 2u + y) * 3u + x");
  assertEquals(text({ b: 2, w: 3, h: 2, c: 5 }), "((s * 2u + y) * 3u + x) * 2u + b");
  assertEquals(text({ c: 4 }), "0u");
  const texture = virtualTensor("t", { w: 3, h: 2, c: 5 }, "texture_2d");
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
      const tensor = virtualTensor("t", shape, kind);
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
  const weights = virtualWeights("k", { o: 5, h: 2, w: 1, i: 7 });
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
  const other = packWeights(virtualWeights("k", weights.shape, "o4"), values);
  assertEquals(other[1]![2], valueAt(1, 0, 2));
});

Deno.test("a read beyond the edge is zero by the text, not by luck", () => {
  const tensor = virtualTensor("t", { w: 3, h: 2, c: 4 }, "texture_2d");
  assertEquals(
    readOrZero(tensor, { x: "i", y: "j" }),
    "select(vec4<f32>(), textureLoad(t, vec2<u32>(u32(clamp(i, 0, 2)), u32(clamp(j, 0, 1))), 0), " +
      "i >= 0 && i < 3 && j >= 0 && j < 2)",
  );
});

const TEXTURE_BINDING = 0x4, STORAGE_BINDING = 0x8, COPY_SRC = 0x1;

interface Placed {
  readonly resource: GPUBindingResource;
  destroy(): void;
}

function place(gpu: Gpu, tensor: VirtualTensor): Placed & { readonly texture?: GPUTexture } {
  const [width, height, depthOrArrayLayers] = tensor.extent;
  if (tensor.storage === "buffer") {
    const bytes = 16 * width;
    const usage = BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_SRC | BUFFER_USAGE.COPY_DST;
    const buffer = gpu.createBuffer(tensor.name, bytes, usage);
    return { resource: { buffer, size: bytes }, destroy: () => gpu.destroyBuffer(buffer) };
  }
  const texture = gpu.device.createTexture({
    size: { width, height, depthOrArrayLayers },
    dimension: tensor.storage === "texture_3d" ? "3d" : "2d",
    format: "rgba32float",
    usage: TEXTURE_BINDING | STORAGE_BINDING | COPY_SRC,
  });
  const dimension = ({
    texture_2d: "2d",
    texture_3d: "3d",
    texture_2d_array: "2d-array",
  } as const)[tensor.storage];
  return { resource: texture.createView({ dimension }), destroy: () => texture.destroy() };
}

function layoutEntry(
  { storage }: VirtualTensor,
  binding: number,
  writes: boolean,
): GPUBindGroupLayoutEntry {
  const visibility = 0x4;
  if (storage === "buffer") {
    return { binding, visibility, buffer: { type: writes ? "storage" : "read-only-storage" } };
  }
  const viewDimension = ({
    texture_2d: "2d",
    texture_3d: "3d",
    texture_2d_array: "2d-array",
  } as const)[storage];
  return writes
    ? {
      ...{ binding, visibility },
      storageTexture: { format: "rgba32float", access: "write-only", viewDimension },
    }
    : { binding, visibility, texture: { sampleType: "unfilterable-float", viewDimension } };
}

gpuTest("a tensor survives the way through every storage", async () => {
  const gpu = await openGpu();
  const { device } = gpu;
  const shape = { b: 2, h: 3, w: 4, d: 2, c: 6 };
  const kinds = [...STORAGE_KINDS, "buffer"] as const;
  const tensors = kinds.map((kind, i) => virtualTensor(`t${i}`, shape, kind));
  const placed = tensors.map((tensor) => place(gpu, tensor));
  const values = Float32Array.from({ length: 2 * 3 * 4 * 2 * 6 }, (_, i) => Math.sin(i));
  const first = placed[0]!.resource as GPUBufferBinding;
  device.queue.writeBuffer(first.buffer, 0, packTensor(tensors[0]!, values));
  const [count] = tensors[0]!.extent;
  const encoder = device.createCommandEncoder();
  for (let i = 1; i < tensors.length; i++) {
    const [source, target] = [tensors[i - 1]!, tensors[i]!];
    const layout = device.createBindGroupLayout({
      entries: [layoutEntry(source, 0, false), layoutEntry(target, 1, true)],
    });
    const code = virtualMap(source, target, "2.0 * value");
    const pipeline = await device.createComputePipelineAsync({
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: device.createShaderModule({ code }), entryPoint: "main" },
    });
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    const entries = [i - 1, i].map((at, binding) => ({ binding, resource: placed[at]!.resource }));
    pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
    pass.dispatchWorkgroups(Math.ceil(count / MAP_BLOCK));
    pass.end();
  }
  device.queue.submit([encoder.finish()]);
  const last = placed.at(-1)!.resource as GPUBufferBinding;
  const bytes = await readOnce(gpu, [{ buffer: last.buffer, offset: 0, bytes: 16 * count }]);
  const result = unpackTensor(tensors.at(-1)!, new Float32Array(bytes.buffer));
  assertEquals(result, values.map((value) => 16 * value));
  gpu.check();
  for (const object of placed) object.destroy();
  gpu.dispose();
});
