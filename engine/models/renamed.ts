// Older files call the same tensors by other names (BERT's norms have gamma and beta). They are renamed
// once, when the file is opened, so that specs list one spelling.

import type { WeightFile } from "../formats/source.ts";

/** The file with endings of tensor names replaced; itself where there is nothing to replace. */
export function renameTensors(
  file: WeightFile,
  endings: Readonly<Record<string, string>>,
): WeightFile {
  const rules = Object.entries(endings);
  if (rules.length === 0) return file;
  const tensors = new Map(
    [...file.tensors].map(([name, tensor]) => {
      const rule = rules.find(([ending]) => name.endsWith(ending));
      if (!rule) return [name, tensor];
      const [ending, usual] = rule;
      return [name.slice(0, name.length - ending.length) + usual, tensor];
    }),
  );
  return { ...file, tensors };
}
