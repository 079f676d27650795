// `troodon list`: what can be named and what is on the disk.

import { cacheFolder, listCache } from "../../formats/hub/cache.ts";
import { catalogue, modelBytes } from "../../formats/hub/catalogue.ts";
import { type Command, defineCommand } from "../command.ts";
import { CACHE_FLAGS } from "../flags.ts";
import { showBytes, showTable } from "../format.ts";

/** The command. */
export const list: Command = defineCommand({
  name: "troodon list",
  summary: "Lists the models of the catalogue and of the cache.",
  flags: CACHE_FLAGS,
  examples: [
    ["troodon list", "what can be pulled and what is here"],
    ["troodon list --json", "the same for a script"],
  ],
}, ({ terminal }, { flags }) => {
  const folder = cacheFolder(flags["cache-dir"]);
  const cached = listCache(flags["cache-dir"]);
  const known = [...catalogue.values()];
  if (flags.json) {
    const models = known.map((model) => ({
      name: model.name,
      title: model.title,
      license: model.license,
      bytes: modelBytes(model),
      cached: cached.some(({ source, complete }) => source === model.name && complete),
    }));
    terminal.out(JSON.stringify({ cacheFolder: folder, catalogue: models, cache: cached }) + "\n");
    return Promise.resolve(0);
  }
  const state = (name: string): string => {
    const entry = cached.find(({ source }) => source === name);
    return entry === undefined ? "" : entry.complete ? "cached" : "incomplete";
  };
  const rows = [
    ["MODEL", "SIZE", "STATE", "WHAT"],
    ...known.map((
      m,
    ) => [m.name, showBytes(modelBytes(m)), state(m.name), `${m.title} (${m.license})`]),
    ...cached.filter(({ source }) => !catalogue.has(source))
      .map(({ source, bytes }) => [source, showBytes(bytes), state(source), ""]),
  ];
  const total = cached.reduce((sum, { bytes }) => sum + bytes, 0);
  terminal.out(`${showTable(rows, [1])}\n\nCache: ${folder} (${showBytes(total)})\n`);
  return Promise.resolve(0);
});
