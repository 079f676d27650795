// The convolution over virtual tensors on WebGPU: which nodes it takes, where their tensors go, and the copies that
// lead there and back. Activations come and go in the engine's order (`planes`); a source that is wanted elsewhere is
// copied first, a target that was made elsewhere is copied behind, one dispatch each. Weights that are known lie in their
// storage from the start. What is larger than textures may be stays in buffers.

import type { Capabilities, GpuSlice, GpuTexture, Shader } from "../../../../gpu/kernel.ts";
import {
  type VirtualConv,
  virtualConvGroups,
  virtualConvShader,
} from "../../../../gpu/kernels/conv/virtual.ts";
import { MAP_BLOCK, mapCount, virtualMapShader } from "../../../../gpu/kernels/virtual_map.ts";
import { type ConvStorages, storagesOf } from "../../../../gpu/storage_choice.ts";
import { fitsTexture } from "../../../../gpu/textures.ts";
import {
  isTexture,
  type StorageKind,
  type TensorShape,
  type VirtualTensor,
  virtualTensor,
} from "../../../../gpu/virtual_tensor.ts";
import {
  packWeights,
  type VirtualWeights,
  virtualWeights,
} from "../../../../gpu/virtual_weights.ts";
import type { GpuKernel, GpuKernelContext, GpuLowering } from "../kernel.ts";
import type { Value } from "../../../graph/graph.ts";
import { knownConvolution, threeDims } from "../../wasm/lower/conv.ts";
import { inputSlice, optionalSlice, outputSlice } from "./lower.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { isStatic } from "../../wasm/lower/lower.ts";

/** A convolution by the storages of the device's class, where it names any. */
export const virtualConvKernel: GpuKernel = {
  name: "gpu_conv_virtual_f32",
  when: (context) => placedConv(context) !== undefined,
  repacks: [1],
  lower(lowering) {
    const conv = placedConv(lowering)!;
    const { source, target } = conv;
    const [x, y] = [inputSlice(lowering, 0), outputSlice(lowering)];
    const src = source.storage === "planes" ? { slice: x } : objectOf(lowering, source);
    const dst = target.storage === "planes" ? { slice: y } : objectOf(lowering, target);
    const weights = weightObjects(lowering, conv.weights);
    const planes = (tensor: VirtualTensor) =>
      virtualTensor("planes", { shape: tensor.shape, storage: "planes" });
    if (source.storage !== "planes") {
      emit(lowering, {
        shader: virtualMapShader(planes(source), { target: source }),
        workgroups: mapGroups(source),
        objects: {
          planes: { slice: x },
          src,
        },
      });
    }
    emit(lowering, {
      shader: virtualConvShader(conv),
      workgroups: virtualConvGroups(conv),
      objects: {
        ...{ src, dst, ...weights },
        ...Object.fromEntries(
          Object.entries(optionalSlice(lowering, { name: "bias", index: 2 })).map((
            [name, slice],
          ) => [name, { slice }]),
        ),
      },
    });
    if (target.storage !== "planes") {
      emit(lowering, {
        shader: virtualMapShader(target, { target: planes(target) }),
        workgroups: mapGroups(target),
        objects: {
          dst,
          planes: { slice: y },
        },
      });
    }
  },
};

/** A GPU object: one of the two. */
interface GpuObject {
  readonly slice?: GpuSlice;
  readonly texture?: GpuTexture;
}

/** The node's convolution with its tensors in place; undefined if it is not one of this kernel's. */
function placedConv({ node, capabilities, storages }: GpuKernelContext): VirtualConv | undefined {
  const chosen = (storages ?? storagesOf(capabilities)).conv;
  const { inputs: [x, w, bias], outputs: [y], attributes } = node;
  if (!chosen || !w!.data || !areFloat32([x, w, y, ...bias ? [bias] : []])) return undefined;
  if (![...x!.shape, ...y!.shape].every((size) => isStatic(size) && size > 0)) return undefined;
  const found = knownConvolution(node);
  if (!found) return undefined;
  const { window, filters, channels, groups } = found;
  if (groups > 1 && (filters / groups % 4 !== 0 || channels / groups % 4 !== 0)) return undefined;
  const [taps_d, taps_h, taps_w] = window.kernel;
  const conv = {
    source: place("src", { value: x!, storage: chosen.source, capabilities }),
    weights: placeWeights(
      { o: filters, h: taps_d * taps_h, w: taps_w, i: channels / groups },
      chosen.weights,
      capabilities,
    ),
    target: place("dst", { value: y!, storage: chosen.target, capabilities }),
    hasBias: bias !== undefined,
    activation: attributes.activation as string,
    ...window,
    groups,
  };
  return isBindable(conv, capabilities) ? conv : undefined;
}

