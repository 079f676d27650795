/**
 * The engine in a browser, for a worker of a page: models are fetched into the origin's private file system and loaded from
 * there. What a platform has of its own (where files are kept, how workers are made, `fetch`) is given as options.
 *
 * @example
 * ```ts ignore
 * import { fetchFile, generate, load } from "troodon/browser";
 *
 * const path = await fetchFile("https://example.com/model.gguf");
 * const model = await load(path);
 * for await (const { text } of generate(model, "The sea is")) postMessage(text);
 * ```
 *
 * @module
 */

export * from "../../mod.ts";
export {
  fetchFile,
  type FetchFileOptions,
  type FetchFileProgress,
  fetchFolder,
  removeFile,
} from "./fetch_file.ts";
export { fileOfBytes, mount, type SyncFile, unmount } from "./files.ts";
export { makeWorkersBy, type WorkerFactory } from "./workers.ts";
export { type KernelReport, kernelReport, type KernelReportOptions } from "./kernel_report.ts";
