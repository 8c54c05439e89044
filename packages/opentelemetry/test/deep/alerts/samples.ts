/** What Prometheus has of a process: the samples of its scrapes, as `promtool` reads them. */

/** Seconds between two scrapes. */
export const interval = 15

/** Where a process's metrics come through: an exporter in it, or the Collector, which writes units into names. */
export type Way = "exporter" | "collector"

export interface Series {
  /** Its name with labels. */
  readonly series: string
  /** A value for each scrape, in the notation of unit tests for rules. */
  readonly values: string
}

/** The text of a scrape; `undefined` when nothing answered. */
export type Scrape = string | undefined

/** What Prometheus adds to each series. */
const target = 'job="shop",instance="127.0.0.1:9464"'

/**
 * Renames what the Collector names otherwise.
 *
 * https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/#metric-metadata-1
 */
const withUnits = (text: string): string => {
  const suffixes = new Map(
    [...text.matchAll(/^# UNIT (\S+) (s|1)$/gm)].map(([, name, unit]) => [name, unit === "s" ? "_seconds" : "_ratio"])
  )
  return text.replace(/^(\w+?)(_bucket|_sum|_count)?\{/gm, (_, name: string, part = "") => {
    const isPart = part !== "" && suffixes.has(name)
    return isPart ? `${name}${suffixes.get(name)}${part}{` : `${name}${part}${suffixes.get(name + part) ?? ""}{`
  })
}

const samplesOf = (text: string): ReadonlyArray<readonly [series: string, value: string]> =>
  text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#") && !line.startsWith("target_info"))
    .map((line) => [
      line.slice(0, line.lastIndexOf(" ")).replace("{", `{${target},`),
      line.slice(line.lastIndexOf(" ") + 1)
    ])

/** The series of scrapes. One that is missing is stale, as Prometheus marks it. */
export const seriesOf = (scrapes: ReadonlyArray<Scrape>, way: Way = "exporter"): ReadonlyArray<Series> => {
  const found = new Map<string, Array<string>>()
  scrapes.forEach((scrape = "", index) => {
    for (const [series, value] of samplesOf(way === "collector" ? withUnits(scrape) : scrape)) {
      const values = found.get(series) ?? []
      found.set(series, values)
      while (values.length < index) values.push(/^[\d-]/.test(values.at(-1) ?? "") ? "stale" : "_")
      values.push(value)
    }
  })
  return Array.from(found, ([series, values]) => {
    const isGone = values.length < scrapes.length
    return { series, values: [...values, ...(isGone ? ["stale"] : [])].join(" ") }
  })
}

/** The series without what was between two minutes; `mark` is what stands there first. */
export const withGap = (all: ReadonlyArray<Series>, from: number, to: number, mark: string): ReadonlyArray<Series> =>
  all.map(({ series, values }) => {
    const [first, last] = [(from * 60) / interval, (to * 60) / interval]
    const marked = values.split(" ").map((value, at) => (at < first || at >= last ? value : at === first ? mark : "_"))
    return { series, values: marked.join(" ") }
  })
