// The engine for a worker of a page, for benches: they use nothing of tools but what is in this folder.

import { bundle } from "../build/bundle.ts";

/** Bundles a file (from the root), with all that it uses, as `NAME.js` in a folder. */
export async function bundleForBrowser(
  { path, name, folder }: { readonly path: string; readonly name: string; readonly folder: string },
): Promise<void> {
  await bundle({ platform: "browser", entries: { [name]: path }, outdir: folder });
}
