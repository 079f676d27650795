// Values that stay on a device from run to run, so that what one graph makes and another takes never crosses the host:
// text vectors and latents between the networks of a diffusion pipeline, caches of a decoder, values between two parts of
// a plan. Who holds one frees it.

import type { DimEnv } from "../graph/dim/mod.ts";
import type { HostData } from "../graph/graph.ts";
import { elementCount, hostArray, type HostTensor } from "../ops/host_tensor.ts";

/** Memory of a device with the elements of one value. */
export interface HeldValue {
  /** The device; plans take values of their own alone. */
  readonly owner: object;
  /** A copy on the host of its leading bytes. */
  read(bytes: number): Promise<Uint8Array<ArrayBuffer>>;
  dispose(): void;
}

/** Which values of a run come from held ones and go to them, by name. */
export interface HeldTransfers {
  readonly inputs: ReadonlyMap<string, HeldValue>;
  readonly outputs: ReadonlyMap<string, readonly HeldValue[]>;
  /** Outputs that nobody looks at on the host. */
  readonly unread: ReadonlySet<string>;
}

/** What a plan offers whose device holds values. */
export interface Holder {
  /** Memory for a value. */
  hold(bytes: number): Promise<HeldValue>;
  /** Whether an input can be taken from there: it is of this device, and nobody has to look at it before a run. */
  takes(input: string, value: HeldValue): boolean;
  /** Whether an output is made on the device. */
  keeps(output: string): boolean;
  /** As `run` of the plan. */
  run(bindings: DimEnv, transfers: HeldTransfers, signal?: AbortSignal): void | Promise<void>;
}

const held = new WeakMap<HostTensor, HeldValue>();

/** A tensor whose elements are held: it has type and shape, and whoever asks for its elements is told. */
export function heldTensor(
  { dtype, shape }: Pick<HostTensor, "dtype" | "shape">,
  value: HeldValue,
): HostTensor {
  const tensor: HostTensor = {
    ...{ dtype, shape },
    get data(): HostData {
      throw new TypeError("Cannot look at elements that are on a device: read them first");
    },
  };
  held.set(tensor, value);
  return tensor;
}

/** Where the elements of a tensor are held; undefined: they are on the host. */
export function heldOf(tensor: object): HeldValue | undefined {
  return held.get(tensor as HostTensor);
}

/** A tensor with its elements on the host. */
export async function readTensor(tensor: HostTensor): Promise<HostTensor> {
  const value = heldOf(tensor);
  if (!value) return tensor;
  const { dtype, shape } = tensor;
  const data = hostArray(dtype, { count: elementCount(shape) });
  new Uint8Array(data.buffer).set(await value.read(data.byteLength));
  return { dtype, shape, data };
}

const HOST = {};

/** The same of elements that are on the host, for devices that hold none. */
export function heldOnHost(tensor: HostTensor): HostTensor {
  const { buffer, byteOffset } = tensor.data;
  const read = (bytes: number) =>
    Promise.resolve(new Uint8Array(buffer as ArrayBuffer, byteOffset, bytes));
  return heldTensor(tensor, { owner: HOST, read, dispose: () => {} });
}
