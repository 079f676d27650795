// What commands that quantise say of tensors whose rows do not fill the blocks of the format that was asked for.

/** A tensor, with the format that it got and, if that is another, the one that was wanted. */
export interface FallbackFormat {
  readonly name: string;
  readonly shape: readonly number[];
  readonly to: string;
  readonly insteadOf?: string | undefined;
}

/** One line for all tensors with the same rows, format and wanted format. */
export function fallbackLines(tensors: readonly FallbackFormat[]): string[] {
  const groups = Map.groupBy(
    tensors.filter(({ insteadOf }) => insteadOf !== undefined),
    ({ shape, to, insteadOf }) =>
      `rows of ${shape.at(-1)} are no multiple of ${insteadOf}'s block, stored as ${to}`,
  );
  return [...groups].map(([why, members]) => `${someNames(members)}: ${why}`);
}

/** The first three names, and how many more there are. */
export function someNames(tensors: readonly { readonly name: string }[]): string {
  const names = tensors.slice(0, 3).map(({ name }) => name).join(", ");
  return tensors.length > 3 ? `${names} and ${tensors.length - 3} more` : names;
}
