// The arena over time as SVG: one rectangle a tensor, left to right the waves in which it lives, bottom to top its bytes,
// with axes, names where there is room for them, and a legend. Made from the plan alone and deterministic.

import type { Plan } from "../../plan/plan.ts";

const WIDTH = 1200, HEIGHT = 560;
const LEFT = 84, RIGHT = 24, TOP = 48, BOTTOM = 64;
const TICKS = 6;
/** Room that a name takes: a line's height and a letter's width in units of the picture. */
const LINE = 13, LETTER = 6.2;

/** The picture. */
export function arenaSvg({ placements, arenaBytes, lowerBoundBytes, waves }: Plan): string {
  const x = (wave: number) => LEFT + wave / Math.max(1, waves) * (WIDTH - LEFT - RIGHT);
  const y = (bytes: number) =>
    HEIGHT - BOTTOM - bytes / Math.max(1, arenaBytes) * (HEIGHT - TOP - BOTTOM);
  const boxes = [...placements.values()].map(({ value, offset, bytes, first, last }, i) => {
    const hue = (i * 137) % 360;
    const [left, top] = [x(first), y(offset + bytes)];
    const [width, height] = [x(last + 1) - left, y(offset) - top];
    const title = `${value.name}: ${bytes} bytes at ${offset}, waves ${first} to ${last}`;
    const letters = Math.floor((width - 6) / LETTER);
    const label = height < LINE || letters < 4
      ? ""
      : `<text x="${(left + 3).toFixed(2)}" y="${(top + LINE - 2).toFixed(2)}" font-size="10">` +
        `${escapeXml(shortened(value.name, letters))}</text>`;
    return `<g class="tensor"><rect x="${left.toFixed(2)}" y="${top.toFixed(2)}" ` +
      `width="${width.toFixed(2)}" height="${height.toFixed(2)}" fill="hsl(${hue} 55% 72%)" ` +
      `stroke="#555" stroke-width="0.3"/><title>${escapeXml(title)}</title>${label}</g>`;
  });
  const bound = y(lowerBoundBytes).toFixed(2);
  const caption = `${arenaBytes} bytes over ${waves} waves; lower bound ${lowerBoundBytes}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" ` +
    `font-family="Helvetica, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    ...axes({ x, y }, { arenaBytes, waves }),
    ...boxes,
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${bound}" y2="${bound}" stroke="#c00" ` +
    `stroke-dasharray="4 3"/>`,
    `<text x="${LEFT}" y="20">${escapeXml(caption)}</text>`,
    legend(),
    "</svg>",
  ].join("\n");
}

function axes(
  { x, y }: { x(wave: number): number; y(bytes: number): number },
  { arenaBytes, waves }: { readonly arenaBytes: number; readonly waves: number },
): string[] {
  const foot = HEIGHT - BOTTOM;
  const steps = (most: number): number[] => {
    const step = niceStep(most / TICKS);
    return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
  };
  const bytes = steps(arenaBytes).map((value) =>
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value).toFixed(2)}" y2="${
      y(value).toFixed(2)
    }" stroke="#ddd"/><text x="${LEFT - 6}" y="${(y(value) + 4).toFixed(2)}" ` +
    `text-anchor="end">${showBytes(value)}</text>`
  );
  const times = steps(Math.max(1, waves)).filter(Number.isInteger).map((wave) =>
    `<line x1="${x(wave).toFixed(2)}" x2="${x(wave).toFixed(2)}" y1="${foot}" y2="${foot + 4}" ` +
    `stroke="#555"/><text x="${x(wave).toFixed(2)}" y="${foot + 18}" ` +
    `text-anchor="middle">${wave}</text>`
  );
  const middle = (TOP + foot) / 2;
  return [
    ...bytes,
    ...times,
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${
      foot + 36
    }" text-anchor="middle">wave (time)</text>`,
    `<text x="16" y="${middle}" text-anchor="middle" transform="rotate(-90 16 ${middle})">` +
    `place in the arena</text>`,
  ];
}

function legend(): string {
  const y = HEIGHT - 10;
  return `<g class="legend"><rect x="${LEFT}" y="${y - 10}" width="14" height="10" ` +
    `fill="hsl(137 55% 72%)" stroke="#555" stroke-width="0.3"/>` +
    `<text x="${
      LEFT + 20
    }" y="${y}">a tensor, from the wave that makes it to the last that reads it</text>` +
    `<line x1="${LEFT + 420}" x2="${LEFT + 444}" y1="${y - 5}" y2="${y - 5}" stroke="#c00" ` +
    `stroke-dasharray="4 3"/><text x="${
      LEFT + 450
    }" y="${y}">lower bound: what lives at once</text></g>`;
}

/** 1, 2 or 5 times a power of ten, at least as much. */
function niceStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(step, 1e-9)));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= step)!;
}

function showBytes(bytes: number): string {
  const unit = bytes >= 1e9 ? 3 : bytes >= 1e6 ? 2 : bytes >= 1e3 ? 1 : 0;
  return `${Number((bytes / 1000 ** unit).toPrecision(3))} ${["B", "kB", "MB", "GB"][unit]}`;
}

function shortened(name: string, letters: number): string {
  return name.length <= letters ? name : `${name.slice(0, letters - 1)}…`;
}

/** A text inside XML or HTML. */
export function escapeXml(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(
    /"/g,
    "&quot;",
  );
}
