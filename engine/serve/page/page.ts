// The chat page, ready to be sent. `deno task build page` makes it of client/: one document with its script and style
// inside, kept as text in a module, so that serving it takes no permission, no build step and no second request.

/** A file of the page. */
export interface PageAsset {
  /** Its media type. */
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** For `If-None-Match`, with its quotes. */
  readonly etag: string;
  /** To be sent with it, and with a 304: what the page may do, and how long it is kept. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * What is to be served, by path; there is nothing else. Read when it is first asked for, since most servers of an API
 * never show it.
 */
export async function pageAssets(): Promise<ReadonlyMap<string, PageAsset>> {
  const { default: page } = await import("./page.gen.json", { with: { type: "json" } });
  return new Map([["/", {
    type: "text/html; charset=utf-8",
    bytes: new TextEncoder().encode(page.html),
    etag: page.etag,
    headers: {
      "content-security-policy": page.policy,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "permissions-policy": "camera=(), geolocation=(), microphone=()",
      "cross-origin-opener-policy": "same-origin",
      // Asked for again each time, so that a new version is seen at once; a 304 is all that this takes.
      "cache-control": "no-cache",
    },
  }]]);
}
