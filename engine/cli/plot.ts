// Plots of measurements as SVG, drawn by Apache ECharts (npm echarts), which needs no browser for that. It is
// named only here and only when a plot is asked for: named in an import, Deno would fetch it, and all of
// deno.lock, for every command.

import { UnsupportedError } from "../errors.ts";
import { writeNewText } from "../io.ts";
import { importNamed } from "../npm_packages.ts";

/** What to draw. */
export interface Plot {
  readonly title: string;
  /** What the values are, with their unit. */
  readonly unit: string;
  /** `bars`: from left to right, a group of bars a label; `lines`: from bottom to top, a line a series. */
  readonly kind: "bars" | "lines";
  readonly labels: readonly string[];
  /** A value a label each. */
  readonly series: readonly { readonly name: string; readonly values: readonly number[] }[];
}

/** The few names of ECharts used here. */
interface ECharts {
  init(dom: null, theme: null, options: Record<string, unknown>): {
    setOption(option: Record<string, unknown>): void;
    renderToSVGString(): string;
    dispose(): void;
  };
}

const LIBRARY = "npm:echarts@6.1.0";

const WIDTH = 900;
const BAR = 12;
const FRAME = 136;

/**
 * Draws a plot into a new file.
 *
 * @throws {SourceError} If something is at `path`.
 * @throws {UnsupportedError} If the library cannot be loaded.
 */
export async function writePlot(path: string, plot: Plot): Promise<void> {
  writeNewText(path, await draw(plot));
}

async function draw(plot: Plot): Promise<string> {
  let library: ECharts;
  try {
    library = await importNamed<ECharts>(LIBRARY);
  } catch (cause) {
    throw new UnsupportedError("cannot load npm echarts, which draws plots", {
      remedy: "Allow the network once, or use --json",
      cause,
    });
  }
  const { kind, labels, series } = plot;
  const rows = labels.length * (series.length + 1);
  const height = kind === "bars" ? FRAME + BAR * rows : WIDTH / 2;
  const chart = library.init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height });
  try {
    chart.setOption(chartOption(plot));
    return chart.renderToSVGString() + "\n";
  } finally {
    chart.dispose();
  }
}

/** A plot in ECharts' terms. */
export function chartOption({ title, unit, kind, labels, series }: Plot): Record<string, unknown> {
  const values = { type: "value", name: unit, nameLocation: "middle", nameGap: 36, scale: true };
  const names = { type: "category", data: labels };
  const isBars = kind === "bars";
  return {
    animation: false,
    backgroundColor: "#fff",
    title: { text: title, left: "center" },
    legend: { top: 36 },
    grid: { top: 72, bottom: 56, left: 40, right: 40, containLabel: true },
    xAxis: isBars ? { ...values, scale: false } : names,
    // Labels of bars are read from the top.
    yAxis: isBars ? { ...names, inverse: true } : values,
    series: series.map(({ name, values }) => ({
      ...{ type: isBars ? "bar" : "line", name, data: values },
      ...!isBars && { showSymbol: false },
    })),
  };
}
