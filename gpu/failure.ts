// What goes wrong on a GPU, by kind. The engine turns these into its own errors, with the model and the
// remedy; here it is only known what the device said.

/** Kinds of failures. */
export type FailureKind =
  /** There is no adapter, or none as was asked for. */
  | "no adapter"
  /** The device gave no memory. */
  | "memory"
  /** The device is gone: driver reset, removed, destroyed. */
  | "lost"
  /** A shader was refused. */
  | "shader"
  /** The device says that it was used wrongly. */
  | "validation";

/** A failure of the device or its driver. */
export class GpuFailure extends Error {
  /** What went wrong. */
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "GpuFailure";
    this.kind = kind;
  }
}

/** The message of whatever was thrown or reported, on one line. */
export function messageOf(error: unknown): string {
  const text = (error as { readonly message?: unknown } | null)?.message ?? error;
  return String(text).replace(/\s+/g, " ").trim();
}

/** The failure behind an error of the device; calls that find it lost say so before its promise does. */
export function failureOf(error: unknown): GpuFailure {
  const name = (error as { constructor?: { name?: string } } | null)?.constructor?.name;
  const isLoss = /\bdevice (is|was) lost\b/i.test(messageOf(error));
  const kind = name === "GPUOutOfMemoryError" ? "memory" : isLoss ? "lost" : "validation";
  return new GpuFailure(kind, messageOf(error), { cause: error });
}