/** A value in its storage, in planes where that has no room for it. */
function place(
  name: string,
  { value, storage, capabilities }: {
    readonly value: Value;
    readonly storage: StorageKind;
    readonly capabilities: Capabilities;
  },
): VirtualTensor {
  const [d, h, w] = threeDims(value) as [number, number, number];
  const shape: TensorShape = { b: value.shape[0] as number, c: value.shape[1] as number, d, h, w };
  const tensor = virtualTensor(name, { shape, storage });
  return fitsTexture(tensor, capabilities)
    ? tensor
    : virtualTensor(name, { shape, storage: "planes" });
}

function placeWeights(
  shape: VirtualWeights["shape"],
  storage: ConvStorages["weights"],
  capabilities: Capabilities,
): VirtualWeights {
  const weights = virtualWeights("w", { shape, storage });
  return weights.objects.every((object) => fitsTexture(object, capabilities))
    ? weights
    : virtualWeights("w", { shape, storage: "buffer" });
}

function isBindable(conv: VirtualConv, capabilities: Capabilities): boolean {
  const { maxBindingBytes, maxStorageBindings } = capabilities;
  const buffers = [conv.source, conv.target, ...conv.weights.objects]
    .filter((tensor) => !isTexture(tensor));
  return buffers.length + Number(conv.hasBias) <= maxStorageBindings &&
    buffers.every(({ extent }) => 16 * extent[0] <= maxBindingBytes);
}

/** Memory of a tensor for this node alone. */
function objectOf(lowering: GpuLowering, tensor: VirtualTensor): GpuObject {
  return isTexture(tensor)
    ? { texture: lowering.texture(tensor) }
    : { slice: lowering.scratch(16 * tensor.extent[0]) };
}

/** The weights, laid where their tensors say while they are loaded. */
function weightObjects(
  lowering: GpuLowering,
  weights: VirtualWeights,
): Record<string, GpuObject> {
  const value = lowering.node.inputs[1]!;
  let packed: Float32Array<ArrayBuffer>[] | undefined;
  const pack = () => packed ??= packWeights(weights, inTapOrder(value, weights));
  return Object.fromEntries(weights.objects.map((object, index) => [
    object.name,
    isTexture(object)
      ? { texture: lowering.texture(object, { value, texels: () => pack()[index]! }) }
      : { slice: lowering.constant(pack()[index]!) },
  ]));
}

/** Weights as graphs have them, O × I × taps, in the order O × taps × I. */
function inTapOrder({ data }: Value, { shape: { o, h, w, i } }: VirtualWeights): Float32Array {
  const values = data as Float32Array, taps = h * w;
  const ordered = new Float32Array(o * taps * i);
  for (let filter = 0; filter < o; filter++) {
    for (let channel = 0; channel < i; channel++) {
      for (let tap = 0; tap < taps; tap++) {
        ordered[(filter * taps + tap) * i + channel] = values[(filter * i + channel) * taps + tap]!;
      }
    }
  }
  return ordered;
}

function mapGroups(tensor: VirtualTensor): number {
  return Math.ceil(mapCount(tensor) / MAP_BLOCK);
}

function emit(
  { emit }: GpuLowering,
  { shader, workgroups, objects }: {
    readonly shader: Shader;
    readonly workgroups: number;
    readonly objects: Readonly<Record<string, GpuObject>>;
  },
): void {
  const of = <T>(pick: (object: GpuObject) => T | undefined): Record<string, T> =>
    Object.fromEntries(
      Object.entries(objects).flatMap(([name, object]) => {
        const found = pick(object);
        return found === undefined ? [] : [[name, found] as const];
      }),
    );
  emit({
    shader,
    storage: of(({ slice }) => slice),
    textures: of(({ texture }) => texture),
    workgroups: [workgroups],
  });
}
