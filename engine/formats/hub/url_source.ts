// A model on a web server as a ByteSource: `troodon info https://…` reads a header of a few megabytes and
// leaves the weights where they are. Small reads share blocks that are kept for a while; large ones go
// straight into their target.

import type { ByteSource } from "../../byte_source.ts";
import { FormatError, SourceError } from "../../errors.ts";
import { checkPlainName, checkRange } from "../../io.ts";
import { hfHeaders, type HfOptions, hfUrl } from "./hf.ts";
import { type RequestOptions, requestRange, TransientFailure } from "./http.ts";
import { type RetryOptions, retryOrExplain } from "./retry.ts";
import { type ModelSource, parseModelSource } from "./source_name.ts";

const BLOCK = 64 << 10;
const KEPT_BLOCKS = 32;

/** How to reach the server. */
export type UrlOptions = RequestOptions & RetryOptions;

/**
 * Opens a URL for reading by ranges.
 *
 * @throws {SourceError} If it cannot be reached, or the server does not serve ranges.
 */
export async function openUrl(url: string, options: UrlOptions = {}): Promise<ByteSource> {
  const head = new Uint8Array(BLOCK);
  const first = await fetchInto(url, 0, head, options);
  const size = first.total;
  const blocks = new Map([[0, head.subarray(0, size)]]);
  let open = true;

  async function readBlock(index: number): Promise<Uint8Array> {
    const kept = blocks.get(index);
    if (kept) return kept;
    const start = index * BLOCK;
    const block = new Uint8Array(Math.min(BLOCK, size - start));
    await fetchSame(start, block);
    blocks.set(index, block);
    // The first block is what every reader begins with: it stays.
    if (blocks.size > KEPT_BLOCKS) blocks.delete([...blocks.keys()].find((key) => key !== 0)!);
    return block;
  }

  async function fetchSame(start: number, target: Uint8Array): Promise<void> {
    const { total, etag } = await fetchInto(url, start, target, options);
    if (total === size && etag === first.etag) return;
    throw new SourceError("the file changed on the server while it was read", {
      file: url,
      remedy: "Try again",
    });
  }

  return {
    name: url,
    size,
    async readInto(offset: number, target: Uint8Array): Promise<void> {
      if (!open) throw new TypeError(`Cannot read ${url}: it is closed`);
      checkRange(url, { size, offset, length: target.length });
      if (target.length > BLOCK) {
        return await fetchSame(offset, target);
      }
      for (let done = 0; done < target.length;) {
        const position = offset + done;
        const block = await readBlock(Math.floor(position / BLOCK));
        const piece = block.subarray(position % BLOCK, position % BLOCK + target.length - done);
        target.set(piece, done);
        done += piece.length;
      }
    },
    openSibling(name: string): Promise<ByteSource> {
      const parts = name.split("/");
      for (const part of parts) checkPlainName(part, url);
      return openUrl(new URL(parts.map(encodeURIComponent).join("/"), url).href, options);
    },
    close(): void {
      open = false;
      blocks.clear();
    },
  };
}

/**
 * Opens a remote model for a look without a download, or returns undefined for sources that have no URL
 * (paths, wheels).
 *
 * @throws {SourceError} As `openUrl`.
 */
export function openRemoteSource(
  model: string | ModelSource,
  options: HfOptions & UrlOptions = {},
): Promise<ByteSource> | undefined {
  const source = typeof model === "string" ? parseModelSource(model) : model;
  if (source.kind === "url") return openUrl(source.url, options);
  if (source.kind !== "hf") return undefined;
  return openUrl(hfUrl(source, options), { ...options, headers: hfHeaders(options) });
}

/** Fills `target` from `start`, or as much of it as the file has. */
function fetchInto(
  url: string,
  start: number,
  target: Uint8Array,
  options: UrlOptions,
): Promise<{ readonly total: number; readonly etag: string | undefined }> {
  let done = 0;
  let etag: string | undefined;
  return retryOrExplain(url, async (progress) => {
    const reply = await requestRange(url, [start + done, start + target.length], options);
    if (reply.kind === "outside" && start === 0) {
      throw new FormatError("is empty (0 bytes)", { file: url, remedy: "Use another source" });
    }
    if (reply.kind !== "part") {
      await reply.cancel();
      throw new SourceError("the server does not serve parts of files", {
        file: url,
        remedy: "Pull the model first, then look at the local copy",
      });
    }
    if (done > 0 && reply.etag !== etag) {
      done = 0;
      await reply.cancel();
      throw new TransientFailure("the file changed on the server while it was read");
    }
    etag = reply.etag;
    const total = reply.total!;
    const wanted = Math.min(target.length, total - start);
    for await (const chunk of reply.chunks) {
      const piece = chunk.subarray(0, wanted - done);
      target.set(piece, done);
      done += piece.length;
      progress();
      if (done === wanted) break;
    }
    await reply.cancel();
    if (done < wanted) throw new TransientFailure("the connection ended early");
    return { total, etag };
  }, options);
}
