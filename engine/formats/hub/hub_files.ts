// The files of a repository on the Hugging Face hub, with lengths and hashes, as its API lists them
// (GET /api/models/OWNER/REPO/tree/REVISION, in pages joined by the Link header).

import { FormatError } from "../../errors.ts";
import { asObject, parseStrictJson } from "../strict_json.ts";
import { hfHeaders, type HfOptions, hubBase } from "./hf.ts";
import { type RequestOptions, requestPage } from "./http.ts";
import { type RetryOptions, retryOrExplain } from "./retry.ts";

/**
 * A file of a repository.
 * @category Hub
 */
export interface HubFile {
  /** From the root of the repository. */
  readonly path: string;
  /** Length in bytes. */
  readonly bytes: number;
  /** Of files in LFS, as all weights are. */
  readonly sha256?: string | undefined;
}

/** A repository at a revision. */
export interface HubPlace {
  readonly repo: string;
  readonly revision: string;
}

/** Pages of a listing that are read at most; a page has up to 1,000 files. */
const MOST_PAGES = 20;

/**
 * Lists a repository.
 *
 * @throws {SourceError} If there is none of that name, or no access.
 * @throws {FormatError} If the server does not answer as the hub does.
 */
export async function listHubFiles(
  { repo, revision }: HubPlace,
  options: HfOptions & RequestOptions & RetryOptions,
): Promise<HubFile[]> {
  const files: HubFile[] = [];
  const headers = hfHeaders(options);
  const first = `${hubBase(options)}/api/models/${repo}/tree/${encodeURIComponent(revision)}`;
  let url: string | undefined = `${first}?recursive=true`;
  for (let page = 0; url !== undefined && page < MOST_PAGES; page++) {
    const address: string = url;
    const { bytes, link }: { bytes: Uint8Array; link: string | null } = await retryOrExplain(
      address,
      () => requestPage(address, { ...options, headers }),
      options,
    );
    files.push(...readListing(bytes, address));
    url = nextPage(link, address);
  }
  return files;
}

function readListing(bytes: Uint8Array, url: string): HubFile[] {
  const list = parseStrictJson(bytes, url);
  if (!Array.isArray(list)) {
    throw new FormatError("is no list of files", {
      file: url,
      remedy: "Check --endpoint (HF_ENDPOINT)",
    });
  }
  return list.map(asObject).flatMap((entry) => {
    const { type, path, size } = entry ?? {};
    if (type !== "file" || typeof path !== "string" || typeof size !== "number") return [];
    const { oid } = asObject(entry!.lfs) ?? {};
    const sha256 = typeof oid === "string" && /^[0-9a-f]{64}$/.test(oid) ? oid : undefined;
    return [{ path, bytes: size, sha256 }];
  });
}

/** The address of `rel="next"`, on the same server only: the token goes with it. */
function nextPage(link: string | null, from: string): string | undefined {
  const [, target] = /<([^>]+)>\s*;\s*rel="?next"?/.exec(link ?? "") ?? [];
  const url = target === undefined ? null : URL.parse(target, from);
  return url?.origin === new URL(from).origin ? url.href : undefined;
}
