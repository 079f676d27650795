// Every file of the repository that is made from others, and by what. Not here, since a difference in them is to be
// looked at and not to be written over: the snapshots of shaders (their tests write them with `--update`) and the
// answers in tests/fixtures, which outside programs gave.

import { specSchema } from "../../engine/models/spec_schema.ts";
import { deno, ROOT } from "../support/task.ts";
import { familiesTable } from "./families_table.ts";
import { formatsTable } from "./format_rows.ts";
import { stalePage, writePage } from "./page.ts";
import { documentWith } from "./document_table.ts";
import { samplingTable } from "./sampling_table.ts";
import { specTable } from "./spec_table.ts";
import { staleKernels, writeKernels } from "./wasm.ts";

/** One kind of made file. */
export interface Generator {
  /** As `deno task build NAME` has it. */
  readonly name: string;
  /** The files, for people. */
  readonly files: string;
  /** Paths of those that are not what they should be. */
  stale(): Promise<string[]>;
  write(): Promise<void>;
}

/** A file whose text is quickly made. */
function textFile(name: string, path: string, make: () => string): Generator {
  const target = `${ROOT}/${path}`;
  // The formatter breaks lines of JSON as it likes.
  const isFormatted = path.endsWith(".json") && !path.endsWith(".gen.json");
  const plain = (text: string) => isFormatted ? JSON.stringify(JSON.parse(text)) : text;
  return {
    name,
    files: path.endsWith(".md") ? `${path}, its table of ${name}` : path,
    stale: async () => {
      const found = await Deno.readTextFile(target).catch(() => "null");
      return plain(found) === plain(make()) ? [] : [path];
    },
    write: async () => {
      await Deno.writeTextFile(target, make());
      if (isFormatted) await deno(["fmt", "--quiet", target]);
    },
  };
}

/** A table of a document. */
function table(name: string, path: string, make: () => string): Generator {
  return textFile(name, path, () => documentWith(path, { name, table: make() }));
}

/** All of them. */
export const GENERATORS: readonly Generator[] = [
  {
    name: "wasm",
    files: "wasm/*.gen.json, of wasm/assembly",
    stale: staleKernels,
    write: writeKernels,
  },
  {
    name: "page",
    files: "engine/serve/page/page.gen.json, of engine/serve/page/client",
    stale: stalePage,
    write: writePage,
  },
  textFile("specs", "engine/models/specs/table.gen.json", specTable),
  textFile("schema", "engine/models/spec_schema.json", () => JSON.stringify(specSchema(), null, 2)),
  table("families", "docs/models.md", familiesTable),
  table("formats", "docs/formats.md", formatsTable),
  table("sampling", "docs/sampling.md", samplingTable),
];
