// `troodon remove`: frees disk space.

import { cacheFolder, listCache, removeFromCache } from "../../formats/hub/cache.ts";
import { parseModelSource } from "../../formats/hub/source_name.ts";
import { SourceError } from "../../errors.ts";
import { nearest } from "../../nearest.ts";
import { CACHED_MODEL } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { CACHE_FLAGS } from "../flags.ts";
import { showBytes } from "../format.ts";

/** The command. */
export const remove: Command = defineCommand({
  name: "troodon remove",
  summary: "Deletes a model, also a partly fetched one, from the cache.",
  positionals: [CACHED_MODEL],
  flags: CACHE_FLAGS,
  examples: [["troodon remove gemma3-270m", "delete one model"]],
}, async ({ terminal }, { positionals: [model], flags }) => {
  const source = parseModelSource(model!);
  if (source.kind === "path") {
    const near = nearest(model!, listCache(flags["cache-dir"]).map((entry) => entry.source));
    throw new SourceError(
      `is not in the cache ${cacheFolder(flags["cache-dir"])}` +
        (near === undefined ? "" : `. Did you mean ${near}?`),
      { file: model!, ...near === undefined && { remedy: "`troodon list` shows what is" } },
    );
  }
  const bytes = await removeFromCache(source.text, flags["cache-dir"]);
  if (flags.json) terminal.out(JSON.stringify({ removed: source.text, bytes }) + "\n");
  else terminal.out(`Removed ${source.text}: ${showBytes(bytes)} freed\n`);
  return 0;
});
