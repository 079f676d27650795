// A file on its way: `target.partial` has its full length from the start and is filled in any order;
// `target.partial.json` says which ranges are there and of which content. The note is written only after
// the bytes it speaks of, so a crash can lose some bytes but never claim missing ones.

import { addRange, coveredBytes, gaps, isSound, type Range } from "./ranges.ts";
import { describeWriteError, type OpenOutput, type OutputFile } from "./output.ts";

/** What the note says. */
interface Note {
  readonly url: string;
  readonly etag: string | undefined;
  readonly size: number;
  readonly done: readonly Range[];
}

/** A partly written file. */
export interface Partial {
  /** Path of the bytes. */
  readonly path: string;
  /** Length of the whole file. */
  readonly size: number;
  /** Identity of the content, as the server gave it. */
  readonly etag: string | undefined;
  /** Bytes that are there. */
  received(): number;
  /** What is not there yet, in order. */
  missing(): Range[];
  /** Writes bytes at an offset and notes them as there. */
  write(offset: number, bytes: Uint8Array): void;
  /** Flushes the bytes, then the note. */
  save(): Promise<void>;
  /** Closes the file, once or twice; what is unsaved in the note is fetched again. */
  close(): void;
}

/** Takes up what an earlier run left, or returns undefined when that is nothing or cannot be trusted. */
export function resumePartial(
  target: string,
  { url, open }: { readonly url: string; readonly open: OpenOutput },
): Partial | undefined {
  const note = readNote(target);
  if (!note || note.url !== url) return undefined;
  try {
    if (Deno.statSync(partialPath(target)).size !== note.size) return undefined;
  } catch {
    return undefined;
  }
  return usePartial(target, note, open(partialPath(target)));
}

/** Starts anew. */
export function createPartial(
  target: string,
  { content, open }: {
    readonly content: {
      readonly url: string;
      readonly etag: string | undefined;
      readonly size: number;
    };
    readonly open: OpenOutput;
  },
): Partial {
  removePartial(target);
  const path = partialPath(target);
  const output = open(path);
  try {
    output.truncate(content.size);
  } catch (error) {
    output.close();
    removePartial(target);
    throw describeWriteError(error, { path, done: 0, total: content.size });
  }
  return usePartial(target, { ...content, done: [] }, output);
}

/** Forgets what is there. */
export function removePartial(target: string): void {
  for (const path of [notePath(target), partialPath(target)]) {
    try {
      Deno.removeSync(path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

/** Path of the bytes. */
export function partialPath(target: string): string {
  return `${target}.partial`;
}

function notePath(target: string): string {
  return `${target}.partial.json`;
}

function usePartial(target: string, note: Note, output: OutputFile): Partial {
  const path = partialPath(target);
  let done = note.done;
  let open = true;
  return {
    path,
    size: note.size,
    etag: note.etag,
    received: () => coveredBytes(done),
    missing: () => gaps(done, note.size),
    write(offset: number, bytes: Uint8Array): void {
      try {
        output.write(offset, bytes);
      } catch (error) {
        throw describeWriteError(error, { path, done: coveredBytes(done), total: note.size });
      }
      done = addRange(done, [offset, offset + bytes.length]);
    },
    async save(): Promise<void> {
      const text = JSON.stringify({ ...note, done });
      await output.sync();
      const fresh = `${notePath(target)}.new`;
      try {
        await Deno.writeTextFile(fresh, text);
        await Deno.rename(fresh, notePath(target));
      } catch (error) {
        // On a full disk the older note stays: it claims less than there is.
        await Deno.remove(fresh).catch(() => {});
        throw describeWriteError(error, { path, done: coveredBytes(done), total: note.size });
      }
    },
    close(): void {
      if (open) output.close();
      open = false;
    },
  };
}

function readNote(target: string): Note | undefined {
  try {
    const note = JSON.parse(Deno.readTextFileSync(notePath(target))) as Record<string, unknown>;
    const { url, etag, size, done } = note;
    const sound = typeof url === "string" && (etag === undefined || typeof etag === "string") &&
      Number.isSafeInteger(size) && isSound(done, size as number);
    return sound ? { url, etag, size: size as number, done } : undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) throw error;
    return undefined; // absent or damaged: start anew
  }
}
