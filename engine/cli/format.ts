// Numbers and tables as people read them.

/** `98.4 MB`: decimal units, three digits. */
export function showBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

/** `135 M`, `1.2 B`: numbers of parameters. */
export function showCount(count: number): string {
  if (count >= 999.5e6) return `${(count / 1e9).toFixed(1)} B`;
  if (count >= 999.5e3) return `${(count / 1e6).toFixed(0)} M`;
  return String(count);
}

/** `0.35 s`, `12 s`, `3 min`. */
export function showSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  return seconds < 120 ? `${seconds.toFixed(0)} s` : `${(seconds / 60).toFixed(0)} min`;
}

/** Columns aligned by blanks; `right` names those with numbers. */
export function showTable(
  rows: readonly (readonly string[])[],
  right: readonly number[] = [],
): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, c) => widths[c] = Math.max(widths[c] ?? 0, cell.length));
  }
  return rows.map((row) =>
    row.map((cell, c) => right.includes(c) ? cell.padStart(widths[c]!) : cell.padEnd(widths[c]!))
      .join("  ").trimEnd()
  ).join("\n");
}

/** Escape sequences around a text where colours are wanted. */
export function paint(
  on: boolean,
  { style, text }: {
    readonly style: "bold" | "dim" | "red" | "green" | "yellow";
    readonly text: string;
  },
): string {
  const code = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 }[style];
  return on ? `\x1b[${code}m${text}\x1b[0m` : text;
}
