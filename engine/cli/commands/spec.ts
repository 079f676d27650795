// `troodon spec`: for whoever adds a model family by a JSON file. `check` says which key is wrong and what is
// allowed, `show` prints the blocks of a model, `schema` prints the JSON Schema for editors.

import { closing } from "../../byte_source.ts";
import { UsageError } from "../args.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import { LOAD_FLAGS, loadOptions } from "../flags.ts";
import { showTable } from "../format.ts";
import { type SpecFlag, specOption } from "../spec_flag.ts";

/** The command. */
export const spec: Command = defineCommand({
  name: "troodon spec",
  summary: "Checks a file that describes a model family, or shows what a model is built of.",
  positionals: ["check|show|schema|list", "[FILE]"],
  flags: LOAD_FLAGS,
  examples: [
    ["troodon spec check my_family.json", "which key is wrong, and what is allowed"],
    ["troodon spec show smollm2-135m", "the blocks of a model"],
    ["troodon spec schema > schema.json", "for an editor that completes keys"],
    ["troodon spec list", "families that are built"],
  ],
  notes: ["Actions: check FILE, show MODEL, schema, list."],
}, async (context, { positionals: [action, file], flags }) => {
  const { terminal } = context;
  switch (action) {
    case "check":
      return await check(needed(action, file), flags.json ?? false, context);
    case "show": {
      const blocks = await blocksOf(needed(action, file), flags, context);
      const json = () => JSON.stringify(Object.fromEntries(blocks));
      terminal.out(`${flags.json ? json() : showTable(blocks)}\n`);
      return 0;
    }
    case "schema": {
      const { specSchema } = await import("../../models/spec_schema.ts");
      terminal.out(`${JSON.stringify(specSchema(), null, 2)}\n`);
      return 0;
    }
    case "list":
      return await list(flags.json ?? false, context);
    default:
      throw new UsageError(`Unknown action ${action}: they are check, show, schema, list`);
  }
});

function needed(action: string, file: string | undefined): string {
  if (file !== undefined) return file;
  throw new UsageError(`troodon spec ${action} needs ${action === "show" ? "a model" : "a file"}`);
}

async function check(file: string, json: boolean, { terminal }: Context): Promise<number> {
  const { isInferflowSpec, readSpecFile } = await import("../../models/spec_file.ts");
  const content = await readSpecFile(file);
  if (isInferflowSpec(content)) {
    // Without a model only the keys can be checked; loading one by it checks the rest.
    const { readInferflowSpec } = await import("../../models/inferflow/read.ts");
    const { network: { type }, warnings } = readInferflowSpec(content, file);
    for (const warning of warnings) terminal.err(`warning: ${warning}\n`);
    terminal.out(
      json
        ? `${JSON.stringify({ form: "inferflow", type, warnings })}\n`
        : `${file}: Inferflow's description of a ${type}, its keys are valid\n`,
    );
    return 0;
  }
  const { checkSpec } = await import("../../models/spec_check.ts");
  const report = await checkSpec(content, file);
  const { name, conventions, cases } = report;
  terminal.out(
    json
      ? `${JSON.stringify(report)}\n`
      : `${file}: ${name} is valid for ${conventions.join(" and ")}, ${cases} cases tried\n`,
  );
  return 0;
}

async function blocksOf(
  name: string,
  flags: Parameters<typeof loadOptions>[0] & SpecFlag,
  { signal }: Context,
): Promise<[string, string][]> {
  const { openForReading } = await import("../../models/open_source.ts");
  const { ownForm } = await import("../../models/spec_file.ts");
  const { describeFile } = await import("../../models/describe_spec.ts");
  const file = await openForReading(name, { ...loadOptions(flags), signal });
  using _file = closing(file);
  const { spec } = await specOption(flags);
  return describeFile(file, (await ownForm(spec, file)).json);
}

async function list(json: boolean, { terminal }: Context): Promise<number> {
  const { specFiles } = await import("../../models/specs/mod.ts");
  const rows = specFiles.map(({ name, matches: { huggingface, gguf } }) => [
    name,
    huggingface.join(" ") || "-",
    gguf.join(" ") || "-",
  ]);
  terminal.out(
    json
      ? `${JSON.stringify(specFiles.map(({ name, matches }) => ({ name, ...matches })))}\n`
      : `${showTable([["SPEC", "CONFIG.JSON", "GGUF"], ...rows])}\n`,
  );
  return 0;
}
