// Which shipped family an unknown model resembles most, told by the names of its tensors and of its config's keys: the
// one that leaves the fewest over. Whoever adds a family starts from there.

import type { WeightFile } from "../formats/source.ts";
import { isExpected } from "./hparams.ts";
import { metadataAt } from "./metadata.ts";
import type { Names, ResolvedSpec } from "./spec.ts";
import { unknownKeys } from "./unknown_keys.ts";

/** A family and what it does not explain. */
export interface Nearest {
  /** Families that are equally near. */
  readonly families: readonly string[];
  /** Tensors of the file that the family has no role for. */
  readonly unknown: readonly string[];
  /** Names of its own, and of blocks that it cannot do without, that the file has no tensor for. */
  readonly missing: readonly string[];
  /** Keys of the file that the family does not know. */
  readonly keys: readonly string[];
  /** Keys of the family's own that the file lacks. */
  readonly absent: readonly string[];
  /** Keys of the file whose values are not built for the family. */
  readonly refused: readonly string[];
}

/**
 * The nearest of some families; undefined where none explains most of the file. A file without tensors is judged by
 * its keys.
 */
export function nearestSpec(
  file: WeightFile,
  { candidates, architecture }: {
    readonly candidates: readonly ResolvedSpec[];
    readonly architecture: string;
  },
): Nearest | undefined {
  const tensors = [...file.tensors.keys()];
  const judged = candidates.map((candidate) => {
    const nearest = {
      ...tensors.length > 0
        ? judge(candidate, tensors)
        : { families: [candidate.spec.name], unknown: [], missing: [] },
      keys: unknownKeys(file, { spec: candidate, architecture }),
      absent: absentKeys(candidate, file),
      refused: Object.entries(candidate.names.expected)
        .map(([key, allowed]) => [key.replace("{arch}", architecture), allowed] as const)
        .filter(([key, allowed]) => !isExpected(metadataAt(file.metadata, key), allowed)).map((
          [key],
        ) => key),
    };
    // Keys count less than tensors: many change nothing.
    const keys = nearest.keys.length + nearest.absent.length;
    return { ...nearest, distance: distance(nearest) + keys / 2 };
  });
  const [best] = judged.sort((a, b) => a.distance - b.distance);
  if (!best || (tensors.length > 0 && best.unknown.length >= tensors.length / 2)) return undefined;
  const near = judged.filter(({ distance }) => distance === best.distance);
  return { ...best, families: near.flatMap(({ families }) => families) };
}

/** One sentence for a message. */
export function describeNearest({ families, unknown, missing, keys }: Nearest): string {
  const shown = (list: readonly string[]) => `${list.length} such as ${list[0]}`;
  const parts = [
    unknown.length > 0 && `the file has tensors that it does not know (${shown(unknown)})`,
    missing.length > 0 && `it wants tensors that the file lacks (${shown(missing)})`,
    keys.length > 0 && `the file has keys that it does not know (${shown(keys)})`,
  ].filter((part) => part);
  const names = families.length === 1
    ? `nearest family is ${families[0]}`
    : `nearest families are ${families.join(", ")}`;
  return `The ${names}: ${parts.join(", and ") || "all tensors and keys have its names"}`;
}

function distance({ unknown, missing }: Pick<Nearest, "unknown" | "missing">): number {
  return unknown.length + missing.length;
}

/** Hyperparameters of the family's own that the file does not state: tells siblings of equal names apart. */
function absentKeys({ spec, convention }: ResolvedSpec, { metadata }: WeightFile): string[] {
  const own = Object.values(spec.names?.[convention]?.hyperparameters ?? {});
  return own.filter((keys) => !keys.some((key) => metadataAt(metadata, key) !== undefined))
    .map(([first = "none"]) => first);
}

function judge(
  { spec, convention, names }: ResolvedSpec,
  tensors: readonly string[],
): Pick<Nearest, "families" | "unknown" | "missing"> {
  const patterns = patternsOf(names);
  const own = Object.values(spec.names?.[convention]?.tensors ?? {});
  const roles = spec.layer.flatMap(({ before, after, sum }) => [before, after, sum]);
  if (spec.feedForward.kind === "mixture") roles.push("router");
  const wanted = [...own, ...roles.map((role) => names.tensors[role ?? ""] ?? [])]
    .map(templatesOf).filter((templates) => templates.length > 0);
  return {
    families: [spec.name],
    unknown: tensors.filter((name) =>
      !patterns.some((pattern) => pattern.test(name)) &&
      !names.ignored.some((ending) => name.endsWith(ending))
    ),
    missing: [
      ...new Set(
        wanted.filter((templates) =>
          !templates.some((template) => {
            const pattern = toPattern(template, names.prefixes);
            return tensors.some((name) => pattern.test(name));
          })
        ).map(([first]) => first!),
      ),
    ],
  };
}

/** Names under which a role may be. */
function templatesOf(rules: Names["tensors"][string]): string[] {
  return [rules].flat().map((rule) => typeof rule === "string" ? rule : rule.name);
}

function patternsOf({ tensors, prefixes }: Names): RegExp[] {
  const templates = Object.values(tensors).flatMap(templatesOf);
  const biases = templates.map((template) => template.replace(/\bweight$/, "bias"));
  return [...new Set([...templates, ...biases])].map((template) => toPattern(template, prefixes));
}

function toPattern(template: string, prefixes: readonly string[]): RegExp {
  const source = template.split(/(\{\w+\})/).map((part) => {
    if (part === "{prefix}") return `(?:${prefixes.map(escape).join("|")})`;
    return /^\{\w\}$/.test(part) ? "\\d+" : escape(part);
  }).join("");
  return new RegExp(`^${source}$`);
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
