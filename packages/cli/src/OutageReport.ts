/** A summary of many simulated outages as text, with a plot. */
import { Delay } from "@requeue/core"
import type { OutageReport } from "@requeue/operations"
import type { Service } from "./Output.ts"
import * as Plot from "./Plot.ts"
import * as Table from "./Table.ts"

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 })
const fraction = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 })

const row = (
  what: string,
  { high, low, median }: OutageReport.Range,
  show: (value: number) => string
): ReadonlyArray<string> => [what, show(median), low === high ? show(low) : `${show(low)} to ${show(high)}`]

const width = 60

/** Draws the backlog over time, with a mark at the end of the outage. */
const plot = (
  { backlog: { slice, values }, length, seed }: OutageReport.OutageReport,
  paint: Service["paint"]
): string => {
  const peak = Math.max(...values)
  const end = Math.max(1, Math.min(width, Math.round((length / (slice * values.length)) * width)))
  return [
    `backlog of the outage with seed ${seed}, ${whole.format(peak)} at most, over ${Delay.format(slice * values.length)}`,
    ...Plot.columns(values, { height: 6, width }).map((line) => paint("cyan", line.trimEnd())),
    `${"─".repeat(end - 1)}┴${"─".repeat(width - end)}`,
    `${" ".repeat(Math.max(0, end - 1))}the outage ends`
  ].join("\n")
}

export const text = (report: OutageReport.OutageReport, paint: Service["paint"]): string => {
  const { deadLetters, discarded, recovery, rounds, unrecovered } = report
  const count = whole.format.bind(whole)
  const lost = deadLetters.high > 0 ? "red" : "green"
  const rows = [
    row("messages", report.messages, count),
    row("dead letters", deadLetters, (value) => paint(lost, count(value))),
    ...(discarded.high > 0 ? [row("discarded", discarded, (value) => paint("red", count(value)))] : []),
    row("handler runs per message", report.runsPerMessage, fraction.format.bind(fraction)),
    row("largest backlog", report.peakBacklog, count),
    recovery === null ? ["time to recover", "never", ""] : row("time to recover", recovery, Delay.format)
  ]
  return [
    `an outage of ${Delay.format(report.length)}, ${report.rate} messages a second, ` +
      `${report.concurrency} ${report.concurrency === 1 ? "handler" : "handlers"} of ${Delay.format(report.handlerTime)}, consumer backoff ${report.consumerBackoff}`,
    "",
    Table.format([`of ${rounds} outages`, "median", "nine of ten"], rows),
    ...(unrecovered > 0 && recovery !== null ? [`${unrecovered} of ${rounds} did not recover`] : []),
    "",
    plot(report, paint)
  ].join("\n")
}
