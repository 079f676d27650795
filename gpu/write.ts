// Bytes on their way to a buffer. Deno panics when it is to write none, and tensors may be empty.

/** A place in a buffer. */
export interface WriteTarget {
  readonly buffer: GPUBuffer;
  /** In bytes, a multiple of 4. */
  readonly offset: number;
}

/** Hands bytes, a multiple of 4, to the queue, if there are any. */
export function writeBytes(
  { queue }: Pick<GPUDevice, "queue">,
  { target: { buffer, offset }, data }: {
    readonly target: WriteTarget;
    readonly data: AllowSharedBufferSource;
  },
): void {
  if (data.byteLength > 0) queue.writeBuffer(buffer, offset, data as BufferSource);
}

/** Rounded up to whole words, of which copies are made. */
export function inWords(bytes: number): number {
  return Math.ceil(bytes / 4) * 4;
}
