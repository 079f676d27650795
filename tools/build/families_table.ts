// docs' table of model families: what each spec file serves and what it was compared with. Specs say names
// and network; fixtures say which outside program gave the answers; nothing is written by hand but the names of
// the real models whose answers are stored in tests/fixtures/golden.

import type { SpecFile } from "../../engine/models/specs/mod.ts";
import { INFERFLOW_CONFIGURATIONS } from "../../tests/support/inferflow_configurations.ts";
import { alignedTable } from "./document_table.ts";
import { ROOT } from "../support/task.ts";
import { specFileNames } from "./spec_table.ts";

const SPECS = `${ROOT}/engine/models/specs`;
const FIXTURES = `${ROOT}/tests/fixtures`;

/** Real models by spec. */
const GOLDEN: Readonly<Record<string, string>> = {
  llama: "SmolLM2 135M",
  gemma3: "Gemma 3 270M",
  bert: "all-MiniLM-L6-v2",
};

const HEADINGS = ["family", "spec", "network", "files", "compared with"];

/** What is read of a fixture's config.json and expected.json. */
interface Fixture {
  readonly type: string;
  readonly label: string;
  readonly reference: string;
}

function readJson(path: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(Deno.readTextFileSync(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return;
    throw error;
  }
}

function fixtures(): Fixture[] {
  return ["models", "pictures", "speech", "vision_language"].flatMap(foldersOf).flatMap(
    (folder) => {
      const config = readJson(`${folder}/config.json`);
      const expected = readExpected(folder);
      if (!config || !expected) return [];
      const [architecture] = config.architectures as string[];
      const label = architecture!.replace(/(For\w+|LMHeadModel|Model)$/, "");
      const { reference, versions } = expected as Record<string, string & Record<string, string>>;
      const { vision_config: pictures } = config as Record<
        string,
        { readonly model_type?: string }
      >;
      return [[config.model_type, label], [pictures?.model_type, `${label} (pictures)`]]
        .filter(([type]) => type !== undefined)
        .map(([type, label]) => ({
          ...{ type: type as string, label: label as string },
          reference: reference ?? `transformers ${versions!.transformers}`,
        }));
    },
  );
}

/** Of answers that are packed, what their model was written with. */
function readExpected(folder: string): Record<string, unknown> | undefined {
  const { transformers_version: transformers } = readJson(`${folder}/config.json`) ?? {};
  return readJson(`${folder}/expected.json`) ?? { versions: { transformers } };
}

function foldersOf(kind: string): string[] {
  return [...Deno.readDirSync(`${FIXTURES}/${kind}`)]
    .map(({ name }) => `${FIXTURES}/${kind}/${name}`).sort();
}

/** Whether a spec serves a name of config.json; their spellings differ. */
function serves({ matches }: SpecFile, type: string): boolean {
  const plain = (name: string) => name.toLowerCase().replaceAll("_", "");
  return matches.huggingface.some((name) => plain(name) === plain(type));
}

/** Classes among the fixtures, then names that have none of their own. */
function familyCell(spec: SpecFile, own: readonly Fixture[]): string {
  const types = new Set(own.map(({ type }) => type));
  const others = spec.matches.huggingface.filter((name) => !types.has(name));
  return [...new Set(own.map(({ label }) => label)), ...others].join(", ");
}

function filesCell({ matches: { huggingface, gguf } }: SpecFile): string {
  const names = gguf.map((name) => `\`${name}\``).join(", ");
  return [huggingface.length > 0 && "HF folder", names && `GGUF ${names}`]
    .filter((part) => part).join("; ");
}

function comparedCell(spec: SpecFile, own: readonly Fixture[]): string {
  const counts = new Map<string, number>();
  for (const { reference } of own) counts.set(reference, (counts.get(reference) ?? 0) + 1);
  const shipped =
    INFERFLOW_CONFIGURATIONS.filter(([, { model_type: type, ...gguf }]) =>
      type ? serves(spec, type as string) : spec.matches.gguf.includes(
        gguf["general.architecture"] as string,
      )
    ).length;
  return [
    ...[...counts].map(([reference, count]) => count > 1 ? `${reference} (${count})` : reference),
    shipped > 0 && `${shipped} of Inferflow's configurations`,
    GOLDEN[spec.name] && `${GOLDEN[spec.name]} as a real model`,
  ].filter((part) => part).join("; ");
}

/** The table, aligned as `deno fmt` aligns it. */
export function familiesTable(): string {
  const all = fixtures();
  // From the folder: the engine's table is not written yet when a family is new.
  const rows = specFileNames().map((path) => {
    const spec = readJson(`${SPECS}/${path}`) as unknown as SpecFile & { network?: string };
    const own = all.filter(({ type }) => serves(spec, type));
    if (own.length === 0) throw new Error(`${path}: no folder in ${FIXTURES} is of this family`);
    return [
      familyCell(spec, own),
      `[${spec.name}](../engine/models/specs/${path})`,
      spec.network ?? "decoder",
      filesCell(spec),
      comparedCell(spec, own),
    ];
  });
  return alignedTable(HEADINGS, rows);
}
