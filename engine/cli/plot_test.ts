// Plots: what ECharts is told, and that it draws it.

import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { SourceError } from "../errors.ts";
import { lossPlot } from "./commands/perplexity.ts";
import { chartOption, type Plot, writePlot } from "./plot.ts";
import { errorPlot } from "./commands/quant_error.ts";

const statistics = (mean: number) => ({
  ...{ count: 4, max: 2 * mean, min: 0, mean, std: mean, relative: 0.1 },
  ...{ eachMean: 0.1, eachStd: 0.2 },
});
const tensor = (name: string, mean: number) => ({
  ...{ name, shape: [2, 2], format: "X", insteadOf: undefined, bits: 4, ...statistics(mean) },
});
const error = (...means: number[]) => ({
  tensors: means.map((mean, i) => tensor(`t${i}`, mean)),
  total: statistics(1),
  bits: 4,
});

Deno.test("errors become a group of bars a tensor, in the order of the tensors", () => {
  const plot = errorPlot("folder/model.gguf", [
    { name: "E0M4", error: error(1, 2) },
    { name: "INT4", error: error(3, 4) },
  ]);
  assertEquals(plot.labels, ["t0", "t1"]);
  assertEquals(plot.series, [{ name: "E0M4", values: [1, 2] }, { name: "INT4", values: [3, 4] }]);
  const { yAxis, series } = chartOption(plot) as {
    yAxis: { data: string[] };
    series: { type: string; data: number[] }[];
  };
  assertEquals(yAxis.data, plot.labels);
  assertEquals(series.map(({ type, data }) => [type, ...data]), [["bar", 1, 2], ["bar", 3, 4]]);
});

Deno.test("losses become a line a model, a point a window", () => {
  const windows = [{ index: 0, nll: 8, scored: 4 }, { index: 1, nll: 3, scored: 1 }];
  const result = { perplexity: 1, standardError: 0, nll: 11, scored: 5, windows };
  const plot = lossPlot([{ name: "a/b.gguf", result }]);
  assertEquals(plot.labels, ["1", "2"]);
  assertEquals(plot.series, [{ name: "b.gguf", values: [2, 3] }]);
  const { xAxis, series } = chartOption(plot) as {
    xAxis: { data: string[] };
    series: { type: string }[];
  };
  assertEquals([xAxis.data, series[0]!.type], [plot.labels, "line"]);
});

Deno.test("a plot is drawn into a new file only", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const plot: Plot = {
      ...{ title: "Errors & more", unit: "nats", kind: "bars", labels: ["blk.0.attn_q.weight"] },
      series: [{ name: "Q4_0", values: [0.25] }],
    };
    const path = `${folder}/plot.svg`;
    await writePlot(path, plot);
    const svg = await Deno.readTextFile(path);
    assert(svg.startsWith("<svg") && svg.trimEnd().endsWith("</svg>"));
    for (const text of ["Errors &amp; more", "nats", "Q4_0", "blk.0.attn_q.weight"]) {
      assertStringIncludes(svg, text);
    }
    await assertRejects(() => writePlot(path, plot), SourceError);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
