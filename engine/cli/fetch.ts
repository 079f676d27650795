// From a model's name to a path on this machine, with progress on standard error.

import { defaultModel } from "../formats/hub/catalogue.ts";
import { createProgressRenderer, formatBytes } from "../formats/hub/progress.ts";
import { type PullChoice, pullModel } from "../formats/hub/pull.ts";
import type { ParsedLine } from "./args.ts";
import type { Context } from "./command.ts";
import type { SOURCE_FLAGS } from "./flags.ts";

/** Flags of a command that names a model. */
export type SourceFlags = ParsedLine<typeof SOURCE_FLAGS>["flags"] & {
  readonly json?: boolean | undefined;
};

/** Fetches a model that is not here yet (the default one when none is named) and returns its path. */
export async function fetchModel(
  name: string | undefined,
  { flags, pick: { terminal, signal }, sha256 }: {
    readonly flags: SourceFlags;
    readonly pick: Pick<Context, "terminal" | "signal">;
    readonly sha256?: string | undefined;
  },
): Promise<string> {
  const renderer = createProgressRenderer({
    write: (text) => terminal.err(text),
    isTerminal: terminal.progress,
    columns: terminal.columns(),
  });
  try {
    return await pullModel(name ?? defaultModel, {
      signal,
      sha256,
      cacheDir: flags["cache-dir"],
      endpoint: flags.endpoint,
      offline: flags.offline,
      ...!flags.json && {
        onProgress: renderer.show,
        onChoice: (choice) => terminal.err(choiceText(choice)),
      },
    });
  } finally {
    renderer.end();
  }
}

/** What was chosen of a repository, and its files with their sizes. */
function choiceText({ source, reason, files }: PullChoice): string {
  const rows = files.map(({ path, bytes }) => `  ${formatBytes(bytes).padStart(8)}  ${path}\n`);
  return `${source}: ${reason}\n${rows.join("")}`;
}
