// A config.json that speaks of several networks has a section for each. Seen through its section a file is that of one
// network: what the section says counts, and beside it what is said once for all.

import type { WeightFile } from "../formats/source.ts";
import { asObject } from "../formats/strict_json.ts";

/**
 * The file with the section's keys over the others; itself where it has no such section.
 *
 * @param type Its `model_type`, where the section names none.
 */
export function sectionOf(
  file: WeightFile,
  { section, type }: { readonly section?: string; readonly type?: string },
): WeightFile {
  const own = section === undefined ? undefined : asObject(file.metadata.get(section));
  if (!own) return file;
  const named = { ...type !== undefined && { model_type: type }, ...own };
  return { ...file, metadata: new Map([...file.metadata, ...Object.entries(named)]) };
}
