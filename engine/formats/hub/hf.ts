// Files on the Hugging Face hub, or a mirror that speaks its paths. Large files are redirected to a CDN;
// the redirect itself carries the file's true length and, for LFS files, its sha256, which is how a
// download of any of them can be verified.

import { readEnv } from "../../io.ts";
import { requestHead, type RequestOptions } from "./http.ts";
import type { Expected } from "./output.ts";
import { type RetryOptions, retryOrExplain } from "./retry.ts";
import type { ModelSource } from "./source_name.ts";

const MAX_HOPS = 4;

/**
 * Which hub, and who asks.
 * @category Hub
 */
export interface HfOptions {
  /** Base URL; `$HF_ENDPOINT` or https://huggingface.co by default. */
  readonly endpoint?: string | undefined;
  /** Access token; `$HF_TOKEN` by default. */
  readonly token?: string | undefined;
}

/** Address of the hub, without a slash behind it. */
export function hubBase(options: HfOptions): string {
  const base = options.endpoint ?? (readEnv("HF_ENDPOINT") || "https://huggingface.co");
  return base.replace(/\/+$/, "");
}

/** URL of a file of a repository. */
export function hfUrl(source: ModelSource & { kind: "hf" }, options: HfOptions): string {
  const path = [source.repo, "resolve", source.revision, source.file]
    .map((part) => part.split("/").map(encodeURIComponent).join("/"))
    .join("/");
  return `${hubBase(options)}/${path}`;
}

/** Headers of a request to the hub. */
export function hfHeaders(options: HfOptions): Record<string, string> {
  const token = options.token ?? readEnv("HF_TOKEN");
  return !token ? {} : { authorization: `Bearer ${token}` };
}

/**
 * Asks the hub what a file must be. Small files that are not in LFS have a git hash, which is not checked.
 *
 * @throws {SourceError} If there is no such file or no access.
 */
export async function expectedOfHf(
  url: string,
  options: RequestOptions & RetryOptions,
): Promise<Expected> {
  let address = url;
  for (let hops = 0; hops < MAX_HOPS; hops++) {
    const { headers, status } = await retryOrExplain(
      address,
      () => requestHead(address, options),
      options,
    );
    const size = headers.get("x-linked-size");
    const etag = headers.get("x-linked-etag")?.replace(/^(W\/)?"|"$/g, "");
    if (size !== null || etag !== undefined) {
      return {
        bytes: size === null ? undefined : Number(size),
        sha256: etag && /^[0-9a-f]{64}$/.test(etag) ? etag : undefined,
      };
    }
    // A renamed repository redirects to its new name, on the same host.
    const next = status >= 300 && URL.parse(headers.get("location") ?? "", address);
    if (!next || next.origin !== new URL(address).origin) break;
    address = next.href;
  }
  return {};
}
