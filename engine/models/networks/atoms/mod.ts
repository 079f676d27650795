// All atoms of networks by name. To add one: a record in the file of its kind.

import type { Atom } from "./atom.ts";
import { ELEMENTS } from "./elements.ts";
import { LAYERS } from "./layers.ts";
import { POSITIONS } from "./positions.ts";
import { SHAPES } from "./shapes.ts";

/** What a step may do. */
export const ATOMS: Readonly<Record<string, Atom>> = {
  ...LAYERS,
  ...ELEMENTS,
  ...SHAPES,
  ...POSITIONS,
};
