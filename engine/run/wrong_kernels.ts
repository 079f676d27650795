// What is said of a device whose kernels compute wrong (gpu/self_tests.ts), apart from what finds it out, so that whoever
// loads models knows it without loading any device.

import { DeviceError } from "../errors.ts";

/** Kernels that are wrong on an adapter, where no others do what a plan wants of them. */
export class WrongKernelsError extends DeviceError {
  /** Their names. */
  readonly kernels: readonly string[];

  constructor(message: string, kernels: readonly string[], cause: unknown) {
    super(message, { cause, remedy: "Use device wasm, or another driver" });
    this.kernels = kernels;
  }
}
