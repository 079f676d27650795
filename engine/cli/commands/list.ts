// `troodon list`: what can be named and what is on the disk.

import { cacheFolder, listCache } from "../../formats/hub/cache.ts";
import { catalogue } from "../../formats/hub/catalogue.ts";
import { type Command, defineCommand } from "../command.ts";
import { CACHE_FLAGS } from "../flags.ts";
import { showBytes, showTable } from "../format.ts";

const TASKS = [...new Set([...catalogue.values()].map(({ task }) => task))].sort();

/** The command. */
export const list: Command = defineCommand({
  name: "troodon list",
  summary: "Lists the models of the catalogue and of the cache.",
  flags: {
    ...CACHE_FLAGS,
    task: { type: "string", choices: TASKS, help: "only models for this" },
  },
  examples: [
    ["troodon list", "what can be pulled and what is here"],
    ["troodon list --json", "the same for a script"],
    ["troodon list --task rerank", "models for a task"],
  ],
  notes: [
    "Any other model of the hub is named by its repository: troodon pull owner/repo, owner/repo:Q4_K_M.",
  ],
}, ({ terminal }, { flags }) => {
  const folder = cacheFolder(flags["cache-dir"]);
  const cached = listCache(flags["cache-dir"]);
  const known = [...catalogue.values()]
    .filter(({ task }) => flags.task === undefined || task === flags.task);
  if (flags.json) {
    const models = known.map((model) => ({
      name: model.name,
      aliases: model.aliases,
      task: model.task,
      title: model.title,
      license: model.license,
      bytes: model.bytes,
      hub: model.hub,
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
    ["MODEL", "TASK", "SIZE", "STATE", "WHAT"],
    ...known.map(({ name, task, bytes, title, license }) => [
      name,
      task,
      showBytes(bytes),
      state(name),
      `${title} (${license})`,
    ]),
    ...cached.filter(({ source }) => flags.task === undefined && !catalogue.has(source))
      .map(({ source, bytes }) => [source, "", showBytes(bytes), state(source), ""]),
  ];
  const total = cached.reduce((sum, { bytes }) => sum + bytes, 0);
  terminal.out(`${showTable(rows, [2])}\n\nCache: ${folder} (${showBytes(total)})\n`);
  return Promise.resolve(0);
});
